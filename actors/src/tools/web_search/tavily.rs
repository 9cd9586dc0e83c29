//! Tavily's API: <https://docs.tavily.com/documentation/api-reference/endpoint/search>.

use reqwest::header::AUTHORIZATION;
use serde_json::json;

use super::engine::{Found, SearchEngine};
use crate::tools::ToolError;
use crate::tools::net::key::ApiKey;
use crate::tools::net::send::post_json;

pub(super) async fn search(
    engine: &SearchEngine,
    key: &ApiKey,
    query: &str,
    most: usize,
) -> Result<Found, ToolError> {
    let question = json!({
        "query": query,
        "max_results": most,
        "search_depth": "basic",
    });
    let mut request = post_json(engine.base.clone(), &question);
    let bearer = key.header("Bearer ");
    request.headers_mut().insert(AUTHORIZATION, bearer);
    let answer = engine.ask_json(request).await?;
    let own = answer["answer"].as_str().map(str::to_owned);
    Ok(Found {
        answers: own.into_iter().collect(),
        results: engine.hits(&answer["results"], ["content", "published_date"])?,
    })
}
