//! `/api/tokens`: tokens for scripts.

use actix_web::http::Method;
use actix_web::{HttpResponse, web};
use chrono::{DateTime, Utc};
use navi_actors::domain::permissions::Action;
use navi_actors::protocol::error::ErrorCode;
use navi_actors::protocol::people::{Scope, Scopes};
use navi_actors::store::ApiToken;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::App;
use super::body::JsonBody;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::openapi::Failures;
use super::path::id_of;
use crate::access::{Principal, Visitor, WantedToken};

/// What a token is for.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct NewTokenRequest {
    /// 1 to 100 characters.
    name: String,
    /// What it is good for: all but `consent`, where it is left out.
    scopes: Option<Vec<Scope>>,
    /// After how many days it opens nothing any more, 1 to 3650; for ever, where it is left out.
    days: Option<u32>,
    /// Needed for all scopes by who asks in a browser and has one.
    current_password: Option<String>,
}

/// A token, without what opens the door.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TokenInfo {
    id: Uuid,
    name: String,
    created_at: DateTime<Utc>,
    last_used_at: Option<DateTime<Utc>>,
    scopes: Vec<Scope>,
    /// It opens nothing any more from then on; null: it lasts.
    expires_at: Option<DateTime<Utc>>,
}

/// A token that was just made.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CreatedToken {
    id: Uuid,
    name: String,
    created_at: DateTime<Utc>,
    scopes: Vec<Scope>,
    expires_at: Option<DateTime<Utc>>,
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
            scopes: token.scopes.iter().collect(),
            expires_at: token.expires_at,
        }
    }
}

pub(crate) fn routes() -> [Endpoint; 2] {
    [
        endpoint("/api/tokens")
            .on(Method::GET, Action::ReadAccount, list)
            .on(Method::POST, Action::ManageAccount, create),
        endpoint("/api/tokens/{token_id}").on(Method::DELETE, Action::ManageAccount, remove),
    ]
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
    visitor: Visitor,
    JsonBody(request): JsonBody<NewTokenRequest>,
) -> Result<HttpResponse, ApiError> {
    let scopes = request.scopes.map(Scopes::from_iter);
    let wanted = WantedToken {
        name: request.name,
        scopes: scopes.unwrap_or(Scopes::USUAL),
        days: request.days,
    };
    let given = request.current_password;
    let made = app.access.add_token(&who, wanted, given, visitor);
    let (row, token) = made.await?;
    Ok(HttpResponse::Created().json(CreatedToken {
        id: row.id,
        name: row.name,
        created_at: row.created_at,
        scopes: row.scopes.iter().collect(),
        expires_at: row.expires_at,
        token,
    }))
}

#[utoipa::path(delete, path = "/api/tokens/{token_id}", tag = "access",
    params(("token_id" = Uuid, Path,)),
    responses((status = 204, description = "It opens nothing any more."), Failures))]
pub(crate) async fn remove(
    app: web::Data<App>,
    who: Principal,
    visitor: Visitor,
    path: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let id = id_of("a token's", &path)?;
    if app.access.remove_token(who.user, id, visitor).await? {
        Ok(HttpResponse::NoContent().finish())
    } else {
        Err(ApiError::new(ErrorCode::NotFound, "there is no such token"))
    }
}
