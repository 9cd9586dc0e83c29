//! `/api/models/try` and `/api/models/server`: an OpenAI-compatible server by its address and key.

use std::collections::BTreeMap;

use actix_web::http::Method;
use actix_web::{HttpResponse, web};
use navi_actors::domain::permissions::Action;
use navi_actors::domain::redact::HIDDEN;
use navi_actors::llm::openai::{self, OpenAiConfig};
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::phrase::{Phrase, PhraseCode};
use navi_actors::protocol::status::ModelInfo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::App;
use super::body::JsonBody;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::openapi::Failures;
use super::settings;
use crate::access::{Principal, Visitor};
use crate::settings::BackendChoice;

/// The longest address, as browsers take them.
pub(super) const MAX_ADDRESS_CHARS: usize = 2_048;
/// The longest key; it is a header.
pub(super) const MAX_API_KEY_CHARS: usize = 4_096;

/// A server to ask for its models.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelServerTrial {
    /// With or without `/v1`.
    base_url: String,
    /// Empty: none. Null: the one that was given for this very server before, where there is one.
    api_key: Option<String>,
}

/// A server that answers.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ModelServerFound {
    /// Where its API is.
    address: String,
    models: Vec<ModelInfo>,
}

/// The server to use from now on.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelServerChoice {
    /// Of the settings file, as `GET /api/settings` told it.
    version: String,
    base_url: String,
    /// As for a trial.
    api_key: Option<String>,
    /// Null: the first that it lists.
    model: Option<String>,
}

pub(crate) fn routes() -> [Endpoint; 2] {
    [
        endpoint("/api/models/try").on(Method::POST, Action::ManageService, try_out),
        endpoint("/api/models/server").on(Method::PUT, Action::ManageService, use_it),
    ]
}

#[utoipa::path(post, path = "/api/models/try", operation_id = "try_model_server", tag = "service",
    request_body = ref("#/components/schemas/ModelServerTrial"),
    responses((status = 200, description = "It answers, and has these models. Nothing is written.", body = ref("#/components/schemas/ModelServerFound")), Failures))]
pub(crate) async fn try_out(
    app: web::Data<App>,
    _: Principal,
    JsonBody(trial): JsonBody<ModelServerTrial>,
) -> Result<HttpResponse, ApiError> {
    let base_url = address(&trial.base_url)?;
    let api_key = match key(trial.api_key)? {
        Some(key) => Some(key),
        None => {
            let (file, base_url) = (app.settings.clone(), base_url.clone());
            // A thread that is gone knows no key.
            let known = web::block(move || file.model_key(&base_url)).await;
            known.ok().flatten()
        }
    };
    let found = openai::look(OpenAiConfig {
        base_url,
        api_key,
        default_model: None,
    });
    let found = found.await?;
    Ok(HttpResponse::Ok().json(ModelServerFound {
        address: found.address,
        models: found.models,
    }))
}

#[utoipa::path(put, path = "/api/models/server", operation_id = "use_model_server", tag = "service",
    request_body = ref("#/components/schemas/ModelServerChoice"),
    responses((status = 200, description = "It is written into the settings file, and asked from now on.", body = ref("#/components/schemas/SettingList")), Failures))]
pub(crate) async fn use_it(
    app: web::Data<App>,
    who: Principal,
    visitor: Visitor,
    JsonBody(server): JsonBody<ModelServerChoice>,
) -> Result<HttpResponse, ApiError> {
    let base_url = address(&server.base_url)?;
    refuse_other_backends(app.loaded.settings.model.backend)?;
    let mut changes = BTreeMap::from([
        ("openai.base_url".to_owned(), Some(base_url)),
        ("openai.default_model".to_owned(), server.model),
    ]);
    if let Some(key) = key(server.api_key)? {
        changes.insert("openai.api_key".to_owned(), Some(key));
    }
    let list = settings::changed(&app, (who, visitor), server.version, changes).await?;
    Ok(HttpResponse::Ok().json(list))
}

/// An address as people write it.
fn address(text: &str) -> Result<String, NaviError> {
    let text = text.trim();
    let wrong = || NaviError::said(ErrorCode::InvalidField, PhraseCode::NoServerAddress);
    if text.contains(HIDDEN) {
        // As the page shows one that has a key in it.
        return Err(NaviError::said(
            ErrorCode::InvalidField,
            PhraseCode::ExpectWhole,
        ));
    }
    let is_short = text.chars().count() <= MAX_ADDRESS_CHARS;
    let whole = match text.contains("://") {
        true => text.to_owned(),
        false => format!("http://{text}"),
    };
    let url = url::Url::parse(&whole).map_err(|_| wrong())?;
    let is_web = matches!(url.scheme(), "http" | "https") && url.host_str().is_some();
    let is_plain = url.fragment().is_none();
    // What stands before the host is a key, and has a field of its own.
    let is_open = url.username().is_empty() && url.password().is_none();
    if is_short && is_web && is_plain && is_open {
        Ok(whole)
    } else {
        Err(wrong())
    }
}

/// A key that can be one; none where it is left out.
fn key(text: Option<String>) -> Result<Option<String>, NaviError> {
    let Some(text) = text else {
        return Ok(None);
    };
    let text = text.trim();
    if text.len() <= MAX_API_KEY_CHARS && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(Some(text.to_owned()));
    }
    let key = [("key", "api_key".to_owned())];
    let wrong = Phrase::new(PhraseCode::SettingWrong, key);
    Err(NaviError::said(
        ErrorCode::InvalidField,
        wrong.with("expected", PhraseCode::ExpectKey),
    ))
}

fn refuse_other_backends(choice: BackendChoice) -> Result<(), NaviError> {
    let backend = match choice {
        BackendChoice::Auto | BackendChoice::Openai => return Ok(()),
        BackendChoice::Ollama => "ollama",
        BackendChoice::Starter => "starter",
    };
    let backend = [("backend", backend.to_owned())];
    Err(NaviError::said(
        ErrorCode::ChangeConflict,
        Phrase::new(PhraseCode::OtherBackend, backend),
    ))
}
