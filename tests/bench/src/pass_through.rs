//! The limit: a server that forwards a model's events to a WebSocket and does nothing else.
//!
//! `navi-bench pass-through` runs it, in a process of its own as what it is compared with. Each
//! text message is a line of the benchmark: it is put into a request to the model server, and each
//! event of the answer becomes a frame. A binary message is a whole request, into which the next
//! lines are put in the place of its own: a conversation, held in memory. One that asks to watch
//! is told from then on what all others are told. Programs get the same by requests
//! (`by_request`).

mod by_request;

use std::io::{self, Read as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;

use anyhow::{Context as _, Result};
use bytes::{Buf, Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use crate::http::{Body, Chunks, read_head};
use crate::model::{MODEL, Protocol};
use crate::script::{Rate, Script};

/// Asks to watch, and says that it is done.
pub(crate) const WATCH: &str = "watch";
/// Frames that one who watches may be behind.
const BEHIND: usize = 4096;

const HEALTH: &[u8] = b"GET /health ";
/// How a socket begins.
const SOCKET: &[u8] = b"GET / ";
const HEALTHY: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";

/// What is read at once of a model server's answer.
const READ_BYTES: usize = 32 * 1024;
/// Of each socket, kept for as long as it is open.
const SOCKET_BUFFER_BYTES: usize = 8 * 1024;

/// Where it listens and what it asks.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Settings {
    #[arg(long)]
    pub(crate) port: u16,
    #[arg(long)]
    pub(crate) model: SocketAddr,
    #[arg(long)]
    pub(crate) protocol: Protocol,
}

/// Serves until standard input ends, so that it never outlives what started it.
///
/// # Errors
/// The port is taken.
pub(crate) fn run(settings: Settings) -> Result<()> {
    std::thread::spawn(|| {
        let mut rest = [0; 64];
        while matches!(io::stdin().read(&mut rest), Ok(1..)) {}
        std::process::exit(0);
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, settings.port))
            .await
            .with_context(|| format!("port {}", settings.port))?;
        let told = broadcast::Sender::new(BEHIND);
        loop {
            let (stream, _) = listener.accept().await?;
            // A client that goes away is an error of its connection, and of nobody else.
            let told = told.clone();
            tokio::spawn(async move { serve(stream, settings, told).await });
        }
    })
}

async fn serve(
    mut stream: TcpStream,
    settings: Settings,
    told: broadcast::Sender<Utf8Bytes>,
) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut begin = [0; HEALTH.len()];
    stream.peek(&mut begin).await?;
    if begin == HEALTH {
        // Closed with a request unread, a connection is reset, and its answer lost.
        read_head(&mut stream, &mut BytesMut::new()).await?;
        return Ok(stream.write_all(HEALTHY).await?);
    }
    if !begin.starts_with(SOCKET) {
        return by_request::serve(stream, settings, told).await;
    }
    let config = WebSocketConfig::default().read_buffer_size(SOCKET_BUFFER_BYTES);
    let accepted = tokio_tungstenite::accept_async_with_config(stream, Some(config));
    let mut socket = accepted.await?;
    let mut upstream = Upstream::connect(settings, told.clone()).await?;
    while let Some(message) = socket.next().await {
        match message? {
            Message::Text(line) if line == WATCH => {
                return watch(socket, told.subscribe()).await;
            }
            Message::Text(line) => {
                upstream.ask(line.into()).await?;
                upstream.forward(&mut socket).await?;
            }
            Message::Binary(request) => upstream.request = Request::of(request),
            Message::Close(_) => break,
            _ => {}
        }
    }
    Ok(())
}

async fn watch(
    mut socket: WebSocketStream<TcpStream>,
    mut told: broadcast::Receiver<Utf8Bytes>,
) -> Result<()> {
    socket.send(Message::text(WATCH)).await?;
    loop {
        socket.send(Message::Text(told.recv().await?)).await?;
    }
}

/// Who is told a model's events.
trait Downstream {
    async fn feed(&mut self, event: Utf8Bytes) -> Result<()>;
    /// Sends what it was fed.
    async fn flush(&mut self) -> Result<()>;
}

impl Downstream for WebSocketStream<TcpStream> {
    async fn feed(&mut self, event: Utf8Bytes) -> Result<()> {
        Ok(SinkExt::feed(self, Message::Text(event)).await?)
    }

    async fn flush(&mut self) -> Result<()> {
        Ok(SinkExt::flush(self).await?)
    }
}

/// A request, and where its line stands.
#[derive(Debug)]
struct Request {
    body: Bytes,
    place: Range<usize>,
}

impl Request {
    fn of(body: Bytes) -> Self {
        let end = body.len();
        let place = Script::find(&body).map_or(end..end, |(_, place)| place);
        Self { body, place }
    }

    /// The shortest: the line is the only message.
    fn short() -> Self {
        let line = Script::new(1, Rate::Joined);
        let messages = format!(r#"[{{"role":"user","content":"{line}"}}]"#);
        let body = format!(r#"{{"model":"{MODEL}","messages":{messages},"stream":true}}"#);
        Self::of(body.into())
    }
}

/// A connection to the model server.
#[derive(Debug)]
struct Upstream {
    stream: TcpStream,
    settings: Settings,
    request: Request,
    raw: BytesMut,
    /// To those who watch.
    told: broadcast::Sender<Utf8Bytes>,
}

impl Upstream {
    async fn connect(settings: Settings, told: broadcast::Sender<Utf8Bytes>) -> Result<Self> {
        let stream = TcpStream::connect(settings.model).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            settings,
            request: Request::short(),
            raw: BytesMut::with_capacity(READ_BYTES),
            told,
        })
    }

    async fn ask(&mut self, line: Bytes) -> Result<()> {
        let Request { body, place } = &self.request;
        let length = body.len() - place.len() + line.len();
        let head = format!(
            "POST {} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n",
            self.settings.protocol.path(),
            self.settings.model,
        );
        let before = Buf::chain(head.as_bytes(), &body[..place.start]);
        let after = Buf::chain(&line[..], &body[place.end..]);
        let mut request = Buf::chain(before, after);
        self.stream.write_all_buf(&mut request).await?;
        Ok(())
    }

    /// A frame for each event (a line that is not empty), those that came together in one write.
    async fn forward(&mut self, to: &mut impl Downstream) -> Result<()> {
        let head = read_head(&mut self.stream, &mut self.raw).await?;
        head.context("the model server has gone away")?;
        let mut chunks = Chunks::default();
        let mut body = BytesMut::with_capacity(READ_BYTES);
        loop {
            let state = chunks.take(&mut self.raw, &mut body)?;
            while let Some(end) = memchr::memchr(b'\n', &body) {
                let event = body.split_to(end + 1).freeze().slice(..end);
                if !event.is_empty() {
                    let event = Utf8Bytes::try_from(event)?;
                    if self.told.receiver_count() > 0 {
                        self.told.send(event.clone())?;
                    }
                    to.feed(event).await?;
                }
            }
            to.flush().await?;
            if state == Body::Ended {
                return Ok(());
            }
            self.raw.reserve(READ_BYTES);
            if self.stream.read_buf(&mut self.raw).await? == 0 {
                anyhow::bail!("the model server ended in mid-answer");
            }
        }
    }
}
