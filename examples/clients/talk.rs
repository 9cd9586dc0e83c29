//! Talks with Navi in a session, with reqwest.
//!
//!     NAVI_TOKEN=… cargo run --example talk -- "What is on my desk?" [SESSION]
//!
//! The token is what `navi token add NAME` prints. The answer is printed as it comes. Where Navi
//! asks whether she may do something, answer y or n; Ctrl-C stops her.

use std::env;
use std::io::{self, Write as _};

use anyhow::{Context as _, Result, bail};
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use reqwest::{Client, Method, Response};
use serde_json::{Value, json};

struct Navi {
    client: Client,
    url: String,
    token: String,
}

impl Navi {
    async fn request(&self, method: Method, path: &str, body: Option<Value>) -> Result<Response> {
        let mut request = self
            .client
            .request(method, format!("{}{path}", self.url))
            .bearer_auth(&self.token);
        if let Some(body) = &body {
            request = request.json(body);
        }
        let response = request.send().await?;
        if !response.status().is_success() {
            let error: Value = response.json().await?;
            bail!("{}", error["message"]);
        }
        Ok(response)
    }

    async fn post(&self, path: &str, body: Value) -> Result<Value> {
        let response = self.request(Method::POST, path, Some(body)).await?;
        Ok(serde_json::from_slice(&response.bytes().await?).unwrap_or_default())
    }

    /// Prints the answer, and asks about what has to be allowed, until the run ends.
    async fn follow(&self, session: &str, events: Response) -> Result<()> {
        let mut events = std::pin::pin!(told(events));
        while let Some(event) = events.try_next().await? {
            let is_child = event.get("parent_run_id").is_some();
            match event["type"].as_str().unwrap_or_default() {
                "stream_delta" if !is_child => {
                    let mut out = io::stdout();
                    out.write_all(event["delta"].as_str().unwrap_or_default().as_bytes())?;
                    out.flush()?;
                }
                "approval_requested" => {
                    let summary = event["request"]["summary"].as_str().unwrap_or_default();
                    writeln!(io::stderr(), "\nMay Navi {summary}? [y/n]")?;
                    let said = tokio::task::spawn_blocking(|| io::stdin().lines().next());
                    let said = said.await?.transpose()?.unwrap_or_default();
                    let decision = if said.trim() == "y" { "allow" } else { "deny" };
                    let id = event["approval_id"].as_str().unwrap_or_default();
                    let path = format!("/sessions/{session}/approvals/{id}");
                    self.post(&path, json!({"decision": decision})).await?;
                }
                "error" if event["recoverable"] == false => bail!("{}", event["message"]),
                "stream_end" | "stream_stopped" | "run_interrupted" if !is_child => break,
                _ => {}
            }
        }
        writeln!(io::stdout())?;
        Ok(())
    }
}

/// What happens in the session from here on, one event after the other.
fn told(response: Response) -> impl Stream<Item = Result<Value>> {
    let pieces = response.bytes_stream().map_err(anyhow::Error::from);
    let lines = pieces.scan(Vec::new(), |rest: &mut Vec<u8>, piece| {
        let lines = piece.map(|piece| {
            rest.extend_from_slice(&piece);
            let end = rest.iter().rposition(|byte| *byte == b'\n');
            let whole: Vec<u8> = rest.drain(..end.map_or(0, |end| end + 1)).collect();
            let lines = whole.split(|byte| *byte == b'\n');
            let data = lines.filter_map(|line| line.strip_prefix(b"data: "));
            data.map(|data| Ok(serde_json::from_slice(data)?)).collect()
        });
        std::future::ready(Some(lines.unwrap_or_else(|error| vec![Err(error)])))
    });
    lines.flat_map(futures_util::stream::iter)
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut args = env::args().skip(1);
    let text = args.next().context("say something: talk \"Hello\"")?;
    // Not needed where reqwest has its default features.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let navi = Navi {
        client: Client::new(),
        url: env::var("NAVI_URL").unwrap_or_else(|_| "http://127.0.0.1:8000".to_owned()),
        token: env::var("NAVI_TOKEN").context("NAVI_TOKEN: what `navi token add NAME` prints")?,
    };
    let session = match args.next() {
        Some(session) => session,
        None => navi.post("/sessions", json!({})).await?["session_id"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    };
    writeln!(io::stderr(), "session {session}")?;
    let events = navi
        .request(Method::GET, &format!("/sessions/{session}/events"), None)
        .await?;
    // Answers when the run is done; what comes meanwhile, the events tell.
    let path = format!("/sessions/{session}/messages");
    let sent = navi.post(&path, json!({"content": text, "consent": "ask"}));
    let followed = navi.follow(&session, events);
    tokio::select! {
        done = async { tokio::try_join!(sent, followed) } => {
            done?;
        }
        pressed = tokio::signal::ctrl_c() => {
            pressed?;
            navi.post(&format!("/sessions/{session}/stop"), json!({})).await?;
            writeln!(io::stderr(), "\nstopped")?;
            std::process::exit(130);
        }
    }
    Ok(())
}
