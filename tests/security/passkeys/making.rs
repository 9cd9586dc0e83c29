//! Who makes one, and for whom.

use reqwest::{Method, StatusCode};
use sea_orm::{ConnectionTrait as _, Database};
use serde_json::{Value, json};

use super::asking::{
    BEGIN, FINISH, PASSKEYS, asks, begin, come_in, finish, made, name_of, page, refused,
    with_accounts,
};
use crate::authenticator::Authenticator;
use crate::person::{PASSWORD, Person, answered, sign_in, with};
use crate::security::talking;
use crate::server::Login;

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
    assert_eq!(said["phrase"]["code"], "signed_in_long_ago");
    let (status, _) = asks(&server, &login, Method::GET, PASSKEYS, None).await;
    assert_eq!(status, StatusCode::OK, "it is good for all else");
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
