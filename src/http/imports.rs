//! `POST /sessions/import`: a conversation from a file.

use actix_web::web::PayloadConfig;
use actix_web::{HttpResponse, Resource, web};
use navi_actors::protocol::error::ErrorCode;
use navi_actors::protocol::import::ImportedSession;

use super::body::JsonBody;
use super::error::ApiError;
use super::openapi::Failures;
use super::{App, resource};
use crate::access::Principal;

/// The largest file.
const MAX_FILE_MIB: usize = 48;

pub(crate) fn routes() -> Resource {
    resource("/sessions/import", "POST")
        .app_data(PayloadConfig::new(MAX_FILE_MIB * 1024 * 1024))
        .route(web::post().to(import))
}

#[utoipa::path(post, path = "/sessions/import", tag = "sessions",
    request_body(content = ref("#/components/schemas/ImportedSession"), description = "A conversation as `GET /sessions/{session_id}` gives it, 48 MiB at the most; fields that are not named here are passed over."),
    responses((status = 201, description = "A new session with that conversation; the same file again makes another one. All ids are new, times stay. Its text counts as text from outside.", body = ref("#/components/schemas/Imported")), Failures))]
pub(crate) async fn import(
    app: web::Data<App>,
    who: Principal,
    body: Result<JsonBody<ImportedSession>, ApiError>,
) -> Result<HttpResponse, ApiError> {
    let JsonBody(file) = body.map_err(|error| match error.0.code {
        ErrorCode::BodyTooLarge => ApiError::new(
            ErrorCode::BodyTooLarge,
            format!("the conversation has over {MAX_FILE_MIB} MiB, which is the limit; take images out of it, or old messages"),
        ),
        _ => error,
    })?;
    let imported = app.engine.import_session(who.user, file).await?;
    Ok(HttpResponse::Created().json(imported))
}
