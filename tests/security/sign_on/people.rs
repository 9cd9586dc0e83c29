//! Who comes in, as what, and as whom.

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

use super::NOT_LOGGED_IN;
use super::going::{Going, account, recorded, refused, somebody, with_provider};
use crate::person::{PASSWORD, Person, answered, sign_in, with};
use crate::provider::Provider;
use crate::server::{Login, Server, client};

#[tokio::test]
async fn a_role_that_is_taken_away_elsewhere() {
    let provider = Provider::start().await;
    let (_model, server) = with_provider(
        &provider,
        &[
            ("NAVI_SIGN_ON_ROLES", "admin=navi-admins; user=family"),
            ("NAVI_OIDC_GROUPS_CLAIM", "groups, realm.roles"),
        ],
    );
    let come = async |sub: &str, groups: Value| {
        let going = Going::begin(&server, None).await;
        let mut claims = going.claims(&provider, sub);
        claims["realm"] = json!({"roles": groups});
        going.come_in(&server, &provider, &claims).await
    };
    let anna = come("anna", json!(["navi-admins", "family"]))
        .await
        .unwrap();
    assert_eq!(account(&server, &anna).await.1["role"], "admin");
    let people = "/api/people";
    let ask = |login: &Login| answered(with(&server, Method::GET, people, login), None);
    assert_eq!(ask(&anna).await.0, StatusCode::OK);
    let headers = anna.headers().map(|(name, value)| (name, value));
    let mut all = headers.to_vec();
    all.push(("origin", server.url.clone()));
    let mut list = server.socket_with("/ws/sessions", &all).await.unwrap();
    let less = come("anna", json!(["family"])).await.unwrap();
    assert_eq!(account(&server, &less).await.1["role"], "user");
    // What she had open as an admin is closed, and opens as what she is.
    assert_eq!(list.closed().await, NOT_LOGGED_IN);
    assert_eq!(ask(&anna).await.0, StatusCode::FORBIDDEN);
    refused(come("anna", json!([])).await, "sign_on_refused");
    refused(come("borys", json!(["FAMILY"])).await, "sign_on_refused");
    let line = recorded(&server).await;
    assert_eq!(
        (&line["what"], &line["name"]),
        (&json!("sign_in_failed"), &json!("borys"))
    );

    // The last admin stays one.
    come("anna", json!(["navi-admins"])).await.unwrap();
    let everybody = server.get(people).await;
    let local = everybody
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["you"] == true);
    let path = format!("{people}/{}", local.unwrap()["id"].as_str().unwrap());
    let (status, _) = server
        .call(Method::PATCH, &path, Some(json!({"role": "user"})))
        .await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let last = come("anna", json!(["family"])).await.unwrap();
    assert_eq!(account(&server, &last).await.1["role"], "admin");
    let record = answered(with(&server, Method::GET, "/api/record", &last), None)
        .await
        .1;
    let kept = record
        .as_array()
        .unwrap()
        .iter()
        .any(|it| it["what"] == "role_kept");
    assert!(kept, "{record}");
}

#[tokio::test]
async fn groups_and_addresses_that_are_not_let_in() {
    let provider = Provider::start().await;
    let (_model, server) = with_provider(
        &provider,
        &[
            ("NAVI_SIGN_ON_GROUPS", "family; friends"),
            ("NAVI_OIDC_DOMAINS", "example.org"),
        ],
    );
    let come = async |groups: Value, email: &str, verified: Value| {
        let going = Going::begin(&server, None).await;
        let mut claims = going.claims(&provider, "anna");
        claims["groups"] = groups;
        claims["email"] = json!(email);
        claims["email_verified"] = verified;
        going.come_in(&server, &provider, &claims).await
    };
    for (groups, email, verified) in [
        (json!(["others"]), "anna@example.org", json!(true)),
        (json!(["family"]), "anna@example.org", json!(false)),
        (json!(["family"]), "anna@evil.example", json!(true)),
        (
            json!(["family"]),
            "anna@evil.example@example.org",
            json!(true),
        ),
        (json!(["family"]), "anna@sub.example.org", json!(true)),
    ] {
        refused(come(groups, email, verified).await, "sign_on_refused");
    }
    let people = server.get("/api/people").await;
    assert_eq!(people.as_array().unwrap().len(), 1, "{people}");
    assert!(
        come(json!("friends"), "Anna@Example.ORG", json!(true))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn somebody_unknown_and_an_account_that_is_linked() {
    let provider = Provider::start().await;
    let (_model, server) = with_provider(&provider, &[("NAVI_SIGN_ON_JOIN", "no")]);
    refused(
        somebody(&server, &provider, "anna").await,
        "sign_on_refused",
    );
    let anna = Person::join(&server, "Anna", "user").await;
    let borys = Person::join(&server, "Borys", "user").await;
    let finish = |going: Going, login: &Login, body: Value| {
        let request = with(&server, Method::POST, "/api/account/sign-ons/finish", login);
        let cookies = format!("{}; {}", going.cookie, login.cookie);
        let mut request = request.build().unwrap();
        request
            .headers_mut()
            .insert("cookie", cookies.parse().unwrap());
        let request = RequestBuilder::from_parts(client().clone(), request);
        answered(request, Some(body))
    };
    let begin = async |login: &Login, sub: &str| {
        let going = Going::begin(&server, Some(login)).await;
        let token = provider.signer.sign(&going.claims(&provider, sub));
        provider.grants("code", &going.asks("code_challenge"), token);
        going
    };
    // A token links nothing, and neither does a browser that was left open.
    let (status, _) = anna
        .call(&server, Method::POST, "/api/account/sign-ons", None)
        .await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    let left_open = with(&server, Method::POST, "/api/account/sign-ons", &anna.login);
    assert_eq!(answered(left_open, None).await.0, StatusCode::BAD_REQUEST);
    // What she began another does not finish, nor does it sign anybody in.
    let going = begin(&anna.login, "anna").await;
    let body = going.back("code", &provider);
    let (_, said) = finish(going.clone(), &borys.login, body.clone()).await;
    assert_eq!(said["code"], "sign_on_failed");
    refused(going.finish(&server, body.clone()).await, "sign_on_failed");
    let (status, linked) = finish(going.clone(), &anna.login, body).await;
    assert_eq!(status, StatusCode::OK, "{linked}");
    assert_eq!(recorded(&server).await["what"], "identity_linked");
    let came = somebody(&server, &provider, "anna").await.unwrap();
    assert_eq!(account(&server, &came).await.1["id"], anna.id.as_str());
    // Hers is nobody else's.
    let going = begin(&borys.login, "anna").await;
    let body = going.back("code", &provider);
    let (status, said) = finish(going, &borys.login, body).await;
    assert_eq!(
        (status, &said["code"]),
        (StatusCode::CONFLICT, &json!("identity_taken"))
    );

    let path = format!("/api/account/sign-ons/{}", linked["id"].as_str().unwrap());
    let (status, _) = borys.call(&server, Method::DELETE, &path, None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, _) = anna.call(&server, Method::DELETE, &path, None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(recorded(&server).await["what"], "identity_unlinked");
    // What it let in is out, and it lets in nobody.
    assert_eq!(account(&server, &came).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(account(&server, &anna.login).await.0, StatusCode::OK);
    refused(
        somebody(&server, &provider, "anna").await,
        "sign_on_refused",
    );
}

#[tokio::test]
async fn the_only_way_in_that_is_taken_away() {
    let provider = Provider::start().await;
    let (_model, server) = with_provider(&provider, &[]);
    let anna = somebody(&server, &provider, "anna").await.unwrap();
    let list = with(&server, Method::GET, "/api/account/sign-ons", &anna);
    let linked = answered(list, None).await.1;
    let path = format!(
        "/api/account/sign-ons/{}",
        linked[0]["id"].as_str().unwrap()
    );
    let unlink = || answered(with(&server, Method::DELETE, &path, &anna), None);
    assert_eq!(unlink().await.0, StatusCode::FORBIDDEN);
    let chosen = with(&server, Method::PATCH, "/api/account", &anna);
    let body = json!({"password": PASSWORD});
    assert_eq!(answered(chosen, Some(body)).await.0, StatusCode::OK);
    assert_eq!(unlink().await.0, StatusCode::NO_CONTENT);
    assert!(sign_in(&server, "anna", PASSWORD).await.is_ok());
}

/// By an address alone nobody is anybody: where it is switched on, another provider has said that
/// it is theirs, and no admin comes in by it.
#[tokio::test]
async fn an_address_that_is_somebody_elses() {
    let (old, new) = (Provider::start().await, Provider::start().await);
    let moving = [("NAVI_OIDC_LINK_BY_EMAIL", "on")];
    let come =
        async |server: &Server, provider: &Provider, sub: &str, email: &str, verified: bool| {
            let going = Going::begin(server, None).await;
            let mut claims = going.claims(provider, sub);
            claims["email"] = json!(email);
            claims["email_verified"] = json!(verified);
            let login = going.come_in(server, provider, &claims).await.unwrap();
            account(server, &login).await.1["id"].clone()
        };
    let (_model, server) = with_provider(&old, &moving);
    let anna = come(&server, &old, "1", "anna@example.org", true).await;
    // There it is another person with the same address.
    assert_ne!(
        come(&server, &old, "2", "anna@example.org", true).await,
        anna
    );
    let olha = come(&server, &old, "3", "olha@example.org", true).await;
    let vira = come(&server, &old, "4", "vira@example.org", true).await;
    let path = format!("/api/people/{}", olha.as_str().unwrap());
    let (status, _) = server
        .call(Method::PATCH, &path, Some(json!({"role": "admin"})))
        .await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let house = server.house().clone();
    drop(server);
    let issuer = [("NAVI_OIDC_ISSUER", new.issuer.as_str())];
    let off = house.start_with(&[issuer[0], ("NAVI_OIDC_LINK_BY_EMAIL", "off")]);
    assert_ne!(come(&off, &new, "x", "vira@example.org", true).await, vira);
    drop(off);
    let server = house.start_with(&issuer);
    // Two had it, it is not verified, it is an admin's.
    for (sub, email, verified) in [
        ("a", "anna@example.org", true),
        ("b", "vira@example.org", false),
        ("c", "olha@example.org", true),
    ] {
        let who = come(&server, &new, sub, email, verified).await;
        assert!(![&anna, &olha, &vira].contains(&&who), "{sub}");
    }
    let ivan = come(&server, &new, "5", "ivan@example.org", true).await;
    drop(server);
    let back = house.start_with(&[("NAVI_OIDC_ISSUER", old.issuer.as_str())]);
    assert_eq!(come(&back, &old, "9", "ivan@example.org", true).await, ivan);
    let line = back.get("/api/record").await;
    let linked = line
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["what"] == "identity_linked");
    assert_eq!(linked.unwrap()["about"], "Home, by a verified address");
}
