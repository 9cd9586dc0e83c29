//! Which mode, model and profile: of the conversation that is open, or of the next one.

use navi_actors::protocol::approval::ConsentMode;
use navi_actors::protocol::session::SessionSnapshot;
use navi_actors::protocol::status::SystemStatus;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Talk, problem_message};
use crate::client::Client;
use crate::doors::chat::screen::shown::mode;
use crate::doors::chat::style::Tint;
use crate::doors::chat::terminal::Names;

/// What commands may name. Who cannot be asked has none.
pub(super) async fn names(client: &Client) -> Names {
    #[derive(Deserialize)]
    struct Profile {
        id: String,
    }
    let profiles: Option<Value> = client.get("/agents/profiles").await.ok();
    let profiles = profiles.and_then(|list| {
        let list = list.get("profiles").cloned().unwrap_or(list);
        serde_json::from_value::<Vec<Profile>>(list).ok()
    });
    let status: Option<SystemStatus> = client.get("/api/status").await.ok();
    Names {
        profiles: profiles.into_iter().flatten().map(|it| it.id).collect(),
        models: status.iter().flat_map(models).collect(),
    }
}

fn models(status: &SystemStatus) -> Vec<String> {
    let models = status.backends.iter().flat_map(|backend| &backend.models);
    models.map(|model| model.name.clone()).collect()
}

impl Talk<'_> {
    pub(super) async fn mode(&mut self, given: Option<ConsentMode>) -> Result<(), String> {
        let Some(wanted) = given else {
            let now = match &self.open {
                Some(open) => {
                    let path = format!("/sessions/{}?messages=1", open.id);
                    let stands: Result<SessionSnapshot, _> = self.client.get(&path).await;
                    mode(stands.map_err(|error| problem_message(&error))?.mode)
                }
                None => self.wish.mode.map_or("that of the settings", mode),
            };
            self.say(Tint::Dim, &format!("the mode is {now}: ask, edits or auto"));
            return Ok(());
        };
        self.wish.mode = Some(wanted);
        let Some(open) = &self.open else {
            self.say(Tint::Dim, "the next conversation begins in it");
            return Ok(());
        };
        let path = format!("/sessions/{}/mode", open.id);
        let changed: Result<Value, _> = self
            .client
            .send(Method::PATCH, &path, &json!({"mode": wanted}))
            .await;
        changed.map(drop).map_err(|error| problem_message(&error))
    }

    pub(super) async fn model(&mut self, given: Option<String>) -> Result<(), String> {
        let Some(name) = given else {
            let status: Result<SystemStatus, _> = self.client.get("/api/status").await;
            let status = status.map_err(|error| problem_message(&error))?;
            let models = models(&status);
            if models.is_empty() {
                self.say(Tint::Dim, "there is no model just now");
            }
            for model in models {
                self.say(Tint::Plain, &format!("  {model}"));
            }
            return Ok(());
        };
        let name = (name != "-").then_some(name);
        match &self.open {
            Some(open) => self.change(open.id, &json!({"model": name})).await,
            None => {
                self.wish.model = name;
                self.say(Tint::Dim, "the next conversation begins with it");
                Ok(())
            }
        }
    }

    pub(super) async fn profile(&mut self, given: Option<String>) -> Result<(), String> {
        let Some(id) = given else {
            for profile in names(&self.client).await.profiles {
                self.say(Tint::Plain, &format!("  {profile}"));
            }
            return Ok(());
        };
        match &self.open {
            Some(open) => self.change(open.id, &json!({"profile_id": id})).await,
            None => {
                self.wish.profile_id = Some(id);
                self.say(Tint::Dim, "the next conversation begins with it");
                Ok(())
            }
        }
    }
}
