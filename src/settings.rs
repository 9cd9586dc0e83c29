//! Settings: the built-in defaults, an optional file, the environment, the command line;
//! typed, and checked as a whole before anything starts (SPEC section 15).

mod addresses;
pub(crate) mod change;
mod collector;
mod described;
mod doors;
mod edit;
mod files;
mod keys;
pub(crate) mod layers;
mod limits;
mod page;
mod people;
mod read;
mod sandbox;
mod secret;
#[cfg(test)]
mod settings_tests;
mod shown;
mod sign_on;
mod sources;
mod ssh;
mod tls;
mod web;
#[cfg(test)]
mod web_tests;
mod written;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use config::Config;
use navi_actors::domain::hangs::Patience;
use navi_actors::domain::slots::Parallel;
use navi_actors::files::FileLimits;
use navi_actors::homes::Homes;
use navi_actors::llm::openai::OpenAiConfig;
use navi_actors::protocol::phrase::{Phrase, PhraseCode};
use navi_actors::protocol::status::Fence;
use navi_actors::services::{CompressionPolicy, ConsentPolicy, ResumePolicy, RunLimits};
use navi_actors::store::LogLimits;
use navi_actors::tools::ssh::SshConfig;
use navi_actors::tools::terminal::TerminalConfig;
use navi_actors::tools::workspace::FileAccess;
use tracing::Level;

pub(crate) use self::collector::CollectorSettings;
pub(crate) use self::doors::{Door, OpenDoors};
pub(crate) use self::keys::is_secret_variable;
use self::layers::{Environment, FilePlace, Layer};
pub(crate) use self::page::{needs_all_scopes, page_keys};
pub(crate) use self::people::{PeopleSettings, PublicUrl};
use self::read::Reader;
pub(crate) use self::secret::Secret;
pub(crate) use self::shown::{PendingValue, ShownValue};
use self::shown::{secrets, shown};
pub(crate) use self::sign_on::{ProviderSettings, SignOnSettings};
use self::sources::{Sources, Texts};
pub(crate) use self::tls::TlsFiles;
use self::web::WebSettings;
use crate::tls::Wire;

/// A person's own settings, in the data directory or that of the configuration.
const FILE_NAME: &str = "navi.toml";

/// What the service needs to know before it starts.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(crate) bind: SocketAddr,
    pub(crate) people: PeopleSettings,
    /// Of Navi's own.
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) sign_on: SignOnSettings,
    pub(crate) data_dir: PathBuf,
    pub(crate) api_token: Option<Secret>,
    /// How long a request's body may be too slow.
    pub(crate) slow_body: Duration,
    /// Which doors are open beside the page and its API.
    pub(crate) doors: OpenDoors,
    /// Whether `/metrics` is there.
    pub(crate) metrics: bool,
    /// Where traces are sent.
    pub(crate) collector: Option<CollectorSettings>,
    pub(crate) log_level: Level,
    pub(crate) database: DatabaseSettings,
    pub(crate) model: ModelSettings,
    pub(crate) patience: Option<Patience>,
    pub(crate) runs: RunLimits,
    pub(crate) resume: ResumePolicy,
    pub(crate) consent: ConsentPolicy,
    pub(crate) compression: CompressionPolicy,
    /// Of conversations that were read last.
    pub(crate) context_cache_bytes: usize,
    pub(crate) persona: Persona,
    pub(crate) profiles_dir: PathBuf,
    pub default_profile: String,
    pub(crate) prices_file: PathBuf,
    pub(crate) session_files_dir: PathBuf,
    /// What the filesystem tool may reach.
    pub(crate) file_access: FileAccess,
    pub(crate) terminal: TerminalConfig,
    /// What a session's files may take up.
    pub(crate) files: FileLimits,
    /// How long what was told is kept.
    pub(crate) log: LogLimits,
    /// None where no hosts are named.
    pub(crate) ssh: Option<SshConfig>,
    pub(crate) web: WebSettings,
    pub(crate) fence: Fence,
    pub(crate) extensions: ExtensionSettings,
}

/// Where tools from outside are. None of it need exist.
#[derive(Clone, Debug)]
pub(crate) struct ExtensionSettings {
    pub(crate) tools_dir: PathBuf,
    pub(crate) skills_dir: PathBuf,
    pub(crate) mcp_config: PathBuf,
}

/// Which database.
#[derive(Clone, Debug)]
pub(crate) enum DatabaseSettings {
    Sqlite(PathBuf),
    Postgres(Secret),
}

/// Which backends, and how they are called.
#[derive(Clone, Debug)]
pub(crate) struct ModelSettings {
    pub(crate) backend: BackendChoice,
    pub(crate) parallel: Parallel,
    pub(crate) first_chunk_timeout: Duration,
    pub(crate) chunk_timeout: Duration,
    pub(crate) context_window: u32,
    pub(crate) think: bool,
    pub(crate) ollama_host: String,
    pub(crate) ollama_model: String,
    pub(crate) openai: Option<OpenAiConfig>,
    /// The name of a model, or a path to a GGUF file. None: off.
    pub(crate) starter: Option<String>,
}

/// `LLM_BACKEND`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BackendChoice {
    Auto,
    Ollama,
    Openai,
    Starter,
}

/// Where the persona's text is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Persona {
    BuiltIn,
    Inline(String),
    File(PathBuf),
}

/// What the command line says; it wins over everything else.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    pub config: Option<PathBuf>,
    pub data_dir: Option<PathBuf>,
    pub bind: Option<String>,
}

/// Settings, and where each came from.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub settings: Settings,
    /// The file that was read, or else the one that would be.
    pub(crate) file: PathBuf,
    pub(crate) values: Vec<ShownValue>,
    /// The values of all secret settings, to be hidden in what others say.
    pub(crate) secrets: Vec<Secret>,
    /// Not wrong enough to stop for, one sentence each.
    pub(crate) warnings: Vec<Phrase>,
    /// What else than the file decides.
    sources: Sources,
    texts: Texts,
}

/// Everything that is wrong with the settings.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.text())]
pub struct SettingsError {
    pub(crate) problems: Vec<String>,
    /// Of those, the settings that are none, each by its key with what was expected.
    wrong: Vec<(&'static str, String)>,
}

impl Settings {
    /// How this service is spoken with.
    pub(crate) fn wire(&self) -> Wire {
        match self.tls {
            None => Wire::Plain,
            Some(_) => Wire::Tls,
        }
    }

    /// Where the service has the workspaces of sessions.
    pub(crate) fn homes(&self) -> Homes {
        let dir = self.session_files_dir.clone();
        match self.people.accounts {
            true => Homes::of_each(dir),
            false => Homes::from(dir),
        }
    }
}

impl SettingsError {
    fn text(&self) -> String {
        match self.problems.as_slice() {
            [one] => format!("a setting is wrong: {one}"),
            many => format!(
                "{} settings are wrong:\n  {}",
                many.len(),
                many.join("\n  ")
            ),
        }
    }
}

/// Reads and checks all settings.
///
/// # Errors
/// Everything that is wrong, at once.
pub fn load(overrides: &Overrides, environment: &Environment) -> Result<Loaded, SettingsError> {
    load_with(&Sources::new(overrides, environment), None)
}

/// The same, as if this text stood in that file.
fn load_with(sources: &Sources, written: Option<(&Path, &str)>) -> Result<Loaded, SettingsError> {
    let mut problems = Vec::new();
    let defaults = Layer::defaults(&mut problems);
    let from_environment = Layer::environment(&sources.environment, &mut problems);
    let from_command_line = sources.command_line();
    let early_data_dir = from_command_line
        .get(&keys::DATA_DIR)
        .or_else(|| from_environment.get(&keys::DATA_DIR))
        .map_or_else(platform_data_dir, |text| {
            read::path_in(Path::new(""))(text.trim()).ok()
        });
    let place = FilePlace {
        named: sources.overrides.config.as_deref(),
        data_dir: early_data_dir.as_deref(),
    };
    let file = match written {
        Some((path, text)) => Some(place.layer(path, text, &mut problems)),
        None => place.read(&mut problems),
    };

    let mut builder = Config::builder().add_source(defaults);
    if let Some(file) = file.clone() {
        builder = builder.add_source(file);
    }
    let config = builder
        .add_source(from_environment)
        .add_source(from_command_line)
        .build()
        .map_err(|error| SettingsError {
            problems: vec![error.to_string()],
            wrong: Vec::new(),
        })?;

    let file_path = file.as_ref().and_then(Layer::path);
    let mut reader = Reader::new(&config, file_path.clone(), problems);
    let settings = typed(&mut reader);
    let (problems, wrong) = reader.into_problems();
    match settings {
        Some(settings) if problems.is_empty() => Ok(Loaded {
            file: file_path.unwrap_or_else(|| settings.data_dir.join(FILE_NAME)),
            warnings: warnings(&settings, &sources.environment),
            values: shown(&config, file.as_ref(), &settings),
            secrets: secrets(&config),
            texts: Texts::of(&config),
            sources: sources.clone(),
            settings,
        }),
        _ => Err(SettingsError { problems, wrong }),
    }
}

/// Every setting as its type. `None` only together with problems.
fn typed(r: &mut Reader<'_>) -> Option<Settings> {
    let data_dir = match r.optional(&keys::DATA_DIR, read::path_in(Path::new(""))) {
        Some(dir) => std::path::absolute(dir).ok(),
        None => platform_data_dir(),
    };
    if data_dir.is_none() {
        r.problem("this account has no home directory: set NAVI_DATA_DIR".to_owned());
    }
    // The other settings are checked all the same, so that every problem is told at once.
    let base = data_dir.clone().unwrap_or_default();

    let people = people::people(r);
    let accounts = people.as_ref().is_some_and(|people| people.accounts);
    let sign_on = (people.as_ref()).and_then(|people| sign_on::sign_on(r, people));
    let bind = r.required(&keys::BIND, people::bind(accounts));
    let public = people.as_ref().and_then(|people| people.public.as_ref());
    let tls = tls::files(r, &base, public);
    let api_token = r.optional(&keys::API_TOKEN, api_token);
    let slow_body = r.required(&keys::SLOW_BODY, read::seconds);
    let doors = r.required(&keys::DOORS, doors::open);
    let metrics = r.required(&keys::METRICS, read::boolean);
    let collector = collector::collector(r);
    let log_level = r.required(
        &keys::LOG_LEVEL,
        read::choice(&[
            ("error", Level::ERROR),
            ("warn", Level::WARN),
            ("warning", Level::WARN),
            ("info", Level::INFO),
            ("debug", Level::DEBUG),
            ("trace", Level::TRACE),
        ]),
    );
    let database = database(r, &base);
    let model = model(r, &base);
    let patience = limits::patience(r);
    let runs = limits::runs(r);
    let resume = limits::resume(r);
    let consent = limits::consent(r);
    let compression = limits::compression(r);
    let context_cache_bytes = limits::context_cache(r);
    let persona = match (
        r.optional(&keys::PERSONA_FILE, read::path_in(&base)),
        r.text(&keys::PERSONA),
    ) {
        (Some(path), _) => Persona::File(path),
        (None, Some(text)) => Persona::Inline(text),
        (None, None) => Persona::BuiltIn,
    };
    let profiles_dir = r.required(&keys::PROFILES_DIR, read::path_in(&base));
    let default_profile = r.required(&keys::DEFAULT_PROFILE, read::any);
    let prices_file = r.required(&keys::PRICES_FILE, read::path_in(&base));
    let session_files_dir = r.required(&keys::FILES_DIR, read::path_in(&base));
    let file_access = files::access(r, &base);
    let terminal = sandbox::terminal(r, &base);
    let files = limits::files(r);
    let log = limits::log(r);
    let extensions = extensions(r, &base);
    let ssh = ssh::ssh(r, &base);
    let web = web::web(r);

    Some(Settings {
        bind: bind?,
        people: people?,
        tls,
        sign_on: sign_on?,
        data_dir: data_dir?,
        api_token,
        slow_body: slow_body?,
        doors: doors?,
        metrics: metrics?,
        collector,
        log_level: log_level?,
        database: database?,
        model: model?,
        patience: patience?,
        runs: runs?,
        resume: resume?,
        consent: consent?,
        compression: compression?,
        context_cache_bytes: context_cache_bytes?,
        persona,
        profiles_dir: profiles_dir?,
        default_profile: default_profile?,
        prices_file: prices_file?,
        session_files_dir: session_files_dir?,
        file_access: file_access?,
        files: files?,
        log: log?,
        terminal: terminal?,
        extensions: extensions?,
        ssh,
        web: web?,
        fence: fence(r),
    })
}

/// What keeps tools in, as far as settings say.
fn fence(r: &Reader<'_>) -> Fence {
    let is_lifted = |key| r.text(key).is_some_and(|text| text.trim() == "*");
    Fence {
        files_open: is_lifted(&keys::FS_ALLOWED),
        commands_open: is_lifted(&keys::TERMINAL_ALLOWED),
        sandbox: None,
        sandbox_phrase: None,
    }
}

/// `None` only together with problems.
fn extensions(r: &mut Reader<'_>, base: &Path) -> Option<ExtensionSettings> {
    let folder = |r: &mut Reader<'_>, key| {
        r.required(key, |text| match read::path_in(base)(text)? {
            path if path.exists() && !path.is_dir() => {
                Err(format!("a folder, but {} is none", path.display()))
            }
            path => Ok(path),
        })
    };
    let tools_dir = folder(r, &keys::TOOLS_DIR);
    let skills_dir = folder(r, &keys::SKILLS_DIR);
    let mcp_config = r.required(&keys::MCP_CONFIG, |text| match read::path_in(base)(text)? {
        path if path.is_dir() => Err(format!("a file, but {} is a folder", path.display())),
        path => Ok(path),
    });
    Some(ExtensionSettings {
        tools_dir: tools_dir?,
        skills_dir: skills_dir?,
        mcp_config: mcp_config?,
    })
}

fn database(r: &mut Reader<'_>, base: &Path) -> Option<DatabaseSettings> {
    let path = r.required(&keys::DB_PATH, read::path_in(base));
    if r.text(&keys::DATABASE_URL).is_some() {
        let url = r.optional(&keys::DATABASE_URL, addresses::database_url)?;
        return Some(DatabaseSettings::Postgres(Secret::new(url)));
    }
    path.map(DatabaseSettings::Sqlite)
}

fn model(r: &mut Reader<'_>, base: &Path) -> Option<ModelSettings> {
    let backend = r.required(
        &keys::BACKEND,
        read::choice(&[
            ("auto", BackendChoice::Auto),
            ("ollama", BackendChoice::Ollama),
            ("openai", BackendChoice::Openai),
            ("starter", BackendChoice::Starter),
        ]),
    );
    let parallel = r.required(&keys::PARALLEL, limits::parallel);
    let first_chunk_timeout = r.required(&keys::FIRST_CHUNK, read::seconds);
    let chunk_timeout = r.required(&keys::CHUNK, read::seconds);
    let context_window = r.required(&keys::OLLAMA_NUM_CTX, read::number(256_u32..=16_777_216));
    let think = r.required(&keys::OLLAMA_THINK, read::boolean);
    let ollama_host = r.required(&keys::OLLAMA_HOST, addresses::ollama);
    let ollama_model = r.required(&keys::OLLAMA_MODEL, read::any);
    let base_url = r.optional(&keys::OPENAI_URL, addresses::base_url);
    let api_key = r.optional(&keys::OPENAI_KEY, header_text);
    let default_model = r.text(&keys::OPENAI_MODEL);
    let starter = starter(r, base);

    if backend == Some(BackendChoice::Openai) && r.text(&keys::OPENAI_URL).is_none() {
        r.problem("LLM_BACKEND is \"openai\" but OPENAI_BASE_URL is not set".to_owned());
    }
    if backend == Some(BackendChoice::Starter) && starter.is_none() {
        r.problem("LLM_BACKEND is \"starter\" but STARTER_MODEL is \"off\"".to_owned());
    }
    Some(ModelSettings {
        backend: backend?,
        parallel: parallel?,
        first_chunk_timeout: first_chunk_timeout?,
        chunk_timeout: chunk_timeout?,
        context_window: context_window?,
        think: think?,
        ollama_host: ollama_host?,
        ollama_model: ollama_model?,
        openai: base_url.map(|base_url| OpenAiConfig {
            base_url,
            api_key,
            default_model,
        }),
        starter,
    })
}

/// `off`, a name, or a path (anything with a slash or a `.gguf` at its end).
fn starter(r: &mut Reader<'_>, base: &Path) -> Option<String> {
    let text = r.required(&keys::STARTER_MODEL, read::any)?;
    if text.eq_ignore_ascii_case("off") {
        return None;
    }
    if !text.contains(std::path::is_separator) && !text.to_ascii_lowercase().ends_with(".gguf") {
        return Some(text);
    }
    let path = r.required(&keys::STARTER_MODEL, read::path_in(base))?;
    if !path.is_file() {
        r.problem(format!(
            "STARTER_MODEL (starter.model) names {}, which is no file; `navi model list` shows the models that have a name",
            path.display()
        ));
    }
    Some(path.display().to_string())
}

fn api_token(text: &str) -> Result<Secret, String> {
    header_text(text).map(Secret::new)
}

/// A text that can stand in a header: visible ASCII, no spaces.
fn header_text(text: &str) -> Result<String, String> {
    if text.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(text.to_owned())
    } else {
        Err("visible ASCII characters without spaces".to_owned())
    }
}

fn platform_data_dir() -> Option<PathBuf> {
    directories::ProjectDirs::from("", "", "navi").map(|dirs| dirs.data_dir().to_owned())
}

fn warnings(settings: &Settings, environment: &Environment) -> Vec<Phrase> {
    let mut warnings = Vec::new();
    if let Some(token) = &settings.api_token
        && token.reveal().len() < 16
    {
        warnings.push(PhraseCode::ShortToken.into());
    }
    warnings.extend(files::warnings(&settings.file_access));
    warnings.extend(sandbox::warnings(&settings.terminal));
    warnings.extend(sign_on::warnings(&settings.sign_on));
    for name in environment.keys().filter_map(|name| name.to_str()) {
        if keys::is_unknown_variable(name) {
            let name = [("name", name.to_owned())];
            warnings.push(Phrase::new(PhraseCode::NoSuchSetting, name));
        }
    }
    warnings
}
