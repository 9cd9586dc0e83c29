//! A server that is a program of this machine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anstream::adapter::strip_str;
use itertools::Itertools as _;
use parking_lot::Mutex;
use rmcp::RoleClient;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio_util::task::AbortOnDropHandle;

use crate::domain::redact::{names_key, redacted, without};
use crate::programs::{self, Tail};
use crate::tools::output::visible;
use crate::tools::sandbox::SUBCOMMAND;

/// The longest message of a server. More is thrown away as it comes.
const MAX_MESSAGE: usize = 8 * 1024 * 1024;

/// As much of what it wrote to standard error last as an error shows.
const SHOWN_BYTES: usize = 600;

/// What a program gets of Navi's environment. The rest may hold secrets: what it needs of that
/// is for its configuration to name.
const INHERITED: [&str; 9] = [
    "HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER",
];

/// What all servers of this process have in common.
static AROUND: OnceLock<Around> = OnceLock::new();

struct Around {
    /// Navi's own program, which keeps servers' programs; none where nothing keeps them.
    keeper: Option<PathBuf>,
    /// What no server's words may repeat.
    secrets: Vec<String>,
}

/// Has the programs of servers started by `keeper`'s
/// [`carry_out`](crate::tools::sandbox::carry_out), which ends them when this process is killed.
/// Hides Navi's own secrets in whatever they write to standard error: one may have been given
/// them, or have read them in a file.
pub fn set_up(keeper: Option<PathBuf>, secrets: Vec<String>) {
    let keeper = keeper.filter(|_| cfg!(target_os = "linux"));
    // The first word holds: there is one service in a process.
    let _ = AROUND.set(Around { keeper, secrets });
}

/// The program. Goes with everything that it started when this is dropped.
#[derive(Debug)]
pub(super) struct Program {
    program: programs::Program,
    said: Arc<Mutex<Tail>>,
    /// Its own secrets, as far as the names of its variables tell.
    secrets: Vec<String>,
    _reading: AbortOnDropHandle<()>,
}

/// What a server is talked to by.
pub(super) type Pipes = AsyncRwTransport<RoleClient, ChildStdout, ChildStdin>;

impl Program {
    /// Starts it.
    pub(super) async fn start(
        command: &str,
        args: &[String],
        env: &BTreeMap<String, String>,
        cwd: Option<&PathBuf>,
    ) -> Result<(Self, Pipes), String> {
        let inherited = INHERITED
            .iter()
            .filter_map(|name| Some((*name, std::env::var_os(name)?)));
        let mut building = match AROUND.get().and_then(|around| around.keeper.as_ref()) {
            Some(keeper) => {
                let mut kept = Command::new(keeper);
                kept.args([SUBCOMMAND, "keep", command]);
                kept
            }
            None => Command::new(command),
        };
        building.args(args).env_clear().envs(inherited).envs(env);
        if let Some(cwd) = cwd {
            building.current_dir(cwd);
        }
        let mut program = programs::Program::start(&mut building)
            .await
            .map_err(|error| format!("`{command}` could not be started: {error}"))?;
        let child = &mut program.child;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            refuse!("`{command}` could not be talked to");
        };
        let said = Arc::<Mutex<Tail>>::default();
        let (stderr, kept) = (child.stderr.take(), Arc::clone(&said));
        let reading = tokio::spawn(async move {
            let keep = |bytes: &[u8]| kept.lock().push(bytes);
            let _ = programs::read(stderr, usize::MAX, keep).await;
        });
        let pipes = AsyncRwTransport::new(stdout, stdin).with_max_line_length(MAX_MESSAGE);
        let secrets = env.iter().filter(|(name, _)| names_key(name));
        let program = Self {
            program,
            said,
            secrets: secrets.map(|(_, value)| value.clone()).collect(),
            _reading: AbortOnDropHandle::new(reading),
        };
        Ok((program, pipes))
    }

    /// Gives it a moment to end by itself: what talked to it has let go of its input.
    pub(super) async fn end(mut self, grace: Duration) {
        // It is killed with the group where it does not.
        let _ = tokio::time::timeout(grace, self.program.child.wait()).await;
    }

    /// The last that it wrote to standard error, for a sentence: on one line, without control
    /// characters and without secrets. Empty where it wrote nothing.
    pub(super) fn said(&self) -> String {
        let said = self.said.lock();
        let ours = AROUND.get().into_iter().flat_map(|around| &around.secrets);
        shown(&said, self.secrets.iter().chain(ours).map(String::as_str))
    }
}

fn shown<'a>(said: &Tail, secrets: impl Iterator<Item = &'a str>) -> String {
    let text = String::from_utf8_lossy(&said.bytes);
    // The first word may be the end of a secret.
    let whole = match text.split_once(char::is_whitespace) {
        Some((_, rest)) if said.is_cut => rest,
        None if said.is_cut => "",
        _ => &text,
    };
    let plain = strip_str(whole).to_string();
    let line = plain.split_whitespace().join(" ");
    let hidden = without(&redacted(&line), secrets);
    let from = hidden.ceil_char_boundary(hidden.len().saturating_sub(SHOWN_BYTES));
    visible(&hidden[from..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::TAIL_BYTES;

    fn shown(text: &[u8]) -> String {
        let mut said = Tail::default();
        said.push(text);
        super::shown(&said, ["hunter2!"].into_iter())
    }

    #[test]
    fn words_of_a_program_are_cleaned_hidden_and_bounded() {
        assert_eq!(
            shown("\x1b[31mno\x1b[0m\r\n\tkey: hunter2! \u{202e}at http://a:b@c\x07".as_bytes()),
            "no key: [hidden] \\u{202e}at http://[hidden]@c"
        );
        let long = shown(format!("{}hunter2! end", "x ".repeat(TAIL_BYTES)).as_bytes());
        assert!(long.ends_with("x [hidden] end"), "{long}");
        assert!(long.len() <= SHOWN_BYTES);
        // Nothing is left of one that is cut at its beginning.
        let cut = format!("hunter2!{} end", "y".repeat(TAIL_BYTES - 11));
        assert_eq!(shown(cut.as_bytes()), "end");
    }
}
