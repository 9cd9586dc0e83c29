//! What a fetch tells: how it stands, and why it failed.

use crate::protocol::phrase::{Phrase, PhraseCode};

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
        problem: Phrase,
    },
}

/// Why a model could not be fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.phrase())]
pub enum FetchError {
    UnknownModel {
        name: String,
        known: String,
    },
    NoDisk {
        title: &'static str,
        directory: String,
        needed: String,
        available: String,
    },
    NoMemory {
        title: &'static str,
        needed: String,
        available: String,
    },
    Directory {
        directory: String,
        reason: String,
    },
    NoSource {
        title: &'static str,
        reasons: String,
        path: String,
    },
}

impl FetchError {
    /// What is told of it.
    #[must_use]
    pub fn phrase(&self) -> Phrase {
        match self {
            Self::UnknownModel { name, known } => Phrase::new(
                PhraseCode::FetchUnknown,
                [("name", name.clone()), ("known", known.clone())],
            ),
            Self::NoDisk {
                title,
                directory,
                needed,
                available,
            } => Phrase::new(
                PhraseCode::FetchNoDisk,
                [
                    ("title", (*title).to_owned()),
                    ("directory", directory.clone()),
                    ("needed", needed.clone()),
                    ("available", available.clone()),
                ],
            ),
            Self::NoMemory {
                title,
                needed,
                available,
            } => Phrase::new(
                PhraseCode::FetchNoMemory,
                [
                    ("title", (*title).to_owned()),
                    ("needed", needed.clone()),
                    ("available", available.clone()),
                ],
            ),
            Self::Directory { directory, reason } => Phrase::new(
                PhraseCode::FetchNotWritten,
                [("directory", directory.clone()), ("reason", reason.clone())],
            ),
            Self::NoSource {
                title,
                reasons,
                path,
            } => Phrase::new(
                PhraseCode::FetchFailed,
                [
                    ("title", (*title).to_owned()),
                    ("reasons", reasons.clone()),
                    ("path", path.clone()),
                ],
            ),
        }
    }
}
