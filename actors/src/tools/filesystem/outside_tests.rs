//! What `FS_ALLOWED_PATHS` opens, and what stays closed whatever it says.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::tests::Fixture;
use super::*;

/// A home as people have it, with Navi's data somewhere in it.
fn home(allowed: impl FnOnce(&Path) -> Vec<PathBuf>) -> Fixture {
    Fixture::allowing(|outside| {
        let outside = outside.canonicalize().unwrap();
        for (path, content) in [
            ("home/notes/plan.md", "one\n"),
            ("home/navi/navi.db", "canary"),
            ("home/navi/session_files/other/file.txt", "canary"),
            ("home/settings/navi.toml", "canary"),
        ] {
            let path = outside.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        FileAccess {
            allowed: allowed(&outside),
            closed: vec![
                outside.join("home/navi"),
                outside.join("home/settings/navi.toml"),
                outside.join("home/tools"),
                // The workspaces of these tests lie elsewhere.
            ],
            sessions_dir: outside.join("sessions"),
            home: Some(outside.join("home")),
            ..FileAccess::default()
        }
    })
}

fn at(place: &Fixture, path: &str) -> String {
    let path = place.outside().canonicalize().unwrap().join(path);
    path.display().to_string()
}

fn only_home(outside: &Path) -> Vec<PathBuf> {
    vec![outside.join("home")]
}

fn everything(_: &Path) -> Vec<PathBuf> {
    vec![PathBuf::from("/")]
}

fn read(path: &str) -> Value {
    json!({"action": "read", "path": path})
}

fn changing(path: &str) -> Vec<Value> {
    vec![
        json!({"action": "write", "path": path, "content": "overwritten"}),
        json!({"action": "edit", "path": path, "old_text": "canary", "new_text": "x"}),
        json!({"action": "move", "path": path, "to": "taken"}),
        json!({"action": "delete", "path": path}),
    ]
}

#[tokio::test]
async fn allowed_directories_are_used_by_their_absolute_path() {
    let place = home(only_home);
    let plan = at(&place, "home/notes/plan.md");
    let text = place.ok(read(&plan)).await;
    assert!(
        text.starts_with(&format!("`{plan}`, line 1 of 1")),
        "{text}"
    );
    assert!(place.ok(read("~/notes/plan.md")).await.ends_with("one"));
    let edit =
        json!({"action": "edit", "path": "~/notes/plan.md", "old_text": "one", "new_text": "two"});
    place.ok(edit).await;
    place
        .ok(json!({"action": "write", "path": "~/new/dir/a.md", "content": "a"}))
        .await;
    place
        .ok(json!({"action": "move", "path": "~/new/dir/a.md", "to": "here.md"}))
        .await;
    assert_eq!(place.content("here.md"), "a");
    let listed = place.ok(json!({"action": "list", "path": "~"})).await;
    assert!(listed.contains(&at(&place, "home/notes/")), "{listed}");
    let found = json!({"action": "search_content", "path": "~", "pattern": "two|canary"});
    let found = place.ok(found).await;
    assert!(found.contains(&format!("{plan}:1: two")), "{found}");
    assert!(
        !found.contains("canary\n") && !found.contains("navi.db"),
        "{found}"
    );
    // The rest of the machine is as closed as ever, and the error says what is open.
    let error = place.error(read("/etc/passwd")).await;
    assert!(error.contains("outside of what may be used"), "{error}");
    assert!(error.contains(&at(&place, "home")), "{error}");
    assert!(
        place
            .error(read(&at(&place, "secret.txt")))
            .await
            .contains("outside")
    );
    assert!(place.error(read("~/../secret.txt")).await.contains("`..`"));
}

#[tokio::test]
async fn the_workspace_may_be_named_by_its_own_place() {
    let place = Fixture::new();
    place.put("a.txt", "x");
    let path = place.workspace().join("a.txt").display().to_string();
    assert!(place.ok(read(&path)).await.starts_with("`a.txt`"));
}

#[tokio::test]
async fn what_navi_keeps_stays_closed() {
    for allowed in [only_home as fn(&Path) -> Vec<PathBuf>, everything] {
        let place = home(allowed);
        let outside = place.outside().canonicalize().unwrap();
        symlink("navi", outside.join("home/link")).unwrap();
        symlink("navi/navi.db", outside.join("home/db")).unwrap();
        symlink(outside.join("home/navi"), outside.join("home/absolute")).unwrap();
        fs::hard_link(
            outside.join("home/settings/navi.toml"),
            outside.join("home/hard"),
        )
        .unwrap();
        for path in [
            "home/navi/navi.db",
            "home/navi/navi.db-wal",
            "home/navi/new/file",
            "home/navi/session_files/other/file.txt",
            "home/settings/navi.toml",
            "home/link/navi.db",
            "home/absolute/navi.db",
            "home/hard",
            "home/tools/tool.json",
        ] {
            let path = at(&place, path);
            for arguments in [vec![read(&path)], changing(&path)].concat() {
                // A hard link is a name of its own: taking that away harms nothing.
                if path.ends_with("hard") && arguments["action"] == "move" {
                    continue;
                }
                let error = place.error(arguments.clone()).await;
                assert!(!error.contains("canary"), "{arguments}: {error}");
            }
        }
        let error = place.error(read(&at(&place, "home/db"))).await;
        assert!(error.contains("is closed to this tool"), "{error}");
        // Nor can what holds it be taken away with it.
        for path in ["home", "home/navi", "home/settings/navi.toml", "home/navi/"] {
            for action in ["move", "delete"] {
                let path = at(&place, path);
                let call = json!({"action": action, "path": path, "to": "taken"});
                place.error(call).await;
            }
        }
        for (path, content) in [
            ("home/navi/navi.db", "canary"),
            ("home/navi/session_files/other/file.txt", "canary"),
            ("home/settings/navi.toml", "canary"),
        ] {
            assert_eq!(fs::read_to_string(outside.join(path)).unwrap(), content);
        }
        assert!(!outside.join("home/tools").exists());
        let listed = json!({"action": "list", "path": at(&place, "home"), "depth": 9});
        let listed = place.ok(listed).await;
        assert!(!listed.contains("navi.db ("), "{listed}");
        assert!(!listed.contains("navi.toml"), "{listed}");
    }
}

#[tokio::test]
async fn a_lifted_fence_leaves_the_kernels_own_directories_closed() {
    let place = home(everything);
    assert!(place.ok(read("/etc/passwd")).await.contains("root"));
    for path in [
        "/proc/self/environ",
        "/proc/self/root/proc/self/environ",
        "/proc/self/mem",
        "/dev/zero",
        "/sys/kernel/notes",
    ] {
        let error = place.error(read(path)).await;
        assert!(
            error.contains("is closed to this tool") || error.contains("does not exist"),
            "{error}"
        );
    }
    let link = place.workspace().join("environ");
    symlink("/proc/self/environ", link).unwrap();
    let error = place.error(read("environ")).await;
    assert!(error.contains("leads out of the workspace"), "{error}");
}

#[test]
fn changes_beyond_the_workspace_are_the_hosts() {
    let tool = |allowed| {
        Filesystem::new(Arc::new(FileAccess {
            allowed,
            closed: Vec::new(),
            sessions_dir: PathBuf::from("/data/sessions"),
            home: Some(PathBuf::from("/home/ann")),
            ..FileAccess::default()
        }))
    };
    let write = |path: &str| json!({"action": "write", "path": path, "content": "x"});
    let fenced = tool(Vec::new());
    assert_eq!(fenced.spec().effect, Effect::Write);
    for path in ["a.md", "/etc/passwd", "~/a.md"] {
        // What is refused is not asked about.
        assert_eq!(fenced.effect(&write(path)), Effect::Write);
    }
    let open = tool(everything(Path::new("")));
    assert_eq!(open.spec().effect, Effect::Host);
    for path in ["/etc/passwd", "~/a.md", "/data/sessions/../navi.db", "//a"] {
        assert_eq!(open.effect(&write(path)), Effect::Host, "{path}");
        let out = json!({"action": "move", "path": "a.md", "to": path});
        assert_eq!(open.effect(&out), Effect::Host, "{path}");
        let read = json!({"action": "read", "path": path});
        assert_eq!(open.effect(&read), Effect::Read, "{path}");
    }
    for path in ["a.md", "a/../b", "/data/sessions/1/a.md", "~a/b"] {
        assert_eq!(open.effect(&write(path)), Effect::Write, "{path}");
    }
}

#[test]
fn a_folder_in_navis_own_place_is_open_where_it_is_named() {
    let place = home(|outside| {
        let shared = outside.join("home/navi/shared");
        fs::create_dir_all(&shared).unwrap();
        fs::write(shared.join("plan.md"), "shared").unwrap();
        let link = outside.join("home/navi/link");
        symlink("session_files/other", &link).unwrap();
        vec![shared, link]
    });
    let reach = place.reach();
    let is_open = |path: &str| {
        let spot = reach.spot(&at(&place, path));
        spot.is_ok_and(|spot| spot.root.open_file(&spot.path).is_ok())
    };
    assert!(is_open("home/navi/shared/plan.md"));
    for closed in [
        "home/navi/navi.db",
        "home/navi/shared/../navi.db",
        "home/navi/link/file.txt",
        "home/navi/session_files/other/file.txt",
    ] {
        assert!(!is_open(closed), "{closed}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever a path is made of: what it leads to lies in the workspace, or there is none.
    #[test]
    fn no_path_leads_out(parts in proptest::collection::vec(
        prop_oneof![
            Just(".."), Just("."), Just(""), Just("in"), Just("up"), Just("out"), Just("a"),
            Just("~"), Just("secret.txt"), Just("workspace"), Just("%2e%2e"), Just("\u{ff0e}\u{ff0e}"),
            Just("\u{2024}\u{2024}"), Just(".. "), Just("..\u{200b}"), Just("root"),
        ],
        1..7,
    )) {
        let place = Fixture::new();
        place.put("in/a", "inside");
        symlink("..", place.workspace().join("in/up")).unwrap();
        symlink("../..", place.workspace().join("in/out")).unwrap();
        symlink("/", place.workspace().join("root")).unwrap();
        let path = parts.join("/");
        let reach = place.reach();
        if let Ok(spot) = reach.spot(&path) {
            if let Ok(file) = spot.root.open_file(&spot.path) {
                let mut text = String::new();
                std::io::Read::read_to_string(&mut { file }, &mut text).unwrap();
                prop_assert_eq!(text, "inside", "{}", path);
            }
            let log = ChangeLog::open(&reach, ChangeAction::Write, Origin::default()).unwrap();
            let _ = write::write(&log, &spot, "overwritten");
        }
        let secret = fs::read_to_string(place.outside().join("secret.txt")).unwrap();
        prop_assert_eq!(secret, "the secret", "{}", path);
        let mut outside: Vec<_> = fs::read_dir(place.outside())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .filter(|name| name != ".changes")
            .collect();
        outside.sort();
        prop_assert_eq!(outside, ["secret.txt", "workspace"], "{}", path);
    }
}

#[tokio::test]
async fn always_for_the_workspace_is_not_always_for_the_machine() {
    use crate::tools::fake_session::{FakeSession, context};

    let place = home(only_home);
    place.put("a.md", "a");
    let tool = Filesystem::new(Arc::clone(place.access()));
    let context = context(&Arc::new(FakeSession::default()), &place.workspace());
    let plan = at(&place, "home/notes/plan.md");
    let mut keys = Vec::new();
    for arguments in [
        json!({"action": "write", "path": "b.md", "content": "x"}),
        json!({"action": "move", "path": "a.md", "to": "c.md"}),
        json!({"action": "write", "path": plan, "content": "x"}),
        json!({"action": "move", "path": plan, "to": "c.md"}),
        json!({"action": "move", "path": "a.md", "to": at(&place, "home/notes/a.md")}),
        json!({"action": "delete", "path": plan}),
        json!({"action": "write", "path": at(&place, "home/b.md"), "content": "x"}),
    ] {
        let proposal = tool.proposal(&arguments, &context).await.unwrap();
        keys.push(proposal.rule.unwrap().key);
    }
    assert_eq!(keys[0], keys[1]);
    keys.remove(0);
    let all = keys.len();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), all, "{keys:?}");
}
