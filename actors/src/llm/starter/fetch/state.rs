//! What a fetch tells: how it stands, and why it failed.

/// How a fetch stands, for a terminal and a page to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FetchState {
    /// Nothing is being fetched.
    #[default]
    Idle,
    Fetching {
        model: &'static str,
        /// Where from, as a person reads it.
        source: &'static str,
        /// Bytes here, of bytes in all.
        received: u64,
        total: u64,
    },
    /// The last fetch failed.
    Failed {
        model: &'static str,
        /// What was wrong and what to do.
        problem: String,
    },
}

/// Why a model could not be fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    #[error("no model is called {name}; there are {known}")]
    UnknownModel { name: String, known: String },
    #[error(
        "{title} needs {needed} of disk in {directory}, and {available} is free; make room, or set NAVI_DATA_DIR to a larger disk"
    )]
    NoDisk {
        title: &'static str,
        directory: String,
        needed: String,
        available: String,
    },
    #[error(
        "{title} needs {needed} of memory, and {available} is free; close other programs, or use a smaller model"
    )]
    NoMemory {
        title: &'static str,
        needed: String,
        available: String,
    },
    #[error("{directory} cannot be written: {reason}")]
    Directory { directory: String, reason: String },
    #[error(
        "{title} could not be fetched: {reasons}; check the network, or put its file at {path} yourself"
    )]
    NoSource {
        title: &'static str,
        reasons: String,
        path: String,
    },
}
