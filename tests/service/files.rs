//! Files over REST and on their way to the model (SPEC sections 11 to 13).

use reqwest::{Method, StatusCode};
use sea_orm::{ConnectionTrait as _, Database};
use serde_json::{Value, json};

use crate::fake_model::{Config, FakeModel, Step};
use crate::server::{House, Server, TOKEN, client};

/// A PNG of one red pixel.
pub(super) const PIXEL: &[u8] = &[
    0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, b'I', b'H', b'D', b'R', 0, 0, 0,
    1, 0, 0, 0, 1, 8, 2, 0, 0, 0, 0x90, 0x77, 0x53, 0xde, 0, 0, 0, 0x0c, b'I', b'D', b'A', b'T',
    0x08, 0xd7, 0x63, 0xf8, 0xcf, 0xc0, 0, 0, 0x03, 0x01, 0x01, 0, 0x18, 0xdd, 0x8d, 0xb0, 0, 0, 0,
    0, b'I', b'E', b'N', b'D', 0xae, 0x42, 0x60, 0x82,
];

async fn upload(server: &Server, session: &str, name: &str, bytes: &[u8]) -> Value {
    let mut body = format!(
        "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n"
    )
    .into_bytes();
    body.extend(bytes);
    body.extend(b"\r\n--b--\r\n");
    let response = client()
        .post(format!("{}/sessions/{session}/files", server.url))
        .bearer_auth(TOKEN)
        .header("content-type", "multipart/form-data; boundary=b")
        .body(body)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::CREATED);
    let answer: Value = response.json().await.unwrap();
    answer["files"][0].clone()
}

async fn list(server: &Server, session: &str) -> Vec<Value> {
    let files = server.get(&format!("/sessions/{session}/files")).await;
    files["files"].as_array().unwrap().clone()
}

/// The last request of the main loop.
fn last_request(model: &FakeModel) -> Vec<Value> {
    let chats = model.chats();
    let main = chats.iter().rfind(|chat| chat.body.get("tools").is_some());
    let messages = &main.expect("the model was asked").body["messages"];
    messages.as_array().unwrap().clone()
}

#[tokio::test]
async fn an_attached_image_is_looked_at_again_and_shown_in_the_page() {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    let session = server.new_session().await;
    let file = upload(&server, &session, "photo.png", PIXEL).await;
    assert_eq!(list(&server, &session).await, std::slice::from_ref(&file));
    let mut tab = server.tab(&session, None).await;
    model.script([Step::tool_call("view_image", json!({"path": file["path"]}))]);
    model.script([Step::text("It is red.")]);
    let files = json!([{"name": "photo.png", "path": file["path"]}]);
    tab.send(&json!({"type": "message", "content": "which colour?", "files": files}))
        .await;
    let accepted = tab.next_of("message_accepted").await;
    assert_eq!(accepted["files"][0]["file_id"], file["file_id"]);
    let call = tab.next_of("tool_call").await;
    assert_eq!(call["success"], true, "{call}");
    let shown = &call["files"][0];
    assert_eq!(
        (&shown["image"], &shown["name"]),
        (&json!(true), &json!("view_image 1.png"))
    );
    tab.next_of("stream_end").await;

    let messages = last_request(&model);
    let at = messages
        .iter()
        .position(|message| message["role"] == "tool")
        .unwrap();
    assert_eq!(messages[at + 1]["role"], "user");
    assert_eq!(messages[at + 1]["images"].as_array().map(Vec::len), Some(1));
    let asked = messages
        .iter()
        .find(|message| message["role"] == "user")
        .unwrap();
    assert_eq!(asked["images"].as_array().map(Vec::len), Some(1));

    let id = shown["file_id"].as_str().unwrap();
    let url = format!("{}/sessions/{session}/files/{id}/image", server.url);
    let image = client().get(url).bearer_auth(TOKEN).send().await.unwrap();
    assert_eq!(image.status(), StatusCode::OK);
    assert_eq!(image.headers()["content-type"], "image/png");
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    let messages = snapshot["messages"].as_array().unwrap();
    let told = messages
        .iter()
        .find(|message| message["role"] == "tool")
        .unwrap();
    assert_eq!(&told["files"][0], shown);
    let sources: Vec<Value> = list(&server, &session).await;
    let sources: Vec<_> = sources.iter().map(|file| &file["source"]).collect();
    assert_eq!(sources, ["upload", "tool"]);
    model.assert_clean();
}

#[tokio::test]
async fn a_model_that_sees_nothing_is_told_so() {
    let model = FakeModel::start();
    let mut config = Config::default();
    config.capabilities.retain(|it| it != "vision");
    model.configure(config);
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    let session = server.new_session().await;
    let file = upload(&server, &session, "photo.png", PIXEL).await;
    model.script([Step::tool_call("view_image", json!({"path": file["path"]}))]);
    model.script([Step::text("I cannot see it.")]);
    let message = json!({"content": "which colour?", "files": [{"path": file["path"]}]});
    server
        .post(&format!("/sessions/{session}/messages"), message)
        .await;
    let messages = last_request(&model);
    assert!(
        messages
            .iter()
            .all(|message| message.get("images").is_none())
    );
    let content = |role: &str| {
        let message = messages.iter().find(|message| message["role"] == role);
        message.unwrap()["content"].as_str().unwrap().to_owned()
    };
    assert!(
        content("user").contains("you cannot see"),
        "{}",
        content("user")
    );
    assert!(
        content("tool").contains("cannot see images"),
        "{}",
        content("tool")
    );
}

#[tokio::test]
async fn a_file_that_nobody_used_for_long_goes_and_what_was_read_stays() {
    let model = FakeModel::start();
    let house = House::new(&[
        ("OLLAMA_HOST", &model.url()),
        ("SESSION_FILES_TTL_HOURS", "1"),
    ]);
    let server = house.start();
    let session = server.new_session().await;
    let file = upload(&server, &session, "notes.txt", b"the budget is 42").await;
    let copy = server.house().data_dir().join(format!(
        "session_files/{session}/{}",
        file["path"].as_str().unwrap()
    ));
    let message = json!({"content": "read it", "files": [{"path": file["path"]}]});
    server
        .post(&format!("/sessions/{session}/messages"), message)
        .await;
    assert_eq!(std::fs::read(&copy).unwrap(), b"the budget is 42");

    let path = house.data_dir().join("navi.db").display().to_string();
    let url = house
        .variable("DATABASE_URL")
        .unwrap_or(format!("sqlite://{path}"));
    let database = Database::connect(url).await.unwrap();
    let age = "UPDATE session_files SET last_used_at = '2020-01-01 00:00:00+00:00'";
    database.execute_unprepared(age).await.unwrap();
    database.close().await.unwrap();
    let server = server.crash_and_restart();
    while !list(&server, &session).await.is_empty() {
        tokio::task::yield_now().await;
    }
    while copy.exists() {
        tokio::task::yield_now().await;
    }
    let id = file["file_id"].as_str().unwrap();
    let gone = server
        .call(
            Method::GET,
            &format!("/sessions/{session}/files/{id}"),
            None,
        )
        .await;
    assert_eq!(
        (gone.0, &gone.1["code"]),
        (StatusCode::NOT_FOUND, &json!("file_not_found"))
    );
    server
        .post(
            &format!("/sessions/{session}/messages"),
            json!({"content": "and now?"}),
        )
        .await;
    let messages = last_request(&model);
    let asked = messages
        .iter()
        .find(|message| message["role"] == "user")
        .unwrap();
    assert!(
        asked["content"]
            .as_str()
            .unwrap()
            .contains("the budget is 42"),
        "{asked}"
    );
}
