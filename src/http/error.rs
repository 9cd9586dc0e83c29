//! The one place where an error code becomes an HTTP status or a WebSocket close code.

use std::fmt;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header;
use actix_web::{HttpResponse, ResponseError};
use actix_web_actors::ws::{CloseCode, CloseReason};
use navi_actors::protocol::error::{ErrorCode, NaviError};
use serde::Serialize;

/// The close code of a session that does not exist, or that is another user's.
const SESSION_NOT_FOUND: u16 = 4004;
/// The close code of a socket whose login or token has ended.
const NOT_LOGGED_IN: u16 = 4001;
/// What fits into a close frame beside its code.
const MAX_REASON_BYTES: usize = 123;

/// An error on its way to an HTTP client: `{"code", "message"}` with its status.
#[derive(Debug)]
pub(crate) struct ApiError(pub(crate) NaviError);

impl ApiError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self(NaviError::new(code, message))
    }

    pub(crate) fn response(&self) -> HttpResponse {
        self.response_of(&self.0)
    }

    /// The same, told in the form of another door.
    pub(crate) fn response_of(&self, body: &impl Serialize) -> HttpResponse {
        let mut response = HttpResponse::build(status(self.0.code));
        if self.0.code == ErrorCode::Unauthorized {
            response.insert_header((header::WWW_AUTHENTICATE, "Bearer realm=\"navi\""));
        }
        if let Some(seconds) = retry_after(&self.0) {
            response.insert_header((header::RETRY_AFTER, seconds));
        }
        response
            .insert_header((header::CACHE_CONTROL, "no-store"))
            .json(body)
    }
}

impl From<NaviError> for ApiError {
    fn from(error: NaviError) -> Self {
        Self(error)
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        status(self.0.code)
    }

    fn error_response(&self) -> HttpResponse {
        self.response()
    }
}

impl actix_web::Responder for ApiError {
    type Body = actix_web::body::BoxBody;

    fn respond_to(self, _: &actix_web::HttpRequest) -> HttpResponse {
        self.response()
    }
}

/// After how many seconds the same may be asked for again: what is known, and a guess where nothing is.
fn retry_after(error: &NaviError) -> Option<u64> {
    if let Some(wait) = error.wait {
        return Some((wait + Duration::from_millis(999)).as_secs().max(1));
    }
    match error.code {
        ErrorCode::RateLimited => Some(60),
        ErrorCode::BackendBusy | ErrorCode::ShuttingDown | ErrorCode::StoreUnavailable => Some(5),
        _ => None,
    }
}

/// The HTTP status of a code.
pub(crate) fn status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::InvalidJson
        | ErrorCode::UnknownType
        | ErrorCode::InvalidField
        | ErrorCode::BinaryFrame
        | ErrorCode::EmptyMessage
        | ErrorCode::TooManyImages
        | ErrorCode::InvalidImage
        | ErrorCode::InvalidId
        | ErrorCode::InvalidUpload
        | ErrorCode::SignOnFailed
        | ErrorCode::UnknownProfile => StatusCode::BAD_REQUEST,
        ErrorCode::Unauthorized => StatusCode::UNAUTHORIZED,
        ErrorCode::ForbiddenOrigin
        | ErrorCode::ForbiddenHost
        | ErrorCode::Forbidden
        | ErrorCode::SignOnRefused => StatusCode::FORBIDDEN,
        ErrorCode::NotFound
        | ErrorCode::FileNotFound
        | ErrorCode::SessionNotFound
        | ErrorCode::MessageNotFound
        | ErrorCode::ApprovalNotFound
        | ErrorCode::RuleNotFound
        | ErrorCode::FactNotFound
        | ErrorCode::PersonNotFound
        | ErrorCode::InvitationNotFound
        | ErrorCode::ChangeNotFound
        | ErrorCode::ModelUnknown => StatusCode::NOT_FOUND,
        ErrorCode::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        ErrorCode::SessionBusy
        | ErrorCode::NothingToContinue
        | ErrorCode::MemoryFull
        | ErrorCode::ApprovalResolved
        | ErrorCode::TooManyRules
        | ErrorCode::NameTaken
        | ErrorCode::IdentityTaken
        | ErrorCode::ChangeConflict
        | ErrorCode::ToolChanged => StatusCode::CONFLICT,
        ErrorCode::FrameTooLarge
        | ErrorCode::BodyTooLarge
        | ErrorCode::MessageTooLarge
        | ErrorCode::ImageTooLarge
        | ErrorCode::FileTooLarge
        | ErrorCode::TooManyFiles => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
        ErrorCode::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorCode::ContextOverflow => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorCode::QueueFull | ErrorCode::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::RunFailed | ErrorCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        ErrorCode::BackendUnauthorized
        | ErrorCode::BackendError
        | ErrorCode::BackendStreamBroken
        | ErrorCode::EmptyReply
        | ErrorCode::ReplyTooLong => StatusCode::BAD_GATEWAY,
        ErrorCode::BackendUnavailable
        | ErrorCode::BackendBusy
        | ErrorCode::ModelNotFound
        | ErrorCode::ShuttingDown
        | ErrorCode::SignOnUnavailable
        | ErrorCode::StoreUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::FirstChunkTimeout | ErrorCode::ChunkTimeout => StatusCode::GATEWAY_TIMEOUT,
    }
}

/// How a socket is closed that an error ends.
pub(crate) fn close_reason(error: &NaviError) -> CloseReason {
    CloseReason {
        code: close_code(error.code),
        description: Some(shortened(&error.message)),
    }
}

fn close_code(code: ErrorCode) -> CloseCode {
    match code {
        ErrorCode::SessionNotFound | ErrorCode::InvalidId => CloseCode::Other(SESSION_NOT_FOUND),
        ErrorCode::Unauthorized => CloseCode::Other(NOT_LOGGED_IN),
        ErrorCode::InvalidJson
        | ErrorCode::UnknownType
        | ErrorCode::InvalidField
        | ErrorCode::EmptyMessage
        | ErrorCode::TooManyImages
        | ErrorCode::InvalidImage
        | ErrorCode::ImageTooLarge
        | ErrorCode::MessageTooLarge
        | ErrorCode::UnsupportedMediaType
        | ErrorCode::UnknownProfile
        | ErrorCode::ForbiddenOrigin
        | ErrorCode::ForbiddenHost
        | ErrorCode::Forbidden
        | ErrorCode::NotFound
        | ErrorCode::MethodNotAllowed
        | ErrorCode::BodyTooSlow
        | ErrorCode::FileNotFound
        | ErrorCode::InvalidUpload
        | ErrorCode::FileTooLarge
        | ErrorCode::TooManyFiles
        | ErrorCode::MessageNotFound
        | ErrorCode::ApprovalNotFound
        | ErrorCode::ApprovalResolved
        | ErrorCode::RuleNotFound
        | ErrorCode::TooManyRules
        | ErrorCode::FactNotFound
        | ErrorCode::PersonNotFound
        | ErrorCode::InvitationNotFound
        | ErrorCode::SignOnFailed
        | ErrorCode::SignOnRefused
        | ErrorCode::IdentityTaken
        | ErrorCode::ChangeNotFound
        | ErrorCode::NameTaken
        | ErrorCode::ChangeConflict
        | ErrorCode::MemoryFull
        | ErrorCode::ToolChanged
        | ErrorCode::ModelUnknown
        | ErrorCode::NothingToContinue
        | ErrorCode::QueueFull
        | ErrorCode::RateLimited => CloseCode::Policy,
        ErrorCode::BinaryFrame => CloseCode::Unsupported,
        ErrorCode::FrameTooLarge | ErrorCode::BodyTooLarge => CloseCode::Size,
        ErrorCode::ShuttingDown => CloseCode::Restart,
        ErrorCode::SessionBusy
        | ErrorCode::BackendBusy
        | ErrorCode::BackendUnavailable
        | ErrorCode::SignOnUnavailable
        | ErrorCode::StoreUnavailable => CloseCode::Again,
        ErrorCode::BackendUnauthorized
        | ErrorCode::BackendError
        | ErrorCode::BackendStreamBroken
        | ErrorCode::ModelNotFound
        | ErrorCode::ContextOverflow
        | ErrorCode::EmptyReply
        | ErrorCode::FirstChunkTimeout
        | ErrorCode::ChunkTimeout
        | ErrorCode::ReplyTooLong
        | ErrorCode::RunFailed
        | ErrorCode::Internal => CloseCode::Error,
    }
}

fn shortened(message: &str) -> String {
    message[..message.floor_char_boundary(MAX_REASON_BYTES)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_session_closes_with_4004_and_a_restart_with_1012() {
        let close = |code| u16::from(close_reason(&NaviError::new(code, "x")).code);
        assert_eq!(close(ErrorCode::SessionNotFound), 4004);
        assert_eq!(close(ErrorCode::InvalidId), 4004);
        assert_eq!(close(ErrorCode::Unauthorized), 4001);
        assert_eq!(close(ErrorCode::ShuttingDown), 1012);
        assert_eq!(close(ErrorCode::FrameTooLarge), 1009);
        assert_eq!(close(ErrorCode::RateLimited), 1008);
        assert_eq!(close(ErrorCode::Internal), 1011);
    }

    #[test]
    fn a_close_reason_fits_its_frame_and_stays_text() {
        let error = NaviError::new(ErrorCode::Internal, "é".repeat(200));
        let reason = close_reason(&error).description;
        assert_eq!(reason.map(|text| text.len()), Some(122));
    }

    #[test]
    fn faults_of_the_client_are_400s_and_faults_of_ours_500s() {
        assert!(status(ErrorCode::InvalidJson).is_client_error());
        assert!(status(ErrorCode::QueueFull).is_client_error());
        assert!(status(ErrorCode::StoreUnavailable).is_server_error());
        assert!(status(ErrorCode::BackendError).is_server_error());
    }
}
