//! What can be done: `GET /api/services`, `POST /api/services/<domain>/<service>`.

use itertools::Itertools as _;
use serde_json::Value;

use super::api::{Api, ApiError};
use super::{Call, Id, states};
use crate::tools::output::{counted, shortened};
use crate::tools::{ToolError, ToolResult};

/// The most changed entities that a call's result shows.
const SHOWN: usize = 30;
const DESCRIPTION_BYTES: usize = 160;
/// The most fields of a service that are named.
const FIELDS: usize = 20;

/// The services of a kind with their fields; without a kind, the names of all.
pub(super) async fn list(api: &Api, domain: &str) -> ToolResult<String> {
    let wanted = super::domain(domain)?;
    let all = api.ask("services", &[], None).await?;
    let domains = all.as_array().map(Vec::as_slice).unwrap_or_default();
    let name = |entry: &Value| entry["domain"].as_str().unwrap_or_default().to_owned();
    if wanted.is_empty() {
        let line = |entry| format!("{}: {}\n", name(entry), names(entry));
        let lines: String = domains.iter().map(line).collect();
        return Ok(lines + "Call services with a domain to see their fields.");
    }
    let Some(entry) = domains.iter().find(|entry| name(entry) == wanted) else {
        refuse!(
            "there are no services of {wanted}; the domains are {}",
            shortened(&domains.iter().map(name).join(", "), 1500)
        );
    };
    let mut lines =
        services(entry).map(|(service, about)| format!("{wanted}.{service}{}", described(about)));
    Ok(lines.join("\n"))
}

fn services(entry: &Value) -> impl Iterator<Item = (&String, &Value)> {
    entry["services"].as_object().into_iter().flatten()
}

/// In their order, with commas between.
fn names(entry: &Value) -> String {
    services(entry).map(|(name, _)| name).sorted().join(", ")
}

fn described(about: &Value) -> String {
    let words = [&about["description"], &about["name"]];
    let mut words = words.into_iter().filter_map(Value::as_str);
    let words = words.find(|words| !words.is_empty());
    let mut text = words.map_or_else(String::new, |words| {
        format!(": {}", shortened(words, DESCRIPTION_BYTES))
    });
    let fields = named_fields(&about["fields"]);
    if !fields.is_empty() {
        text.push_str(&format!(" Fields: {}", fields.join(", ")));
    }
    if about["target"].is_object() {
        text.push_str(" [needs entity_id]");
    }
    text
}

/// Fields may stand in sections, each with `fields` of its own.
fn named_fields(fields: &Value) -> Vec<String> {
    let fields = fields.as_object().into_iter().flatten();
    let named = fields.flat_map(|(name, about)| match about["fields"].as_object() {
        Some(inner) => inner.keys().map(|name| shortened(name, 60)).collect(),
        None if about["required"] == true => vec![format!("{} (required)", shortened(name, 60))],
        None => vec![shortened(name, 60)],
    });
    named.take(FIELDS).collect()
}

/// Calls a service, and tells what changed by it.
pub(super) async fn call(api: &Api, call: &Call) -> ToolResult<String> {
    let path = format!("services/{}/{}", call.service.domain, call.service.name);
    let mut answer = api.ask(&path, &[], Some(&call.body)).await;
    if let Err(ApiError::BadRequest(message)) = &answer
        && (message.contains("return_response") || message.contains("requires responses"))
    {
        // It refused before it did anything, and says what it wants.
        let query = [("return_response", "")];
        answer = api.ask(&path, &query, Some(&call.body)).await;
    }
    match answer {
        Ok(answer) => told(api, call, &answer).await,
        Err(ApiError::BadRequest(message)) => Err(refused(api, call, &message).await),
        Err(error) => Err(error.into()),
    }
}

async fn told(api: &Api, call: &Call, answer: &Value) -> ToolResult<String> {
    let changed = answer
        .as_array()
        .or_else(|| answer["changed_states"].as_array())
        .map(Vec::as_slice)
        .unwrap_or_default();
    let mut text = format!("called {}", call.service);
    if changed.is_empty() {
        text.push_str("; no state changed at once");
        // A wrong entity is no error to Home Assistant: it does nothing, and says nothing.
        if let Some(id) = call.body["entity_id"].as_str()
            && let Ok(id) = Id::of_entity(id)
            && let Err(ApiError::NotFound) = api.ask(&format!("states/{id}"), &[], None).await
        {
            return Err(states::missing(api, &id).await);
        }
    } else {
        text.push_str(&format!("; {} changed:", counted(changed.len(), "state")));
        for state in changed.iter().take(SHOWN) {
            text.push_str(&format!("\n{}", states::line(state)));
        }
    }
    if !answer["service_response"].is_null() {
        text.push_str(&format!("\nresponse: {:#}", answer["service_response"]));
    }
    Ok(text)
}

/// Home Assistant says little of what is wrong with a call: whether the service is there can be
/// looked up.
async fn refused(api: &Api, call: &Call, message: &str) -> ToolError {
    let service = &call.service;
    let problem = format!("Home Assistant refused {service}: {message}");
    let Ok(all) = api.ask("services", &[], None).await else {
        return ToolError(problem);
    };
    let domain = &service.domain;
    let mut domains = all.as_array().into_iter().flatten();
    let Some(entry) = domains.find(|entry| entry["domain"] == *domain) else {
        return refusal!("there is no service {service}; services lists those there are");
    };
    let mut services = services(entry);
    ToolError(match services.find(|(name, _)| service.name == **name) {
        Some((_, about)) => format!("{problem}; {service}{}", described(about)),
        None => format!(
            "there is no service {service}; {domain} has {}",
            shortened(&names(entry), 800)
        ),
    })
}
