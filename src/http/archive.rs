//! `/api/account/archive`: everything of a person in one file, to take along.
//!
//! It is written as it is sent, so that it needs no room anywhere. What whoever asks may not read
//! by itself is not in it either.

use std::collections::HashSet;
use std::io::{self, Write};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use actix_web::http::{Method, header};
use actix_web::{HttpResponse, web};
use bytes::Bytes;
use chrono::Utc;
use futures_util::stream;
use navi_actors::domain::permissions::Action;
use navi_actors::files::Download;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::file::SessionFile;
use navi_actors::protocol::ids::{SessionId, UserId};
use navi_actors::protocol::session::SessionSummary;
use navi_actors::protocol::workspace::EntryKind;
use navi_actors::store::Listed;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::sync::mpsc;
use zip::write::{SimpleFileOptions, StreamWriter};
use zip::{CompressionMethod, ZipWriter};

use super::App;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::openapi::Failures;
use crate::access::Principal;

/// As much is read of a file at a time, and sent.
const PIECE_BYTES: usize = 64 * 1024;
/// As many pieces wait for whoever reads.
const PIECES: usize = 16;
/// Whoever takes nothing for this long wants it no more.
const PATIENCE: Duration = Duration::from_secs(60);
/// As many folders of one workspace are looked into.
const FOLDERS: usize = 2_000;
/// How many lines of what was allowed are read at a time.
const LINES: u64 = 200;

pub(crate) fn routes() -> Endpoint {
    endpoint("/api/account/archive").on(Method::GET, Action::ReadAccount, archive)
}

#[utoipa::path(get, path = "/api/account/archive", operation_id = "take_archive", tag = "account",
    responses((status = 200, description = "A ZIP archive of everything of whoever asks, as far as what they came in with may read it: conversations as JSON, files and workspaces, memory, rules and what was allowed. `left_out.txt` names what could not be read.", content_type = "application/zip"), Failures))]
pub(crate) async fn archive(app: web::Data<App>, who: Principal) -> Result<HttpResponse, ApiError> {
    let Some(place) = Place::take(who.user) else {
        return Err(ApiError::new(
            ErrorCode::RateLimited,
            "your archive is being made already; try again when that is done",
        ));
    };
    let (out, pieces) = mpsc::channel(PIECES);
    let name = format!("navi-{}.zip", Utc::now().format("%Y-%m-%d"));
    // To pack is work for a thread of its own; it ends when nobody takes the pieces.
    let runtime = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || runtime.block_on(write(app, who, out, place)));
    Ok(HttpResponse::Ok()
        .content_type("application/zip")
        .insert_header((
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"{name}\""),
        ))
        .streaming(stream::unfold(pieces, async |mut pieces| {
            pieces.recv().await.map(|piece| (piece, pieces))
        })))
}

/// Whose archive is being made, until it is dropped: one each, so that nobody who reads slowly keeps
/// others waiting.
struct Place(UserId);

static MAKING: LazyLock<Mutex<HashSet<UserId>>> = LazyLock::new(Mutex::default);

impl Place {
    fn take(user: UserId) -> Option<Self> {
        MAKING.lock().insert(user).then(|| Self(user))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        MAKING.lock().remove(&self.0);
    }
}

/// Writes all of it. Where that breaks off, so does what is sent: half an archive does not end as
/// a whole one does.
async fn write(
    app: web::Data<App>,
    who: Principal,
    out: mpsc::Sender<io::Result<Bytes>>,
    _place: Place,
) {
    let mut archive = Archive::new(out.clone());
    let hold = app.access.hold(&who);
    let done = tokio::select! {
        done = everything(&app, &who, &mut archive) => done,
        () = hold.ended() => Err(io::Error::other("what it was asked with opens nothing any more")),
    };
    if let Err(error) = done {
        tracing::info!(%error, "an archive broke off");
        // Whoever asked may have gone, or take nothing.
        let _ = tokio::time::timeout(PATIENCE, out.send(Err(error))).await;
    }
}

async fn everything(app: &App, who: &Principal, archive: &mut Archive) -> io::Result<()> {
    let user = who.user;
    let may = |action| who.grant.check(action).is_ok();
    match app.access.account(user).await {
        Ok(account) => {
            let user = account.user;
            let of = json!({"id": user.id, "name": user.name, "created_at": user.created_at});
            archive.json("account.json", &of).await?;
        }
        Err(error) => archive.left_out("account.json", &error),
    }
    if may(Action::ReadMemory) {
        match app.engine.memory().export(user).await {
            Ok(memory) => archive.json("memory.json", &memory).await?,
            Err(error) => archive.left_out("memory.json", &error),
        }
    }
    if may(Action::ReadConsent) {
        consent(app, who, archive).await?;
    }
    for listed in [Listed::Current, Listed::Archived] {
        let sessions = match app.engine.sessions(user, listed).await {
            Ok(sessions) => sessions,
            Err(error) => {
                archive.left_out("conversations", &error);
                continue;
            }
        };
        // What others share is theirs.
        let own = sessions.into_iter();
        for session in own.filter(|session| session.user_id == user) {
            if may(Action::ReadConversations) {
                conversation(app, who, &session, archive).await?;
            }
            if may(Action::ReadFiles) {
                files(app, who, session.id, archive).await?;
            }
        }
    }
    archive.finish().await
}

async fn consent(app: &App, who: &Principal, archive: &mut Archive) -> io::Result<()> {
    match app.engine.consent_rules(who.user).await {
        Ok(rules) => archive.json("consent_rules.json", &rules).await?,
        Err(error) => archive.left_out("consent_rules.json", &error),
    }
    let (mut lines, mut before) = (Vec::new(), None);
    loop {
        match app.engine.consent_log(who.user, before, LINES).await {
            Ok(page) => {
                before = page.last().map(|line| line.id);
                lines.extend(page);
                if before.is_none() {
                    return archive.json("consent_log.json", &lines).await;
                }
            }
            Err(error) => {
                archive.left_out("consent_log.json", &error);
                return Ok(());
            }
        }
    }
}

async fn conversation(
    app: &App,
    who: &Principal,
    session: &SessionSummary,
    archive: &mut Archive,
) -> io::Result<()> {
    let name = format!("conversations/{}/conversation.json", session.id);
    match app.engine.snapshot(who.user, session.id).await {
        Ok(snapshot) => archive.json(&name, &snapshot).await,
        Err(error) => {
            archive.left_out(&name, &error);
            Ok(())
        }
    }
}

/// What was sent in, and what stands in the workspace.
async fn files(
    app: &App,
    who: &Principal,
    session: SessionId,
    archive: &mut Archive,
) -> io::Result<()> {
    let folder = format!("conversations/{session}");
    match app.engine.files(who.user, session).await {
        Ok(list) => {
            for SessionFile { file, .. } in list.files {
                let name = format!("{folder}/files/{}-{}", file.file_id, plain(&file.name));
                let opened = app.engine.download(who.user, session, file.file_id);
                archive.file(&name, opened.await).await?;
            }
        }
        Err(error) => archive.left_out(&format!("{folder}/files"), &error),
    }
    let mut folders = vec![String::new()];
    let mut seen = 0;
    while let Some(path) = folders.pop() {
        seen += 1;
        let name = format!("{folder}/workspace/{path}");
        let listing = match app.engine.workspace(who.user, session, &path).await {
            Ok(listing) => listing,
            // Nothing was ever put there.
            Err(error) if path.is_empty() && error.code == ErrorCode::FileNotFound => return Ok(()),
            Err(error) => {
                archive.left_out(&name, &error);
                continue;
            }
        };
        if !listing.complete || seen >= FOLDERS {
            let more = "there is more than an archive has of one workspace";
            archive.left_out(&name, &NaviError::new(ErrorCode::FileTooLarge, more));
        }
        for entry in listing.entries {
            match entry.kind {
                EntryKind::Directory if seen < FOLDERS => folders.push(entry.path),
                EntryKind::File => {
                    let name = format!("{folder}/workspace/{}", entry.path);
                    let opened = app.engine.workspace_file(who.user, session, &entry.path);
                    archive.file(&name, opened.await).await?;
                }
                EntryKind::Directory | EntryKind::Link | EntryKind::Other => {}
            }
        }
    }
    Ok(())
}

/// A sender's name for a file, as one part of a path.
fn plain(name: &str) -> String {
    let is_odd = |c: char| c == '/' || c == '\\' || c.is_control();
    name.replace(is_odd, "_")
}

/// What was packed and not sent yet.
#[derive(Clone, Debug, Default)]
struct Packed(Arc<Mutex<Vec<u8>>>);

impl Write for Packed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A ZIP archive on its way.
struct Archive {
    zip: ZipWriter<StreamWriter<Packed>>,
    packed: Packed,
    out: mpsc::Sender<io::Result<Bytes>>,
    left_out: Vec<String>,
}

impl Archive {
    fn new(out: mpsc::Sender<io::Result<Bytes>>) -> Self {
        let packed = Packed::default();
        Self {
            zip: ZipWriter::new_stream(packed.clone()),
            packed,
            out,
            left_out: Vec::new(),
        }
    }

    async fn json(&mut self, name: &str, value: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(value)?;
        self.zip.start_file(name, SimpleFileOptions::default())?;
        for piece in text.chunks(PIECE_BYTES) {
            self.zip.write_all(piece)?;
            self.send().await?;
        }
        Ok(())
    }

    /// A file as it is: most are packed already. One that cannot be read is left out.
    async fn file(&mut self, name: &str, file: Result<Download, NaviError>) -> io::Result<()> {
        let mut content = match file {
            Ok(file) => file.content,
            Err(error) => {
                self.left_out(name, &error);
                return Ok(());
            }
        };
        let options = SimpleFileOptions::default();
        let options = options.compression_method(CompressionMethod::Stored);
        self.zip.start_file(name, options.large_file(true))?;
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let read = content.read(&mut piece).await?;
            if read == 0 {
                return Ok(());
            }
            self.zip.write_all(&piece[..read])?;
            self.send().await?;
        }
    }

    fn left_out(&mut self, name: &str, why: &NaviError) {
        self.left_out.push(format!("{name}: {}\n", why.message));
    }

    async fn finish(&mut self) -> io::Result<()> {
        if !self.left_out.is_empty() {
            let text = self.left_out.concat();
            self.zip
                .start_file("left_out.txt", SimpleFileOptions::default())?;
            self.zip.write_all(text.as_bytes())?;
        }
        let done = std::mem::replace(&mut self.zip, ZipWriter::new_stream(Packed::default()));
        done.finish()?;
        self.send().await
    }

    /// Hands over what is packed.
    async fn send(&self) -> io::Result<()> {
        let bytes = std::mem::take(&mut *self.packed.0.lock());
        if bytes.is_empty() {
            return Ok(());
        }
        let sent = tokio::time::timeout(PATIENCE, self.out.send(Ok(bytes.into())));
        match sent.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(io::Error::other("nobody takes it any more")),
        }
    }
}
