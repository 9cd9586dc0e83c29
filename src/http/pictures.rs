//! `/sessions/{session_id}/remote-image`: a picture that stands elsewhere, once a person asked
//! to see it. The page has no other way to one: its policy loads none from other hosts.

use actix_web::http::Method;
use actix_web::{HttpResponse, web};
use navi_actors::domain::permissions::Action;
use navi_actors::tools::net::guard::Guard;
use serde::Deserialize;

use super::App;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::files::shown;
use super::openapi::Failures;
use super::path::SessionPath;
use crate::access::Principal;

/// Whoever asked to see it sees it again without asking its host.
const CACHED: &str = "private, max-age=3600";

/// Which picture.
#[derive(Debug, Deserialize)]
pub(crate) struct PictureQuery {
    url: String,
}

pub(crate) fn routes() -> Endpoint {
    // It sends something out: who may only read may not.
    endpoint("/sessions/{session_id}/remote-image").on(Method::GET, Action::Converse, image)
}

#[utoipa::path(get, path = "/sessions/{session_id}/remote-image", operation_id = "remote_image", tag = "files",
    params(("session_id" = Uuid, Path,), ("url" = String, Query, description = "Where it stands: http or https, at most 4096 bytes, without a user name.")),
    responses((status = 200, description = "An image (PNG or JPEG) that Navi made of the picture there, which she fetched as `web_fetch` fetches: from the public network, and from what of your own the owner allowed.", content(("image/png"), ("image/jpeg"))), Failures))]
pub(crate) async fn image(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
    query: web::Query<PictureQuery>,
) -> Result<HttpResponse, ApiError> {
    let guard = Guard::new(app.loaded.settings.web.fetch_grants.clone());
    let address = query.into_inner().url;
    let image = app.engine.remote_image(who.user, session, guard, address);
    Ok(shown(image.await?, CACHED))
}
