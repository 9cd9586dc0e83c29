//! Every setting by name: its key in a file and its environment variable (SPEC section 15), and
//! whether the page may change it.

use super::page::FileOnly;

/// A setting's names, and who changes it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// `section.key` in a file.
    pub(crate) path: &'static str,
    pub(crate) variable: &'static str,
    /// Its value is never printed.
    pub(crate) secret: bool,
    /// Why the page may not change it; none where it may.
    pub(crate) file_only: Option<FileOnly>,
}

impl Key {
    const fn new(path: &'static str, variable: &'static str, file_only: Option<FileOnly>) -> Self {
        Self {
            path,
            variable,
            secret: false,
            file_only,
        }
    }

    const fn secret(mut self) -> Self {
        self.secret = true;
        self
    }
}

/// One that the page may change; `super::page` says what none of those does.
const fn page(path: &'static str, variable: &'static str) -> Key {
    Key::new(path, variable, None)
}

const fn doors(path: &'static str, variable: &'static str) -> Key {
    Key::new(path, variable, Some(FileOnly::Doors))
}

const fn programs(path: &'static str, variable: &'static str) -> Key {
    Key::new(path, variable, Some(FileOnly::Programs))
}

const fn places(path: &'static str, variable: &'static str) -> Key {
    Key::new(path, variable, Some(FileOnly::Places))
}

const fn network(path: &'static str, variable: &'static str) -> Key {
    Key::new(path, variable, Some(FileOnly::Network))
}

const fn record(path: &'static str, variable: &'static str) -> Key {
    Key::new(path, variable, Some(FileOnly::Record))
}

/// The settings, each of them by its name and all together.
macro_rules! keys {
    ($($(#[$note:meta])* $name:ident = $key:expr;)*) => {
        $($(#[$note])* pub(crate) const $name: Key = $key;)*

        /// All of them, in the order of `default.toml`.
        pub(crate) const ALL: &[&Key] = &[$(&$name,)*];
    };
}

keys! {
    BIND = doors("server.bind", "NAVI_BIND");
    ACCOUNTS = doors("server.accounts", "NAVI_ACCOUNTS");
    PUBLIC_URL = doors("server.public_url", "NAVI_PUBLIC_URL");
    TRUSTED_PROXIES = doors("server.trusted_proxies", "NAVI_TRUSTED_PROXIES");
    TLS_CERTIFICATE = doors("server.tls_certificate", "NAVI_TLS_CERTIFICATE");
    TLS_KEY = doors("server.tls_key", "NAVI_TLS_KEY");
    RECORD_DAYS = record("server.record_days", "NAVI_RECORD_DAYS");
    PERSON_RUNS = page("people.runs", "NAVI_PERSON_RUNS");
    PERSON_UPLOADS = page("people.uploads", "NAVI_PERSON_UPLOADS");
    PERSON_SESSIONS = page("people.sessions", "NAVI_PERSON_SESSIONS");
    PERSON_FILES = page("people.files_mb", "NAVI_PERSON_FILES_MB");
    PERSON_TOKENS = page("people.tokens_a_day", "NAVI_PERSON_TOKENS_A_DAY");
    PERSON_TABS = page("people.tabs", "NAVI_PERSON_TABS");
    DATA_DIR = places("server.data_dir", "NAVI_DATA_DIR");
    API_TOKEN = doors("server.api_token", "NAVI_API_TOKEN").secret();
    SLOW_BODY = page("server.slow_body_seconds", "NAVI_SLOW_BODY_SECONDS");
    WATCHDOG = page("server.watchdog_seconds", "NAVI_WATCHDOG_SECONDS");
    DOORS = doors("server.doors", "NAVI_DOORS");
    METRICS = page("server.metrics", "NAVI_METRICS");
    OTLP_ENDPOINT = network("server.otlp_endpoint", "NAVI_OTLP_ENDPOINT");
    OTLP_HEADERS = network("server.otlp_headers", "NAVI_OTLP_HEADERS").secret();
    OIDC_ISSUER = doors("sign_on.issuer", "NAVI_OIDC_ISSUER");
    OIDC_CLIENT_ID = doors("sign_on.client_id", "NAVI_OIDC_CLIENT_ID");
    OIDC_CLIENT_SECRET = doors("sign_on.client_secret", "NAVI_OIDC_CLIENT_SECRET").secret();
    OIDC_NAME = doors("sign_on.name", "NAVI_OIDC_NAME");
    OIDC_SCOPES = doors("sign_on.scopes", "NAVI_OIDC_SCOPES");
    OIDC_GROUPS_CLAIM = doors("sign_on.groups_claim", "NAVI_OIDC_GROUPS_CLAIM");
    OIDC_DOMAINS = doors("sign_on.domains", "NAVI_OIDC_DOMAINS");
    OIDC_LINK_BY_EMAIL = doors("sign_on.link_by_email", "NAVI_OIDC_LINK_BY_EMAIL");
    PROXY_USER = doors("sign_on.proxy_user_header", "NAVI_PROXY_USER_HEADER");
    PROXY_GROUPS = doors("sign_on.proxy_groups_header", "NAVI_PROXY_GROUPS_HEADER");
    SIGN_ON_JOIN = doors("sign_on.join", "NAVI_SIGN_ON_JOIN");
    SIGN_ON_ROLES = doors("sign_on.roles", "NAVI_SIGN_ON_ROLES");
    SIGN_ON_GROUPS = doors("sign_on.groups", "NAVI_SIGN_ON_GROUPS");
    LOG_LEVEL = page("log.level", "LOG_LEVEL");
    DB_PATH = places("database.path", "DB_PATH");
    /// A secret because it usually carries a password.
    DATABASE_URL = places("database.url", "DATABASE_URL").secret();
    LOG_DAYS = page("database.log_days", "NAVI_LOG_DAYS");
    LOG_CALLS = page("database.log_calls", "NAVI_LOG_CALLS");
    BACKEND = page("model.backend", "LLM_BACKEND");
    PARALLEL = page("model.parallel", "LLM_PARALLEL");
    FIRST_CHUNK = page("model.stream_first_chunk_timeout", "LLM_STREAM_FIRST_CHUNK_TIMEOUT");
    CHUNK = page("model.stream_chunk_timeout", "LLM_STREAM_CHUNK_TIMEOUT");
    OLLAMA_HOST = page("ollama.host", "OLLAMA_HOST");
    OLLAMA_MODEL = page("ollama.default_model", "OLLAMA_DEFAULT_MODEL");
    OLLAMA_NUM_CTX = page("ollama.num_ctx", "OLLAMA_NUM_CTX");
    OLLAMA_THINK = page("ollama.think", "OLLAMA_THINK");
    OPENAI_URL = page("openai.base_url", "OPENAI_BASE_URL");
    OPENAI_KEY = page("openai.api_key", "OPENAI_API_KEY").secret();
    OPENAI_MODEL = page("openai.default_model", "OPENAI_DEFAULT_MODEL");
    STARTER_MODEL = places("starter.model", "STARTER_MODEL");
    RUN_TIME = page("runs.time_limit_minutes", "NAVI_RUN_TIME_LIMIT_MINUTES");
    RUN_TOKENS = page("runs.token_limit", "NAVI_RUN_TOKEN_LIMIT");
    PLAN_TOKENS = page("runs.plan_token_limit", "NAVI_PLAN_TOKEN_LIMIT");
    SUBAGENT_TIME = page("runs.subagent_time_limit_minutes", "NAVI_SUBAGENT_TIME_LIMIT_MINUTES");
    SUBAGENT_DEPTH = page("runs.subagent_depth", "NAVI_SUBAGENT_DEPTH");
    SUBAGENTS_AT_ONCE = page("runs.subagents_at_once", "NAVI_SUBAGENTS_AT_ONCE");
    SUBAGENTS_PER_RUN = page("runs.subagents_per_run", "NAVI_SUBAGENTS_PER_RUN");
    RESUME = page("runs.resume", "NAVI_RESUME_RUNS");
    CONSENT_MODE = page("consent.mode", "NAVI_CONSENT_MODE");
    APPROVAL_TIMEOUT = page("consent.approval_timeout_minutes", "NAVI_APPROVAL_TIMEOUT_MINUTES");
    COMPRESSION = page("context.compression_enabled", "CONTEXT_COMPRESSION_ENABLED");
    THRESHOLD = page("context.compression_threshold", "CONTEXT_COMPRESSION_THRESHOLD");
    KEEP_RECENT = page("context.keep_recent", "CONTEXT_KEEP_RECENT");
    SUMMARY_TEMPERATURE = page("context.summary_temperature", "CONTEXT_SUMMARY_TEMPERATURE");
    CONTEXT_CACHE = page("context.cache_mb", "CONTEXT_CACHE_MB");
    PERSONA = page("persona.text", "NAVI_PERSONA");
    PERSONA_FILE = places("persona.file", "NAVI_PERSONA_FILE");
    PROFILES_DIR = places("profiles.dir", "NAVI_PROFILES_DIR");
    DEFAULT_PROFILE = page("profiles.default", "NAVI_DEFAULT_PROFILE");
    PRICES_FILE = places("prices.file", "NAVI_PRICES_FILE");
    TOOLS_DIR = programs("tools.dir", "TOOLS_DIR");
    SKILLS_DIR = programs("tools.skills_dir", "NAVI_SKILLS_DIR");
    MCP_CONFIG = programs("tools.mcp_config", "NAVI_MCP_CONFIG");
    FS_ALLOWED = programs("tools.fs_allowed_paths", "FS_ALLOWED_PATHS");
    TERMINAL_ALLOWED = programs("tools.terminal_allowed_commands", "TERMINAL_ALLOWED_COMMANDS");
    TERMINAL_TIME = page("tools.terminal_max_seconds", "NAVI_TERMINAL_MAX_SECONDS");
    SANDBOX_USER = programs("tools.sandbox_user", "NAVI_SANDBOX_USER");
    SANDBOX_UIDS = programs("tools.sandbox_uids", "NAVI_SANDBOX_UIDS");
    SANDBOX_READ = programs("tools.sandbox_read_paths", "NAVI_SANDBOX_READ_PATHS");
    SANDBOX_MEMORY = page("tools.sandbox_memory_mb", "NAVI_SANDBOX_MEMORY_MB");
    SANDBOX_PROCESSES = page("tools.sandbox_processes", "NAVI_SANDBOX_PROCESSES");
    SANDBOX_SESSION_MEMORY = page(
        "tools.sandbox_session_memory_mb",
        "NAVI_SANDBOX_SESSION_MEMORY_MB",
    );
    SANDBOX_SESSION_PROCESSES = page(
        "tools.sandbox_session_processes",
        "NAVI_SANDBOX_SESSION_PROCESSES",
    );
    SANDBOX_ALL_MEMORY = page("tools.sandbox_all_memory_mb", "NAVI_SANDBOX_ALL_MEMORY_MB");
    SANDBOX_ALL_PROCESSES = page("tools.sandbox_all_processes", "NAVI_SANDBOX_ALL_PROCESSES");
    WORKSPACE_SIZE = page("tools.workspace_mb", "NAVI_WORKSPACE_MB");
    WORKSPACE_FILES = page("tools.workspace_files", "NAVI_WORKSPACE_FILES");
    SSH_HOSTS = programs("tools.ssh_hosts_file", "SSH_HOSTS_FILE");
    SSH_KNOWN_HOSTS = programs("tools.ssh_known_hosts", "NAVI_SSH_KNOWN_HOSTS");
    SSH_MORE_KNOWN_HOSTS = programs("tools.ssh_more_known_hosts", "NAVI_SSH_MORE_KNOWN_HOSTS");
    SEARCH_ENGINE = page("web.search_engine", "NAVI_SEARCH_ENGINE");
    SEARXNG_URL = page("web.searxng_url", "NAVI_SEARXNG_URL");
    BRAVE_KEY = page("web.brave_api_key", "NAVI_BRAVE_API_KEY").secret();
    TAVILY_KEY = page("web.tavily_api_key", "NAVI_TAVILY_API_KEY").secret();
    FETCH_ALLOWED = network("web.fetch_allowed_hosts", "NAVI_FETCH_ALLOWED_HOSTS");
    HOME_ASSISTANT_URL = page("home_assistant.url", "HOME_ASSISTANT_URL");
    HOME_ASSISTANT_TOKEN = page("home_assistant.token", "HOME_ASSISTANT_TOKEN").secret();
    FILES_DIR = places("session_files.dir", "SESSION_FILES_DIR");
    FILES_MAX = page("session_files.max_size_mb", "SESSION_FILES_MAX_SIZE_MB");
    FILES_TTL = page("session_files.ttl_hours", "SESSION_FILES_TTL_HOURS");
    FILES_MAX_COUNT = page("session_files.max_count", "NAVI_SESSION_FILES_MAX_COUNT");
    FILES_MAX_TOTAL = page("session_files.max_total_mb", "NAVI_SESSION_FILES_MAX_TOTAL_MB");
}

/// Of Navi's clients and of her tools: they are no settings, and no mistakes.
const OF_OTHERS: &[&str] = &["NAVI_TOKEN", "NAVI_URL", "NAVI_WORKSPACE", "NAVI_TOOL_DIR"];

/// Whether a variable is called as settings are, and nothing reads it.
pub(crate) fn is_unknown_variable(name: &str) -> bool {
    name.starts_with("NAVI_")
        && !OF_OTHERS.contains(&name)
        && !ALL.iter().any(|key| key.variable == name)
}

/// Whether a variable holds a secret of Navi's own.
pub(crate) fn is_secret_variable(name: &str) -> bool {
    ALL.iter().any(|key| key.secret && key.variable == name)
}

/// The known key that a misspelt one most likely means.
pub(crate) fn nearest(path: &str) -> Option<&'static str> {
    ALL.iter()
        .map(|key| (strsim::jaro_winkler(path, key.path), key.path))
        .filter(|(similarity, _)| *similarity > 0.8)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, path)| path)
}
