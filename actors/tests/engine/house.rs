//! A whole engine in a temporary directory, its scripted model, and a tab that watches.

use std::collections::VecDeque;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use navi_actors::domain::hangs::Patience;
use navi_actors::domain::slots::{Capacity, Parallel};
use navi_actors::engine::{Engine, EngineConfig};
use navi_actors::feed::Feed;
use navi_actors::files::FileLimits;
use navi_actors::llm::guard::StreamLimits;
use navi_actors::llm::{Backend, ChatStream, LlmError, Probe};
use navi_actors::memory::MemoryTimes;
use navi_actors::profiles::ProfileSet;
use navi_actors::protocol::chat::{
    ChatDelta, ChatMessage, ChatRequest, FinishReason, RequestedCall, Usage,
};
use navi_actors::protocol::command::{NewSessionRequest, PlainInput, UserInput};
use navi_actors::protocol::ids::{SessionId, UserId};
use navi_actors::protocol::limits::PersonLimits;
use navi_actors::protocol::people::UserRole;
use navi_actors::protocol::phrase::{Phrase, PhraseCode};
use navi_actors::protocol::powers::Powers;
use navi_actors::protocol::profile::{Profile, ProfileFlags};
use navi_actors::protocol::prompt::PromptMessage;
use navi_actors::protocol::status::{BackendKind, BackendState, Fence, ModelInfo};
use navi_actors::protocol::tool::{Effect, ToolSpec};
use navi_actors::services::{CompressionPolicy, ConsentPolicy, ResumePolicy, RunLimits};
use navi_actors::store::{Location, LogLimits, Store, StoreConfig};
use navi_actors::tools::filesystem::Filesystem;
use navi_actors::tools::memory::{MemoryForget, MemorySave, MemorySearch};
use navi_actors::tools::registry::Registry;
use navi_actors::tools::sandbox::PersonCommands;
use navi_actors::tools::scratchpad::ScratchpadTool;
use navi_actors::tools::spawn_agent::SpawnAgent;
use navi_actors::tools::switch_profile::SwitchProfile;
use navi_actors::tools::todo::TodoTool;
use navi_actors::tools::{
    Proposal, Provenance, RuleSubject, Tool, ToolContext, ToolError, ToolResult,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// No wait of a test is longer; only a test that fails sees its end. It is shorter than what tools
/// and models are given here, so that none of these ends a wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(50);

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
    /// To questions of Navi's own that want a whole answer, titles aside.
    whole: Mutex<VecDeque<Vec<Say>>>,
    /// For requests that hold a word: a child's task, or what a whole answer is asked for.
    answers: Mutex<Vec<(&'static str, Vec<Say>)>>,
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

    async fn probe(&self) -> Probe {
        Probe {
            state: BackendState::Ready,
            version: None,
            models: vec![ModelInfo {
                name: "scripted".into(),
                ..ModelInfo::default()
            }],
            default_model: Some("scripted".into()),
            capacity: Some(Capacity::Told(1)),
        }
    }

    async fn chat(&self, request: Arc<ChatRequest>) -> Result<ChatStream, LlmError> {
        let script = Arc::clone(&self.0);
        let steps = script.steps(&request);
        script.requests.lock().unwrap().push((*request).clone());
        check_history(&request.messages);
        // Of a long prompt no less than it has words: a server that read less has cut it.
        let prompt_tokens = match words(&request) {
            0..500 => 10,
            words => words,
        };
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
                    prompt_tokens,
                    completion_tokens: 5,
                    cached_tokens: None,
                }),
            };
            whole.1 = tx.send(Ok(done)).await.is_ok();
        });
        Ok(Box::pin(futures_util::stream::poll_fn(move |cx| {
            rx.poll_recv(cx)
        })))
    }
}

impl Scripted {
    /// What is said to a request: what was scripted for a word in it; else what is next in line
    /// for its kind. Titles are asked for whenever; they get nothing.
    fn steps(&self, request: &ChatRequest) -> Vec<Say> {
        let mut answers = self.answers.lock().unwrap();
        let found = answers
            .iter()
            .position(|(word, _)| request.messages.iter().any(|m| asks(m, word)));
        match found {
            Some(at) => answers.remove(at).1,
            None if request.streamed => {
                let next = self.replies.lock().unwrap().pop_front();
                next.unwrap_or_else(|| vec![Say::Text("fine".into())])
            }
            None if is_title(request) => Vec::new(),
            None => self.whole.lock().unwrap().pop_front().unwrap_or_default(),
        }
    }
}

fn words(request: &ChatRequest) -> u32 {
    let text = serde_json::to_string(&request.messages).unwrap();
    u32::try_from(text.split_whitespace().count()).unwrap()
}

/// Whether this asks for a session's title.
fn is_title(request: &ChatRequest) -> bool {
    !request.streamed && request.messages.iter().any(|m| asks(m, "a title"))
}

/// Whether the word stands in an instruction or in what a person or a parent said.
fn asks(message: &ChatMessage, word: &str) -> bool {
    match message {
        ChatMessage::System { content } | ChatMessage::User { content, .. } => {
            content.contains(word)
        }
        ChatMessage::Assistant { .. } | ChatMessage::Tool { .. } => false,
    }
}

/// What every provider demands: each call has exactly one result, right after it, in order.
fn check_history(messages: &[PromptMessage]) {
    let mut open: VecDeque<String> = VecDeque::new();
    for message in messages {
        match &**message {
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

    fn for_powers(self: Arc<Self>, _: &Powers) -> Option<Arc<dyn Tool>> {
        Some(self)
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

/// What an approval of a `send` is bound to, beside its arguments: what stands in these files.
pub(crate) const BOUND: [&str; 3] = ["environment", "directory", "script"];

/// Where this file is in the workspace, `send` cannot say what it would do.
pub(crate) const UNSURE: &str = "unsure";

/// A tool that does what is asked about: it adds a line to a file. `effect` says how much of
/// it that is; a rule covers one `to`. A send to `restless` is another one at its fourth look.
#[derive(Debug)]
struct Sender(ToolSpec);

impl Sender {
    fn new() -> Self {
        Self(ToolSpec {
            name: "send".into(),
            description: "Sends.".into(),
            parameters: json!({
                "type": "object",
                "properties": {"to": {"type": "string"}, "effect": {"type": "string"}},
                "required": ["to"],
            }),
            effect: Effect::Host,
            time_limit_ms: 60_000,
        })
    }
}

#[async_trait]
impl Tool for Sender {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn for_powers(self: Arc<Self>, _: &Powers) -> Option<Arc<dyn Tool>> {
        Some(self)
    }

    fn provenance(&self, _: &Value) -> Provenance {
        Provenance::Own
    }

    fn effect(&self, args: &Value) -> Effect {
        match args["effect"].as_str() {
            Some("write") => Effect::Write,
            Some("host") => Effect::Host,
            _ => Effect::Egress,
        }
    }

    async fn proposal(&self, args: &Value, context: &ToolContext) -> Result<Proposal, ToolError> {
        if context.workspace.join(UNSURE).exists() {
            return Err(ToolError("it cannot be told what this does".into()));
        }
        let to = args["to"].as_str().unwrap_or_default();
        let read = |name: &&str| std::fs::read_to_string(context.workspace.join(name));
        let bound = BOUND.iter().map(|name| read(name).unwrap_or_default());
        let looks = context.workspace.join("looks");
        let looked = std::fs::read(&looks).map_or(1, |looks| looks.len() + 1);
        std::fs::write(looks, vec![b'.'; looked]).unwrap();
        let is_another = to == "restless" && looked == 4;
        Ok(Proposal {
            summary: Phrase::new(PhraseCode::Call, [("tool", format!("send to {to}"))]),
            rule: (to != "anyone").then(|| RuleSubject {
                key: if is_another { "eve" } else { to }.into(),
                words: Phrase::new(PhraseCode::AnyCall, [("tool", format!("send to {to}"))]),
            }),
            binding: bound.collect::<Vec<_>>().join("\0"),
            ..Proposal::of_arguments("send", args)
        })
    }

    async fn call(&self, args: Value, context: ToolContext) -> ToolResult {
        let path = context.workspace.join("sent");
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        let to = args["to"].as_str().unwrap();
        std::fs::write(path, format!("{before}{to}\n")).unwrap();
        Ok(format!("sent to {to}").into())
    }
}

/// A page from outside that says what the test puts into it, as its text or as its failure.
#[derive(Debug)]
struct Page(ToolSpec);

impl Page {
    fn new() -> Self {
        Self(ToolSpec {
            name: "page".into(),
            description: "Reads a page.".into(),
            parameters: json!({
                "type": "object",
                "properties": {"text": {"type": "string"}, "fails": {"type": "boolean"}},
                "required": ["text"],
            }),
            effect: Effect::Read,
            time_limit_ms: 60_000,
        })
    }
}

#[async_trait]
impl Tool for Page {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn for_powers(self: Arc<Self>, _: &Powers) -> Option<Arc<dyn Tool>> {
        Some(self)
    }

    fn effect(&self, _: &Value) -> Effect {
        Effect::Read
    }

    fn provenance(&self, _: &Value) -> Provenance {
        Provenance::Outside
    }

    async fn call(&self, args: Value, _: ToolContext) -> ToolResult {
        let text = args["text"].as_str().unwrap().to_owned();
        if args["fails"] == true {
            return Err(ToolError(text));
        }
        Ok(text.into())
    }
}

/// What a test wants otherwise than usual.
pub(crate) struct Setup {
    pub(crate) profiles: Vec<Profile>,
    pub(crate) window: u32,
    pub(crate) runs: RunLimits,
    /// What each of several people may have; none: there is one.
    pub(crate) people: Option<PersonLimits>,
    pub(crate) resume: ResumePolicy,
    pub(crate) compression: CompressionPolicy,
    pub(crate) consent: ConsentPolicy,
    pub(crate) memory: MemoryTimes,
    /// Where each statement that the store makes is kept.
    pub(crate) statements: Option<Arc<Mutex<Vec<String>>>>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            profiles: vec![profile("plain")],
            window: 4096,
            runs: RunLimits::default(),
            people: None,
            resume: ResumePolicy::default(),
            compression: CompressionPolicy::default(),
            consent: ConsentPolicy::default(),
            memory: MemoryTimes::default(),
            statements: None,
        }
    }
}

/// A running engine.
pub(crate) struct House {
    pub(crate) engine: Engine,
    pub(crate) store: Store,
    pub(crate) user: UserId,
    pub(crate) model: Arc<Scripted>,
    pub(crate) dir: PathBuf,
}

impl House {
    /// An engine over the database in `dir`.
    pub(crate) async fn open(dir: &Path, runtime: Arc<tokio::runtime::Runtime>) -> Self {
        Self::open_with(dir, runtime, Setup::default()).await
    }

    pub(crate) async fn open_with(
        dir: &Path,
        runtime: Arc<tokio::runtime::Runtime>,
        setup: Setup,
    ) -> Self {
        let mut store = Store::open(&StoreConfig {
            location: Location::Sqlite(dir.join("navi.db")),
        })
        .await
        .unwrap();
        if let Some(statements) = setup.statements {
            store.on_statement(move |sql| statements.lock().unwrap().push(sql.to_owned()));
        }
        let user = store.local_user().await.unwrap().id;
        let model = Arc::new(Scripted {
            replies: Mutex::default(),
            answers: Mutex::default(),
            whole: Mutex::default(),
            requests: Mutex::default(),
            release: tokio::sync::Semaphore::new(0),
            dropped: tokio::sync::watch::Sender::new(0),
        });
        let kept = store.clone();
        let engine = Engine::start(EngineConfig {
            store,
            backends: vec![Arc::new(ScriptedBackend(Arc::clone(&model)))],
            parallel: Parallel::Auto,
            ollama: None,
            fetcher: None,
            files: FileLimits::default(),
            log: LogLimits::default(),
            profiles: ProfileSet {
                profiles: setup.profiles,
                ..ProfileSet::default()
            },
            default_profile: "plain".into(),
            people: setup.people,
            person_commands: PersonCommands::default(),
            registry: Arc::new(Registry::new([
                Arc::new(Filesystem::new(Arc::default())) as Arc<dyn Tool>,
                Arc::new(TodoTool),
                Arc::new(ScratchpadTool),
                Arc::new(SpawnAgent),
                Arc::new(SwitchProfile),
                Arc::new(MemorySearch),
                Arc::new(MemorySave),
                Arc::new(MemoryForget),
                Arc::new(Sleeper::new()),
                Arc::new(Sender::new()),
                Arc::new(Page::new()),
            ])),
            extensions: None,
            sessions_dir: dir.join("session_files"),
            file_access: Arc::default(),
            context_window: setup.window,
            runs: setup.runs,
            resume: setup.resume,
            compression: setup.compression,
            consent: setup.consent,
            think: true,
            limits: StreamLimits {
                first_chunk: Duration::from_secs(60),
                chunk: Duration::from_secs(60),
            },
            memory: setup.memory,
            prices_file: dir.join("prices.toml"),
            patience: Some(Patience::default()),
            warnings: Vec::new(),
            fence: Fence::default(),
            runtime,
        })
        .await
        .unwrap();
        Self {
            engine,
            store: kept,
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

    /// What the model says to the next request in which this word stands.
    pub(crate) fn answer(&self, word: &'static str, reply: impl IntoIterator<Item = Say>) {
        let reply = reply.into_iter().collect();
        self.model.answers.lock().unwrap().push((word, reply));
    }

    /// Lets one [`Say::Hold`] go on.
    pub(crate) fn release(&self) {
        self.model.release.add_permits(1);
    }

    /// What the model says to the next question of Navi's own, titles aside.
    pub(crate) fn whole(&self, reply: impl IntoIterator<Item = Say>) {
        let reply = reply.into_iter().collect();
        self.model.whole.lock().unwrap().push_back(reply);
    }

    /// What the model was sent so far, titles aside.
    pub(crate) fn requests(&self) -> Vec<ChatRequest> {
        let mut requests = self.model.requests.lock().unwrap().clone();
        requests.retain(|request| !is_title(request));
        requests
    }

    /// What the model was sent by runs; the rest are questions of Navi's own.
    pub(crate) fn asked(&self) -> Vec<ChatRequest> {
        let mut requests = self.requests();
        requests.retain(|request| request.streamed);
        requests
    }

    /// Waits until the model was sent this many requests.
    pub(crate) async fn requests_reach(&self, count: usize) {
        let reached = async {
            while self.requests().len() < count {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, reached)
            .await
            .expect("the model was not asked");
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
            .create_session(self.user, NewSessionRequest::default())
            .await
            .unwrap()
            .id
    }

    pub(crate) async fn tab(&self, session: SessionId, after: Option<u64>) -> Tab {
        let feed = self
            .engine
            .attach(self.user, session, after, None, None)
            .await
            .unwrap();
        Tab { feed }
    }

    /// Somebody's page that watches the session list.
    pub(crate) fn page(&self, user: UserId, role: UserRole) -> Tab {
        Tab {
            feed: self.engine.watch(user, role),
        }
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

/// A message for a plain run.
pub(crate) fn plain(text: &str) -> PlainInput {
    PlainInput {
        message: input(text),
        ..PlainInput::default()
    }
}

pub(crate) fn profile(id: &str) -> Profile {
    Profile {
        id: id.into(),
        name: id.to_uppercase(),
        description: String::new(),
        system_prompt: format!("You are {id}. Be brief."),
        subagent_system_prompt: format!("You are a helper of kind {id}."),
        enabled_tools: [
            "filesystem",
            "todo",
            "scratchpad",
            "spawn_agent",
            "switch_profile",
            "sleep",
            "memory_search",
            "memory_save",
            "memory_forget",
            "send",
            "page",
        ]
        .map(str::to_owned)
        .to_vec(),
        subagent_tools: Vec::new(),
        llm_backend: None,
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

/// Types in order, runs of the same delta as one. That a run waits for a machine that is busy is
/// left out.
pub(crate) fn kinds(frames: &[Value]) -> Vec<String> {
    let mut kinds: Vec<String> = frames
        .iter()
        .map(|frame| frame["type"].as_str().unwrap().to_owned())
        .filter(|kind| kind != "run_waiting")
        .collect();
    kinds.dedup_by(|a, b| a == b && a.ends_with("delta"));
    kinds
}

/// The first frame of a type.
pub(crate) fn first<'a>(frames: &'a [Value], kind: &str) -> &'a Value {
    frames.iter().find(|frame| frame["type"] == kind).unwrap()
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
    with_setup(Setup::default(), test);
}

pub(crate) fn with_setup<F>(setup: Setup, test: impl FnOnce(House) -> F)
where
    F: Future<Output = ()>,
{
    in_system(|runtime, dir| async move {
        let house = House::open_with(&dir, runtime, setup).await;
        test(house).await;
    });
}
