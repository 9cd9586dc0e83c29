//! Standard input and output as lines of the protocol, and room for what is on its way.

use std::fs::File as Handle;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use agent_client_protocol::{ConnectTo, Lines};
use futures_util::{StreamExt as _, sink};
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::Semaphore;
use tokio_util::codec::{FramedRead, LinesCodec};

/// A prompt with its images; the service takes no larger message.
const MAX_LINE_BYTES: usize = 128 * 1024 * 1024;
/// As many lines wait for a client that does not read.
const ROOM: usize = 256;

/// How much may be sent before the client has read what was sent. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Room(Arc<Semaphore>);

impl Room {
    fn new() -> Self {
        Self(Arc::new(Semaphore::new(ROOM)))
    }

    /// Waits until there is room for a line. The library keeps what is sent without a bound.
    pub(super) async fn take(&self) {
        if let Ok(place) = self.0.acquire().await {
            place.forget();
        }
    }

    /// A line was written. Some of them took no room: answers, which wait for nobody.
    fn give(&self) {
        if self.0.available_permits() < ROOM {
            self.0.add_permits(1);
        }
    }
}

/// Both ends, as the library takes them. Nothing else may write to standard output.
///
/// # Errors
/// One of them is closed.
pub(super) fn stdio<R: agent_client_protocol::Role>()
-> io::Result<(impl ConnectTo<R> + 'static, Room)> {
    let lines = LinesCodec::new_with_max_length(MAX_LINE_BYTES);
    let incoming = FramedRead::new(file(io::stdin())?, lines);
    let incoming = incoming.map(|line| line.map_err(io::Error::other));
    let room = Room::new();
    let written = room.clone();
    let outgoing = sink::unfold(file(io::stdout())?, move |mut out, mut line: String| {
        let written = written.clone();
        async move {
            line.push('\n');
            out.write_all(line.as_bytes()).await?;
            out.flush().await?;
            written.give();
            Ok::<_, io::Error>(out)
        }
    });
    Ok((Lines::new(outgoing, incoming), room))
}

/// The same open file without the standard library's own buffer and lock.
fn file(stream: impl AsFd) -> io::Result<File> {
    Ok(File::from_std(Handle::from(
        stream.as_fd().try_clone_to_owned()?,
    )))
}
