//! A terminal with a workspace of its own, and a world outside of it.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use navi_actors::protocol::ids::SessionId;
use navi_actors::tools::sandbox::{
    Limits, Sandbox, SandboxConfig, Sum, SumLimits, take_over_groups,
};
use navi_actors::tools::terminal::{Allowed, Terminal, TerminalConfig};
use navi_actors::tools::{LiveOutput, OutputSink, Tool as _, ToolContext};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::tool_context;
use crate::processes::{NOBODY, is_root};
use crate::server::{copy_program, program};

/// Whom commands run as: somebody else, where there is something to drop from.
pub(crate) fn sandbox_user() -> Option<String> {
    is_root().then(|| "nobody".to_owned())
}

/// Live output, kept.
#[derive(Debug, Default)]
pub(crate) struct Seen(pub(crate) Mutex<String>);

impl OutputSink for Seen {
    fn push(&self, text: &str) {
        self.0.lock().unwrap().push_str(text);
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Ward {
    dir: TempDir,
    pub(crate) terminal: Arc<Terminal>,
    pub(crate) session: SessionId,
    pub(crate) seen: Arc<Seen>,
}

impl Ward {
    pub(crate) fn new(allowed: Allowed, limits: Limits, user: Option<String>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["workspace", "outside"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        // Where nothing is mounted, the user of a command has to pass it.
        open(dir.path(), 0o711);
        let terminal = Terminal::new(TerminalConfig {
            sandbox: sandbox_config(dir.path(), limits, user),
            allowed,
            max_time: Duration::from_secs(60),
        });
        Self {
            dir,
            terminal: Arc::new(terminal),
            session: SessionId::new(),
            seen: Arc::default(),
        }
    }

    /// Commands are held.
    pub(crate) fn inside() -> Self {
        let ward = Self::new(Allowed::Any, Limits::default(), sandbox_user());
        assert_eq!(
            ward.terminal
                .effect(&json!({"action": "run", "command": "x"})),
            navi_actors::protocol::tool::Effect::Write,
            "these tests need a sandbox that holds"
        );
        ward
    }

    /// The same without anything that holds them.
    pub(crate) fn outside() -> Self {
        Self::new(Allowed::Everything, Limits::default(), None)
    }

    /// Only these commands, inside.
    pub(crate) fn only(names: &str) -> Self {
        Self::new(
            Allowed::parse(names).unwrap(),
            Limits::default(),
            sandbox_user(),
        )
    }

    pub(crate) fn within(limits: Limits) -> Self {
        Self::new(Allowed::Any, limits, sandbox_user())
    }

    /// What its commands may use together.
    pub(crate) fn together(session: Sum) -> Self {
        let mut ward = Self::inside();
        let limits = Limits::default();
        let mut sandbox = sandbox_config(ward.dir.path(), limits, sandbox_user());
        sandbox.sum_limits.session = session;
        ward.terminal = Arc::new(Terminal::new(TerminalConfig {
            sandbox,
            ..TerminalConfig::default()
        }));
        ward
    }

    /// What holds its commands.
    pub(crate) fn sandbox(&self) -> Sandbox {
        let limits = Limits::default();
        let sandbox = Sandbox::new(sandbox_config(self.dir.path(), limits, sandbox_user()));
        assert!(sandbox.available().is_ok(), "these tests need a sandbox");
        sandbox
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.dir.path().join("workspace")
    }

    /// A folder that is none of the workspace, and open to every user of the machine.
    pub(crate) fn foreign(&self) -> PathBuf {
        let foreign = self.dir.path().join("outside");
        open(self.dir.path(), 0o777);
        open(&foreign, 0o777);
        foreign
    }

    pub(crate) fn context(&self) -> ToolContext {
        ToolContext {
            session_id: self.session,
            output: Arc::clone(&self.seen) as LiveOutput,
            ..tool_context::context(&self.workspace())
        }
    }

    pub(crate) async fn call(&self, args: Value) -> Result<String, String> {
        let said = self.terminal.call(args, self.context()).await;
        said.map(|output| output.text).map_err(|error| error.0)
    }

    /// Runs a command, and gives back what the model would read.
    pub(crate) async fn run(&self, command: &str) -> Result<String, String> {
        self.call(json!({"action": "run", "command": command}))
            .await
    }

    /// Whether a command ends well.
    pub(crate) async fn works(&self, command: &str) -> bool {
        let said = self.run(command).await;
        said.is_ok_and(|text| text.contains("exit code 0"))
    }

    /// Whether a Python program ends well.
    pub(crate) async fn python(&self, program: &str) -> bool {
        std::fs::write(self.workspace().join("probe.py"), program).unwrap();
        let said = self.run("python3 probe.py").await;
        println!("{said:?}");
        said.is_ok_and(|text| text.contains("exit code 0"))
    }
}

fn open(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Set where the tests have a control group to themselves.
pub(crate) const IN_GROUP: &str = "NAVI_TEST_CONTROL_GROUP";

/// The control group that was taken over, where there is one.
pub(crate) fn own_group() -> Option<PathBuf> {
    std::env::var_os(IN_GROUP)?;
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"));
    let path = Path::new("/sys/fs/cgroup").join(path.unwrap());
    path.parent().map(Path::to_owned)
}

fn sandbox_config(dir: &Path, limits: Limits, user: Option<String>) -> SandboxConfig {
    static TAKE_OVER: Once = Once::new();
    TAKE_OVER.call_once(|| {
        if std::env::var_os(IN_GROUP).is_some() {
            take_over_groups(SumLimits::default().all).unwrap();
        }
    });
    SandboxConfig {
        program: program(),
        user,
        scratch: dir.join("scratch"),
        private: vec![dir.to_owned()],
        limits,
        ..SandboxConfig::default()
    }
}

/// Navi as a user that is no root, whose commands have nobody to drop to. A program of its own,
/// since that user may not pass the folders above ours.
#[derive(Debug)]
pub(crate) struct SameUser(TempDir);

impl SameUser {
    pub(crate) fn new() -> Self {
        let same = Self(tempfile::tempdir().unwrap());
        for folder in ["", "workspace", "data"] {
            let path = same.path(folder);
            std::fs::create_dir_all(&path).unwrap();
            same.own(&path);
        }
        copy_program(&program(), &same.path("navi"));
        same
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Gives a file to that user.
    pub(crate) fn own(&self, path: &Path) {
        if is_root() {
            std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }

    /// Runs a shell command in its sandbox.
    pub(crate) fn run(&self, command: &str) -> Output {
        let workspace = self.path("workspace");
        let workspace = workspace.to_str().unwrap();
        self.navi(
            &[
                "sandbox",
                "--workspace",
                workspace,
                "--",
                "sh",
                "-c",
                command,
            ],
            &[],
        )
    }

    /// Runs a Python program there, with one argument.
    pub(crate) fn python(&self, program: &str, argument: &str) -> Output {
        let probe = self.path("workspace").join("probe.py");
        std::fs::write(probe, program).unwrap();
        self.run(&format!("python3 probe.py {argument}"))
    }

    pub(crate) fn navi(&self, args: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = self.command(&self.path("navi"), args);
        command.envs(variables.iter().copied()).output().unwrap()
    }

    /// A program of that user.
    pub(crate) fn command(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.0.path())
            .env("NAVI_DATA_DIR", self.path("data"))
            .current_dir(self.0.path());
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }
}
