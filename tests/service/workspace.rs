//! A session's workspace over REST: what stands in it, its files, and no way out of it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Step};
use crate::server::{House, Server, TOKEN, client};

use super::files::PIXEL;

struct Scene {
    server: Server,
    session: String,
}

impl Scene {
    /// A session in which the model has written a file.
    async fn new() -> Self {
        let model = FakeModel::start();
        let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
        let session = server.new_session().await;
        let scene = Self { server, session };
        assert_eq!(scene.names("").await, [] as [&str; 0]);
        let report = json!({"action": "write", "path": "notes/report.md", "content": "# Rivers\n"});
        model.script([Step::tool_call("filesystem", report)]);
        model.script([Step::text("done")]);
        let mut tab = scene.server.tab(&scene.session, None).await;
        tab.send(&json!({"type": "message", "content": "write it"}))
            .await;
        tab.until("stream_end").await;
        scene
    }

    fn place(&self) -> PathBuf {
        let sessions = self.server.house().data_dir().join("session_files");
        sessions.join(&self.session)
    }

    async fn asked(&self, what: &str, path: &str) -> (StatusCode, Value) {
        let url = format!("/sessions/{}/workspace{what}?path={path}", self.session);
        self.server.call(Method::GET, &url, None).await
    }

    async fn names(&self, path: &str) -> Vec<String> {
        let (status, listing) = self.asked("", path).await;
        assert_eq!(status, StatusCode::OK, "{listing}");
        assert_eq!(listing["complete"], true);
        let entries = listing["entries"].as_array().unwrap();
        let path = |entry: &Value| entry["path"].as_str().unwrap().to_owned();
        entries.iter().map(path).collect()
    }

    async fn loaded(&self, what: &str, path: &str) -> reqwest::Response {
        let url = format!(
            "{}/sessions/{}/workspace/{what}?path={path}",
            self.server.url, self.session
        );
        let request = client().get(url).bearer_auth(TOKEN);
        request.send().await.unwrap()
    }
}

#[tokio::test]
async fn what_the_tools_wrote_is_listed_and_can_be_kept() {
    let scene = Scene::new().await;
    fs::write(scene.place().join("zebra.txt"), "stripes").unwrap();
    assert_eq!(scene.names("").await, ["notes", "zebra.txt"]);
    assert_eq!(scene.names("notes").await, ["notes/report.md"]);
    let (_, listing) = scene.asked("", ".").await;
    assert_eq!(listing["entries"][0]["kind"], "directory");
    assert_eq!(listing["entries"][1]["kind"], "file");
    assert_eq!(listing["entries"][1]["bytes"], 7);
    assert!(listing["entries"][1]["modified_at"].is_string());

    let file = scene.loaded("file", "notes/report.md").await;
    assert_eq!(file.status(), StatusCode::OK);
    let headers = file.headers().clone();
    assert_eq!(headers["content-type"], "application/octet-stream");
    assert!(
        headers["content-disposition"]
            .to_str()
            .unwrap()
            .starts_with("attachment; filename=\"report.md\"")
    );
    assert!(
        headers["content-security-policy"]
            .to_str()
            .unwrap()
            .contains("sandbox")
    );
    assert_eq!(file.text().await.unwrap(), "# Rivers\n");
}

#[tokio::test]
async fn an_image_is_shown_as_one_of_our_own_making_and_nothing_else_is() {
    let scene = Scene::new().await;
    fs::write(scene.place().join("plot.png"), PIXEL).unwrap();
    fs::write(
        scene.place().join("plot.svg"),
        "<svg onload=\"alert(1)\"></svg>",
    )
    .unwrap();
    let image = scene.loaded("image", "plot.png").await;
    assert_eq!(image.status(), StatusCode::OK);
    assert_eq!(image.headers()["content-type"], "image/png");
    let (status, told) = scene.asked("/image", "plot.svg").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_eq!(told["code"], "file_not_found");
}

#[tokio::test]
async fn no_path_leads_out_and_none_blocks() {
    let scene = Scene::new().await;
    let place = scene.place();
    let outside = scene.server.house().data_dir().join("secret.txt");
    fs::write(&outside, "secret").unwrap();
    symlink(&outside, place.join("link.txt")).unwrap();
    symlink("/etc", place.join("etc")).unwrap();
    fs::hard_link(&outside, place.join("hard.txt")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(place.join("pipe"))
        .status();
    assert!(made.unwrap().success());
    for path in [
        "../secret.txt",
        "notes/../../secret.txt",
        "/etc/passwd",
        "~/x",
        "a%00b",
    ] {
        for what in ["", "/file", "/image"] {
            let (status, told) = scene.asked(what, path).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{what} {path}: {told}");
            assert_eq!(told["code"], "invalid_field");
        }
    }
    for path in [
        "link.txt",
        "etc/passwd",
        "hard.txt",
        "pipe",
        "notes/none.txt",
    ] {
        for what in ["", "/file", "/image"] {
            let (status, told) = scene.asked(what, path).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{what} {path}: {told}");
            assert!(!told.to_string().contains("secret\""), "{told}");
        }
    }
    let url = format!("/sessions/{}/workspace/file", scene.session);
    let (status, _) = scene.server.call(Method::GET, &url, None).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let nobody = client()
        .get(format!("{}{url}?path=notes/report.md", scene.server.url))
        .send()
        .await
        .unwrap();
    assert_eq!(nobody.status(), StatusCode::UNAUTHORIZED);
    let other = "/sessions/00000000-0000-7000-8000-000000000000/workspace";
    let (status, _) = scene.server.call(Method::GET, other, None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}
