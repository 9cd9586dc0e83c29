//! The tool against a real sshd.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use super::sshd::{Agent, Sshd, key, wait_until};
use super::*;
use crate::protocol::ids::CallId;
use crate::tools::fake_session::{FakeSession, Recorded, context};
use crate::tools::output::RESULT_LIMIT_BYTES;
use crate::tools::registry::Registry;

/// A tool with one host, `box`, which is the server.
struct World {
    server: Sshd,
    workspace: tempfile::TempDir,
    config: SshConfig,
    context: ToolContext,
    live: Arc<Recorded>,
}

impl World {
    fn new() -> Self {
        Self::with(Sshd::start())
    }

    /// With the server's key known.
    fn known() -> Self {
        let world = Self::new();
        world.know();
        world
    }

    fn with(server: Sshd) -> Self {
        let workspace = tempfile::tempdir().unwrap();
        let host = Host {
            name: "box".to_owned(),
            address: "127.0.0.1".to_owned(),
            port: server.port,
            user: server.user.clone(),
            key: Some(server.path("user_key")),
            agent: false,
            description: "a test's own".to_owned(),
        };
        let config = SshConfig {
            hosts: vec![host],
            known_hosts: server.path("navi/known_hosts"),
            more_known_hosts: None,
            agent_socket: None,
        };
        let session = Arc::new(FakeSession::default());
        let live = Arc::new(Recorded::default());
        let mut context = context(&session, workspace.path());
        context.output = live.clone();
        Self {
            server,
            workspace,
            config,
            context,
            live,
        }
    }

    fn know(&self) {
        let path = &self.config.known_hosts;
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, self.server.known_hosts_line()).unwrap();
    }

    fn tool(&self) -> Ssh {
        Ssh::new(self.config.clone())
    }

    fn host(&mut self, change: impl FnOnce(&mut Host)) {
        let mut host = self.config.hosts[0].clone();
        change(&mut host);
        self.config.hosts = vec![host];
    }

    /// A context of another call of the same session.
    fn another_call(&self) -> ToolContext {
        ToolContext {
            call_id: CallId::new(),
            ..self.context.clone()
        }
    }

    /// Another call, which a person has allowed.
    fn approved_call(&self) -> ToolContext {
        ToolContext {
            approved: true,
            ..self.another_call()
        }
    }

    async fn call(&self, tool: &Ssh, args: Value) -> Result<String, String> {
        self.call_in(tool, args, self.another_call()).await
    }

    async fn call_in(
        &self,
        tool: &Ssh,
        args: Value,
        context: ToolContext,
    ) -> Result<String, String> {
        let output = tool.call(args, context).await.map_err(|error| error.0)?;
        Ok(output.text)
    }

    async fn run(&self, tool: &Ssh, command: &str) -> Result<String, String> {
        self.call(tool, run(command)).await
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.workspace.path().join(name)
    }

    fn shown(&self) -> String {
        self.live.0.lock().clone()
    }
}

fn run(command: &str) -> Value {
    json!({"action": "run", "host": "box", "command": command})
}

#[tokio::test]
async fn a_command_gives_its_output_and_exit_code() {
    let world = World::known();
    let tool = world.tool();
    let output = tool
        .call(run("echo out; echo err >&2; exit 3"), world.another_call())
        .await
        .unwrap();
    let (first, rest) = output.text.split_once("\n\n").unwrap();
    assert_eq!(first, "box: exit code 3");
    assert!(rest.contains("out\n") && rest.contains("err\n"), "{rest}");
    assert_eq!(
        world.run(&tool, "true").await.unwrap(),
        "box: exit code 0; no output"
    );
    // Its input is empty: what would wait for some goes on.
    assert!(
        world
            .run(&tool, "cat; echo done")
            .await
            .unwrap()
            .ends_with("done\n")
    );
    assert_eq!(
        world.run(&tool, "kill -KILL $$").await.unwrap(),
        "box: ended by signal KILL; no output"
    );
}

#[tokio::test]
async fn output_is_shown_while_the_command_runs() {
    let world = World::known();
    let tool = Arc::new(world.tool());
    let go = world.server.path("go");
    let command = format!(
        "echo waiting; while [ ! -e {} ]; do sleep 0.05; done; echo went",
        go.display()
    );
    let running = {
        let (tool, context) = (Arc::clone(&tool), world.another_call());
        tokio::spawn(async move { tool.call(run(&command), context).await })
    };
    let live = Arc::clone(&world.live);
    tokio::task::spawn_blocking(move || {
        wait_until("the first line is shown", || {
            live.0.lock().contains("waiting\n")
        });
    })
    .await
    .unwrap();
    assert!(!world.shown().contains("went"));
    std::fs::write(go, "").unwrap();
    let text = running.await.unwrap().unwrap().text;
    assert_eq!(text, "box: exit code 0\n\nwaiting\nwent\n");
    assert_eq!(world.shown(), "waiting\nwent\n");
}

#[tokio::test]
async fn two_commands_take_one_connection() {
    let world = World::known();
    let tool = world.tool();
    let both = tokio::join!(world.run(&tool, "echo a"), world.run(&tool, "echo b"));
    assert!(both.0.is_ok() && both.1.is_ok(), "{both:?}");
    world.run(&tool, "echo c").await.unwrap();
    assert_eq!(world.server.log_ins(), 1, "{}", world.server.log());
    // Another session has its own.
    let mut other = world.another_call();
    other.session_id = crate::protocol::ids::SessionId::new();
    world.call_in(&tool, run("echo d"), other).await.unwrap();
    assert_eq!(world.server.log_ins(), 2);
    tool.session_closed(world.context.session_id);
    assert_eq!(tool.pool.len(), 1);
}

#[tokio::test]
async fn a_dead_connection_is_made_anew() {
    let mut world = World::known();
    let tool = world.tool();
    world.run(&tool, "echo a").await.unwrap();
    world.server.stop();
    assert!(
        world
            .run(&tool, "echo b")
            .await
            .unwrap_err()
            .contains("cannot be reached")
    );
    world.server.start_again();
    let text = world.run(&tool, "echo c").await.unwrap();
    assert!(text.ends_with("c\n"), "{text}");
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let world = World::known();
    let mut tool = Ssh::new(world.config.clone());
    tool.pool = Pool::new(Duration::from_millis(400)).into();
    world.run(&tool, "echo a").await.unwrap();
    // One that is in use is not idle, however long it takes.
    world.run(&tool, "sleep 1; echo b").await.unwrap();
    let before = world.server.log_ins();
    while tool.pool.len() > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    world.run(&tool, "echo c").await.unwrap();
    assert_eq!(world.server.log_ins(), before + 1);
}

#[tokio::test]
async fn an_unknown_host_is_asked_about_and_then_known() {
    let world = World::new();
    let tool = world.tool();
    let args = run("echo hello");
    // A call that nobody was asked about trusts nobody.
    let error = world.call(&tool, args.clone()).await.unwrap_err();
    assert!(error.contains("nobody has approved"), "{error}");
    assert!(!world.config.known_hosts.exists());
    // Nor does one whose proposal was made, and nobody saw it: the mode may be auto.
    let unseen = world.another_call();
    tool.proposal(&args, &unseen).await.unwrap();
    let error = world
        .call_in(&tool, args.clone(), unseen)
        .await
        .unwrap_err();
    assert!(error.contains("nobody has approved"), "{error}");

    let call = world.approved_call();
    let proposal = tool.proposal(&args, &call).await.unwrap();
    let fingerprint = world.server.fingerprint();
    let shown = &proposal.details[1];
    assert_eq!(shown.label, "key of the new host");
    assert!(shown.text.starts_with(&fingerprint), "{shown:?}");
    assert!(proposal.binding.contains(&fingerprint));
    assert_eq!(proposal.rule, None);
    assert_eq!(
        tool.proposal(&args, &call).await.unwrap().binding,
        proposal.binding
    );
    let text = world
        .call_in(&tool, args.clone(), call.clone())
        .await
        .unwrap();
    assert!(text.ends_with("hello\n"), "{text}");
    let stored = std::fs::read_to_string(&world.config.known_hosts).unwrap();
    assert_eq!(stored, world.server.known_hosts_line());

    // The approval of a call that was asked about the key outlives another's being first.
    assert_eq!(
        tool.proposal(&args, &call).await.unwrap().binding,
        proposal.binding
    );
    // Later calls are asked about the command alone.
    let later = tool.proposal(&args, &world.another_call()).await.unwrap();
    assert_eq!(later.details.len(), 3, "{later:?}");
    let rule = later.rule.unwrap();
    assert_eq!(rule.words.to_string(), "`echo hello` on box");
    let other = tool
        .proposal(&run("echo  hello"), &world.another_call())
        .await;
    assert_ne!(other.unwrap().rule.unwrap().key, rule.key);
}

#[tokio::test]
async fn another_key_than_the_approved_one_is_refused() {
    let mut world = World::new();
    let tool = world.tool();
    let args = run("echo hello");
    let call = world.approved_call();
    let approved = tool.proposal(&args, &call).await.unwrap();
    world.server.start_with_another_key();
    // The binding differs, so that the approval does not count.
    let again = tool.proposal(&args, &world.another_call()).await.unwrap();
    assert_ne!(approved.binding, again.binding);
    // And the run itself looks once more.
    let error = world.call_in(&tool, args, call).await.unwrap_err();
    assert!(error.contains("nobody has approved"), "{error}");
    assert!(!world.config.known_hosts.exists());
}

#[tokio::test]
async fn a_changed_host_key_is_refused_with_file_and_line() {
    let mut world = World::known();
    let tool = world.tool();
    world.run(&tool, "echo a").await.unwrap();
    world.server.start_with_another_key();
    let error = world.run(&tool, "touch owned").await.unwrap_err();
    let place = format!("{}, line 1", world.config.known_hosts.display());
    assert!(
        error.starts_with("refused: the host `box` shows another key"),
        "{error}"
    );
    assert!(
        error.contains(&place) && error.contains(&world.server.fingerprint()),
        "{error}"
    );
    // Nobody can approve it away.
    let call = world.approved_call();
    tool.proposal(&run("echo b"), &call).await.unwrap();
    assert!(world.call_in(&tool, run("echo b"), call).await.is_err());
}

#[tokio::test]
async fn the_users_own_known_hosts_count_where_they_are_named() {
    let mut world = World::new();
    let own = world.server.path("users_known_hosts");
    std::fs::write(&own, world.server.known_hosts_line()).unwrap();
    world.config.more_known_hosts = Some(own);
    let tool = world.tool();
    world.run(&tool, "echo a").await.unwrap();
    assert!(!world.config.known_hosts.exists());
}

#[tokio::test]
async fn keys_of_every_kind_log_in() {
    for (host, user, more) in [
        ("ecdsa", "ecdsa", &[][..]),
        ("ed25519", "rsa", &[][..]),
        ("ed25519", "rsa", &["-m", "PEM"][..]),
        ("ed25519", "rsa", &["-m", "PKCS8"][..]),
        ("ed25519", "ecdsa", &["-m", "PKCS8"][..]),
    ] {
        let world = World::with(Sshd::with(host, user));
        world.know();
        if !more.is_empty() {
            for name in ["user_key", "user_key.pub"] {
                std::fs::remove_file(world.server.path(name)).unwrap();
            }
            key(&world.server.path("user_key"), user, more);
            std::fs::copy(
                world.server.path("user_key.pub"),
                world.server.path("authorized_keys"),
            )
            .unwrap();
        }
        let answer = world.run(&world.tool(), "echo in").await;
        assert!(answer.is_ok(), "{host}, {user}, {more:?}: {answer:?}");
    }
}

#[tokio::test]
async fn a_host_with_an_rsa_key_alone_is_told_for_what_it_is() {
    let world = World::with(Sshd::with("rsa", "ed25519"));
    let error = world
        .tool()
        .proposal(&run("true"), &world.context)
        .await
        .unwrap_err();
    assert!(
        error.0.contains("no host key that can be checked here"),
        "{error}"
    );
}

#[tokio::test]
async fn a_key_that_cannot_be_used_is_told_with_its_reason() {
    let mut world = World::known();
    let encrypted = world.server.path("encrypted");
    key(&encrypted, "ed25519", &["-N", "hunter2"]);
    world.host(|host| host.key = Some(encrypted.clone()));
    let error = world.run(&world.tool(), "true").await.unwrap_err();
    assert!(error.contains("encrypted with a passphrase"), "{error}");
    assert!(
        error.contains(&format!("ssh-add {}", encrypted.display())),
        "{error}"
    );

    let other = world.server.path("other");
    key(&other, "ed25519", &[]);
    world.host(|host| host.key = Some(other.clone()));
    let error = world.run(&world.tool(), "true").await.unwrap_err();
    assert!(error.contains("refused the user"), "{error}");

    set_mode(&other, 0o644);
    let error = world.run(&world.tool(), "true").await.unwrap_err();
    assert!(error.contains("open to others (mode 644)"), "{error}");

    std::fs::write(&other, "hunter2").unwrap();
    set_mode(&other, 0o600);
    let error = world.run(&world.tool(), "true").await.unwrap_err();
    assert!(
        error.contains("no private key that can be read here"),
        "{error}"
    );
    assert!(!error.contains("hunter2"), "{error}");

    world.host(|host| host.key = Some("/nowhere/key".into()));
    let error = world.run(&world.tool(), "true").await.unwrap_err();
    assert!(error.contains("cannot be opened"), "{error}");
}

#[tokio::test]
async fn the_agent_signs() {
    let mut world = World::known();
    let agent = Agent::start(world.server.dir.path());
    world.host(|host| {
        host.key = None;
        host.agent = true;
    });
    let error = world.run(&world.tool(), "true").await.unwrap_err();
    assert!(error.contains("SSH_AUTH_SOCK was not set"), "{error}");
    world.config.agent_socket = Some(agent.socket.clone());
    let error = world.run(&world.tool(), "true").await.unwrap_err();
    assert!(error.contains("has no keys"), "{error}");
    let other = world.server.path("other");
    key(&other, "rsa", &[]);
    agent.add(&other);
    let error = world.run(&world.tool(), "true").await.unwrap_err();
    assert!(error.contains("with each of the 1 keys"), "{error}");
    agent.add(&world.server.path("user_key"));
    let text = world.run(&world.tool(), "echo in").await.unwrap();
    assert!(text.ends_with("in\n"), "{text}");
}

#[tokio::test]
async fn the_agent_signs_for_a_key_whose_file_is_encrypted() {
    let mut world = World::known();
    let agent = Agent::start(world.server.dir.path());
    agent.add(&world.server.path("user_key"));
    let changed = std::process::Command::new("ssh-keygen")
        .args(["-q", "-p", "-N", "hunter2", "-f"])
        .arg(world.server.path("user_key"))
        .output()
        .unwrap();
    assert!(changed.status.success(), "{changed:?}");
    world.config.agent_socket = Some(agent.socket.clone());
    world.host(|host| host.agent = true);
    world.run(&world.tool(), "echo in").await.unwrap();
}

#[tokio::test]
async fn files_go_there_and_come_back() {
    let world = World::known();
    let tool = world.tool();
    let there = world.server.path("there");
    std::fs::create_dir(&there).unwrap();
    // Larger than every window and buffer on the way.
    let content: Vec<u8> = (0..24_000_000_u32)
        .map(|n| (n * 7 + n / 251) as u8)
        .collect();
    std::fs::write(world.file("big.bin"), &content).unwrap();
    let to = there.join("big.bin");
    let upload = json!({"action": "upload", "host": "box", "path": "big.bin", "to": there});
    let text = world.call(&tool, upload.clone()).await.unwrap();
    assert_eq!(
        text,
        format!("uploaded `big.bin` (22.9 MiB) to `{}` on box", to.display())
    );
    assert!(
        std::fs::read(&to).unwrap() == content,
        "what arrived is another"
    );
    assert!(
        world.shown().ends_with("22.9 MiB of 22.9 MiB\n"),
        "{}",
        world.shown()
    );

    let download = json!({"action": "download", "host": "box", "from": to, "path": "new/back.bin"});
    let output = tool.call(download, world.another_call()).await.unwrap();
    assert_eq!(
        output.text,
        "downloaded 22.9 MiB from box to the workspace's file `new/back.bin`"
    );
    assert!(std::fs::read(world.file("new/back.bin")).unwrap() == content);

    // What stands there is replaced in one step, and keeps its mode.
    set_mode(&to, 0o640);
    std::fs::write(world.file("big.bin"), "small").unwrap();
    world.call(&tool, upload).await.unwrap();
    assert_eq!(std::fs::read(&to).unwrap(), b"small");
    assert_eq!(mode(&to), 0o640);
    // A script can be run there.
    std::fs::write(world.file("script.sh"), "#!/bin/sh\necho ran\n").unwrap();
    set_mode(&world.file("script.sh"), 0o700);
    let script = there.join("script.sh");
    world
        .call(
            &tool,
            json!({"action": "upload", "host": "box", "path": "script.sh", "to": script}),
        )
        .await
        .unwrap();
    let text = world
        .run(&tool, &script.display().to_string())
        .await
        .unwrap();
    assert!(text.ends_with("ran\n"), "{text}");
    // Nothing is left behind.
    let mut names: Vec<_> = std::fs::read_dir(&there)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["big.bin", "script.sh"]);
}

#[tokio::test]
async fn what_cannot_be_transferred_is_told_with_its_reason() {
    let world = World::known();
    let tool = world.tool();
    std::fs::write(world.file("a"), "a").unwrap();
    std::fs::create_dir(world.file("dir")).unwrap();
    let here = world.server.dir.path().display();
    let mut errors = Vec::new();
    for args in [
        json!({"action": "upload", "path": "b", "to": "/tmp/b"}),
        json!({"action": "upload", "path": "dir", "to": "/tmp/b"}),
        json!({"action": "upload", "path": "a", "to": format!("{here}/no/such")}),
        json!({"action": "upload", "path": "a", "to": "/dev/null"}),
        json!({"action": "upload", "path": "a"}),
        json!({"action": "download", "from": format!("{here}/none"), "path": "x"}),
        json!({"action": "download", "from": here.to_string(), "path": "x"}),
        json!({"action": "download", "from": format!("{here}/log"), "path": "dir"}),
        json!({"action": "download", "from": format!("{here}/log"), "path": "../x"}),
    ] {
        let mut args = args;
        args["host"] = json!("box");
        let error = world.call(&tool, args).await.unwrap_err();
        errors.push(error.replace(&here.to_string(), "DIR"));
    }
    insta::assert_snapshot!(errors.join("\n"));
    assert!(!world.file("x").exists());
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended_with_its_output_told() {
    let world = World::known();
    let tool = world.tool();
    let mark = world.server.path("mark");
    let mut args = run(&format!("echo begun; sleep 600; touch {}", mark.display()));
    args["timeout_seconds"] = json!(4);
    let text = world.call(&tool, args).await.unwrap();
    assert!(text.starts_with("box: not done within 4 s"), "{text}");
    assert!(text.ends_with("begun\n"), "{text}");
    gone(world.server.port, "sleep 600").await;
    assert!(!mark.exists());
    // The connection is as good as before.
    world.run(&tool, "echo on").await.unwrap();
    assert_eq!(world.server.log_ins(), 1);
}

#[tokio::test]
async fn a_stopped_call_leaves_no_command_behind() {
    let world = World::known();
    let tool = Arc::new(world.tool());
    let running = {
        let (tool, context) = (Arc::clone(&tool), world.another_call());
        tokio::spawn(async move { tool.call(run("echo up; sleep 601"), context).await })
    };
    let live = Arc::clone(&world.live);
    tokio::task::spawn_blocking(move || {
        wait_until("it runs", || live.0.lock().contains("up"));
    })
    .await
    .unwrap();
    // As the run does when the user stops it: it drops the call.
    running.abort();
    gone(world.server.port, "sleep 601").await;
    world.run(&tool, "echo on").await.unwrap();
    assert_eq!(world.server.log_ins(), 1);
}

#[tokio::test]
async fn what_a_command_leaves_in_the_background_is_told_and_not_waited_for() {
    let world = World::known();
    let tool = world.tool();
    let start = Instant::now();
    let text = world.run(&tool, "sleep 20 & echo started").await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(15));
    assert!(
        text.starts_with("box: exit code 0; something that it started still runs"),
        "{text}"
    );
}

#[tokio::test]
async fn long_output_is_cut_and_kept_whole_in_the_workspace() {
    let world = World::known();
    let tool = world.tool();
    let text = world.run(&tool, "seq 1 20000").await.unwrap();
    assert!(text.len() < RESULT_LIMIT_BYTES + 300, "{}", text.len());
    assert!(text.contains("bytes cut here"));
    let (shown, rest) = text
        .split_once("\n[the whole output is in the file ")
        .unwrap();
    assert!(shown.ends_with("20000\n"));
    let name = rest.trim_end_matches(']');
    let kept = std::fs::read_to_string(world.file(name)).unwrap();
    let expected: String = (1..=20_000).map(|n| format!("{n}\n")).collect();
    assert!(kept == expected);
}

#[tokio::test]
async fn the_model_is_told_the_hosts() {
    let world = World::known();
    let tool = world.tool();
    assert!(
        tool.spec()
            .description
            .ends_with("Hosts: box (a test's own).")
    );
    assert_eq!(
        tool.spec().parameters["properties"]["host"]["enum"],
        json!(["box"])
    );
    let list = world
        .call(&tool, json!({"action": "list_hosts"}))
        .await
        .unwrap();
    let login = world.config.hosts[0].login();
    assert_eq!(list, format!("box ({login}): a test's own\n"));
    assert_eq!(tool.effect(&json!({"action": "list_hosts"})), Effect::Read);
    for action in ["run", "upload", "download"] {
        assert_eq!(tool.effect(&json!({"action": action})), Effect::Host);
    }
}

#[tokio::test]
async fn an_upload_is_approved_for_what_the_file_has() {
    let world = World::known();
    let tool = world.tool();
    let args = json!({"action": "upload", "host": "box", "path": "a.sh", "to": "/tmp/a.sh"});
    std::fs::write(world.file("a.sh"), "echo one").unwrap();
    let first = tool.proposal(&args, &world.context).await.unwrap();
    std::fs::write(world.file("a.sh"), "echo two").unwrap();
    let second = tool.proposal(&args, &world.context).await.unwrap();
    assert_ne!(first.binding, second.binding);
    assert_eq!(
        first.rule.unwrap().words.to_string(),
        "uploads to `/tmp/a.sh` on box"
    );
}

#[test]
fn the_schema_is_as_models_know_it() {
    let host = Host {
        name: "web1".to_owned(),
        address: "192.0.2.10".to_owned(),
        port: 22,
        user: "deploy".to_owned(),
        key: None,
        agent: true,
        description: String::new(),
    };
    let of = |hosts| {
        Ssh::new(SshConfig {
            hosts,
            ..SshConfig::default()
        })
    };
    insta::assert_json_snapshot!(of(vec![host.clone()]).spec());

    // With as many hosts as there may be, calls are checked all the same.
    let named = |n: usize| Host {
        name: format!("host-{n:0>59}"),
        ..host.clone()
    };
    let hosts: Vec<Host> = (0..500).map(named).collect();
    let mut args = json!({"action": "run", "host": hosts[7].name, "command": "true"});
    let registry = Registry::new([Arc::new(of(hosts)) as Arc<dyn Tool>]);
    let prepared = |args: &Value| registry.prepare(NAME, args, &[NAME.to_owned()]);
    assert!(prepared(&args).is_ok());
    args["timeout_seconds"] = json!(3601);
    let error = prepared(&args).unwrap_err();
    assert!(error.0.contains("must be at most 3600"), "{error}");
}

/// Waits until no process of the server runs this.
async fn gone(_port: u16, command: &str) {
    let command = command.to_owned();
    tokio::task::spawn_blocking(move || {
        wait_until("the command is gone", || !is_running(&command));
    })
    .await
    .unwrap();
}

fn is_running(command: &str) -> bool {
    let wanted = format!("{}\0", command.replace(' ', "\0"));
    std::fs::read_dir("/proc").unwrap().any(|entry| {
        let path = entry.unwrap().path().join("cmdline");
        std::fs::read_to_string(path).is_ok_and(|line| line == wanted)
    })
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}
