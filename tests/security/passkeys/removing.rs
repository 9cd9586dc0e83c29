//! Those that are gone, and those that stay.

use reqwest::{Method, StatusCode};
use serde_json::json;

use super::asking::{Asked, PASSKEYS, asks, come_in, made, recorded, refused, with_accounts};
use crate::person::{PASSWORD, Person, accept, came_in, secret_of};

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
async fn the_last_way_in_taken_away() {
    let (_model, server) = with_accounts();
    let anna = Person::join(&server, "Anna", "user").await;
    let (mut authenticator, id) = made(&server, &anna.login).await;
    let codes = "/api/account/recovery-codes";
    let proof = Some(json!({"current_password": PASSWORD}));
    let (_, codes) = asks(&server, &anna.login, Method::POST, codes, proof).await;
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
