//! Connections, and which answer a request gets.

use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use memchr::memmem;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::answer::Answer;
use super::ledger::Ledger;
use super::{MODEL, Protocol, wire};
use crate::http::{Request, read_request};
use crate::script::Script;

/// More than any conversation here: nothing is ever compressed for want of room.
const CONTEXT_WINDOW: u32 = 16 * 1024 * 1024;

/// Serves until the other end of `ended` is dropped.
pub(super) async fn run(
    listener: std::net::TcpListener,
    ledger: Arc<Ledger>,
    ended: oneshot::Receiver<()>,
) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    let accept = async {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                Ok((stream, _)) = listener.accept() => {
                    let ledger = Arc::clone(&ledger);
                    // A client that goes away is an error of its connection, and of nobody else.
                    connections.spawn(async move { serve(stream, &ledger).await });
                }
                Some(_) = connections.join_next() => {}
            }
        }
    };
    tokio::select! {
        () = accept => {}
        _ = ended => {}
    }
}

async fn serve(mut stream: TcpStream, ledger: &Ledger) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = BytesMut::with_capacity(16 * 1024);
    while let Some(request) = read_request(&mut stream, &mut buffer).await? {
        let (method, path) = (request.method.as_str(), request.path.as_str());
        match (method, path) {
            ("POST", "/v1/chat/completions") => {
                chat(&mut stream, Protocol::Openai, request, ledger).await?;
            }
            ("POST", "/api/chat") => {
                chat(&mut stream, Protocol::Ollama, request, ledger).await?;
            }
            _ => match told(method, path) {
                Some(body) => respond(&mut stream, "200 OK", &body).await?,
                None => respond(&mut stream, "404 Not Found", &json!({"error": "none"})).await?,
            },
        }
    }
    Ok(())
}

/// What the server says of itself.
fn told(method: &str, path: &str) -> Option<Value> {
    match (method, path) {
        ("GET", "/v1/models") => Some(json!({
            "object": "list",
            "data": [{"id": MODEL, "object": "model", "max_model_len": CONTEXT_WINDOW}],
        })),
        ("GET", "/api/version") => Some(json!({"version": "0.0.0-bench"})),
        ("GET", "/api/tags") => Some(json!({
            "models": [{"name": MODEL, "model": MODEL, "digest": MODEL}],
        })),
        // Traces are taken, and nobody looks at them.
        ("POST", "/v1/traces") => Some(json!({})),
        ("POST", "/api/show") => Some(json!({
            "capabilities": ["completion", "tools"],
            "model_info": {
                "general.architecture": MODEL,
                "bench.context_length": CONTEXT_WINDOW,
            },
        })),
        _ => None,
    }
}

async fn respond(stream: &mut TcpStream, status: &str, body: &Value) -> io::Result<()> {
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await
}

/// A model call. One without a stream is Navi's own (a title), and gets a word at once.
async fn chat(
    stream: &mut TcpStream,
    protocol: Protocol,
    request: Request,
    ledger: &Ledger,
) -> io::Result<()> {
    let body = request.body;
    if memmem::rfind(&body, b"\"stream\":true").is_none() {
        ledger.count_aside();
        return respond(stream, "200 OK", &wire::whole(protocol)).await;
    }
    let Some((script, _)) = Script::find(&body) else {
        let problem = json!({"error": {"message": "the messages hold no line of a benchmark"}});
        return respond(stream, "400 Bad Request", &problem).await;
    };
    let prompt_bytes = body.len();
    let number = ledger.arrive(script.id, body);
    let answer = Answer {
        protocol,
        script,
        number,
        prompt_bytes,
        ledger,
    };
    answer.send(stream).await
}
