//! What a session answers to those who wait for it.

use tokio::sync::oneshot;

use crate::protocol::error::{ErrorCode, NaviError};

/// Where an answer is waited for.
pub(super) type Reply<T> = oneshot::Sender<Result<T, NaviError>>;

pub(super) fn shutting_down() -> NaviError {
    NaviError::new(
        ErrorCode::ShuttingDown,
        "Navi is shutting down; send it again when it is back",
    )
}

pub(super) fn answer<T>(reply: Option<Reply<T>>, result: Result<T, NaviError>) {
    if let Some(reply) = reply {
        // The one who asked may have gone.
        let _ = reply.send(result);
    }
}

/// Waits for what a session promised; a session that went over a failed commit promised in vain.
pub(super) async fn committed<T>(
    rx: oneshot::Receiver<Result<T, NaviError>>,
) -> Result<T, NaviError> {
    rx.await.unwrap_or_else(|_| {
        Err(NaviError::new(
            ErrorCode::StoreUnavailable,
            "this could not be stored, so nothing was done; check the disk and the database, and send it again",
        ))
    })
}
