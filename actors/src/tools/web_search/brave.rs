//! Brave's API: <https://api-dashboard.search.brave.com/app/documentation/web-search>.

use super::engine::{Found, Hit, Question, SearchEngine, SearchError, hits, text};
use crate::tools::net::key::ApiKey;

pub(super) async fn search(
    engine: &SearchEngine,
    key: &ApiKey,
    query: &str,
    most: usize,
) -> Result<Found, SearchError> {
    let mut url = engine.base().clone();
    url.query_pairs_mut()
        .append_pair("q", query)
        .append_pair("count", &most.to_string())
        .append_pair("text_decorations", "false");
    let mut question = Question::get(url);
    question
        .headers
        .insert("x-subscription-token", key.header(""));
    let answer = engine.ask_json(question).await?;
    if !answer["type"].is_string() && !answer["web"].is_object() {
        let what = "an answer without results".to_owned();
        return Err(SearchError::Unexpected(what));
    }
    Ok(Found {
        answers: Vec::new(),
        results: hits(&answer["web"]["results"], |result| Hit {
            title: text(result, "title"),
            url: text(result, "url"),
            snippet: text(result, "description"),
            date: result["age"].as_str().map(str::to_owned),
        }),
    })
}
