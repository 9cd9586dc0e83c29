//! Whom commands run as, what is done where they cannot be held, and the same for documents.

use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use navi_actors::protocol::tool::Effect;
use navi_actors::tools::Tool as _;
use navi_actors::tools::sandbox::Limits;
use navi_actors::tools::terminal::Allowed;
use serde_json::json;

use super::ward::{IN_GROUP, Ward};
use crate::fake_model::FakeModel;
use crate::processes::is_root;
use crate::server::{House, PATIENCE, copy_program, program};

#[tokio::test]
async fn running_as_root() {
    let said = Ward::inside()
        .run("id -u; id -G; cat /proc/self/status")
        .await
        .unwrap();
    assert!(!said.starts_with("0\n"), "{said}");
    if !is_root() {
        return;
    }
    assert!(said.starts_with("65534\n65534\n"), "{said}");
    let ward = Ward::inside();
    std::fs::write(ward.workspace().join("ours"), "made by the service").unwrap();
    assert!(
        ward.works("echo more >> ours && rm ours && touch theirs")
            .await
    );
    let owner = std::fs::metadata(ward.workspace().join("theirs"))
        .unwrap()
        .uid();
    assert_eq!(owner, 65534);
    assert!(!ward.works("su -c true").await);
    assert!(!ward.works("chown 0 theirs").await);
}

#[tokio::test]
async fn as_root_without_a_user_every_command_asks_and_says_why() {
    if !is_root() {
        return;
    }
    let ward = Ward::new(Allowed::Any, Limits::default(), Some("none".to_owned()));
    let args = json!({"action": "run", "command": "id -u"});
    assert_eq!(ward.terminal.effect(&args), Effect::Host);
    let proposal = ward
        .terminal
        .proposal(&args, &ward.context())
        .await
        .unwrap();
    assert_eq!(proposal.rule, None);
    let why = &proposal.details.last().unwrap().text;
    assert!(why.contains("NAVI_SANDBOX_USER"), "{why}");
    // Allowed, it has what there is: no rights but a user's, no network, no files outside.
    assert!(!ward.works("ls /root").await);
    assert!(!ward.works("chown 1 .").await);
    assert!(!ward.python("import socket; socket.socket()").await);
}

/// The whole way: the mode that does everything unasked does not do this.
async fn each_command_asks_in_the_mode_auto(house: House, why: &str) {
    let model = FakeModel::start();
    let url = model.url();
    let auto = [("OLLAMA_HOST", url.as_str()), ("NAVI_CONSENT_MODE", "auto")];
    let server = house.with(&auto).start();
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    for decision in ["deny", "once"] {
        let args = json!({"action": "run", "command": format!("touch {decision}")});
        let content = format!("use the tool: terminal {args}");
        tab.send(&json!({"type": "message", "content": content}))
            .await;
        let asked = tab.next_of("approval_requested").await;
        let reason = asked["request"]["reason"].as_str().unwrap();
        assert!(reason.contains("nothing holds this command"), "{reason}");
        assert!(reason.contains(why), "{reason}");
        let id = &asked["approval_id"];
        let answer = json!({"type": "approve", "approval_id": id, "decision": decision});
        tab.send(&answer).await;
        tab.next_of("stream_end").await;
    }
    let data = server.house().data_dir();
    let workspace = data.join("session_files").join(&session);
    assert!(!workspace.join("deny").exists());
    assert!(workspace.join("once").exists());
}

#[tokio::test]
async fn as_root_without_a_user_and_in_the_mode_auto() {
    if is_root() {
        let house = House::new(&[("NAVI_SANDBOX_USER", "none")]);
        each_command_asks_in_the_mode_auto(house, "NAVI_SANDBOX_USER").await;
    }
}

#[tokio::test]
async fn without_namespaces_and_in_the_mode_auto() {
    let house = House::new(&[("FAILPOINT_NO_NAMESPACES", "1")]).of_nobody();
    each_command_asks_in_the_mode_auto(house, "the kernel gives no namespaces").await;
}

/// What parses a document holds nothing but the document: no file, no network, no program.
#[test]
fn a_document_that_takes_its_reader_over() {
    let mut reader = Command::new(program())
        .args(["read-document", "application/pdf"])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", reader.id());
    let field = |name: &str| {
        let status = std::fs::read_to_string(&status).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().to_owned()
    };
    let until = Instant::now() + PATIENCE;
    while field("Seccomp:") != "2" {
        assert!(Instant::now() < until, "it is held by nothing");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(field("NoNewPrivs:"), "1");
    assert_eq!(field("CapEff:"), "0000000000000000");
    if is_root() {
        // Whoever has no right to say so keeps a bound that bounds nothing they have.
        assert_eq!(field("CapBnd:"), "0000000000000000");
    }
    let users = field("Uid:");
    assert!(!users.split_whitespace().any(|uid| uid == "0"), "{users}");
    reader.kill().unwrap();
    reader.wait().unwrap();

    // The same seal on a thread of ours: what it could not do then.
    let tried = std::thread::spawn(|| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        navi_actors::tools::sandbox::seal().unwrap();
        [
            std::fs::read("/etc/passwd").is_ok(),
            std::fs::write(dir.path().join("new"), "x").is_ok(),
            std::net::TcpStream::connect(at).is_ok(),
            Command::new("/bin/true").status().is_ok(),
        ]
    });
    assert_eq!(tried.join().unwrap(), [false; 4]);
}

/// The attacks of these modules once more: as a user that is no root, as root without namespaces,
/// and in a control group that is delegated to such a user, where this machine has them.
#[test]
fn by_whomever_and_whatever_they_are_held() {
    if !is_root() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let copy = |from: &Path, name: &str| {
        let to = place.path().join(name);
        copy_program(from, &to);
        to
    };
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let tests = copy(&std::env::current_exe().unwrap(), "tests");
    let navi = copy(&program(), "navi");
    let modules = [
        "security::sandbox",
        "security::limits",
        "security::privileges",
        "security::commands",
        "security::user_tools",
    ];
    let run = |script: &str, modules: &[&str], variables: &[(&str, &str)]| {
        let done = Command::new("sh")
            .args(["-euc", script, "sh"])
            .arg(&tests)
            .args(modules)
            .args(["--skip", "by_whomever", "--test-threads", "4"])
            // The service reads it, whoever wrote it: that takes long and needs no second look.
            .args(["--skip", "endless_output_that_is_no_text"])
            .env("NAVI_TEST_PROGRAM", &navi)
            .env("TMPDIR", place.path())
            .env("HOME", place.path())
            .envs(variables.iter().copied())
            .current_dir(place.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success(), "{script} {variables:?}: {done:?}");
        assert!(said.contains(" passed; 0 failed"), "{said}");
    };
    let drops = "exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$@\"";
    run(drops, &modules, &[]);
    run("exec \"$@\"", &modules, &[("FAILPOINT_NO_NAMESPACES", "1")]);
    let Some(group) = delegated_group() else {
        println!("control groups: not tried, this machine has none of version 2 with memory");
        return;
    };
    let path = group.display();
    run(
        &format!("echo $$ >{path}/cgroup.procs; {drops}"),
        &["security::limits"],
        &[(IN_GROUP, "1")],
    );
    for below in ["commands", "service", ""] {
        std::fs::remove_dir(group.join(below)).unwrap();
    }
}

/// A control group of a user that is no root, as systemd makes one with `Delegate=yes`.
fn delegated_group() -> Option<PathBuf> {
    let top = Path::new("/sys/fs/cgroup");
    let controllers = std::fs::read_to_string(top.join("cgroup.subtree_control")).ok()?;
    let has = |name: &str| controllers.split_whitespace().any(|one| one == name);
    if !has("memory") || !has("pids") {
        return None;
    }
    let group = top.join(format!("navi-tests-{}", std::process::id()));
    std::fs::create_dir(&group).unwrap();
    for file in ["", "cgroup.procs", "cgroup.subtree_control"] {
        std::os::unix::fs::chown(group.join(file), Some(65_534), Some(65_534)).unwrap();
    }
    Some(group)
}

#[tokio::test]
async fn as_root_commands_run_as_nobody_by_themselves() {
    if !is_root() {
        return;
    }
    let ward = Ward::new(Allowed::Any, Limits::default(), None);
    let args = json!({"action": "run", "command": "id -u"});
    assert_eq!(ward.terminal.effect(&args), Effect::Write);
    let said = ward.call(args).await.unwrap();
    assert!(said.starts_with("65534\n"), "{said}");
}

#[tokio::test]
async fn without_landlock_there_is_no_sandbox_and_doctor_says_so() {
    let user = if is_root() { "nobody" } else { "" };
    let house = House::new(&[("FAILPOINT_NO_LANDLOCK", "1"), ("NAVI_SANDBOX_USER", user)]);
    let said = house.run(&["doctor"]);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(
        said.contains("each command is asked about: the kernel has no Landlock"),
        "{said}"
    );
    let refused = house.run(&["sandbox", "--", "true"]);
    assert!(!refused.status.success());
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        why.contains("there is no sandbox here: the kernel has no Landlock"),
        "{why}"
    );
}
