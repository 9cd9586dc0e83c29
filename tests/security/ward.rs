//! A terminal with a workspace of its own, and a world outside of it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use navi_actors::protocol::ids::SessionId;
use navi_actors::tools::sandbox::{Limits, Sandbox, SandboxConfig};
use navi_actors::tools::terminal::{Allowed, Terminal, TerminalConfig};
use navi_actors::tools::{LiveOutput, OutputSink, Tool as _, ToolContext};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::tool_context;
use crate::processes::is_root;

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
        use std::os::unix::fs::PermissionsExt as _;
        let open = |path: &Path| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
        };
        let foreign = self.dir.path().join("outside");
        open(self.dir.path());
        open(&foreign);
        foreign
    }

    pub(crate) fn context(&self) -> ToolContext {
        ToolContext {
            session_id: self.session,
            output: LiveOutput::new(Arc::clone(&self.seen) as Arc<dyn OutputSink>),
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

fn sandbox_config(dir: &Path, limits: Limits, user: Option<String>) -> SandboxConfig {
    SandboxConfig {
        program: PathBuf::from(env!("CARGO_BIN_EXE_navi")),
        user,
        scratch: dir.join("scratch"),
        private: vec![dir.to_owned()],
        limits,
        ..SandboxConfig::default()
    }
}
