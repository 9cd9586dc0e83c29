//! How an entity stood: `GET /api/history/period/<time>`.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::Value;

use super::api::Api;
use super::ask::Id;
use super::states;
use crate::tools::ToolError;
use crate::tools::output::{counted, shortened};

/// The most changes that are shown one by one: the first and the last.
const SHOWN: usize = 80;

/// The changes of the last hours, and for numbers their range.
pub(super) async fn of(api: &Api, id: &Id, hours: u8) -> Result<String, ToolError> {
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
        states::one(api, id).await?;
        return Ok(format!(
            "{id} has no history in the last {}",
            counted(hours.into(), "hour")
        ));
    }
    Ok(render(id, changes))
}

fn render(id: &Id, changes: &[Value]) -> String {
    let mut text = format!("{id}, {} (UTC)", counted(changes.len(), "state"));
    let numbers: Vec<f64> = changes
        .iter()
        .filter_map(|change| change["state"].as_str()?.parse().ok())
        .filter(|number: &f64| number.is_finite())
        .collect();
    if numbers.len() > 1 {
        let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        let most = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        text.push_str(&format!(", from {least} to {most}"));
    }
    let left_out = changes.len().saturating_sub(SHOWN);
    for (index, change) in changes.iter().enumerate() {
        if left_out > 0 && index == SHOWN / 2 {
            text.push_str(&format!("\n… {left_out} left out …"));
        }
        if index >= SHOWN / 2 && index < SHOWN / 2 + left_out {
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
    text
}
