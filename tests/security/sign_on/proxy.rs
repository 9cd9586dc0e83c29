//! A proxy in front that says who somebody is, and who only says so.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::NOT_LOGGED_IN;
use super::going::{came_in, from_page, recorded, refused};
use crate::fake_model::FakeModel;
use crate::person::{Person, answered, with};
use crate::security::talking;
use crate::server::{House, Login, Server, client};

fn behind_proxy(variables: &[(&str, &str)]) -> (FakeModel, Server) {
    let all: Vec<_> = [
        ("NAVI_ACCOUNTS", "on"),
        ("NAVI_PROXY_USER_HEADER", "Remote-User"),
        ("NAVI_PROXY_GROUPS_HEADER", "Remote-Groups"),
        ("NAVI_TRUSTED_PROXIES", "127.0.0.1"),
        ("NAVI_SIGN_ON_JOIN", "user"),
    ]
    .into_iter()
    .chain(variables.iter().copied())
    .collect();
    talking(&all)
}

async fn by_proxy(server: &Server, person: &str) -> Result<Login, (StatusCode, Value)> {
    let request = from_page(server, "/api/sign-on/proxy");
    came_in(request.header("remote-user", person)).await
}

#[tokio::test]
async fn a_header_from_a_foreign_peer() {
    let (_model, server) = behind_proxy(&[("NAVI_TRUSTED_PROXIES", "10.0.0.0/8, 192.0.2.1")]);
    refused(by_proxy(&server, "anna").await, "unauthorized");
    let claims = [("remote-user", "anna"), ("x-forwarded-for", "10.0.0.1")];
    let mut request = client().get(format!("{}/api/sign-in", server.url));
    for (name, value) in claims {
        request = request.header(name, value);
    }
    assert_eq!(answered(request, None).await.1["proxy"], Value::Null);
    // For who came in otherwise it says nothing, either.
    let anna = Person::join(&server, "Anna", "user").await;
    let request = with(&server, Method::GET, "/api/account", &anna.login);
    let request = request.header("remote-user", "borys");
    assert_eq!(answered(request, None).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_header_of_another_person_beside_a_cookie() {
    let (_model, server) = behind_proxy(&[]);
    let anna = by_proxy(&server, "anna").await.unwrap();
    let ask = async |login: &Login, header: Option<&str>| {
        let mut request = with(&server, Method::GET, "/api/account", login);
        if let Some(header) = header {
            request = request.header("remote-user", header);
        }
        answered(request, None).await
    };
    let (status, account) = ask(&anna, Some("anna")).await;
    assert_eq!((status, &account["name"]), (StatusCode::OK, &json!("anna")));
    assert_eq!(recorded(&server).await["about"], "proxy");
    // What the proxy let in counts beside its word alone.
    assert_eq!(ask(&anna, None).await.0, StatusCode::UNAUTHORIZED);
    let twice = with(&server, Method::GET, "/api/account", &anna)
        .header("remote-user", "anna")
        .header("remote-user", "borys");
    assert_eq!(answered(twice, None).await.0, StatusCode::UNAUTHORIZED);
    let mut all = anna.headers().to_vec();
    all.extend([
        ("origin", server.url.clone()),
        ("remote-user", "anna".to_owned()),
    ]);
    let mut tab = server.socket_with("/ws/sessions", &all).await.unwrap();
    let borys = by_proxy(&server, "borys").await.unwrap();
    assert_eq!(ask(&borys, Some("borys")).await.1["name"], "borys");
    // Another person in the header: her login is over, and what it had open.
    assert_eq!(ask(&anna, Some("borys")).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(tab.closed().await, NOT_LOGGED_IN);
    assert_eq!(ask(&anna, Some("anna")).await.0, StatusCode::UNAUTHORIZED);
    assert!(server.socket_with("/ws/sessions", &all).await.is_err());

    // Who came in by a password is who the proxy says, or is not in.
    let vira = Person::join(&server, "Vira", "user").await;
    assert_eq!(ask(&vira.login, None).await.0, StatusCode::OK);
    assert_eq!(
        ask(&vira.login, Some("borys")).await.0,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(
        ask(&vira.login, Some("unknown")).await.0,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(ask(&vira.login, None).await.0, StatusCode::OK);
    // A token is whose it is.
    let request = client().get(format!("{}/api/account", server.url));
    let request = request
        .bearer_auth(&vira.token)
        .header("remote-user", "borys");
    assert_eq!(answered(request, None).await.1["name"], "Vira");
}

#[tokio::test]
async fn groups_by_a_proxy_and_people_whom_nobody_knows() {
    let (_model, server) = behind_proxy(&[
        ("NAVI_SIGN_ON_ROLES", "admin=navi admins; user=family"),
        ("NAVI_SIGN_ON_JOIN", "guest"),
    ]);
    let come = async |person: &str, groups: &str| {
        let request = from_page(&server, "/api/sign-on/proxy");
        let request = request
            .header("remote-user", person)
            .header("remote-groups", groups);
        came_in(request).await
    };
    let role = async |login: &Login, person: &str| {
        let request = with(&server, Method::GET, "/api/account", login);
        answered(request.header("remote-user", person), None)
            .await
            .1["role"]
            .clone()
    };
    let anna = come("anna", "family, navi admins").await.unwrap();
    assert_eq!(role(&anna, "anna").await, "admin");
    let anna = come("anna", "family").await.unwrap();
    assert_eq!(role(&anna, "anna").await, "user");
    refused(come("borys", "others").await, "sign_on_refused");
    let long = "x".repeat(256);
    for nobody in ["", " ", long.as_str()] {
        refused(come(nobody, "family").await, "unauthorized");
    }
    let closed = behind_proxy(&[("NAVI_SIGN_ON_JOIN", "no")]);
    refused(by_proxy(&closed.1, "anna").await, "sign_on_refused");
}

#[tokio::test]
async fn a_header_that_everybody_could_send() {
    for (networks, wanted) in [
        ("", "NAVI_TRUSTED_PROXIES is not"),
        ("0.0.0.0/0", "NAVI_TRUSTED_PROXIES holds everybody"),
        ("10.0.0.0/8, ::/0", "NAVI_TRUSTED_PROXIES holds everybody"),
    ] {
        let house = House::new(&[
            ("NAVI_ACCOUNTS", "on"),
            ("NAVI_PROXY_USER_HEADER", "Remote-User"),
            ("NAVI_TRUSTED_PROXIES", networks),
        ]);
        let said = house.try_start_with(&[]).unwrap_err();
        assert!(said.contains(wanted), "{said}");
    }
    let house = House::new(&[("NAVI_OIDC_ISSUER", "https://login.example")]);
    let said = house.try_start_with(&[]).unwrap_err();
    for wanted in ["NAVI_ACCOUNTS=on", "NAVI_OIDC_CLIENT_ID is not"] {
        assert!(said.contains(wanted), "{said}");
    }
}
