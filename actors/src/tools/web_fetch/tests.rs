//! `web_fetch` against a server on loopback. What must not be reached is in `tests/security`.

use std::path::Path;
use std::sync::Arc;

use wiremock::matchers::path;
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use super::*;
use crate::documents::fixtures::pdf;
use crate::tools::fake_session::{FakeSession, context};
use crate::tools::net::grants::Grants;

fn tool() -> WebFetch {
    WebFetch::new(Guard::new(Grants::parse("127.0.0.1").unwrap()))
}

fn here() -> ToolContext {
    context(&Arc::new(FakeSession::default()), Path::new("/"))
}

async fn server(at: &str, response: ResponseTemplate) -> MockServer {
    let server = MockServer::start().await;
    add(&server, at, response).await;
    server
}

async fn add(server: &MockServer, at: &str, response: ResponseTemplate) {
    Mock::given(path(at))
        .respond_with(response)
        .mount(server)
        .await;
}

async fn fetched(server: &MockServer, at: &str) -> ToolResult {
    let url = format!("{}{at}", server.uri());
    tool().call(json!({"url": url}), here()).await
}

#[tokio::test]
async fn a_page_comes_as_markdown() {
    let page = "<title>Hello</title><h1>Hello</h1><p>A <b>page</b> &amp; a <a href='/x'>link</a>.";
    let server = server(
        "/a",
        ResponseTemplate::new(200).set_body_raw(page, "text/html"),
    )
    .await;
    let output = fetched(&server, "/a#part").await.unwrap();
    let expected = format!(
        "Title: Hello\nAddress: {0}/a\n\n# Hello\n\nA **page** & a [link]({0}/x).",
        server.uri()
    );
    assert_eq!(output.text, expected);
    let request = &server.received_requests().await.unwrap()[0];
    assert!(!request.headers.contains_key("cookie"));
    assert!(!request.headers.contains_key("referer"));
    assert!(!request.headers.contains_key("authorization"));
}

#[tokio::test]
async fn data_and_text_come_as_they_are() {
    let server = MockServer::start().await;
    let data = r#"{"a": [1, 2], "img": "![x](http://evil.example/)"}"#;
    add(
        &server,
        "/json",
        ResponseTemplate::new(200).set_body_raw(data, "application/vnd.api+json"),
    )
    .await;
    add(
        &server,
        "/text",
        ResponseTemplate::new(200).set_body_raw("plain\ntext", "text/plain; charset=utf-8"),
    )
    .await;
    let windows = b"\xcf\xf0\xe8\xe2\xb3\xf2".to_vec();
    add(
        &server,
        "/old",
        ResponseTemplate::new(200).set_body_raw(windows, "text/plain; Charset=\"windows-1251\""),
    )
    .await;
    add(
        &server,
        "/none",
        ResponseTemplate::new(200).set_body_bytes("no type".as_bytes()),
    )
    .await;
    for (at, expected) in [
        ("/json", data),
        ("/text", "plain\ntext"),
        ("/old", "Привіт"),
    ] {
        let output = fetched(&server, at).await.unwrap();
        assert!(
            output.text.ends_with(&format!("\n\n{expected}")),
            "{}",
            output.text
        );
    }
}

#[tokio::test]
async fn an_error_of_an_api_is_told_with_its_text() {
    let server = MockServer::start().await;
    add(
        &server,
        "/api",
        ResponseTemplate::new(422).set_body_raw(r#"{"error":"no such field"}"#, "application/json"),
    )
    .await;
    add(
        &server,
        "/page",
        ResponseTemplate::new(404).set_body_raw("<p>not here", "text/html"),
    )
    .await;
    add(
        &server,
        "/busy",
        ResponseTemplate::new(429).insert_header("retry-after", "30"),
    )
    .await;
    let output = fetched(&server, "/api").await.unwrap();
    assert!(
        output.text.contains("the server answered 422"),
        "{}",
        output.text
    );
    assert!(output.text.contains("no such field"), "{}", output.text);
    let error = fetched(&server, "/page").await.unwrap_err().to_string();
    assert!(
        error.contains("404 Not Found: there is no such page"),
        "{error}"
    );
    assert!(!error.contains("not here"), "{error}");
    let error = fetched(&server, "/busy").await.unwrap_err().to_string();
    assert!(
        error.contains("429") && error.contains("in 30 s"),
        "{error}"
    );
}

#[tokio::test]
async fn other_types_are_refused_by_their_name() {
    let server = MockServer::start().await;
    add(
        &server,
        "/image",
        ResponseTemplate::new(200).set_body_raw(vec![0_u8; 2048], "image/png"),
    )
    .await;
    add(
        &server,
        "/bytes",
        ResponseTemplate::new(200).set_body_raw(vec![0_u8; 9], "application/octet-stream"),
    )
    .await;
    add(
        &server,
        "/lie",
        ResponseTemplate::new(200).set_body_raw("hello", "application/pdf"),
    )
    .await;
    add(
        &server,
        "/bad.pdf",
        ResponseTemplate::new(200).set_body_raw("%PDF-1.7 nonsense", "application/pdf"),
    )
    .await;
    for (at, said) in [
        ("/image", "it is image/png of 2.0 KiB"),
        ("/bytes", "it is application/octet-stream"),
        ("/lie", "calls it a PDF, but it is none"),
        ("/bad.pdf", "PDF"),
    ] {
        let error = fetched(&server, at).await.unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[tokio::test]
async fn the_parts_of_a_long_text_are_of_one_reading() {
    let text: String = (0..4_000).map(|n| format!("line {n}\n")).collect();
    let server = server(
        "/long",
        ResponseTemplate::new(200).set_body_raw(text, "text/plain"),
    )
    .await;
    let url = format!("{}/long", server.uri());
    let tool = tool();
    let context = here();
    let first = tool
        .call(json!({"url": url}), context.clone())
        .await
        .unwrap();
    let next = first.text.split("start=").nth(1).unwrap();
    let start: u64 = next.split_whitespace().next().unwrap().parse().unwrap();
    assert!(first.text.contains("line 0\n"));
    let args = json!({"url": url, "start": start});
    let second = tool.call(args, context.clone()).await.unwrap();
    assert!(second.text.contains(&format!("Characters {start} to ")));
    let last = first.text.trim_end().rsplit(' ').next().unwrap();
    let following = last.parse::<u64>().unwrap() + 1;
    assert!(
        second.text.contains(&format!("\n\nline {following}\n")),
        "{}",
        second.text
    );
    assert_eq!(server.received_requests().await.unwrap().len(), 1);
    let args = json!({"url": url, "start": 1_000_000});
    let error = tool.call(args, context).await.unwrap_err().to_string();
    assert!(error.contains("after the end"), "{error}");
}

#[tokio::test]
async fn redirects_of_one_host_are_followed_and_others_told() {
    let server = MockServer::start().await;
    let to =
        |status: u16, place: &str| ResponseTemplate::new(status).insert_header("location", place);
    add(&server, "/a", to(301, "/b?x=1")).await;
    add(&server, "/b", to(307, "c")).await;
    add(
        &server,
        "/c",
        ResponseTemplate::new(200).set_body_raw("here", "text/plain"),
    )
    .await;
    add(&server, "/loop", to(302, "/loop")).await;
    let elsewhere = MockServer::start().await;
    add(
        &server,
        "/away",
        to(302, &format!("{}/?q=secret", elsewhere.uri())),
    )
    .await;
    let output = fetched(&server, "/a").await.unwrap();
    assert!(
        output.text.contains(&format!("{}/c", server.uri())),
        "{}",
        output.text
    );
    let error = fetched(&server, "/loop").await.unwrap_err().to_string();
    assert!(error.contains("redirects more than 10 times"), "{error}");
    let output = fetched(&server, "/away").await.unwrap();
    assert!(output.text.starts_with("not followed"), "{}", output.text);
    assert!(output.text.contains(&elsewhere.uri()), "{}", output.text);
    assert!(elsewhere.received_requests().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_person_is_asked_about_the_host() {
    let args = json!({"url": "https://Example.com:8443/a?b=c#d"});
    let proposal = tool().proposal(&args, &here()).await.unwrap();
    assert_eq!(
        proposal.summary.to_string(),
        "read https://example.com:8443/a?b=c"
    );
    assert_eq!(proposal.rule.unwrap().key, "example.com:8443");
    assert_eq!(tool().effect(&args), Effect::Egress);
    let wrong = tool()
        .proposal(&json!({"url": "file:///etc/passwd"}), &here())
        .await;
    assert!(wrong.unwrap_err().to_string().contains("file: addresses"));
}

#[tokio::test]
async fn a_pdf_comes_as_text() {
    let server = MockServer::start().await;
    add(
        &server,
        "/a.pdf",
        ResponseTemplate::new(200).set_body_raw(pdf("The bill is 42 euros"), "application/pdf"),
    )
    .await;
    let unnamed =
        ResponseTemplate::new(200).set_body_raw(pdf("Unnamed"), "application/octet-stream");
    add(&server, "/b", unnamed).await;
    let output = fetched(&server, "/a.pdf").await.unwrap();
    assert!(
        output.text.contains("The bill is 42 euros"),
        "{}",
        output.text
    );
    assert!(
        fetched(&server, "/b")
            .await
            .unwrap()
            .text
            .contains("Unnamed")
    );
}

#[tokio::test]
async fn packed_answers_are_unpacked() {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(b"unpacked").unwrap();
    let packed = encoder.finish().unwrap();
    let server = MockServer::start().await;
    Mock::given(path("/gz"))
        .respond_with(move |request: &Request| {
            let accepted = &request.headers["accept-encoding"];
            assert_eq!(accepted, "gzip");
            ResponseTemplate::new(200)
                .set_body_raw(packed.clone(), "text/plain")
                .insert_header("content-encoding", "gzip")
        })
        .mount(&server)
        .await;
    let output = fetched(&server, "/gz").await.unwrap();
    assert!(output.text.ends_with("unpacked"), "{}", output.text);
}

#[test]
fn parts_come_to_the_whole() {
    let text: String = (0..9_000).map(|n| format!("рядок {n}\n")).collect();
    let mut read = String::new();
    let mut start = 0;
    loop {
        let part = part(&text, start as u64).unwrap();
        read.push_str(part.text);
        assert!(part.text.ends_with('\n'));
        start = part.end;
        if part.end == part.whole {
            assert!(part.place().unwrap().ends_with("the last part"));
            break;
        }
        assert!(part.place().unwrap().contains(&format!("start={start}")));
    }
    assert_eq!(read, text);
    assert!(
        part(&text, 10_000_000)
            .unwrap_err()
            .contains("after the end")
    );
    let short = part("a", 0).unwrap();
    assert_eq!((short.text, short.place()), ("a", None));
    assert_eq!(part("", 0).unwrap().text, "");
    let line = "x".repeat(40_000);
    assert_eq!(part(&line, 0).unwrap().text.len(), PART_CHARS);
}
