//! Large bodies of one person take turns, while they are read and parsed, and large messages on
//! sockets with them, while they are read: each may come to several times its size in memory, and
//! who sends one slowly holds what came of it for as long.

use std::cell::RefCell;

use actix_web::dev::ServiceRequest;
use actix_web::http::{Method, header};
use actix_web::{HttpMessage as _, web};
use navi_actors::people::Turn;
use navi_actors::protocol::error::ErrorCode;
use navi_actors::protocol::ids::UserId;
use tokio::time::timeout;

use super::App;
use super::error::ApiError;
use super::values::LARGE_BYTES;
use crate::access::Principal;

tokio::task_local! {
    /// That of the request which is answered, until its body is parsed.
    static TURN: RefCell<Option<Turn>>;
}

/// Waits until this request's body may come, where it may be a large one.
///
/// # Errors
/// `rate_limited`, as [`take`].
pub(super) async fn wait(request: &ServiceRequest) -> Result<Option<Turn>, ApiError> {
    let who = request.extensions().get::<Principal>().copied();
    let (Some(app), Some(who)) = (request.app_data::<web::Data<App>>(), who) else {
        return Ok(None);
    };
    if !may_be_large(request) {
        return Ok(None);
    }
    take(app, who.user).await.map(Some)
}

/// A turn of this person's, waited for as long as a body may itself be.
///
/// # Errors
/// `rate_limited` where others of the same person take longer.
pub(super) async fn take(app: &App, user: UserId) -> Result<Turn, ApiError> {
    let turn = app.engine.large_body(user);
    let turn = timeout(app.loaded.settings.slow_body, turn).await;
    turn.map_err(|_| {
        ApiError::new(
            ErrorCode::RateLimited,
            "other large requests of yours are still on their way; send this one again when they are answered",
        )
    })
}

/// Answers a request whose turn it is.
pub(super) async fn hold<T>(turn: Turn, answer: impl Future<Output = T>) -> T {
    TURN.scope(RefCell::new(Some(turn)), answer).await
}

/// The body of the request that is answered is parsed: the next one may come. Where nobody says
/// so, it comes when this one is answered.
pub(crate) fn end() {
    // Most have no turn.
    let _ = TURN.try_with(RefCell::take);
}

fn may_be_large(request: &ServiceRequest) -> bool {
    if !matches!(
        *request.method(),
        Method::POST | Method::PUT | Method::PATCH
    ) {
        return false;
    }
    let bytes = request.headers().get(header::CONTENT_LENGTH);
    let bytes = bytes.and_then(|bytes| bytes.to_str().ok()?.parse::<usize>().ok());
    // One that comes in pieces may come to anything.
    bytes.is_none_or(|bytes| bytes >= LARGE_BYTES)
}
