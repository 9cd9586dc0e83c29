//! Files to and from a host, by SFTP. A file appears under its name once it is whole.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use russh::client::Msg;
use russh::{Channel, ChannelMsg, ChannelStream};
use russh_sftp::client::error::Error as SftpError;
use russh_sftp::client::fs::File;
use russh_sftp::client::{Config, RawSftpSession, SftpSession};
use russh_sftp::protocol::{FileAttributes, OpenFlags, Packet, StatusCode};
use russh_sftp::ser::to_bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use super::connection::Connection;
use super::files::{PIECE_BYTES, Sink, Source, too_large};
use crate::domain::unseen::is_moving;
use crate::tools::output::{human_size, shortened};
use crate::tools::workspace::InnerPath;
use crate::tools::{LiveOutput, ToolError, ToolResult};

/// How long a host may take for each answer.
const ANSWER_SECONDS: u64 = 30;
const SUBSYSTEM_TIME: Duration = Duration::from_secs(15);
/// How long tidying up after a transfer that was given up may take.
const TIDY_TIME: Duration = Duration::from_secs(5);
/// As many bytes as a path there has.
const MAX_PATH_BYTES: usize = 4_096;
/// Between two words on how far a transfer is.
const PROGRESS_PAUSE: Duration = Duration::from_secs(1);

/// A path on the host is absolute, or starts at the user's home there.
pub(super) fn check_remote(path: &str) -> ToolResult<()> {
    let from_home = from_home(path);
    let is_good = (1..=MAX_PATH_BYTES).contains(&from_home.len());
    refuse_if!(
        !is_good || from_home.chars().any(is_moving),
        "`{}` is no path on the host; give one such as /var/log/syslog, or one from the user's home there",
        shortened(path, 120)
    );
    Ok(())
}

/// As SFTP has it: it knows no `~`, and starts in the user's home.
fn from_home(path: &str) -> &str {
    path.strip_prefix("~/").unwrap_or(path)
}

/// Sends a file. Gives back where it stands.
pub(super) async fn upload(
    (connection, channel): (&Connection, Channel<Msg>),
    name: &str,
    source: Source,
    to: &str,
    live: &LiveOutput,
) -> ToolResult<String> {
    let sftp = Arc::new(open_sftp(channel).await?);
    let (to, present) = target(&sftp, from_home(to), name).await?;
    let mode = match &present {
        Some(present) => present.permissions.map(|mode| mode & 0o7777),
        None => source.executable.then_some(0o755),
    };

    let tag = Uuid::new_v4().simple().to_string();
    let mut part = Part {
        sftp: Arc::clone(&sftp),
        path: format!("{to}.navi-{}.part", &tag[..8]),
        is_done: false,
    };
    let flags = OpenFlags::CREATE | OpenFlags::EXCLUDE | OpenFlags::WRITE;
    let file = sftp.open_with_flags(&part.path, flags).await;
    let mut file = file.map_err(|error| fault(&to, &error))?;
    send(source, &mut file, (name, &to), live).await?;
    if let Some(mode) = mode {
        let attributes = FileAttributes {
            permissions: Some(mode),
            ..FileAttributes::empty()
        };
        let set = sftp.set_metadata(&part.path, attributes).await;
        set.map_err(|error| fault(&to, &error))?;
    }
    // SFTP's own rename replaces nothing, OpenSSH's does.
    if present.is_some() {
        replace(connection, &part.path, &to).await?;
    } else {
        let renamed = sftp.rename(&part.path, &to).await;
        renamed.map_err(|error| fault(&to, &error))?;
    }
    part.is_done = true;
    let _ = sftp.close().await;
    Ok(to)
}

/// Sends as much as the file had when it was opened.
async fn send(
    source: Source,
    file: &mut File,
    (name, to): (&str, &str),
    live: &LiveOutput,
) -> ToolResult<()> {
    let changed = |error: io::Error| {
        refusal!(
            "`{name}` changed or could not be read while it was sent ({error}); nothing was changed on the host"
        )
    };
    let mut progress = Progress::new(live, source.size_bytes);
    let mut from = tokio::fs::File::from_std(source.file).take(source.size_bytes);
    let mut piece = BytesMut::with_capacity(PIECE_BYTES);
    while from.read_buf(&mut piece).await.map_err(changed)? > 0 {
        let sent = file.write_all(&piece).await;
        sent.map_err(|error| io_fault(to, error))?;
        progress.add(piece.len());
        piece.clear();
    }
    if progress.done < source.size_bytes {
        return Err(changed(io::ErrorKind::UnexpectedEof.into()));
    }
    let closed = file.shutdown().await;
    closed.map_err(|error| io_fault(to, error))
}

/// Where an upload goes: into the directory that `to` is, or to `to` itself; and what stands
/// there now.
async fn target(
    sftp: &SftpSession,
    to: &str,
    name: &str,
) -> ToolResult<(String, Option<FileAttributes>)> {
    let mut to = to.to_owned();
    let mut present = attributes(sftp, &to).await?;
    if to.ends_with('/') || present.as_ref().is_some_and(FileAttributes::is_dir) {
        to = format!("{}/{name}", to.trim_end_matches('/'));
        present = attributes(sftp, &to).await?;
    }
    match present {
        Some(present) if !present.is_regular() => {
            refuse!("`{to}` is no regular file on the host; choose another path")
        }
        present => Ok((to, present)),
    }
}

/// None where nothing is.
async fn attributes(sftp: &SftpSession, path: &str) -> ToolResult<Option<FileAttributes>> {
    match sftp.metadata(path).await {
        Ok(attributes) => Ok(Some(attributes)),
        Err(SftpError::Status(status)) if status.status_code == StatusCode::NoSuchFile => Ok(None),
        Err(error) => Err(fault(path, &error)),
    }
}

/// Fetches a file. Gives back its size.
pub(super) async fn download(
    channel: Channel<Msg>,
    from: &str,
    to: (Sink, &InnerPath),
    limit: u64,
    live: &LiveOutput,
) -> ToolResult<u64> {
    let (sink, path) = to;
    let from = from_home(from);
    let sftp = open_sftp(channel).await?;
    let Some(attributes) = attributes(&sftp, from).await? else {
        return Err(absent(from));
    };
    refuse_if!(
        attributes.is_dir(),
        "`{from}` is a directory; pack it into one file there first"
    );
    let size = attributes.size.unwrap_or(0);
    if size > limit {
        return Err(too_large(from, size, limit));
    }
    let file = sftp.open(from).await;
    let mut file = file.map_err(|error| fault(from, &error))?;
    let mut progress = Progress::new(live, size);
    loop {
        let mut piece = BytesMut::with_capacity(PIECE_BYTES);
        let read = file.read_buf(&mut piece).await;
        if read.map_err(|error| io_fault(from, error))? == 0 {
            break;
        }
        progress.add(piece.len());
        // What a host says of a size is a claim, and files grow.
        if progress.done > limit {
            return Err(too_large(from, progress.done, limit));
        }
        if !sink.put(piece.freeze()).await {
            break;
        }
    }
    let stored = sink.finish().await;
    stored.map_err(|error| refusal!("`{path}` was not stored: {}", error.0))?;
    let _ = sftp.close().await;
    Ok(progress.done)
}

/// A file on the host that is not whole yet. Dropped before it has its name, it is removed.
struct Part {
    sftp: Arc<SftpSession>,
    path: String,
    is_done: bool,
}

/// On a channel of its own, since a session for files has no way to say this.
async fn replace(connection: &Connection, from: &str, to: &str) -> ToolResult<()> {
    let wrong = |error: SftpError| fault(to, &error);
    let channel = connection.channel().await.map_err(|_| no_sftp())?;
    let raw = RawSftpSession::new_with_config(subsystem(channel).await?, sftp_config());
    raw.init().await.map_err(wrong)?;
    let names = to_bytes(&(from, to)).map_err(|error| wrong(error.into()))?;
    let answer = raw.extended("posix-rename@openssh.com", names.into()).await;
    let _ = raw.close_session();
    match answer.map_err(wrong)? {
        Packet::Status(status) if status.status_code == StatusCode::Ok => Ok(()),
        Packet::Status(status) if status.status_code != StatusCode::OpUnsupported => {
            Err(wrong(status.into()))
        }
        _ => refuse!(
            "`{to}` is there already, and the host cannot replace it in one step; upload to another path and move it there by a command"
        ),
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let (sftp, path) = (Arc::clone(&self.sftp), std::mem::take(&mut self.path));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // It may not be there yet, or not be reachable any more.
                let _ = timeout(TIDY_TIME, sftp.remove_file(path)).await;
            });
        }
    }
}

/// Says how far a transfer is, now and then.
struct Progress<'a> {
    live: &'a LiveOutput,
    total: u64,
    done: u64,
    told: Instant,
}

impl<'a> Progress<'a> {
    fn new(live: &'a LiveOutput, total: u64) -> Self {
        Self {
            live,
            total,
            done: 0,
            told: Instant::now(),
        }
    }

    fn add(&mut self, bytes: usize) {
        self.done += bytes as u64;
        if self.told.elapsed() >= PROGRESS_PAUSE || self.done == self.total {
            self.told = Instant::now();
            self.live.push(&format!(
                "{} of {}\n",
                human_size(self.done),
                human_size(self.total)
            ));
        }
    }
}

fn sftp_config() -> Config {
    Config {
        request_timeout_secs: ANSWER_SECONDS,
        ..Config::default()
    }
}

async fn open_sftp(channel: Channel<Msg>) -> ToolResult<SftpSession> {
    let stream = subsystem(channel).await?;
    SftpSession::new_with_config(stream, sftp_config())
        .await
        .map_err(|_| no_sftp())
}

async fn subsystem(mut channel: Channel<Msg>) -> ToolResult<ChannelStream<Msg>> {
    let answer = timeout(SUBSYSTEM_TIME, async {
        channel.request_subsystem(true, "sftp").await.ok()?;
        loop {
            match channel.wait().await? {
                ChannelMsg::Success => return Some(()),
                ChannelMsg::Failure | ChannelMsg::Close | ChannelMsg::Eof => return None,
                _ => {}
            }
        }
    });
    match answer.await {
        Ok(Some(())) => Ok(channel.into_stream()),
        Ok(None) | Err(_) => Err(no_sftp()),
    }
}

fn no_sftp() -> ToolError {
    refusal!("the host offers no SFTP to this user, so files cannot be transferred; tell the user")
}

fn absent(path: &str) -> ToolError {
    refusal!("`{path}`, or its directory, does not exist on the host")
}

fn io_fault(path: &str, error: io::Error) -> ToolError {
    match error.downcast::<SftpError>() {
        Ok(error) => fault(path, &error),
        Err(error) => refusal!("`{path}` was not transferred: {error}"),
    }
}

/// By the status alone: the text that a host adds is its own, and would stand here unmarked.
fn fault(path: &str, error: &SftpError) -> ToolError {
    let reason = match error {
        SftpError::Status(status) => match status.status_code {
            StatusCode::NoSuchFile => return absent(path),
            StatusCode::PermissionDenied => "the user may not do that there",
            StatusCode::OpUnsupported => "the host cannot do that",
            StatusCode::NoConnection | StatusCode::ConnectionLost => "the connection was lost",
            _ => {
                "the host refused, and did not say why (a full disk, or a path that is a directory)"
            }
        },
        SftpError::Timeout => "the host did not answer in time",
        SftpError::IO(_) => "the connection was lost",
        _ => "the host does not keep to the SFTP protocol",
    };
    refusal!("`{path}` on the host: {reason}")
}
