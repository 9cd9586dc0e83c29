//! `/api/settings`: what `navi config` prints, and changes of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use actix_web::http::Method;
use actix_web::{HttpResponse, rt, web};
use navi_actors::domain::permissions::Action;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::people::{Recorded, Scopes};
use navi_actors::protocol::phrase::{Phrase, PhraseCode, Trouble};
use navi_actors::tools::mcp;
use schemars::JsonSchema;
use serde::Deserialize;
use tracing::info;

use super::App;
use super::agents::blocking;
use super::body::JsonBody;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::openapi::Failures;
use crate::access::{Principal, Visitor};
use crate::backends;
use crate::settings::change::{Check, SettingList, Written};
use crate::settings::{Loaded, Secret, Settings, needs_all_scopes};

/// What is to be otherwise.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SettingsChange {
    /// Of the file, as it was told.
    version: String,
    /// What each setting is to be; null: its default.
    changes: BTreeMap<String, Option<String>>,
}

/// What the last change is taken back from.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SettingsUndo {
    /// Of the file, as it was told.
    version: String,
}

/// Who changes something.
pub(super) type Who = (Principal, Visitor);

pub(crate) fn routes() -> [Endpoint; 2] {
    [
        endpoint("/api/settings")
            .on(Method::GET, Action::ManageService, settings)
            .on(Method::PATCH, Action::ManageService, change),
        endpoint("/api/settings/undo").on(Method::POST, Action::ManageService, undo),
    ]
}

#[utoipa::path(get, path = "/api/settings", tag = "service",
    responses((status = 200, description = "Every setting with where its value came from, and what it will be at the next start; secrets are hidden.", body = ref("#/components/schemas/SettingList")), Failures))]
pub(crate) async fn settings(app: web::Data<App>, _: Principal) -> Result<HttpResponse, ApiError> {
    let file = Arc::clone(&app.settings);
    let list = blocking(move || file.list()).await?;
    Ok(HttpResponse::Ok().json(list))
}

#[utoipa::path(patch, path = "/api/settings", operation_id = "change_settings", tag = "service",
    request_body = ref("#/components/schemas/SettingsChange"),
    responses((status = 200, description = "They are written into the settings file. The address, the key and the model of an OpenAI-compatible server hold at once, the others at the next start.", body = ref("#/components/schemas/SettingList")), Failures))]
pub(crate) async fn change(
    app: web::Data<App>,
    who: Principal,
    visitor: Visitor,
    JsonBody(new): JsonBody<SettingsChange>,
) -> Result<HttpResponse, ApiError> {
    let list = changed(&app, (who, visitor), new.version, new.changes).await?;
    Ok(HttpResponse::Ok().json(list))
}

#[utoipa::path(post, path = "/api/settings/undo", operation_id = "undo_settings", tag = "service",
    request_body = ref("#/components/schemas/SettingsUndo"),
    responses((status = 200, description = "The file is as it was before the last change from here.", body = ref("#/components/schemas/SettingList")), Failures))]
pub(crate) async fn undo(
    app: web::Data<App>,
    who: Principal,
    visitor: Visitor,
    JsonBody(undo): JsonBody<SettingsUndo>,
) -> Result<HttpResponse, ApiError> {
    let file = Arc::clone(&app.settings);
    let write = move |check: &Check| file.undo(&undo.version, check);
    let list = carried_out(&app, (who, visitor), write).await?;
    Ok(HttpResponse::Ok().json(list))
}

/// Writes changes, and has hold what can hold at once.
pub(super) async fn changed(
    app: &App,
    who: Who,
    version: String,
    changes: BTreeMap<String, Option<String>>,
) -> Result<SettingList, NaviError> {
    let file = Arc::clone(&app.settings);
    let write = move |check: &Check| file.change(&version, &changes, check);
    carried_out(app, who, write).await
}

/// To its end, whoever goes away meanwhile: what is written is put in force.
async fn carried_out(
    app: &App,
    who: Who,
    write: impl FnOnce(&Check) -> Result<Written, NaviError> + Send + 'static,
) -> Result<SettingList, NaviError> {
    let app = app.clone();
    let work = rt::spawn(async move {
        let _turn = app.settings.turn().await;
        let profiles = app.engine.profiles().into_iter();
        let profiles: Vec<String> = profiles.map(|profile| profile.id).collect();
        let loaded = Arc::clone(&app.loaded);
        let (principal, visitor) = who;
        let scopes = principal.grant.scopes;
        let check = move |next: &Settings, changed: &[&'static str]| {
            refuse_scopes(scopes, changed)?;
            would_start(next, &loaded.settings.default_profile, &profiles)
        };
        let written = blocking(move || write(&check)).await?;
        let about = written.changed.join(", ");
        info!(
            settings = about,
            "settings were changed from the page or the API"
        );
        app.access
            .note(
                Recorded::SettingsChanged,
                Some(principal.user),
                Some(about),
                visitor,
            )
            .await;
        put_in_force(&app, &written.loaded).await?;
        let file = Arc::clone(&app.settings);
        blocking(move || file.list()).await
    });
    work.await.unwrap_or_else(|_| {
        Err(NaviError::said(
            ErrorCode::Internal,
            PhraseCode::SomethingFailed,
        ))
    })
}

/// A token for administering alone sends nobody's words elsewhere, and has nothing done unasked.
/// A browser's login has all scopes.
fn refuse_scopes(scopes: Scopes, changed: &[&'static str]) -> Result<(), NaviError> {
    if scopes.include(Scopes::ALL) {
        return Ok(());
    }
    match changed.iter().find(|key| needs_all_scopes(key)) {
        None => Ok(()),
        Some(key) => Err(NaviError::new(
            ErrorCode::Forbidden,
            format!(
                "{key} opens more than this token; change it in the page, or by a token that has all scopes"
            ),
        )),
    }
}

/// What a start checks of settings when it has read them. A default profile that holds already is
/// nobody's change.
fn would_start(settings: &Settings, held: &str, profiles: &[String]) -> Result<(), NaviError> {
    let refused = |problem: Phrase| {
        let refused = Phrase::from(PhraseCode::SettingsRefused).with("problem", problem);
        Err(NaviError::said(ErrorCode::InvalidField, refused))
    };
    let profile = &settings.default_profile;
    if profile != held && !profiles.contains(profile) {
        let unknown = [("profile", profile.clone())];
        let known = [("profiles", profiles.join(", "))];
        return refused(Phrase::from(Trouble::new(
            Phrase::new(PhraseCode::DefaultUnknown, unknown),
            Phrase::new(PhraseCode::SetDefaultProfile, known),
        )));
    }
    match backends::build(settings) {
        Ok(_) => Ok(()),
        Err(error) => refused(Phrase::plain(format!("{error:#}"))),
    }
}

/// Has another model server asked, where that is what changed.
async fn put_in_force(app: &App, next: &Loaded) -> Result<(), NaviError> {
    if app.settings.has_model_server_of(next) {
        return Ok(());
    }
    let choice = app.loaded.settings.model.backend;
    let backend = backends::openai(choice, next.settings.model.openai.as_ref());
    let Ok(Some(backend)) = backend else {
        // None is asked until the next start; that it can be made was checked.
        return Ok(());
    };
    let secrets = app.loaded.secrets.iter().chain(&next.secrets);
    mcp::hide(secrets.map(Secret::reveal));
    app.engine.replace_backend(backend).await?;
    app.settings.use_model_server_of(next);
    Ok(())
}
