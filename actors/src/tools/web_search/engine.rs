//! Search engines: which there are, and what goes wrong with them.

use reqwest::header::{ACCEPT, HeaderValue};
use reqwest::{Request, StatusCode, Url};
use serde_json::Value;

use super::duckduckgo;
use crate::tools::net::grants::Grants;
use crate::tools::net::guard::{Guard, read_body};
use crate::tools::net::key::ApiKey;
use crate::tools::{ToolError, ToolResult};

/// The most bytes of an engine's answer.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// An engine, where it is, and what it wants.
#[derive(Clone, Debug)]
pub struct SearchEngine {
    kind: Kind,
    pub(super) base: Url,
    guard: Guard,
}

#[derive(Clone, Debug)]
enum Kind {
    Searxng,
    Brave(ApiKey),
    Tavily(ApiKey),
    Duckduckgo,
}

/// One result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) title: String,
    pub(super) url: String,
    pub(super) snippet: String,
    pub(super) date: Option<String>,
}

/// What an engine found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Answers of the engine itself: a sum, a definition. SearXNG alone has some.
    pub(super) answers: Vec<String>,
    pub(super) results: Vec<Hit>,
}

impl From<Vec<Hit>> for Found {
    fn from(results: Vec<Hit>) -> Self {
        let answers = Vec::new();
        Self { answers, results }
    }
}

impl SearchEngine {
    /// A SearXNG of the owner's.
    pub fn searxng(base: Url) -> Self {
        Self::of(Kind::Searxng, base)
    }

    /// Brave's API. None never: its address is a fixed one that parses, as the next two are.
    pub fn brave(key: ApiKey) -> Option<Self> {
        Self::known(
            Kind::Brave(key),
            "https://api.search.brave.com/res/v1/web/search",
        )
    }

    /// Tavily's API.
    pub fn tavily(key: ApiKey) -> Option<Self> {
        Self::known(Kind::Tavily(key), "https://api.tavily.com/search")
    }

    /// DuckDuckGo's page without scripts.
    pub fn duckduckgo() -> Option<Self> {
        Self::known(Kind::Duckduckgo, "https://html.duckduckgo.com/html/")
    }

    /// The same engine elsewhere, wherever that is: for tests.
    pub fn at(self, base: Url) -> Self {
        Self::of(self.kind, base)
    }

    fn known(kind: Kind, base: &str) -> Option<Self> {
        Some(Self {
            guard: Guard::new(Grants::default()),
            ..Self::of(kind, Url::parse(base).ok()?)
        })
    }

    fn of(kind: Kind, base: Url) -> Self {
        Self {
            guard: Guard::new(Grants::of_origin(&base)),
            base,
            kind,
        }
    }

    /// As a person knows it.
    pub fn name(&self) -> &'static str {
        self.words()[0]
    }

    /// Its name, where to look when it fails, and why it may let nobody in.
    fn words(&self) -> [&'static str; 3] {
        const LATER: &str = "try again later, or let the owner choose another NAVI_SEARCH_ENGINE";
        match self.kind {
            Kind::Searxng => [
                "SearXNG",
                "the owner should look at NAVI_SEARXNG_URL",
                "its settings.yml must list json under search.formats, and its limiter must let Navi in",
            ],
            Kind::Brave(_) => [
                "Brave",
                LATER,
                "the owner should look at NAVI_BRAVE_API_KEY",
            ],
            Kind::Tavily(_) => [
                "Tavily",
                LATER,
                "the owner should look at NAVI_TAVILY_API_KEY",
            ],
            Kind::Duckduckgo => [
                "DuckDuckGo",
                LATER,
                "it takes Navi for a robot; wait a while, or let the owner choose another NAVI_SEARCH_ENGINE",
            ],
        }
    }

    /// The engine and where it is, which is what a permission is for.
    pub(super) fn place(&self) -> String {
        format!(
            "{} at {}",
            self.name(),
            self.base.origin().ascii_serialization()
        )
    }

    pub(super) async fn search(&self, query: &str, most: usize) -> ToolResult<Found> {
        match &self.kind {
            Kind::Searxng => self.ask_searxng(query).await,
            Kind::Brave(key) => self.ask_brave(key, query, most).await,
            Kind::Tavily(key) => self.ask_tavily(key, query, most).await,
            Kind::Duckduckgo => duckduckgo::search(self, query).await,
        }
    }

    /// Its address, with these in the query.
    pub(super) fn with_query(&self, pairs: &[(&str, &str)]) -> Url {
        let mut url = self.base.clone();
        url.query_pairs_mut().extend_pairs(pairs);
        url
    }

    /// Asks the engine and reads its whole answer. A redirect is not followed: what the owner
    /// named is what is asked.
    pub(super) async fn ask(&self, request: Request) -> ToolResult<Vec<u8>> {
        let unreached = |ToolError(error)| {
            let [name, look, _] = self.words();
            refusal!("{name}: {error}; {look}")
        };
        let response = self.guard.send(request).await.map_err(unreached)?;
        if response.status() != StatusCode::OK {
            return Err(self.refused(response.status().as_u16()));
        }
        read_body(response, MAX_BYTES).await.map_err(unreached)
    }

    /// The same for engines that answer in JSON.
    pub(super) async fn ask_json(&self, mut request: Request) -> ToolResult<Value> {
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(ACCEPT, json);
        let bytes = self.ask(request).await?;
        serde_json::from_slice(&bytes).map_err(|_| self.unexpected("something that is no JSON"))
    }

    /// It answered, but with something else than results.
    pub(super) fn unexpected(&self, what: &str) -> ToolError {
        let [name, look, _] = self.words();
        refusal!("{name} sent {what}; {look}")
    }

    /// An HTTP status in words, with what to do.
    pub(super) fn refused(&self, status: u16) -> ToolError {
        let [name, look, let_in] = self.words();
        ToolError(match status {
            // DuckDuckGo answers 202, with a puzzle, to those whom it takes for robots.
            202 | 401 | 403 => format!("{name} refuses: {let_in}"),
            402 => format!("{name}: what was paid for is used up"),
            429 => format!("{name} was asked too often; wait a while, or go on without a search"),
            300..=399 => format!("{name} answered {status}, a redirect; {look}"),
            500.. => format!("{name} has a fault (HTTP {status}); try again later"),
            _ => format!("{name} refused the search (HTTP {status}); {look}"),
        })
    }

    /// The results of an answer's list, by the fields that hold an excerpt and a date; those
    /// without a web address are left out.
    pub(super) fn hits(&self, list: &Value, [snippet, date]: [&str; 2]) -> ToolResult<Vec<Hit>> {
        let text = |result: &Value, field| result[field].as_str().map(str::to_owned);
        let list = list.as_array();
        let list = list.ok_or_else(|| self.unexpected("an answer without results"))?;
        let hits = list.iter().map(|result| Hit {
            title: text(result, "title").unwrap_or_default(),
            url: text(result, "url").unwrap_or_default(),
            snippet: text(result, snippet).unwrap_or_default(),
            date: text(result, date),
        });
        let is_web = |hit: &Hit| hit.url.starts_with("http://") || hit.url.starts_with("https://");
        Ok(hits.filter(is_web).collect())
    }
}
