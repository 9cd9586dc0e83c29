//! What the editor lends to the session's runs, and the calls of it that wait.

use super::Session;
use crate::doors::acp::editor::Editor;

impl Session {
    pub(super) fn editor(&self) -> Option<Editor> {
        let project = self.project.clone()?;
        Some(Editor::new(self.door.clone(), self.id, project))
    }

    pub(super) async fn lend(&mut self, client_id: &str) {
        if let Some(editor) = self.editor()
            && let Err(error) = editor.lend(client_id).await
        {
            tracing::warn!(%error, "the editor's files and terminals are not lent");
        }
    }

    /// Serves calls that began while nobody listened.
    pub(super) async fn serve_what_waits(&mut self) {
        let Some(editor) = self.editor() else {
            return;
        };
        for run_id in self.prompts.runs() {
            for call in editor.calls(run_id).await {
                self.served.begin(editor.clone(), run_id, call.id);
            }
        }
    }
}
