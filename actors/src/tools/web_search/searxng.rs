//! SearXNG: <https://docs.searxng.org/dev/search_api.html>.

use itertools::Itertools as _;
use reqwest::{Method, Request};
use serde_json::Value;

use super::engine::{Found, SearchEngine};
use crate::tools::ToolError;
use crate::tools::output::shortened;

pub(super) async fn search(engine: &SearchEngine, query: &str) -> Result<Found, ToolError> {
    let mut url = engine.with_query(&[("q", query), ("format", "json")]);
    let path = format!("{}/search", url.path().trim_end_matches('/'));
    url.set_path(&path);
    let answer = engine.ask_json(Request::new(Method::GET, url)).await?;
    let mut found = Found {
        answers: answers(&answer),
        results: engine.hits(&answer["results"], ["content", "publishedDate"])?,
    };
    for date in found.results.iter_mut().filter_map(|hit| hit.date.as_mut()) {
        // Without the time of day.
        *date = date.chars().take(10).collect();
    }
    let silent = unresponsive(&answer["unresponsive_engines"]);
    if found == Found::default() && !silent.is_empty() {
        let what = format!("its engines do not answer ({silent}); try again later");
        refuse!("{} found nothing: {}", engine.name(), shortened(&what, 200));
    }
    Ok(found)
}

/// Answers are texts in older versions, and objects with an `answer` in newer ones.
fn answers(answer: &Value) -> Vec<String> {
    let list = answer["answers"].as_array().into_iter().flatten();
    list.filter_map(|answer| answer.as_str().or_else(|| answer["answer"].as_str()))
        .map(str::to_owned)
        .take(3)
        .collect()
}

/// Pairs of an engine and why it was silent.
fn unresponsive(list: &Value) -> String {
    let pairs = list.as_array().into_iter().flatten();
    pairs
        .filter_map(|pair| Some(format!("{}: {}", pair[0].as_str()?, pair[1].as_str()?)))
        .take(4)
        .join(", ")
}
