//! A model server for tests: real HTTP on loopback, both protocols, and a script that says
//! what it answers and when.
//!
//! It speaks HTTP by hand, on bare sockets, since it must do what a good server library
//! refuses to do (half a body, garbage, silence without headers) and must see the moment in
//! which its client goes away. From Rust it is a [`FakeModel`]; `examples/fake_model.rs`
//! runs the same for tests in other languages, driven through `/control` (see `control.rs`).
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test code, included by several programs that each use a part of it"
)]

mod check;
mod control;
mod perform;
mod rules;
mod script;
mod server;
mod template;
mod wire;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{oneshot, watch};

pub(crate) use script::{Reply, Step};
pub(crate) use template::Template;

/// How long [`FakeModel::wait_for`] waits: only a test that fails ever sees its end.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running fake. It ends, and cuts every connection, when this is dropped.
#[derive(Debug)]
pub(crate) struct FakeModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    _shutdown: oneshot::Sender<()>,
}

/// What the server claims to be.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// Answers Ollama's paths.
    pub(crate) ollama: bool,
    /// Answers OpenAI's paths.
    pub(crate) openai: bool,
    /// Demands this bearer token on OpenAI's paths.
    pub(crate) api_key: Option<String>,
    pub(crate) models: Vec<String>,
    /// What `/api/show` says of every model.
    pub(crate) capabilities: Vec<String>,
    pub(crate) context_window: u32,
    /// What the models' chat template takes.
    pub(crate) template: Template,
    /// Whose OpenAI's side says that its models are: `llamacpp`, `vllm`.
    pub(crate) owned_by: Option<String>,
    /// How many calls at once llama.cpp's `/props` says that it takes.
    pub(crate) slots: Option<u32>,
}

impl Default for Config {
    fn default() -> Self {
        let capabilities = ["completion", "tools", "thinking", "vision"];
        Self {
            ollama: true,
            openai: true,
            api_key: None,
            models: vec!["fake:latest".to_owned()],
            capabilities: capabilities.map(str::to_owned).to_vec(),
            context_window: 65_536,
            template: Template::Any,
            owned_by: None,
            slots: None,
        }
    }
}

/// A request as it came, and what became of it. Times are in ms since the fake's start.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Recorded {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// Null where it was no JSON.
    pub(crate) body: Value,
    pub(crate) at_ms: u64,
    /// When the answer was complete.
    pub(crate) finished_ms: Option<u64>,
    /// When the client closed the connection before that.
    pub(crate) closed_early_ms: Option<u64>,
}

impl Recorded {
    /// Whether it is a model call.
    pub(crate) fn is_chat(&self) -> bool {
        matches!(self.path.as_str(), "/api/chat" | "/v1/chat/completions")
    }

    /// The text of its last user message.
    pub(crate) fn last_user_text(&self) -> String {
        rules::last_user_text(&self.body)
    }
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Counts changes, so that waiting for anything is waiting for the next of them.
    changes: watch::Sender<u64>,
    started: Instant,
}

#[derive(Debug, Default)]
struct State {
    config: Config,
    queue: Vec<Reply>,
    open_gates: Vec<String>,
    requests: Vec<Recorded>,
    violations: Vec<String>,
}

impl FakeModel {
    /// Starts on a free port of loopback, on a thread and runtime of its own.
    pub(crate) fn start() -> Self {
        Self::start_on(0)
    }

    pub(crate) fn start_on(port: u16) -> Self {
        let listener = std::net::TcpListener::bind(("127.0.0.1", port)).expect("a free port");
        listener
            .set_nonblocking(true)
            .expect("a non-blocking listener");
        let address = listener.local_addr().expect("a local address");
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changes: watch::Sender::new(0),
            started: Instant::now(),
        });
        let (shutdown, ended) = oneshot::channel();
        let served = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("fake-model".to_owned())
            .spawn(move || server::run(listener, &served, ended))
            .expect("a thread");
        Self {
            address,
            shared,
            _shutdown: shutdown,
        }
    }

    /// For `OLLAMA_HOST`, and for `OPENAI_BASE_URL` too.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn configure(&self, config: Config) {
        self.shared.change(|state| state.config = config);
    }

    /// Queues an answer: a list of [`Step`]s, or a [`Reply`] with conditions. The first
    /// queued one whose conditions hold answers a call, before those that always hold;
    /// without any, the rules do.
    pub(crate) fn script(&self, reply: impl Into<Reply>) {
        self.shared.change(|state| state.queue.push(reply.into()));
    }

    /// Opens a gate, for good: each [`Step::Hold`] of that name goes on.
    pub(crate) fn release(&self, gate: &str) {
        self.shared
            .change(|state| state.open_gates.push(gate.to_owned()));
    }

    /// Every request so far, without those to `/control`.
    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.shared.lock().requests.clone()
    }

    /// The model calls so far.
    pub(crate) fn chats(&self) -> Vec<Recorded> {
        let requests = self.requests();
        requests.into_iter().filter(Recorded::is_chat).collect()
    }

    /// Waits until the model calls are as wanted, and gives them back.
    pub(crate) async fn wait_for(&self, wanted: impl Fn(&[Recorded]) -> bool) -> Vec<Recorded> {
        let mut changes = self.shared.changes.subscribe();
        let wait = async {
            loop {
                let chats = self.chats();
                if wanted(&chats) {
                    return chats;
                }
                changes.changed().await.expect("the fake runs");
            }
        };
        tokio::time::timeout(PATIENCE, wait)
            .await
            .unwrap_or_else(|_| panic!("what was waited for did not come: {:#?}", self.chats()))
    }

    /// What was wrong with the requests so far.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.shared.lock().violations.clone()
    }

    /// Fails the test if any request broke a rule: each tool call has exactly one result,
    /// in order, with nothing between them. Scripts that were never asked for fail it too.
    pub(crate) fn assert_clean(&self) {
        let state = self.shared.lock();
        assert!(
            state.violations.is_empty(),
            "bad requests: {:#?}",
            state.violations
        );
        let unused: Vec<&Reply> = state.queue.iter().filter(|it| !it.always).collect();
        assert!(unused.is_empty(), "never asked for: {unused:#?}");
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let result = change(&mut self.lock());
        self.changes.send_modify(|count| *count += 1);
        result
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    async fn gate(&self, name: &str) {
        let mut changes = self.changes.subscribe();
        while !self.lock().open_gates.iter().any(|gate| gate == name) {
            changes.changed().await.expect("the fake runs");
        }
    }

    /// The answer to a call: the first script whose conditions hold, or the rules'.
    fn reply_to(&self, body: &Value) -> Vec<Step> {
        let scripted = self.change(|state| {
            let find = |always: bool| {
                let mut queue = state.queue.iter();
                queue.position(|reply| reply.always == always && reply.answers(body))
            };
            if let Some(at) = find(false) {
                return Some(state.queue.remove(at).steps);
            }
            find(true).map(|at| state.queue[at].steps.clone())
        });
        scripted.unwrap_or_else(|| rules::reply_to(body))
    }
}
