//! Models that Ollama is asked to pull.

use super::Engine;
use crate::protocol::error::NaviError;

impl Engine {
    /// Has Ollama pull a model, or joins where it does; how that goes is in [`Engine::status`].
    ///
    /// # Errors
    /// `invalid_field`, `backend_unavailable` where there is no Ollama, `backend_busy` where
    /// another model is being pulled, `shutting_down`.
    pub fn pull_model(&self, name: &str) -> Result<(), NaviError> {
        self.refuse_when_closed()?;
        if let Some(begun) = self.pulls.begin(name)? {
            let engine = self.clone();
            self.runtime.spawn(async move {
                let pull = engine.pulls.carry_out(begun);
                if engine.closed.run_until_cancelled(pull).await.is_some() {
                    // A model that came is there for the next message.
                    engine.probe().await;
                    engine.tell_status_now();
                }
            });
            self.tell_status_now();
        }
        Ok(())
    }

    /// Stops the pull of a model, or puts away why it failed. What Ollama has of it stays there.
    ///
    /// # Errors
    /// `invalid_field`, `not_found`.
    pub fn stop_pull(&self, name: &str) -> Result<(), NaviError> {
        self.pulls.stop(name)?;
        self.tell_status_now();
        Ok(())
    }
}
