//! The settings of the web and the smart home.

use super::*;

fn load_with(pairs: &[(&str, &str)]) -> Result<Loaded, SettingsError> {
    let dir = tempfile::tempdir().unwrap();
    let overrides = Overrides {
        data_dir: Some(dir.path().to_owned()),
        ..Overrides::default()
    };
    let environment = pairs
        .iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    load(&overrides, &environment)
}

#[test]
fn the_first_engine_that_is_set_up_is_the_one() {
    let engine = |pairs: &[(&str, &str)]| {
        let engine = load_with(pairs).unwrap().settings.web.search;
        engine.map(|engine| engine.name())
    };
    let searxng = ("NAVI_SEARXNG_URL", "http://localhost:8888/");
    let brave = ("NAVI_BRAVE_API_KEY", "b");
    let tavily = ("NAVI_TAVILY_API_KEY", "t");
    assert_eq!(engine(&[]), None);
    assert_eq!(engine(&[tavily]), Some("Tavily"));
    assert_eq!(engine(&[tavily, brave]), Some("Brave"));
    assert_eq!(engine(&[tavily, brave, searxng]), Some("SearXNG"));
    let choice = |name| ("NAVI_SEARCH_ENGINE", name);
    assert_eq!(engine(&[searxng, brave, choice("Brave")]), Some("Brave"));
    assert_eq!(engine(&[searxng, choice("off")]), None);
    assert_eq!(engine(&[choice("duckduckgo")]), Some("DuckDuckGo"));
}

#[test]
fn what_is_wrong_is_told_with_its_name() {
    for (pairs, said) in [
        (
            &[("NAVI_SEARCH_ENGINE", "google")][..],
            "NAVI_SEARCH_ENGINE (web.search_engine) is \"google\"",
        ),
        (
            &[("NAVI_SEARCH_ENGINE", "searxng")],
            "NAVI_SEARCH_ENGINE is \"searxng\" but NAVI_SEARXNG_URL is not set",
        ),
        (
            &[("NAVI_SEARCH_ENGINE", "brave")],
            "NAVI_BRAVE_API_KEY is not set",
        ),
        (&[("NAVI_SEARXNG_URL", "searx")], "NAVI_SEARXNG_URL"),
        (
            &[("NAVI_SEARXNG_URL", "http://me:pw@searx.lan/")],
            "NAVI_SEARXNG_URL",
        ),
        (&[("NAVI_BRAVE_API_KEY", "a b")], "[hidden]"),
        (
            &[("NAVI_FETCH_ALLOWED_HOSTS", "10.0.0.0/40")],
            "`10.0.0.0/40` is none",
        ),
        (
            &[("HOME_ASSISTANT_URL", "http://ha.lan:8123")],
            "HOME_ASSISTANT_TOKEN is not",
        ),
        (
            &[("HOME_ASSISTANT_TOKEN", "token")],
            "HOME_ASSISTANT_URL is not",
        ),
    ] {
        let error = load_with(pairs).unwrap_err();
        assert_eq!(error.problems.len(), 1, "{error}");
        assert!(error.to_string().contains(said), "{error}");
        assert!(!error.to_string().contains("pw@"), "{error}");
    }
}

#[test]
fn a_home_is_two_settings() {
    let loaded = load_with(&[
        ("HOME_ASSISTANT_URL", "http://ha.lan:8123/"),
        ("HOME_ASSISTANT_TOKEN", "the.token"),
        ("NAVI_FETCH_ALLOWED_HOSTS", "nas.lan, 192.168.1.0/24"),
    ]);
    let loaded = loaded.unwrap();
    let web = &loaded.settings.web;
    assert_eq!(
        web.home_assistant.as_ref().unwrap().url.as_str(),
        "http://ha.lan:8123/"
    );
    assert_ne!(web.fetch_grants, Default::default());
    assert!(!format!("{loaded:?}").contains("the.token"));
}
