//! Which settings the page may change (`keys` says it of each), and why the others are changed in
//! the file alone.
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

/// The keys of what the page may change.
pub(crate) fn page_keys() -> impl Iterator<Item = &'static str> {
    let page = k::ALL.iter().filter(|key| key.file_only.is_none());
    page.map(|key| key.path)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(key.file_only, Some(why), "{}", key.path);
        }
        assert_eq!(k::OPENAI_URL.file_only, None);
        for key in WEIGHTY {
            assert_eq!(key.file_only, None, "{}", key.path);
        }
    }
}
