//! What a client may choose for a session: its mode, its model and its profile.

use agent_client_protocol::v1::schema::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption, SessionMode,
    SessionModeState,
};
use navi_actors::protocol::approval::ConsentMode;
use navi_actors::protocol::ids::SessionId;
use navi_actors::protocol::session::{SessionSnapshot, SessionSummary};
use navi_actors::protocol::status::SystemStatus;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{invalid, refusal};
use crate::client::{Client, ClientError};

const MODE: &str = "mode";
const MODEL: &str = "model";
const PROFILE: &str = "profile";
/// The model that a session's profile names; no model's name begins so.
const OF_PROFILE: &str = "@profile";

const MODES: [(ConsentMode, &str, &str, &str); 3] = [
    (
        ConsentMode::Ask,
        "ask",
        "Ask",
        "Whatever changes something is asked about",
    ),
    (
        ConsentMode::Edits,
        "edits",
        "Edits",
        "Changes inside the session's workspace are made; what leaves it or the machine is asked about",
    ),
    (
        ConsentMode::Auto,
        "auto",
        "Auto",
        "Nothing is asked about, but what a rule forbids or what outside text may have led to",
    ),
];

/// What is chosen, and what there is to choose from.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) mode: ConsentMode,
    model: Option<String>,
    profile: String,
    models: Vec<String>,
    profiles: Vec<Offered>,
}

/// What of a profile is shown.
#[derive(Clone, Debug, Deserialize)]
struct Offered {
    id: String,
    name: String,
    description: String,
}

impl Options {
    /// # Errors
    /// What the service says, or that it says nothing.
    pub(super) async fn of(
        client: &Client,
        session: &SessionSnapshot,
    ) -> Result<Self, ClientError> {
        let status: SystemStatus = client.get("/api/status").await?;
        let profiles = client.get("/agents/profiles").await?;
        let backends = status.backends.into_iter();
        let mut models: Vec<String> = backends
            .flat_map(|backend| backend.models)
            .map(|model| model.name)
            .collect();
        models.sort();
        models.dedup();
        Ok(Self {
            mode: session.mode,
            model: session.summary.model.clone(),
            profile: session.summary.profile_id.clone(),
            models,
            profiles,
        })
    }

    /// Takes what a session's row says. Whether that changed anything.
    pub(super) fn take(&mut self, session: &SessionSummary) -> bool {
        let before = (self.model.clone(), self.profile.clone());
        self.model.clone_from(&session.model);
        self.profile.clone_from(&session.profile_id);
        before != (self.model.clone(), self.profile.clone())
    }

    pub(super) fn modes(&self) -> SessionModeState {
        let modes = MODES.iter().map(|(_, id, name, description)| {
            SessionMode::new(*id, *name).description((*description).to_owned())
        });
        SessionModeState::new(mode_id(self.mode), modes.collect())
    }

    pub(super) fn list(&self) -> Vec<SessionConfigOption> {
        let choice = |value: &str, name: &str, description: &str| {
            let choice = SessionConfigSelectOption::new(value.to_owned(), name.to_owned());
            choice.description((!description.is_empty()).then(|| description.to_owned()))
        };
        let modes = MODES
            .iter()
            .map(|(_, id, name, description)| choice(id, name, description))
            .collect::<Vec<_>>();
        let mut models = vec![choice(OF_PROFILE, "The profile's", "")];
        models.extend(self.models.iter().map(|model| choice(model, model, "")));
        if let Some(model) = &self.model
            && !self.models.contains(model)
        {
            models.push(choice(model, model, "not there just now"));
        }
        let mut profiles = self
            .profiles
            .iter()
            .map(|profile| choice(&profile.id, &profile.name, &profile.description))
            .collect::<Vec<_>>();
        if !self.profiles.iter().any(|known| known.id == self.profile) {
            profiles.push(choice(&self.profile, &self.profile, "not there any more"));
        }
        let model = self.model.as_deref().unwrap_or(OF_PROFILE).to_owned();
        vec![
            SessionConfigOption::select(MODE, "Consent", mode_id(self.mode), modes)
                .description("How much Navi may do without asking".to_owned())
                .category(SessionConfigOptionCategory::Mode),
            SessionConfigOption::select(MODEL, "Model", model, models)
                .category(SessionConfigOptionCategory::Model),
            SessionConfigOption::select(PROFILE, "Profile", self.profile.clone(), profiles)
                .category(SessionConfigOptionCategory::Other("_profile".to_owned())),
        ]
    }

    /// Chooses. What was chosen is told by an event too, as to every tab.
    ///
    /// # Errors
    /// There is no such thing to choose, or the service refuses.
    pub(super) async fn choose(
        &mut self,
        client: &Client,
        session: SessionId,
        what: &str,
        value: &str,
    ) -> Result<(), agent_client_protocol::Error> {
        let change = match what {
            MODE => return self.set_mode(client, session, value).await,
            MODEL if value == OF_PROFILE => json!({ "model": null }),
            MODEL => json!({ "model": value }),
            PROFILE => json!({ "profile_id": value }),
            _ => {
                return Err(invalid(format!(
                    "there is no option `{what}`; there are {MODE}, {MODEL} and {PROFILE}"
                )));
            }
        };
        let path = format!("/sessions/{session}");
        let changed = client.send(Method::PATCH, &path, &change).await;
        let changed: SessionSummary = changed.map_err(|error| refusal(&error))?;
        self.take(&changed);
        Ok(())
    }

    /// # Errors
    /// There is no such mode, or the service refuses.
    pub(super) async fn set_mode(
        &mut self,
        client: &Client,
        session: SessionId,
        id: &str,
    ) -> Result<(), agent_client_protocol::Error> {
        let Some((mode, ..)) = MODES.iter().find(|(_, known, ..)| *known == id) else {
            let known = MODES.map(|(_, id, ..)| id).join(", ");
            return Err(invalid(format!(
                "there is no mode `{id}`; there are {known}"
            )));
        };
        let path = format!("/sessions/{session}/mode");
        let change = json!({ "mode": mode });
        let changed: Result<Value, _> = client.send(Method::PATCH, &path, &change).await;
        changed.map_err(|error| refusal(&error))?;
        self.mode = *mode;
        Ok(())
    }
}

pub(super) fn mode_id(mode: ConsentMode) -> &'static str {
    match mode {
        ConsentMode::Ask => "ask",
        ConsentMode::Edits => "edits",
        ConsentMode::Auto => "auto",
    }
}
