//! `/api/tokens`: tokens for scripts.

use actix_web::{HttpResponse, Resource, web};
use chrono::{DateTime, Utc};
use navi_actors::protocol::error::ErrorCode;
use navi_actors::store::ApiToken;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::body::JsonBody;
use super::error::ApiError;
use super::openapi::Failures;
use super::{App, resource};
use crate::access::Principal;

/// What a token is for.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct NewTokenRequest {
    /// 1 to 100 characters.
    name: String,
}

/// A token, without what opens the door.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TokenInfo {
    id: Uuid,
    name: String,
    created_at: DateTime<Utc>,
    last_used_at: Option<DateTime<Utc>>,
    /// Whether a program that has it may pass on what its person answers to a request for consent.
    may_consent: bool,
}

/// A token that was just made.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CreatedToken {
    id: Uuid,
    name: String,
    created_at: DateTime<Utc>,
    /// Told only now: `Authorization: Bearer <token>`.
    token: String,
}

impl From<ApiToken> for TokenInfo {
    fn from(token: ApiToken) -> Self {
        Self {
            id: token.id,
            name: token.name,
            created_at: token.created_at,
            last_used_at: token.last_used_at,
            may_consent: token.may_consent,
        }
    }
}

pub(crate) fn routes() -> Resource {
    resource("/api/tokens", "GET, POST")
        .route(web::get().to(list))
        .route(web::post().to(create))
}

pub(crate) fn one_routes() -> Resource {
    resource("/api/tokens/{token_id}", "DELETE").route(web::delete().to(remove))
}

#[utoipa::path(get, path = "/api/tokens", operation_id = "list_tokens", tag = "access",
    responses((status = 200, description = "All tokens.", body = ref("#/components/schemas/TokenList")), Failures))]
pub(crate) async fn list(app: web::Data<App>, who: Principal) -> Result<HttpResponse, ApiError> {
    let tokens = app.access.tokens(who.user).await?;
    let tokens: Vec<TokenInfo> = tokens.into_iter().map(TokenInfo::from).collect();
    Ok(HttpResponse::Ok().json(tokens))
}

#[utoipa::path(post, path = "/api/tokens", operation_id = "create_token", tag = "access",
    request_body = ref("#/components/schemas/NewTokenRequest"),
    responses((status = 201, description = "The token; its text is told only now.", body = ref("#/components/schemas/CreatedToken")), Failures))]
pub(crate) async fn create(
    app: web::Data<App>,
    who: Principal,
    JsonBody(request): JsonBody<NewTokenRequest>,
) -> Result<HttpResponse, ApiError> {
    let (row, token) = app.access.add_token(who.user, &request.name).await?;
    Ok(HttpResponse::Created().json(CreatedToken {
        id: row.id,
        name: row.name,
        created_at: row.created_at,
        token,
    }))
}

#[utoipa::path(delete, path = "/api/tokens/{token_id}", tag = "access",
    params(("token_id" = Uuid, Path,)),
    responses((status = 204, description = "It opens nothing any more."), Failures))]
pub(crate) async fn remove(
    app: web::Data<App>,
    who: Principal,
    path: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let id = Uuid::parse_str(&path)
        .map_err(|_| ApiError::new(ErrorCode::InvalidId, "a token's id is a UUID"))?;
    if app.access.remove_token(who.user, id).await? {
        Ok(HttpResponse::NoContent().finish())
    } else {
        Err(ApiError::new(ErrorCode::NotFound, "there is no such token"))
    }
}
