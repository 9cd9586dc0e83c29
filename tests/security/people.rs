//! Several people: attacks on accounts.

use reqwest::header::{HeaderValue, ORIGIN};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::talking;
use crate::fake_model::FakeModel;
use crate::person::{PASSWORD, Person, accept, answered, came_in, secret_of, sign_in, with};
use crate::server::{House, Login, Server, client};

/// The close code of a socket whose login or token opens nothing any more, or something else.
const NOT_LOGGED_IN: u16 = 4001;

fn with_accounts(variables: &[(&str, &str)]) -> (FakeModel, Server) {
    let all: Vec<_> = [("NAVI_ACCOUNTS", "on"), ("NAVI_METRICS", "on")]
        .into_iter()
        .chain(variables.iter().copied())
        .collect();
    talking(&all)
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
    refused(nobody, StatusCode::UNAUTHORIZED, "unauthorized").await;
    // One more is free every six seconds: all at once, so that it does not matter how long each takes.
    let body = json!({"name": "Anna", "password": "another password"});
    let guess = || {
        let request = client().post(format!("{}/api/sign-in", server.url));
        request.json(&body).send()
    };
    let guesses = futures_util::future::join_all((0..40).map(|_| guess())).await;
    let mut guesses = guesses.into_iter().map(Result::unwrap);
    let slowed = guesses.find(|it| it.status() == StatusCode::TOO_MANY_REQUESTS);
    // When the next is heard, and no guess.
    let again = slowed.expect("somebody is slowed down");
    let after: u64 = again.headers()["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=6).contains(&after), "{after}");
    let told: Value = again.json().await.unwrap();
    assert_eq!(told["code"], "rate_limited");
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
    let secrets: Vec<String> = (0..40).map(|n| format!("{n:064}")).collect();
    let guesses = secrets.iter();
    let guesses = guesses.map(|secret| accept(&server, secret, "Anna", PASSWORD));
    let guessed = futures_util::future::join_all(guesses).await;
    let slowed = StatusCode::TOO_MANY_REQUESTS;
    let statuses = guessed.into_iter().map(|guess| guess.unwrap_err().0);
    assert!(statuses.into_iter().any(|status| status == slowed));
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
async fn a_change_of_a_person_that_is_refused_in_part() {
    let (_model, server) = with_accounts(&[]);
    let anna = Person::join(&server, "Anna", "user").await;
    let before = server.get("/api/people").await;
    let mut everybody = before.as_array().unwrap().iter();
    let local = &everybody.find(|it| it["you"] == true).unwrap()["id"];
    let many: Vec<String> = (0..=200).map(|n| format!("skills:{n}")).collect();
    for (person, powers, refused) in [
        // There is no other admin.
        (local, json!(["ssh"]), StatusCode::FORBIDDEN),
        (&json!(anna.id), json!(many), StatusCode::BAD_REQUEST),
    ] {
        let path = format!("/api/people/{}", person.as_str().unwrap());
        let body = json!({"role": "guest", "powers": powers, "limits": {"runs": 1}});
        let (status, said) = server.call(Method::PATCH, &path, Some(body)).await;
        assert_eq!(status, refused, "{said}");
        assert_eq!(server.get("/api/people").await, before);
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
    let proof = json!({"current_password": "another password"});
    let codes = answered(request, Some(proof)).await.1;
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

/// What a proxy adds stands behind whatever they claim.
#[tokio::test]
async fn an_address_that_hides_behind_what_nobody_can_read() {
    let proxies = ("NAVI_TRUSTED_PROXIES", "127.0.0.0/8, 198.51.100.0/24");
    let (_model, server) = with_accounts(&[proxies]);
    let claims: [(&[&[u8]], &str); 7] = [
        (&[b"\xff, 203.0.113.9"], "203.0.113.9"),
        (&[b"\xff", b"203.0.113.9"], "203.0.113.9"),
        (&[b"192.0.2.66, 203.0.113.9:5678"], "203.0.113.9"),
        (&[b"192.0.2.66, [2001:db8::9]:5678"], "2001:db8::9"),
        (
            &[b"192.0.2.66", b"203.0.113.9, 198.51.100.7:80"],
            "203.0.113.9",
        ),
        (&[b"192.0.2.66, unknown"], "127.0.0.1"),
        (&[b"192.0.2.66, \xff, 198.51.100.7"], "127.0.0.1"),
    ];
    let body = json!({"name": "Nobody", "password": "wrong password"});
    for (claim, address) in claims {
        let mut request = client().post(format!("{}/api/sign-in", server.url));
        for line in claim {
            let line = HeaderValue::from_bytes(line).unwrap();
            request = request.header("x-forwarded-for", line);
        }
        answered(request, Some(body.clone())).await;
        let record = server.get("/api/record").await;
        assert_eq!(record[0]["address"], address, "{claim:?}");
    }
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
