//! `GET /search`: full-text search over the user's sessions.

use actix_web::http::Method;
use actix_web::{HttpResponse, web};
use navi_actors::domain::permissions::Action;
use navi_actors::protocol::search::SearchHit;
use navi_actors::store::MAX_HITS;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::App;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::openapi::Failures;
use crate::access::Principal;

/// How many hits there are at most where no number is asked for.
const USUAL: u32 = 20;

/// What to look for.
#[derive(Debug, Deserialize)]
pub(crate) struct SearchQuery {
    /// A person's words; any text is valid.
    q: String,
    limit: Option<u32>,
}

/// What was found, best first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SearchResult {
    hits: Vec<SearchHit>,
}

pub(crate) fn routes() -> Endpoint {
    endpoint("/search").on(Method::GET, Action::ReadConversations, search)
}

#[utoipa::path(get, path = "/search", tag = "sessions",
    params(("q" = String, Query,), ("limit" = Option<u32>, Query,)),
    responses((status = 200, description = "Messages and titles that hold these words, best first.", body = ref("#/components/schemas/SearchResult")), Failures))]
pub(crate) async fn search(
    app: web::Data<App>,
    who: Principal,
    query: web::Query<SearchQuery>,
) -> Result<HttpResponse, ApiError> {
    let limit = query.limit.unwrap_or(USUAL).clamp(1, MAX_HITS);
    let hits = app.engine.search(who.user, &query.q, limit).await?;
    Ok(HttpResponse::Ok().json(SearchResult { hits }))
}
