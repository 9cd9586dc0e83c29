//! Engines that answer in JSON: SearXNG (<https://docs.searxng.org/dev/search_api.html>), Brave
//! (<https://api-dashboard.search.brave.com/app/documentation/web-search>) and Tavily
//! (<https://docs.tavily.com/documentation/api-reference/endpoint/search>).

use itertools::Itertools as _;
use reqwest::header::AUTHORIZATION;
use reqwest::{Method, Request};
use serde_json::{Value, json};

use super::engine::{Found, SearchEngine};
use crate::tools::ToolResult;
use crate::tools::net::guard::post_json;
use crate::tools::net::key::ApiKey;
use crate::tools::output::shortened;

impl SearchEngine {
    pub(super) async fn ask_searxng(&self, query: &str) -> ToolResult<Found> {
        let mut url = self.with_query(&[("q", query), ("format", "json")]);
        let path = format!("{}/search", url.path().trim_end_matches('/'));
        url.set_path(&path);
        let answer = self.ask_json(Request::new(Method::GET, url)).await?;
        // Texts in older versions, and objects with an `answer` in newer ones.
        let text = |answer: &Value| Some(answer.as_str().or(answer["answer"].as_str())?.to_owned());
        let mut found = Found {
            answers: listed(&answer["answers"])
                .filter_map(text)
                .take(3)
                .collect(),
            results: self.hits(&answer["results"], ["content", "publishedDate"])?,
        };
        for date in found.results.iter_mut().filter_map(|hit| hit.date.as_mut()) {
            // Without the time of day.
            *date = date.chars().take(10).collect();
        }
        // Pairs of an engine and why it was silent.
        let silent = |pair: &Value| Some(format!("{}: {}", pair[0].as_str()?, pair[1].as_str()?));
        let mut silent = listed(&answer["unresponsive_engines"]).filter_map(silent);
        let silent = silent.by_ref().take(4).join(", ");
        if found == Found::default() && !silent.is_empty() {
            let what = format!("its engines do not answer ({silent}); try again later");
            refuse!("{} found nothing: {}", self.name(), shortened(&what, 200));
        }
        Ok(found)
    }

    pub(super) async fn ask_brave(
        &self,
        key: &ApiKey,
        query: &str,
        most: usize,
    ) -> ToolResult<Found> {
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
        self.hits(list, ["description", "age"]).map(Found::from)
    }

    pub(super) async fn ask_tavily(
        &self,
        key: &ApiKey,
        query: &str,
        most: usize,
    ) -> ToolResult<Found> {
        let question = json!({"query": query, "max_results": most, "search_depth": "basic"});
        let mut request = post_json(self.base.clone(), &question);
        let bearer = key.header("Bearer ");
        request.headers_mut().insert(AUTHORIZATION, bearer);
        let answer = self.ask_json(request).await?;
        let hits = self.hits(&answer["results"], ["content", "published_date"]);
        hits.map(Found::from)
    }
}

fn listed(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
