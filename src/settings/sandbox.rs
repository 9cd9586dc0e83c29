//! What commands may do, and what holds them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use navi_actors::protocol::phrase::{Phrase, PhraseCode};
use navi_actors::tools::sandbox::uids::{PersonUids, Uids};
use navi_actors::tools::sandbox::{Limits, SandboxConfig, Sum, SumLimits, machine_memory};
use navi_actors::tools::terminal::{Allowed, TerminalConfig};

use super::read::{self, Reader};
use super::{files, keys};

/// `None` only together with problems.
pub(super) fn terminal(r: &mut Reader<'_>, base: &Path) -> Option<TerminalConfig> {
    let allowed = match r.text(&keys::TERMINAL_ALLOWED) {
        Some(_) => r.optional(&keys::TERMINAL_ALLOWED, Allowed::parse),
        None => Some(Allowed::Any),
    };
    let max_seconds = r.required(&keys::TERMINAL_TIME, read::number(1_u64..=86_400));
    let user = r.optional(&keys::SANDBOX_USER, user);
    let uids = match r.text(&keys::SANDBOX_UIDS) {
        Some(_) => r.optional(&keys::SANDBOX_UIDS, uids),
        None => Some(PersonUids::default()),
    };
    let read_paths = match r.text(&keys::SANDBOX_READ) {
        Some(_) => r.optional(&keys::SANDBOX_READ, |text| folders(text, base)),
        None => Some(Vec::new()),
    };
    let memory_mb = r.required(&keys::SANDBOX_MEMORY, read::number(64_u64..=16_777_216));
    let processes = r.required(&keys::SANDBOX_PROCESSES, read::number(8_u64..=1_000_000));
    let workspace = files::workspace(r);
    let sum_limits = sum_limits(r);
    let private = files::closed(r, base);
    Some(TerminalConfig {
        sandbox: SandboxConfig {
            user,
            uids: uids?,
            read_paths: read_paths?,
            private,
            scratch: base.join("sandbox"),
            limits: Limits {
                memory_bytes: memory_mb? << 20,
                processes: processes?,
                workspace: workspace?,
                ..Limits::default()
            },
            sum_limits: sum_limits?,
            ..SandboxConfig::default()
        },
        allowed: allowed?,
        max_time: Duration::from_secs(max_seconds?),
    })
}

/// What commands may use together.
fn sum_limits(r: &mut Reader<'_>) -> Option<SumLimits> {
    let memory_mb = r.required(
        &keys::SANDBOX_SESSION_MEMORY,
        read::number(64_u64..=16_777_216),
    );
    let processes = r.required(
        &keys::SANDBOX_SESSION_PROCESSES,
        read::number(8_u64..=1_000_000),
    );
    let all_memory_mb = r.required(&keys::SANDBOX_ALL_MEMORY, read::number(0_u64..=16_777_216));
    let all_processes = r.required(
        &keys::SANDBOX_ALL_PROCESSES,
        read::number(8_u64..=1_000_000),
    );
    let all_memory = match all_memory_mb? {
        0 => machine_memory() / 2,
        megabytes => megabytes << 20,
    };
    Some(SumLimits {
        session: Sum {
            memory_bytes: memory_mb? << 20,
            processes: processes?,
        },
        all: Sum {
            memory_bytes: all_memory,
            processes: all_processes?,
        },
    })
}

/// What a person should know of it; the page shows them.
pub(super) fn warnings(terminal: &TerminalConfig) -> Option<Phrase> {
    let left_out = terminal.allowed.left_out();
    (!left_out.is_empty()).then(|| {
        let commands = [("commands", left_out.join(", "))];
        Phrase::new(PhraseCode::LeftOutCommands, commands)
    })
}

/// Whether there is such an account is looked at where commands are run: the terminal asks
/// about each command then, and `navi doctor` says why.
fn user(text: &str) -> Result<String, String> {
    if text.contains(|c: char| c == ':' || c.is_whitespace()) {
        return Err("the name or the number of a user, such as nobody".to_owned());
    }
    Ok(text.to_owned())
}

/// Whether these are free is looked at where commands are run, as for the account.
fn uids(text: &str) -> Result<PersonUids, String> {
    match text {
        "none" => Ok(PersonUids::None),
        range => Uids::parse(range).map(PersonUids::From),
    }
}

fn folders(text: &str, base: &Path) -> Result<Vec<PathBuf>, String> {
    let names = text
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    let paths: Vec<PathBuf> = names
        .map(|name| read::path_in(base)(name))
        .collect::<Result<_, _>>()?;
    match paths.iter().find(|path| !path.is_dir()) {
        Some(missing) => Err(format!(
            "folders with commas between, and {} is none",
            missing.display()
        )),
        None => Ok(paths),
    }
}
