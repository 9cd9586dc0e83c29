//! TLS of Navi's own: what browsers and programs meet, and a certificate that is renewed.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream as PlainStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::StatusCode;
use reqwest::header::SET_COOKIE;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::fake_model::{FakeModel, Reply, Step};
use crate::server::{House, PATIENCE, Server, TOKEN, text};

/// Where certificates are made, and the pair that Navi is told of.
struct Shelf {
    dir: TempDir,
    certificate: PathBuf,
    key: PathBuf,
}

impl Shelf {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (certificate, key) = (dir.path().join("live.pem"), dir.path().join("live.key"));
        Self {
            dir,
            certificate,
            key,
        }
    }

    /// A new certificate for this machine, and its key, in PEM.
    fn make(&self, name: &str) -> (String, String) {
        let place = |ending: &str| self.dir.path().join(format!("{name}.{ending}"));
        let (settings, certificate, key) = (place("cnf"), place("pem"), place("key"));
        fs::write(
            &settings,
            format!(
                "[req]\nprompt=no\ndistinguished_name=dn\nx509_extensions=v3\n[dn]\nCN={name}\n\
                 [v3]\nbasicConstraints=critical,CA:FALSE\nsubjectAltName=IP:127.0.0.1,DNS:localhost\n"
            ),
        )
        .unwrap();
        let curve = "ec_paramgen_curve:prime256v1";
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", curve, "-nodes"])
            .args(["-days", "2", "-config", text(&settings)])
            .args(["-keyout", text(&key), "-out", text(&certificate)])
            .output()
            .expect("openssl is installed");
        assert!(made.status.success(), "{made:?}");
        let read = |path| fs::read_to_string(path).unwrap();
        (read(certificate), read(key))
    }

    /// Puts a pair where Navi looks, as programs that renew do it.
    fn put(&self, certificate: &str, key: &str) {
        for (path, pem) in [(&self.key, key), (&self.certificate, certificate)] {
            let draft = path.with_extension("draft");
            fs::write(&draft, pem).unwrap();
            fs::rename(draft, path).unwrap();
        }
    }

    fn house(&self, more: &[(&str, &str)]) -> House {
        let files = [
            ("NAVI_TLS_CERTIFICATE", text(&self.certificate)),
            ("NAVI_TLS_KEY", text(&self.key)),
        ];
        House::new(more).with(&files)
    }
}

/// Who trusts this certificate and no other.
fn trusting(pem: &str) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    roots.add(certificate).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

fn client(pem: &str) -> reqwest::Client {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(PATIENCE)
        .pool_max_idle_per_host(0)
        .tls_backend_preconfigured(trusting(pem))
        .build()
        .unwrap()
}

type Socket = WebSocketStream<TlsStream<TcpStream>>;

async fn handshake(server: &Server, pem: &str) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(server.authority()).await?;
    let connector = TlsConnector::from(Arc::new(trusting(pem)));
    let name = ServerName::try_from("localhost").unwrap();
    connector.connect(name, stream).await
}

async fn socket(server: &Server, pem: &str, path: &str) -> Socket {
    let stream = handshake(server, pem).await.unwrap();
    let url = format!("wss://{}{path}", server.authority());
    let mut request = url.into_client_request().unwrap();
    let bearer = format!("Bearer {TOKEN}").parse().unwrap();
    request.headers_mut().insert("authorization", bearer);
    let (socket, _) = tokio_tungstenite::client_async(request, stream)
        .await
        .unwrap();
    socket
}

/// Asks over the socket, and is answered; what else is told is passed over.
async fn ping(socket: &mut Socket) {
    let ping = Message::text(r#"{"type":"ping"}"#);
    socket.send(ping).await.expect("it is open");
    let answered = async {
        loop {
            match socket.next().await.expect("it is open").unwrap() {
                Message::Text(text) if text.contains(r#""type":"pong""#) => return,
                Message::Close(reason) => panic!("closed: {reason:?}"),
                _ => {}
            }
        }
    };
    let answered = tokio::time::timeout(PATIENCE, answered).await;
    answered.expect("a pong");
}

async fn ask(client: &reqwest::Client, server: &Server, path: &str) -> reqwest::Response {
    let request = client.get(format!("{}{path}", server.url));
    request.bearer_auth(TOKEN).send().await.unwrap()
}

async fn new_session(client: &reqwest::Client, server: &Server) -> String {
    let request = client.post(format!("{}/sessions", server.url));
    let made = request.bearer_auth(TOKEN).json(&json!({}));
    let made: Value = made.send().await.unwrap().json().await.unwrap();
    made["session_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_page_and_its_socket_come_by_tls() {
    let shelf = Shelf::new();
    let (certificate, key) = shelf.make("one");
    shelf.put(&certificate, &key);
    let server = shelf.house(&[]).start();
    assert!(
        server.url.starts_with("https://127.0.0.1:"),
        "{}",
        server.url
    );
    let link = server.link();
    assert!(link.starts_with(&server.url), "{link}");
    let client = client(&certificate);
    let page = client.get(&server.url).send().await.unwrap();
    assert_eq!(page.status(), StatusCode::OK);
    assert!(page.text().await.unwrap().contains("<navi-app>"));

    let login = client.get(&link).send().await.unwrap();
    assert_eq!(login.status(), StatusCode::SEE_OTHER);
    let cookie = login.headers()[SET_COOKIE].to_str().unwrap().to_owned();
    assert!(cookie.starts_with("__Host-navi_"), "{cookie}");
    assert!(cookie.contains("; Secure"), "{cookie}");
    let place = login.headers()["location"].to_str().unwrap();
    let page_key = place.strip_prefix("../#key=").unwrap();
    let create = |origin: String| {
        let request = client.post(format!("{}/sessions", server.url));
        let request = request
            .header("cookie", cookie.split(';').next().unwrap())
            .header("x-navi-key", page_key)
            .header("origin", origin);
        request.json(&json!({})).send()
    };
    let made = create(server.url.clone()).await.unwrap();
    assert_eq!(made.status(), StatusCode::CREATED);
    let other = create("https://evil.example".to_owned()).await.unwrap();
    assert_eq!(other.status(), StatusCode::FORBIDDEN);

    let session = new_session(&client, &server).await;
    let mut socket = socket(&server, &certificate, &format!("/ws/sessions/{session}")).await;
    ping(&mut socket).await;
}

#[tokio::test]
async fn a_certificate_is_renewed_while_a_socket_is_open() {
    let shelf = Shelf::new();
    let (first, first_key) = shelf.make("first");
    let (second, second_key) = shelf.make("second");
    shelf.put(&first, &first_key);
    let server = shelf.house(&[]).start();
    let session = new_session(&client(&first), &server).await;
    let mut open = socket(&server, &first, &format!("/ws/sessions/{session}")).await;
    ping(&mut open).await;

    shelf.put(&second, &second_key);
    server.says("the certificate was read again").await;
    handshake(&server, &first).await.unwrap_err();
    let by_second = client(&second);
    let status = ask(&by_second, &server, "/api/status").await.status();
    assert_eq!(status, StatusCode::OK);
    // What was open goes on.
    ping(&mut open).await;

    // A renewal that went wrong, each time in another way, changes nothing.
    let (_, stranger) = shelf.make("stranger");
    for (certificate, key, said) in [
        ("", second_key.as_str(), "has no certificate in PEM"),
        (second.as_str(), "no key", "has no key in PEM"),
        (
            second.as_str(),
            stranger.as_str(),
            "is not that of the certificate",
        ),
    ] {
        shelf.put(certificate, key);
        server.says(said).await;
        let status = ask(&by_second, &server, "/api/status").await.status();
        assert_eq!(status, StatusCode::OK, "{said}");
    }
    ping(&mut open).await;
}

#[tokio::test]
async fn programs_of_the_same_user_trust_this_service_alone() {
    let shelf = Shelf::new();
    let (certificate, key) = shelf.make("one");
    shelf.put(&certificate, &key);
    let model = FakeModel::start();
    // Without the token: they come in by a link of their own, with cookie and key.
    let house = shelf.house(&[("OLLAMA_HOST", &model.url()), ("NAVI_API_TOKEN", "")]);
    let server = house.start();
    let chat = || {
        model.script(Reply::new([Step::text("Here I am.")]));
        house.run(&["chat", "-p", "Are you there?"])
    };
    let answered = chat();
    let said = String::from_utf8_lossy(&answered.stderr).into_owned();
    assert!(answered.status.success(), "{said}");
    assert_eq!(
        String::from_utf8_lossy(&answered.stdout).trim(),
        "Here I am."
    );

    // They know of a renewal, and of none that failed.
    let (second, second_key) = shelf.make("second");
    shelf.put(&second, &second_key);
    server.says("the certificate was read again").await;
    assert!(chat().status.success());
    shelf.put("", "");
    server.says("the certificate stays as it was").await;
    assert!(chat().status.success());

    // Whoever else answers there is not told a thing.
    let note = house.data_dir().join("server.json");
    let mut running: Value = serde_json::from_slice(&fs::read(&note).unwrap()).unwrap();
    running["certificates"] = json!(["00".repeat(32)]);
    fs::write(&note, running.to_string()).unwrap();
    let refused = chat();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && said.contains("does not answer at https://"),
        "{said}"
    );
}

#[tokio::test]
async fn plain_http_is_not_answered_where_there_is_tls() {
    let shelf = Shelf::new();
    let (certificate, key) = shelf.make("one");
    shelf.put(&certificate, &key);
    let server = shelf.house(&[]).start();
    let authority = server.authority().to_owned();
    let answer = tokio::task::spawn_blocking(move || {
        let mut stream = PlainStream::connect(authority).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = b"GET /api/version HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(request).unwrap();
        let mut answer = Vec::new();
        // Closed, by a reset too.
        let _ = stream.read_to_end(&mut answer);
        answer
    });
    let answer = tokio::time::timeout(PATIENCE + Duration::from_secs(5), answer);
    let answer = answer.await.unwrap().unwrap();
    assert!(
        !String::from_utf8_lossy(&answer).contains("HTTP/1.1"),
        "{answer:?}"
    );
    let status = ask(&client(&certificate), &server, "/api/version")
        .await
        .status();
    assert_eq!(status, StatusCode::OK);
}

#[test]
fn wrong_files_and_half_a_pair_are_refused_at_the_start() {
    let shelf = Shelf::new();
    let (certificate, key) = shelf.make("one");
    let (_, stranger) = shelf.make("stranger");
    let refused = |house: House, words: &str| {
        let said = house.try_start_with(&[]).unwrap_err();
        assert!(said.contains(words), "{words}: {said}");
    };
    refused(shelf.house(&[]), "live.pem cannot be read");
    for (certificate, key, words) in [
        ("", key.as_str(), "live.pem has no certificate in PEM"),
        (certificate.as_str(), "", "live.key has no key in PEM"),
        (
            certificate.as_str(),
            stranger.as_str(),
            "is not that of the certificate",
        ),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n",
            key.as_str(),
            "is no certificate in PEM",
        ),
    ] {
        shelf.put(certificate, key);
        refused(shelf.house(&[]), words);
    }
    shelf.put(&certificate, &key);
    let half = House::new(&[("NAVI_TLS_KEY", text(&shelf.key))]);
    refused(half, "NAVI_TLS_KEY is set but NAVI_TLS_CERTIFICATE is not");
    let half = House::new(&[("NAVI_TLS_CERTIFICATE", text(&shelf.certificate))]);
    refused(half, "NAVI_TLS_CERTIFICATE is set but NAVI_TLS_KEY is not");
    let plain = [
        ("NAVI_ACCOUNTS", "on"),
        ("NAVI_PUBLIC_URL", "http://home.example"),
    ];
    refused(shelf.house(&[]).with(&plain), "write https://");
}

#[test]
fn doctor_says_how_long_a_certificate_is_good_and_for_whom() {
    let shelf = Shelf::new();
    let (certificate, key) = shelf.make("one");
    shelf.put(&certificate, &key);
    let look = |more: &[(&str, &str)]| {
        let output = shelf.house(more).run(&["doctor", "--json"]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let checks = report["checks"].as_array().unwrap();
        let found = checks.iter().find(|check| check["name"] == "certificate");
        found.cloned().unwrap_or_else(|| panic!("{report}"))
    };
    let soon = look(&[]);
    assert_eq!(soon["level"], "warning", "it lasts two days: {soon}");
    assert!(soon["detail"].as_str().unwrap().contains("good until"));
    let public = [
        ("NAVI_ACCOUNTS", "on"),
        ("NAVI_PUBLIC_URL", "https://home.example"),
    ];
    let other = look(&public);
    assert_eq!(other["level"], "broken", "{other}");
    assert!(other["detail"].as_str().unwrap().contains("home.example"));
    fs::write(&shelf.key, "").unwrap();
    let useless = look(&[]);
    assert_eq!(useless["level"], "broken", "{useless}");
}
