//! Attacks on passkeys. The authenticator is ours, and answers as it is told to.

use reqwest::header::ORIGIN;
use reqwest::{Method, StatusCode};
use sea_orm::{ConnectionTrait as _, Database};
use serde_json::{Value, json};

use super::talking;
use crate::authenticator::Authenticator;
use crate::fake_model::FakeModel;
use crate::person::{PASSWORD, Person, accept, answered, came_in, secret_of, sign_in, with};
use crate::server::{Login, Server, client};

const PASSKEYS: &str = "/api/account/passkeys";
const BEGIN: &str = "/api/account/passkeys/begin";
const FINISH: &str = "/api/account/passkeys/finish";
const BEGIN_SIGN_IN: &str = "/api/sign-in/passkey/begin";
const FINISH_SIGN_IN: &str = "/api/sign-in/passkey/finish";

fn with_accounts() -> (FakeModel, Server) {
    talking(&[("NAVI_ACCOUNTS", "on")])
}

/// Where passkeys work: under the name of the machine, not its address of numbers.
fn page(server: &Server) -> String {
    server.url.replace("127.0.0.1", "localhost")
}

async fn asks(
    server: &Server,
    login: &Login,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> (StatusCode, Value) {
    answered(with(server, method, path, login), body).await
}

async fn begin(server: &Server, login: &Login) -> Value {
    let body = json!({"name": "phone", "current_password": PASSWORD});
    let (status, begun) = asks(server, login, Method::POST, BEGIN, Some(body)).await;
    assert_eq!(status, StatusCode::OK, "{begun}");
    begun["options"].clone()
}

async fn finish(server: &Server, login: &Login, credential: Value) -> (StatusCode, Value) {
    let body = json!({"credential": credential});
    asks(server, login, Method::POST, FINISH, Some(body)).await
}

/// A passkey of somebody's, on an authenticator of their own, and its id.
async fn made(server: &Server, login: &Login) -> (Authenticator, String) {
    let mut authenticator = Authenticator::at(&page(server));
    let options = begin(server, login).await;
    let (status, passkey) = finish(server, login, authenticator.make(&options)).await;
    assert_eq!(status, StatusCode::CREATED, "{passkey}");
    (authenticator, passkey["id"].as_str().unwrap().to_owned())
}

/// A ceremony, as a browser has it.
struct Asked {
    cookie: String,
    ceremony: Value,
    options: Value,
}

impl Asked {
    async fn begin(server: &Server) -> Self {
        let request = client().post(format!("{}{BEGIN_SIGN_IN}", server.url));
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let cookie = response.headers()["set-cookie"].to_str().unwrap();
        for part in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=300"] {
            assert!(cookie.contains(part), "{cookie}");
        }
        let cookie = cookie.split(';').next().unwrap().to_owned();
        let begun: Value = response.json().await.unwrap();
        assert_eq!(begun["options"]["userVerification"], "required");
        assert_eq!(begun["options"]["allowCredentials"], json!([]));
        Self {
            cookie,
            ceremony: begun["ceremony"].clone(),
            options: begun["options"].clone(),
        }
    }

    async fn finish(
        &self,
        server: &Server,
        credential: &Value,
    ) -> Result<Login, (StatusCode, Value)> {
        let body = json!({"ceremony": self.ceremony, "credential": credential});
        let request = client().post(format!("{}{FINISH_SIGN_IN}", server.url));
        let request = request.header("cookie", &self.cookie).json(&body);
        let response = request.send().await.unwrap();
        let status = response.status();
        let cookie = response.headers().get("set-cookie").cloned();
        let body: Value = response.json().await.unwrap();
        let (StatusCode::OK, Some(cookie)) = (status, cookie) else {
            return Err((status, body));
        };
        let cookie = cookie.to_str().unwrap().split(';').next().unwrap();
        Ok(Login {
            cookie: cookie.to_owned(),
            key: body["key"].as_str().unwrap().to_owned(),
        })
    }
}

async fn come_in(
    server: &Server,
    authenticator: &mut Authenticator,
) -> Result<Login, (StatusCode, Value)> {
    let asked = Asked::begin(server).await;
    let answer = authenticator.answer(&asked.options);
    asked.finish(server, &answer).await
}

#[track_caller]
fn refused(came: Result<Login, (StatusCode, Value)>) -> Value {
    let (status, said) = came.expect_err("it is refused");
    assert_eq!(
        (status, &said["code"]),
        (StatusCode::UNAUTHORIZED, &json!("unauthorized")),
        "{said}"
    );
    said
}

async fn name_of(server: &Server, login: &Login) -> Value {
    let (_, account) = asks(server, login, Method::GET, "/api/account", None).await;
    account["name"].clone()
}

async fn recorded(server: &Server, what: &str) -> Vec<Value> {
    let record = server.get("/api/record").await;
    let lines = record.as_array().unwrap().iter();
    lines.filter(|line| line["what"] == what).cloned().collect()
}

#[tokio::test]
async fn a_passkey_signs_in_and_its_answer_replayed_does_not() {
    let (_model, server) = with_accounts();
    let anna = Person::join(&server, "Anna", "user").await;
    let (mut authenticator, id) = made(&server, &anna.login).await;
    let asked = Asked::begin(&server).await;
    let answer = authenticator.answer(&asked.options);
    let login = asked.finish(&server, &answer).await.unwrap();
    assert_eq!(name_of(&server, &login).await, "Anna");
    assert_ne!(login.cookie, anna.login.cookie, "a login of its own");
    let (_, listed) = asks(&server, &login, Method::GET, PASSKEYS, None).await;
    assert_eq!(
        (&listed[0]["id"], &listed[0]["name"], &listed[0]["host"]),
        (&json!(id), &json!("phone"), &json!("localhost"))
    );
    assert!(listed[0]["last_used_at"].is_string(), "{listed}");
    // The same answer, to the same question and to another.
    refused(asked.finish(&server, &answer).await);
    let again = Asked::begin(&server).await;
    refused(again.finish(&server, &answer).await);
    assert_eq!(
        recorded(&server, "passkey_made").await[0]["about"],
        json!("phone")
    );
    let came = recorded(&server, "signed_in").await;
    assert_eq!(
        (&came[0]["name"], &came[0]["about"]),
        (&json!("Anna"), &json!("passkey: phone"))
    );
    assert_eq!(recorded(&server, "sign_in_failed").await.len(), 2);
}

#[tokio::test]
async fn a_passkey_asked_for_by_another_page() {
    let (_model, server) = with_accounts();
    let anna = Person::join(&server, "Anna", "user").await;
    let ours = page(&server);
    let (mut good, _) = made(&server, &anna.login).await;
    // Another program's page on this machine, a name like ours, our address of numbers, and TLS
    // that we do not have.
    for (origin, host) in [
        ("http://localhost:1", "localhost"),
        ("http://evil.example", "evil.example"),
        ("http://localhost.evil.example", "localhost"),
        (server.url.as_str(), "localhost"),
        (&ours.replace("http:", "https:"), "localhost"),
        (ours.as_str(), "evil.example"),
    ] {
        let mut bad = Authenticator::at(origin);
        host.clone_into(&mut bad.host);
        let options = begin(&server, &anna.login).await;
        let (status, said) = finish(&server, &anna.login, bad.make(&options)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{origin} {host}: {said}");
        origin.clone_into(&mut good.origin);
        host.clone_into(&mut good.host);
        refused(come_in(&server, &mut good).await);
    }
    good.origin = ours;
    "localhost".clone_into(&mut good.host);
    assert!(come_in(&server, &mut good).await.is_ok(), "it is good");
}

#[tokio::test]
async fn an_authenticator_that_does_not_make_sure_of_its_person() {
    let (_model, server) = with_accounts();
    let anna = Person::join(&server, "Anna", "user").await;
    let mut careless = Authenticator::at(&page(&server));
    careless.verifies = false;
    let options = begin(&server, &anna.login).await;
    assert_eq!(
        options["authenticatorSelection"]["userVerification"],
        "required"
    );
    assert_eq!(options["authenticatorSelection"]["residentKey"], "required");
    let (status, _) = finish(&server, &anna.login, careless.make(&options)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let (mut authenticator, _) = made(&server, &anna.login).await;
    authenticator.verifies = false;
    refused(come_in(&server, &mut authenticator).await);
    authenticator.verifies = true;
    assert!(come_in(&server, &mut authenticator).await.is_ok());
}

/// Of two copies one is behind the other.
#[tokio::test]
async fn a_counter_that_goes_back() {
    let (_model, server) = with_accounts();
    let anna = Person::join(&server, "Anna", "user").await;
    let (mut authenticator, _) = made(&server, &anna.login).await;
    authenticator.counter = 41;
    assert!(come_in(&server, &mut authenticator).await.is_ok());
    for behind in [40, 41] {
        authenticator.counter = behind - 1;
        refused(come_in(&server, &mut authenticator).await);
    }
    let failed = recorded(&server, "sign_in_failed").await;
    let about = failed[0]["about"].as_str().unwrap();
    assert!(about.contains("its counter went back"), "{about}");
    assert_eq!(failed[0]["name"], "Anna");
    authenticator.counter = 42;
    assert!(come_in(&server, &mut authenticator).await.is_ok());
}

#[tokio::test]
async fn an_answer_to_what_nobody_asked() {
    let (_model, server) = with_accounts();
    let anna = Person::join(&server, "Anna", "user").await;
    let (mut authenticator, _) = made(&server, &anna.login).await;
    // To a question of its own making.
    let asked = Asked::begin(&server).await;
    let made_up = json!({"challenge": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"});
    let answer = authenticator.answer(&made_up);
    refused(asked.finish(&server, &answer).await);
    // Without a question, in another browser than asked, and of another ceremony than it says.
    let asked = Asked::begin(&server).await;
    let answer = authenticator.answer(&asked.options);
    let elsewhere = Asked {
        cookie: Asked::begin(&server).await.cookie,
        ceremony: asked.ceremony.clone(),
        options: Value::Null,
    };
    refused(elsewhere.finish(&server, &answer).await);
    refused(asked.finish(&server, &answer).await);
    let other = Asked::begin(&server).await;
    let answer = authenticator.answer(&other.options);
    let mixed = Asked {
        ceremony: json!("0".repeat(64)),
        ..other
    };
    refused(mixed.finish(&server, &answer).await);
    // What is none at all is answered in the same words.
    let asked = Asked::begin(&server).await;
    let none = refused(asked.finish(&server, &json!({"id": "x"})).await);
    let asked = Asked::begin(&server).await;
    let mut stranger = Authenticator::at(&page(&server));
    stranger.handle.clone_from(&authenticator.handle);
    let unknown = stranger.answer(&asked.options);
    assert_eq!(refused(asked.finish(&server, &unknown).await), none);
    // And one is not made of nothing.
    let (status, _) = finish(
        &server,
        &anna.login,
        stranger.make(&json!({"user": {"id": "eA"}, "challenge": "AAAA"})),
    )
    .await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(come_in(&server, &mut authenticator).await.is_ok());
}

#[tokio::test]
async fn another_persons_question_answered_as_ones_own() {
    let (_model, server) = with_accounts();
    let anna = Person::join(&server, "Anna", "user").await;
    let borys = Person::join(&server, "Borys", "user").await;
    // He has his own passkey made for her, in her place and in his.
    let options = begin(&server, &anna.login).await;
    let mut his = Authenticator::at(&page(&server));
    let answer = his.make(&options);
    let (status, _) = finish(&server, &borys.login, answer.clone()).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "he asked for nothing");
    begin(&server, &borys.login).await;
    let (status, _) = finish(&server, &borys.login, answer).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "he asked something else");
    // Another browser of hers did not ask either.
    let elsewhere = sign_in(&server, "Anna", PASSWORD).await.unwrap();
    let options = begin(&server, &anna.login).await;
    let (status, _) = finish(&server, &elsewhere, his.make(&options)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    // His passkey says that it is hers.
    let (hers, _) = made(&server, &anna.login).await;
    let (mut his, _) = made(&server, &borys.login).await;
    his.handle.clone_from(&hers.handle);
    refused(come_in(&server, &mut his).await);
    // Hers is hers alone.
    let options = begin(&server, &borys.login).await;
    let mut copied = hers;
    let handle = copied.handle.clone();
    let (status, said) = finish(&server, &borys.login, copied.make(&options)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{said}");
    copied.handle = handle;
    let login = come_in(&server, &mut copied).await.unwrap();
    assert_eq!(name_of(&server, &login).await, "Anna");
}

#[tokio::test]
async fn a_passkey_that_was_removed_and_one_of_who_was() {
    let (_model, server) = with_accounts();
    let anna = Person::join(&server, "Anna", "user").await;
    let borys = Person::join(&server, "Borys", "user").await;
    let (mut gone, id) = made(&server, &anna.login).await;
    let (mut hers, kept) = made(&server, &anna.login).await;
    // What is not his he neither removes nor renames.
    let one = format!("{PASSKEYS}/{id}");
    let name = Some(json!({"name": "mine"}));
    let his = asks(&server, &borys.login, Method::DELETE, &one, None).await;
    assert_eq!(his.0, StatusCode::NOT_FOUND);
    let his = asks(&server, &borys.login, Method::PATCH, &one, name.clone()).await;
    assert_eq!(his.0, StatusCode::NOT_FOUND);
    let removed = asks(&server, &anna.login, Method::DELETE, &one, None).await;
    assert_eq!(removed.0, StatusCode::NO_CONTENT);
    refused(come_in(&server, &mut gone).await);
    assert_eq!(recorded(&server, "passkey_removed").await.len(), 1);
    let one = format!("{PASSKEYS}/{kept}");
    let renamed = asks(&server, &anna.login, Method::PATCH, &one, name).await;
    assert_eq!(renamed.0, StatusCode::NO_CONTENT);
    let (_, listed) = asks(&server, &anna.login, Method::GET, PASSKEYS, None).await;
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["name"], "mine");
    assert!(come_in(&server, &mut hers).await.is_ok());

    let listed = server.house().run(&["user", "list"]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let line = listed.lines().find(|line| line.contains("Anna")).unwrap();
    assert!(line.contains("1 passkey"), "{listed}");
    // In mid-ceremony.
    let asked = Asked::begin(&server).await;
    let answer = hers.answer(&asked.options);
    let removed = server.house().run(&["user", "remove", "Anna", "--yes"]);
    assert!(removed.status.success(), "{removed:?}");
    refused(asked.finish(&server, &answer).await);
    refused(come_in(&server, &mut hers).await);
}

/// Whoever lost a phone, or found one.
#[tokio::test]
async fn a_passkey_from_before_a_reset() {
    let (_model, server) = with_accounts();
    let anna = Person::join(&server, "Anna", "user").await;
    let (mut lost, _) = made(&server, &anna.login).await;
    let path = format!("/api/people/{}/reset", anna.id);
    let reset = server.post(&path, json!({})).await;
    assert!(
        come_in(&server, &mut lost).await.is_ok(),
        "a link that nobody used changes nothing"
    );
    let chosen = accept(&server, &secret_of(&reset), "Anna", "another password").await;
    let login = chosen.unwrap();
    refused(come_in(&server, &mut lost).await);
    let (_, listed) = asks(&server, &login, Method::GET, PASSKEYS, None).await;
    assert_eq!(listed, json!([]));
}

#[tokio::test]
async fn a_passkey_made_over_a_token() {
    let (_model, server) = with_accounts();
    let anna = Person::join(&server, "Anna", "user").await;
    let (_, id) = made(&server, &anna.login).await;
    let one = format!("{PASSKEYS}/{id}");
    let body = json!({"name": "theirs", "current_password": PASSWORD});
    for (method, path) in [
        (Method::POST, BEGIN),
        (Method::POST, FINISH),
        (Method::PATCH, &one),
        (Method::DELETE, &one),
    ] {
        let (status, said) = anna
            .call(&server, method.clone(), path, Some(body.clone()))
            .await;
        assert_eq!(
            (status, &said["code"]),
            (StatusCode::FORBIDDEN, &json!("forbidden")),
            "{method} {path}"
        );
        // Nor by the one that stands in the settings, or beside a cookie of hers.
        let (status, _) = server.call(method.clone(), path, Some(body.clone())).await;
        assert_eq!(status, StatusCode::FORBIDDEN);
        let beside = with(&server, method, path, &anna.login).bearer_auth(&anna.token);
        let (status, _) = answered(beside, Some(body.clone())).await;
        assert_eq!(status, StatusCode::FORBIDDEN);
    }
    let (status, listed) = anna.call(&server, Method::GET, PASSKEYS, None).await;
    assert_eq!(
        (status, listed.as_array().unwrap().len()),
        (StatusCode::OK, 1)
    );
}

/// A login that somebody found is not enough.
#[tokio::test]
async fn a_passkey_made_in_a_browser_that_was_left_open() {
    let (_model, server) = with_accounts();
    let anna = Person::join(&server, "Anna", "user").await;
    for password in [Value::Null, json!("not her password")] {
        let body = json!({"name": "theirs", "current_password": password});
        let (status, said) = asks(&server, &anna.login, Method::POST, BEGIN, Some(body)).await;
        assert_eq!(
            (status, &said["code"]),
            (StatusCode::BAD_REQUEST, &json!("invalid_field"))
        );
    }
    for name in ["", "  ", "a\nb", &"x".repeat(65)] {
        let body = json!({"name": name, "current_password": PASSWORD});
        let (status, _) = asks(&server, &anna.login, Method::POST, BEGIN, Some(body)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{name:?}");
    }
    let mut last = StatusCode::OK;
    for _ in 0..40 {
        let body = json!({"name": "theirs", "current_password": "a guess and another"});
        last = asks(&server, &anna.login, Method::POST, BEGIN, Some(body))
            .await
            .0;
        if last == StatusCode::TOO_MANY_REQUESTS {
            break;
        }
    }
    assert_eq!(last, StatusCode::TOO_MANY_REQUESTS, "guesses are slowed");
}

/// Who has no password shows who they are by having come in a moment ago.
#[tokio::test]
async fn a_passkey_made_by_a_login_from_long_ago() {
    let (_model, server) = with_accounts();
    let login = Login::by(&server.link()).await;
    let body = || Some(json!({"name": "phone"}));
    let (status, _) = asks(&server, &login, Method::POST, BEGIN, body()).await;
    assert_eq!(status, StatusCode::OK, "it is fresh");
    let house = server.house();
    let url = house.variable("DATABASE_URL").unwrap_or_else(|| {
        let file = house.data_dir().join("navi.db");
        format!("sqlite://{}", file.display())
    });
    let database = Database::connect(url).await.unwrap();
    let ago = if house.is_on_postgres() {
        "now() - interval '11 minutes'"
    } else {
        "strftime('%Y-%m-%d %H:%M:%S', 'now', '-11 minutes') || '+00:00'"
    };
    let age = format!("UPDATE web_logins SET created_at = {ago}");
    database.execute_unprepared(&age).await.unwrap();
    database.close().await.unwrap();
    let (status, said) = asks(&server, &login, Method::POST, BEGIN, body()).await;
    assert_eq!(
        (status, &said["code"]),
        (StatusCode::FORBIDDEN, &json!("forbidden"))
    );
    assert!(said["message"].as_str().unwrap().contains("too long ago"));
    let (status, _) = asks(&server, &login, Method::GET, PASSKEYS, None).await;
    assert_eq!(status, StatusCode::OK, "it is good for all else");
}

#[tokio::test]
async fn the_last_way_in_taken_away() {
    let (_model, server) = with_accounts();
    let anna = Person::join(&server, "Anna", "user").await;
    let (mut authenticator, id) = made(&server, &anna.login).await;
    let codes = "/api/account/recovery-codes";
    let (_, codes) = asks(&server, &anna.login, Method::POST, codes, None).await;
    let mut login = anna.login.clone();
    for code in codes["codes"].as_array().unwrap() {
        let body = json!({"name": "Anna", "recovery_code": code});
        login = came_in(&server, "/api/sign-in", body).await.unwrap();
    }
    // Neither password nor code is left.
    let (_, account) = asks(&server, &login, Method::GET, "/api/account", None).await;
    assert_eq!(
        (
            &account["has_password"],
            &account["recovery_codes"],
            &account["passkeys"]
        ),
        (&json!(false), &json!(0), &json!(1))
    );
    let one = format!("{PASSKEYS}/{id}");
    let (status, said) = asks(&server, &login, Method::DELETE, &one, None).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(
        said["message"].as_str().unwrap().contains("nothing else"),
        "{said}"
    );
    // Who came in a moment ago makes another without a password, and then one may go.
    let login = come_in(&server, &mut authenticator).await.unwrap();
    let (mut other, _) = made(&server, &login).await;
    let (status, _) = asks(&server, &login, Method::DELETE, &one, None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    refused(come_in(&server, &mut authenticator).await);
    assert!(come_in(&server, &mut other).await.is_ok());
}

#[tokio::test]
async fn more_passkeys_than_anybody_needs() {
    let (_model, server) = talking(&[("NAVI_ACCOUNTS", "on")]);
    // The machine's own user, who came by the link and has no password yet.
    let login = Login::by(&server.link()).await;
    let mut last = None;
    for _ in 0..20 {
        last = Some(made(&server, &login).await.0);
    }
    let body = json!({"name": "one more"});
    let (status, said) = asks(&server, &login, Method::POST, BEGIN, Some(body)).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{said}");
    let login = come_in(&server, &mut last.unwrap()).await.unwrap();
    let (_, account) = asks(&server, &login, Method::GET, "/api/account", None).await;
    assert_eq!(account["passkeys"], 20);
}

#[tokio::test]
async fn cross_site_sign_in_by_a_passkey() {
    let (_model, server) = with_accounts();
    let anna = Person::join(&server, "Anna", "user").await;
    let (mut authenticator, _) = made(&server, &anna.login).await;
    let asked = Asked::begin(&server).await;
    let answer = authenticator.answer(&asked.options);
    let body = json!({"ceremony": asked.ceremony, "credential": answer});
    for path in [BEGIN_SIGN_IN, FINISH_SIGN_IN] {
        let request = client().post(format!("{}{path}", server.url));
        let request = request.header("cookie", &asked.cookie);
        let request = request.header(ORIGIN, "http://evil.example");
        let (status, said) = answered(request, Some(body.clone())).await;
        assert_eq!(
            (status, &said["code"]),
            (StatusCode::FORBIDDEN, &json!("forbidden_origin"))
        );
    }
    let mut request = client().post(format!("{}{BEGIN}", server.url));
    for (name, value) in anna.login.headers() {
        request = request.header(name, value);
    }
    let request = request.header(ORIGIN, "http://evil.example");
    let (status, _) = answered(request, Some(json!({"name": "x"}))).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn many_tries_to_sign_in_by_a_passkey() {
    let (_model, server) = with_accounts();
    Person::join(&server, "Anna", "user").await;
    let mut stranger = Authenticator::at(&page(&server));
    stranger.handle = "AAAAAAAAAAAAAAAAAAAAAA".to_owned();
    let mut slowed = false;
    for _ in 0..60 {
        let request = client().post(format!("{}{BEGIN_SIGN_IN}", server.url));
        let (status, begun) = answered(request, None).await;
        if status == StatusCode::TOO_MANY_REQUESTS {
            assert_eq!(begun["code"], "rate_limited");
            slowed = true;
            break;
        }
        assert_eq!(status, StatusCode::OK);
    }
    assert!(slowed);
}

#[tokio::test]
async fn a_passkey_under_a_public_name() {
    let variables = [
        ("NAVI_ACCOUNTS", "on"),
        ("NAVI_PUBLIC_URL", "https://home.example/navi/"),
    ];
    let (_model, server) = talking(&variables);
    let ways = server.get("/api/sign-in").await;
    assert_eq!(ways["passkeys_at"], "https://home.example/navi/");
    let anna = Person::join(&server, "Anna", "user").await;
    let options = begin(&server, &anna.login).await;
    assert_eq!(options["rp"]["id"], "home.example");
    let mut local = Authenticator::at(&page(&server));
    let (status, _) = finish(&server, &anna.login, local.make(&options)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "that is another place now");
    let mut authenticator = Authenticator::at("https://home.example");
    let options = begin(&server, &anna.login).await;
    let (status, _) = finish(&server, &anna.login, authenticator.make(&options)).await;
    assert_eq!(status, StatusCode::CREATED);
    let request = client().post(format!("{}{BEGIN_SIGN_IN}", server.url));
    let request = request.header("host", "home.example");
    let response = request.header(ORIGIN, "https://home.example").send().await;
    let response = response.unwrap();
    let cookie = response.headers()["set-cookie"].to_str().unwrap();
    assert!(
        cookie.starts_with("__Host-") && cookie.contains("Secure"),
        "{cookie}"
    );
    assert!(come_in(&server, &mut authenticator).await.is_ok());
}

#[tokio::test]
async fn without_accounts_there_are_no_passkeys() {
    let server = crate::server::House::new(&[]).start();
    assert_eq!(server.get("/api/sign-in").await, json!({"accounts": false}));
    let request = client().post(format!("{}{BEGIN_SIGN_IN}", server.url));
    assert_eq!(answered(request, None).await.0, StatusCode::NOT_FOUND);
    let (status, _) = server.call(Method::GET, PASSKEYS, None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let login = Login::by(&server.link()).await;
    let body = json!({"name": "x"});
    let (status, _) = asks(&server, &login, Method::POST, BEGIN, Some(body)).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}
