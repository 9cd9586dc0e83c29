//! Ids in paths.

use std::future::{Ready, ready};
use std::str::FromStr;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::ids::{RunId, SessionId};

use super::error::ApiError;

/// The session that a path names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionPath(pub(crate) SessionId);

impl FromRequest for SessionPath {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let id = request.match_info().get("session_id").unwrap_or_default();
        ready(session_id(id).map(Self).map_err(ApiError))
    }
}

/// A session's id from its text.
///
/// # Errors
/// `invalid_id`.
pub(crate) fn session_id(text: &str) -> Result<SessionId, NaviError> {
    id_of("a session's", text)
}

/// A run's id from its text.
///
/// # Errors
/// `invalid_id`.
pub(crate) fn run_id(text: &str) -> Result<RunId, NaviError> {
    id_of("a run's", text)
}

/// An id from its text; `whose` is what is said of one that is none.
///
/// # Errors
/// `invalid_id`.
pub(crate) fn id_of<T: FromStr>(whose: &str, text: &str) -> Result<T, NaviError> {
    text.parse()
        .map_err(|_| NaviError::new(ErrorCode::InvalidId, format!("{whose} id is a UUID")))
}
