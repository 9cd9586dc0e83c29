//! The model server alone, read from its socket by a client that only counts: what it can do at
//! most. What is measured through it is far below that, or it is not measured but the server is.

use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use bytes::BytesMut;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Bench;
use crate::ground::Ground;
use crate::http::{Body, Chunks, read_head};
use crate::model::MODEL;
use crate::report::{Row, Samples};
use crate::script::{Rate, Script};
use crate::stamp;

const TOKENS: u32 = 2_000_000;

pub(super) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let mut limit = Vec::new();
    for _ in 0..bench.rounds(5) {
        limit.push(tokens_a_second(&bench.ground).await?);
    }
    let samples = Samples {
        limit,
        navi: Vec::new(),
    };
    let what = "the model server alone, to a client that counts";
    Ok(vec![Row::higher("model-server", what, "tokens/s", samples)])
}

async fn tokens_a_second(ground: &Ground) -> Result<f64> {
    let script = Script::new(TOKENS, Rate::Joined);
    let body = json!({
        "model": MODEL,
        "messages": [{"role": "user", "content": script.to_string()}],
        "stream": true,
    })
    .to_string();
    let mut stream = TcpStream::connect(ground.model.address).await?;
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n\r\n",
        ground.protocol.path(),
        ground.model.address,
        body.len()
    );
    let begun = Instant::now();
    stream.write_all((head + &body).as_bytes()).await?;
    let mut raw = BytesMut::with_capacity(64 * 1024);
    read_head(&mut stream, &mut raw)
        .await?
        .context("no answer")?;
    let (mut chunks, mut text) = (Chunks::default(), BytesMut::new());
    let mut tokens = 0;
    while chunks.take(&mut raw, &mut text)? == Body::GoesOn {
        // Counted up to the last event that is whole.
        let whole = memchr::memrchr(b'\n', &text).map_or(0, |at| at + 1);
        tokens += stamp::count(&text.split_to(whole));
        raw.reserve(64 * 1024);
        if stream.read_buf(&mut raw).await? == 0 {
            bail!("the model server ended in mid-answer");
        }
    }
    let took = begun.elapsed();
    tokens += stamp::count(&text);
    if tokens != TOKENS as usize {
        bail!("{tokens} tokens came of {TOKENS}");
    }
    ground.model.ledger.take(script.id);
    Ok(f64::from(TOKENS) / took.as_secs_f64())
}
