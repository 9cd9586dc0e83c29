//! Each engine against a server that answers in its form.

use std::path::Path;
use std::sync::Arc;

use reqwest::Url;
use wiremock::matchers::{body_partial_json, header, method, path, query_param};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::*;
use crate::tools::fake_session::{FakeSession, context};
use crate::tools::net::key::ApiKey;

const KEY: &str = "key-of-the-tests";

fn key() -> ApiKey {
    ApiKey::new(KEY.to_owned()).unwrap()
}

fn base(server: &MockServer, at: &str) -> Url {
    Url::parse(&format!("{}{at}", server.uri())).unwrap()
}

async fn found(engine: SearchEngine, args: Value) -> ToolResult {
    let context = context(&Arc::new(FakeSession::default()), Path::new("/"));
    WebSearch::new(Some(engine)).call(args, context).await
}

fn cats() -> Value {
    json!({"query": "cats & dogs"})
}

#[tokio::test]
async fn searxng_finds() {
    let server = MockServer::start().await;
    let answer = json!({
        "query": "cats & dogs",
        "number_of_results": 0,
        "results": [
            {"url": "https://cats.example/", "title": "Cats", "content": "All about\n cats &amp; more", "engine": "brave", "engines": ["brave"], "positions": [1], "score": 1.0, "category": "general", "publishedDate": "2024-05-01T00:00:00"},
            {"url": "https://dogs.example/", "title": "<b>Dogs</b>", "content": ""},
            {"url": "javascript:alert(1)", "title": "No", "content": "no"},
        ],
        "answers": [{"answer": "42", "url": null}],
        "corrections": [], "infoboxes": [], "suggestions": ["cat"],
        "unresponsive_engines": [["google", "timeout"]],
    });
    Mock::given(method("GET"))
        .and(path("/sx/search"))
        .and(query_param("q", "cats & dogs"))
        .and(query_param("format", "json"))
        .respond_with(ResponseTemplate::new(200).set_body_json(answer))
        .mount(&server)
        .await;
    let engine = SearchEngine::searxng(base(&server, "/sx/"));
    let output = found(engine.clone(), cats()).await.unwrap();
    assert_eq!(
        output.text,
        "Answer: 42\n\n1. Cats\n   https://cats.example/\n   (2024-05-01) All about cats & more\n2. Dogs\n   https://dogs.example/"
    );
    let output = found(engine, json!({"query": "cats & dogs", "max": 1})).await;
    assert!(!output.unwrap().text.contains("Dogs"));
}

#[tokio::test]
async fn a_searxng_that_is_set_up_wrong_is_told() {
    for (status, body, said) in [
        (403, "Forbidden", "json under search.formats"),
        (429, "Too Many Requests", "asked too often"),
        (
            200,
            "<!DOCTYPE html><html>",
            "no JSON; the owner should look at NAVI_SEARXNG_URL",
        ),
        (200, r#"{"hello": 1}"#, "without results"),
        (302, "", "a redirect"),
        (500, "", "has a fault"),
        (
            200,
            r#"{"results": [], "unresponsive_engines": [["google", "CAPTCHA"]]}"#,
            "its engines do not answer (google: CAPTCHA)",
        ),
    ] {
        let server = MockServer::start().await;
        let answer = ResponseTemplate::new(status).set_body_string(body);
        Mock::given(path("/search"))
            .respond_with(answer.insert_header("location", "http://127.0.0.1:1/"))
            .mount(&server)
            .await;
        let engine = SearchEngine::searxng(base(&server, ""));
        let error = found(engine, cats()).await.unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let nobody = SearchEngine::searxng(Url::parse("http://127.0.0.1:9/").unwrap());
    let error = found(nobody, cats()).await.unwrap_err().to_string();
    assert!(error.contains("no connection to 127.0.0.1:9"), "{error}");
    assert!(error.contains("NAVI_SEARXNG_URL"), "{error}");
}

#[tokio::test]
async fn nothing_found_is_no_error() {
    let server = MockServer::start().await;
    Mock::given(path("/search"))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!({"results": []})))
        .mount(&server)
        .await;
    let output = found(SearchEngine::searxng(base(&server, "")), cats()).await;
    assert!(output.unwrap().text.starts_with("nothing was found for"));
}

#[tokio::test]
async fn brave_finds() {
    let server = MockServer::start().await;
    let answer = json!({
        "type": "search",
        "query": {"original": "cats & dogs"},
        "web": {"type": "search", "results": [
            {"title": "Cats", "url": "https://cats.example/", "description": "About <strong>cats</strong>", "age": "May 1, 2024"},
        ]},
    });
    Mock::given(method("GET"))
        .and(path("/web"))
        .and(header("x-subscription-token", KEY))
        .and(query_param("q", "cats & dogs"))
        .and(query_param("count", "8"))
        .respond_with(ResponseTemplate::new(200).set_body_json(answer))
        .mount(&server)
        .await;
    let engine = SearchEngine::brave(key())
        .unwrap()
        .at(base(&server, "/web"));
    let output = found(engine, cats()).await.unwrap();
    assert_eq!(
        output.text,
        "1. Cats\n   https://cats.example/\n   (May 1, 2024) About cats"
    );
}

#[tokio::test]
async fn tavily_finds() {
    let server = MockServer::start().await;
    let answer = json!({
        "query": "cats & dogs", "answer": null, "images": [],
        "results": [{"title": "Cats", "url": "https://cats.example/", "content": "About cats", "score": 0.9, "raw_content": null}],
        "response_time": 1.2,
    });
    Mock::given(method("POST"))
        .and(path("/search"))
        .and(header("authorization", format!("Bearer {KEY}").as_str()))
        .and(body_partial_json(
            json!({"query": "cats & dogs", "max_results": 8}),
        ))
        .respond_with(ResponseTemplate::new(200).set_body_json(answer))
        .mount(&server)
        .await;
    let engine = SearchEngine::tavily(key())
        .unwrap()
        .at(base(&server, "/search"));
    let output = found(engine, cats()).await.unwrap();
    assert_eq!(
        output.text,
        "1. Cats\n   https://cats.example/\n   About cats"
    );
}

#[tokio::test]
async fn a_wrong_key_is_told_and_not_repeated() {
    let server = MockServer::start().await;
    Mock::given(path("/"))
        .respond_with(ResponseTemplate::new(401).set_body_string(KEY))
        .mount(&server)
        .await;
    for (engine, said) in [
        (SearchEngine::brave(key()), "NAVI_BRAVE_API_KEY"),
        (SearchEngine::tavily(key()), "NAVI_TAVILY_API_KEY"),
    ] {
        let engine = engine.unwrap().at(base(&server, "/"));
        assert!(!format!("{engine:?}").contains(KEY));
        let error = found(engine, cats()).await.unwrap_err().to_string();
        assert!(error.contains(said) && !error.contains(KEY), "{error}");
    }
}

const DUCK: &str = r#"<!DOCTYPE html><html><body><div id="links" class="results">
<div class="result results_links results_links_deep result--ad"><h2 class="result__title"><a class="result__a" href="https://duckduckgo.com/y.js?ad_domain=x">Buy</a></h2></div>
<div class="result results_links results_links_deep web-result"><div class="links_main links_deep result__body">
<h2 class="result__title"><a rel="nofollow" class="result__a" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fcats.example%2Fa%3Fb%3Dc&amp;rut=abc">Cats &amp; more</a></h2>
<a class="result__snippet" href="//duckduckgo.com/l/?uddg=x">All about <b>cats</b></a></div></div>
<div class="result web-result"><h2><a class="result__a" href="//duckduckgo.com/l/?uddg=javascript%3Aalert(1)">No</a></h2></div>
</div></body></html>"#;

#[tokio::test]
async fn duckduckgo_finds_and_says_when_it_does_not_let_in() {
    for (status, page, expected) in [
        (
            200,
            DUCK,
            Ok("1. Cats & more\n   https://cats.example/a?b=c\n   All about cats"),
        ),
        (202, "<html>", Err("takes Navi for a robot")),
        (
            200,
            "<div class='anomaly-modal__modal'></div>",
            Err("takes Navi for a robot"),
        ),
        (200, "<p>a new look</p>", Err("another form than is known")),
        (
            200,
            "<div class='no-results'>No results.</div>",
            Ok("nothing was found"),
        ),
    ] {
        let server = MockServer::start().await;
        Mock::given(path("/html/"))
            .respond_with(ResponseTemplate::new(status).set_body_raw(page, "text/html"))
            .mount(&server)
            .await;
        let engine = SearchEngine::duckduckgo()
            .unwrap()
            .at(base(&server, "/html/"));
        match (found(engine, cats()).await, expected) {
            (Ok(output), Ok(text)) => assert!(output.text.starts_with(text), "{}", output.text),
            (Err(error), Err(said)) => assert!(error.to_string().contains(said), "{error}"),
            (got, expected) => assert_eq!(format!("{got:?}"), format!("{expected:?}")),
        }
    }
}

#[tokio::test]
async fn without_an_engine_nothing_is_offered() {
    let tool = WebSearch::new(None);
    assert!(tool.unavailable().unwrap().contains("NAVI_SEARXNG_URL"));
    let context = context(&Arc::new(FakeSession::default()), Path::new("/"));
    let error = tool.call(cats(), context).await.unwrap_err().to_string();
    assert!(error.contains("not set up"), "{error}");
}

#[tokio::test]
async fn a_person_is_asked_about_the_engine() {
    let url = Url::parse("http://searx.lan:8888/x").unwrap();
    let tool = WebSearch::new(Some(SearchEngine::searxng(url)));
    let context = context(&Arc::new(FakeSession::default()), Path::new("/"));
    let proposal = tool.proposal(&cats(), &context).await.unwrap();
    assert_eq!(
        proposal.summary.to_string(),
        "search the web for \"cats & dogs\" with SearXNG"
    );
    assert_eq!(
        proposal.rule.unwrap().key,
        "SearXNG at http://searx.lan:8888"
    );
    assert_eq!(tool.effect(&cats()), Effect::Egress);
}
