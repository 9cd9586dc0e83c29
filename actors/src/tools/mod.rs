//! Tools: one a file. What they are, what they may touch, and how they answer.

/// Ends a function with these words as its error: a [`ToolError`], or the text as it is.
macro_rules! refuse {
    ($($words:tt)+) => {
        return Err(format!($($words)+).into())
    };
}

/// The same where this is so.
macro_rules! refuse_if {
    ($is_so:expr, $($words:tt)+) => {
        if $is_so {
            refuse!($($words)+);
        }
    };
}

/// A [`ToolError`] of these words.
macro_rules! refusal {
    ($($words:tt)+) => {
        $crate::tools::ToolError(format!($($words)+))
    };
}

/// A tool that keeps nothing, and what the model is told of it, which is made once.
macro_rules! tool {
    ($(#[$doc:meta])* $name:ident, $spec:ident = $made:expr) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        static $spec: std::sync::LazyLock<$crate::protocol::tool::ToolSpec> =
            std::sync::LazyLock::new(|| $made);
    };
}

pub mod filesystem;
pub mod home_assistant;
pub mod lent;
pub mod mcp;
pub mod means;
pub mod memory;
pub mod net;
pub mod output;
pub mod registry;
pub mod sandbox;
pub mod scratchpad;
pub mod skills;
pub mod spawn_agent;
pub mod ssh;
pub mod switch_profile;
pub mod terminal;
pub mod todo;
pub mod toolbox;
pub mod trust;
pub mod user;
pub mod view_image;
pub mod web_fetch;
pub mod web_search;
pub mod workspace;

mod actions;
mod arguments;
pub(crate) mod schema;

#[cfg(test)]
mod fake_session;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use self::actions::{ActionFields, effect_of};
use self::means::Means;
use crate::domain::memory::FactName;
use crate::domain::planning::AgentInfo;
use crate::domain::scratchpad::ScratchpadCommand;
use crate::domain::todo::TodoCommand;
use crate::protocol::approval::Detail;
use crate::protocol::ids::{CallId, RunId, SessionId, UserId};
use crate::protocol::memory::Fact;
use crate::protocol::phrase::{Label, Phrase, PhraseCode};
use crate::protocol::powers::Powers;
use crate::protocol::profile::Profile;
use crate::protocol::todo::{Scratchpad, TodoItem};
use crate::protocol::tool::{Effect, ToolSource, ToolSpec};

/// The longest command that a tool takes: one of ours stands on a command line, and those are
/// limited; each has to be shown whole to whoever is asked about it.
const COMMAND_BYTES: usize = 32 * 1024;

/// Refuses a command that no shell should be given. `instead`: what to do with a long one.
fn check_command(command: &str, instead: &str) -> ToolResult<()> {
    refuse_if!(
        command.len() > COMMAND_BYTES,
        "`command` has {} bytes, and {COMMAND_BYTES} is the limit; {instead}",
        command.len()
    );
    refuse_if!(
        command.contains('\0'),
        "`command` has a NUL byte; leave it out"
    );
    Ok(())
}

/// Something that the model can call. One instance serves every session.
#[async_trait]
pub trait Tool: Send + Sync + Debug + 'static {
    fn spec(&self) -> &ToolSpec;

    /// What a profile's model is told: [`Tool::spec`], narrowed by what the profile says of
    /// this tool. The same bytes for the same audience, always: it is part of the prompt's prefix.
    fn spec_for(&self, _audience: &Audience<'_>) -> ToolSpec {
        self.spec().clone()
    }

    /// The tool as it is for somebody with these powers: itself, one that does less, or none. Each
    /// tool has to say: there is no other way to keep somebody from one.
    fn for_powers(self: Arc<Self>, powers: &Powers) -> Option<Arc<dyn Tool>>;

    /// Why this tool cannot be called as things are set up; it is offered to no model then.
    fn unavailable(&self) -> Option<&str> {
        None
    }

    /// Where it comes from: profiles name some tools by that.
    fn source(&self) -> ToolSource {
        ToolSource::BuiltIn
    }

    /// Whether its calls may need the session's workspace, which is made before them then.
    fn needs_workspace(&self) -> bool {
        true
    }

    /// What it adds to the system prompt of whoever may call it. The same bytes always.
    fn prompt(&self) -> Option<&str> {
        None
    }

    /// What each value of its `action` takes; empty where it has no such argument. A call that
    /// leaves the action out, and can mean only one, is that one.
    fn actions(&self) -> &[ActionFields] {
        &[]
    }

    /// What this very call does, which its action tells where it has one. `spec().effect` is
    /// the most that any call does. `args` has passed the schema.
    fn effect(&self, args: &Value) -> Effect {
        effect_of(self.actions(), args).unwrap_or(self.spec().effect)
    }

    /// Whether this call may run beside others that may: one that only reads, as a rule.
    fn side_by_side(&self, args: &Value) -> bool {
        self.effect(args) == Effect::Read
    }

    /// What a person is shown before this call, where anyone is asked, and what an approval of
    /// it is bound to. Made again right before the call runs: where it is another one by then,
    /// the approval does not count. `args` has passed the schema.
    async fn proposal(&self, args: &Value, _context: &ToolContext) -> ToolResult<Proposal> {
        Ok(Proposal::of_arguments(&self.spec().name, args))
    }

    /// Whether what this call does hangs on files that its proposal does not hold: where other
    /// calls changed some between the question and the answer, the answer does not count.
    fn hangs_on_files(&self, _args: &Value) -> bool {
        false
    }

    /// Why a person is asked about this very call in every mode, where one is.
    fn by_word(&self, _args: &Value) -> Option<Phrase> {
        None
    }

    /// Where what this very call says comes from, be it a result or an error. `args` has passed
    /// the schema. A tool that reaches beyond the session brings back what stands there, as a rule.
    fn provenance(&self, _args: &Value) -> Provenance {
        match self.spec().effect {
            Effect::Read | Effect::Write => Provenance::Own,
            Effect::Egress | Effect::Host => Provenance::Outside,
        }
    }

    /// How much longer than its time limit says a call is waited for: where the tool itself ends
    /// what it does at that limit, it has something to tell afterwards.
    fn margin(&self) -> Duration {
        Duration::ZERO
    }

    /// Runs the call. `args` has passed the schema. The caller races it against the
    /// stop token and the time limit and drops it when either comes first.
    async fn call(&self, args: Value, context: ToolContext) -> ToolResult;

    /// The names of what it reaches that can be granted one by one, where it has such.
    fn reaches(&self) -> Vec<String> {
        Vec::new()
    }

    /// The session is deleted: whatever is kept for it beyond a call ends now.
    fn session_closed(&self, _session: SessionId) {}

    /// A person is removed: whatever is kept for them ends now. Blocks.
    fn person_removed(&self, _user: UserId) {}
}

/// What a call gives back to the model: its output, or text that says what was wrong and what
/// to do. A part of a call's work gives back something else.
pub type ToolResult<T = ToolOutput> = Result<T, ToolError>;

/// Where a text comes from. What came from outside stays from outside, whoever reads, copies or
/// quotes it (DESIGN section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// Navi's own words, and those of the model.
    Own,
    /// The session's workspace: from outside as soon as anything that is has come into the
    /// session, since a file there may be a copy of it.
    Workspace,
    /// The web, another machine, a program beyond the sandbox, a file that was sent in.
    Outside,
}

/// What a call that did what was asked gives back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolOutput {
    pub text: String,
    /// Put before the model beside the text.
    pub images: Vec<ToolImage>,
    /// Whether something in the text came from outside although [`Tool::provenance`] does not
    /// say so: a hit among others, what a child read.
    pub outside: bool,
}

/// An image that a call gives back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolImage {
    /// As in `image/png`.
    pub media_type: String,
    pub bytes: Vec<u8>,
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

/// A call that did not do what was asked. The model reads the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

impl From<String> for ToolError {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// A call as a person is asked about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// One line, as in "run `cargo test`".
    pub summary: Phrase,
    pub details: Vec<Detail>,
    /// What "always" would cover; none where each such call is asked about.
    pub rule: Option<RuleSubject>,
    /// Everything that makes this call what it is, beside its arguments: the directory, the
    /// environment, the content of a script that it runs. An approval is bound to its hash.
    pub binding: String,
}

/// A set of calls of one tool that a person may allow once and for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSubject {
    /// What calls are compared by, byte for byte: two calls with the same key are of one set.
    pub key: String,
    /// The same for a person, as in "`cargo test` with any arguments".
    pub words: Phrase,
}

impl RuleSubject {
    pub(crate) fn new(key: impl Into<String>, words: impl Into<Phrase>) -> Self {
        let (key, words) = (key.into(), words.into());
        Self { key, words }
    }
}

impl Proposal {
    /// A call told by its arguments alone.
    pub fn of_arguments(tool: &str, args: &Value) -> Self {
        let tool = [("tool", tool.to_owned())];
        let any = Phrase::new(PhraseCode::AnyCall, tool.clone());
        Self {
            summary: Phrase::new(PhraseCode::Call, tool),
            details: vec![arguments_shown(args)],
            rule: Some(RuleSubject::new("", any)),
            binding: String::new(),
        }
    }
}

/// A call's arguments as a person is shown them.
fn arguments_shown(args: &Value) -> Detail {
    Detail::code(Label::Arguments, format!("{args:#}"))
}

/// Where a call's output goes while it runs. Cheap to clone.
pub type LiveOutput = Arc<dyn OutputSink>;

/// See [`LiveOutput`]. Never blocks, never fails: what watchers cannot take in is left out, and
/// stands in the result.
pub trait OutputSink: Send + Sync + Debug {
    /// Shows the next piece of a call's output to whoever watches.
    fn push(&self, text: &str);
}

/// What a call may use. Everything else is out of its reach.
#[derive(Clone, Debug)]
pub struct ToolContext {
    pub session_id: SessionId,
    pub user_id: UserId,
    /// The run that makes the call; a child's own, where a child does.
    pub run_id: RunId,
    /// Whether that is a child: several may work in the session side by side.
    pub is_subagent: bool,
    pub call_id: CallId,
    /// The call's output while it runs.
    pub output: LiveOutput,
    /// The session's own directory. It exists.
    pub workspace: PathBuf,
    pub means: Means,
    pub stop: CancellationToken,
    /// Cancelled when the user stops the run, and not at its own end: what a call leaves behind
    /// ends with it.
    pub stopped: CancellationToken,
    pub session: Arc<dyn SessionState>,
    pub agents: Arc<dyn Agents>,
    pub memory: Arc<dyn MemoryAccess>,
    /// Whether this session has read text from outside: what the model does may come from
    /// that text's author.
    pub untrusted: bool,
    /// Whether the model that called sees images, as far as is known.
    pub sees_images: bool,
    /// Whether a person was asked about this very call, as its proposal stands, and allowed it.
    pub approved: bool,
}

/// Who a tool describes itself to.
#[derive(Clone, Copy, Debug)]
pub struct Audience<'a> {
    pub profile: &'a Profile,
    /// Every profile that there is.
    pub agents: &'a [AgentInfo<'a>],
}

/// Starts child runs. The run that the tool works for stands behind it.
#[async_trait]
pub trait Agents: Send + Sync + Debug {
    /// Runs a child to its end. Gives back its result, with a first line that says whether it
    /// completed normally; it is from outside where the child read such text. Dropping the future stops the child.
    async fn spawn(&self, call_id: &CallId, order: SpawnOrder) -> ToolResult;
}

/// What a child is asked to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnOrder {
    pub task: String,
    /// The run's own where absent.
    pub profile_id: Option<String>,
    /// What the child has to know beside the task; it may be nothing.
    pub context: String,
}

/// The parts of a session's state that tools can reach. The session's actor stands behind it.
#[async_trait]
pub trait SessionState: Send + Sync + Debug {
    /// Applies a command to the todo list; a change is committed and told to the watchers
    /// before this returns. Gives back the list as it stands.
    async fn todo(&self, command: TodoCommand) -> ToolResult<Vec<TodoItem>>;

    /// Gives the session another profile, which is told to the watchers before this returns.
    /// It holds from the run's next iteration on. Gives back its name.
    async fn switch_profile(&self, profile_id: String) -> ToolResult<String>;

    /// Applies a command to the scratchpad; a change is committed before this returns.
    async fn scratchpad(&self, command: ScratchpadCommand) -> ToolResult<Scratchpad>;
}

/// What is remembered of the user. The run binds the user, and where a fact came from.
#[async_trait]
pub trait MemoryAccess: Send + Sync + Debug {
    /// All facts, a bounded number.
    async fn facts(&self) -> ToolResult<Vec<Fact>>;

    /// Saves a fact with so much confidence in it; it is committed before this returns.
    async fn save(&self, name: FactName, value: String, confidence: f32)
    -> ToolResult<SavedByTool>;

    /// Forgets a fact and its history. Tells whether it was there.
    async fn forget(&self, name: FactName) -> ToolResult<bool>;
}

/// What became of a fact that was to be saved.
#[derive(Clone, Debug, PartialEq)]
pub enum SavedByTool {
    /// Nothing: this value was known and stays, be it the same, or one that is more certain.
    Known(String),
    Created,
    Replaced {
        former: Fact,
    },
}

/// Work of a tool that waits for a disk, or takes long, away from the threads that serve everybody.
pub(crate) async fn blocking<T: Send + 'static>(
    tool: &str,
    work: impl FnOnce() -> ToolResult<T> + Send + 'static,
) -> ToolResult<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        tracing::error!(%error, tool, "a tool failed");
        refuse!("{tool} failed inside; look at what it did before trying again")
    })
}
