use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::documents::fixtures;
use crate::tools::fake_session::{FakeSession, context};

async fn view(workspace: &Path, path: &str) -> ToolResult {
    let context = context(&Arc::new(FakeSession::default()), workspace);
    ViewImage.call(json!({"path": path}), context).await
}

#[tokio::test]
async fn an_image_comes_back_made_anew() {
    let dir = TempDir::new().unwrap();
    std::fs::create_dir(dir.path().join("uploads")).unwrap();
    let mut png = fixtures::png(40, 20);
    png.extend(b"what is none of its pixels");
    std::fs::write(dir.path().join("uploads/a.png"), &png).unwrap();
    let output = view(dir.path(), "./uploads/a.png").await.unwrap();
    assert!(output.text.contains("(40×20 pixels"), "{}", output.text);
    assert_eq!(output.images.len(), 1);
    assert!(!output.images[0].bytes.ends_with(b"pixels"), "made anew");
    assert_eq!(output.images[0].media_type, "image/png");
}

#[tokio::test]
async fn what_is_no_image_in_the_workspace_is_refused_with_a_reason() {
    let dir = TempDir::new().unwrap();
    let workspace = dir.path().join("workspace");
    std::fs::create_dir_all(workspace.join("uploads")).unwrap();
    let png = fixtures::png(4, 4);
    std::fs::write(dir.path().join("secret.png"), &png).unwrap();
    std::fs::write(workspace.join("uploads/b.png"), "<svg/>").unwrap();
    let outside = dir.path().join("secret.png").display().to_string();
    std::os::unix::fs::symlink(&outside, workspace.join("link.png")).unwrap();
    std::fs::hard_link(&outside, workspace.join("linked.png")).unwrap();
    for (path, reason) in [
        ("../secret.png", "has `..`"),
        (outside.as_str(), "is absolute"),
        ("a/../../secret.png", "has `..`"),
        ("a\0b", "has control characters"),
        ("", "is a directory"),
        ("link.png", "leads out of the workspace by a link"),
        ("linked.png", "is a hard link"),
        ("uploads", "is a directory"),
        ("uploads/a.png", "did you mean `uploads/b.png`?"),
        ("uploads/b.png", "cannot be shown: it is no PNG"),
    ] {
        let error = view(&workspace, path).await.unwrap_err().0;
        assert!(error.contains(reason), "{path}: {error}");
    }
    let mut blind = context(&Arc::new(FakeSession::default()), &workspace);
    blind.sees_images = false;
    let refused = ViewImage.call(json!({"path": "a"}), blind).await;
    assert!(refused.unwrap_err().0.contains("cannot see images"));
}
