//! Attacks on the doors: the process, its logins, its bodies and what it says.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use command_fds::CommandFdExt as _;
use reqwest::header::{AUTHORIZATION, COOKIE, ORIGIN};
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::ward::SameUser;
use crate::server::{House, PATIENCE, Server, Socket, TOKEN, client};

/// The close code of a socket whose login or token has ended.
const NOT_LOGGED_IN: u16 = 4001;

/// Ends a program that a failed test leaves.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_program_of_the_same_user_reads_the_environment_of_the_service() {
    const CANARY: &str = "a-canary-of-the-environment";
    let same = SameUser::new();
    let mut service = same.command(&same.path("navi"), &[]);
    service
        .env("NAVI_API_TOKEN", CANARY)
        .env("NAVI_BIND", "127.0.0.1:0")
        .env("STARTER_MODEL", "off")
        .env("OLLAMA_HOST", "http://127.0.0.1:9")
        .stdout(Stdio::piped());
    let mut service = Ended(service.spawn().unwrap());
    let said = BufReader::new(service.0.stdout.take().unwrap()).lines();
    let mut said = said.map_while(Result::ok);
    assert!(said.any(|line| line.starts_with("Navi ")), "it started");
    let proc = format!("/proc/{}", service.0.id());
    let run = |file: &str| {
        let file = format!("{proc}/{file}");
        same.command(Path::new("cat"), &[&file]).output().unwrap()
    };
    let read = run("environ");
    let shown = String::from_utf8_lossy(&read.stdout).into_owned();
    assert!(
        !read.status.success() && !shown.contains(CANARY),
        "{read:?}"
    );
    // What tells nothing is read as ever: nobody else was asked.
    assert!(run("stat").status.success());
    drop(said);
}

/// A socket on a session and one on the list, opened with this.
async fn sockets(server: &Server, session: &str, keys: &[(&'static str, String)]) -> [Socket; 2] {
    let origin = ("origin", server.url.clone());
    let headers: Vec<_> = keys.iter().cloned().chain([origin]).collect();
    let session = format!("/ws/sessions/{session}");
    let session = server.socket_with(&session, &headers).await.unwrap();
    let list = server.socket_with("/ws/sessions", &headers).await.unwrap();
    [session, list]
}

async fn are_closed(sockets: [Socket; 2]) {
    let since = Instant::now();
    for mut socket in sockets {
        assert_eq!(socket.closed().await, NOT_LOGGED_IN);
    }
    // A second; more only where the machine has no time for either side.
    assert!(since.elapsed() < Duration::from_secs(30));
}

/// A page, or a script, that reads along after its login was ended elsewhere.
#[tokio::test]
async fn sockets_that_outlive_their_login_or_token() {
    let server = House::new(&[]).start();
    let session = server.new_session().await;
    let (leaving, staying) = (server.log_in().await, server.log_in().await);
    let gone = sockets(&server, &session, &leaving.headers()).await;
    let [mut kept, _list] = sockets(&server, &session, &staying.headers()).await;
    let log_out = client().post(format!("{}/logout", server.url));
    let log_out = log_out
        .header(COOKIE, &leaving.cookie)
        .header("x-navi-key", &leaving.key)
        .header(ORIGIN, &server.url);
    let status = log_out.send().await.unwrap().status();
    assert_eq!(status, StatusCode::NO_CONTENT);
    are_closed(gone).await;

    // Removed by the service, and by another process.
    for by_hand in [false, true] {
        let made = server.post("/api/tokens", json!({"name": "script"})).await;
        let bearer = format!("Bearer {}", made["token"].as_str().unwrap());
        let gone = sockets(&server, &session, &[("authorization", bearer.clone())]).await;
        let id = made["id"].as_str().unwrap();
        if by_hand {
            let removed = server.house().run(&["token", "remove", id]);
            assert!(removed.status.success(), "{removed:?}");
        } else {
            let path = format!("/api/tokens/{id}");
            let (status, _) = server.call(Method::DELETE, &path, None).await;
            assert_eq!(status, StatusCode::NO_CONTENT);
        }
        let asks = client().get(format!("{}/sessions", server.url));
        let asks = asks.header(AUTHORIZATION, bearer).send();
        assert_eq!(asks.await.unwrap().status(), StatusCode::UNAUTHORIZED);
        are_closed(gone).await;
    }
    kept.send(&json!({"type": "no such thing"})).await;
    assert_eq!(kept.next_of("error").await["code"], "unknown_type");
}

/// What a service says is kept in a journal that others read.
#[test]
fn a_login_link_in_the_journal() {
    let house = House::new(&[]);
    let mut service = house.command(&[]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(service.stdout.take().unwrap()).lines();
    let mut said: Vec<String> = Vec::new();
    while !said.iter().any(|line| line.contains("`navi link`")) {
        said.push(lines.next().expect("it greets").unwrap());
    }
    // Told to end, it says no more than it has said by then.
    let ended = Command::new("kill").arg(service.id().to_string()).status();
    assert!(ended.unwrap().success());
    said.extend(lines.map_while(Result::ok));
    service.wait().unwrap();
    assert!(!said.join("\n").contains("/login/"), "{said:#?}");
}

/// A person who starts it at a terminal is shown the way in at once.
#[test]
fn at_a_terminal_the_link_is_printed() {
    let house = House::new(&[]);
    let service = house.command(&[]);
    let mut terminal = Command::new("python3");
    terminal
        .args(["-c", "import pty, sys; pty.spawn(sys.argv[1:])"])
        .arg(service.get_program())
        .envs(service.get_envs().filter_map(|(k, v)| Some((k, v?))))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    // Its end is a hang-up of the terminal, which ends the service.
    let mut terminal = Ended(terminal.spawn().unwrap());
    let mut lines = BufReader::new(terminal.0.stdout.take().unwrap()).lines();
    let link = |line: std::io::Result<String>| line.is_ok_and(|line| line.contains("/login/"));
    assert!(lines.any(link), "no link");
}

/// As a socket unit hands it over, or the program before an upgrade.
#[test]
fn an_open_socket_that_is_handed_over_without_accounts() {
    let house = House::new(&[]);
    let start = |listener: TcpListener| {
        let mut service = house.command(&[]);
        service
            .env("LISTEN_FDS", "1")
            .env("LISTEN_FDS_FIRST_FD", listener.as_raw_fd().to_string())
            .preserved_fds(vec![listener.into()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ended(service.spawn().unwrap())
    };
    let greeting = |service: &mut Ended| {
        let lines = BufReader::new(service.0.stdout.take().unwrap()).lines();
        let mut lines = lines.map_while(Result::ok);
        lines.find(|line| line.starts_with("Navi "))
    };
    let mut refused = start(TcpListener::bind("0.0.0.0:0").unwrap());
    assert_eq!(greeting(&mut refused), None);
    let mut said = String::new();
    let mut stderr = refused.0.stderr.take().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    assert!(!refused.0.wait().unwrap().success());
    assert!(said.contains("NAVI_ACCOUNTS=on"), "{said}");

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let greeted = greeting(&mut start(listener)).unwrap();
    assert!(greeted.contains(&address), "{greeted}");
}

/// A client that sends a byte now and then, and would hold its place for ever.
#[tokio::test]
async fn bodies_that_trickle_in() {
    let server = House::new(&[("NAVI_SLOW_BODY_SECONDS", "1")]).start();
    let session = server.new_session().await;
    let upload = (
        format!("/sessions/{session}/files"),
        "multipart/form-data; boundary=x",
        "--x\r\nContent-Disposition: form-data; name=\"a\"; filename=\"a\"\r\n\r\n",
    );
    let message = (
        format!("/sessions/{session}/messages"),
        "application/json",
        "{\"content\": \"",
    );
    for (path, kind, begin) in [upload, message] {
        let stream = std::net::TcpStream::connect(server.authority()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (mut reading, mut writing) = (stream.try_clone().unwrap(), stream);
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\n\
             Content-Type: {kind}\r\nContent-Length: 1000000\r\n\r\n{begin}",
            server.authority()
        );
        writing.write_all(head.as_bytes()).unwrap();
        // The trickle itself takes time; it ends with the connection, or with the test.
        std::thread::spawn(move || {
            while writing.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        // Head and body may come apart.
        let mut answer = String::new();
        while !answer.contains("body_too_slow") {
            let mut piece = [0; 4096];
            let count = reading.read(&mut piece).expect("it is given up");
            assert_ne!(count, 0, "{path}: {answer}");
            answer.push_str(&String::from_utf8_lossy(&piece[..count]));
        }
        assert!(answer.starts_with("HTTP/1.1 408 "), "{path}: {answer}");
        reading.shutdown(std::net::Shutdown::Both).unwrap();
    }
    let held = server.get(&format!("/sessions/{session}/files")).await;
    assert_eq!(held["files"], json!([]));
}

/// Browsers send a cookie to every port of its host, and so to whoever serves there.
#[tokio::test]
async fn a_program_on_another_port_uses_the_cookie_that_it_is_sent() {
    let server = House::new(&[]).start();
    let session = server.new_session().await;
    let (login, other) = (server.log_in().await, server.log_in().await);
    let ask = async |method: Method, path: &str, key: Option<&str>| {
        let request = client().request(method, format!("{}{path}", server.url));
        let mut request = request
            .header(COOKIE, &login.cookie)
            .header(ORIGIN, &server.url);
        if let Some(key) = key {
            request = request.header("x-navi-key", key);
        }
        request.send().await.unwrap().status()
    };
    let cookie = login.cookie.split_once('=').unwrap().1;
    for wrong in [None, Some(""), Some(cookie), Some(other.key.as_str())] {
        for path in ["/sessions", "/memory/export", "/api/tokens"] {
            let status = ask(Method::GET, path, wrong).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{path} {wrong:?}");
        }
        let status = ask(Method::POST, "/sessions", wrong).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{wrong:?}");
    }
    let path = format!("/ws/sessions/{session}");
    let headers = |key: &str| {
        [
            ("cookie", login.cookie.clone()),
            ("origin", server.url.clone()),
            ("sec-websocket-protocol", format!("navi, navi-key.{key}")),
        ]
    };
    assert!(server.socket_with(&path, &headers("")[..2]).await.is_err());
    let wrong = server.socket_with(&path, &headers(&other.key)).await;
    assert!(wrong.is_err());

    // The page has the other half.
    let key = Some(login.key.as_str());
    assert_eq!(ask(Method::GET, "/sessions", key).await, StatusCode::OK);
    let mut tab = server
        .socket_with(&path, &headers(&login.key))
        .await
        .unwrap();
    tab.send(&json!({"type": "no such thing"})).await;
    assert_eq!(tab.next_of("error").await["code"], "unknown_type");
    // What it shows without a script: nobody knows where that is.
    let file = format!("/sessions/{session}/files/{session}");
    assert_eq!(ask(Method::GET, &file, None).await, StatusCode::NOT_FOUND);
    let status = ask(Method::DELETE, &file, None).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
}
