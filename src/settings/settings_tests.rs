//! Each setting's errors, and who wins.

use navi_actors::protocol::people::UserRole;
use navi_actors::store::LogLimits;

use super::*;

fn environment(pairs: &[(&str, &str)]) -> Environment {
    pairs
        .iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

fn load_with(pairs: &[(&str, &str)]) -> Result<Loaded, SettingsError> {
    let dir = tempfile::tempdir().unwrap();
    let overrides = Overrides {
        data_dir: Some(dir.path().to_owned()),
        ..Overrides::default()
    };
    load(&overrides, &environment(pairs))
}

fn only_problem(variable: &str, value: &str) -> String {
    let error = load_with(&[(variable, value)]).unwrap_err();
    assert_eq!(error.problems.len(), 1, "{error}");
    error.problems[0].clone()
}

#[test]
fn the_defaults_are_those_of_the_contract() {
    let loaded = load_with(&[]).unwrap();
    let value = |variable: &str| {
        let row = loaded.values.iter().find(|row| row.variable == variable);
        row.unwrap().value.clone().unwrap_or_default()
    };
    for (variable, expected) in [
        ("OLLAMA_HOST", "http://localhost:11434"),
        ("OLLAMA_DEFAULT_MODEL", "gemma4:e2b-it-q8_0"),
        ("OLLAMA_NUM_CTX", "65536"),
        ("OLLAMA_THINK", "true"),
        ("LLM_STREAM_FIRST_CHUNK_TIMEOUT", "120"),
        ("LLM_STREAM_CHUNK_TIMEOUT", "60"),
        ("CONTEXT_COMPRESSION_ENABLED", "true"),
        ("CONTEXT_COMPRESSION_THRESHOLD", "0.8"),
        ("CONTEXT_KEEP_RECENT", "10"),
        ("CONTEXT_SUMMARY_TEMPERATURE", "0.3"),
        ("CONTEXT_CACHE_MB", "32"),
        ("NAVI_RUN_TIME_LIMIT_MINUTES", "120"),
        ("NAVI_RUN_TOKEN_LIMIT", "20000000"),
        ("NAVI_SUBAGENT_TIME_LIMIT_MINUTES", "20"),
        ("NAVI_SUBAGENT_DEPTH", "2"),
        ("NAVI_SUBAGENTS_AT_ONCE", "4"),
        ("NAVI_SUBAGENTS_PER_RUN", "50"),
        ("NAVI_PLAN_TOKEN_LIMIT", "1200"),
        ("NAVI_RESUME_RUNS", "ask"),
        ("SSH_HOSTS_FILE", "ssh_hosts.json"),
        ("NAVI_SSH_KNOWN_HOSTS", "ssh/known_hosts"),
        ("NAVI_SSH_MORE_KNOWN_HOSTS", ""),
        ("NAVI_BIND", "127.0.0.1:8000"),
        ("NAVI_API_TOKEN", ""),
        ("NAVI_SLOW_BODY_SECONDS", "30"),
        ("NAVI_WATCHDOG_SECONDS", "5"),
        ("NAVI_DOORS", "all"),
        ("NAVI_METRICS", "off"),
        ("NAVI_OTLP_ENDPOINT", ""),
        ("NAVI_OTLP_HEADERS", ""),
        ("LLM_BACKEND", "auto"),
        ("LLM_PARALLEL", "auto"),
        ("STARTER_MODEL", "smollm2-135m"),
        ("DB_PATH", "navi.db"),
        ("DATABASE_URL", ""),
        ("NAVI_LOG_DAYS", "30"),
        ("NAVI_LOG_CALLS", "1000"),
        ("LOG_LEVEL", "info"),
        ("TOOLS_DIR", "tools"),
        ("NAVI_PRICES_FILE", "prices.toml"),
        ("NAVI_SANDBOX_UIDS", ""),
        ("SESSION_FILES_DIR", "session_files"),
        ("SESSION_FILES_MAX_SIZE_MB", "200"),
        ("SESSION_FILES_TTL_HOURS", "24"),
    ] {
        assert_eq!(value(variable), expected, "{variable}");
    }
}

#[test]
fn limits_reach_the_engine_as_they_were_set() {
    let settings = load_with(&[]).unwrap().settings;
    assert_eq!(settings.runs, RunLimits::default());
    assert_eq!(settings.compression, CompressionPolicy::default());
    assert_eq!(settings.log, LogLimits::default());
    let kept = load_with(&[("NAVI_LOG_DAYS", "0"), ("NAVI_LOG_CALLS", "0")]);
    let everything = LogLimits {
        keep: None,
        calls: None,
        record: chrono::TimeDelta::days(365),
    };
    assert_eq!(kept.unwrap().settings.log, everything);
    let settings = load_with(&[
        ("NAVI_RUN_TIME_LIMIT_MINUTES", "3"),
        ("NAVI_SUBAGENT_TIME_LIMIT_MINUTES", "2"),
        ("NAVI_RUN_TOKEN_LIMIT", "5000"),
        ("NAVI_SUBAGENT_DEPTH", "0"),
        ("NAVI_SUBAGENTS_AT_ONCE", "7"),
        ("NAVI_SUBAGENTS_PER_RUN", "9"),
        ("NAVI_PLAN_TOKEN_LIMIT", "700"),
        ("CONTEXT_COMPRESSION_ENABLED", "no"),
        ("CONTEXT_COMPRESSION_THRESHOLD", "0.5"),
        ("CONTEXT_KEEP_RECENT", "4"),
        ("CONTEXT_SUMMARY_TEMPERATURE", "1"),
    ]);
    let settings = settings.unwrap().settings;
    let expected = RunLimits {
        time: Duration::from_secs(180),
        child_time: Duration::from_secs(120),
        tokens: 5000,
        child_depth: 0,
        parallel_children: 7,
        children: 9,
        plan_tokens: 700,
    };
    assert_eq!(settings.runs, expected);
    let expected = CompressionPolicy {
        enabled: false,
        threshold: 0.5,
        keep_recent: 4,
        temperature: 1.0,
    };
    assert_eq!(settings.compression, expected);
}

#[test]
fn each_wrong_value_is_told_with_its_name_itself_and_what_is_allowed() {
    for (variable, wrong, expected) in [
        ("OLLAMA_NUM_CTX", "abc", "a number from 256 to"),
        ("OLLAMA_NUM_CTX", "-1", "a number from 256 to"),
        ("OLLAMA_THINK", "maybe", "true or false"),
        ("OLLAMA_HOST", "ftp://x", "a URL"),
        ("OPENAI_BASE_URL", "not a url", "a URL"),
        ("LLM_BACKEND", "gpt", "auto, ollama, openai, starter"),
        ("LLM_PARALLEL", "0", "auto, or a number from 1 to 1024"),
        ("LLM_PARALLEL", "1025", "auto, or a number from 1 to 1024"),
        ("LLM_STREAM_CHUNK_TIMEOUT", "0", "a number over 0"),
        ("LLM_STREAM_FIRST_CHUNK_TIMEOUT", "NaN", "a number over 0"),
        (
            "CONTEXT_COMPRESSION_THRESHOLD",
            "1.5",
            "a number from 0.001 to 1",
        ),
        ("CONTEXT_COMPRESSION_ENABLED", "x", "true or false"),
        (
            "NAVI_DOORS",
            "events, window",
            "all, none, or of events, openai, ollama",
        ),
        ("NAVI_METRICS", "prometheus", "on/off"),
        ("NAVI_OTLP_ENDPOINT", "127.0.0.1:4318", "a URL, as in"),
        (
            "NAVI_OTLP_ENDPOINT",
            "http://c:4318/v1/traces",
            "without /v1/traces",
        ),
        ("CONTEXT_KEEP_RECENT", "-3", "a number from 0"),
        ("CONTEXT_SUMMARY_TEMPERATURE", "9", "a number from 0 to 2"),
        ("CONTEXT_CACHE_MB", "-1", "a number from 0"),
        (
            "NAVI_RUN_TIME_LIMIT_MINUTES",
            "0",
            "minutes: a number from 1",
        ),
        ("NAVI_RUN_TOKEN_LIMIT", "lots", "a number from 1000"),
        ("NAVI_SUBAGENT_TIME_LIMIT_MINUTES", "1.5", "a number from 1"),
        ("NAVI_SUBAGENT_DEPTH", "-1", "a number from 0 to 8"),
        ("NAVI_SUBAGENTS_AT_ONCE", "0", "a number from 1"),
        ("NAVI_SUBAGENTS_PER_RUN", "x", "a number from 1"),
        ("NAVI_PLAN_TOKEN_LIMIT", "0", "a number from 100"),
        ("LOG_LEVEL", "LOUD", "error, warn"),
        ("NAVI_BIND", "8000", "an address and a port"),
        ("NAVI_BIND", "0.0.0.0:8000", "a loopback address"),
        ("SESSION_FILES_MAX_SIZE_MB", "0", "a number from 1"),
        ("SESSION_FILES_TTL_HOURS", "0", "a number from 0.0001"),
        ("NAVI_LOG_DAYS", "-1", "a number from 0 to"),
        ("NAVI_LOG_CALLS", "99", "0, or a number from 100"),
    ] {
        let problem = only_problem(variable, wrong);
        assert!(problem.contains(variable), "{problem}");
        assert!(problem.contains(&format!("\"{wrong}\"")), "{problem}");
        assert!(problem.contains(expected), "{problem}");
        assert!(problem.contains("environment"), "{problem}");
    }
}

#[test]
fn ssh_hosts_are_checked_at_the_start() {
    assert_eq!(load_with(&[]).unwrap().settings.ssh, None);
    let problem = only_problem("SSH_HOSTS_FILE", "/nowhere/hosts.json");
    assert!(problem.contains("SSH_HOSTS_FILE"), "{problem}");
    assert!(
        problem.contains("/nowhere/hosts.json cannot be read"),
        "{problem}"
    );

    let dir = tempfile::tempdir().unwrap();
    let hosts = dir.path().join("hosts.json");
    let path = hosts.to_str().unwrap();
    std::fs::write(&hosts, "{\n\"web1\": {\"host\": \"web\", \"port\": 0}}").unwrap();
    let problem = only_problem("SSH_HOSTS_FILE", path);
    assert!(
        problem.contains(&format!("{path}:2: 0 is no port")),
        "{problem}"
    );

    std::fs::write(&hosts, "{\"web1\": {\"host\": \"web\", \"user\": \"me\"}}").unwrap();
    let ssh = load_with(&[("SSH_HOSTS_FILE", path)]).unwrap().settings.ssh;
    let ssh = ssh.unwrap();
    assert_eq!(ssh.hosts[0].name, "web1");
    assert!(ssh.known_hosts.ends_with("ssh/known_hosts"));
}

#[test]
fn secrets_are_never_told() {
    for variable in ["NAVI_API_TOKEN", "OPENAI_API_KEY"] {
        let problem = only_problem(variable, "my secret");
        assert!(!problem.contains("my secret"), "{problem}");
    }
    let problem = only_problem("DATABASE_URL", "mysql://u:hunter2@h/d");
    assert!(!problem.contains("hunter2"), "{problem}");
    let loaded = load_with(&[
        ("NAVI_API_TOKEN", "0123456789abcdef"),
        ("DATABASE_URL", "postgres://u:hunter2@h/d"),
    ])
    .unwrap();
    let all = format!("{loaded:?}");
    assert!(!all.contains("0123456789abcdef"), "{all}");
    assert!(!all.contains("hunter2"), "{all}");
}

#[test]
fn all_problems_are_told_at_once() {
    let error = load_with(&[
        ("OLLAMA_NUM_CTX", "x"),
        ("LOG_LEVEL", "x"),
        ("NAVI_BIND", "x"),
    ])
    .unwrap_err();
    assert_eq!(error.problems.len(), 3, "{error}");
    assert!(error.to_string().starts_with("3 settings are wrong:"));
}

#[test]
fn an_empty_variable_is_unset() {
    let loaded = load_with(&[("OLLAMA_NUM_CTX", " "), ("NAVI_API_TOKEN", "")]).unwrap();
    assert_eq!(loaded.settings.model.context_window, 65_536);
    assert!(loaded.settings.api_token.is_none());
}

#[test]
fn the_environment_wins_over_a_file_and_a_file_over_the_default() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("navi.toml");
    std::fs::write(&file, "[ollama]\nnum_ctx = 4096\nthink = false\n").unwrap();
    let overrides = Overrides {
        data_dir: Some(dir.path().to_owned()),
        bind: Some("[::1]:0".to_owned()),
        ..Overrides::default()
    };
    let loaded = load(&overrides, &environment(&[("OLLAMA_NUM_CTX", "8192")])).unwrap();
    assert_eq!(loaded.settings.model.context_window, 8192);
    assert!(!loaded.settings.model.think);
    let origin = |variable: &str| {
        let row = loaded.values.iter().find(|row| row.variable == variable);
        row.unwrap().origin.clone()
    };
    assert_eq!(origin("OLLAMA_NUM_CTX"), "environment");
    assert_eq!(origin("OLLAMA_THINK"), file.display().to_string());
    assert_eq!(origin("NAVI_BIND"), "command line");
    assert_eq!(origin("LOG_LEVEL"), "default");
}

#[test]
fn unknown_keys_in_a_file_name_the_nearest_known_one() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("navi.toml"),
        "[ollama]\nnum_ctxs = 4096\n[wild]\nx = 1\n",
    )
    .unwrap();
    let overrides = Overrides {
        data_dir: Some(dir.path().to_owned()),
        ..Overrides::default()
    };
    let error = load(&overrides, &environment(&[])).unwrap_err();
    assert_eq!(error.problems.len(), 2, "{error}");
    let text = error.to_string();
    assert!(text.contains("did you mean `ollama.num_ctx`?"), "{text}");
    assert!(text.contains("`wild.x`"), "{text}");
}

#[test]
fn a_file_that_is_named_must_exist_and_be_toml() {
    let dir = tempfile::tempdir().unwrap();
    let mut overrides = Overrides {
        data_dir: Some(dir.path().to_owned()),
        config: Some(dir.path().join("none.toml")),
        ..Overrides::default()
    };
    let error = load(&overrides, &environment(&[])).unwrap_err();
    assert!(error.to_string().contains("cannot read"), "{error}");

    let broken = dir.path().join("broken.toml");
    std::fs::write(&broken, "# Mine.\n[openai]\napi_key = \"sk-hunter2\n").unwrap();
    overrides.config = Some(broken);
    let error = load(&overrides, &environment(&[])).unwrap_err();
    assert!(error.to_string().contains("not valid TOML"), "{error}");
    assert!(error.to_string().contains("line 3"), "{error}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[test]
fn a_backend_needs_its_own_settings() {
    let problem = only_problem("LLM_BACKEND", "openai");
    assert!(problem.contains("OPENAI_BASE_URL"), "{problem}");
    let error = load_with(&[("LLM_BACKEND", "starter"), ("STARTER_MODEL", "off")]).unwrap_err();
    assert!(error.to_string().contains("STARTER_MODEL"), "{error}");
    let problem = only_problem("STARTER_MODEL", "/nowhere/model.gguf");
    assert!(problem.contains("no file"), "{problem}");
}

#[test]
fn the_file_is_looked_for_where_the_data_directory_is() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("navi.toml"), "[ollama]\nnum_ctx = 4096\n").unwrap();
    let spaced = format!(" {} ", dir.path().display());
    let environment = environment(&[("NAVI_DATA_DIR", &spaced)]);
    let loaded = load(&Overrides::default(), &environment).unwrap();
    assert_eq!(loaded.settings.data_dir, dir.path());
    let mut rows = loaded.values.iter();
    let window = rows.find(|row| row.variable == "OLLAMA_NUM_CTX").unwrap();
    assert_eq!(window.value.as_deref(), Some("4096"));
}

#[test]
fn relative_paths_are_inside_the_data_directory() {
    let loaded = load_with(&[("DB_PATH", "db/x.db")]).unwrap();
    let data_dir = &loaded.settings.data_dir;
    match &loaded.settings.database {
        DatabaseSettings::Sqlite(path) => assert_eq!(*path, data_dir.join("db/x.db")),
        DatabaseSettings::Postgres(_) => unreachable!(),
    }
    assert_eq!(
        loaded.settings.session_files_dir,
        data_dir.join("session_files")
    );
}

#[test]
fn ollamas_own_forms_of_its_variable_are_understood() {
    for (given, expected) in [
        ("localhost", "http://localhost:11434"),
        ("10.0.0.5:9999", "http://10.0.0.5:9999"),
        (":9999", "http://localhost:9999"),
        ("nas.lan:80", "http://nas.lan"),
        ("nas.lan:80/ollama", "http://nas.lan/ollama"),
        ("nas.lan/ollama", "http://nas.lan:11434/ollama"),
        ("http://nas.lan", "http://nas.lan"),
        ("[::1]", "http://[::1]:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:11434", "http://127.0.0.1:11434"),
        ("https://ollama.example/", "https://ollama.example"),
        ("http://localhost:11434/", "http://localhost:11434"),
    ] {
        let loaded = load_with(&[("OLLAMA_HOST", given)]).unwrap();
        assert_eq!(loaded.settings.model.ollama_host, expected, "{given}");
    }
}

#[test]
fn the_address_of_a_model_server_nearby_may_leave_its_scheme_out() {
    for (text, meant) in [
        ("localhost:8080/v1", "http://localhost:8080/v1"),
        ("nas.lan:8080", "http://nas.lan:8080"),
        ("192.168.1.2:8080", "http://192.168.1.2:8080"),
        ("https:/api.example.com/v1", "https://api.example.com/v1"),
    ] {
        let loaded = load_with(&[("OPENAI_BASE_URL", text)]).unwrap();
        assert_eq!(loaded.settings.model.openai.unwrap().base_url, meant);
    }
    // The key goes nowhere else without its being said how.
    let problem = only_problem("OPENAI_BASE_URL", "api.example.com/v1");
    assert!(problem.contains("with its scheme"), "{problem}");
}

#[test]
fn a_model_servers_query_is_kept_and_a_key_in_it_is_hidden() {
    for (text, shown) in [
        (
            "https://a.example.com/d?api-version=1",
            "https://a.example.com/d?api-version=1",
        ),
        (
            "https://a.example.com/v1/?a=/&api-key=sesame",
            "https://a.example.com/v1/?a=/&api-key=[hidden]",
        ),
    ] {
        let loaded = load_with(&[("OPENAI_BASE_URL", text)]).unwrap();
        let mut rows = loaded.values.iter();
        let row = rows.find(|row| row.variable == "OPENAI_BASE_URL");
        assert_eq!(row.unwrap().value.as_deref(), Some(shown));
        assert_eq!(loaded.settings.model.openai.unwrap().base_url, text);
    }
    for text in [
        "localhost:8080/v1?api-key=sesame",
        "https:api.example.com/v1?api-key=sesame",
    ] {
        let problem = only_problem("OPENAI_BASE_URL", text);
        assert!(!problem.contains("sesame"), "{problem}");
    }
}

#[test]
fn a_wrong_address_is_told_with_an_example_of_its_own() {
    for (variable, example) in [
        ("OLLAMA_HOST", "http://localhost:11434"),
        ("OPENAI_BASE_URL", "http://localhost:8080/v1"),
        ("NAVI_SEARXNG_URL", "http://localhost:8888"),
        ("NAVI_OTLP_ENDPOINT", "http://localhost:4318"),
    ] {
        let problem = only_problem(variable, "ftp://x");
        assert!(
            problem.contains(&format!("as in {example}")),
            "{variable}: {problem}"
        );
    }
}

#[test]
fn doubtful_settings_are_warned_of() {
    let loaded = load_with(&[
        ("NAVI_API_TOKEN", "short"),
        ("FS_ALLOWED_PATHS", "*"),
        ("TERMINAL_ALLOWED_COMMANDS", "ls,sed"),
        ("NAVI_BNID", "x"),
    ])
    .unwrap();
    assert_eq!(loaded.warnings.len(), 4, "{:?}", loaded.warnings);
}

#[test]
fn variables_of_clients_and_tools_are_no_mistakes() {
    for variable in ["NAVI_TOKEN", "NAVI_URL", "NAVI_WORKSPACE", "NAVI_TOOL_DIR"] {
        let loaded = load_with(&[(variable, "x")]).unwrap();
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    }
}

#[test]
fn allowed_paths_are_directories_beyond_navis_own() {
    let allowed = |text: &str| load_with(&[("FS_ALLOWED_PATHS", text)]).unwrap();
    let none = load_with(&[]).unwrap().settings.file_access;
    assert!(none.allowed.is_empty() && !none.is_everything());
    let everything = allowed("*").settings.file_access;
    assert_eq!(everything.allowed, [PathBuf::from("/")]);
    assert!(everything.is_everything());
    assert_eq!(allowed("*").warnings, [PhraseCode::AllowedEveryFile.into()]);
    let loaded = allowed("/usr/share, /usr/lib,/usr/share");
    let expected = ["/usr/share", "/usr/lib"].map(PathBuf::from).to_vec();
    assert_eq!(loaded.settings.file_access.allowed, expected);
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    assert!(
        allowed("/nowhere/at/all").warnings[0]
            .to_string()
            .contains("/nowhere/at/all")
    );
    for (text, expected) in [
        ("notes", "absolute directories"),
        ("/usr/../etc", "absolute directories"),
        ("/usr, *", "either * alone"),
        (",", "with commas between"),
    ] {
        let problem = only_problem("FS_ALLOWED_PATHS", text);
        assert!(problem.contains("FS_ALLOWED_PATHS"), "{problem}");
        assert!(problem.contains(expected), "{problem}");
    }
    let dir = tempfile::tempdir().unwrap();
    let overrides = Overrides {
        data_dir: Some(dir.path().join("data")),
        ..Overrides::default()
    };
    let allowing = |path: &str| {
        let path = dir.path().join(path);
        let pairs = [("FS_ALLOWED_PATHS", path.to_str().unwrap())];
        load(&overrides, &environment(&pairs))
    };
    for own in ["data", "data/session_files", "data/tools/x", "data/models"] {
        let error = allowing(own).unwrap_err();
        assert!(error.problems[0].contains("not Navi's own"), "{error}");
    }
    for users in ["allowed", "data/shared"] {
        allowing(users).unwrap();
    }
}

#[test]
fn what_navi_keeps_is_closed_to_the_filesystem_tool() {
    let places = [
        ("TOOLS_DIR", "/opt/tools"),
        ("DB_PATH", "/var/navi.db"),
        ("NAVI_SKILLS_DIR", "/opt/skills"),
        ("NAVI_MCP_CONFIG", "/opt/mcp.json"),
        ("NAVI_SSH_KNOWN_HOSTS", "/opt/known_hosts"),
        ("NAVI_SSH_MORE_KNOWN_HOSTS", "/opt/more_known_hosts"),
    ];
    let settings = load_with(&places).unwrap().settings;
    let closed = &settings.file_access.closed;
    let own = places.iter().map(|(_, path)| Path::new(path));
    for path in own.chain([settings.data_dir.as_path()]) {
        assert!(closed.iter().any(|closed| closed == path), "{closed:?}");
    }
    // And to commands.
    assert_eq!(settings.terminal.sandbox.private, *closed);
}

#[test]
fn what_navi_logs_in_with_and_its_settings_file_are_closed() {
    let dir = tempfile::tempdir().unwrap();
    let hosts = dir.path().join("hosts.json");
    let host = r#"{"box": {"host": "192.0.2.1", "user": "x", "key": "keys/box"}}"#;
    std::fs::write(&hosts, host).unwrap();
    // Nothing of it holds: a secret in it is one all the same.
    let file = dir.path().join("navi.toml");
    std::fs::write(&file, "web.tavily_api_key = \"canary\"").unwrap();
    let overrides = Overrides {
        config: Some(file.clone()),
        data_dir: Some(dir.path().join("data")),
        ..Overrides::default()
    };
    let variables = [
        ("SSH_HOSTS_FILE", hosts.to_str().unwrap()),
        ("NAVI_TAVILY_API_KEY", "another"),
    ];
    let settings = load(&overrides, &environment(&variables)).unwrap().settings;
    let closed = &settings.file_access.closed;
    let home = directories::BaseDirs::new().map(|dirs| dirs.home_dir().join(".ssh"));
    for path in [Some(file), Some(dir.path().join("keys/box")), home]
        .into_iter()
        .flatten()
    {
        assert!(closed.contains(&path), "{closed:?}");
    }
}

/// What every provider has.
const PROVIDER: [(&str, &str); 4] = [
    ("NAVI_ACCOUNTS", "on"),
    ("NAVI_PUBLIC_URL", "https://home.example/navi"),
    ("NAVI_OIDC_ISSUER", "https://login.example/realms/home"),
    ("NAVI_OIDC_CLIENT_ID", "navi"),
];

fn with(more: &[(&str, &str)]) -> Result<Loaded, SettingsError> {
    let kept = PROVIDER
        .iter()
        .filter(|(name, _)| more.iter().all(|(other, _)| other != name));
    let all: Vec<_> = kept.chain(more).copied().collect();
    load_with(&all)
}

#[test]
fn a_provider_has_all_that_sign_on_needs() {
    let sign_on = with(&[
        (
            "NAVI_SIGN_ON_ROLES",
            "admin=cn=admins,ou=groups ; user=family;",
        ),
        ("NAVI_SIGN_ON_JOIN", "guest"),
        ("NAVI_OIDC_DOMAINS", "Example.org, example.com"),
        ("NAVI_OIDC_SCOPES", "openid profile, groups"),
    ]);
    let sign_on = sign_on.unwrap().settings.sign_on;
    let admins = (UserRole::Admin, "cn=admins,ou=groups".to_owned());
    assert_eq!(
        sign_on.roles,
        [admins, (UserRole::User, "family".to_owned())]
    );
    assert_eq!(sign_on.join, Some(UserRole::Guest));
    let provider = sign_on.provider.unwrap();
    assert_eq!(provider.name, "login.example");
    assert_eq!(provider.scopes, ["profile", "groups"]);
    assert_eq!(provider.domains, ["example.org", "example.com"]);
    assert_eq!(
        provider.callback,
        "https://home.example/navi/api/sign-on/callback"
    );
    assert!(!provider.link_by_email);
    let none = load_with(&[]).unwrap().settings.sign_on;
    assert!(none.provider.is_none() && none.proxy.is_none() && none.join.is_none());
}

#[test]
fn a_provider_that_makes_no_sense_is_refused() {
    for (name, value, wanted) in [
        ("NAVI_ACCOUNTS", "local", "NAVI_ACCOUNTS=on"),
        ("NAVI_PUBLIC_URL", "", "NAVI_PUBLIC_URL is not"),
        ("NAVI_OIDC_CLIENT_ID", "", "NAVI_OIDC_CLIENT_ID is not"),
        ("NAVI_OIDC_ISSUER", "login.example", "the provider's issuer"),
        (
            "NAVI_OIDC_ISSUER",
            "https://a.example/?b",
            "the provider's issuer",
        ),
        ("NAVI_OIDC_ISSUER", "file:///etc", "the provider's issuer"),
        ("NAVI_SIGN_ON_ROLES", "family", "roles and groups"),
        ("NAVI_SIGN_ON_ROLES", "owner=family", "roles and groups"),
        ("NAVI_SIGN_ON_JOIN", "admin", "one of"),
        ("NAVI_OIDC_DOMAINS", "a@example.org", "domains"),
        (
            "NAVI_PROXY_USER_HEADER",
            "Remote-User",
            "NAVI_TRUSTED_PROXIES is not",
        ),
    ] {
        let said = with(&[(name, value)]).unwrap_err().to_string();
        assert!(said.contains(wanted), "{name}={value}: {said}");
    }
    for alone in [
        "NAVI_OIDC_CLIENT_SECRET",
        "NAVI_SIGN_ON_ROLES",
        "NAVI_PROXY_GROUPS_HEADER",
    ] {
        let said = load_with(&[("NAVI_ACCOUNTS", "on"), (alone, "user=x")]);
        assert!(said.unwrap_err().to_string().contains(alone), "{alone}");
    }
    let proxy = |more: &[(&'static str, &'static str)]| {
        let mut all = vec![
            ("NAVI_ACCOUNTS", "on"),
            ("NAVI_PROXY_USER_HEADER", "Remote-User"),
            ("NAVI_TRUSTED_PROXIES", "127.0.0.1"),
        ];
        all.retain(|(name, _)| more.iter().all(|(other, _)| other != name));
        all.extend(more);
        load_with(&all)
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    assert_eq!(proxy(&[]), Ok(()));
    for (more, wanted) in [
        (("NAVI_TRUSTED_PROXIES", "::/0"), "holds everybody"),
        (("NAVI_PROXY_USER_HEADER", "Cookie"), "a header of its own"),
        (("NAVI_PROXY_USER_HEADER", "a b"), "the name of a header"),
        (
            ("NAVI_SIGN_ON_GROUPS", "family"),
            "NAVI_PROXY_GROUPS_HEADER",
        ),
    ] {
        let said = proxy(&[more]).unwrap_err();
        assert!(said.contains(wanted), "{more:?}: {said}");
    }
}

#[test]
fn a_provider_without_tls_is_warned_of() {
    let warned = |issuer| {
        let loaded = with(&[("NAVI_OIDC_ISSUER", issuer)]).unwrap();
        loaded.warnings.contains(&PhraseCode::OidcPlain.into())
    };
    assert!(warned("http://login.example"));
    for near in [
        "https://login.example",
        "http://127.0.0.1:9",
        "http://localhost",
        "http://[::1]",
    ] {
        assert!(!warned(near), "{near}");
    }
}

#[test]
fn what_a_crash_leaves_beside_a_file_with_keys_is_closed_to_tools() {
    let dir = tempfile::tempdir().unwrap();
    let servers = dir.path().join("mcp.json");
    let loaded = load_with(&[("NAVI_MCP_CONFIG", servers.to_str().unwrap())]).unwrap();
    let closed = &loaded.settings.file_access.closed;
    assert!(closed.contains(&dir.path().join(".mcp.json.new")));
    let file = dir.path().join("navi.toml");
    std::fs::write(&file, "").unwrap();
    let overrides = Overrides {
        data_dir: Some(dir.path().join("data")),
        config: Some(file),
        ..Overrides::default()
    };
    let loaded = load(&overrides, &environment(&[])).unwrap();
    let closed = &loaded.settings.file_access.closed;
    for name in [
        "navi.toml",
        ".navi.toml.new",
        "navi.toml.before",
        ".navi.toml.before.new",
    ] {
        let real = std::fs::canonicalize(dir.path()).unwrap();
        assert!(closed.contains(&real.join(name)), "{name}");
    }
}
