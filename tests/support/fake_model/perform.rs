//! Goes through the steps of an answer: as a stream, or (`"stream": false`) as one document.

use std::io;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::tcp::OwnedWriteHalf;

use super::Shared;
use super::script::{Step, is_streamed};
use super::server::{Connection, Request, error_body, respond};
use super::wire::{Protocol, Wire};

pub(super) async fn perform(
    writer: &mut OwnedWriteHalf,
    request: &Request,
    protocol: Protocol,
    shared: &Shared,
) -> io::Result<Connection> {
    let wire = Wire::new(protocol, &request.body);
    let steps = shared.reply_to(&request.body);
    if is_streamed(&request.body) {
        stream(writer, wire, steps, shared).await
    } else {
        whole(writer, wire, steps, shared).await
    }
}

async fn stream(
    writer: &mut OwnedWriteHalf,
    mut wire: Wire,
    steps: Vec<Step>,
    shared: &Shared,
) -> io::Result<Connection> {
    let mut body = Body {
        writer,
        content_type: wire.content_type(),
        begun: false,
    };
    for step in steps {
        match step {
            Step::Thinking(text) => body.chunk(&wire.thinking(&text)).await?,
            Step::Text(text) => body.chunk(&wire.text(&text)).await?,
            Step::ToolCall { name, arguments } => {
                body.chunk(&wire.tool_call(&name, &arguments)).await?;
            }
            Step::Prefill { read, total } => body.chunk(&wire.prefill(read, total)).await?,
            Step::Begin => body.begin().await?,
            Step::Hold(gate) => shared.gate(&gate).await,
            Step::DelayMs(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Step::Raw(text) => body.chunk(&text).await?,
            Step::Error(message) => {
                body.chunk(&wire.error(&message)).await?;
                return body.end().await;
            }
            Step::Respond {
                status,
                headers,
                body: text,
            } => {
                let headers: Vec<(String, String)> = headers.into_iter().collect();
                respond(body.writer, status, &headers, &text).await?;
                return Ok(Connection::Open);
            }
            Step::Finish {
                reason,
                prompt_tokens,
                completion_tokens,
            } => {
                let end = wire.finish_with(&reason, prompt_tokens, completion_tokens);
                body.chunk(&end).await?;
                return body.end().await;
            }
            Step::End => return body.end().await,
            Step::Close => {
                body.begin().await?;
                return Ok(Connection::Cut);
            }
            Step::Bytes(bytes) => body.writer.write_all(&bytes).await?,
            Step::Cut => return Ok(Connection::Cut),
            Step::Reset => return Ok(Connection::Reset),
            Step::Silence => std::future::pending().await,
            Step::EndlessText { piece, every_ms } => loop {
                body.chunk(&wire.text(&piece)).await?;
                pause(every_ms).await;
            },
            Step::EndlessRaw { piece, every_ms } => loop {
                body.chunk(&piece).await?;
                pause(every_ms).await;
            },
        }
    }
    body.chunk(&wire.finish()).await?;
    body.end().await
}

/// What the steps say is put together and sent at the end. What breaks an answer off leaves
/// half of its document; an error is a response of its own; a text that never ends is silence.
async fn whole(
    writer: &mut OwnedWriteHalf,
    mut wire: Wire,
    steps: Vec<Step>,
    shared: &Shared,
) -> io::Result<Connection> {
    let mut body = Body {
        writer,
        content_type: "application/json",
        begun: false,
    };
    let mut raw = false;
    for step in steps {
        match step {
            Step::Thinking(text) => wire.said.thinking.push_str(&text),
            Step::Text(text) => wire.said.text.push_str(&text),
            Step::ToolCall { name, arguments } => wire.said.calls.push((name, arguments)),
            Step::Prefill { .. } => {}
            Step::Begin => body.begin().await?,
            Step::Hold(gate) => shared.gate(&gate).await,
            Step::DelayMs(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Step::Raw(text) => {
                raw = true;
                body.chunk(&text).await?;
            }
            Step::Error(message) => {
                let error = error_body(wire.protocol, &message);
                if body.begun {
                    body.chunk(&error).await?;
                    return body.end().await;
                }
                respond(body.writer, 500, &[], &error).await?;
                return Ok(Connection::Open);
            }
            Step::Respond {
                status,
                headers,
                body: text,
            } => {
                let headers: Vec<(String, String)> = headers.into_iter().collect();
                respond(body.writer, status, &headers, &text).await?;
                return Ok(Connection::Open);
            }
            Step::Finish {
                reason,
                prompt_tokens,
                completion_tokens,
            } => {
                let document = wire.whole_with(&reason, prompt_tokens, completion_tokens);
                body.chunk(&document).await?;
                return body.end().await;
            }
            Step::End => {
                body.chunk(half(&wire.whole())).await?;
                return body.end().await;
            }
            Step::Close => {
                body.chunk(half(&wire.whole())).await?;
                return Ok(Connection::Cut);
            }
            Step::Bytes(bytes) => body.writer.write_all(&bytes).await?,
            Step::Cut => return Ok(Connection::Cut),
            Step::Reset => return Ok(Connection::Reset),
            Step::Silence | Step::EndlessText { .. } | Step::EndlessRaw { .. } => {
                std::future::pending::<()>().await;
            }
        }
    }
    // A script that writes the body itself has written it.
    if !raw {
        body.chunk(&wire.whole()).await?;
    }
    body.end().await
}

async fn pause(ms: u64) {
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

fn half(text: &str) -> &str {
    &text[..text.floor_char_boundary(text.len() / 2)]
}

/// A chunked body whose headers go out with its first chunk.
struct Body<'a> {
    writer: &'a mut OwnedWriteHalf,
    content_type: &'static str,
    begun: bool,
}

impl Body<'_> {
    async fn begin(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nTransfer-Encoding: chunked\r\n\r\n",
            self.content_type
        );
        self.writer.write_all(head.as_bytes()).await
    }

    async fn chunk(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.begin().await?;
        let chunk = format!("{:x}\r\n{text}\r\n", text.len());
        self.writer.write_all(chunk.as_bytes()).await
    }

    async fn end(mut self) -> io::Result<Connection> {
        self.begin().await?;
        self.writer.write_all(b"0\r\n\r\n").await?;
        Ok(Connection::Open)
    }
}
