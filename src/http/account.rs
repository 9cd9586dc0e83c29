//! `/api/account`: who somebody is, by what they sign in, and where they are signed in.

use actix_web::http::Method;
use actix_web::{HttpResponse, web};
use chrono::{DateTime, Utc};
use navi_actors::domain::permissions::Action;
use navi_actors::protocol::error::ErrorCode;
use navi_actors::protocol::ids::UserId;
use navi_actors::protocol::limits::LimitsInfo;
use navi_actors::protocol::people::{Scope, UserRole};
use navi_actors::store::SecretHash;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::App;
use super::body::{JsonBody, OptionalJsonBody};
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::gate::InBrowser;
use super::openapi::Failures;
use super::path::id_of;
use super::people::limits_of;
use crate::access::{Account, AccountChange, Key, Principal, Visitor, device_id};

/// Who somebody is.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AccountInfo {
    id: UserId,
    name: String,
    role: UserRole,
    /// What they came in with is good for this.
    scopes: Vec<Scope>,
    /// Whether people sign in here. Where they do not, there is one user, and nothing to set up.
    accounts: bool,
    /// Where there is none yet, one is to be chosen.
    has_password: bool,
    recovery_codes: u64,
    passkeys: u64,
    /// How many accounts elsewhere let them in.
    sign_ons: u64,
    /// The name of a provider by which people sign in, where there is one.
    provider: Option<String>,
    /// How much of what all share is theirs, and what they have of it; null where there is one
    /// user.
    limits: Option<LimitsInfo>,
}

/// What is to be changed; what is left out stays.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct AccountChangeRequest {
    /// 1 to 64 characters; nobody else's, and none that looks like one.
    name: Option<String>,
    /// 10 to 200 characters. All other browsers are signed out.
    password: Option<String>,
    /// Needed where there is one.
    current_password: Option<String>,
}

/// By what somebody shows that they are there themselves.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct ProofRequest {
    /// Needed where there is one; without one they signed in less than ten minutes ago.
    pub(super) current_password: Option<String>,
}

/// Codes that sign in once each, in the place of the password.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RecoveryCodes {
    /// Told only now; those from before are void.
    codes: Vec<String>,
}

/// A browser that is signed in.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Device {
    id: Uuid,
    /// What the browser said that it is.
    agent: Option<String>,
    address: Option<String>,
    created_at: DateTime<Utc>,
    /// To ten minutes.
    last_used_at: Option<DateTime<Utc>>,
    /// It is the one that asks.
    current: bool,
}

/// How many browsers were signed out.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SignedOut {
    signed_out: u64,
}

pub(crate) fn routes() -> [Endpoint; 4] {
    [
        endpoint("/api/account")
            .on(Method::GET, Action::ReadAccount, read)
            .on(Method::PATCH, Action::ManageAccount, change),
        endpoint("/api/account/recovery-codes").on(Method::POST, Action::ManageAccount, recover),
        endpoint("/api/account/devices")
            .on(Method::GET, Action::ReadAccount, devices)
            .on(Method::DELETE, Action::ManageAccount, sign_out_others),
        endpoint("/api/account/devices/{device_id}").on(
            Method::DELETE,
            Action::ManageAccount,
            sign_out,
        ),
    ]
}

#[utoipa::path(get, path = "/api/account", operation_id = "read_account", tag = "access",
    responses((status = 200, description = "Who asks.", body = ref("#/components/schemas/AccountInfo")), Failures))]
pub(crate) async fn read(app: web::Data<App>, who: Principal) -> Result<HttpResponse, ApiError> {
    let account = app.access.account(who.user).await?;
    Ok(HttpResponse::Ok().json(info(&app, &who, account).await?))
}

#[utoipa::path(patch, path = "/api/account", operation_id = "change_account", tag = "access",
    request_body = ref("#/components/schemas/AccountChangeRequest"),
    responses((status = 200, description = "Changed.", body = ref("#/components/schemas/AccountInfo")), Failures))]
pub(crate) async fn change(
    app: web::Data<App>,
    who: Principal,
    visitor: Visitor,
    JsonBody(wanted): JsonBody<AccountChangeRequest>,
) -> Result<HttpResponse, ApiError> {
    let change = AccountChange {
        name: wanted.name,
        password: wanted.password,
        current_password: wanted.current_password,
    };
    let account = app.access.change_account(&who, change, visitor).await?;
    Ok(HttpResponse::Ok().json(info(&app, &who, account).await?))
}

#[utoipa::path(post, path = "/api/account/recovery-codes", operation_id = "make_recovery_codes", tag = "access",
    request_body = ref("#/components/schemas/ProofRequest"),
    responses((status = 201, description = "Fresh ones, told only now.", body = ref("#/components/schemas/RecoveryCodes")), Failures))]
pub(crate) async fn recover(
    app: web::Data<App>,
    InBrowser(who): InBrowser,
    visitor: Visitor,
    OptionalJsonBody(proof): OptionalJsonBody<ProofRequest>,
) -> Result<HttpResponse, ApiError> {
    let given = proof.and_then(|proof| proof.current_password);
    let codes = app.access.make_recovery_codes(&who, given, visitor);
    let codes = codes.await?;
    Ok(HttpResponse::Created().json(RecoveryCodes { codes }))
}

#[utoipa::path(get, path = "/api/account/devices", operation_id = "list_devices", tag = "access",
    responses((status = 200, description = "The browsers that are signed in.", body = ref("#/components/schemas/DeviceList")), Failures))]
pub(crate) async fn devices(app: web::Data<App>, who: Principal) -> Result<HttpResponse, ApiError> {
    let devices = app.access.devices(who.user).await?.into_iter();
    let devices: Vec<Device> = devices
        .map(|it| Device {
            id: device_id(it.hash),
            current: matches!(who.key, Key::Login(hash) if SecretHash(hash) == it.hash),
            agent: it.agent,
            address: it.address,
            created_at: it.created_at,
            last_used_at: it.last_used_at,
        })
        .collect();
    Ok(HttpResponse::Ok().json(devices))
}

#[utoipa::path(delete, path = "/api/account/devices", operation_id = "sign_out_others", tag = "access",
    responses((status = 200, description = "All are signed out but the one that asks.", body = ref("#/components/schemas/SignedOut")), Failures))]
pub(crate) async fn sign_out_others(
    app: web::Data<App>,
    who: Principal,
    visitor: Visitor,
) -> Result<HttpResponse, ApiError> {
    let signed_out = app.access.sign_out_others(&who, visitor).await?;
    Ok(HttpResponse::Ok().json(SignedOut { signed_out }))
}

#[utoipa::path(delete, path = "/api/account/devices/{device_id}", operation_id = "sign_out_device", tag = "access",
    params(("device_id" = Uuid, Path,)),
    responses((status = 204, description = "It is signed out, and what it has open is closed."), Failures))]
pub(crate) async fn sign_out(
    app: web::Data<App>,
    who: Principal,
    visitor: Visitor,
    path: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let id = id_of("a device's", &path)?;
    if app.access.sign_out_device(who.user, id, visitor).await? {
        Ok(HttpResponse::NoContent().finish())
    } else {
        Err(ApiError::new(
            ErrorCode::NotFound,
            "no such browser is signed in",
        ))
    }
}

async fn info(app: &App, who: &Principal, account: Account) -> Result<AccountInfo, ApiError> {
    let limits = limits_of(app, vec![who.user]).await?;
    Ok(AccountInfo {
        id: account.user.id,
        name: account.user.name,
        role: account.user.role,
        scopes: who.grant.scopes.iter().collect(),
        accounts: app.access.has_accounts(),
        has_password: account.has_password,
        recovery_codes: account.recovery_codes,
        passkeys: account.passkeys,
        sign_ons: account.sign_ons,
        provider: app.access.provider_name().map(str::to_owned),
        limits: limits.into_iter().next(),
    })
}
