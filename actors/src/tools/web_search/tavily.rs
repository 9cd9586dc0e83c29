//! Tavily's API: <https://docs.tavily.com/documentation/api-reference/endpoint/search>.

use reqwest::Method;
use reqwest::header::AUTHORIZATION;
use serde_json::json;

use super::engine::{Found, Hit, Question, SearchEngine, SearchError, hits, text};
use crate::tools::net::key::ApiKey;

pub(super) async fn search(
    engine: &SearchEngine,
    key: &ApiKey,
    query: &str,
    most: usize,
) -> Result<Found, SearchError> {
    let mut question = Question::get(engine.base().clone());
    question.method = Method::POST;
    question.body = Some(json!({
        "query": query,
        "max_results": most,
        "search_depth": "basic",
    }));
    let bearer = key.header("Bearer ");
    question.headers.insert(AUTHORIZATION, bearer);
    let answer = engine.ask_json(question).await?;
    if !answer["results"].is_array() {
        let what = "an answer without results".to_owned();
        return Err(SearchError::Unexpected(what));
    }
    Ok(Found {
        answers: answer["answer"]
            .as_str()
            .map(str::to_owned)
            .into_iter()
            .collect(),
        results: hits(&answer["results"], |result| Hit {
            title: text(result, "title"),
            url: text(result, "url"),
            snippet: text(result, "content"),
            date: result["published_date"].as_str().map(str::to_owned),
        }),
    })
}
