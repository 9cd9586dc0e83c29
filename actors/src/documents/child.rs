//! One document, one process: what a document may do to its reader ends with it.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use tokio::process::Command;

use super::{DocumentError, MAX_DOCUMENT_BYTES, MAX_TEXT_BYTES, TIME_LIMIT, read as read_here};
use crate::programs::{self, Bounds, Cut, SPARING_ALLOCATOR};

/// Stands before the answer: libraries may say something on standard output, too.
const MARK: &[u8] = b"\n\x01navi-document:";
/// The answer is JSON, in which a character of a text takes six bytes at most.
const MAX_ANSWER_BYTES: usize = 6 * MAX_TEXT_BYTES + 64 * 1024;

/// The program that reads documents, as `PROGRAM read-document TYPE`.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

#[derive(Debug, Serialize, Deserialize)]
struct Parsed(Result<String, DocumentError>);

/// From here on documents are parsed in a process of their own, started from this program,
/// which has to hand over to [`serve`]. Holds for the whole process; only the first call counts.
pub fn isolate(program: PathBuf) {
    // A second service in one process is one of a test's, and its program is the same.
    let _ = PROGRAM.set(program);
}

pub(super) fn program() -> Option<&'static Path> {
    PROGRAM.get().map(PathBuf::as_path)
}

/// The child's side: reads a document of this type, and answers.
///
/// # Errors
/// Where nobody takes the answer.
pub fn serve(media_type: &str, input: impl Read, mut output: impl Write) -> io::Result<()> {
    let mut bytes = Vec::new();
    input
        .take(MAX_DOCUMENT_BYTES as u64 + 1)
        .read_to_end(&mut bytes)?;
    let answer = Parsed(if bytes.len() > MAX_DOCUMENT_BYTES {
        Err(DocumentError::TooLarge)
    } else {
        read_here(&bytes, media_type)
    });
    output.write_all(MARK)?;
    serde_json::to_writer(&mut output, &answer)?;
    output.flush()
}

/// The service's side.
pub(super) async fn read(
    program: &Path,
    bytes: &[u8],
    media_type: &str,
) -> Result<String, DocumentError> {
    let mut command = Command::new(program);
    command
        .args(["read-document", media_type])
        .env_clear()
        .env(SPARING_ALLOCATOR.0, SPARING_ALLOCATOR.1)
        .current_dir("/");
    let bounds = Bounds {
        time: TIME_LIMIT,
        output_bytes: MAX_ANSWER_BYTES,
    };
    let ended = programs::run(command, bytes, bounds)
        .await
        .map_err(|error| {
            tracing::error!(%error, "the process that reads documents cannot be started");
            DocumentError::TooCostly
        })?;
    if ended.cut == Some(Cut::TimedOut) {
        return Err(DocumentError::TooCostly);
    }
    parse(&ended.stdout).unwrap_or_else(|| {
        tracing::warn!(
            code = ended.code,
            media_type,
            "a document brought its reader down"
        );
        Err(fallen(ended.code))
    })
}

/// What became of a reader that did not answer: being out of memory or of time ends it by a
/// signal, or by a panic of a library that asked for more; what else panics was damaged.
fn fallen(code: Option<i32>) -> DocumentError {
    match code {
        Some(_) => DocumentError::Damaged(
            "its reader gave up, perhaps for too much time or memory".to_owned(),
        ),
        None => DocumentError::TooCostly,
    }
}

fn parse(said: &[u8]) -> Option<Result<String, DocumentError>> {
    let at = said
        .windows(MARK.len())
        .rposition(|window| window == MARK)?;
    let answer: Parsed = serde_json::from_slice(&said[at + MARK.len()..]).ok()?;
    Some(answer.0)
}
