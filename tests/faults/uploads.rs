//! An upload cut at three quarters, and expiry during use: no partial file is seen.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::{Method, StatusCode};
use sea_orm::{ConnectionTrait as _, Database};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::fake_model::FakeModel;
use crate::rounds::{Chance, rounds};
use crate::server::{House, Server, TOKEN, client};

const END: &[u8] = b"--b--\r\n";

fn body(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, bytes) in files {
        let head = format!(
            "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n"
        );
        body.extend(head.as_bytes());
        body.extend(bytes);
        body.extend(b"\r\n");
    }
    body.extend(END);
    body
}

async fn upload(server: &Server, session: &str, files: &[(String, Vec<u8>)]) -> Vec<Value> {
    let response = client()
        .post(format!("{}/sessions/{session}/files", server.url))
        .bearer_auth(TOKEN)
        .header("content-type", "multipart/form-data; boundary=b")
        .body(body(files))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::CREATED);
    let answer: Value = response.json().await.unwrap();
    answer["files"].as_array().unwrap().clone()
}

/// Begins an upload and sends so much of its body.
async fn begun(server: &Server, session: &str, whole: &[u8], upto: usize) -> TcpStream {
    let mut socket = TcpStream::connect(server.authority()).await.unwrap();
    let head = format!(
        "POST /sessions/{session}/files HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: {}\r\n\r\n",
        server.authority(),
        whole.len()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    socket.write_all(&whole[..upto]).await.unwrap();
    socket
}

async fn list(server: &Server, session: &str) -> Vec<Value> {
    let files = server.get(&format!("/sessions/{session}/files")).await;
    files["files"].as_array().unwrap().clone()
}

/// The files that are half here.
fn on_their_way(server: &Server) -> usize {
    let incoming = server
        .house()
        .data_dir()
        .join("session_files/.files/.incoming");
    fs::read_dir(incoming).map_or(0, Iterator::count)
}

/// What the session's tools find of its files.
fn lent(server: &Server, session: &str) -> Vec<PathBuf> {
    let uploads = format!("session_files/{session}/uploads");
    let found = fs::read_dir(server.house().data_dir().join(uploads));
    let found = found.into_iter().flatten();
    found.map(|entry| entry.unwrap().path()).collect()
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < until, "{what}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_upload_cut_at_three_quarters_or_anywhere_else_is_never_seen() {
    let mut chance = Chance::new();
    let mut server = House::new(&[]).start();
    let session = server.new_session().await;
    let files = [
        ("a.txt".to_owned(), vec![b'x'; 300_000]),
        ("b.txt".to_owned(), vec![b'y'; 300_000]),
    ];
    let whole = body(&files);
    let rounds = rounds(12, 100);
    for round in 0..rounds {
        // The last files' bytes are all there where only the end is cut off.
        let last = whole.len() - END.len() - 1;
        let cut = match round {
            0 | 1 => whole.len() * 3 / 4,
            2 => last,
            _ => usize::try_from(chance.between(1, last as u64)).unwrap(),
        };
        let socket = begun(&server, &session, &whole, cut).await;
        if cut > 1000 {
            until("the upload never came", || on_their_way(&server) > 0).await;
        }
        assert_eq!(list(&server, &session).await, Vec::<Value>::new());
        assert_eq!(lent(&server, &session), Vec::<PathBuf>::new());
        if round % 4 == 1 {
            server = server.crash_and_restart();
        }
        drop(socket);
        until("something is left of it", || on_their_way(&server) == 0).await;
        assert_eq!(list(&server, &session).await, Vec::<Value>::new());
        assert_eq!(lent(&server, &session), Vec::<PathBuf>::new());
    }
    let taken = upload(&server, &session, &files).await;
    assert_eq!(list(&server, &session).await, taken);
    let mut lent: Vec<usize> = lent(&server, &session)
        .iter()
        .map(|path| fs::read(path).unwrap().len())
        .collect();
    lent.sort_unstable();
    assert_eq!(lent, [300_000, 300_000]);
}

/// Sets when the files of these names were used last.
async fn age(house: &House, like: &str, year: u16) {
    let path = house.data_dir().join("navi.db").display().to_string();
    let url = house
        .variable("DATABASE_URL")
        .unwrap_or(format!("sqlite://{path}"));
    let database = Database::connect(url).await.unwrap();
    let age = format!(
        "UPDATE session_files SET last_used_at = '{year}-01-01 00:00:00+00:00' WHERE name LIKE '{like}%'"
    );
    database.execute_unprepared(&age).await.unwrap();
    database.close().await.unwrap();
}

fn budget(session: usize) -> String {
    format!("the budget is {session} ").repeat(4000)
}

/// Uses each file while the sweep that expires them all is under way: whichever is first wins,
/// and wins whole.
#[tokio::test]
async fn a_file_that_expires_while_it_is_used_is_there_whole_or_not_at_all() {
    let model = FakeModel::start();
    let house = House::new(&[
        ("OLLAMA_HOST", &model.url()),
        ("SESSION_FILES_TTL_HOURS", "1"),
    ]);
    for _ in 0..rounds(2, 6) {
        let server = house.start();
        let mut used = Vec::new();
        for at in 0..8 {
            let session = server.new_session().await;
            // Older ones keep the sweep busy while the others are used.
            let old = |n| (format!("old{n}.txt"), b"gone".to_vec());
            let mut files: Vec<_> = (0..12).map(old).collect();
            files.push(("used.txt".to_owned(), budget(at).into_bytes()));
            let taken = upload(&server, &session, &files).await;
            used.push((session, at, taken.last().unwrap().clone()));
        }
        age(&house, "old", 2019).await;
        age(&house, "used", 2020).await;
        drop(server);
        let server = house.start();
        join_all(used.iter().map(async |(session, at, file)| {
            let (message, download) = tokio::join!(
                sent_with(&server, session, file),
                downloaded(&server, session, file),
            );
            if let Some(bytes) = download {
                assert_eq!(bytes, budget(*at).into_bytes());
            }
            let there = list(&server, session).await;
            let there = there.iter().any(|it| it["file_id"] == file["file_id"]);
            assert_eq!(there, message, "{file}");
            let path = server.house().data_dir().join(format!(
                "session_files/{session}/{}",
                file["path"].as_str().unwrap()
            ));
            if message {
                assert_eq!(fs::read(&path).unwrap(), budget(*at).into_bytes());
            }
            let said = server.get(&format!("/sessions/{session}")).await;
            let said = said["messages"].as_array().unwrap().len();
            assert_eq!(said, if message { 2 } else { 0 }, "{file}");
        }))
        .await;
        for chat in model.chats() {
            let asked = chat.last_user_text();
            assert!(
                !asked.contains("used.txt") || asked.contains("the budget is"),
                "{asked}"
            );
        }
    }
    model.assert_clean();
}

/// Whether a message with the file was taken; refused, it has its code.
async fn sent_with(server: &Server, session: &str, file: &Value) -> bool {
    let path = format!("/sessions/{session}/messages");
    let message = json!({"content": "read it", "files": [{"path": file["path"]}]});
    let (status, answer) = server.call(Method::POST, &path, Some(message)).await;
    if status != StatusCode::OK {
        assert_eq!(answer["code"], "file_not_found", "{status} {answer}");
    }
    status == StatusCode::OK
}

async fn downloaded(server: &Server, session: &str, file: &Value) -> Option<Vec<u8>> {
    let id = file["file_id"].as_str().unwrap();
    let url = format!("{}/sessions/{session}/files/{id}", server.url);
    let response = client().get(url).bearer_auth(TOKEN).send().await.unwrap();
    if response.status() == StatusCode::OK {
        return Some(response.bytes().await.unwrap().to_vec());
    }
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    None
}
