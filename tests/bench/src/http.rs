//! HTTP/1.1 as far as a benchmark needs it, on bare sockets: a library would be a part of what is
//! measured.

use std::io;
use std::net::SocketAddr;

use anyhow::{Context as _, Result, bail};
use bytes::{Bytes, BytesMut};
use memchr::memmem;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The longest head and the longest body that anybody here sends.
const MAX_HEAD_BYTES: usize = 64 * 1024;
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// A request as a server has it.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: Bytes,
}

/// The next request of a connection, none at its end. What was read beyond it stays in `buffer`.
///
/// # Errors
/// Those of the socket; `InvalidData` where it is no request, or too long.
pub(crate) async fn read_request(
    stream: &mut TcpStream,
    buffer: &mut BytesMut,
) -> io::Result<Option<Request>> {
    let Some(head) = read_head(stream, buffer).await? else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&head).map_err(|_| invalid("a head that is no text"))?;
    let mut words = head.split(' ');
    let (method, path) = (words.next(), words.next());
    let (Some(method), Some(path)) = (method, path) else {
        return Err(invalid("no request"));
    };
    let length = content_length(head).unwrap_or(0);
    if length > MAX_BODY_BYTES {
        return Err(invalid("a body that is too long"));
    }
    buffer.reserve(length.saturating_sub(buffer.len()));
    while buffer.len() < length {
        if stream.read_buf(buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(Some(Request {
        method: method.to_owned(),
        path: path.to_owned(),
        body: buffer.split_to(length).freeze(),
    }))
}

/// A head with the empty line at its end, none where the connection ended before it.
///
/// # Errors
/// Those of the socket; `InvalidData` where it is too long.
pub(crate) async fn read_head(
    stream: &mut TcpStream,
    buffer: &mut BytesMut,
) -> io::Result<Option<Bytes>> {
    loop {
        if let Some(at) = memmem::find(buffer, b"\r\n\r\n") {
            return Ok(Some(buffer.split_to(at + 4).freeze()));
        }
        if buffer.len() > MAX_HEAD_BYTES {
            return Err(invalid("a head that is too long"));
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

fn content_length(head: &str) -> Option<usize> {
    head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_it = name.eq_ignore_ascii_case("content-length");
        is_it.then(|| value.trim().parse().ok())?
    })
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The body of an answer, out of the chunks that it comes in.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    /// What is left of the chunk that was begun, with the two bytes that end it.
    left: usize,
}

/// Whether a body goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    GoesOn,
    Ended,
}

impl Chunks {
    /// Moves what has come of the body from `raw` to `body`.
    ///
    /// # Errors
    /// `InvalidData` where these are no chunks.
    pub(crate) fn take(&mut self, raw: &mut BytesMut, body: &mut BytesMut) -> io::Result<Body> {
        loop {
            if self.left > 0 {
                let piece = raw.split_to(self.left.min(raw.len()));
                let text = piece.len().min(self.left.saturating_sub(2));
                body.extend_from_slice(&piece[..text]);
                self.left -= piece.len();
                if self.left > 0 {
                    return Ok(Body::GoesOn);
                }
            }
            let Some(end) = memmem::find(raw, b"\r\n") else {
                return Ok(Body::GoesOn);
            };
            let size = std::str::from_utf8(&raw[..end]).unwrap_or_default();
            let size = usize::from_str_radix(size, 16).map_err(|_| invalid("no chunk's size"))?;
            if size == 0 {
                // The empty line behind the last chunk belongs to this answer.
                if raw.len() < end + 4 {
                    return Ok(Body::GoesOn);
                }
                let _ = raw.split_to(end + 4);
                return Ok(Body::Ended);
            }
            let _ = raw.split_to(end + 2);
            self.left = size + 2;
        }
    }
}

/// Who asks.
#[derive(Clone, Debug)]
pub(crate) enum Identity {
    Nobody,
    /// A script, by its bearer token.
    Token(String),
    /// A browser that followed a one-time link.
    Browser {
        origin: String,
        cookie: String,
        key: String,
    },
}

impl Identity {
    /// What says it, in a request and in a socket's upgrade alike.
    pub(crate) fn headers(&self) -> Vec<(&'static str, &str)> {
        match self {
            Self::Nobody => Vec::new(),
            Self::Token(bearer) => vec![("authorization", bearer)],
            Self::Browser {
                origin,
                cookie,
                key,
            } => vec![("origin", origin), ("cookie", cookie), ("x-navi-key", key)],
        }
    }
}

/// What a request asks of a server's REST interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) identity: &'a Identity,
    pub(crate) body: Option<&'a Value>,
}

impl<'a> Call<'a> {
    pub(crate) fn get(path: &'a str, identity: &'a Identity) -> Self {
        Self {
            method: "GET",
            path,
            identity,
            body: None,
        }
    }
}

/// An answer, whole.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) head: String,
    pub(crate) body: Bytes,
}

impl Answer {
    /// The value of a header.
    pub(crate) fn header(&self, sought: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case(sought).then(|| value.trim())
        })
    }

    /// Its JSON; null where it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

/// Asks on a connection of its own.
///
/// # Errors
/// Nobody is there, or the answer's status is an error's.
pub(crate) async fn call(address: SocketAddr, call: Call<'_>) -> Result<Answer> {
    let body = call.body.map(Value::to_string).unwrap_or_default();
    let Call {
        method,
        path,
        identity,
        ..
    } = call;
    let content = ("application/json", body.as_bytes());
    send(address, method, path, identity, content).await
}

/// Sends a file of so many bytes, and gives back what is said of it.
///
/// # Errors
/// As [`call`].
pub(crate) async fn upload(
    address: SocketAddr,
    path: &str,
    identity: &Identity,
    bytes: usize,
) -> Result<Answer> {
    let mut body = b"--part\r\ncontent-disposition: form-data; name=\"file\"; \
        filename=\"bench.txt\"\r\n\r\n"
        .to_vec();
    body.resize(body.len() + bytes, b'x');
    body.extend_from_slice(b"\r\n--part--\r\n");
    let content = ("multipart/form-data; boundary=part", &body[..]);
    send(address, "POST", path, identity, content).await
}

async fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    identity: &Identity,
    (content_type, body): (&str, &[u8]),
) -> Result<Answer> {
    let mut stream = TcpStream::connect(address).await?;
    let identity = identity.headers().into_iter();
    let identity: String = identity
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\n{identity}\
         content-type: {content_type}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let request = [head.as_bytes(), body].concat();
    stream.write_all(&request).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let end = memmem::find(&answer, b"\r\n\r\n").context("an answer without a head")?;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let body = Bytes::from(answer).slice(end + 4..);
    let status = head.split(' ').nth(1).unwrap_or_default();
    if !status.starts_with(['2', '3']) {
        let said = String::from_utf8_lossy(&body);
        bail!("{method} {path} is answered {status}: {said}");
    }
    Ok(Answer { head, body })
}

/// A connection that stays, on which one answer after the other is read as it comes.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    address: SocketAddr,
    raw: BytesMut,
    chunks: Chunks,
    /// Whether the answer goes on that was asked for last.
    state: Body,
    /// What came of the answer's body since it was forgotten the last time.
    body: BytesMut,
}

impl Connection {
    /// # Errors
    /// Nobody is there.
    pub(crate) async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            address,
            raw: BytesMut::new(),
            chunks: Chunks::default(),
            state: Body::Ended,
            body: BytesMut::new(),
        })
    }

    /// Asks for an answer that streams, and reads its head.
    ///
    /// # Errors
    /// Those of the socket; the answer's status is an error's.
    pub(crate) async fn get(&mut self, path: &str, identity: &Identity) -> Result<()> {
        self.ask("GET", path, identity, &[], "").await
    }

    /// The same, with a body.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(crate) async fn post(
        &mut self,
        path: &str,
        identity: &Identity,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Result<()> {
        let body = body.to_string();
        self.ask("POST", path, identity, headers, &body).await
    }

    async fn ask(
        &mut self,
        method: &str,
        path: &str,
        identity: &Identity,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<()> {
        let headers = identity
            .headers()
            .into_iter()
            .chain(headers.iter().copied());
        let headers: String = headers
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\n{headers}\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await?;
        let head = read_head(&mut self.stream, &mut self.raw).await?;
        let head = head.context("the connection was closed")?;
        (self.chunks, self.state) = (Chunks::default(), Body::GoesOn);
        if !head.starts_with(b"HTTP/1.1 200") {
            bail!("{method} {path}: {}", String::from_utf8_lossy(&head));
        }
        Ok(())
    }

    /// Reads until what came of the body holds this.
    ///
    /// # Errors
    /// Those of the socket; the answer ends before that.
    pub(crate) async fn until(&mut self, holds: impl Fn(&[u8]) -> bool) -> Result<()> {
        loop {
            if self.state == Body::GoesOn {
                self.state = self.chunks.take(&mut self.raw, &mut self.body)?;
            }
            if holds(&self.body) {
                return Ok(());
            }
            if self.state == Body::Ended || self.stream.read_buf(&mut self.raw).await? == 0 {
                let said = String::from_utf8_lossy(&self.body);
                bail!("the answer has ended: {said}");
            }
        }
    }

    /// Passes over what came of an answer that goes on, and what has come and is not read yet.
    ///
    /// # Errors
    /// Those of the socket; the answer has ended.
    pub(crate) fn pass_over(&mut self) -> Result<()> {
        loop {
            self.state = self.chunks.take(&mut self.raw, &mut self.body)?;
            self.body.clear();
            match self.stream.try_read_buf(&mut self.raw) {
                Ok(1..) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Ok(0) => bail!("the answer has ended"),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads the answer to its end.
    ///
    /// # Errors
    /// Those of the socket.
    pub(crate) async fn rest(&mut self) -> Result<()> {
        while self.state == Body::GoesOn {
            self.state = self.chunks.take(&mut self.raw, &mut self.body)?;
            if self.state == Body::GoesOn && self.stream.read_buf(&mut self.raw).await? == 0 {
                bail!("the connection was closed in mid-answer");
            }
        }
        self.body.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn a_body_comes_out_of_its_chunks_wherever_they_are_cut() {
        let raw = b"5\r\nhello\r\n10\r\n, wonderful days\r\n1\r\n!\r\n0\r\n\r\nHTTP";
        for size in 1..raw.len() {
            let (mut chunks, mut body) = (Chunks::default(), BytesMut::new());
            let (mut buffer, mut last) = (BytesMut::new(), Body::GoesOn);
            for piece in raw.chunks(size) {
                buffer.extend_from_slice(piece);
                if last == Body::GoesOn {
                    last = chunks.take(&mut buffer, &mut body).unwrap();
                }
            }
            assert_eq!(
                (last, &body[..]),
                (Body::Ended, &b"hello, wonderful days!"[..])
            );
            assert_eq!(&buffer[..], b"HTTP");
        }
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
        let mut raw = BytesMut::from(&b"data: x\r\n"[..]);
        assert!(
            Chunks::default()
                .take(&mut raw, &mut BytesMut::new())
                .is_err()
        );
    }

    #[test]
    fn a_length_is_found_in_any_case() {
        let head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\n\r\n";
        assert_eq!(content_length(head), Some(12));
        assert_eq!(content_length("GET / HTTP/1.1\r\n\r\n"), None);
    }
}
