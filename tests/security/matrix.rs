//! The matrix: every route, frame and tool of the MCP door, for each who may ask, against the table
//! of who may what as `docs/people.md` prints it. What has no row fails here.

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::talking;
use crate::fake_model::FakeModel;
use crate::person::{Person, answered};
use crate::server::{Server, client};

/// What is for everybody: whatever else is, this test has to be told.
const OPEN: [&str; 24] = [
    "GET /",
    "GET /api/docs",
    "GET /api/docs.css",
    "GET /api/docs.js",
    "GET /api/events.schema.json",
    "GET /api/openapi.json",
    "GET /api/shared",
    "GET /api/shared/events",
    "GET /api/sign-in",
    "GET /api/sign-on/callback",
    "GET /favicon.ico",
    "GET /health",
    "GET /login/{secret}",
    "GET /sw.js",
    "GET /web/{path}",
    "POST /api/invitation",
    "POST /api/invitation/accept",
    "POST /api/sign-in",
    "POST /api/sign-in/passkey/begin",
    "POST /api/sign-in/passkey/finish",
    "POST /api/sign-on",
    "POST /api/sign-on/finish",
    "POST /api/sign-on/logout",
    "POST /api/sign-on/proxy",
];
/// What only a browser does that is signed in: no token, whatever it has.
const BY_BROWSER: [&str; 7] = [
    "DELETE /api/account/passkeys/{passkey_id}",
    "PATCH /api/account/passkeys/{passkey_id}",
    "POST /api/account/passkeys/begin",
    "POST /api/account/passkeys/finish",
    "POST /api/account/recovery-codes",
    "POST /api/account/sign-ons",
    "POST /api/account/sign-ons/finish",
];
const ROLES: [&str; 3] = ["guest", "user", "admin"];
const SCOPES: [&str; 6] = ["read", "run", "consent", "files", "memory", "admin"];
const NOBODYS: &str = "0190a0b0-0000-7000-8000-0000000000ff";
/// Whose it is that is asked for.
const OWNER: &str = "its owner";
/// Without it a token comes no further into the door.
const DOOR_SCOPE: &str = "read";
const MCP_REVISION: &str = "2026-07-28";

/// A row of the table, as `docs/people.md` prints it.
#[derive(Debug)]
struct Row {
    what: String,
    role: String,
    scope: String,
}

fn table() -> Vec<Row> {
    let page = include_str!("../../docs/people.md");
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<&str> = line
            .split('|')
            .map(|cell| cell.trim().trim_matches('`'))
            .collect();
        let [_, what, role, scope, _] = cells[..] else {
            return None;
        };
        let is_row = ROLES.contains(&role) || role == "everybody";
        is_row.then(|| Row {
            what: what.to_owned(),
            role: role.to_owned(),
            scope: scope.to_owned(),
        })
    });
    rows.collect()
}

/// Somebody who asks for what is Borys'.
#[derive(Debug)]
struct Asker {
    who: &'static str,
    token: Option<String>,
    role: &'static str,
    scopes: Vec<&'static str>,
}

impl Asker {
    /// Whether a row lets them.
    fn may(&self, row: &Row) -> bool {
        let rank = |role: &str| ROLES.iter().position(|known| *known == role);
        rank(self.role) >= rank(&row.role) && self.scopes.contains(&row.scope.as_str())
    }

    fn is_owner(&self) -> bool {
        self.who == OWNER
    }
}

/// One conversation of somebody, with all that can be asked for by an id.
struct Things {
    session: String,
    run: String,
    message: String,
    file: String,
}

impl Things {
    async fn of(server: &Server, person: &Person) -> Self {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let ask = |method, path: String, body| async move {
            let (status, body) = person.call(server, method, &path, body).await;
            assert!(status.is_success(), "{path}: {status} {body}");
            body
        };
        let made = ask(Method::POST, "/sessions".to_owned(), Some(json!({}))).await;
        let session = text(&made["session_id"]);
        let one = format!("/sessions/{session}");
        let said = Some(json!({"content": "my secret garden"}));
        ask(Method::POST, format!("{one}/messages"), said).await;
        let snapshot = ask(Method::GET, one.clone(), None).await;
        let message = &snapshot["messages"][0];
        let form = reqwest::multipart::Form::new().part(
            "file",
            reqwest::multipart::Part::bytes(b"a secret".to_vec()).file_name("secret.txt"),
        );
        let upload = client()
            .post(format!("{}{one}/files", server.url))
            .multipart(form);
        let (status, files) = answered(upload.bearer_auth(&person.token), None).await;
        assert!(status.is_success(), "{status} {files}");
        Self {
            run: text(&message["run_id"]),
            message: text(&message["id"]),
            file: text(&files["files"][0]["file_id"]),
            session,
        }
    }

    /// A path with what stands in braces put in.
    fn put_into(&self, path: &str) -> String {
        let path = path
            .replace("{session_id}", &self.session)
            .replace("{run_id}", &self.run)
            .replace("{message_id}", &self.message)
            .replace("{file_id}", &self.file)
            .replace("{category}", "preference")
            .replace("{n}", "1")
            .replace("{name}", "none");
        let mut parts: Vec<&str> = path.split('/').collect();
        for part in &mut parts {
            if part.starts_with('{') {
                *part = NOBODYS;
            }
        }
        parts.join("/")
    }
}

/// A house with people in it, and all of them at the door of one.
struct Matrix {
    _model: FakeModel,
    server: Server,
    borys: Person,
    /// What is asked for.
    of_borys: Things,
    /// What he himself changes, so that the others find the rest as it was.
    twin: Things,
    askers: Vec<Asker>,
    rows: Vec<Row>,
}

impl Matrix {
    async fn new() -> Self {
        let (model, server) = talking(&[("NAVI_ACCOUNTS", "on"), ("NAVI_METRICS", "on")]);
        let anna = Person::join(&server, "Anna", "user").await;
        let borys = Person::join(&server, "Borys", "user").await;
        let hanna = Person::join(&server, "Hanna", "user").await;
        let admin = Person::join(&server, "Olha", "admin").await;
        let person = format!("/api/people/{}", hanna.id);
        let less = Some(json!({"role": "guest"}));
        let demoted = admin.call(&server, Method::PATCH, &person, less);
        assert_eq!(demoted.await.0, StatusCode::NO_CONTENT);
        let revoked = anna.token_for(&server, &SCOPES).await;
        let tokens = anna.call(&server, Method::GET, "/api/tokens", None).await.1;
        let newest = tokens.as_array().unwrap().last().unwrap()["id"].clone();
        let path = format!("/api/tokens/{}", newest.as_str().unwrap());
        let removed = anna.call(&server, Method::DELETE, &path, None).await;
        assert_eq!(removed.0, StatusCode::NO_CONTENT);

        let asker = |who, token: Option<String>, role, scopes: &[&'static str]| Asker {
            who,
            token,
            role,
            scopes: scopes.to_vec(),
        };
        let mut askers = vec![
            asker("nobody", None, "nobody", &[]),
            asker("revoked", Some(revoked), "nobody", &[]),
            asker("guest", Some(hanna.token), "guest", &SCOPES),
            asker("another user", Some(anna.token), "user", &SCOPES),
            asker("admin", Some(admin.token.clone()), "admin", &SCOPES),
            asker(OWNER, Some(borys.token.clone()), "user", &SCOPES),
        ];
        for scope in SCOPES {
            let token = admin.token_for(&server, &[scope]).await;
            askers.push(asker(scope, Some(token), "admin", &[scope]));
        }
        Self {
            _model: model,
            of_borys: Things::of(&server, &borys).await,
            twin: Things::of(&server, &borys).await,
            askers,
            rows: table(),
            server,
            borys,
        }
    }

    /// The rows of what is asked for so.
    fn rows_of(&self, kind: &str) -> Vec<&Row> {
        let rows = self.rows.iter();
        rows.filter(|row| row.what.starts_with(kind)).collect()
    }

    fn request(&self, row: &Row, asker: &Asker) -> RequestBuilder {
        let (method, path) = row.what.split_once(' ').unwrap();
        let reads = ["GET", "HEAD"].contains(&method);
        let changes = asker.is_owner() && !reads;
        let things = if changes { &self.twin } else { &self.of_borys };
        let path = things.put_into(path);
        let url = format!("{}{path}", self.server.url);
        let mut request = client().request(method.parse().unwrap(), url);
        if let Some(token) = &asker.token {
            request = request.bearer_auth(token);
        }
        if !reads && method != "DELETE" {
            request = request.json(&json!({}));
        }
        if path.starts_with("/ws/") {
            request = request
                .header("upgrade", "websocket")
                .header("connection", "upgrade");
        }
        request
    }

    async fn ask(&self, row: &Row, asker: &Asker) {
        let status = self.request(row, asker).send().await.unwrap().status();
        let told = format!("{} by {}: {status}", row.what, asker.who);
        if asker.role == "nobody" {
            // Too many wrong keys are told so.
            let slowed = asker.token.is_some() && status == StatusCode::TOO_MANY_REQUESTS;
            assert!(slowed || status == StatusCode::UNAUTHORIZED, "{told}");
            return;
        }
        if !asker.may(row) || BY_BROWSER.contains(&row.what.as_str()) {
            assert_eq!(status, StatusCode::FORBIDDEN, "{told}");
            return;
        }
        let refused = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN];
        assert!(!refused.contains(&status), "{told}");
        // A socket says so when it is open.
        let path = row.what.split_once(' ').unwrap().1;
        let is_socket = path.starts_with("/ws/");
        if !is_socket && (path.contains("{session_id}") || path.contains("{run_id}")) {
            if !asker.is_owner() {
                assert!(status.is_client_error(), "{told}");
            } else if row.what.starts_with("GET ") && path.matches('{').count() == 1 {
                assert!(status != StatusCode::NOT_FOUND, "{told}");
            }
        }
    }

    /// A call of a tool by the MCP door, and how it is answered: with its status and its text.
    async fn call(&self, tool: &str, arguments: &Value, asker: &Asker) -> (StatusCode, String) {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": MCP_REVISION,
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let message = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments, "_meta": meta},
        });
        let mut request = client()
            .post(format!("{}/api/mcp", self.server.url))
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", MCP_REVISION)
            .header("mcp-method", "tools/call")
            .header("mcp-name", tool)
            .json(&message);
        if let Some(token) = &asker.token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    }
}

#[tokio::test]
async fn every_route_for_each_who_may_ask() {
    let matrix = Matrix::new().await;
    let document: Value = matrix.server.get("/api/openapi.json").await;
    let routes: Vec<&Row> = matrix
        .rows
        .iter()
        .filter(|row| row.what.contains(" /"))
        .collect();
    assert!(routes.len() > 100, "{} rows", routes.len());
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            let what = format!("{} {path}", method.to_uppercase());
            assert!(
                routes.iter().any(|row| row.what == what),
                "{what} has no row"
            );
        }
    }
    for row in routes {
        let (method, path) = row.what.split_once(' ').unwrap();
        let open =
            OPEN.contains(&row.what.as_str()) || method == "HEAD" && !path.starts_with("/api/");
        assert_eq!(row.role == "everybody", open, "{row:?}");
        if open {
            continue;
        }
        for asker in &matrix.askers {
            // It ends what the others ask with.
            if row.what != "DELETE /api/people/{person_id}" || !asker.may(row) {
                matrix.ask(row, asker).await;
            }
        }
    }
    // What was asked for has changed nothing of his.
    let path = format!("/sessions/{}", matrix.of_borys.session);
    let (_, snapshot) = matrix
        .borys
        .call(&matrix.server, Method::GET, &path, None)
        .await;
    assert_eq!(snapshot["messages"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn every_frame_for_each_who_may_ask() {
    let matrix = Matrix::new().await;
    let (server, borys) = (&matrix.server, &matrix.borys);
    let frames = matrix.rows_of("frame ");
    assert_eq!(frames.len(), 9);
    // Another's session is none, by whatever socket.
    let path = format!("/ws/sessions/{}", matrix.of_borys.session);
    for asker in &matrix.askers {
        let bearer = asker.token.as_ref().map(|token| format!("Bearer {token}"));
        let headers: Vec<_> = bearer.map(|it| ("authorization", it)).into_iter().collect();
        let opened = server.socket_with(&path, &headers).await;
        assert_eq!(
            opened.is_ok(),
            asker.scopes.contains(&DOOR_SCOPE),
            "{asker:?}"
        );
        if let (Ok(mut socket), false) = (opened, asker.is_owner()) {
            assert_eq!(socket.closed().await, 4004, "{asker:?}");
        }
    }
    // What each sends into what is their own.
    let sofiia = Person::join(server, "Sofiia", "user").await;
    let hers = Things::of(server, &sofiia).await;
    let changed = format!("/api/people/{}", sofiia.id);
    let (status, _) = server
        .call(Method::PATCH, &changed, Some(json!({"role": "guest"})))
        .await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let asker = |who, token: &str, role, scopes: &[&'static str]| Asker {
        who,
        token: Some(token.to_owned()),
        role,
        scopes: scopes.to_vec(),
    };
    let his = &matrix.twin.session;
    let mut askers = vec![
        (
            asker("guest", &sofiia.token, "guest", &SCOPES),
            &hers.session,
        ),
        (asker(OWNER, &borys.token, "user", &SCOPES), his),
    ];
    for scope in SCOPES {
        let scopes = [DOOR_SCOPE, scope];
        let token = borys.token_for(server, &scopes).await;
        askers.push((asker(scope, &token, "user", &scopes), his));
    }
    for (asker, session) in &askers {
        let bearer = format!("Bearer {}", asker.token.as_ref().unwrap());
        let path = format!("/ws/sessions/{session}");
        let mut socket = server
            .socket_with(&path, &[("authorization", bearer)])
            .await
            .unwrap();
        for row in &frames {
            let name = row.what.trim_start_matches("frame ");
            socket.send(&frame(name)).await;
            // What comes next is refused in its turn.
            socket.send_raw(Message::text("x")).await;
            let mut codes = Vec::new();
            while codes.last() != Some(&json!("invalid_json")) {
                codes.push(socket.next_of("error").await["code"].clone());
            }
            let refused = row.role != "everybody" && !asker.may(row);
            let is_refused = codes.contains(&json!("forbidden"));
            assert_eq!(is_refused, refused, "{name} by {}: {codes:?}", asker.who);
        }
        // So large is a message alone: nobody looks into it who may send none.
        let row = frames.iter().find(|row| row.what == "frame message");
        let expected = if asker.may(row.unwrap()) {
            "invalid_json"
        } else {
            "forbidden"
        };
        socket.send_raw(Message::text("x".repeat(100_000))).await;
        let code = socket.next_of("error").await["code"].clone();
        assert_eq!(code, expected, "{}", asker.who);
    }
}

#[tokio::test]
async fn every_tool_of_the_mcp_door_for_each_who_may_ask() {
    let matrix = Matrix::new().await;
    let tools = matrix.rows_of("tool ");
    let owner = matrix.askers.iter().find(|it| it.is_owner()).unwrap();
    let Things { session, run, .. } = &matrix.of_borys;
    for row in &tools {
        let name = row.what.trim_start_matches("tool ");
        let arguments = match name {
            "approval_answer" => json!({"session_id": session, "approval_id": NOBODYS}),
            "message_send" => json!({"session_id": session, "text": "x"}),
            "run_wait" => json!({"session_id": session, "run_id": run, "cursor": "0"}),
            "approvals_list" | "run_stop" | "session_read" => json!({"session_id": session}),
            "memory_add" => json!({"category": "people", "key": "sister", "value": "Anna"}),
            "memory_search" | "sessions_search" => json!({"query": "garden"}),
            _ => json!({}),
        };
        for asker in &matrix.askers {
            let (status, text) = matrix.call(name, &arguments, asker).await;
            let told = format!("{name} by {}: {status} {text}", asker.who);
            if asker.role == "nobody" {
                let slowed = asker.token.is_some() && status == StatusCode::TOO_MANY_REQUESTS;
                assert!(slowed || status == StatusCode::UNAUTHORIZED, "{told}");
            } else if !asker.scopes.contains(&DOOR_SCOPE) {
                assert_eq!(status, StatusCode::FORBIDDEN, "{told}");
            } else {
                assert_eq!(status, StatusCode::OK, "{told}");
                assert_eq!(text.contains("forbidden: "), !asker.may(row), "{told}");
                let names_his = arguments["session_id"] == *session;
                if asker.may(row) && names_his && !asker.is_owner() {
                    assert!(text.contains("_not_found: "), "{told}");
                }
                assert!(
                    asker.is_owner() || !text.contains("secret garden"),
                    "{told}"
                );
            }
        }
    }
    // Each that is offered has a row, and what is his he finds.
    let (_, found) = matrix
        .call("sessions_search", &json!({"query": "garden"}), owner)
        .await;
    assert!(found.contains("secret garden"), "{found}");
}

fn frame(name: &str) -> Value {
    match name {
        "message" => json!({"type": "message", "content": "x"}),
        "withdraw" => json!({"type": "withdraw", "message_id": NOBODYS}),
        "edit_queued" => json!({"type": "edit_queued", "message_id": NOBODYS, "content": "x"}),
        "approve" => json!({"type": "approve", "approval_id": NOBODYS, "decision": "once"}),
        "resolve_call" => json!({"type": "resolve_call", "call_id": "c", "decision": "skip"}),
        "edit_plan" => json!({"type": "edit_plan", "edit": "add", "text": "x"}),
        other => json!({"type": other}),
    }
}
