//! Files that a program sends with its question: they become files of the session, as those of a
//! person do.

use bytes::Bytes;
use navi_actors::protocol::command::FileRef;
use navi_actors::protocol::error::NaviError;
use navi_actors::protocol::ids::SessionId;

use crate::access::Principal;
use crate::http::App;

/// A file as a program has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentFile {
    pub(crate) name: String,
    pub(crate) content: Bytes,
}

/// Stores them in the session. What no message names goes by itself.
///
/// # Errors
/// What is wrong with one of them: then none is stored.
pub(super) async fn store(
    app: &App,
    who: Principal,
    session: SessionId,
    files: &[SentFile],
) -> Result<Vec<FileRef>, NaviError> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let engine = &app.engine;
    let bytes = files.iter().map(|file| file.content.len() as u64).sum();
    let mut upload = engine.begin_upload(who.user, session, Some(bytes)).await?;
    for SentFile { name, content } in files {
        upload.file(name).await?;
        engine.go_on(&mut upload, content).await?;
    }
    let stored = engine.finish_upload(who.user, session, upload).await?;
    let stored = stored.files.into_iter();
    let named = stored.map(|stored| FileRef {
        name: stored.file.name,
        path: stored.file.path,
    });
    Ok(named.collect())
}
