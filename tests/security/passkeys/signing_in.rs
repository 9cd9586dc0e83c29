//! Who comes in, by what nobody asked for or by a copy.

use reqwest::header::ORIGIN;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::asking::{
    Asked, BEGIN, BEGIN_SIGN_IN, FINISH_SIGN_IN, PASSKEYS, asks, begin, come_in, finish, made,
    name_of, page, recorded, refused, with_accounts,
};
use crate::authenticator::Authenticator;
use crate::person::{Person, answered};
use crate::security::talking;
use crate::server::{Login, client};

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
