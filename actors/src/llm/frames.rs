//! From a response's bytes to whole frames: one JSON text each, however the network cut them.
//!
//! A server that was asked for a stream may answer with one document, and the other way
//! round; some send events where lines are the rule. The first byte tells which it is, since
//! the `Content-Type` is wrong too often.
//!
//! Lines are cut here, once, for both protocols, so that everything after sees whole lines
//! only. That also keeps eventsource-stream on the paths where it is sound: fed with raw
//! bytes it panics on a byte order mark, waits for ever behind a byte that is no UTF-8, and
//! scans an unfinished line again with every chunk. It is given whole events, and none of one line
//! of data, as nearly all are.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::iter;
use std::pin::Pin;

use bytes::Bytes;
use eventsource_stream::EventStream;
use futures_util::{FutureExt, Stream, StreamExt, stream};
use memchr::memchr2;
use serde::de::IgnoredAny;

use super::LlmError;

/// The longest line of an event stream, and the longest event of several lines, that is taken.
pub(super) const MAX_FRAME_BYTES: usize = 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A response's body as it arrives.
pub(super) type ByteStream = Pin<Box<dyn Stream<Item = Result<Bytes, LlmError>> + Send>>;

/// A response's body as whole frames.
pub(super) type PayloadStream = Pin<Box<dyn Stream<Item = Result<Payload, LlmError>> + Send>>;

/// One thing that the server said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    Data(String),
    /// The server named it an error (`event: error`), whatever stands in it.
    Error(String),
}

/// Frames of an answer: events, JSON documents a line each, or one document over any number
/// of lines. A document is no longer than `max_document_bytes`.
pub(super) fn answer(mut bytes: ByteStream, max_document_bytes: usize) -> PayloadStream {
    let choose = async move {
        let mut head = Vec::new();
        loop {
            match first_meaningful(&head) {
                Some(b'{' | b'[') => return documents(replay(head, bytes), max_document_bytes),
                Some(b'<') => {
                    return failed(LlmError::Malformed {
                        message: "a web page; check the server's URL".to_owned(),
                    });
                }
                Some(_) => return sse(replay(head, bytes)),
                None if head.len() > MAX_FRAME_BYTES => return failed(too_long()),
                None => {}
            }
            match bytes.next().await {
                Some(Ok(chunk)) => head.extend_from_slice(&chunk),
                Some(Err(error)) => return failed(error),
                None => return Box::pin(stream::empty()) as PayloadStream,
            }
        }
    };
    Box::pin(stream::once(choose).flatten())
}

/// Frames of JSON documents: `application/x-ndjson`, or a whole answer.
fn documents(bytes: ByteStream, max_bytes: usize) -> PayloadStream {
    let limit = LineLimit {
        bytes: max_bytes,
        error: LlmError::ReplyTooLong {
            limit_bytes: max_bytes,
        },
    };
    let reader = DocumentReader {
        lines: Box::pin(lines(bytes, limit)),
        layout: Layout::Unknown,
        max_bytes,
    };
    Box::pin(stream::unfold(reader, |mut reader| async move {
        let frame = reader.next().await?;
        Some((frame, reader))
    }))
}

/// How the documents of a body are laid out.
#[derive(Debug)]
enum Layout {
    /// No line came yet.
    Unknown,
    OneALine,
    /// One document, of which these lines are here.
    OverLines(String),
    Ended,
}

struct DocumentReader {
    lines: Pin<Box<dyn Stream<Item = Result<Line, LlmError>> + Send>>,
    layout: Layout,
    max_bytes: usize,
}

impl DocumentReader {
    async fn next(&mut self) -> Option<Result<Payload, LlmError>> {
        loop {
            if matches!(self.layout, Layout::Ended) {
                return None;
            }
            let line = match self.lines.next().await {
                Some(Ok(line)) => line,
                Some(Err(error)) => {
                    self.layout = Layout::Ended;
                    return Some(Err(error));
                }
                None => {
                    return match std::mem::replace(&mut self.layout, Layout::Ended) {
                        Layout::OverLines(text) => Some(document(&text)),
                        Layout::Unknown | Layout::OneALine | Layout::Ended => None,
                    };
                }
            };
            let text = line.text.trim();
            match &mut self.layout {
                Layout::OverLines(document) => {
                    if document.len() + text.len() >= self.max_bytes {
                        self.layout = Layout::Ended;
                        return Some(Err(LlmError::ReplyTooLong {
                            limit_bytes: self.max_bytes,
                        }));
                    }
                    document.push('\n');
                    document.push_str(&line.text);
                }
                _ if text.is_empty() => {}
                layout @ Layout::Unknown if line.whole && is_cut_off(text) => {
                    *layout = Layout::OverLines(text.to_owned());
                }
                layout @ Layout::Unknown => {
                    *layout = if line.whole {
                        Layout::OneALine
                    } else {
                        Layout::Ended
                    };
                    return Some(document(text));
                }
                Layout::OneALine if line.whole || is_json(text) => {
                    return Some(Ok(Payload::Data(text.to_owned())));
                }
                // The end of the body cut it off.
                Layout::OneALine | Layout::Ended => {}
            }
        }
    }
}

fn document(text: &str) -> Result<Payload, LlmError> {
    let text = text.trim();
    if is_cut_off(text) {
        return Err(LlmError::EndedEarly);
    }
    Ok(Payload::Data(text.to_owned()))
}

/// Frames of `text/event-stream`. Comments and empty events are no frames. An event that
/// the end of the body leaves without its blank line still counts: some servers omit it.
fn sse(bytes: ByteStream) -> PayloadStream {
    let limit = LineLimit {
        bytes: MAX_FRAME_BYTES,
        error: too_long(),
    };
    let reader = EventReader {
        lines: Box::pin(lines(bytes, limit)),
        event: String::new(),
        ended: false,
    };
    Box::pin(stream::unfold(reader, |mut reader| async move {
        let frame = reader.next().await?;
        Some((frame, reader))
    }))
}

struct EventReader {
    lines: Pin<Box<dyn Stream<Item = Result<Line, LlmError>> + Send>>,
    /// The lines of the event that is under way.
    event: String,
    ended: bool,
}

impl EventReader {
    async fn next(&mut self) -> Option<Result<Payload, LlmError>> {
        while !self.ended {
            match self.lines.next().await {
                Some(Ok(line)) if !line.text.is_empty() => {
                    if let Err(error) = self.add(line) {
                        self.ended = true;
                        return Some(Err(error));
                    }
                    continue;
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => {
                    self.ended = true;
                    return Some(Err(error));
                }
                None => self.ended = true,
            }
            if let Some(frame) = read_event(std::mem::take(&mut self.event)) {
                return Some(frame);
            }
        }
        None
    }

    fn add(&mut self, line: Line) -> Result<(), LlmError> {
        if !line.whole && !is_whole_field(&line.text) {
            return Ok(());
        }
        if self.event.len() + line.text.len() > MAX_FRAME_BYTES {
            return Err(too_long());
        }
        if self.event.is_empty() {
            self.event = line.text;
        } else {
            self.event.push('\n');
            self.event.push_str(&line.text);
        }
        Ok(())
    }
}

/// What an event says; none where that is nothing.
fn read_event(mut lines: String) -> Option<Result<Payload, LlmError>> {
    if lines.is_empty() {
        return None;
    }
    if lines.starts_with("data:") && !lines.contains('\n') {
        let head = if lines.starts_with("data: ") { 6 } else { 5 };
        lines.drain(..head);
        return said(lines).map(Ok);
    }
    // Line by line: with each it copies what it has not read yet. And behind the end of one: of a
    // byte order mark at its start it panics.
    let lines = lines.split_inclusive('\n');
    let pieces = iter::once("\n").chain(lines).chain(iter::once("\n\n"));
    let mut events = EventStream::new(stream::iter(pieces.map(Ok::<_, Infallible>)));
    match events.next().now_or_never()?? {
        Ok(event) if event.event == "error" => Some(Ok(Payload::Error(event.data))),
        Ok(event) => said(event.data).map(Ok),
        Err(_) => Some(Err(LlmError::Malformed {
            message: "an event stream that does not parse".to_owned(),
        })),
    }
}

/// Gateways keep a connection open by events that say nothing.
fn said(data: String) -> Option<Payload> {
    (!data.trim().is_empty()).then_some(Payload::Data(data))
}

fn failed(error: LlmError) -> PayloadStream {
    Box::pin(stream::iter([Err(error)]))
}

fn replay(head: Vec<u8>, rest: ByteStream) -> ByteStream {
    Box::pin(stream::iter([Ok(Bytes::from(head))]).chain(rest))
}

fn first_meaningful(head: &[u8]) -> Option<u8> {
    // A byte order mark may itself have been cut: wait for the rest of it.
    if head.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(head) {
        return None;
    }
    let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
    head.iter()
        .copied()
        .find(|byte| !byte.is_ascii_whitespace())
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn is_cut_off(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_err_and(|error| error.is_eof())
}

/// Whether a last line without its line end says all that it meant to say.
fn is_whole_field(line: &str) -> bool {
    line.strip_prefix("data:")
        .map(str::trim)
        .is_some_and(|data| data == "[DONE]" || is_json(data))
}

fn too_long() -> LlmError {
    LlmError::Malformed {
        message: format!("a line or event of over {MAX_FRAME_BYTES} bytes"),
    }
}

/// A line without its end.
#[derive(Debug)]
struct Line {
    text: String,
    /// False for what stands after the last line end when the body is over.
    whole: bool,
}

struct LineReader {
    bytes: ByteStream,
    splitter: LineSplitter,
    ready: VecDeque<String>,
    failure: Option<LlmError>,
    ended: bool,
}

/// The longest line that is taken, and what a longer one means.
#[derive(Clone, Debug)]
struct LineLimit {
    bytes: usize,
    error: LlmError,
}

fn lines(bytes: ByteStream, limit: LineLimit) -> impl Stream<Item = Result<Line, LlmError>> + Send {
    let reader = LineReader {
        bytes,
        splitter: LineSplitter::new(limit),
        ready: VecDeque::new(),
        failure: None,
        ended: false,
    };
    stream::unfold(reader, |mut reader| async move {
        loop {
            if let Some(text) = reader.ready.pop_front() {
                return Some((Ok(Line { text, whole: true }), reader));
            }
            if let Some(error) = reader.failure.take() {
                return Some((Err(error), reader));
            }
            if reader.ended {
                return None;
            }
            match reader.bytes.next().await {
                Some(Ok(chunk)) => {
                    if let Err(error) = reader.splitter.push(&chunk, &mut reader.ready) {
                        reader.ended = true;
                        reader.failure = Some(error);
                    }
                }
                Some(Err(error)) => {
                    reader.ended = true;
                    reader.failure = Some(error);
                }
                None => {
                    reader.ended = true;
                    let text = reader.splitter.rest()?;
                    return Some((Ok(Line { text, whole: false }), reader));
                }
            }
        }
    })
}

/// Cuts bytes at LF, CR and CRLF. Bytes that are no UTF-8 become U+FFFD: a broken
/// character must not cost the whole answer.
#[derive(Debug)]
struct LineSplitter {
    limit: LineLimit,
    partial: Vec<u8>,
    after_cr: bool,
    past_first_line: bool,
}

impl LineSplitter {
    fn new(limit: LineLimit) -> Self {
        Self {
            limit,
            partial: Vec::new(),
            after_cr: false,
            past_first_line: false,
        }
    }

    fn push(&mut self, chunk: &[u8], lines: &mut VecDeque<String>) -> Result<(), LlmError> {
        let mut rest = chunk;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(at) = memchr2(b'\n', b'\r', rest) {
            self.extend(&rest[..at])?;
            lines.push_back(self.take_line());
            let carriage_return = rest[at] == b'\r';
            rest = &rest[at + 1..];
            if carriage_return {
                if rest.is_empty() {
                    self.after_cr = true;
                } else {
                    rest = rest.strip_prefix(b"\n").unwrap_or(rest);
                }
            }
        }
        self.extend(rest)
    }

    fn rest(&mut self) -> Option<String> {
        (!self.partial.is_empty()).then(|| self.take_line())
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), LlmError> {
        if self.partial.len() + bytes.len() > self.limit.bytes {
            return Err(self.limit.error.clone());
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    fn take_line(&mut self) -> String {
        let first = !std::mem::replace(&mut self.past_first_line, true);
        let mut bytes = std::mem::take(&mut self.partial);
        if first && bytes.starts_with(BYTE_ORDER_MARK) {
            bytes.drain(..BYTE_ORDER_MARK.len());
        }
        String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
