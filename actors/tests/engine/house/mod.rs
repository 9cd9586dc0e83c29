//! A whole engine in a temporary directory, its scripted model, and a tab that watches.

mod model;
mod tab;
mod tools;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use navi_actors::domain::hangs::Patience;
use navi_actors::domain::slots::Parallel;
use navi_actors::engine::{Engine, EngineConfig};
use navi_actors::files::FileLimits;
use navi_actors::llm::guard::StreamLimits;
use navi_actors::memory::MemoryTimes;
use navi_actors::profiles::ProfileSet;
use navi_actors::protocol::command::{NewSessionRequest, PlainInput, UserInput};
use navi_actors::protocol::ids::{SessionId, UserId};
use navi_actors::protocol::limits::PersonLimits;
use navi_actors::protocol::people::UserRole;
use navi_actors::protocol::profile::{Profile, ProfileFlags};
use navi_actors::protocol::status::Fence;
use navi_actors::services::{CompressionPolicy, ConsentPolicy, ResumePolicy, RunLimits};
use navi_actors::store::{Location, LogLimits, Store, StoreConfig};
use navi_actors::tools::Tool;
use navi_actors::tools::filesystem::Filesystem;
use navi_actors::tools::memory::{MemoryForget, MemorySave, MemorySearch};
use navi_actors::tools::registry::Registry;
use navi_actors::tools::sandbox::PersonCommands;
use navi_actors::tools::scratchpad::ScratchpadTool;
use navi_actors::tools::spawn_agent::SpawnAgent;
use navi_actors::tools::switch_profile::SwitchProfile;
use navi_actors::tools::todo::TodoTool;

use self::model::{Scripted, ScriptedBackend};
use self::tools::{Page, Sender, Sleeper};

pub(crate) use self::model::{Say, write_call};
pub(crate) use self::tab::{Tab, appears, assert_gapless, first, kinds, text};
pub(crate) use self::tools::{BOUND, UNSURE};

/// No wait of a test is longer; only a test that fails sees its end. It is shorter than what tools
/// and models are given here, so that none of these ends a wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(50);

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
        let model = Arc::new(Scripted::new());
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
