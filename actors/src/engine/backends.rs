//! A backend that comes while Navi runs.

use std::sync::Arc;

use super::{Engine, went_down};
use crate::llm::Backend;
use crate::protocol::error::NaviError;
use crate::root::ReplaceBackend;

impl Engine {
    /// Puts a backend in the place of that of its kind, and asks it how it is: runs that go keep
    /// the stream that they read, what is asked from now on goes to this one. Nothing happens where
    /// there is none of its kind.
    ///
    /// # Errors
    /// `shutting_down`.
    pub async fn replace_backend(&self, backend: Arc<dyn Backend>) -> Result<(), NaviError> {
        self.refuse_when_closed()?;
        let replaced = self.root.send(ReplaceBackend(backend)).await;
        replaced.map_err(|_| went_down())?;
        self.probe().await;
        self.tell_status_now();
        Ok(())
    }
}
