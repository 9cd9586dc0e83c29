//! The web and the smart home, as tools use them.

use navi_actors::tools::home_assistant::HomeAssistantConfig;
use navi_actors::tools::net::grants::Grants;
use navi_actors::tools::net::key::ApiKey;
use navi_actors::tools::web_search::SearchEngine;

use super::read::{self, Reader};
use super::{addresses, header_text, keys};

/// What these settings come to.
#[derive(Clone, Debug)]
pub(crate) struct WebSettings {
    pub(crate) search: Option<SearchEngine>,
    pub(crate) fetch_grants: Grants,
    pub(crate) home_assistant: Option<HomeAssistantConfig>,
}

/// `NAVI_SEARCH_ENGINE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Auto,
    Searxng,
    Brave,
    Tavily,
    Duckduckgo,
    Off,
}

/// `None` only together with problems.
pub(super) fn web(r: &mut Reader<'_>) -> Option<WebSettings> {
    let search = search(r);
    let fetch_grants = match r.text(&keys::FETCH_ALLOWED) {
        Some(_) => r.optional(&keys::FETCH_ALLOWED, Grants::parse),
        None => Some(Grants::default()),
    };
    let home_assistant = home_assistant(r);
    Some(WebSettings {
        search: search?,
        fetch_grants: fetch_grants?,
        home_assistant,
    })
}

/// The outer `None` only together with problems.
fn search(r: &mut Reader<'_>) -> Option<Option<SearchEngine>> {
    let choice = r.required(
        &keys::SEARCH_ENGINE,
        read::choice(&[
            ("auto", Choice::Auto),
            ("searxng", Choice::Searxng),
            ("brave", Choice::Brave),
            ("tavily", Choice::Tavily),
            ("duckduckgo", Choice::Duckduckgo),
            ("off", Choice::Off),
        ]),
    );
    let searxng = r
        .optional(&keys::SEARXNG_URL, |text| {
            addresses::service(text, "http://localhost:8888")
        })
        .map(SearchEngine::searxng);
    let brave = r
        .optional(&keys::BRAVE_KEY, api_key)
        .and_then(SearchEngine::brave);
    let tavily = r
        .optional(&keys::TAVILY_KEY, api_key)
        .and_then(SearchEngine::tavily);
    let choice = choice?;
    let (engine, needs) = match choice {
        Choice::Auto => (searxng.or(brave).or(tavily), None),
        Choice::Searxng => (searxng, Some(("searxng", &keys::SEARXNG_URL))),
        Choice::Brave => (brave, Some(("brave", &keys::BRAVE_KEY))),
        Choice::Tavily => (tavily, Some(("tavily", &keys::TAVILY_KEY))),
        Choice::Duckduckgo => (SearchEngine::duckduckgo(), None),
        Choice::Off => (None, None),
    };
    if let (None, Some((name, key))) = (&engine, needs)
        && r.text(key).is_none()
    {
        r.problem(format!(
            "NAVI_SEARCH_ENGINE is \"{name}\" but {} is not set",
            key.variable
        ));
    }
    Some(engine)
}

fn home_assistant(r: &mut Reader<'_>) -> Option<HomeAssistantConfig> {
    let url = r.optional(&keys::HOME_ASSISTANT_URL, |text| {
        addresses::service(text, "http://homeassistant.local:8123")
    });
    let token = r.optional(&keys::HOME_ASSISTANT_TOKEN, api_key);
    let is_set = |key| r.text(key).is_some();
    match (
        is_set(&keys::HOME_ASSISTANT_URL),
        is_set(&keys::HOME_ASSISTANT_TOKEN),
    ) {
        (true, false) => {
            r.problem("HOME_ASSISTANT_URL is set but HOME_ASSISTANT_TOKEN is not".to_owned());
        }
        (false, true) => {
            r.problem("HOME_ASSISTANT_TOKEN is set but HOME_ASSISTANT_URL is not".to_owned());
        }
        (true, true) | (false, false) => {}
    }
    Some(HomeAssistantConfig {
        url: url?,
        token: token?,
    })
}

fn api_key(text: &str) -> Result<ApiKey, String> {
    let text = header_text(text)?;
    ApiKey::new(text).ok_or_else(|| "a key that can stand in a header".to_owned())
}
