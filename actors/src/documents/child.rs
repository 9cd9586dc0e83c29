//! One document, one process: what a document may do to its reader ends with it.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use super::{DocumentError, MAX_DOCUMENT_BYTES, MAX_TEXT_BYTES, TIME_LIMIT, read as read_here};

/// Stands before the answer: libraries may say something on standard output, too.
const MARK: &[u8] = b"\n\x01navi-document:";
/// The answer is JSON, in which a character of a text takes six bytes at most.
const MAX_ANSWER_BYTES: u64 = 6 * MAX_TEXT_BYTES as u64 + 64 * 1024;

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
    let started = Command::new(program)
        .args(["read-document", media_type])
        .env_clear()
        // Its limit counts what it may write to, and its allocator would ask for all of that at
        // once, before it knows of the limit: what a document gets then is a matter of luck.
        .env("MIMALLOC_ARENA_EAGER_COMMIT", "0")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    let mut child = started.map_err(|error| {
        tracing::error!(%error, "the process that reads documents cannot be started");
        DocumentError::TooCostly
    })?;
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(DocumentError::TooCostly);
    };
    let hand_over = async move {
        // One that has seen enough closes its end.
        let _ = input.write_all(bytes).await;
    };
    let answer = async move {
        let mut said = Vec::new();
        let read = output.take(MAX_ANSWER_BYTES).read_to_end(&mut said).await;
        read.map(|_| said)
    };
    let told = tokio::time::timeout(TIME_LIMIT, async {
        let ((), said) = tokio::join!(hand_over, answer);
        (said, child.wait().await)
    });
    // Dropped where the time is up, and ended with that.
    let Ok((said, status)) = told.await else {
        return Err(DocumentError::TooCostly);
    };
    let said = said.unwrap_or_default();
    match parse(&said) {
        Some(answer) => answer,
        None => {
            tracing::warn!(?status, media_type, "a document brought its reader down");
            Err(fallen(status.ok().and_then(|status| status.code())))
        }
    }
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
