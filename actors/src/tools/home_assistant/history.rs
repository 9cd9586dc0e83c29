//! How an entity stood: `GET /api/history/period/<time>`.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use itertools::{Itertools as _, MinMaxResult};
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
    let states = changes.iter().filter_map(|change| change["state"].as_str());
    let numbers = states.filter_map(|state| state.parse::<f64>().ok());
    let range = numbers.filter(|it| it.is_finite());
    if let MinMaxResult::MinMax(least, most) = range.minmax_by(f64::total_cmp) {
        text.push_str(&format!(", from {least} to {most}"));
    }
    let left_out = changes.len().saturating_sub(SHOWN);
    let left_out = SHOWN / 2..SHOWN / 2 + left_out;
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
    text
}
