//! Several people: who may what, and attacks on accounts.

use reqwest::header::ORIGIN;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::talking;
use crate::fake_model::FakeModel;
use crate::person::{PASSWORD, Person, accept, answered, came_in, secret_of, sign_in, with};
use crate::server::{House, Login, Server, client};

/// The close code of a socket whose login or token opens nothing any more, or something else.
const NOT_LOGGED_IN: u16 = 4001;
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
const BY_BROWSER: [&str; 4] = [
    "DELETE /api/account/passkeys/{passkey_id}",
    "PATCH /api/account/passkeys/{passkey_id}",
    "POST /api/account/passkeys/begin",
    "POST /api/account/passkeys/finish",
];
const ROLES: [&str; 3] = ["guest", "user", "admin"];
const SCOPES: [&str; 6] = ["read", "run", "consent", "files", "memory", "admin"];
const NOBODYS: &str = "0190a0b0-0000-7000-8000-0000000000ff";

fn with_accounts(variables: &[(&str, &str)]) -> (FakeModel, Server) {
    let all: Vec<_> = [("NAVI_ACCOUNTS", "on"), ("NAVI_METRICS", "on")]
        .into_iter()
        .chain(variables.iter().copied())
        .collect();
    talking(&all)
}

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

/// Somebody who asks.
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

    /// Whether a path names one of these.
    fn are_named_by(&self, path: &str) -> bool {
        path.contains(&self.session) || path.contains(&self.run)
    }
}

/// Every route and every frame, for each who may ask, against the table in the document.
#[tokio::test]
async fn the_matrix_of_who_may_what() {
    let (_model, server) = with_accounts(&[]);
    let anna = Person::join(&server, "Anna", "user").await;
    let borys = Person::join(&server, "Borys", "user").await;
    let hanna = Person::join(&server, "Hanna", "user").await;
    let admin = Person::join(&server, "Olha", "admin").await;
    let of_borys = Things::of(&server, &borys).await;
    let of_hanna = Things::of(&server, &hanna).await;
    let of_anna = Things::of(&server, &anna).await;
    let person = format!("/api/people/{}", hanna.id);
    let demoted = admin.call(
        &server,
        Method::PATCH,
        &person,
        Some(json!({"role": "guest"})),
    );
    assert_eq!(demoted.await.0, StatusCode::NO_CONTENT);
    let revoked = anna.token_for(&server, &SCOPES).await;
    let tokens = anna.call(&server, Method::GET, "/api/tokens", None).await.1;
    let newest = tokens.as_array().unwrap().last().unwrap()["id"].clone();
    let path = format!("/api/tokens/{}", newest.as_str().unwrap());
    let removed = anna.call(&server, Method::DELETE, &path, None).await;
    assert_eq!(removed.0, StatusCode::NO_CONTENT);

    let asker = |who, token: Option<&String>, role, scopes: &[&'static str]| Asker {
        who,
        token: token.cloned(),
        role,
        scopes: scopes.to_vec(),
    };
    let mut askers = vec![
        asker("nobody", None, "nobody", &[]),
        asker("revoked", Some(&revoked), "nobody", &[]),
        asker("guest", Some(&hanna.token), "guest", &SCOPES),
        asker("another user", Some(&anna.token), "user", &SCOPES),
        asker("admin", Some(&admin.token), "admin", &SCOPES),
    ];
    for scope in SCOPES {
        let token = admin.token_for(&server, &[scope]).await;
        askers.push(asker(scope, Some(&token), "admin", &[scope]));
    }

    let rows = table();
    let routes: Vec<&Row> = rows
        .iter()
        .filter(|row| !row.what.starts_with("frame "))
        .collect();
    let document: Value = server.get("/api/openapi.json").await;
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
    for row in &routes {
        let (method, path) = row.what.split_once(' ').unwrap();
        let open =
            OPEN.contains(&row.what.as_str()) || method == "HEAD" && !path.starts_with("/api/");
        assert_eq!(row.role == "everybody", open, "{row:?}");
        if open {
            continue;
        }
        let path = of_borys.put_into(path);
        for asker in &askers {
            // It ends what the others ask with.
            if row.what == "DELETE /api/people/{person_id}" && asker.may(row) {
                continue;
            }
            let mut request =
                client().request(method.parse().unwrap(), format!("{}{path}", server.url));
            if let Some(token) = &asker.token {
                request = request.bearer_auth(token);
            }
            if method != "GET" && method != "DELETE" && method != "HEAD" {
                request = request.json(&json!({}));
            }
            if path.starts_with("/ws/") {
                request = request
                    .header("upgrade", "websocket")
                    .header("connection", "upgrade");
            }
            let response = request.send().await.unwrap();
            let status = response.status();
            let told = || format!("{} by {}: {status}", row.what, asker.who);
            if asker.role == "nobody" {
                // Too many wrong keys are told so.
                let slowed = asker.token.is_some() && status == StatusCode::TOO_MANY_REQUESTS;
                assert!(slowed || status == StatusCode::UNAUTHORIZED, "{}", told());
            } else if asker.may(row) && !BY_BROWSER.contains(&row.what.as_str()) {
                assert!(
                    status != StatusCode::UNAUTHORIZED && status != StatusCode::FORBIDDEN,
                    "{}",
                    told()
                );
                // A socket says so when it is open.
                if of_borys.are_named_by(&path) && !path.starts_with("/ws/") {
                    assert!(status.is_client_error(), "{}", told());
                }
            } else {
                assert_eq!(status, StatusCode::FORBIDDEN, "{}", told());
            }
        }
    }

    // What was asked for has changed nothing of his.
    let snapshot = borys
        .call(
            &server,
            Method::GET,
            &format!("/sessions/{}", of_borys.session),
            None,
        )
        .await;
    assert_eq!(snapshot.1["messages"].as_array().unwrap().len(), 2);

    let frames: Vec<&Row> = rows
        .iter()
        .filter(|row| row.what.starts_with("frame "))
        .collect();
    assert_eq!(frames.len(), 9);
    let run = anna.token_for(&server, &["read", "run"]).await;
    let consent = anna.token_for(&server, &["read", "consent"]).await;
    for (asker, session) in [
        (
            asker("guest", Some(&hanna.token), "guest", &SCOPES),
            &of_hanna.session,
        ),
        (
            asker("run", Some(&run), "user", &["read", "run"]),
            &of_anna.session,
        ),
        (
            asker("consent", Some(&consent), "user", &["read", "consent"]),
            &of_anna.session,
        ),
    ] {
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
    }
    // Another's session is none, by whatever socket.
    let bearer = [("authorization", format!("Bearer {}", anna.token))];
    let path = format!("/ws/sessions/{}", of_borys.session);
    let mut socket = server.socket_with(&path, &bearer).await.unwrap();
    assert_eq!(socket.closed().await, 4004);
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

async fn refused(came: Result<Login, (StatusCode, Value)>, status: StatusCode, code: &str) {
    let (said, body) = came.expect_err("it is refused");
    assert_eq!((said, &body["code"]), (status, &json!(code)), "{body}");
}

#[tokio::test]
async fn an_invitation_used_twice_and_by_two_at_once() {
    let (_model, server) = with_accounts(&[]);
    let invited = server
        .post("/api/invitations", json!({"role": "user"}))
        .await;
    let secret = secret_of(&invited);
    let password = PASSWORD;
    let (one, other) = tokio::join!(
        accept(&server, &secret, "Anna", password),
        accept(&server, &secret, "Borys", password)
    );
    assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
    let again = accept(&server, &secret, "Vira", password).await;
    refused(again, StatusCode::NOT_FOUND, "invitation_not_found").await;
    let people = server.get("/api/people").await;
    assert_eq!(people.as_array().unwrap().len(), 2, "{people}");
    // One that was taken back is none.
    let invited = server
        .post("/api/invitations", json!({"role": "user"}))
        .await;
    let path = format!("/api/invitations/{}", invited["id"].as_str().unwrap());
    let (status, _) = server.call(Method::DELETE, &path, None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let late = accept(&server, &secret_of(&invited), "Vira", password).await;
    refused(late, StatusCode::NOT_FOUND, "invitation_not_found").await;
}

#[tokio::test]
async fn names_that_look_alike() {
    let (_model, server) = with_accounts(&[]);
    Person::join(&server, "Anna", "user").await;
    for name in ["anna", "ANNA", "Аnna", "\u{ff21}nna"] {
        let invited = server
            .post("/api/invitations", json!({"role": "user"}))
            .await;
        let taken = accept(&server, &secret_of(&invited), name, PASSWORD).await;
        refused(taken, StatusCode::CONFLICT, "name_taken").await;
    }
    // However she writes it, it is she.
    assert!(sign_in(&server, " anna", PASSWORD).await.is_ok());
}

#[tokio::test]
async fn guessing_a_password_and_an_account() {
    let (_model, server) = with_accounts(&[]);
    Person::join(&server, "Anna", "user").await;
    let wrong = sign_in(&server, "Anna", "another password").await;
    let nobody = sign_in(&server, "Nobody", "another password").await;
    assert_eq!(wrong.as_ref().unwrap_err(), nobody.as_ref().unwrap_err());
    refused(wrong, StatusCode::UNAUTHORIZED, "unauthorized").await;
    let mut last = nobody;
    // One more is free every six seconds, and each takes its time.
    for _ in 0..40 {
        last = sign_in(&server, "Anna", "another password").await;
        if matches!(&last, Err((StatusCode::TOO_MANY_REQUESTS, _))) {
            break;
        }
    }
    refused(last, StatusCode::TOO_MANY_REQUESTS, "rate_limited").await;
    // When the next is heard, and no guess.
    let body = json!({"name": "Anna", "password": "another password"});
    let again = client().post(format!("{}/api/sign-in", server.url));
    let again = again.json(&body).send().await.unwrap();
    assert_eq!(again.status(), StatusCode::TOO_MANY_REQUESTS);
    let after: u64 = again.headers()["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=6).contains(&after), "{after}");
    let told: Value = again.json().await.unwrap();
    assert!(
        told["message"]
            .as_str()
            .unwrap()
            .contains(&format!("in {after} s")),
        "{told}"
    );
    let record = server.get("/api/record").await;
    let failed = record.as_array().unwrap().iter();
    let failed = failed.filter(|line| line["what"] == "sign_in_failed");
    assert!(failed.clone().count() >= 9, "{record}");
    assert!(failed.clone().all(|line| line["address"] == "127.0.0.1"));
    assert!(!record.to_string().contains("another password"));
}

#[tokio::test]
async fn links_guessed() {
    let (_model, server) = with_accounts(&[]);
    let mut last = Ok(());
    for n in 0..40 {
        let guessed = accept(&server, &format!("{n:064}"), "Anna", PASSWORD).await;
        last = guessed.map(drop);
    }
    assert_eq!(last.unwrap_err().0, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn cross_site_sign_in_and_sign_out() {
    let (_model, server) = with_accounts(&[]);
    let anna = Person::join(&server, "Anna", "user").await;
    let body = json!({"name": "Anna", "password": PASSWORD});
    let request = client().post(format!("{}/api/sign-in", server.url));
    let request = request.header(ORIGIN, "http://evil.example");
    let (status, said) = answered(request, Some(body)).await;
    assert_eq!(
        (status, &said["code"]),
        (StatusCode::FORBIDDEN, &json!("forbidden_origin"))
    );
    let mut request = client().post(format!("{}/logout", server.url));
    for (name, value) in anna.login.headers() {
        request = request.header(name, value);
    }
    let (status, _) = answered(request.header(ORIGIN, "http://evil.example"), None).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    let asks = with(&server, Method::GET, "/api/account", &anna.login);
    assert_eq!(
        answered(asks, None).await.0,
        StatusCode::OK,
        "she is signed in"
    );
}

#[tokio::test]
async fn a_session_that_an_attacker_fixed() {
    let (_model, server) = with_accounts(&[]);
    let attacker = Person::join(&server, "Mallory", "user").await;
    Person::join(&server, "Anna", "user").await;
    // Her browser comes with a cookie of his, and signs in.
    let body = json!({"name": "Anna", "password": PASSWORD});
    let request = client().post(format!("{}/api/sign-in", server.url));
    let request = request.header("cookie", &attacker.login.cookie);
    let response = request.json(&body).send().await.unwrap();
    let cookie = response.headers()["set-cookie"].to_str().unwrap();
    assert!(
        !cookie.starts_with(&attacker.login.cookie),
        "a login of her own"
    );
    let his = with(&server, Method::GET, "/api/account", &attacker.login);
    assert_eq!(answered(his, None).await.1["name"], "Mallory");
}

#[tokio::test]
async fn a_cookie_of_another_person_beside_a_token() {
    let (_model, server) = with_accounts(&[]);
    let anna = Person::join(&server, "Anna", "user").await;
    let borys = Person::join(&server, "Borys", "user").await;
    let request = with(&server, Method::GET, "/api/account", &anna.login);
    let (status, account) = answered(request.bearer_auth(&borys.token), None).await;
    assert_eq!(
        (status, &account["name"]),
        (StatusCode::OK, &json!("Borys"))
    );
    let request = with(&server, Method::GET, "/api/account", &anna.login);
    let (status, _) = answered(request.bearer_auth("navi_wrong"), None).await;
    assert_eq!(
        status,
        StatusCode::UNAUTHORIZED,
        "a wrong token is not made good by a cookie"
    );
    let mut mixed = client().get(format!("{}/api/account", server.url));
    mixed = mixed.header("cookie", &anna.login.cookie);
    let (status, _) = answered(mixed.header("x-navi-key", &borys.login.key), None).await;
    assert_eq!(
        status,
        StatusCode::UNAUTHORIZED,
        "halves of two logins are none"
    );
}

#[tokio::test]
async fn a_removed_account_with_open_tabs() {
    let (_model, server) = with_accounts(&[]);
    for by_hand in [false, true] {
        let anna = Person::join(&server, "Anna", "user").await;
        let made = anna
            .call(&server, Method::POST, "/sessions", Some(json!({})))
            .await
            .1;
        let path = format!("/ws/sessions/{}", made["session_id"].as_str().unwrap());
        let by_token = [("authorization", format!("Bearer {}", anna.token))];
        let origin = ("origin", server.url.clone());
        let by_login: Vec<_> = anna.login.headers().into_iter().chain([origin]).collect();
        let mut tabs = [
            server.socket_with(&path, &by_token).await.unwrap(),
            server.socket_with(&path, &by_login).await.unwrap(),
        ];
        if by_hand {
            let asked = server.house().run(&["user", "remove", "Anna"]);
            assert!(!asked.status.success(), "it asks first");
            let removed = server.house().run(&["user", "remove", "anna", "--yes"]);
            assert!(removed.status.success(), "{removed:?}");
        } else {
            let path = format!("/api/people/{}", anna.id);
            let (status, _) = server.call(Method::DELETE, &path, None).await;
            assert_eq!(status, StatusCode::NO_CONTENT);
        }
        for tab in &mut tabs {
            assert_eq!(tab.closed().await, NOT_LOGGED_IN);
        }
        let (status, _) = anna.call(&server, Method::GET, "/api/account", None).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        refused(
            sign_in(&server, "Anna", PASSWORD).await,
            StatusCode::UNAUTHORIZED,
            "unauthorized",
        )
        .await;
        let people = server.get("/api/people").await;
        assert_eq!(people.as_array().unwrap().len(), 1, "{people}");
    }
}

#[tokio::test]
async fn a_demoted_admin_in_mid_request() {
    let (_model, server) = with_accounts(&[]);
    let olha = Person::join(&server, "Olha", "admin").await;
    let people = "/api/people";
    assert_eq!(
        olha.call(&server, Method::GET, people, None).await.0,
        StatusCode::OK
    );
    let by_token = [("authorization", format!("Bearer {}", olha.token))];
    let mut list = server.socket_with("/ws/sessions", &by_token).await.unwrap();
    let demoted = server.house().run(&["user", "role", "Olha", "user"]);
    assert!(demoted.status.success(), "{demoted:?}");
    let (status, said) = olha.call(&server, Method::GET, people, None).await;
    assert_eq!(
        (status, &said["code"]),
        (StatusCode::FORBIDDEN, &json!("forbidden"))
    );
    assert_eq!(
        list.closed().await,
        NOT_LOGGED_IN,
        "what she had open as an admin"
    );
    // And the last admin stays one.
    let everybody = server.get(people).await;
    let local = everybody
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["you"] == true);
    let path = format!("{people}/{}", local.unwrap()["id"].as_str().unwrap());
    for (method, body) in [
        (Method::PATCH, Some(json!({"role": "user"}))),
        (Method::DELETE, None),
    ] {
        let (status, said) = server.call(method, &path, body).await;
        assert_eq!(
            (status, &said["code"]),
            (StatusCode::FORBIDDEN, &json!("forbidden"))
        );
    }
}

#[tokio::test]
async fn a_password_that_is_changed_and_codes_that_recover() {
    let (_model, server) = with_accounts(&[]);
    let anna = Person::join(&server, "Anna", "user").await;
    let elsewhere = sign_in(&server, "Anna", PASSWORD).await.unwrap();
    let path = "/api/account";
    let change =
        |current: &str| json!({"password": "another password", "current_password": current});
    let request = with(&server, Method::PATCH, path, &anna.login);
    let (status, _) = answered(request, Some(change("wrong"))).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let request = with(&server, Method::PATCH, path, &anna.login);
    let (status, _) = answered(request, Some(change(PASSWORD))).await;
    assert_eq!(status, StatusCode::OK);
    let request = with(&server, Method::GET, path, &elsewhere);
    assert_eq!(answered(request, None).await.0, StatusCode::UNAUTHORIZED);
    let request = with(&server, Method::GET, path, &anna.login);
    assert_eq!(answered(request, None).await.0, StatusCode::OK);
    assert!(sign_in(&server, "Anna", PASSWORD).await.is_err());

    let request = with(
        &server,
        Method::POST,
        "/api/account/recovery-codes",
        &anna.login,
    );
    let codes = answered(request, None).await.1;
    let code = codes["codes"][0].as_str().unwrap().to_uppercase();
    let body = json!({"name": "Anna", "recovery_code": code});
    assert!(came_in(&server, "/api/sign-in", body.clone()).await.is_ok());
    let again = came_in(&server, "/api/sign-in", body).await;
    refused(again, StatusCode::UNAUTHORIZED, "unauthorized").await;
    // The password was lost: nobody who found it comes in, and she chooses another.
    let found = sign_in(&server, "Anna", "another password").await;
    refused(found, StatusCode::UNAUTHORIZED, "unauthorized").await;
    let request = with(&server, Method::PATCH, path, &anna.login);
    let chosen = json!({"password": "a third password"});
    assert_eq!(answered(request, Some(chosen)).await.0, StatusCode::OK);
    assert!(sign_in(&server, "Anna", "a third password").await.is_ok());
}

#[tokio::test]
async fn a_token_that_begins_what_it_may_not_answer() {
    let (_model, server) = with_accounts(&[]);
    let anna = Person::join(&server, "Anna", "user").await;
    let run = anna.token_for(&server, &["read", "run"]).await;
    let ask = |path: &str, body: Value| {
        let request = client().post(format!("{}{path}", server.url));
        answered(request.bearer_auth(&run), Some(body))
    };
    let (status, made) = ask("/sessions", json!({})).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let messages = format!(
        "/sessions/{}/messages",
        made["session_id"].as_str().unwrap()
    );
    for (path, body) in [
        ("/sessions", json!({"mode": "auto"})),
        (
            messages.as_str(),
            json!({"content": "x", "consent": "allow"}),
        ),
    ] {
        let (status, said) = ask(path, body).await;
        assert_eq!(
            (status, &said["code"]),
            (StatusCode::FORBIDDEN, &json!("forbidden"))
        );
    }
    let (status, _) = ask(&messages, json!({"content": "x"})).await;
    assert_eq!(status, StatusCode::OK);
}

/// What opens less makes nothing that opens more.
#[tokio::test]
async fn a_token_that_makes_a_better_one() {
    let (_model, server) = with_accounts(&[]);
    let anna = Person::join(&server, "Anna", "user").await;
    let weak = anna.token_for(&server, &["read", "admin"]).await;
    let make = |scopes: Value| {
        let request = client()
            .post(format!("{}/api/tokens", server.url))
            .bearer_auth(&weak);
        answered(request, Some(json!({"name": "more", "scopes": scopes})))
    };
    assert_eq!(make(json!(["consent"])).await.0, StatusCode::FORBIDDEN);
    assert_eq!(make(json!(["read"])).await.0, StatusCode::CREATED);
    assert_eq!(make(json!([])).await.0, StatusCode::BAD_REQUEST);
}

/// Who says to come from somewhere else is counted where they are.
#[tokio::test]
async fn an_address_that_a_stranger_claims() {
    let claim = async |server: &Server| {
        let body = json!({"name": "Nobody", "password": "wrong password"});
        let request = client().post(format!("{}/api/sign-in", server.url));
        let request = request.header("x-forwarded-for", "203.0.113.9, 198.51.100.7");
        answered(request, Some(body)).await;
        let record = server.get("/api/record").await;
        record[0]["address"].as_str().unwrap().to_owned()
    };
    let (_model, server) = with_accounts(&[]);
    assert_eq!(claim(&server).await, "127.0.0.1");
    let (_model, behind) =
        with_accounts(&[("NAVI_TRUSTED_PROXIES", "127.0.0.0/8, 198.51.100.0/24")]);
    assert_eq!(claim(&behind).await, "203.0.113.9");
}

#[tokio::test]
async fn a_public_name_with_a_secure_cookie() {
    let (_model, server) = with_accounts(&[("NAVI_PUBLIC_URL", "https://home.example/navi/")]);
    Person::join(&server, "Anna", "user").await;
    let body = json!({"name": "Anna", "password": PASSWORD});
    let ask = |host: &'static str, origin: &'static str| {
        let request = client().post(format!("{}/api/sign-in", server.url));
        request
            .header("host", host)
            .header(ORIGIN, origin)
            .json(&body)
            .send()
    };
    let response = ask("home.example", "https://home.example").await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let cookie = response.headers()["set-cookie"].to_str().unwrap();
    assert!(cookie.starts_with("__Host-navi_"), "{cookie}");
    for part in ["Secure", "Path=/", "HttpOnly", "SameSite=Strict"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let elsewhere = ask("evil.example", "https://evil.example").await.unwrap();
    assert_eq!(elsewhere.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn an_open_address_without_accounts() {
    let house = House::new(&[("NAVI_BIND", "0.0.0.0:0")]);
    let said = house.try_start_with(&[]).unwrap_err();
    assert!(said.contains("NAVI_ACCOUNTS=on"), "{said}");
    let house = House::new(&[("NAVI_PUBLIC_URL", "https://home.example")]);
    let said = house.try_start_with(&[]).unwrap_err();
    assert!(said.contains("NAVI_ACCOUNTS=on"), "{said}");
}

#[tokio::test]
async fn without_accounts_nobody_signs_in() {
    let server = House::new(&[]).start();
    assert_eq!(server.get("/api/sign-in").await, json!({"accounts": false}));
    refused(
        sign_in(&server, "local", "a long password").await,
        StatusCode::NOT_FOUND,
        "not_found",
    )
    .await;
    let (status, _) = server.call(Method::GET, "/api/people", None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let account = server.get("/api/account").await;
    assert_eq!(
        (&account["accounts"], &account["role"]),
        (&json!(false), &json!("admin"))
    );
}
