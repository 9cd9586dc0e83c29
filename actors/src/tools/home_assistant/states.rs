//! How the home stands: `GET /api/states`, `GET /api/states/<entity_id>`; and how an entity stood:
//! `GET /api/history/period/<time>`.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use itertools::{Itertools as _, MinMaxResult};
use serde_json::Value;

use super::Id;
use super::api::{Api, ApiError};
use crate::tools::output::{counted, cut_middle, shortened};
use crate::tools::{ToolError, ToolResult};

/// The most entities that a list shows.
const SHOWN: usize = 150;
/// Up to so many entities are listed without being asked for by their kind.
const LISTED_AT_ONCE: usize = 60;
/// As many as stand beside a name that was wrong.
const NEAR: usize = 5;
const ATTRIBUTES_BYTES: usize = 4000;
/// The most changes that are shown one by one: the first and the last.
const SHOWN_CHANGES: usize = 80;

/// All entities, or those of a kind or with these words.
pub(super) async fn list(api: &Api, domain: &str, search: &str) -> ToolResult<String> {
    let domain = super::domain(domain)?;
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
pub(super) async fn one(api: &Api, id: &Id) -> ToolResult<String> {
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

async fn all(api: &Api) -> ToolResult<Vec<Value>> {
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
    let mut told = first.map(|(kind, count)| format!("{} {count}", shortened(kind, 40)));
    told.join(", ")
}

/// The changes of the last hours, and for numbers their range.
pub(super) async fn history(api: &Api, id: &Id, hours: u8) -> ToolResult<String> {
    let end = Utc::now();
    let begin = end - TimeDelta::hours(hours.into());
    let time = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Secs, true);
    let query = [
        ("filter_entity_id", &*id.to_string()),
        ("end_time", &time(end)),
        ("minimal_response", ""),
        ("no_attributes", ""),
    ];
    let path = format!("history/period/{}", time(begin));
    let answer = api.ask(&path, &query, None).await?;
    // A list for each entity that was asked for; none where there is nothing to tell.
    let changes = answer[0].as_array().map(Vec::as_slice).unwrap_or_default();
    if changes.is_empty() {
        // An entity that is not there has no history either.
        one(api, id).await?;
        return Ok(format!(
            "{id} has no history in the last {}",
            counted(hours.into(), "hour")
        ));
    }
    let mut text = format!("{id}, {} (UTC)", counted(changes.len(), "state"));
    let states = changes.iter().filter_map(|change| change["state"].as_str());
    let numbers = states.filter_map(|state| state.parse::<f64>().ok());
    let range = numbers.filter(|it| it.is_finite());
    if let MinMaxResult::MinMax(least, most) = range.minmax_by(f64::total_cmp) {
        text.push_str(&format!(", from {least} to {most}"));
    }
    let left_out = changes.len().saturating_sub(SHOWN_CHANGES);
    let left_out = SHOWN_CHANGES / 2..SHOWN_CHANGES / 2 + left_out;
    for (index, change) in changes.iter().enumerate() {
        if left_out.contains(&index) {
            if index == left_out.start {
                text.push_str(&format!("\n… {} left out …", left_out.len()));
            }
            continue;
        }
        let at = change["last_changed"].as_str().unwrap_or("unknown time");
        let at = DateTime::parse_from_rfc3339(at).map_or_else(
            |_| shortened(at, 40),
            |at| at.to_utc().format("%Y-%m-%d %H:%M:%S").to_string(),
        );
        let state = change["state"].as_str().unwrap_or("unknown");
        text.push_str(&format!("\n{at} {}", shortened(state, 100)));
    }
    Ok(text)
}
