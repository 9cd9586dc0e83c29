//! Pictures of an answer that stand elsewhere: shown to who asked for them, from where Navi may
//! reach, and only as pictures of her own making.

use std::net::{IpAddr, Ipv4Addr};

use reqwest::{Method, Response, StatusCode, Url};
use serde_json::Value;

use super::site::{Site, SiteReply, answer, page, redirect};
use super::talking;
use crate::person::Person;
use crate::server::{Server, TOKEN, client};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// A PNG of one red pixel.
const PIXEL: &[u8] = &[
    0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, b'I', b'H', b'D', b'R', 0, 0, 0,
    1, 0, 0, 0, 1, 8, 2, 0, 0, 0, 0x90, 0x77, 0x53, 0xde, 0, 0, 0, 0x0c, b'I', b'D', b'A', b'T',
    0x08, 0xd7, 0x63, 0xf8, 0xcf, 0xc0, 0, 0, 0x03, 0x01, 0x01, 0, 0x18, 0xdd, 0x8d, 0xb0, 0, 0, 0,
    0, b'I', b'E', b'N', b'D', 0xae, 0x42, 0x60, 0x82,
];

async fn image(server: &Server, token: &str, session: &str, url: &str) -> Response {
    let path = format!("{}/sessions/{session}/remote-image", server.url);
    let mut address = Url::parse(&path).unwrap();
    address.query_pairs_mut().append_pair("url", url);
    let request = client().get(address).bearer_auth(token);
    request.send().await.unwrap()
}

async fn refused(server: &Server, session: &str, url: &str) -> (u16, String) {
    let response = image(server, TOKEN, session, url).await;
    let status = response.status().as_u16();
    let told: Value = response.json().await.unwrap();
    (status, format!("{}: {}", told["code"], told["message"]))
}

async fn site() -> Site {
    Site::start(LOOPBACK, |head| {
        let png = |extra: &[u8]| {
            let body = [PIXEL, extra].concat();
            answer("200 OK", &["Content-Type: image/png"], &body)
        };
        match head.split(' ').nth(1).unwrap_or_default() {
            "/a.png" => png(b"hidden words behind the picture"),
            "/page" => page("<svg onload=alert(1)>"),
            "/moved" => redirect("/a.png"),
            "/away" => redirect("http://localhost:9/a.png"),
            "/endless" => SiteReply::Endless(
                b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n".to_vec(),
                vec![0; 1024 * 1024],
                std::time::Duration::ZERO,
            ),
            _ => answer("404 Not Found", &[], b""),
        }
    })
    .await
}

#[tokio::test]
async fn a_picture_from_elsewhere_is_made_anew_and_nothing_else_is_shown() {
    let site = site().await;
    let (_model, server) = talking(&[("NAVI_FETCH_ALLOWED_HOSTS", "127.0.0.1")]);
    let session = server.new_session().await;
    assert!(site.requests().is_empty());
    for path in ["/a.png", "/moved"] {
        let shown = image(&server, TOKEN, &session, &site.url(path)).await;
        assert_eq!(shown.status(), StatusCode::OK, "{path}");
        assert_eq!(shown.headers()["content-type"], "image/png");
        let policy = shown.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("default-src 'none'"), "{policy}");
        let bytes = shown.bytes().await.unwrap();
        assert!(bytes.starts_with(b"\x89PNG"));
        assert!(!String::from_utf8_lossy(&bytes).contains("hidden words"));
    }
    let heads = site.requests().concat().to_ascii_lowercase();
    for told in [
        "cookie:",
        "authorization:",
        "referer:",
        TOKEN,
        session.as_str(),
    ] {
        assert!(
            !heads.contains(&told.to_ascii_lowercase()),
            "{told} in {heads}"
        );
    }
    for (path, status, words) in [
        ("/page", 400, "invalid_image"),
        ("/none", 404, "404"),
        ("/endless", 404, "larger than"),
        // Beyond the host that was granted and asked for only the public network is reached.
        ("/away", 404, "does not reach by itself"),
    ] {
        let (told, message) = refused(&server, &session, &site.url(path)).await;
        assert!(
            told == status && message.contains(words),
            "{path}: {told} {message}"
        );
    }
    for url in [
        "file:///etc/passwd",
        "data:image/png;base64,AA",
        "ftp://x/",
        "http://a:b@127.0.0.1/",
        "x",
    ] {
        let (told, message) = refused(&server, &session, url).await;
        assert_eq!(told, 404, "{url}: {message}");
    }
}

#[tokio::test]
async fn a_picture_of_the_local_network_is_not_asked_for() {
    let site = site().await;
    let (_model, server) = talking(&[]);
    let session = server.new_session().await;
    let port = site.address.port();
    for host in [
        "127.0.0.1",
        "localhost",
        "[::ffff:127.0.0.1]",
        "0x7f.1",
        "169.254.169.254",
    ] {
        let url = format!("http://{host}:{port}/a.png");
        let (status, message) = refused(&server, &session, &url).await;
        assert_eq!(status, 404, "{host}: {message}");
    }
    assert!(site.requests().is_empty());
}

#[tokio::test]
async fn a_picture_is_fetched_for_nobody_in_a_conversation_of_somebody_else() {
    let site = site().await;
    let (_model, server) = talking(&[
        ("NAVI_ACCOUNTS", "on"),
        ("NAVI_FETCH_ALLOWED_HOSTS", "127.0.0.1"),
    ]);
    let anna = Person::join(&server, "Anna", "user").await;
    let borys = Person::join(&server, "Borys", "user").await;
    let body = Some(serde_json::json!({}));
    let made = anna.call(&server, Method::POST, "/sessions", body).await.1;
    let session = made["session_id"].as_str().unwrap();
    let url = site.url("/a.png");
    let his = image(&server, &borys.token, session, &url).await;
    assert_eq!(his.status(), StatusCode::NOT_FOUND);
    assert_eq!(
        his.json::<Value>().await.unwrap()["code"],
        "session_not_found"
    );
    // What the owner granted is for who may reach the local network.
    let hers = image(&server, &anna.token, session, &url).await;
    assert_eq!(
        hers.json::<Value>().await.unwrap()["code"],
        "file_not_found"
    );
    assert!(site.requests().is_empty());
}
