//! `filesystem`: the files of the session's workspace, of what `FS_ALLOWED_PATHS` adds to it,
//! and nothing else; how they are reached is the work of [`super::workspace`].
//!
//! What changes something is written down first, with what it takes to undo it (`changes`).

mod changes;
mod edit;
mod list;
mod proposal;
mod read;
mod search_content;
mod text;
mod write;

pub(crate) use self::changes::changes_of_file;
pub use self::changes::{ChangeError, changes, changes_dir, undo};

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use self::changes::{ChangeLog, Origin};
use super::actions::{ActionFields, actions, effect_of, read_action};
use super::schema::spec_of;
use super::workspace::{FileAccess, Reach};
use super::{Proposal, Provenance, Tool, ToolContext, ToolOutput, ToolResult, blocking};
use crate::protocol::change::ChangeAction;
use crate::protocol::powers::Powers;
use crate::protocol::tool::{Effect, ToolSpec};

/// The tool's name.
const NAME: &str = "filesystem";

const DESCRIPTION: &str = "Work with the files of this conversation's workspace. \
    Use exactly the path that the user gave; paths are relative to the workspace. \
    Read a file before you change it, and change a part of it with edit: write replaces all of it.";

/// What to do with which file. One flat object, since small models fill that in best; what
/// an action needs of it is checked by hand.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = json!({"action": "read", "path": "plan.md"}))]
struct FilesystemArgs {
    /// list: what a directory has. read: show a file. write: create or replace a whole file.
    /// edit: replace `old_text` by `new_text`. search_names: find files by name.
    /// search_content: find lines in files. move: move or rename `path` to `to`. delete: remove
    /// a file or directory.
    action: Action,
    /// The file or directory. list and the searches take the whole workspace without it.
    #[serde(default)]
    path: String,
    /// move: the new path.
    #[serde(default)]
    to: String,
    /// write: the whole content; what stood there before is gone.
    #[serde(default)]
    content: String,
    /// edit: the text as it stands in the file, with enough around it to stand there only once.
    #[serde(default)]
    old_text: String,
    /// edit: the text to put in its place.
    #[serde(default)]
    new_text: String,
    /// edit: replace every occurrence.
    #[serde(default)]
    replace_all: bool,
    /// search_names: a glob such as *.md, or a part of the name. search_content: a regular
    /// expression.
    #[serde(default)]
    pattern: String,
    /// search_content: take `pattern` as plain text, not as a regular expression.
    #[serde(default)]
    literal: bool,
    /// read: the first line to show, counted from 1.
    start_line: Option<u64>,
    /// read: how many lines to show.
    line_count: Option<u64>,
    /// read: put its number before each line.
    #[serde(default)]
    line_numbers: bool,
    /// list: how many levels of directories to show; 1 without it.
    depth: Option<u64>,
}

actions! {
    "list" List Read [] ["path", "depth"];
    "read" Read Read ["path"] ["start_line", "line_count", "line_numbers"]
        r#"{"action":"read","path":"plan.md"}; list shows which files there are"#;
    "write" Write Write ["path", "content"] []
        r##"{"action":"write","path":"plan.md","content":"# Plan\n"}"##;
    "edit" Edit Write ["path", "old_text", "new_text"] ["replace_all"]
        r#"{"action":"edit","path":"plan.md","old_text":"draft","new_text":"final"}"#;
    "search_names" SearchNames Read ["pattern"] ["path"]
        r#"{"action":"search_names","pattern":"*.md"}"#;
    "search_content" SearchContent Read ["pattern"] ["path", "literal"]
        r#"{"action":"search_content","pattern":"total: [0-9]+"}"#;
    "move" Move Write ["path", "to"] []
        r#"{"action":"move","path":"draft.md","to":"notes/plan.md"}"#;
    "delete" Delete Write ["path"] []
        r#"{"action":"delete","path":"plan.md"}; list shows which files there are"#;
}

/// The tool.
#[derive(Debug)]
pub struct Filesystem {
    spec: ToolSpec,
    access: Arc<FileAccess>,
}

impl Filesystem {
    /// With what may be reached beside the workspace.
    pub fn new(access: Arc<FileAccess>) -> Self {
        let (description, effect) = match access.words() {
            None => (DESCRIPTION.to_owned(), Effect::Write),
            Some(beside) => (
                format!("{DESCRIPTION} By its absolute path you may also use: {beside}."),
                Effect::Host,
            ),
        };
        Self {
            spec: spec_of::<FilesystemArgs>(NAME, &description, effect, 30_000),
            access,
        }
    }

    /// Whether a call may reach beyond the workspace.
    fn leads_outside(&self, args: &Value) -> bool {
        ["path", "to"]
            .iter()
            .filter_map(|field| args[*field].as_str())
            .any(|path| self.access.leads_outside(path))
    }

    /// Runs work that blocks. A caller that gives up drops this future; the guard tells the
    /// blocking thread, which looks at the token between files and before each change.
    async fn run<T: Send + 'static>(
        &self,
        context: &ToolContext,
        work: impl FnOnce(&Reach) -> ToolResult<T> + Send + 'static,
    ) -> ToolResult<T> {
        let stop = context.stop.child_token();
        let _guard = stop.clone().drop_guard();
        let reach = Reach::new(&self.access, &context.workspace, stop);
        blocking(NAME, move || work(&reach)).await
    }
}

#[async_trait]
impl Tool for Filesystem {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn for_powers(self: Arc<Self>, powers: &Powers) -> Option<Arc<dyn Tool>> {
        let access = self.access.for_powers(powers);
        if Arc::ptr_eq(&access, &self.access) {
            return Some(self);
        }
        Some(Arc::new(Self::new(access)))
    }

    fn actions(&self) -> &[ActionFields] {
        ACTIONS
    }

    fn effect(&self, args: &Value) -> Effect {
        match effect_of(ACTIONS, args) {
            Some(Effect::Read) => Effect::Read,
            _ if self.leads_outside(args) => Effect::Host,
            _ => Effect::Write,
        }
    }

    fn provenance(&self, args: &Value) -> Provenance {
        let tells_nothing = matches!(args["action"].as_str(), Some("write" | "delete"));
        match (self.leads_outside(args), tells_nothing) {
            (true, true) => Provenance::Own,
            (true, false) => Provenance::Outside,
            (false, _) => Provenance::Workspace,
        }
    }

    async fn proposal(&self, args: &Value, context: &ToolContext) -> ToolResult<Proposal> {
        let args: FilesystemArgs = read_action(ACTIONS, args.clone())?;
        self.run(context, move |reach| proposal::proposal(reach, &args))
            .await
    }

    async fn call(&self, args: Value, context: ToolContext) -> ToolResult {
        // What lies outside is its owner's to fill.
        if matches!(args["action"].as_str(), Some("write" | "edit")) && !self.leads_outside(&args) {
            context.means.check_room()?;
        }
        let is_full = context.means.full.is_some();
        let args: FilesystemArgs = read_action(ACTIONS, args)?;
        let origin = Origin {
            run_id: Some(context.run_id),
            call_id: Some(context.call_id.clone()),
            undoes: None,
        };
        let work = self.run(&context, move |reach| {
            let spot = || reach.spot(&args.path);
            // Before it is looked what stands there: the lock holds off other calls' changes.
            let log = |action| ChangeLog::open(reach, action, origin);
            match args.action {
                Action::List => list::list(&spot()?, args.depth),
                Action::Read => read::read(&spot()?, &args),
                Action::Write => write::write(&log(ChangeAction::Write)?, &spot()?, &args.content),
                Action::Edit => edit::edit(&log(ChangeAction::Edit)?, &spot()?, &args),
                Action::SearchNames => list::search_names(&spot()?, &args.pattern),
                Action::SearchContent => {
                    search_content::search_content(&spot()?, &args.pattern, args.literal)
                }
                Action::Move => {
                    write::relocate(&log(ChangeAction::Move)?, reach, &spot()?, &args.to)
                }
                Action::Delete if is_full => {
                    write::delete_for_good(&log(ChangeAction::Delete)?, &spot()?)
                }
                Action::Delete => write::delete(&log(ChangeAction::Delete)?, &spot()?),
            }
        });
        work.await.map(ToolOutput::from)
    }
}

#[cfg(test)]
mod attack_tests;
#[cfg(test)]
mod outside_tests;
#[cfg(test)]
mod search_tests;
#[cfg(test)]
mod tests;
