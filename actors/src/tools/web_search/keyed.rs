//! Search APIs that want a key: Brave's
//! (<https://api-dashboard.search.brave.com/app/documentation/web-search>), and Tavily's
//! (<https://docs.tavily.com/documentation/api-reference/endpoint/search>).

use reqwest::header::AUTHORIZATION;
use reqwest::{Method, Request};
use serde_json::json;

use super::engine::{Found, SearchEngine};
use crate::tools::ToolError;
use crate::tools::net::key::ApiKey;
use crate::tools::net::send::post_json;

impl SearchEngine {
    pub(super) async fn ask_brave(
        &self,
        key: &ApiKey,
        query: &str,
        most: usize,
    ) -> Result<Found, ToolError> {
        let url = self.with_query(&[
            ("q", query),
            ("count", &most.to_string()),
            ("text_decorations", "false"),
        ]);
        let mut request = Request::new(Method::GET, url);
        let headers = request.headers_mut();
        headers.insert("x-subscription-token", key.header(""));
        let answer = self.ask_json(request).await?;
        let list = &answer["web"]["results"];
        // Where it found nothing it may leave the list out.
        let is_answer = answer["type"].is_string() || answer["web"].is_object();
        if is_answer && !list.is_array() {
            return Ok(Found::default());
        }
        Ok(Found {
            answers: Vec::new(),
            results: self.hits(list, ["description", "age"])?,
        })
    }

    pub(super) async fn ask_tavily(
        &self,
        key: &ApiKey,
        query: &str,
        most: usize,
    ) -> Result<Found, ToolError> {
        let question = json!({"query": query, "max_results": most, "search_depth": "basic"});
        let mut request = post_json(self.base.clone(), &question);
        let bearer = key.header("Bearer ");
        request.headers_mut().insert(AUTHORIZATION, bearer);
        let answer = self.ask_json(request).await?;
        Ok(Found {
            answers: answer["answer"]
                .as_str()
                .map(str::to_owned)
                .into_iter()
                .collect(),
            results: self.hits(&answer["results"], ["content", "published_date"])?,
        })
    }
}
