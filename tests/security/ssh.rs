//! Attacks on the ssh tool: what a model, or a text that it has read, could try with it. Those
//! that a host could try are beside the tool (`actors/src/tools/ssh/attack_tests.rs`).

use std::path::Path;

use navi_actors::tools::registry::{Registry, ToolConfig};
use navi_actors::tools::ssh::SshConfig;
use navi_actors::tools::ssh::hosts;
use navi_actors::tools::{ToolContext, ToolResult};
use serde_json::{Value, json};

use super::tool_context;
use crate::sshd::Sshd;

/// A real sshd whose key is known, and the tools of a session that may reach it as `box`.
struct World {
    server: Sshd,
    registry: Registry,
    context: ToolContext,
}

impl World {
    fn new() -> Self {
        let server = Sshd::start();
        let file = server.path("ssh_hosts.json");
        let host = json!({"box": {
            "host": "127.0.0.1", "port": server.port, "user": server.user, "key": "user_key"
        }});
        std::fs::write(&file, host.to_string()).unwrap();
        let known_hosts = server.path("known_hosts");
        std::fs::write(&known_hosts, server.known_hosts_line()).unwrap();
        let mut config = ToolConfig::default();
        config.ssh = Some(SshConfig {
            hosts: hosts::read(&file, None).unwrap(),
            known_hosts,
            ..SshConfig::default()
        });
        let registry = Registry::builtin(&config);
        let workspace = server.path("workspace");
        std::fs::create_dir(&workspace).unwrap();
        let context = tool_context::context(&workspace);
        Self {
            server,
            registry,
            context,
        }
    }

    /// A call the whole way: by the schema, then run.
    async fn call(&self, args: Value) -> ToolResult {
        let prepared = self.registry.prepare("ssh", &args, &["ssh".to_owned()])?;
        let context = self.context.clone();
        prepared.tool.call(prepared.args, context).await
    }

    fn outside(&self, name: &str) -> std::path::PathBuf {
        self.server.path(name)
    }
}

#[tokio::test]
async fn a_host_name_that_carries_a_command_or_an_option() {
    let world = World::new();
    for name in [
        "box; touch owned",
        "$(touch owned)",
        "`touch owned`",
        "-oProxyCommand=touch owned",
        "root@box",
        "127.0.0.1",
        "other",
        "",
    ] {
        let args = json!({"action": "run", "host": name, "command": "true"});
        let error = world.call(args).await.unwrap_err();
        let refused = error.0.starts_with("wrong call of `ssh`");
        assert!(refused, "{name:?}: {error}");
    }
    assert_eq!(world.server.log_ins(), 0);
}

#[tokio::test]
async fn a_download_out_of_the_workspace() {
    let world = World::new();
    let workspace = &world.context.workspace;
    std::fs::write(world.outside("secret"), "secret").unwrap();
    link(&workspace.join("dir"), world.server.dir.path());
    link(&workspace.join("file"), &world.outside("secret"));
    link(&workspace.join("dangling"), &world.outside("new"));
    for path in [
        "../new",
        "dir/new",
        "dir/secret",
        "file",
        "dangling",
        "/tmp/navi-new",
        "a/../../new",
    ] {
        let from = world.outside("log");
        let args = json!({"action": "download", "host": "box", "from": from, "path": path});
        world.call(args).await.unwrap_err();
    }
    assert!(!world.outside("new").exists());
    assert_eq!(std::fs::read(world.outside("secret")).unwrap(), b"secret");
}

#[tokio::test]
async fn an_upload_of_what_is_not_in_the_workspace() {
    let world = World::new();
    let workspace = &world.context.workspace;
    std::fs::write(world.outside("secret"), "secret").unwrap();
    link(&workspace.join("file"), &world.outside("secret"));
    link(&workspace.join("dir"), world.server.dir.path());
    std::fs::hard_link(world.outside("secret"), workspace.join("another name")).unwrap();
    for path in [
        "../secret",
        "file",
        "another name",
        "dir/secret",
        "/proc/self/environ",
        "/etc/passwd",
    ] {
        let to = world.outside("stolen");
        let args = json!({"action": "upload", "host": "box", "path": path, "to": to});
        world.call(args).await.unwrap_err();
    }
    assert!(!world.outside("stolen").exists());
}

#[tokio::test]
async fn a_command_on_a_host_that_nobody_was_asked_about() {
    let world = World::new();
    std::fs::remove_file(world.outside("known_hosts")).unwrap();
    let mark = world.outside("mark");
    let command = format!("touch {}", mark.display());
    let args = json!({"action": "run", "host": "box", "command": command});
    let error = world.call(args).await.unwrap_err();
    assert!(error.0.contains("nobody has approved"), "{error}");
    assert!(!mark.exists());
    assert_eq!(world.server.log_ins(), 0);
}

#[tokio::test]
async fn a_host_whose_key_is_another_than_before() {
    let mut world = World::new();
    world.server.start_with_another_key();
    world.context.approved = true;
    let mark = world.outside("mark");
    let command = format!("touch {}", mark.display());
    let args = json!({"action": "run", "host": "box", "command": command});
    let error = world.call(args).await.unwrap_err().0;
    let refused = error.starts_with("refused: the host `box` shows another key");
    assert!(refused, "{error}");
    assert!(error.contains("known_hosts, line 1"), "{error}");
    assert!(!mark.exists());
}

fn link(from: &Path, to: &Path) {
    std::os::unix::fs::symlink(to, from).unwrap();
}

#[tokio::test]
async fn a_command_that_nobody_could_be_shown_whole() {
    let world = World::new();
    let mark = world.outside("mark");
    let command = format!("{}\ntouch {}", ": ".repeat(20_000), mark.display());
    let args = json!({"action": "run", "host": "box", "command": command});
    let refused = world.call(args).await.unwrap_err();
    assert!(refused.0.contains("upload a script"), "{refused}");
    assert!(!mark.exists());
}
