//! How the home stands: `GET /api/states`, `GET /api/states/<entity_id>`.

use itertools::Itertools as _;
use serde_json::Value;

use super::api::{Api, ApiError};
use super::ask::{self, Id};
use crate::tools::ToolError;
use crate::tools::output::{counted, cut_middle, shortened};

/// The most entities that a list shows.
const SHOWN: usize = 150;
/// Up to so many entities are listed without being asked for by their kind.
const LISTED_AT_ONCE: usize = 60;
/// As many as stand beside a name that was wrong.
const NEAR: usize = 5;
const ATTRIBUTES_BYTES: usize = 4000;

/// All entities, or those of a kind or with these words.
pub(super) async fn list(api: &Api, domain: &str, search: &str) -> Result<String, ToolError> {
    let domain = ask::domain(domain)?;
    let all = all(api).await?;
    let search = search.to_lowercase();
    let is_wanted = |state: &&Value| {
        let text = format!("{} {}", id(state), name(state)).to_lowercase();
        (domain.is_empty() || kind(state) == domain)
            && search.split_whitespace().all(|word| text.contains(word))
    };
    let found: Vec<&Value> = all.iter().filter(is_wanted).collect();
    if found.is_empty() {
        return Ok(format!("no entity fits; there are {}", kinds(&all)));
    }
    if domain.is_empty() && search.trim().is_empty() && found.len() > LISTED_AT_ONCE {
        return Ok(format!(
            "{}: {}\nCall states with a domain or with search to see them.",
            counted(found.len(), "entity"),
            kinds(&all)
        ));
    }
    let mut lines: Vec<String> = found.iter().take(SHOWN).map(|state| line(state)).collect();
    if found.len() > SHOWN {
        lines.push(format!("and {} more; use search", found.len() - SHOWN));
    }
    Ok(lines.join("\n"))
}

/// One entity with all that is known of it.
pub(super) async fn one(api: &Api, id: &Id) -> Result<String, ToolError> {
    let state = match api.ask(&format!("states/{id}"), &[], None).await {
        Err(ApiError::NotFound) => return Err(missing(api, id).await),
        answer => answer?,
    };
    Ok(format!(
        "{}\nlast changed: {}\nattributes: {}",
        line(&state),
        shortened(state["last_changed"].as_str().unwrap_or("unknown"), 40),
        cut_middle(&format!("{:#}", state["attributes"]), ATTRIBUTES_BYTES)
    ))
}

/// The error for an entity that is not there, with those whose names are near.
pub(super) async fn missing(api: &Api, id: &Id) -> ToolError {
    let problem = format!("there is no entity {id}");
    let Ok(all) = all(api).await else {
        return ToolError(problem);
    };
    let wanted = id.to_string();
    let mut near: Vec<(f64, &str)> = all
        .iter()
        .map(|state| {
            let same_kind = f64::from(u8::from(kind(state) == id.domain)) * 0.2;
            let other = self::id(state);
            (strsim::jaro_winkler(&wanted, other) + same_kind, other)
        })
        .filter(|(likeness, _)| *likeness > 0.75)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    ToolError(if near.is_empty() {
        format!("{problem}; states lists those there are")
    } else {
        let near = near.into_iter().map(|(_, id)| id).take(NEAR).join(", ");
        format!("{problem}; the nearest are {near}")
    })
}

async fn all(api: &Api) -> Result<Vec<Value>, ToolError> {
    match api.ask("states", &[], None).await? {
        Value::Array(states) => Ok(states),
        _ => refuse!(
            "Home Assistant sent no list of states; the owner should look at HOME_ASSISTANT_URL"
        ),
    }
}

/// An entity on a line: its id, its state with its unit, its name.
pub(super) fn line(state: &Value) -> String {
    let unit = match state["attributes"]["unit_of_measurement"].as_str() {
        Some(unit) => format!(" {unit}"),
        None => String::new(),
    };
    let name = match name(state) {
        "" => String::new(),
        name => format!(" ({name})"),
    };
    let value = state["state"].as_str().unwrap_or("unknown");
    shortened(&format!("{}: {value}{unit}{name}", id(state)), 300)
}

fn id(state: &Value) -> &str {
    state["entity_id"].as_str().unwrap_or_default()
}

fn name(state: &Value) -> &str {
    state["attributes"]["friendly_name"]
        .as_str()
        .unwrap_or_default()
}

fn kind(state: &Value) -> &str {
    id(state).split('.').next().unwrap_or_default()
}

fn kinds(states: &[Value]) -> String {
    if states.is_empty() {
        return "no entities at all".to_owned();
    }
    let counts = states.iter().map(kind).counts();
    let first = counts.into_iter().sorted().take(60);
    first
        .map(|(kind, count)| format!("{} {count}", shortened(kind, 40)))
        .join(", ")
}
