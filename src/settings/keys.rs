//! Every setting by name: its key in a file and its environment variable (SPEC section 15).

/// A setting's names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// `section.key` in a file.
    pub(crate) path: &'static str,
    pub(crate) variable: &'static str,
    /// Its value is never printed.
    pub(crate) secret: bool,
}

const fn key(path: &'static str, variable: &'static str) -> Key {
    Key {
        path,
        variable,
        secret: false,
    }
}

const fn secret(path: &'static str, variable: &'static str) -> Key {
    Key {
        path,
        variable,
        secret: true,
    }
}

pub(crate) const BIND: Key = key("server.bind", "NAVI_BIND");
pub(crate) const ACCOUNTS: Key = key("server.accounts", "NAVI_ACCOUNTS");
pub(crate) const PUBLIC_URL: Key = key("server.public_url", "NAVI_PUBLIC_URL");
pub(crate) const TRUSTED_PROXIES: Key = key("server.trusted_proxies", "NAVI_TRUSTED_PROXIES");
pub(crate) const TLS_CERTIFICATE: Key = key("server.tls_certificate", "NAVI_TLS_CERTIFICATE");
pub(crate) const TLS_KEY: Key = key("server.tls_key", "NAVI_TLS_KEY");
pub(crate) const RECORD_DAYS: Key = key("server.record_days", "NAVI_RECORD_DAYS");
pub(crate) const PERSON_RUNS: Key = key("people.runs", "NAVI_PERSON_RUNS");
pub(crate) const PERSON_UPLOADS: Key = key("people.uploads", "NAVI_PERSON_UPLOADS");
pub(crate) const PERSON_SESSIONS: Key = key("people.sessions", "NAVI_PERSON_SESSIONS");
pub(crate) const PERSON_FILES: Key = key("people.files_mb", "NAVI_PERSON_FILES_MB");
pub(crate) const PERSON_TOKENS: Key = key("people.tokens_a_day", "NAVI_PERSON_TOKENS_A_DAY");
pub(crate) const PERSON_TABS: Key = key("people.tabs", "NAVI_PERSON_TABS");
pub(crate) const OIDC_ISSUER: Key = key("sign_on.issuer", "NAVI_OIDC_ISSUER");
pub(crate) const OIDC_CLIENT_ID: Key = key("sign_on.client_id", "NAVI_OIDC_CLIENT_ID");
pub(crate) const OIDC_CLIENT_SECRET: Key =
    secret("sign_on.client_secret", "NAVI_OIDC_CLIENT_SECRET");
pub(crate) const OIDC_NAME: Key = key("sign_on.name", "NAVI_OIDC_NAME");
pub(crate) const OIDC_SCOPES: Key = key("sign_on.scopes", "NAVI_OIDC_SCOPES");
pub(crate) const OIDC_GROUPS_CLAIM: Key = key("sign_on.groups_claim", "NAVI_OIDC_GROUPS_CLAIM");
pub(crate) const OIDC_DOMAINS: Key = key("sign_on.domains", "NAVI_OIDC_DOMAINS");
pub(crate) const OIDC_LINK_BY_EMAIL: Key = key("sign_on.link_by_email", "NAVI_OIDC_LINK_BY_EMAIL");
pub(crate) const PROXY_USER: Key = key("sign_on.proxy_user_header", "NAVI_PROXY_USER_HEADER");
pub(crate) const PROXY_GROUPS: Key = key("sign_on.proxy_groups_header", "NAVI_PROXY_GROUPS_HEADER");
pub(crate) const SIGN_ON_JOIN: Key = key("sign_on.join", "NAVI_SIGN_ON_JOIN");
pub(crate) const SIGN_ON_ROLES: Key = key("sign_on.roles", "NAVI_SIGN_ON_ROLES");
pub(crate) const SIGN_ON_GROUPS: Key = key("sign_on.groups", "NAVI_SIGN_ON_GROUPS");
pub(crate) const DATA_DIR: Key = key("server.data_dir", "NAVI_DATA_DIR");
pub(crate) const API_TOKEN: Key = secret("server.api_token", "NAVI_API_TOKEN");
pub(crate) const SLOW_BODY: Key = key("server.slow_body_seconds", "NAVI_SLOW_BODY_SECONDS");
pub(crate) const WATCHDOG: Key = key("server.watchdog_seconds", "NAVI_WATCHDOG_SECONDS");
pub(crate) const DOORS: Key = key("server.doors", "NAVI_DOORS");
pub(crate) const METRICS: Key = key("server.metrics", "NAVI_METRICS");
pub(crate) const OTLP_ENDPOINT: Key = key("server.otlp_endpoint", "NAVI_OTLP_ENDPOINT");
pub(crate) const OTLP_HEADERS: Key = secret("server.otlp_headers", "NAVI_OTLP_HEADERS");
pub(crate) const LOG_LEVEL: Key = key("log.level", "LOG_LEVEL");
pub(crate) const DB_PATH: Key = key("database.path", "DB_PATH");
/// A secret because it usually carries a password.
pub(crate) const DATABASE_URL: Key = secret("database.url", "DATABASE_URL");
pub(crate) const LOG_DAYS: Key = key("database.log_days", "NAVI_LOG_DAYS");
pub(crate) const LOG_CALLS: Key = key("database.log_calls", "NAVI_LOG_CALLS");
pub(crate) const BACKEND: Key = key("model.backend", "LLM_BACKEND");
pub(crate) const PARALLEL: Key = key("model.parallel", "LLM_PARALLEL");
pub(crate) const FIRST_CHUNK: Key = key(
    "model.stream_first_chunk_timeout",
    "LLM_STREAM_FIRST_CHUNK_TIMEOUT",
);
pub(crate) const CHUNK: Key = key("model.stream_chunk_timeout", "LLM_STREAM_CHUNK_TIMEOUT");
pub(crate) const OLLAMA_HOST: Key = key("ollama.host", "OLLAMA_HOST");
pub(crate) const OLLAMA_MODEL: Key = key("ollama.default_model", "OLLAMA_DEFAULT_MODEL");
pub(crate) const OLLAMA_NUM_CTX: Key = key("ollama.num_ctx", "OLLAMA_NUM_CTX");
pub(crate) const OLLAMA_THINK: Key = key("ollama.think", "OLLAMA_THINK");
pub(crate) const OPENAI_URL: Key = key("openai.base_url", "OPENAI_BASE_URL");
pub(crate) const OPENAI_KEY: Key = secret("openai.api_key", "OPENAI_API_KEY");
pub(crate) const OPENAI_MODEL: Key = key("openai.default_model", "OPENAI_DEFAULT_MODEL");
pub(crate) const STARTER_MODEL: Key = key("starter.model", "STARTER_MODEL");
pub(crate) const RUN_TIME: Key = key("runs.time_limit_minutes", "NAVI_RUN_TIME_LIMIT_MINUTES");
pub(crate) const RUN_TOKENS: Key = key("runs.token_limit", "NAVI_RUN_TOKEN_LIMIT");
pub(crate) const PLAN_TOKENS: Key = key("runs.plan_token_limit", "NAVI_PLAN_TOKEN_LIMIT");
pub(crate) const SUBAGENT_TIME: Key = key(
    "runs.subagent_time_limit_minutes",
    "NAVI_SUBAGENT_TIME_LIMIT_MINUTES",
);
pub(crate) const SUBAGENT_DEPTH: Key = key("runs.subagent_depth", "NAVI_SUBAGENT_DEPTH");
pub(crate) const SUBAGENTS_AT_ONCE: Key = key("runs.subagents_at_once", "NAVI_SUBAGENTS_AT_ONCE");
pub(crate) const SUBAGENTS_PER_RUN: Key = key("runs.subagents_per_run", "NAVI_SUBAGENTS_PER_RUN");
pub(crate) const RESUME: Key = key("runs.resume", "NAVI_RESUME_RUNS");
pub(crate) const CONSENT_MODE: Key = key("consent.mode", "NAVI_CONSENT_MODE");
pub(crate) const APPROVAL_TIMEOUT: Key = key(
    "consent.approval_timeout_minutes",
    "NAVI_APPROVAL_TIMEOUT_MINUTES",
);
pub(crate) const COMPRESSION: Key =
    key("context.compression_enabled", "CONTEXT_COMPRESSION_ENABLED");
pub(crate) const THRESHOLD: Key = key(
    "context.compression_threshold",
    "CONTEXT_COMPRESSION_THRESHOLD",
);
pub(crate) const KEEP_RECENT: Key = key("context.keep_recent", "CONTEXT_KEEP_RECENT");
pub(crate) const SUMMARY_TEMPERATURE: Key =
    key("context.summary_temperature", "CONTEXT_SUMMARY_TEMPERATURE");
pub(crate) const CONTEXT_CACHE: Key = key("context.cache_mb", "CONTEXT_CACHE_MB");
pub(crate) const PERSONA: Key = key("persona.text", "NAVI_PERSONA");
pub(crate) const PERSONA_FILE: Key = key("persona.file", "NAVI_PERSONA_FILE");
pub(crate) const PROFILES_DIR: Key = key("profiles.dir", "NAVI_PROFILES_DIR");
pub(crate) const DEFAULT_PROFILE: Key = key("profiles.default", "NAVI_DEFAULT_PROFILE");
pub(crate) const PRICES_FILE: Key = key("prices.file", "NAVI_PRICES_FILE");
pub(crate) const TOOLS_DIR: Key = key("tools.dir", "TOOLS_DIR");
pub(crate) const SKILLS_DIR: Key = key("tools.skills_dir", "NAVI_SKILLS_DIR");
pub(crate) const MCP_CONFIG: Key = key("tools.mcp_config", "NAVI_MCP_CONFIG");
pub(crate) const FS_ALLOWED: Key = key("tools.fs_allowed_paths", "FS_ALLOWED_PATHS");
pub(crate) const TERMINAL_ALLOWED: Key = key(
    "tools.terminal_allowed_commands",
    "TERMINAL_ALLOWED_COMMANDS",
);
pub(crate) const TERMINAL_TIME: Key =
    key("tools.terminal_max_seconds", "NAVI_TERMINAL_MAX_SECONDS");
pub(crate) const SANDBOX_USER: Key = key("tools.sandbox_user", "NAVI_SANDBOX_USER");
pub(crate) const SANDBOX_UIDS: Key = key("tools.sandbox_uids", "NAVI_SANDBOX_UIDS");
pub(crate) const SANDBOX_READ: Key = key("tools.sandbox_read_paths", "NAVI_SANDBOX_READ_PATHS");
pub(crate) const SANDBOX_MEMORY: Key = key("tools.sandbox_memory_mb", "NAVI_SANDBOX_MEMORY_MB");
pub(crate) const SANDBOX_PROCESSES: Key = key("tools.sandbox_processes", "NAVI_SANDBOX_PROCESSES");
pub(crate) const SANDBOX_SESSION_MEMORY: Key = key(
    "tools.sandbox_session_memory_mb",
    "NAVI_SANDBOX_SESSION_MEMORY_MB",
);
pub(crate) const SANDBOX_SESSION_PROCESSES: Key = key(
    "tools.sandbox_session_processes",
    "NAVI_SANDBOX_SESSION_PROCESSES",
);
pub(crate) const SANDBOX_ALL_MEMORY: Key =
    key("tools.sandbox_all_memory_mb", "NAVI_SANDBOX_ALL_MEMORY_MB");
pub(crate) const SANDBOX_ALL_PROCESSES: Key =
    key("tools.sandbox_all_processes", "NAVI_SANDBOX_ALL_PROCESSES");
pub(crate) const WORKSPACE_SIZE: Key = key("tools.workspace_mb", "NAVI_WORKSPACE_MB");
pub(crate) const WORKSPACE_FILES: Key = key("tools.workspace_files", "NAVI_WORKSPACE_FILES");
pub(crate) const SSH_HOSTS: Key = key("tools.ssh_hosts_file", "SSH_HOSTS_FILE");
pub(crate) const SSH_KNOWN_HOSTS: Key = key("tools.ssh_known_hosts", "NAVI_SSH_KNOWN_HOSTS");
pub(crate) const SSH_MORE_KNOWN_HOSTS: Key =
    key("tools.ssh_more_known_hosts", "NAVI_SSH_MORE_KNOWN_HOSTS");
pub(crate) const SEARCH_ENGINE: Key = key("web.search_engine", "NAVI_SEARCH_ENGINE");
pub(crate) const SEARXNG_URL: Key = key("web.searxng_url", "NAVI_SEARXNG_URL");
pub(crate) const BRAVE_KEY: Key = secret("web.brave_api_key", "NAVI_BRAVE_API_KEY");
pub(crate) const TAVILY_KEY: Key = secret("web.tavily_api_key", "NAVI_TAVILY_API_KEY");
pub(crate) const FETCH_ALLOWED: Key = key("web.fetch_allowed_hosts", "NAVI_FETCH_ALLOWED_HOSTS");
pub(crate) const HOME_ASSISTANT_URL: Key = key("home_assistant.url", "HOME_ASSISTANT_URL");
pub(crate) const HOME_ASSISTANT_TOKEN: Key = secret("home_assistant.token", "HOME_ASSISTANT_TOKEN");
pub(crate) const FILES_DIR: Key = key("session_files.dir", "SESSION_FILES_DIR");
pub(crate) const FILES_MAX: Key = key("session_files.max_size_mb", "SESSION_FILES_MAX_SIZE_MB");
pub(crate) const FILES_TTL: Key = key("session_files.ttl_hours", "SESSION_FILES_TTL_HOURS");
pub(crate) const FILES_MAX_COUNT: Key =
    key("session_files.max_count", "NAVI_SESSION_FILES_MAX_COUNT");
pub(crate) const FILES_MAX_TOTAL: Key = key(
    "session_files.max_total_mb",
    "NAVI_SESSION_FILES_MAX_TOTAL_MB",
);

/// All of them, in the order of `default.toml`.
pub(crate) const ALL: &[&Key] = &[
    &BIND,
    &ACCOUNTS,
    &PUBLIC_URL,
    &TRUSTED_PROXIES,
    &TLS_CERTIFICATE,
    &TLS_KEY,
    &RECORD_DAYS,
    &PERSON_RUNS,
    &PERSON_UPLOADS,
    &PERSON_SESSIONS,
    &PERSON_FILES,
    &PERSON_TOKENS,
    &PERSON_TABS,
    &DATA_DIR,
    &API_TOKEN,
    &SLOW_BODY,
    &WATCHDOG,
    &DOORS,
    &METRICS,
    &OTLP_ENDPOINT,
    &OTLP_HEADERS,
    &OIDC_ISSUER,
    &OIDC_CLIENT_ID,
    &OIDC_CLIENT_SECRET,
    &OIDC_NAME,
    &OIDC_SCOPES,
    &OIDC_GROUPS_CLAIM,
    &OIDC_DOMAINS,
    &OIDC_LINK_BY_EMAIL,
    &PROXY_USER,
    &PROXY_GROUPS,
    &SIGN_ON_JOIN,
    &SIGN_ON_ROLES,
    &SIGN_ON_GROUPS,
    &LOG_LEVEL,
    &DB_PATH,
    &DATABASE_URL,
    &LOG_DAYS,
    &LOG_CALLS,
    &BACKEND,
    &PARALLEL,
    &FIRST_CHUNK,
    &CHUNK,
    &OLLAMA_HOST,
    &OLLAMA_MODEL,
    &OLLAMA_NUM_CTX,
    &OLLAMA_THINK,
    &OPENAI_URL,
    &OPENAI_KEY,
    &OPENAI_MODEL,
    &STARTER_MODEL,
    &RUN_TIME,
    &RUN_TOKENS,
    &PLAN_TOKENS,
    &SUBAGENT_TIME,
    &SUBAGENT_DEPTH,
    &SUBAGENTS_AT_ONCE,
    &SUBAGENTS_PER_RUN,
    &RESUME,
    &CONSENT_MODE,
    &APPROVAL_TIMEOUT,
    &COMPRESSION,
    &THRESHOLD,
    &KEEP_RECENT,
    &SUMMARY_TEMPERATURE,
    &CONTEXT_CACHE,
    &PERSONA,
    &PERSONA_FILE,
    &PROFILES_DIR,
    &DEFAULT_PROFILE,
    &PRICES_FILE,
    &TOOLS_DIR,
    &SKILLS_DIR,
    &MCP_CONFIG,
    &FS_ALLOWED,
    &TERMINAL_ALLOWED,
    &TERMINAL_TIME,
    &SANDBOX_USER,
    &SANDBOX_UIDS,
    &SANDBOX_READ,
    &SANDBOX_MEMORY,
    &SANDBOX_PROCESSES,
    &SANDBOX_SESSION_MEMORY,
    &SANDBOX_SESSION_PROCESSES,
    &SANDBOX_ALL_MEMORY,
    &SANDBOX_ALL_PROCESSES,
    &WORKSPACE_SIZE,
    &WORKSPACE_FILES,
    &SSH_HOSTS,
    &SSH_KNOWN_HOSTS,
    &SSH_MORE_KNOWN_HOSTS,
    &SEARCH_ENGINE,
    &SEARXNG_URL,
    &BRAVE_KEY,
    &TAVILY_KEY,
    &FETCH_ALLOWED,
    &HOME_ASSISTANT_URL,
    &HOME_ASSISTANT_TOKEN,
    &FILES_DIR,
    &FILES_MAX,
    &FILES_TTL,
    &FILES_MAX_COUNT,
    &FILES_MAX_TOTAL,
];

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
