//! The real `navi` as a process, on a port and a data directory of its own.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test code, included by several programs that each use a part of it"
)]

mod login;
mod postgres;

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

pub(crate) use self::login::Login;
use self::postgres::TestDatabase;
use crate::processes::{NOBODY, is_root};

/// How long anything is waited for: only a test that fails ever sees its end.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// `NAVI_API_TOKEN` of every server here.
pub(crate) const TOKEN: &str = "a-token-of-the-tests";

/// A data directory with what every start in it is given.
#[derive(Clone, Debug)]
pub(crate) struct House {
    dir: Arc<TempDir>,
    /// None on SQLite.
    database: Option<Arc<TestDatabase>>,
    variables: Vec<(String, String)>,
    program: PathBuf,
    /// Who starts it, where that is not whoever runs the tests.
    user: Option<u32>,
}

impl House {
    /// A fresh directory; no model server unless `variables` name one.
    pub(crate) fn new(variables: &[(&str, &str)]) -> Self {
        let mut all = vec![
            ("NAVI_BIND".to_owned(), "127.0.0.1:0".to_owned()),
            ("NAVI_API_TOKEN".to_owned(), TOKEN.to_owned()),
            ("STARTER_MODEL".to_owned(), "off".to_owned()),
            // Scripts answer in the order in which they were written.
            ("LLM_PARALLEL".to_owned(), "1".to_owned()),
            ("OLLAMA_HOST".to_owned(), "http://127.0.0.1:9".to_owned()),
        ];
        let database = TestDatabase::create().map(Arc::new);
        if let Some(database) = &database {
            all.push(("DATABASE_URL".to_owned(), database.url()));
        }
        let house = Self {
            dir: Arc::new(tempfile::tempdir().expect("a temporary directory")),
            database,
            variables: all,
            program: program(),
            user: None,
        };
        house.with(variables)
    }

    /// Where it is, its database may be made of one that has the schema.
    pub(crate) fn is_on_postgres(&self) -> bool {
        self.database.is_some()
    }

    /// The same directory, with these variables too.
    pub(crate) fn with(mut self, variables: &[(&str, &str)]) -> Self {
        for (name, value) in variables {
            self.variables.retain(|(known, _)| known != name);
            self.variables
                .push(((*name).to_owned(), (*value).to_owned()));
        }
        self
    }

    /// The same in the hands of a user that is no root.
    pub(crate) fn of_nobody(mut self) -> Self {
        if is_root() {
            let dir = self.dir.path();
            // That user may not pass the folders above ours.
            let program = dir.join("navi");
            copy_program(&self.program, &program);
            std::os::unix::fs::chown(dir, Some(NOBODY), Some(NOBODY)).expect("a new owner");
            (self.program, self.user) = (program, Some(NOBODY));
        }
        self
    }

    /// What every start is given under this name.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let mut variables = self.variables.iter();
        variables
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.clone())
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// A command of `navi` on this directory, with nothing else in its environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.path())
            .env("NAVI_DATA_DIR", self.data_dir())
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::null());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("navi runs")
    }

    /// Starts the service and waits for the end of its banner.
    pub(crate) fn start(&self) -> Server {
        self.start_with(&[])
    }

    /// The same, with more in its environment this once.
    pub(crate) fn start_with(&self, more: &[(&str, &str)]) -> Server {
        match self.try_start_with(more) {
            Ok(server) => server,
            Err(said) => panic!("navi did not start: {said}"),
        }
    }

    /// The same. Where it ends before that: what it said.
    pub(crate) fn try_start_with(&self, more: &[(&str, &str)]) -> Result<Server, String> {
        let log = self.dir.path().join("stderr.log");
        let mut child = self
            .command(&[])
            .env("NAVI_FAULTS_FILE", self.faults_file())
            .envs(more.iter().copied())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).expect("a log"))
            .spawn()
            .expect("navi starts");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let (told, banner) = mpsc::channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = told.send(line);
            }
        });
        let mut server = Server {
            child,
            house: self.clone(),
            banner: Vec::new(),
            url: String::new(),
            log,
        };
        let until = Instant::now() + PATIENCE;
        let is_greeted = |server: &Server| {
            let mut lines = server.banner.iter();
            lines.any(|line| line.contains("`navi link`"))
        };
        while !is_greeted(&server) {
            match banner.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => server.read(line),
                Err(_) => return Err(server.said()),
            }
        }
        Ok(server)
    }

    /// Where faults are armed: see `faults.rs` of the engine.
    fn faults_file(&self) -> PathBuf {
        self.dir.path().join("faults")
    }
}

/// A service that runs. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    house: House,
    pub(crate) banner: Vec<String>,
    /// Without a slash at its end.
    pub(crate) url: String,
    log: PathBuf,
}

impl Server {
    fn read(&mut self, line: String) {
        if line.starts_with("Navi ")
            && let Some(at) = line.find("http")
        {
            self.url = line[at..].trim().to_owned();
        }
        self.banner.push(line);
    }

    /// The process's id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it said on standard error.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// A fresh one-time link.
    pub(crate) fn link(&self) -> String {
        let printed = self.house.run(&["link"]);
        let link = String::from_utf8(printed.stdout).expect("a link");
        assert!(link.contains("/login/"), "{link}");
        link.trim().to_owned()
    }

    /// Logs in, as a browser does by a link.
    pub(crate) async fn log_in(&self) -> Login {
        Login::by(&self.link()).await
    }

    /// `host:port`.
    pub(crate) fn authority(&self) -> &str {
        self.url
            .split_once("://")
            .map_or("", |(_, authority)| authority)
    }

    pub(crate) fn house(&self) -> &House {
        &self.house
    }

    /// Ends it without a warning, as a crash does, and starts it again.
    pub(crate) fn crash_and_restart(mut self) -> Self {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
        self.house.clone().start()
    }

    /// Arms faults from now on, one a line: `POINT=ACTIONS`, `kill POINT:N` or `log POINT`.
    pub(crate) async fn arm(&self, faults: &str) {
        let file = self.house.faults_file();
        let aside = file.with_extension("aside");
        fs::write(&aside, faults).expect("a file");
        fs::rename(&aside, &file).expect("it is put in place");
        let until = Instant::now() + PATIENCE;
        while file.exists() {
            assert!(Instant::now() < until, "nobody arms {faults}");
            // The file's end is the answer; no event tells of it.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Waits for a line of its log.
    pub(crate) async fn says(&self, words: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.said().contains(words) {
            assert!(Instant::now() < until, "it does not say {words}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Asks it to end.
    pub(crate) fn ask_to_end(&self) {
        self.signal("TERM");
    }

    /// Sends it a signal, by its name without `SIG`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("sh")
            .args(["-c", &format!("kill -{name} {}", self.child.id())])
            .status();
        assert!(sent.expect("a shell").success(), "{}", self.said());
    }

    /// Waits for its end.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("its state") {
                return status;
            }
            assert!(Instant::now() < until, "navi does not end: {}", self.said());
            // A process cannot be awaited without owning SIGCHLD; this only asks again.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// A request with the token, and its answer as JSON (null where it is none).
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (StatusCode, Value) {
        let mut request = client()
            .request(method, format!("{}{path}", self.url))
            .bearer_auth(TOKEN);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.expect("an answer");
        let status = response.status();
        let text = response.text().await.expect("a body");
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, body) = self.call(Method::GET, path, None).await;
        assert!(status.is_success(), "GET {path}: {status} {body}");
        body
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        let (status, body) = self.call(Method::POST, path, Some(body)).await;
        assert!(status.is_success(), "POST {path}: {status} {body}");
        body
    }

    /// A new session's id.
    pub(crate) async fn new_session(&self) -> String {
        let created = self.post("/sessions", json!({})).await;
        created["session_id"].as_str().expect("an id").to_owned()
    }

    /// A socket with the token.
    pub(crate) async fn socket(&self, path: &str) -> Socket {
        let headers = [("authorization", format!("Bearer {TOKEN}"))];
        self.socket_with(path, &headers).await.expect("an upgrade")
    }

    /// A tab on a session, from its beginning or after an event.
    pub(crate) async fn tab(&self, session: &str, after: Option<u64>) -> Socket {
        let query = after.map_or_else(String::new, |after| format!("?after={after}"));
        self.socket(&format!("/ws/sessions/{session}{query}")).await
    }

    pub(crate) async fn socket_with(
        &self,
        path: &str,
        headers: &[(&'static str, String)],
    ) -> Result<Socket, tungstenite::Error> {
        let request = self.upgrade(path, headers);
        let (stream, _) = tokio_tungstenite::connect_async(request).await?;
        Ok(Socket { stream })
    }

    /// A tab whose system keeps next to nothing of what it does not read.
    pub(crate) async fn narrow_tab(&self, session: &str) -> Socket {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket
            .set_recv_buffer_size(64 * 1024)
            .expect("a small buffer");
        let address = self.authority().parse().expect("an address");
        let stream = socket.connect(address).await.expect("a connection");
        let headers = [("authorization", format!("Bearer {TOKEN}"))];
        let request = self.upgrade(&format!("/ws/sessions/{session}"), &headers);
        let stream = MaybeTlsStream::Plain(stream);
        let (stream, _) = tokio_tungstenite::client_async(request, stream)
            .await
            .expect("an upgrade");
        Socket { stream }
    }

    fn upgrade(&self, path: &str, headers: &[(&'static str, String)]) -> Request {
        let url = format!("ws://{}{path}", self.authority());
        let mut request = url.into_client_request().expect("a request");
        for (name, value) in headers {
            let value = value.parse().expect("a header's value");
            request.headers_mut().insert(*name, value);
        }
        request
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let said = self.said();
            let tail = said.len().saturating_sub(4000);
            let tail = said.ceil_char_boundary(tail);
            std::io::Write::write_all(&mut std::io::stderr(), &said.as_bytes()[tail..])
                .unwrap_or_default();
        }
    }
}

/// The built program; a copy of it where whoever runs the tests may not pass to the first.
pub(crate) fn program() -> PathBuf {
    std::env::var_os("NAVI_TEST_PROGRAM")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_navi")), PathBuf::from)
}

/// A copy of a program, to be started at once. Another process makes it: what this one writes is
/// busy for as long as a program holds it open that another test starts at that moment.
pub(crate) fn copy_program(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp").args([from, to]).status();
    assert!(copied.unwrap().success(), "{} is copied", from.display());
}

/// A client that follows no redirects and keeps no cookies. It is built once, which takes long;
/// it keeps no connections, which would end with the runtime of the test that opened them.
pub(crate) fn client() -> &'static reqwest::Client {
    static CLIENT: LazyLock<reqwest::Client> = LazyLock::new(|| {
        // Without a provider reqwest refuses to be built, even for plain HTTP.
        let _ = rustls::crypto::ring::default_provider().install_default();
        reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(PATIENCE)
            .pool_max_idle_per_host(0)
            // Bodies as they come.
            .no_gzip()
            .build()
            .expect("a client")
    });
    &CLIENT
}

/// What a socket tells.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    Frame(Value),
    /// Closed, with the code; 1006 where there was no goodbye.
    Closed(u16),
}

/// A WebSocket as a page holds it.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

impl Socket {
    pub(crate) async fn send(&mut self, frame: &Value) {
        self.send_raw(Message::text(frame.to_string())).await;
    }

    pub(crate) async fn send_raw(&mut self, message: Message) {
        self.stream.send(message).await.expect("it is open");
    }

    /// Sends, though the other end may be gone already.
    pub(crate) async fn try_send_raw(&mut self, message: Message) -> bool {
        self.stream.send(message).await.is_ok()
    }

    /// Sends bytes as they are, whatever frames they are of.
    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        let stream = self.stream.get_mut();
        stream.write_all(bytes).await.expect("it is open");
    }

    /// The next frame, or the end.
    pub(crate) async fn next(&mut self) -> Told {
        self.next_after(&[]).await
    }

    /// The same, however long that takes. A socket that nobody reads answers no pings, and is taken
    /// for gone after 45 s.
    pub(crate) async fn whenever(&mut self) -> Told {
        loop {
            match self.stream.next().await {
                Some(Ok(Message::Text(text))) => {
                    return Told::Frame(serde_json::from_str(&text).expect("JSON"));
                }
                Some(Ok(Message::Close(reason))) => {
                    return Told::Closed(reason.map_or(1005, |reason| reason.code.into()));
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Told::Closed(1006),
            }
        }
    }

    /// The next one for who has read these, and says so where nothing comes.
    async fn next_after(&mut self, passed: &[Value]) -> Told {
        match tokio::time::timeout(PATIENCE, self.whenever()).await {
            Ok(told) => told,
            Err(_) => panic!("nothing more is told after {passed:#?}"),
        }
    }

    /// The next frame of this type; others are passed over.
    pub(crate) async fn next_of(&mut self, kind: &str) -> Value {
        let mut passed = Vec::new();
        loop {
            match self.next_after(&passed).await {
                Told::Frame(frame) if frame["type"] == kind => return frame,
                Told::Frame(frame) => passed.push(frame),
                Told::Closed(code) => panic!("closed with {code} before {kind}: {passed:#?}"),
            }
        }
    }

    /// Every frame up to one of this type, that one too.
    pub(crate) async fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut frames = Vec::new();
        loop {
            match self.next_after(&frames).await {
                Told::Frame(frame) => {
                    let found = frame["type"] == kind;
                    frames.push(frame);
                    if found {
                        return frames;
                    }
                }
                Told::Closed(code) => panic!("closed with {code} before {kind}: {frames:#?}"),
            }
        }
    }

    /// The code that it is closed with; frames before that are passed over.
    pub(crate) async fn closed(&mut self) -> u16 {
        loop {
            if let Told::Closed(code) = self.next().await {
                return code;
            }
        }
    }
}

/// A path as text.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}
