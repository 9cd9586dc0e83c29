//! Files to and from a host, by SFTP. A file appears under its name once it is whole.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use russh::client::Msg;
use russh::{Channel, ChannelMsg, ChannelStream};
use russh_sftp::client::error::Error as SftpError;
use russh_sftp::client::{Config, RawSftpSession, SftpSession};
use russh_sftp::protocol::{FileAttributes, OpenFlags, Packet, StatusCode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use super::connection::Connection;
use super::files::{LocalPath, Sink, Source, too_large};
use crate::domain::unseen::is_moving;
use crate::tools::output::{human_size, shortened};
use crate::tools::{LiveOutput, ToolError};

/// How long a host may take for each answer.
const ANSWER_SECONDS: u64 = 30;
const SUBSYSTEM_TIME: Duration = Duration::from_secs(15);
/// How long tidying up after a transfer that was given up may take.
const TIDY_TIME: Duration = Duration::from_secs(5);
/// As many bytes as are read at once.
const PIECE_BYTES: usize = 128 * 1024;
/// As many bytes as a path there has.
const MAX_PATH_BYTES: usize = 4_096;
/// Between two words on how far a transfer is.
const PROGRESS_PAUSE: Duration = Duration::from_secs(1);

/// A path on the host: absolute, or from the user's home there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RemotePath(String);

impl RemotePath {
    pub(super) fn parse(text: &str) -> Result<Self, ToolError> {
        let path = text.strip_prefix("~/").unwrap_or(text);
        if path.is_empty() || path.len() > MAX_PATH_BYTES || path.chars().any(is_moving) {
            return Err(ToolError(format!(
                "`{}` is no path on the host; give one such as /var/log/syslog, or one from the user's home there",
                shortened(text, 120)
            )));
        }
        Ok(Self(path.to_owned()))
    }

    fn shown(&self) -> &str {
        &self.0
    }

    fn beside(&self) -> String {
        let tag = Uuid::new_v4().simple().to_string();
        format!("{}.navi-{}.part", self.0, &tag[..8])
    }
}

/// Sends a file. Gives back where it stands.
pub(super) async fn upload(
    (connection, channel): (&Connection, Channel<Msg>),
    name: &str,
    source: Source,
    to: RemotePath,
    live: &LiveOutput,
) -> Result<String, ToolError> {
    let sftp = Arc::new(open_sftp(channel).await?);
    let (to, present) = target(&sftp, to, name).await?;
    let size = source.size_bytes;
    let mode = match &present {
        Some(present) => present.permissions.map(|mode| mode & 0o7777),
        None => source.executable.then_some(0o755),
    };

    let part = Part::new(Arc::clone(&sftp), to.beside());
    let flags = OpenFlags::CREATE | OpenFlags::EXCLUDE | OpenFlags::WRITE;
    let mut file = sftp
        .open_with_flags(part.path(), flags)
        .await
        .map_err(|error| fault(&to, &error))?;
    let mut progress = Progress::new(live, size);
    let mut pieces = source.pieces();
    while let Some(piece) = pieces.recv().await {
        let piece = piece.map_err(|error| {
            ToolError(format!(
                "`{name}` changed or could not be read while it was sent ({error}); nothing was changed on the host"
            ))
        })?;
        file.write_all(&piece)
            .await
            .map_err(|error| io_fault(&to, error))?;
        progress.add(piece.len());
    }
    file.shutdown()
        .await
        .map_err(|error| io_fault(&to, error))?;
    if let Some(mode) = mode {
        let attributes = FileAttributes {
            permissions: Some(mode),
            ..FileAttributes::empty()
        };
        sftp.set_metadata(part.path(), attributes)
            .await
            .map_err(|error| fault(&to, &error))?;
    }
    part.rename(connection, &to, present.is_some()).await?;
    let _ = sftp.close().await;
    Ok(to.0)
}

/// Where an upload goes: into the directory that `to` is, or to `to` itself; and what stands
/// there now.
async fn target(
    sftp: &SftpSession,
    to: RemotePath,
    name: &str,
) -> Result<(RemotePath, Option<FileAttributes>), ToolError> {
    let mut to = to;
    let mut present = attributes(sftp, &to).await?;
    if to.0.ends_with('/') || present.as_ref().is_some_and(FileAttributes::is_dir) {
        to = RemotePath(format!("{}/{name}", to.0.trim_end_matches('/')));
        present = attributes(sftp, &to).await?;
    }
    match present {
        Some(present) if !present.is_regular() => Err(ToolError(format!(
            "`{}` is no regular file on the host; choose another path",
            to.shown()
        ))),
        present => Ok((to, present)),
    }
}

/// None where nothing is.
async fn attributes(
    sftp: &SftpSession,
    path: &RemotePath,
) -> Result<Option<FileAttributes>, ToolError> {
    match sftp.metadata(path.shown()).await {
        Ok(attributes) => Ok(Some(attributes)),
        Err(SftpError::Status(status)) if status.status_code == StatusCode::NoSuchFile => Ok(None),
        Err(error) => Err(fault(path, &error)),
    }
}

/// Fetches a file. Gives back its size.
pub(super) async fn download(
    channel: Channel<Msg>,
    from: &RemotePath,
    to: (Sink, &LocalPath),
    limit: u64,
    live: &LiveOutput,
) -> Result<u64, ToolError> {
    let (sink, path) = to;
    let sftp = open_sftp(channel).await?;
    let Some(attributes) = attributes(&sftp, from).await? else {
        return Err(absent(from));
    };
    if attributes.is_dir() {
        return Err(ToolError(format!(
            "`{}` is a directory; pack it into one file there first",
            from.shown()
        )));
    }
    let size = attributes.size.unwrap_or(0);
    if size > limit {
        return Err(too_large(from.shown(), size, limit));
    }
    let mut file = sftp
        .open(from.shown())
        .await
        .map_err(|error| fault(from, &error))?;
    let mut progress = Progress::new(live, size);
    let mut received = 0_u64;
    loop {
        let mut piece = BytesMut::with_capacity(PIECE_BYTES);
        let count = file
            .read_buf(&mut piece)
            .await
            .map_err(|error| io_fault(from, error))?;
        if count == 0 {
            break;
        }
        received += count as u64;
        // What a host says of a size is a claim, and files grow.
        if received > limit {
            return Err(too_large(from.shown(), received, limit));
        }
        progress.add(count);
        if !sink.put(Bytes::from(piece)).await {
            break;
        }
    }
    sink.finish()
        .await
        .map_err(|error| ToolError(format!("`{}` was not stored: {}", path.shown(), error.0)))?;
    let _ = sftp.close().await;
    Ok(received)
}

/// A file on the host that is not whole yet. Dropped before it has its name, it is removed.
struct Part {
    sftp: Arc<SftpSession>,
    path: String,
    is_done: bool,
}

impl Part {
    fn new(sftp: Arc<SftpSession>, path: String) -> Self {
        Self {
            sftp,
            path,
            is_done: false,
        }
    }

    fn path(&self) -> &str {
        &self.path
    }

    /// Puts the file in its place. SFTP's own rename replaces nothing, OpenSSH's does.
    async fn rename(
        mut self,
        connection: &Connection,
        to: &RemotePath,
        replaces: bool,
    ) -> Result<(), ToolError> {
        if !replaces {
            let renamed = self.sftp.rename(&self.path, to.shown()).await;
            self.is_done = renamed.is_ok();
            return renamed.map_err(|error| fault(to, &error));
        }
        let channel = connection.channel().await.map_err(|_| no_sftp())?;
        let raw = RawSftpSession::new_with_config(subsystem(channel).await?, sftp_config());
        raw.init().await.map_err(|error| fault(to, &error))?;
        let string = |text: &str| {
            let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
            [&length.to_be_bytes(), text.as_bytes()].concat()
        };
        let names = [string(&self.path), string(to.shown())].concat();
        let answer = raw.extended("posix-rename@openssh.com", names).await;
        let _ = raw.close_session();
        match answer {
            Ok(Packet::Status(status)) if status.status_code == StatusCode::Ok => {
                self.is_done = true;
                Ok(())
            }
            Ok(Packet::Status(status)) if status.status_code != StatusCode::OpUnsupported => {
                Err(fault(to, &SftpError::Status(status)))
            }
            Ok(_) => Err(ToolError(format!(
                "`{}` is there already, and the host cannot replace it in one step; upload to another path and move it there by a command",
                to.shown()
            ))),
            Err(error) => Err(fault(to, &error)),
        }
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

async fn open_sftp(channel: Channel<Msg>) -> Result<SftpSession, ToolError> {
    let stream = subsystem(channel).await?;
    SftpSession::new_with_config(stream, sftp_config())
        .await
        .map_err(|_| no_sftp())
}

async fn subsystem(mut channel: Channel<Msg>) -> Result<ChannelStream<Msg>, ToolError> {
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
    ToolError(
        "the host offers no SFTP to this user, so files cannot be transferred; tell the user"
            .to_owned(),
    )
}

fn absent(path: &RemotePath) -> ToolError {
    ToolError(format!(
        "`{}`, or its directory, does not exist on the host",
        path.shown()
    ))
}

fn io_fault(path: &RemotePath, error: std::io::Error) -> ToolError {
    let shown = error.to_string();
    match error
        .into_inner()
        .map(|inner| inner.downcast::<SftpError>())
    {
        Some(Ok(error)) => fault(path, &error),
        _ => ToolError(format!("`{}` was not transferred: {shown}", path.shown())),
    }
}

/// By the status alone: the text that a host adds is its own, and would stand here unmarked.
fn fault(path: &RemotePath, error: &SftpError) -> ToolError {
    let shown = path.shown();
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
    ToolError(format!("`{shown}` on the host: {reason}"))
}
