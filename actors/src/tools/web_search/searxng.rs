//! SearXNG: <https://docs.searxng.org/dev/search_api.html>.

use serde_json::Value;

use super::engine::{Found, Hit, Question, SearchEngine, SearchError, hits, text};

pub(super) async fn search(engine: &SearchEngine, query: &str) -> Result<Found, SearchError> {
    let mut url = engine.base().clone();
    let path = format!("{}/search", url.path().trim_end_matches('/'));
    url.set_path(&path);
    url.query_pairs_mut()
        .append_pair("q", query)
        .append_pair("format", "json");
    let answer = engine.ask_json(Question::get(url)).await?;
    if !answer["results"].is_array() {
        let what = "an answer without results".to_owned();
        return Err(SearchError::Unexpected(what));
    }
    let found = Found {
        answers: answers(&answer),
        results: hits(&answer["results"], |result| Hit {
            title: text(result, "title"),
            url: text(result, "url"),
            snippet: text(result, "content"),
            date: result["publishedDate"]
                .as_str()
                .map(|date| date.chars().take(10).collect()),
        }),
    };
    let silent = unresponsive(&answer["unresponsive_engines"]);
    if found == Found::default() && !silent.is_empty() {
        return Err(SearchError::Engine(format!(
            "its engines do not answer ({silent}); try again later"
        )));
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
        .collect::<Vec<_>>()
        .join(", ")
}
