//! Documents read for their text, and images made our own.
//!
//! Whatever comes in here may have been made to do harm: to fill memory, to take for ever, to
//! bring a parser down. So every size is bounded, and in the service a document is parsed in a
//! process of its own ([`isolate`]), which is ended when it takes too much.

mod child;
mod examine;
mod images;
mod office;
mod pdf;
mod sheets;
mod sniff;
mod text;

#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::protocol::phrase::{Phrase, PhraseCode};

pub use self::child::{isolate, serve};
pub use self::examine::{Examined, examine};
pub use self::images::{ImageError, PreparedImage};

/// The largest document that is read for its text.
pub const MAX_DOCUMENT_BYTES: usize = 64 * 1024 * 1024;
/// The longest text that is taken from a document; what is beyond it is left out.
pub const MAX_TEXT_BYTES: usize = 8 * 1024 * 1024;
/// How long a document may take.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// What a document may unpack to.
const MAX_UNPACKED_BYTES: u64 = 512 * 1024 * 1024;
/// How many images and documents are read at once, whoever asks: each may take all that one may.
const AT_ONCE: usize = 2;

static PERMITS: Semaphore = Semaphore::const_new(AT_ONCE);

/// Leave to be one of those that are read at once.
#[derive(Debug)]
pub struct ParsePermit {
    _permit: Option<SemaphorePermit<'static>>,
}

/// Waits for leave to parse. Taken before an image's bytes are, these are not held meanwhile.
pub async fn permit() -> ParsePermit {
    ParsePermit {
        // Never closed.
        _permit: PERMITS.acquire().await.ok(),
    }
}

/// Why there is no text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{}", self.phrase())]
pub enum DocumentError {
    Unsupported(String),
    TooLarge,
    NoText,
    Locked,
    Damaged(String),
    Bomb,
    TooCostly,
}

impl DocumentError {
    /// What is told of it.
    #[must_use]
    pub fn phrase(&self) -> Phrase {
        match self {
            Self::Unsupported(kind) => {
                Phrase::new(PhraseCode::FileUnsupported, [("kind", kind.clone())])
            }
            Self::TooLarge => {
                let megabytes = (MAX_DOCUMENT_BYTES >> 20).to_string();
                Phrase::new(PhraseCode::FileTooLarge, [("megabytes", megabytes)])
            }
            Self::NoText => PhraseCode::FileNoText.into(),
            Self::Locked => PhraseCode::FileLocked.into(),
            Self::Damaged(reason) => {
                Phrase::new(PhraseCode::FileDamaged, [("reason", reason.clone())])
            }
            Self::Bomb => PhraseCode::FileBomb.into(),
            Self::TooCostly => PhraseCode::FileTooCostly.into(),
        }
    }
}

/// The text of a document: plain text in any encoding, HTML as it stands, PDF, and the usual
/// office formats. Never longer than [`MAX_TEXT_BYTES`], and never empty.
///
/// # Errors
/// Each says in a clause what is wrong, to stand behind the document's name.
pub async fn text_of(bytes: Bytes, media_type: &str) -> Result<String, DocumentError> {
    if bytes.len() > MAX_DOCUMENT_BYTES {
        return Err(DocumentError::TooLarge);
    }
    let is_text = sniff::is_text(media_type);
    if !is_text && !is_readable(media_type) {
        return Err(DocumentError::Unsupported(media_type.to_owned()));
    }
    let permit = permit().await;
    if is_text {
        return blocking(permit, move || text::whole(&bytes)).await;
    }
    match child::program() {
        Some(program) => child::read(program, &bytes, media_type).await,
        None => {
            let media_type = media_type.to_owned();
            blocking(permit, move || read(&bytes, &media_type)).await
        }
    }
}

/// An image as we show it and as models get it: decoded, turned upright, scaled down and
/// encoded anew, so that nothing of the sender's bytes is left in it.
///
/// # Errors
/// Each says in a clause what is wrong.
pub async fn image(bytes: Vec<u8>) -> Result<PreparedImage, ImageError> {
    permit().await.image(bytes).await
}

impl ParsePermit {
    /// As [`image()`], by one who has its permit already.
    ///
    /// # Errors
    /// As [`image()`].
    pub async fn image(self, bytes: Vec<u8>) -> Result<PreparedImage, ImageError> {
        let prepared = tokio::task::spawn_blocking(move || {
            // Held until the work is done, even if nobody waits for it any more.
            let _place = self;
            images::prepare(&bytes)
        });
        match tokio::time::timeout(TIME_LIMIT, prepared).await {
            Ok(Ok(prepared)) => prepared,
            Ok(Err(error)) => {
                tracing::warn!(%error, "an image brought its reader down");
                Err(ImageError::Damaged)
            }
            Err(_) => Err(ImageError::TooCostly),
        }
    }
}

/// Whether [`text_of`] knows the type, texts aside.
fn is_readable(media_type: &str) -> bool {
    media_type == sniff::PDF || sheets::is_sheet(media_type) || office::is_office(media_type)
}

/// Parses a document here. May panic on one that was made for it.
fn read(bytes: &[u8], media_type: &str) -> Result<String, DocumentError> {
    let text = if media_type == sniff::PDF {
        pdf::text(bytes)?
    } else if sheets::is_sheet(media_type) {
        sheets::text(bytes, media_type)?
    } else {
        office::text(bytes, media_type)?
    };
    let text = tidy(&text);
    if text.is_empty() {
        return Err(DocumentError::NoText);
    }
    Ok(text)
}

/// Without characters that no text has, white space at the ends of lines, and more than one
/// empty line in a row.
fn tidy(text: &str) -> String {
    let mut tidied = String::with_capacity(text.len().min(MAX_TEXT_BYTES));
    let mut empty = 0;
    for line in text.lines() {
        let line = line.trim_end();
        empty = if line.is_empty() { empty + 1 } else { 0 };
        if empty > 1 || (line.is_empty() && tidied.is_empty()) {
            continue;
        }
        if tidied.len() + line.len() + 1 > MAX_TEXT_BYTES {
            break;
        }
        tidied.extend(line.chars().filter(|c| *c == '\t' || !c.is_control()));
        tidied.push('\n');
    }
    tidied.truncate(tidied.trim_end().len());
    tidied
}

async fn blocking(
    permit: ParsePermit,
    work: impl FnOnce() -> Result<String, DocumentError> + Send + 'static,
) -> Result<String, DocumentError> {
    let work = move || {
        // Held until the work is done, even if nobody waits for it any more.
        let _permit = permit;
        work()
    };
    match tokio::time::timeout(TIME_LIMIT, tokio::task::spawn_blocking(work)).await {
        Ok(Ok(text)) => text,
        Ok(Err(error)) => {
            tracing::warn!(%error, "a document brought its reader down");
            Err(DocumentError::Damaged("its reader gave up".to_owned()))
        }
        Err(_) => Err(DocumentError::TooCostly),
    }
}
