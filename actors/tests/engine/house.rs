//! A whole engine in a temporary directory, its scripted model, and a tab that watches.

use std::collections::VecDeque;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use navi_actors::engine::{Engine, EngineConfig};
use navi_actors::feed::Feed;
use navi_actors::llm::guard::StreamLimits;
use navi_actors::llm::{Backend, ChatStream, LlmError, Probe};
use navi_actors::protocol::chat::{
    ChatDelta, ChatMessage, ChatRequest, FinishReason, RequestedCall, Usage,
};
use navi_actors::protocol::command::UserInput;
use navi_actors::protocol::ids::{SessionId, UserId};
use navi_actors::protocol::profile::{Profile, ProfileFlags};
use navi_actors::protocol::status::{BackendKind, BackendState, ModelInfo};
use navi_actors::protocol::tool::{Effect, ToolSpec};
use navi_actors::store::{Location, Store, StoreConfig};
use navi_actors::tools::filesystem::Filesystem;
use navi_actors::tools::registry::Registry;
use navi_actors::tools::scratchpad::ScratchpadTool;
use navi_actors::tools::todo::TodoTool;
use navi_actors::tools::{Tool, ToolContext, ToolResult};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// No wait of a test is longer; only a test that fails sees its end.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// One step of a scripted reply.
#[derive(Clone, Debug)]
pub(crate) enum Say {
    Text(String),
    Thinking(String),
    Call(&'static str, Value),
    /// Goes on when the test says so, with [`House::release`].
    Hold,
    Fail(LlmError),
    /// Silence without end.
    Silence,
}

/// A model that says what the test wants.
#[derive(Debug)]
pub(crate) struct Scripted {
    replies: Mutex<VecDeque<Vec<Say>>>,
    requests: Mutex<Vec<ChatRequest>>,
    release: tokio::sync::Semaphore,
    /// Streams that were dropped before their end.
    dropped: tokio::sync::watch::Sender<u32>,
}

struct OnDrop(Arc<Scripted>, bool);

impl Drop for OnDrop {
    fn drop(&mut self) {
        if !self.1 {
            self.0.dropped.send_modify(|count| *count += 1);
        }
    }
}

#[derive(Debug)]
struct ScriptedBackend(Arc<Scripted>);

#[async_trait]
impl Backend for ScriptedBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Ollama
    }

    fn address(&self) -> String {
        "scripted".into()
    }

    fn slots(&self) -> usize {
        1
    }

    async fn probe(&self) -> Probe {
        Probe {
            state: BackendState::Ready,
            version: None,
            models: vec![ModelInfo {
                name: "scripted".into(),
                ..ModelInfo::default()
            }],
            default_model: Some("scripted".into()),
        }
    }

    async fn chat(&self, request: ChatRequest) -> Result<ChatStream, LlmError> {
        check_history(&request.messages);
        let script = Arc::clone(&self.0);
        script.requests.lock().unwrap().push(request);
        let steps = script
            .replies
            .lock()
            .unwrap()
            .pop_front()
            .unwrap_or_else(|| vec![Say::Text("fine".into())]);
        let (tx, mut rx) = mpsc::channel(1);
        tokio::spawn(async move {
            let mut whole = OnDrop(Arc::clone(&script), false);
            for step in steps {
                let delta = match step {
                    Say::Text(text) => Ok(ChatDelta::Text(text)),
                    Say::Thinking(text) => Ok(ChatDelta::Thinking(text)),
                    Say::Call(name, arguments) => Ok(ChatDelta::ToolCall(RequestedCall {
                        name: name.into(),
                        arguments,
                    })),
                    Say::Fail(error) => Err(error),
                    Say::Hold => {
                        tokio::select! {
                            permit = script.release.acquire() => permit.unwrap().forget(),
                            () = tx.closed() => return,
                        }
                        continue;
                    }
                    Say::Silence => {
                        tx.closed().await;
                        return;
                    }
                };
                let failed = delta.is_err();
                if tx.send(delta).await.is_err() {
                    return;
                }
                if failed {
                    whole.1 = true;
                    return;
                }
            }
            let done = ChatDelta::Done {
                finish: FinishReason::Stop,
                usage: Some(Usage {
                    prompt_tokens: 10,
                    completion_tokens: 5,
                }),
            };
            whole.1 = tx.send(Ok(done)).await.is_ok();
        });
        Ok(Box::pin(futures_util::stream::poll_fn(move |cx| {
            rx.poll_recv(cx)
        })))
    }
}

/// What every provider demands: each call has exactly one result, right after it, in order.
fn check_history(messages: &[ChatMessage]) {
    let mut open: VecDeque<String> = VecDeque::new();
    for message in messages {
        match message {
            ChatMessage::Tool { call_id, .. } => {
                assert_eq!(open.pop_front().as_ref(), Some(&call_id.0), "{messages:#?}");
            }
            other => {
                assert!(open.is_empty(), "calls without results: {messages:#?}");
                if let ChatMessage::Assistant { tool_calls, .. } = other {
                    open.extend(tool_calls.iter().map(|call| call.id.0.clone()));
                }
            }
        }
    }
    assert!(open.is_empty(), "calls without results: {messages:#?}");
}

/// A tool that never ends by itself.
#[derive(Debug)]
struct Sleeper(ToolSpec);

impl Sleeper {
    fn new() -> Self {
        Self(ToolSpec {
            name: "sleep".into(),
            description: "Sleeps.".into(),
            parameters: json!({"type": "object", "properties": {}}),
            effect: Effect::Write,
            time_limit_ms: 60_000,
        })
    }
}

#[async_trait]
impl Tool for Sleeper {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn effect(&self, _: &Value) -> Effect {
        Effect::Write
    }

    async fn call(&self, _: Value, context: ToolContext) -> ToolResult {
        let _ended = Ended(context.workspace.join("ended"));
        std::fs::write(context.workspace.join("began"), "").unwrap();
        std::future::pending().await
    }
}

/// Leaves a file when the tool's task is ended.
struct Ended(PathBuf);

impl Drop for Ended {
    fn drop(&mut self) {
        std::fs::write(&self.0, "").unwrap();
    }
}

/// A running engine.
pub(crate) struct House {
    pub(crate) engine: Engine,
    pub(crate) user: UserId,
    pub(crate) model: Arc<Scripted>,
    pub(crate) dir: PathBuf,
}

impl House {
    /// An engine over the database in `dir`.
    pub(crate) async fn open(dir: &Path, runtime: Arc<tokio::runtime::Runtime>) -> Self {
        let store = Store::open(&StoreConfig {
            location: Location::Sqlite(dir.join("navi.db")),
        })
        .await
        .unwrap();
        let user = store.local_user().await.unwrap().id;
        let model = Arc::new(Scripted {
            replies: Mutex::default(),
            requests: Mutex::default(),
            release: tokio::sync::Semaphore::new(0),
            dropped: tokio::sync::watch::Sender::new(0),
        });
        let engine = Engine::start(EngineConfig {
            store,
            backends: vec![Arc::new(ScriptedBackend(Arc::clone(&model)))],
            fetcher: None,
            profiles: vec![profile()],
            default_profile: "plain".into(),
            persona: String::new(),
            registry: Arc::new(Registry::new([
                Arc::new(Filesystem::new()) as Arc<dyn Tool>,
                Arc::new(TodoTool::new()),
                Arc::new(ScratchpadTool::new()),
                Arc::new(Sleeper::new()),
            ])),
            sessions_dir: dir.join("session_files"),
            context_window: 4096,
            think: true,
            limits: StreamLimits {
                first_chunk: Duration::from_secs(10),
                chunk: Duration::from_secs(10),
            },
            warnings: Vec::new(),
            runtime,
        })
        .await
        .unwrap();
        Self {
            engine,
            user,
            model,
            dir: dir.to_owned(),
        }
    }

    /// What the model says next.
    pub(crate) fn script(&self, reply: impl IntoIterator<Item = Say>) {
        self.model
            .replies
            .lock()
            .unwrap()
            .push_back(reply.into_iter().collect());
    }

    /// Lets one [`Say::Hold`] go on.
    pub(crate) fn release(&self) {
        self.model.release.add_permits(1);
    }

    /// What the model was sent so far.
    pub(crate) fn requests(&self) -> Vec<ChatRequest> {
        self.model.requests.lock().unwrap().clone()
    }

    /// Waits until this many streams were closed before their end.
    pub(crate) async fn streams_dropped(&self, count: u32) {
        let mut dropped = self.model.dropped.subscribe();
        tokio::time::timeout(PATIENCE, dropped.wait_for(|n| *n >= count))
            .await
            .expect("the stream was not closed")
            .unwrap();
    }

    pub(crate) async fn session(&self) -> SessionId {
        self.engine
            .create_session(self.user, None)
            .await
            .unwrap()
            .id
    }

    pub(crate) async fn tab(&self, session: SessionId, after: Option<u64>) -> Tab {
        let feed = self
            .engine
            .attach(self.user, session, after, None)
            .await
            .unwrap();
        Tab { feed }
    }

    pub(crate) async fn say(&self, session: SessionId, text: &str) {
        self.engine
            .send(self.user, session, input(text))
            .await
            .unwrap();
    }
}

pub(crate) fn input(text: &str) -> UserInput {
    UserInput {
        content: text.into(),
        ..UserInput::default()
    }
}

fn profile() -> Profile {
    Profile {
        id: "plain".into(),
        name: "Plain".into(),
        description: String::new(),
        system_prompt: "Be brief.".into(),
        subagent_system_prompt: String::new(),
        enabled_tools: ["filesystem", "todo", "scratchpad", "sleep"]
            .map(str::to_owned)
            .to_vec(),
        subagent_tools: Vec::new(),
        llm_backend: "ollama".into(),
        model: None,
        temperature: 0.0,
        max_iterations: 4,
        scratchpad_sections: vec!["notes".into()],
        flags: ProfileFlags::default(),
    }
}

/// A tab: what it was sent, frame by frame.
pub(crate) struct Tab {
    feed: Feed,
}

impl Tab {
    pub(crate) async fn next(&mut self) -> Value {
        let frame = tokio::time::timeout(PATIENCE, self.feed.next())
            .await
            .expect("nothing came")
            .expect("the feed ended");
        serde_json::from_str(&frame).unwrap()
    }

    /// Everything up to and with the first frame of this type.
    pub(crate) async fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut frames = Vec::new();
        loop {
            let frame = self.next().await;
            let found = frame["type"] == kind;
            frames.push(frame);
            if found {
                return frames;
            }
        }
    }

    /// Whether the feed has ended.
    pub(crate) async fn ended(&mut self) -> bool {
        tokio::time::timeout(PATIENCE, self.feed.next())
            .await
            .is_ok_and(|frame| frame.is_none())
    }
}

/// Waits for a file that a tool leaves.
pub(crate) async fn appears(path: &Path) {
    let there = async {
        while !path.exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, there)
        .await
        .unwrap_or_else(|_| panic!("{} never came", path.display()));
}

/// Types in order, runs of the same delta as one.
pub(crate) fn kinds(frames: &[Value]) -> Vec<String> {
    let mut kinds: Vec<String> = frames
        .iter()
        .map(|frame| frame["type"].as_str().unwrap().to_owned())
        .collect();
    kinds.dedup_by(|a, b| a == b && a.ends_with("delta"));
    kinds
}

/// The text of all deltas of a type, put together by offset.
pub(crate) fn text(frames: &[Value], kind: &str) -> String {
    let mut text = String::new();
    for frame in frames.iter().filter(|frame| frame["type"] == kind) {
        assert_eq!(
            frame["offset"].as_u64().unwrap(),
            text.encode_utf16().count() as u64,
            "{frame}"
        );
        text.push_str(frame["delta"].as_str().unwrap());
    }
    text
}

/// That numbers have no gap and no repeat.
pub(crate) fn assert_gapless(frames: &[Value], first: u64) {
    let seqs: Vec<u64> = frames.iter().filter_map(|f| f["seq"].as_u64()).collect();
    let expected: Vec<u64> = (first..first + seqs.len() as u64).collect();
    assert_eq!(seqs, expected);
}

pub(crate) fn write_call(path: &str, content: &str) -> Say {
    Say::Call(
        "filesystem",
        json!({"action": "write", "path": path, "content": content}),
    )
}

/// Runs a test within an actix system on one multi-thread runtime, as the service does.
pub(crate) fn in_system<F>(test: impl FnOnce(Arc<tokio::runtime::Runtime>, PathBuf) -> F)
where
    F: Future<Output = ()>,
{
    let runtime = Arc::new(
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap(),
    );
    let dir = tempfile::tempdir().unwrap();
    let for_system = Arc::clone(&runtime);
    actix::System::with_tokio_rt(move || for_system)
        .block_on(test(Arc::clone(&runtime), dir.path().to_owned()));
    drop(dir);
    if let Some(runtime) = Arc::into_inner(runtime) {
        runtime.shutdown_background();
    }
}

/// A test with one house.
pub(crate) fn with_house<F>(test: impl FnOnce(House) -> F)
where
    F: Future<Output = ()>,
{
    in_system(|runtime, dir| async move {
        let house = House::open(&dir, runtime).await;
        test(house).await;
    });
}
