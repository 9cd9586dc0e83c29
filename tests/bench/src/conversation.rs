//! A conversation as a tab has it: a line is sent, and frames are read until its answer's end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use memchr::memmem;
use serde_json::json;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use crate::http::Identity;
use crate::pass_through::WATCH;
use crate::script::Script;
use crate::stamp::{self, Stamp};

/// How long an answer may take beyond its own pace: only what is broken ever sees its end.
const PATIENCE: Duration = Duration::from_secs(60);

const SOCKET_BUFFER_BYTES: usize = 32 * 1024;

/// How a server's frames are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Events of Navi's wire.
    Navi,
    /// Events of a model server, as they are.
    PassThrough,
}

/// A WebSocket to a server that is measured.
#[derive(Debug)]
pub(crate) struct Conversation {
    socket: WebSocketStream<TcpStream>,
    dialect: Dialect,
    heard: Heard,
}

/// How many tokens were told so far, to one conversation or to several together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard(Arc<AtomicU64>);

impl Heard {
    pub(crate) fn tokens(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, more: usize) {
        self.0.fetch_add(more as u64, Ordering::Relaxed);
    }
}

/// A turn as its client saw it.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) sent: Instant,
    /// When the first token was there.
    pub(crate) began: Option<Instant>,
    /// When the end of the answer was there.
    pub(crate) ended: Instant,
    /// Of each token: how long it was under way, in milliseconds.
    pub(crate) delays: Vec<f64>,
}

/// What a frame is to a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Tokens,
    End,
    Failure,
    Other,
}

impl Conversation {
    /// Opens a socket.
    ///
    /// # Errors
    /// Nobody is there, or the upgrade is refused.
    pub(crate) async fn open(
        address: SocketAddr,
        path: &str,
        identity: &Identity,
        dialect: Dialect,
    ) -> Result<Self> {
        let mut request = format!("ws://{address}{path}").into_client_request()?;
        for (name, value) in identity.headers() {
            request.headers_mut().insert(name, value.parse()?);
        }
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let config = WebSocketConfig::default().read_buffer_size(SOCKET_BUFFER_BYTES);
        let opened =
            tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await;
        let (socket, _) = opened.with_context(|| format!("no socket at {path}"))?;
        Ok(Self {
            socket,
            dialect,
            heard: Heard::default(),
        })
    }

    /// The same, counted together with others.
    pub(crate) fn counted_in(self, heard: &Heard) -> Self {
        let heard = heard.clone();
        Self { heard, ..self }
    }

    /// Gives the pass-through a whole request, in which the next lines take their place.
    ///
    /// # Errors
    /// The socket is closed.
    pub(crate) async fn hold(&mut self, request: Bytes) -> Result<()> {
        Ok(self.socket.send(Message::Binary(request)).await?)
    }

    /// Has the pass-through tell it what others are told, from when this is done.
    ///
    /// # Errors
    /// The socket is closed.
    pub(crate) async fn watch(&mut self) -> Result<()> {
        self.socket.send(Message::text(WATCH)).await?;
        let said = self.socket.next().await;
        said.context("the socket was closed")??;
        Ok(())
    }

    /// Sends a line, and reads its answer to the end.
    ///
    /// # Errors
    /// The server fails, closes the socket, or does not tell all tokens in time.
    pub(crate) async fn turn(&mut self, script: Script) -> Result<Turn> {
        let sent = Instant::now();
        self.send(script).await?;
        self.hear(script, sent).await
    }

    /// Sends a line.
    ///
    /// # Errors
    /// The socket is closed.
    pub(crate) async fn send(&mut self, script: Script) -> Result<()> {
        let line = script.to_string();
        let text = match self.dialect {
            // As the page sends one: it can be sent again.
            Dialect::Navi => {
                let client_id = format!("bench-{}", script.id);
                json!({"type": "message", "content": line, "client_id": client_id}).to_string()
            }
            Dialect::PassThrough => line,
        };
        Ok(self.socket.send(Message::text(text)).await?)
    }

    /// Reads an answer to its end, whoever sent the line.
    ///
    /// # Errors
    /// The server fails, closes the socket, or does not tell all tokens in time.
    pub(crate) async fn hear(&mut self, script: Script, sent: Instant) -> Result<Turn> {
        let limit = PATIENCE + script.duration();
        let heard = tokio::time::timeout(limit, self.read_turn(script, sent));
        heard
            .await
            .with_context(|| format!("no end of an answer within {limit:?} ({script})"))?
    }

    async fn read_turn(&mut self, script: Script, sent: Instant) -> Result<Turn> {
        let mut delays = Vec::with_capacity(script.tokens as usize);
        let mut began = None;
        loop {
            let message = self
                .socket
                .next()
                .await
                .context("the socket was closed")??;
            let frame = match &message {
                Message::Text(frame) => frame.as_bytes(),
                Message::Close(reason) => bail!("the socket was closed: {reason:?}"),
                _ => continue,
            };
            match self.dialect.kind(frame) {
                Kind::Tokens => {
                    let now = Stamp::now();
                    began.get_or_insert_with(Instant::now);
                    let before = delays.len();
                    delays.extend(stamp::stamps(frame).map(|stamp| stamp.until_ms(now)));
                    self.heard.add(delays.len() - before);
                }
                Kind::End => {
                    let ended = Instant::now();
                    // A tab that lagged is told the rest by the whole content at the end.
                    let told = delays.len().max(stamp::count(frame));
                    if told != script.tokens as usize {
                        bail!("{told} tokens were told of {script}");
                    }
                    return Ok(Turn {
                        sent,
                        began,
                        ended,
                        delays,
                    });
                }
                Kind::Failure => bail!("it failed: {}", String::from_utf8_lossy(frame)),
                Kind::Other => {}
            }
        }
    }
}

impl Dialect {
    fn kind(self, frame: &[u8]) -> Kind {
        match self {
            Self::Navi => {
                const TYPE: &[u8] = b"\"type\":\"";
                let begin = memmem::find(frame, TYPE).map_or(frame.len(), |at| at + TYPE.len());
                let rest = &frame[begin..];
                match &rest[..memchr::memchr(b'"', rest).unwrap_or(0)] {
                    b"stream_delta" => Kind::Tokens,
                    b"stream_end" => Kind::End,
                    b"error" | b"stream_stopped" | b"run_interrupted" | b"resync" => Kind::Failure,
                    _ => Kind::Other,
                }
            }
            Self::PassThrough if frame == b"data: [DONE]" => Kind::End,
            Self::PassThrough if memmem::find(frame, b"\"done\":true").is_some() => Kind::End,
            Self::PassThrough if stamp::count(frame) > 0 => Kind::Tokens,
            Self::PassThrough => Kind::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_known_by_its_type_and_not_by_what_it_quotes() {
        let at = r#""run_id":"0","at":"2026-01-01T00:00:00Z""#;
        let quoting = r#""content":"\"type\":\"stream_end\"""#;
        for (frame, kind) in [
            (
                format!(r#"{{{at},"type":"stream_delta","delta":"x"}}"#),
                Kind::Tokens,
            ),
            (
                format!(r#"{{"seq":3,{at},"type":"stream_end",{quoting}}}"#),
                Kind::End,
            ),
            (
                format!(r#"{{"seq":3,{at},"type":"message_accepted",{quoting}}}"#),
                Kind::Other,
            ),
            (
                format!(r#"{{{at},"type":"error","message":"x"}}"#),
                Kind::Failure,
            ),
            ("{}".to_owned(), Kind::Other),
        ] {
            assert_eq!(Dialect::Navi.kind(frame.as_bytes()), kind, "{frame}");
        }
    }

    #[test]
    fn a_models_event_is_known_by_its_token_or_its_end() {
        for (frame, kind) in [
            (
                r#"data: {"choices":[{"delta":{"content":"~000000 "}}]}"#,
                Kind::Tokens,
            ),
            (
                r#"{"message":{"content":"~000000 "},"done":false}"#,
                Kind::Tokens,
            ),
            (r#"{"message":{"content":""},"done":true}"#, Kind::End),
            ("data: [DONE]", Kind::End),
            (r#"data: {"choices":[],"usage":{}}"#, Kind::Other),
        ] {
            assert_eq!(Dialect::PassThrough.kind(frame.as_bytes()), kind, "{frame}");
        }
    }
}
