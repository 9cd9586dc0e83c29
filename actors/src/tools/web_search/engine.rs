//! Search engines: which there are, and what goes wrong with them.

use reqwest::header::{ACCEPT, ACCEPT_ENCODING, HeaderMap, HeaderValue};
use reqwest::{Method, Response, StatusCode, Url};
use serde_json::Value;

use super::{brave, duckduckgo, searxng, tavily};
use crate::tools::net::grants::Grants;
use crate::tools::net::guard::Guard;
use crate::tools::net::key::ApiKey;
use crate::tools::net::{NetError, body, send};
use crate::tools::output::shortened;

/// The most bytes of an engine's answer.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// An engine, where it is, and what it wants.
#[derive(Clone, Debug)]
pub struct SearchEngine {
    kind: Kind,
    base: Url,
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
    /// Answers of the engine itself: a sum, a definition.
    pub(super) answers: Vec<String>,
    pub(super) results: Vec<Hit>,
}

/// Why nothing was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SearchError {
    Net(NetError),
    TooSlow,
    Status(u16),
    /// It answered, but with something else than results.
    Unexpected(String),
    /// What it says of its own failure.
    Engine(String),
}

impl From<NetError> for SearchError {
    fn from(error: NetError) -> Self {
        Self::Net(error)
    }
}

impl SearchError {
    /// In words, with what to do.
    pub(super) fn told(&self, engine: &SearchEngine) -> String {
        let name = engine.name();
        match self {
            Self::Net(error) => format!("{name}: {error}; {}", engine.where_to_look()),
            Self::TooSlow => format!("{name} did not answer in time; try again with fewer words"),
            Self::Status(401 | 403) => format!("{name} refuses: {}", engine.who_is_let_in()),
            Self::Status(402) => format!("{name}: what was paid for is used up"),
            Self::Status(429) => {
                format!("{name} was asked too often; wait a while, or go on without a search")
            }
            Self::Status(status @ 300..=399) => format!(
                "{name} answered {status}, a redirect; {}",
                engine.where_to_look()
            ),
            Self::Status(status @ 500..) => {
                format!("{name} has a fault (HTTP {status}); try again later")
            }
            Self::Status(status) => format!(
                "{name} refused the search (HTTP {status}); {}",
                engine.where_to_look()
            ),
            Self::Unexpected(what) => format!("{name} sent {what}; {}", engine.where_to_look()),
            Self::Engine(what) => format!("{name} found nothing: {}", shortened(what, 200)),
        }
    }
}

impl SearchEngine {
    /// A SearXNG of the owner's.
    #[must_use]
    pub fn searxng(base: Url) -> Self {
        let grants = Grants::of_origin(&base);
        Self::of(Kind::Searxng, base, grants)
    }

    /// Brave's API. None never: its address is a fixed one that parses, as the next two are.
    #[must_use]
    pub fn brave(key: ApiKey) -> Option<Self> {
        let base = Url::parse("https://api.search.brave.com/res/v1/web/search").ok()?;
        Some(Self::of(Kind::Brave(key), base, Grants::default()))
    }

    /// Tavily's API.
    #[must_use]
    pub fn tavily(key: ApiKey) -> Option<Self> {
        let base = Url::parse("https://api.tavily.com/search").ok()?;
        Some(Self::of(Kind::Tavily(key), base, Grants::default()))
    }

    /// DuckDuckGo's page without scripts.
    #[must_use]
    pub fn duckduckgo() -> Option<Self> {
        let base = Url::parse("https://html.duckduckgo.com/html/").ok()?;
        Some(Self::of(Kind::Duckduckgo, base, Grants::default()))
    }

    /// The same engine elsewhere, wherever that is: for tests.
    #[must_use]
    pub fn at(self, base: Url) -> Self {
        let grants = Grants::of_origin(&base);
        Self::of(self.kind, base, grants)
    }

    fn of(kind: Kind, base: Url, grants: Grants) -> Self {
        Self {
            kind,
            guard: Guard::new(grants),
            base,
        }
    }

    /// As a person knows it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.kind {
            Kind::Searxng => "SearXNG",
            Kind::Brave(_) => "Brave",
            Kind::Tavily(_) => "Tavily",
            Kind::Duckduckgo => "DuckDuckGo",
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

    fn where_to_look(&self) -> &'static str {
        match self.kind {
            Kind::Searxng => "the owner should look at NAVI_SEARXNG_URL",
            Kind::Brave(_) | Kind::Tavily(_) | Kind::Duckduckgo => {
                "try again later, or let the owner choose another NAVI_SEARCH_ENGINE"
            }
        }
    }

    fn who_is_let_in(&self) -> &'static str {
        match self.kind {
            Kind::Searxng => {
                "its settings.yml must list json under search.formats, and its limiter must let Navi in"
            }
            Kind::Brave(_) => "the owner should look at NAVI_BRAVE_API_KEY",
            Kind::Tavily(_) => "the owner should look at NAVI_TAVILY_API_KEY",
            Kind::Duckduckgo => {
                "it takes Navi for a robot; wait a while, or let the owner choose another NAVI_SEARCH_ENGINE"
            }
        }
    }

    pub(super) async fn search(&self, query: &str, most: usize) -> Result<Found, SearchError> {
        match &self.kind {
            Kind::Searxng => searxng::search(self, query).await,
            Kind::Brave(key) => brave::search(self, key, query, most).await,
            Kind::Tavily(key) => tavily::search(self, key, query, most).await,
            Kind::Duckduckgo => duckduckgo::search(self, query).await,
        }
    }

    pub(super) fn base(&self) -> &Url {
        &self.base
    }

    /// Asks the engine and reads its whole answer. A redirect is not followed: what the owner
    /// named is what is asked.
    pub(super) async fn ask(
        &self,
        question: Question,
    ) -> Result<(StatusCode, Vec<u8>), SearchError> {
        let target = self.guard.admit(&question.url).await?;
        let response: Response = send::send(&target, |client| {
            let mut request = client
                .request(question.method, question.url)
                .headers(question.headers)
                .header(ACCEPT_ENCODING, body::ACCEPTED);
            if let Some(body) = &question.body {
                request = request.json(body);
            }
            request.build()
        })
        .await?;
        let status = response.status();
        if !status.is_success() {
            return Err(SearchError::Status(status.as_u16()));
        }
        let bytes = body::read(response, &target.host(), MAX_BYTES).await?;
        Ok((status, bytes))
    }

    /// The same for engines that answer in JSON.
    pub(super) async fn ask_json(&self, mut question: Question) -> Result<Value, SearchError> {
        let json = HeaderValue::from_static("application/json");
        question.headers.insert(ACCEPT, json);
        let (_, bytes) = self.ask(question).await?;
        serde_json::from_slice(&bytes)
            .map_err(|_| SearchError::Unexpected("something that is no JSON".to_owned()))
    }
}

/// One request to an engine.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Value>,
}

impl Question {
    pub(super) fn get(url: Url) -> Self {
        Self {
            method: Method::GET,
            url,
            headers: HeaderMap::new(),
            body: None,
        }
    }
}

/// A field's text; empty where it has none.
pub(super) fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

/// Results of a list, each read by `read`; those without a web address are left out.
pub(super) fn hits(list: &Value, read: impl Fn(&Value) -> Hit) -> Vec<Hit> {
    list.as_array()
        .into_iter()
        .flatten()
        .map(read)
        .filter(|hit| hit.url.starts_with("http://") || hit.url.starts_with("https://"))
        .collect()
}
