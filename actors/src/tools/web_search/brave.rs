//! Brave's API: <https://api-dashboard.search.brave.com/app/documentation/web-search>.

use reqwest::{Method, Request};

use super::engine::{Found, SearchEngine};
use crate::tools::ToolError;
use crate::tools::net::key::ApiKey;

pub(super) async fn search(
    engine: &SearchEngine,
    key: &ApiKey,
    query: &str,
    most: usize,
) -> Result<Found, ToolError> {
    let url = engine.with_query(&[
        ("q", query),
        ("count", &most.to_string()),
        ("text_decorations", "false"),
    ]);
    let mut request = Request::new(Method::GET, url);
    let headers = request.headers_mut();
    headers.insert("x-subscription-token", key.header(""));
    let answer = engine.ask_json(request).await?;
    let list = &answer["web"]["results"];
    // Where it found nothing it may leave the list out.
    let is_answer = answer["type"].is_string() || answer["web"].is_object();
    let results = if is_answer && !list.is_array() {
        Vec::new()
    } else {
        engine.hits(list, ["description", "age"])?
    };
    Ok(Found {
        answers: Vec::new(),
        results,
    })
}
