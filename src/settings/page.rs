//! Which settings the page may change, and why the others are changed in the file alone.
//!
//! Whoever holds a browser that is signed in as an admin may change the first, with no other proof
//! of who they are: they see in the page, and in the record, what became otherwise. So none of them
//! lets anybody else in, names a program to run (that is `/mcp/{name}`, with proof), moves what is
//! kept, or hides what was done. Some of them say to whom words go, or who is asked before
//! something is done ([`needs_all_scopes`]): a token for administering alone changes none of those.

use schemars::JsonSchema;
use serde::Serialize;

use super::keys::{self as k, Key};

/// Why a setting is changed in the file alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileOnly {
    /// It says who reaches Navi, by what, and as whom.
    Doors,
    /// It says which programs run, and what holds them.
    Programs,
    /// It names a place on this machine: what is kept there, or read from it.
    Places,
    /// It says what leaves this machine unasked, or which of your network tools reach.
    Network,
    /// It says how long is kept who did what.
    Record,
}

/// What the page may change. A setting that stands in neither list, it may not.
const PAGE: &[&Key] = &[
    &k::PERSON_RUNS,
    &k::PERSON_UPLOADS,
    &k::PERSON_SESSIONS,
    &k::PERSON_FILES,
    &k::PERSON_TOKENS,
    &k::PERSON_TABS,
    &k::SLOW_BODY,
    &k::WATCHDOG,
    &k::METRICS,
    &k::LOG_LEVEL,
    &k::LOG_DAYS,
    &k::LOG_CALLS,
    &k::BACKEND,
    &k::PARALLEL,
    &k::FIRST_CHUNK,
    &k::CHUNK,
    &k::OLLAMA_HOST,
    &k::OLLAMA_MODEL,
    &k::OLLAMA_NUM_CTX,
    &k::OLLAMA_THINK,
    &k::OPENAI_URL,
    &k::OPENAI_KEY,
    &k::OPENAI_MODEL,
    &k::RUN_TIME,
    &k::RUN_TOKENS,
    &k::PLAN_TOKENS,
    &k::SUBAGENT_TIME,
    &k::SUBAGENT_DEPTH,
    &k::SUBAGENTS_AT_ONCE,
    &k::SUBAGENTS_PER_RUN,
    &k::RESUME,
    &k::CONSENT_MODE,
    &k::APPROVAL_TIMEOUT,
    &k::COMPRESSION,
    &k::THRESHOLD,
    &k::KEEP_RECENT,
    &k::SUMMARY_TEMPERATURE,
    &k::CONTEXT_CACHE,
    &k::PERSONA,
    &k::DEFAULT_PROFILE,
    &k::TERMINAL_TIME,
    &k::SANDBOX_MEMORY,
    &k::SANDBOX_PROCESSES,
    &k::SANDBOX_SESSION_MEMORY,
    &k::SANDBOX_SESSION_PROCESSES,
    &k::SANDBOX_ALL_MEMORY,
    &k::SANDBOX_ALL_PROCESSES,
    &k::WORKSPACE_SIZE,
    &k::WORKSPACE_FILES,
    &k::SEARCH_ENGINE,
    &k::SEARXNG_URL,
    &k::BRAVE_KEY,
    &k::TAVILY_KEY,
    &k::HOME_ASSISTANT_URL,
    &k::HOME_ASSISTANT_TOKEN,
    &k::FILES_MAX,
    &k::FILES_TTL,
    &k::FILES_MAX_COUNT,
    &k::FILES_MAX_TOTAL,
];

/// What is changed in the file alone.
const FILE: &[(FileOnly, &[&Key])] = &[
    (
        FileOnly::Doors,
        &[
            &k::BIND,
            &k::ACCOUNTS,
            &k::PUBLIC_URL,
            &k::TRUSTED_PROXIES,
            &k::TLS_CERTIFICATE,
            &k::TLS_KEY,
            &k::API_TOKEN,
            &k::DOORS,
            &k::OIDC_ISSUER,
            &k::OIDC_CLIENT_ID,
            &k::OIDC_CLIENT_SECRET,
            &k::OIDC_NAME,
            &k::OIDC_SCOPES,
            &k::OIDC_GROUPS_CLAIM,
            &k::OIDC_DOMAINS,
            &k::OIDC_LINK_BY_EMAIL,
            &k::PROXY_USER,
            &k::PROXY_GROUPS,
            &k::SIGN_ON_JOIN,
            &k::SIGN_ON_ROLES,
            &k::SIGN_ON_GROUPS,
        ],
    ),
    (
        FileOnly::Programs,
        &[
            &k::TOOLS_DIR,
            &k::SKILLS_DIR,
            &k::MCP_CONFIG,
            &k::FS_ALLOWED,
            &k::TERMINAL_ALLOWED,
            &k::SANDBOX_USER,
            &k::SANDBOX_UIDS,
            &k::SANDBOX_READ,
            &k::SSH_HOSTS,
            &k::SSH_KNOWN_HOSTS,
            &k::SSH_MORE_KNOWN_HOSTS,
        ],
    ),
    (
        FileOnly::Places,
        &[
            &k::DATA_DIR,
            &k::DB_PATH,
            &k::DATABASE_URL,
            &k::STARTER_MODEL,
            &k::PERSONA_FILE,
            &k::PROFILES_DIR,
            &k::PRICES_FILE,
            &k::FILES_DIR,
        ],
    ),
    (
        FileOnly::Network,
        &[&k::OTLP_ENDPOINT, &k::OTLP_HEADERS, &k::FETCH_ALLOWED],
    ),
    (FileOnly::Record, &[&k::RECORD_DAYS]),
];

/// Keys that are sent to the address beside them, and to no other.
pub(super) const SENT_TO: &[(&Key, &Key)] = &[
    (&k::OPENAI_KEY, &k::OPENAI_URL),
    (&k::HOME_ASSISTANT_TOKEN, &k::HOME_ASSISTANT_URL),
];

/// What says where people's words go, and whether they are asked.
const WEIGHTY: &[&Key] = &[
    &k::CONSENT_MODE,
    &k::OPENAI_URL,
    &k::OLLAMA_HOST,
    &k::HOME_ASSISTANT_URL,
    &k::SEARXNG_URL,
];

/// Whether a token changes the setting of this key only where it may do everything.
pub(crate) fn needs_all_scopes(path: &str) -> bool {
    WEIGHTY.iter().any(|key| key.path == path)
}

/// Why the page may not change a setting; none where it may.
pub(super) fn file_only(key: &Key) -> Option<FileOnly> {
    if PAGE.contains(&key) {
        return None;
    }
    let mut kept = FILE.iter().filter(|(_, keys)| keys.contains(&key));
    Some(kept.next().map_or(FileOnly::Programs, |(why, _)| *why))
}

/// The keys of what the page may change.
pub(crate) fn page_keys() -> impl Iterator<Item = &'static str> {
    PAGE.iter().map(|key| key.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_setting_it_is_said_once_whether_the_page_may_change_it() {
        for key in k::ALL.iter().copied() {
            let page = PAGE.iter().filter(|it| **it == key).count();
            let file = FILE.iter().flat_map(|(_, keys)| keys.iter());
            let file = file.filter(|it| **it == key).count();
            assert_eq!(page + file, 1, "{}", key.path);
        }
    }

    #[test]
    fn what_opens_the_house_is_changed_in_the_file_alone() {
        for (key, why) in [
            (k::BIND, FileOnly::Doors),
            (k::API_TOKEN, FileOnly::Doors),
            (k::TERMINAL_ALLOWED, FileOnly::Programs),
            (k::MCP_CONFIG, FileOnly::Programs),
            (k::FETCH_ALLOWED, FileOnly::Network),
            (k::RECORD_DAYS, FileOnly::Record),
        ] {
            assert_eq!(file_only(&key), Some(why), "{}", key.path);
        }
        assert_eq!(file_only(&k::OPENAI_URL), None);
        for key in WEIGHTY {
            assert!(PAGE.contains(key), "{}", key.path);
        }
    }
}
