//! What the filesystem tool changed, and taking it back, over REST.

use std::fs;
use std::path::PathBuf;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Step};
use crate::server::{House, Server};

struct Scene {
    model: FakeModel,
    server: Server,
    session: String,
}

impl Scene {
    async fn new() -> Self {
        let model = FakeModel::start();
        let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
        let session = server.new_session().await;
        Self {
            model,
            server,
            session,
        }
    }

    async fn run(&self, calls: &[Value]) {
        let mut tab = self.server.tab(&self.session, None).await;
        let steps: Vec<Step> = calls
            .iter()
            .map(|call| Step::tool_call("filesystem", call.clone()))
            .collect();
        self.model.script(steps);
        self.model.script([Step::text("done")]);
        tab.send(&json!({"type": "message", "content": "go on"}))
            .await;
        tab.until("stream_end").await;
    }

    fn file(&self, name: &str) -> PathBuf {
        let sessions = self.server.house().data_dir().join("session_files");
        sessions.join(&self.session).join(name)
    }

    async fn changes(&self) -> Vec<Value> {
        let path = format!("/sessions/{}/changes", self.session);
        let list = self.server.get(&path).await;
        list["changes"].as_array().unwrap().clone()
    }

    async fn undo(&self, id: &Value) -> (StatusCode, Value) {
        let id = id.as_str().unwrap();
        let path = format!("/sessions/{}/changes/{id}/undo", self.session);
        self.server.call(Method::POST, &path, None).await
    }
}

#[tokio::test]
async fn changes_are_listed_and_undone_and_the_tabs_are_told() {
    let scene = Scene::new().await;
    assert_eq!(scene.changes().await, Vec::<Value>::new());
    scene
        .run(&[
            json!({"action": "write", "path": "notes/plan.md", "content": "one\n"}),
            json!({"action": "edit", "path": "notes/plan.md", "old_text": "one", "new_text": "two"}),
            json!({"action": "move", "path": "notes/plan.md", "to": "plan.md"}),
            json!({"action": "delete", "path": "plan.md"}),
        ])
        .await;
    let changes = scene.changes().await;
    let actions: Vec<&Value> = changes.iter().map(|change| &change["action"]).collect();
    assert_eq!(actions, ["delete", "move", "edit", "write"]);
    assert_eq!(changes[1]["to"], "plan.md");
    assert_eq!(changes[0]["undoable"], true);
    assert_eq!(changes[1]["undoable"], false);
    assert_eq!(changes[1]["why_not"], "`plan.md` is not there any more");
    assert!(changes[0]["run_id"].is_string() && changes[0]["call_id"].is_string());

    let mut tab = scene.server.tab(&scene.session, None).await;
    let (status, undone) = scene.undo(&changes[0]["id"]).await;
    assert_eq!(status, StatusCode::OK, "{undone}");
    assert_eq!(
        (&undone["action"], &undone["undoes"]),
        (&json!("undo"), &changes[0]["id"])
    );
    assert_eq!(undone["undoable"], true);
    assert_eq!(fs::read_to_string(scene.file("plan.md")).unwrap(), "two\n");
    let notice = tab.next_of("notice").await;
    assert_eq!(notice["code"], "change_undone");
    assert_eq!(notice["message"], "a change of plan.md was undone");
    assert!(notice["seq"].is_u64(), "{notice}");

    // Twice is once.
    let (status, error) = scene.undo(&changes[0]["id"]).await;
    assert_eq!(
        (status, &error["code"]),
        (StatusCode::CONFLICT, &json!("change_conflict"))
    );
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("undone already")
    );
    // The list has the undo, and the move can be undone now.
    let changes = scene.changes().await;
    assert_eq!(changes[0]["action"], "undo");
    assert_eq!(changes[2]["undoable"], true);
    // A file that someone changed since stays as they left it.
    fs::write(scene.file("plan.md"), "mine\n").unwrap();
    let (status, error) = scene.undo(&changes[2]["id"]).await;
    assert_eq!(status, StatusCode::CONFLICT, "{error}");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("has changed since")
    );
    assert_eq!(fs::read_to_string(scene.file("plan.md")).unwrap(), "mine\n");
}

#[tokio::test]
async fn changes_outlive_a_crash() {
    let mut scene = Scene::new().await;
    scene
        .run(&[json!({"action": "write", "path": "a.md", "content": "one\n"})])
        .await;
    scene.server = scene.server.crash_and_restart();
    let change = scene.changes().await.remove(0);
    let (status, _) = scene.undo(&change["id"]).await;
    assert_eq!(status, StatusCode::OK);
    assert!(!scene.file("a.md").exists());
}

#[tokio::test]
async fn changes_are_their_sessions_alone() {
    let scene = Scene::new().await;
    scene
        .run(&[json!({"action": "write", "path": "a.md", "content": "one\n"})])
        .await;
    let change = scene.changes().await.remove(0)["id"].clone();
    let change = change.as_str().unwrap();
    let other = scene.server.new_session().await;
    let nobody = "00000000-0000-7000-8000-000000000000";
    for (path, status, code) in [
        (
            format!("{other}/changes/{change}/undo"),
            StatusCode::NOT_FOUND,
            "change_not_found",
        ),
        (
            format!("{nobody}/changes/{change}/undo"),
            StatusCode::NOT_FOUND,
            "session_not_found",
        ),
        (
            format!("{}/changes/{nobody}/undo", scene.session),
            StatusCode::NOT_FOUND,
            "change_not_found",
        ),
        (
            format!("{}/changes/..%2f../undo", scene.session),
            StatusCode::BAD_REQUEST,
            "invalid_id",
        ),
    ] {
        let path = format!("/sessions/{path}");
        let (found, body) = scene.server.call(Method::POST, &path, None).await;
        assert_eq!((found, &body["code"]), (status, &json!(code)), "{path}");
    }
    let path = format!("/sessions/{nobody}/changes");
    let (status, _) = scene.server.call(Method::GET, &path, None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(scene.file("a.md").exists());
    // With the session they go, and come back with it.
    let session = format!("/sessions/{}", scene.session);
    scene.server.call(Method::DELETE, &session, None).await;
    let (status, _) = scene
        .server
        .call(Method::GET, &format!("{session}/changes"), None)
        .await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    scene
        .server
        .post(&format!("{session}/restore"), json!({}))
        .await;
    assert_eq!(scene.changes().await.len(), 1);
}
