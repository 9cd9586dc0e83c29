//! Who comes in: links, cookies, tokens, and from which page.

use futures_util::future::join_all;
use reqwest::header::{COOKIE, HOST, ORIGIN, SET_COOKIE};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Reply, Step};
use crate::server::{House, Login, Server, TOKEN, client};

async fn get_with(server: &Server, path: &str, login: &Login) -> StatusCode {
    let mut request = client().get(format!("{}{path}", server.url));
    for (name, value) in login.headers() {
        request = request.header(name, value);
    }
    request.send().await.unwrap().status()
}

async fn post_with(server: &Server, headers: &[(&str, &str)]) -> (StatusCode, Value) {
    let mut request = client().post(format!("{}/sessions", server.url));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await.unwrap();
    (response.status(), response.json().await.unwrap())
}

#[tokio::test]
async fn a_link_works_once_and_only_for_who_opens_it() {
    let server = House::new(&[]).start();
    let link = server.link();
    let head = client().head(&link).send().await.unwrap();
    assert_eq!(head.status(), StatusCode::OK);
    assert!(head.headers().get(SET_COOKIE).is_none());
    let prefetch = client().get(&link).header("Sec-Purpose", "prefetch");
    let prefetch = prefetch.send().await.unwrap();
    assert_eq!(prefetch.status(), StatusCode::SERVICE_UNAVAILABLE);

    let login = Login::by(&link).await;
    assert_eq!(get_with(&server, "/sessions", &login).await, StatusCode::OK);

    let again = client().get(&link).header("Accept", "text/html");
    let again = again.send().await.unwrap();
    assert_eq!(again.status(), StatusCode::GONE);
    assert!(again.text().await.unwrap().contains("navi link"));
    let known = client().get(&link).header(COOKIE, &login.cookie);
    assert_eq!(known.send().await.unwrap().status(), StatusCode::SEE_OTHER);

    let wrong = client().get(format!("{}/login/{}", server.url, "0".repeat(64)));
    let wrong = wrong.send().await.unwrap();
    assert_eq!(wrong.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(wrong.json::<Value>().await.unwrap()["code"], "unauthorized");
}

#[tokio::test]
async fn navi_link_prints_another_and_a_login_outlives_a_crash() {
    let server = House::new(&[]).start();
    let link = server.link();
    assert!(link.starts_with(&server.url), "{link}");
    let mut login = Login::by(&link).await;

    // The cookie's name carries the port, so the port must stay.
    let port = server.authority().rsplit_once(':').unwrap().1.to_owned();
    let server = server.crash_and_restart();
    let new_port = server.authority().rsplit_once(':').unwrap().1;
    let (old, new) = (format!("navi_{port}"), format!("navi_{new_port}"));
    login.cookie = login.cookie.replace(&old, &new);
    assert_eq!(get_with(&server, "/sessions", &login).await, StatusCode::OK);

    let log_out = client().post(format!("{}/logout", server.url));
    let log_out = log_out
        .header(COOKIE, &login.cookie)
        .header("x-navi-key", &login.key)
        .header(ORIGIN, &server.url);
    assert_eq!(
        log_out.send().await.unwrap().status(),
        StatusCode::NO_CONTENT
    );
    assert_eq!(
        get_with(&server, "/sessions", &login).await,
        StatusCode::UNAUTHORIZED
    );
}

#[test]
fn a_link_names_the_public_address_and_programs_here_come_in_all_the_same() {
    let model = FakeModel::start();
    let house = House::new(&[
        ("OLLAMA_HOST", &model.url()),
        ("NAVI_API_TOKEN", ""),
        ("NAVI_ACCOUNTS", "on"),
        ("NAVI_PUBLIC_URL", "https://home.example/navi"),
    ]);
    let server = house.start();
    let printed = house.run(&["link"]);
    let outside = String::from_utf8(printed.stdout).unwrap();
    let secret = outside
        .trim()
        .strip_prefix("https://home.example/navi/login/");
    let secret = secret.expect("the public address");
    let here = format!("{}/login/{secret}", server.url);
    let told = String::from_utf8(printed.stderr).unwrap();
    assert!(told.contains(&here), "{told}");

    // By a cookie that is for TLS alone.
    model.script(Reply::new([Step::text("Here I am.")]));
    let answered = house.run(&["chat", "-p", "Are you there?"]);
    let said = String::from_utf8_lossy(&answered.stderr).into_owned();
    assert!(answered.status.success(), "{said}");
    let answer = String::from_utf8(answered.stdout).unwrap();
    assert_eq!(answer.trim(), "Here I am.");
}

#[test]
fn commands_go_by_the_service_and_not_by_settings_of_their_own() {
    let house = House::new(&[]);
    let _server = house.start_with(&[
        ("NAVI_ACCOUNTS", "on"),
        ("NAVI_PUBLIC_URL", "https://home.example/navi"),
    ]);
    let printed = |arguments: &[&str]| {
        let output = house.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    };
    printed(&["user", "list"]);
    let link = printed(&["link"]);
    assert!(
        link.starts_with("https://home.example/navi/login/"),
        "{link}"
    );
    let invitation = printed(&["user", "add"]);
    assert!(
        invitation.starts_with("https://home.example/navi/#invitation="),
        "{invitation}"
    );
}

#[tokio::test]
async fn who_listens_everywhere_tells_people_where_they_can_go() {
    let house = House::new(&[("NAVI_ACCOUNTS", "on"), ("NAVI_BIND", "0.0.0.0:0")]);
    let server = house.start();
    let banner = server.banner.join("\n");
    assert!(!banner.contains("0.0.0.0"), "{banner}");
    for arguments in [&["link"][..], &["user", "add"]] {
        let output = house.run(arguments);
        let link = String::from_utf8(output.stdout).unwrap();
        assert!(link.starts_with(&server.url), "{link}");
        let beside = String::from_utf8(output.stderr).unwrap();
        assert!(beside.contains("NAVI_PUBLIC_URL"), "{beside}");
    }
    let name = server.authority().replace("127.0.0.1", "nas.lan");
    let request = client().get(&server.url).header(HOST, &name);
    let refused: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!(refused["code"], "forbidden_host");
    let message = refused["message"].as_str().unwrap();
    for told in [name.as_str(), "NAVI_PUBLIC_URL"] {
        assert!(message.contains(told), "{message}");
    }
}

#[tokio::test]
async fn a_cookie_counts_only_from_our_own_page() {
    let server = House::new(&[]).start();
    let login = server.log_in().await;
    let (cookie, key) = (
        ("cookie", login.cookie.as_str()),
        ("x-navi-key", login.key.as_str()),
    );
    let (status, _) = post_with(&server, &[cookie, key, ("origin", &server.url)]).await;
    assert_eq!(status, StatusCode::CREATED);
    let (status, _) = post_with(&server, &[cookie, key, ("sec-fetch-site", "same-origin")]).await;
    assert_eq!(status, StatusCode::CREATED);
    for wrong in [
        vec![cookie, key],
        vec![cookie, key, ("origin", "http://evil.example")],
        vec![cookie, key, ("origin", "http://localhost:1")],
        vec![cookie, key, ("origin", "null")],
        vec![cookie, key, ("sec-fetch-site", "same-site")],
        vec![
            ("authorization", &format!("Bearer {TOKEN}")),
            ("origin", "http://evil.example"),
        ],
    ] {
        let (status, body) = post_with(&server, &wrong).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{wrong:?}");
        assert_eq!(body["code"], "forbidden_origin");
    }
    let sessions = server.get("/sessions").await;
    assert_eq!(sessions.as_array().unwrap().len(), 2);

    let read = client().get(format!("{}/sessions", server.url));
    let read = read
        .header("cookie", cookie.1)
        .header("x-navi-key", key.1)
        .header("sec-fetch-site", "cross-site");
    assert_eq!(read.send().await.unwrap().status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn other_names_for_this_machine_are_refused() {
    let server = House::new(&[]).start();
    for host in ["evil.example", "localhost.evil.example:80", "0.0.0.0"] {
        for path in ["/health", "/", "/sessions"] {
            let request = client().get(format!("{}{path}", server.url));
            let response = request.header(HOST, host).send().await.unwrap();
            assert_eq!(response.status(), StatusCode::FORBIDDEN, "{host} {path}");
            let body: Value = response.json().await.unwrap();
            assert_eq!(body["code"], "forbidden_host");
        }
    }
}

#[tokio::test]
async fn tokens_are_made_listed_and_taken_back() {
    let server = House::new(&[]).start();
    let made = server.post("/api/tokens", json!({"name": "backup"})).await;
    let token = made["token"].as_str().unwrap();
    let with = |token: String| {
        let request = client().get(format!("{}/api/tokens", server.url));
        async move { request.bearer_auth(token).send().await.unwrap() }
    };
    let list: Value = with(token.to_owned()).await.json().await.unwrap();
    assert_eq!(list[0]["name"], "backup");
    assert!(list[0].get("token").is_none() && list[0].get("hash").is_none());

    let printed = server.house().run(&["token", "add", "from the terminal"]);
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert_eq!(
        with(printed.trim().to_owned()).await.status(),
        StatusCode::OK
    );

    let path = format!("/api/tokens/{}", made["id"].as_str().unwrap());
    let (status, _) = server.call(Method::DELETE, &path, None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(
        with(token.to_owned()).await.status(),
        StatusCode::UNAUTHORIZED
    );
    let (status, body) = server.call(Method::DELETE, &path, None).await;
    assert_eq!(
        (status, &body["code"]),
        (StatusCode::NOT_FOUND, &json!("not_found"))
    );
    let (status, _) = server.call(Method::DELETE, "/api/tokens/x", None).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let (status, _) = server
        .call(Method::POST, "/api/tokens", Some(json!({"name": " "})))
        .await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_token_of_the_terminal_stands_in_the_record() {
    let server = House::new(&[("NAVI_ACCOUNTS", "on")]).start();
    let made = server.house().run(&["token", "add", "phone"]);
    assert!(made.status.success(), "{made:?}");
    let tokens = server.get("/api/tokens").await;
    let id = tokens[0]["id"].as_str().unwrap();
    let removed = server.house().run(&["token", "remove", id]);
    assert!(removed.status.success(), "{removed:?}");
    let record = server.get("/api/record").await;
    let lines = record.as_array().unwrap().iter();
    let lines = lines.filter(|line| line["name"] == "navi token");
    let lines: Vec<_> = lines.map(|line| line["what"].as_str().unwrap()).collect();
    assert_eq!(lines, ["token_removed", "token_made"], "{record}");
}

#[tokio::test]
async fn wrong_tries_are_limited_and_right_ones_are_not() {
    let server = House::new(&[]).start();
    // One more is free every two seconds: all at once, so that it does not matter how long each takes.
    let guess = |number| {
        let request = client().get(format!("{}/sessions", server.url));
        request.bearer_auth(format!("guess{number}")).send()
    };
    let guesses = join_all((0..40).map(guess)).await.into_iter();
    let mut told = guesses.map(|it| it.unwrap().status());
    assert!(told.any(|it| it == StatusCode::TOO_MANY_REQUESTS));
    server.get("/sessions").await;
}
