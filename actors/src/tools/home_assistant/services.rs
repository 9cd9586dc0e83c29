//! What can be done: `GET /api/services`, `POST /api/services/<domain>/<service>`.

use std::fmt::Write as _;

use serde_json::Value;

use super::api::{Api, ApiError};
use super::ask::{self, Call, EntityId};
use super::states;
use crate::tools::ToolError;
use crate::tools::output::{counted, shortened};

/// The most changed entities that a call's result shows.
const SHOWN: usize = 30;
const DESCRIPTION_BYTES: usize = 160;
/// The most fields of a service that are named.
const FIELDS: usize = 20;

/// The services of a kind with their fields; without a kind, the names of all.
pub(super) async fn list(api: &Api, domain: Option<&str>) -> Result<String, ToolError> {
    let wanted = domain.map(ask::domain).transpose()?;
    let all = api.get("services", &[]).await?;
    let domains = all.as_array().map(Vec::as_slice).unwrap_or_default();
    let name = |entry: &Value| entry["domain"].as_str().unwrap_or_default().to_owned();
    let mut text = String::new();
    let Some(wanted) = wanted else {
        for entry in domains {
            let mut names: Vec<&str> = services(entry).map(|(name, _)| name.as_str()).collect();
            names.sort_unstable();
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}: {}", name(entry), names.join(", "));
        }
        text.push_str("Call services with a domain to see their fields.");
        return Ok(text);
    };
    let Some(entry) = domains.iter().find(|entry| name(entry) == wanted) else {
        let names: Vec<String> = domains.iter().map(name).collect();
        return Err(ToolError(format!(
            "there are no services of {wanted}; the domains are {}",
            shortened(&names.join(", "), 1500)
        )));
    };
    for (service, about) in services(entry) {
        let _ = writeln!(text, "{wanted}.{service}{}", described(about));
    }
    Ok(text.trim_end().to_owned())
}

fn services(entry: &Value) -> impl Iterator<Item = (&String, &Value)> {
    entry["services"].as_object().into_iter().flatten()
}

fn described(about: &Value) -> String {
    let mut text = String::new();
    let words = [&about["description"], &about["name"]];
    if let Some(words) = words
        .iter()
        .find_map(|w| w.as_str().filter(|w| !w.is_empty()))
    {
        let _ = write!(text, ": {}", shortened(words, DESCRIPTION_BYTES));
    }
    let mut fields = Vec::new();
    named_fields(&about["fields"], &mut fields);
    if !fields.is_empty() {
        let _ = write!(text, " Fields: {}", fields.join(", "));
    }
    if about["target"].is_object() {
        text.push_str(" [needs entity_id]");
    }
    text
}

/// Fields may stand in sections, each with `fields` of its own.
fn named_fields(fields: &Value, found: &mut Vec<String>) {
    for (name, about) in fields.as_object().into_iter().flatten() {
        if found.len() >= FIELDS {
            return;
        }
        match about["fields"].as_object() {
            Some(inner) => {
                let names = inner.keys().take(FIELDS - found.len());
                found.extend(names.map(|name| shortened(name, 60)));
            }
            None if about["required"] == true => {
                found.push(format!("{} (required)", shortened(name, 60)));
            }
            None => found.push(shortened(name, 60)),
        }
    }
}

/// Calls a service, and tells what changed by it.
pub(super) async fn call(api: &Api, call: &Call) -> Result<String, ToolError> {
    let path = format!("services/{}/{}", call.domain, call.name);
    let answer = match api.post(&path, &[], &call.body).await {
        // It refused before it did anything, and says what it wants.
        Err(ApiError::BadRequest(message)) if wants_response(&message) => {
            api.post(&path, &[("return_response", "")], &call.body)
                .await
        }
        answer => answer,
    };
    match answer {
        Ok(answer) => told(api, call, &answer).await,
        Err(ApiError::BadRequest(message)) => Err(refused(api, call, &message).await),
        Err(error) => Err(error.into()),
    }
}

fn wants_response(message: &str) -> bool {
    message.contains("return_response") || message.contains("requires responses")
}

async fn told(api: &Api, call: &Call, answer: &Value) -> Result<String, ToolError> {
    let changed = answer
        .as_array()
        .or_else(|| answer["changed_states"].as_array())
        .map(Vec::as_slice)
        .unwrap_or_default();
    let mut text = format!("called {}", call.service());
    if changed.is_empty() {
        text.push_str("; no state changed at once");
        // A wrong entity is no error to Home Assistant: it does nothing, and says nothing.
        if let Some(id) = call.body["entity_id"].as_str()
            && let Ok(id) = EntityId::parse(id)
            && let Err(ApiError::NotFound) = api.get(&format!("states/{}", id.as_str()), &[]).await
        {
            return Err(states::missing(api, &id).await);
        }
    } else {
        let _ = write!(text, "; {} changed:", counted(changed.len(), "state"));
        for state in changed.iter().take(SHOWN) {
            let _ = write!(text, "\n{}", states::line(state));
        }
    }
    if !answer["service_response"].is_null() {
        let response =
            serde_json::to_string_pretty(&answer["service_response"]).unwrap_or_default();
        let _ = write!(text, "\nresponse: {response}");
    }
    Ok(text)
}

/// Home Assistant says little of what is wrong with a call: whether the service is there can be
/// looked up.
async fn refused(api: &Api, call: &Call, message: &str) -> ToolError {
    let problem = format!("Home Assistant refused {}: {message}", call.service());
    let Ok(all) = api.get("services", &[]).await else {
        return ToolError(problem);
    };
    let domain = all
        .as_array()
        .and_then(|all| all.iter().find(|entry| entry["domain"] == call.domain));
    match domain {
        None => ToolError(format!(
            "there is no service {}; services lists those there are",
            call.service()
        )),
        Some(entry) if entry["services"][&call.name].is_null() => {
            let mut names: Vec<&str> = services(entry).map(|(name, _)| name.as_str()).collect();
            names.sort_unstable();
            ToolError(format!(
                "there is no service {}; {} has {}",
                call.service(),
                call.domain,
                shortened(&names.join(", "), 800)
            ))
        }
        Some(entry) => ToolError(format!(
            "{problem}; {}{}",
            call.service(),
            described(&entry["services"][&call.name])
        )),
    }
}
