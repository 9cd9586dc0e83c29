//! The sandbox: commands run in a child process that our own program confines before it
//! becomes the command (DESIGN section 6).
//!
//! The service asks; a supervisor (this program again, [`supervise`]) keeps the whole process tree
//! and ends it; a third process (`separate`) leaves the machine's namespaces; a fourth (`confine`),
//! the first one in there, gives up what the command must not have, and starts it. The supervisor
//! lives at the end of a socket that the service holds: whatever ends the service, `kill -9` too,
//! closes it, and with it the tree.

pub mod running;
pub mod supervise;
pub mod uids;
pub mod user;

mod confine;
mod disk;
mod groups;
mod init;
mod policy;
mod processes;
mod root;
mod separate;
mod sums;
mod syscalls;

#[cfg(test)]
mod sandbox_tests;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use serde::{Deserialize, Serialize};

pub use self::confine::seal;
pub use self::disk::bytes_within;
pub use self::groups::take_over as take_over_groups;
pub use self::policy::Job;
use self::running::Running;
pub use self::sums::{Limits, Sum, SumLimits, Sums, machine_memory};
use self::uids::{PersonUids, Uids};
use self::user::SandboxUser;
use super::trust::make_dir;
use crate::protocol::phrase::{Phrase, PhraseCode, Trouble};

/// The hidden subcommand by which the program starts itself again.
pub const SUBCOMMAND: &str = "sandbox-exec";

/// What the settings say of the sandbox.
#[derive(Clone, Debug)]
pub struct SandboxConfig {
    /// The program with the hidden subcommand: Navi's own.
    pub program: PathBuf,
    /// The account that commands run as where the service is root: a name or a number, or
    /// `none` for none. Without it `nobody`, where the machine has it and lets us mount.
    pub user: Option<String>,
    /// Whom the commands of different people run as there.
    pub uids: PersonUids,
    /// Further folders that commands may read and run programs of.
    pub read_paths: Vec<PathBuf>,
    /// What no command may read: the data directory, profiles, tools.
    pub private: Vec<PathBuf>,
    /// Where each session gets a directory for temporary files of its own.
    pub scratch: PathBuf,
    pub limits: Limits,
    pub sum_limits: SumLimits,
    /// The commands that go.
    pub sums: Sums,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        Self {
            program: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("navi")),
            user: None,
            uids: PersonUids::default(),
            read_paths: Vec::new(),
            private: Vec::new(),
            scratch: std::env::temp_dir().join("navi-sandbox"),
            limits: Limits::default(),
            sum_limits: SumLimits::default(),
            sums: Sums::default(),
        }
    }
}

/// Whether an order runs inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fence {
    /// With everything that this machine has to hold it.
    #[default]
    Inside,
    /// With the rights of the service: the owner lifted the fence.
    Lifted,
}

/// What becomes of what a command writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Streams {
    /// Standard output and error as one stream, in the order in which they are written.
    #[default]
    Merged,
    /// Each its own.
    Apart,
}

/// A command to be run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Order {
    /// None is started where it is empty.
    pub program: String,
    pub args: Vec<String>,
    /// Where it starts: an absolute path.
    pub directory: PathBuf,
    /// What it may read and write: the session's workspace. Its home.
    pub workspace: PathBuf,
    /// A directory for temporary files that it may read and write.
    pub scratch: PathBuf,
    /// Further folders that it may read and run programs of.
    pub read: Vec<PathBuf>,
    /// The user id of whose command it is, where each person has one.
    pub uid: Option<u32>,
    /// Beside the usual ones, which it may replace.
    pub environment: BTreeMap<String, String>,
    /// What it reads on standard input; nothing without.
    pub input: Option<String>,
    pub streams: Streams,
    pub fence: Fence,
    pub limits: Limits,
}

/// See the module. What the machine has is looked up once, when this is made.
#[derive(Clone, Debug)]
pub struct Sandbox {
    pub config: SandboxConfig,
    /// The kernel's version of Landlock.
    landlock: Option<u32>,
    /// Whether commands have processes, mounts and a network of their own, or why not.
    namespaces: Result<(), String>,
    /// Whom commands run as; none where the service is no root and they run as itself.
    pub user: Option<SandboxUser>,
    /// What the commands of different people run under instead; none where they all run as `user`.
    pub uids: Option<Uids>,
    available: Result<(), Trouble>,
}

/// What there is of commands where there are several people.
#[derive(Clone, Debug, Default)]
pub struct PersonCommands {
    /// What they run under, each person's under one of their own; none where all run under one.
    pub uids: Option<Uids>,
    /// Where each session has a directory for temporary files; none where none has.
    pub scratch: Option<PathBuf>,
}

/// What holds commands.
impl fmt::Display for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespaces.is_ok() {
            f.write_str("namespaces, ")?;
        }
        write!(f, "Landlock {}, seccomp", self.landlock.unwrap_or_default())?;
        match &self.user {
            Some(user) => write!(f, ", as the user {}", user.name),
            None => Ok(()),
        }
    }
}

impl Sandbox {
    /// Begins to look up what takes longest, where one will be made a moment later: who makes it
    /// joins in.
    pub fn look_ahead(config: &SandboxConfig) {
        let program = config.program.clone();
        thread::spawn(move || separate::namespaces(&program));
    }

    pub fn new(config: SandboxConfig) -> Self {
        let user = user::wanted(config.user.as_deref());
        let uids = match &user {
            Ok(user) => uids::wanted(config.uids, user.as_ref()),
            Err(_) => Ok(None),
        };
        let mut sandbox = Self {
            landlock: confine::landlock_version().filter(|_| !is_absent("FAILPOINT_NO_LANDLOCK")),
            namespaces: separate::namespaces(&config.program),
            user: user.clone().ok().flatten(),
            uids: uids.clone().ok().flatten(),
            available: Ok(()),
            config,
        };
        sandbox.available = user.and(uids).and_then(|_| sandbox.check());
        sandbox
    }

    /// Whether commands are held here as they should be: otherwise whoever runs one has to ask
    /// first.
    ///
    /// # Errors
    /// What is missing, and what would help.
    pub fn available(&self) -> Result<(), &Trouble> {
        self.available.as_ref().copied()
    }

    /// What the commands of several people have.
    pub fn person_commands(&self) -> PersonCommands {
        PersonCommands {
            uids: self.uids,
            scratch: Some(self.config.scratch.clone()),
        }
    }

    fn check(&self) -> Result<(), Trouble> {
        if self.landlock.is_none() {
            return Err(Trouble::new(PhraseCode::NoLandlock, PhraseCode::NewerLinux));
        }
        if self.user.is_none() && user::is_root() {
            return Err(Trouble::new(
                PhraseCode::NoSandboxUser,
                PhraseCode::NameSandboxUser,
            ));
        }
        // What Landlock does not hold, an account of their own keeps from the service's files.
        if let (Err(why), None) = (&self.namespaces, &self.user) {
            return Err(Trouble::new(
                Phrase::from(PhraseCode::Unseparated).with("reason", separate::told(why)),
                PhraseCode::AllowNamespaces,
            ));
        }
        let readable = policy::readable(&self.config.read_paths);
        if let Some((private, open)) = overlap(&self.config.private, &readable) {
            let params = [
                ("private", private.display().to_string()),
                ("open", open.display().to_string()),
            ];
            return Err(Trouble::new(
                Phrase::new(PhraseCode::PrivateReadable, params),
                PhraseCode::MovePrivate,
            ));
        }
        Ok(())
    }

    /// The directory for temporary files of `name`, which is a session's id as a rule.
    pub fn scratch_of(&self, name: &str) -> PathBuf {
        self.config.scratch.join(name)
    }

    /// Starts a command. Dropping what this gives back ends it and all that it started.
    ///
    /// # Errors
    /// Where the supervisor cannot be started.
    pub async fn start(&self, order: Order) -> io::Result<Running> {
        let (scratch, limits) = (order.scratch.clone(), order.limits);
        let mut job = self.job(order, true);
        let (inside, sums) = (job.is_inside(), self.config.sum_limits);
        let tree = Sum {
            memory_bytes: limits.memory_bytes,
            processes: limits.processes,
        };
        let made = tokio::task::spawn_blocking(move || {
            make_scratch(&scratch)?;
            let group = || groups::for_command(&scratch, sums.session, tree);
            io::Result::Ok(inside.then(group).flatten())
        });
        job.group = made.await??;
        Running::start(&self.config, &job).await
    }

    /// The order in the terms of the processes that carry it out. `over_socket`: away from the
    /// terminal of whoever started us, and with a workspace that is the user's to have.
    pub fn job(&self, mut order: Order, over_socket: bool) -> Job {
        let inside = order.fence == Fence::Inside;
        let user = self.user.as_ref().filter(|_| inside);
        let user = user.map(|usual| match order.uid {
            Some(id) => SandboxUser::of_person(id),
            None => usual.clone(),
        });
        let usual = self.user.iter().map(|usual| Uids::one(usual.uid));
        order.environment = policy::environment(&order, &self.config.read_paths, user.as_ref());
        order.read.extend(policy::readable(&self.config.read_paths));
        let namespaces = inside && self.namespaces.is_ok();
        let signals_are_scoped = namespaces || self.landlock.is_some_and(|version| version >= 6);
        let truncation_is_open = self.landlock.is_some_and(|version| version < 3);
        Job {
            order,
            group: None,
            landlock: inside && self.landlock.is_some(),
            namespaces,
            user,
            former: usual.chain(self.uids).collect(),
            // A process of another user cannot signal ours; one of the same user can, where the
            // kernel does not hold signals inside.
            deny_signals: inside && !signals_are_scoped && self.user.is_none(),
            deny_truncate: inside && truncation_is_open,
            over_socket,
        }
    }
}

fn make_scratch(path: &Path) -> io::Result<()> {
    // The user of a command has to pass the one above.
    let above = path.parent().map_or(Ok(()), |above| make_dir(above, 0o711));
    above.and_then(|()| make_dir(path, 0o700)).map_err(|error| {
        let why = format!("the directory for temporary files cannot be made: {error}");
        io::Error::new(error.kind(), why)
    })
}

/// What must not be read and lies in, or is, what may be, links followed.
fn overlap(private: &[PathBuf], readable: &[PathBuf]) -> Option<(PathBuf, PathBuf)> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let readable: Vec<PathBuf> = readable.iter().map(|path| real(path)).collect();
    private.iter().map(|path| real(path)).find_map(|private| {
        let open = readable.iter().find(|open| private.starts_with(open))?;
        Some((private, open.clone()))
    })
}

/// Whether the kernel is to be taken for one that lacks something, for the tests of what is done
/// then. Not in a release build.
fn is_absent(what: &str) -> bool {
    cfg!(feature = "failpoints") && std::env::var_os(what).is_some()
}

/// Carries out the hidden subcommand, in a process of its own. Gives back the exit code where
/// it does not become the command.
pub fn carry_out(args: &[String]) -> u8 {
    match args {
        [role] if role == "supervise" => supervise::for_service(),
        [role] if role == "enter-namespaces" => or_told(separate::separate_and_confine()),
        [role] if role == "confine" => or_told(confine::confine_and_run()),
        [role, command @ ..] if role == "keep" => init::keep(command),
        _ => FAILED,
    }
}

/// This very program, even where its file was replaced meanwhile, in another role.
fn ourselves(role: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("navi-sandbox").args([SUBCOMMAND, role]);
    command
}

/// The exit code, or one that says that the command was not run.
fn or_told(done: Result<u8, String>) -> u8 {
    use std::io::Write as _;
    done.unwrap_or_else(|problem| {
        // Nobody may listen, and there is nobody else to tell.
        let _ = writeln!(io::stderr(), "{FAILED_WORDS}{problem}");
        FAILED
    })
}

/// The exit code of a command that could not be confined: it was not run.
pub const FAILED: u8 = 125;
/// What its message begins with.
pub const FAILED_WORDS: &str = "navi sandbox: ";
/// What is said of a job that would hold, where it starts nothing.
const HOLDS: &str = "held";
