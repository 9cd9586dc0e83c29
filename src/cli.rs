//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use navi_actors::protocol::people::{Scopes, UserRole};

use crate::settings::Overrides;

/// Navi, a personal AI agent on your own machine.
///
/// Without a command it serves the page, and prints the link to it at a terminal.
#[derive(Debug, Parser)]
#[command(name = "navi", version)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) places: Places,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Where settings come from; the same for every command.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Places {
    /// Read settings from this file instead of navi.toml.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Keep everything in this directory (NAVI_DATA_DIR).
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Serve on this address (NAVI_BIND), without accounts a loopback one; port 0 takes any free one.
    #[arg(long, global = true, value_name = "ADDRESS:PORT")]
    bind: Option<String>,
}

impl Places {
    pub(crate) fn overrides(&self) -> Overrides {
        Overrides {
            config: self.config.clone(),
            data_dir: self.data_dir.clone(),
            bind: self.bind.clone(),
        }
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the page and the API. This is what happens without a command.
    Serve,
    /// Look for what is wrong: 0 nothing, 1 warnings, 2 something is broken.
    Doctor {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print every setting and where it came from, secrets hidden.
    Config {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Look into runs: what was done, and what the model was sent (docs/runs.md).
    Runs {
        #[command(subcommand)]
        command: RunsCommand,
    },
    /// Run a command in the sandbox that commands of the terminal tool run in.
    ///
    /// It reads the system's programs and libraries, reads and writes DIR, and has no network.
    /// As root it runs as NAVI_SANDBOX_USER, or nobody, who has to be allowed to write to DIR.
    Sandbox(SandboxArgs),
    /// Models that run in Navi's own process.
    Model {
        #[command(subcommand)]
        command: ModelCommand,
    },
    /// Speak the Agent Client Protocol on standard input and output: for editors, which start
    /// this. It talks to the service that runs (docs/doors.md).
    Acp,
    /// Talk with Navi in this terminal, or ask her once from a script (docs/doors.md).
    ///
    /// The service must run. With -p there is nothing but the answer on standard output, and the
    /// exit code says how it went: 0 answered; 1 the run failed; 2 wrong usage or settings, or no
    /// service; 3 a limit of the run ended it; 4 answered, and something was denied; 130 stopped
    /// by Ctrl-C, which stops the run too (a second one leaves at once).
    Chat(ChatArgs),
    /// Print a fresh one-time link to the page of the running service.
    Link,
    /// Have the service that runs become the program that is installed now; its runs go on
    Upgrade,
    /// Serve a program on standard input and output as an MCP server, through the service that runs
    /// (docs/doors.md).
    Mcp {
        /// Let the program pass on what its person answers to a request for consent.
        #[arg(long)]
        consent: bool,
    },
    /// Read a document from standard input and print its text. The service starts this, so that
    /// a document that means harm meets a process with nothing to lose.
    #[command(hide = true)]
    ReadDocument { media_type: String },
    /// Who has an account, where people sign in (docs/people.md).
    User {
        #[command(subcommand)]
        command: UserCommand,
    },
    /// Tokens for scripts.
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
    /// The database's schema. `navi` brings it up to date by itself.
    Migrate {
        #[command(subcommand)]
        command: MigrateCommand,
    },
}

/// `navi chat`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ChatArgs {
    /// Ask this, print the answer, and end. Standard input is added to it, unless it is a
    /// terminal.
    #[arg(
        short,
        long,
        value_name = "TEXT",
        num_args = 0..=1,
        default_missing_value = ""
    )]
    pub(crate) prompt: Option<String>,
    /// With -p: print one line of JSON: outcome, session_id, run_id, answer, thinking, denied,
    /// usage, error.
    #[arg(long, requires = "prompt")]
    pub(crate) json: bool,
    /// Go on with this conversation; without it another one begins.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<uuid::Uuid>,
    /// Which profile answers, from here on.
    #[arg(long, value_name = "ID")]
    pub(crate) profile: Option<String>,
    /// Which model answers, from here on.
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Attach this file to the message; may be given several times.
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Vec<PathBuf>,
    /// With -p: what becomes of calls that you would be asked about. Denied, or waited for until
    /// somebody answers on the page, or made, but for what asks even in the mode `auto`.
    #[arg(long, value_enum, default_value_t, requires = "prompt")]
    pub(crate) consent: ChatConsent,
}

/// See [`ChatArgs::consent`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChatConsent {
    #[default]
    Deny,
    Wait,
    Allow,
}

/// `navi sandbox`.
#[derive(Clone, Debug, Args)]
pub(crate) struct SandboxArgs {
    /// The folder that it may change, where it runs. Without it: the one that you are in.
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// The command and its arguments.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "CMD"
    )]
    pub(crate) command: Vec<String>,
}

/// `navi model`.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Models that can be fetched, and which are here.
    List,
    /// Fetch a model.
    Fetch { name: String },
}

/// `navi runs`. A service may run beside it.
#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// The newest runs, 50 of them.
    List {
        /// Only those of this session.
        #[arg(long, value_name = "ID")]
        session: Option<uuid::Uuid>,
        /// Only those that began before this one; needs --session.
        #[arg(long, value_name = "ID", requires = "session")]
        before: Option<uuid::Uuid>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// What was told of a run and its subagents, in order, with its model calls.
    Show {
        /// As `navi runs list` shows it.
        id: uuid::Uuid,
        /// Print what the model was sent at this call instead, and what it said.
        #[arg(long, value_name = "N")]
        call: Option<u32>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Ask another model what the run's model was asked, with the tools' results of then.
    ///
    /// No tool runs, and nothing is stored. The exit code says how it went: 0 the same calls to
    /// the end, 3 another way, 130 ended by hand, 1 something failed.
    Replay(ReplayArgs),
}

/// `navi runs replay`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReplayArgs {
    /// As `navi runs list` shows it.
    pub(crate) id: uuid::Uuid,
    /// The model to ask, by its name on the backend that answers now.
    #[arg(long, value_name = "NAME")]
    pub(crate) model: String,
    /// Begin with the first call after this event.
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub(crate) from: u64,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `navi token`.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token; it is printed once.
    Add {
        /// What it is for.
        name: String,
        /// What it is good for: of read, run, consent, files, memory and admin, with commas between
        /// them. Without it: all but consent (docs/people.md).
        #[arg(long, value_name = "SCOPES")]
        scopes: Option<Scopes>,
        /// Let it answer requests for consent, too (docs/doors.md).
        #[arg(long)]
        consent: bool,
        /// Have it open nothing any more after so many days.
        #[arg(long, value_name = "DAYS")]
        days: Option<u32>,
        /// Whose token it is; the user of this machine, where nobody is named.
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
    },
    /// All tokens.
    List,
    /// Make a token open nothing any more.
    Remove {
        /// As `navi token list` shows it.
        id: uuid::Uuid,
    },
}

/// `navi user`. A service that runs knows at once.
#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Print a link by which somebody chooses a name and a password.
    Add {
        #[arg(long, value_enum, default_value_t = RoleName::User)]
        role: RoleName,
        /// How long the link is good, in days: 1 to 30.
        #[arg(long, default_value_t = 7)]
        days: u32,
    },
    /// Everybody.
    List,
    /// Print a link by which a person chooses another password, good for a day.
    Reset {
        /// As `navi user list` shows it.
        name: String,
    },
    /// Make a person something else.
    Role {
        name: String,
        #[arg(value_enum)]
        role: RoleName,
    },
    /// Remove a person, with their conversations, files and memory.
    Remove {
        name: String,
        /// Really.
        #[arg(long)]
        yes: bool,
    },
}

/// What a person is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleName {
    Admin,
    User,
    Guest,
}

impl From<RoleName> for UserRole {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Admin => Self::Admin,
            RoleName::User => Self::User,
            RoleName::Guest => Self::Guest,
        }
    }
}

/// `navi migrate`.
#[derive(Debug, Subcommand)]
pub(crate) enum MigrateCommand {
    /// Bring the schema up to date.
    Up,
    /// Take the whole schema back. All data is deleted.
    Down {
        /// Really.
        #[arg(long)]
        yes: bool,
    },
    /// Each step, and whether it is applied.
    Status,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
