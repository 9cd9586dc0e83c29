//! Ways for a model to get at files that are not its session's, through the filesystem tool.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Step};
use crate::server::{House, Server, text};

/// What no answer may have in it.
const CANARY: &str = "canary-7d41";

/// A service, a session whose workspace can be laid out, and a file beside all of it.
struct Scene {
    model: FakeModel,
    server: Server,
    session: String,
    workspace: PathBuf,
    secret: PathBuf,
}

impl Scene {
    async fn new() -> Self {
        Self::with(&[]).await
    }

    async fn with(variables: &[(&str, &str)]) -> Self {
        Self::laid_out(variables, |_| ()).await
    }

    /// With files that are there before the service is.
    async fn laid_out(variables: &[(&str, &str)], lay_out: impl FnOnce(&Path)) -> Self {
        let model = FakeModel::start();
        let url = model.url();
        let variables = [&[("OLLAMA_HOST", url.as_str())], variables].concat();
        let house = House::new(&variables);
        lay_out(house.data_dir().parent().unwrap());
        let server = house.start();
        let session = server.new_session().await;
        let sessions = server.house().data_dir().join("session_files");
        let workspace = sessions.join(&session);
        fs::create_dir_all(&workspace).unwrap();
        fs::write(workspace.join("inside.txt"), "inside").unwrap();
        let secret = server.house().data_dir().join("secret.txt");
        fs::write(&secret, CANARY).unwrap();
        Self {
            model,
            server,
            session,
            workspace,
            secret,
        }
    }

    /// What the tool answers to each call, and whether it did what was asked.
    async fn calls(&self, calls: &[Value]) -> Vec<(bool, String)> {
        let mut tab = self.server.tab(&self.session, None).await;
        let steps: Vec<Step> = calls
            .iter()
            .map(|arguments| Step::tool_call("filesystem", arguments.clone()))
            .collect();
        self.model.script(steps);
        self.model.script([Step::text("done")]);
        tab.send(&json!({"type": "message", "content": "go on"}))
            .await;
        let frames = tab.until("stream_end").await;
        let answers: Vec<_> = frames
            .iter()
            .filter(|frame| frame["type"] == "tool_call")
            .map(|frame| {
                let result = frame["result"].as_str().unwrap().to_owned();
                (frame["success"] == true, result)
            })
            .collect();
        assert_eq!(answers.len(), calls.len());
        for (_, answer) in &answers {
            assert!(!answer.contains(CANARY), "{answer}");
        }
        answers
    }

    /// That each call is refused, in words that have this in them.
    async fn refused(&self, calls: &[Value], words: &str) {
        let before = self.state();
        for ((success, answer), call) in self.calls(calls).await.into_iter().zip(calls) {
            assert!(!success, "{call}: {answer}");
            assert!(answer.contains(words), "{call}: {answer}");
        }
        assert_eq!(self.state(), before);
    }

    /// The secret, and the names beside it.
    fn state(&self) -> (String, Vec<PathBuf>) {
        let data_dir = self.server.house().data_dir();
        let mut names: Vec<PathBuf> = fs::read_dir(data_dir)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| !text(path).contains("navi.db"))
            .collect();
        names.sort();
        (fs::read_to_string(&self.secret).unwrap(), names)
    }
}

fn read(path: &str) -> Value {
    json!({"action": "read", "path": path})
}

/// A call of each kind that names a path.
fn all(path: &str) -> Vec<Value> {
    vec![
        read(path),
        json!({"action": "list", "path": path}),
        json!({"action": "search_names", "path": path, "pattern": "*"}),
        json!({"action": "search_content", "path": path, "pattern": "."}),
        json!({"action": "write", "path": path, "content": "overwritten"}),
        json!({"action": "edit", "path": path, "old_text": "canary", "new_text": "x"}),
        json!({"action": "move", "path": path, "to": "taken"}),
        json!({"action": "move", "path": "inside.txt", "to": path}),
        json!({"action": "delete", "path": path}),
    ]
}

#[tokio::test]
async fn dot_dot() {
    let scene = Scene::new().await;
    for path in ["../../secret.txt", "a/../../../secret.txt", ".."] {
        scene.refused(&all(path), "has `..`").await;
    }
}

#[tokio::test]
async fn absolute() {
    let scene = Scene::new().await;
    let secret = text(&scene.secret).to_owned();
    for path in [secret.as_str(), "/etc/passwd"] {
        scene.refused(&all(path), "is absolute").await;
    }
    scene
        .refused(&all("~/secret.txt"), "means a home directory")
        .await;
}

#[tokio::test]
async fn symlink_out() {
    let scene = Scene::new().await;
    symlink("../../secret.txt", scene.workspace.join("file")).unwrap();
    symlink("../..", scene.workspace.join("up")).unwrap();
    symlink(&scene.secret, scene.workspace.join("absolute")).unwrap();
    let calls = ["file", "absolute", "up/secret.txt"].map(read);
    scene
        .refused(&calls, "leads out of the workspace by a link")
        .await;
    let calls = [
        json!({"action": "list", "path": "up"}),
        json!({"action": "search_content", "path": "up", "pattern": "."}),
        json!({"action": "write", "path": "up/secret.txt", "content": "x"}),
        json!({"action": "write", "path": "up/made.txt", "content": "x"}),
        json!({"action": "delete", "path": "up/secret.txt"}),
        json!({"action": "move", "path": "up/secret.txt", "to": "taken"}),
        json!({"action": "move", "path": "inside.txt", "to": "up/made.txt"}),
    ];
    scene
        .refused(&calls, "leads out of the workspace by a link")
        .await;
    let calls =
        ["file", "absolute"].map(|path| json!({"action": "write", "path": path, "content": "x"}));
    scene.refused(&calls, "is a link; write to the file").await;
}

#[tokio::test]
async fn hard_link_out() {
    let scene = Scene::new().await;
    fs::hard_link(&scene.secret, scene.workspace.join("file")).unwrap();
    let calls = [
        read("file"),
        json!({"action": "write", "path": "file", "content": "x"}),
        json!({"action": "edit", "path": "file", "old_text": "canary", "new_text": "x"}),
    ];
    scene
        .refused(&calls, "is a hard link: the same file has a name outside")
        .await;
    let search = json!({"action": "search_content", "pattern": "canary"});
    let (success, answer) = scene.calls(&[search]).await.remove(0);
    assert!(
        success && answer.contains("1 file not searched"),
        "{answer}"
    );
}

#[tokio::test]
async fn dangling_symlink_on_write() {
    let scene = Scene::new().await;
    symlink("../../made.txt", scene.workspace.join("file")).unwrap();
    symlink("../../made", scene.workspace.join("directory")).unwrap();
    let write = |path| json!({"action": "write", "path": path, "content": "x"});
    scene.refused(&[write("file")], "is a link").await;
    scene
        .refused(&[write("directory/made.txt")], "`directory/made.txt`")
        .await;
}

#[tokio::test]
async fn swap_in_a_race() {
    let scene = Scene::new().await;
    let workspace = scene.workspace.clone();
    fs::create_dir(workspace.join("real")).unwrap();
    fs::write(workspace.join("real/secret.txt"), "harmless").unwrap();
    symlink("../..", workspace.join("link")).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let swapping = {
        let over = Arc::clone(&over);
        std::thread::spawn(move || swap(&workspace, &over))
    };
    let before = scene.state();
    for round in 0..6 {
        let calls = [
            read("place/secret.txt"),
            json!({"action": "search_content", "path": "place", "pattern": "canary|harmless"}),
            json!({"action": "list", "path": "place", "depth": 3}),
            json!({"action": "write", "path": "place/secret.txt", "content": format!("{round}")}),
            json!({"action": "edit", "path": "place/secret.txt", "old_text": "canary", "new_text": format!("{round}")}),
            json!({"action": "move", "path": "place/secret.txt", "to": format!("taken{round}")}),
            json!({"action": "move", "path": "inside.txt", "to": format!("place/made{round}")}),
            json!({"action": "delete", "path": "place/secret.txt"}),
        ];
        for (_, answer) in scene.calls(&calls).await {
            assert!(!answer.contains("navi.db"), "{answer}");
        }
    }
    over.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    assert_eq!(scene.state(), before);
}

/// A directory and a link that leads out take turns under one name.
fn swap(workspace: &Path, over: &AtomicBool) {
    let place = workspace.join("place");
    while !over.load(Ordering::Relaxed) {
        for name in ["real", "link"] {
            let home = workspace.join(name);
            // A write may have made the directory in the gap between two swaps, and an emptied
            // one goes with a write that fails.
            while fs::rename(&home, &place).is_err() && !over.load(Ordering::Relaxed) {
                let _ = fs::remove_dir_all(&place);
                if name == "real" {
                    let _ = fs::create_dir(&home);
                }
            }
            let _ = fs::rename(&place, &home);
        }
    }
}

#[tokio::test]
async fn proc_self() {
    let scene = Scene::new().await;
    for path in ["/proc/self/environ", "/proc/self/root/etc/passwd"] {
        scene.refused(&all(path), "is absolute").await;
    }
    for (name, target) in [
        ("environ", "/proc/self/environ"),
        ("root", "/proc/self/root"),
        ("cwd", "/proc/self/cwd"),
        ("fd", "/proc/self/fd"),
    ] {
        symlink(target, scene.workspace.join(name)).unwrap();
    }
    let calls = ["environ", "root/etc/passwd", "cwd/Cargo.toml", "fd/0"].map(read);
    scene
        .refused(&calls, "leads out of the workspace by a link")
        .await;
}

#[tokio::test]
async fn proc_self_with_the_fence_lifted() {
    let scene = Scene::with(&[
        ("FS_ALLOWED_PATHS", "*"),
        ("NAVI_CONSENT_MODE", "auto"),
        ("NAVI_API_TOKEN", crate::server::TOKEN),
    ])
    .await;
    let data_dir = scene.server.house().data_dir();
    // What Navi would read, though it is not there yet.
    let new = [
        "mcp.json",
        "ssh_hosts.json",
        "tools/x/run",
        "skills/x/SKILL.md",
        "new.txt",
    ];
    let calls = new.map(
        |name| json!({"action": "write", "path": text(&data_dir.join(name)), "content": "{}"}),
    );
    scene.refused(&calls, "is closed to this tool").await;
    let calls = ["/proc/self/environ", "/proc/self/mem", "/dev/zero"].map(read);
    scene.refused(&calls, "is closed to this tool").await;
    // Navi's own files, by their path and by a link of the user's.
    let secret = text(&scene.secret).to_owned();
    let lock = text(&data_dir.join("navi.lock")).to_owned();
    let link = data_dir.parent().unwrap().join("link");
    symlink(&data_dir, &link).unwrap();
    let linked = text(&link.join("secret.txt")).to_owned();
    let calls = [secret, lock, linked].map(|path| read(&path));
    scene.refused(&calls, "is closed to this tool").await;
    let status = scene.server.get("/api/status").await;
    let warnings = status["warnings"].to_string();
    assert!(warnings.contains("FS_ALLOWED_PATHS is *"), "{warnings}");
}

#[tokio::test]
async fn keys_that_navi_logs_in_with() {
    let lay_out = |home: &Path| {
        for name in ["keys/navi_ed25519", ".ssh/id_ed25519"] {
            fs::create_dir_all(home.join(name).parent().unwrap()).unwrap();
            fs::write(home.join(name), CANARY).unwrap();
        }
        fs::write(home.join("keys/plain.txt"), "plain").unwrap();
        fs::hard_link(home.join("keys/plain.txt"), home.join("plain too.txt")).unwrap();
        let hosts =
            json!({"box": {"host": "127.0.0.1", "user": "x", "key": "~/keys/navi_ed25519"}});
        fs::write(home.join("hosts.json"), hosts.to_string()).unwrap();
        symlink("keys/navi_ed25519", home.join("a link")).unwrap();
        fs::hard_link(home.join("keys/navi_ed25519"), home.join("a hard link")).unwrap();
        fs::hard_link(home.join(".ssh/id_ed25519"), home.join("another")).unwrap();
    };
    let house = tempfile::tempdir().unwrap();
    let hosts = house.path().join("hosts.json");
    // The hosts file is named before its directory is known.
    let variables = [
        ("FS_ALLOWED_PATHS", "*"),
        ("SSH_HOSTS_FILE", hosts.to_str().unwrap()),
    ];
    let scene = Scene::laid_out(&variables, |home| {
        lay_out(home);
        fs::copy(home.join("hosts.json"), &hosts).unwrap();
    })
    .await;
    let data_dir = scene.server.house().data_dir();
    let home = data_dir.parent().unwrap();
    fs::hard_link(&scene.secret, home.join("a hard link to data")).unwrap();
    let calls = [
        "keys/navi_ed25519",
        ".ssh/id_ed25519",
        "a link",
        "a hard link",
        "another",
        "a hard link to data",
    ]
    .map(|name| read(text(&home.join(name))));
    scene.refused(&calls, "is closed to this tool").await;
    let calls = ["keys/plain.txt", "plain too.txt"].map(|name| read(text(&home.join(name))));
    for (success, answer) in scene.calls(&calls).await {
        assert!(success && answer.contains("plain"), "{answer}");
    }
    let search = json!({"action": "search_content", "path": text(home), "pattern": "canary"});
    scene.calls(&[search]).await;
}

#[tokio::test]
async fn names_of_300_characters() {
    let scene = Scene::new().await;
    let long = "x".repeat(300);
    scene.refused(&all(&long), "has a name of 300 bytes").await;
    let deep = format!("{}/a", "y/".repeat(700));
    scene.refused(&all(&deep), "1024 is the limit").await;
}

#[tokio::test]
async fn nul() {
    let scene = Scene::new().await;
    for path in ["inside.txt\0.md", "\0", "../../secret.txt\0"] {
        scene.refused(&all(path), "has control characters").await;
    }
}

#[tokio::test]
async fn other_encodings() {
    let scene = Scene::new().await;
    // Percent-encoded, fullwidth and other forms of dots and slashes: names like any other.
    for path in [
        "%2e%2e/%2e%2e/secret.txt",
        "%2e%2e%2f%2e%2e%2fsecret.txt",
        "\u{ff0e}\u{ff0e}/\u{ff0e}\u{ff0e}/secret.txt",
        "\u{2024}\u{2024}\u{ff0f}\u{2024}\u{2024}\u{ff0f}secret.txt",
        "\u{2025}/\u{2025}/secret.txt",
        // What an overlong or a UTF-16 form of `../` becomes in JSON.
        "\u{c0}\u{ae}\u{c0}\u{ae}/secret.txt",
        ".\u{fffd}./secret.txt",
    ] {
        scene.refused(&[read(path)], "does not exist").await;
    }
    for path in ["..\\..\\secret.txt", "\\\\server\\share"] {
        scene.refused(&all(path), "has a backslash").await;
    }
    scene
        .refused(&all(".\0.\0/\0secret.txt"), "has control characters")
        .await;
    scene
        .refused(&all("a\u{202e}txt.exe"), "has control characters")
        .await;
}

#[tokio::test]
async fn another_sessions_files() {
    let scene = Scene::new().await;
    let other = scene.server.new_session().await;
    let place = scene.workspace.parent().unwrap().join(&other);
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("file.txt"), CANARY).unwrap();
    scene
        .refused(&all(&format!("../{other}/file.txt")), "has `..`")
        .await;
    let absolute = text(&place.join("file.txt")).to_owned();
    scene.refused(&all(&absolute), "is absolute").await;
    symlink(&place, scene.workspace.join("other")).unwrap();
    let calls = [read("other/file.txt")];
    scene
        .refused(&calls, "leads out of the workspace by a link")
        .await;
    assert_eq!(fs::read_to_string(place.join("file.txt")).unwrap(), CANARY);
    // Nor by what is kept of its changes.
    let changes = scene.workspace.parent().unwrap().join(".changes");
    let calls = [read(text(&changes)), read("../.changes")];
    for (success, answer) in scene.calls(&calls).await {
        assert!(!success, "{answer}");
    }
}
