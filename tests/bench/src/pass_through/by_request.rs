//! The limit of a program: a model's events as the chunks of an answer that streams, on a connection
//! that stays. A GET watches: its answer is all that anybody is told, without an end.

use anyhow::Result;
use bytes::BytesMut;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::broadcast;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::{Downstream, Settings, Upstream};
use crate::http::read_request;
use crate::script::Script;

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const END: &[u8] = b"0\r\n\r\n";

pub(super) async fn serve(
    stream: TcpStream,
    settings: Settings,
    told: broadcast::Sender<Utf8Bytes>,
) -> Result<()> {
    let mut upstream = Upstream::connect(settings, told.clone()).await?;
    let mut program = Program {
        stream,
        out: BytesMut::new(),
    };
    let mut buffer = BytesMut::new();
    while let Some(request) = read_request(&mut program.stream, &mut buffer).await? {
        if request.method == "GET" {
            return watch(program, told.subscribe()).await;
        }
        let Some((_, place)) = Script::find(&request.body) else {
            anyhow::bail!("a request without a line of the benchmark");
        };
        upstream.ask(request.body.slice(place)).await?;
        program.stream.write_all(HEAD).await?;
        upstream.forward(&mut program).await?;
        program.stream.write_all(END).await?;
    }
    Ok(())
}

async fn watch(mut program: Program, mut told: broadcast::Receiver<Utf8Bytes>) -> Result<()> {
    program.stream.write_all(HEAD).await?;
    loop {
        program.feed(told.recv().await?).await?;
        program.flush().await?;
    }
}

/// Who asked, and what they are not sent yet.
struct Program {
    stream: TcpStream,
    out: BytesMut,
}

impl Downstream for Program {
    async fn feed(&mut self, event: Utf8Bytes) -> Result<()> {
        const GAP: &str = "\n\n";
        let size = format!("{:x}\r\n", event.len() + GAP.len());
        for part in [&size, event.as_str(), GAP, "\r\n"] {
            self.out.extend_from_slice(part.as_bytes());
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<()> {
        Ok(self.stream.write_all_buf(&mut self.out).await?)
    }
}
