//! HTTP/1.1 on bare sockets, as far as a model server's clients need it.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::perform::perform;
use super::wire::Protocol;
use super::{Config, Recorded, Shared, check, control};

const MAX_REQUEST_BYTES: usize = 64 * 1024 * 1024;

/// Serves until the other end of `ended` is dropped; that cuts every connection.
pub(super) fn run(
    listener: std::net::TcpListener,
    shared: &Arc<Shared>,
    ended: oneshot::Receiver<()>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let listener = TcpListener::from_std(listener).expect("a listener");
        let accept = async {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    Ok((stream, _)) = listener.accept() => {
                        let shared = Arc::clone(shared);
                        connections.spawn(async move { serve(stream, &shared).await });
                    }
                    Some(_) = connections.join_next() => {}
                }
            }
        };
        tokio::select! {
            () = accept => {}
            _ = ended => {}
        }
    });
}

pub(super) struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    pub(super) body: Value,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Requests of one connection, one after another. An error is a connection that is over.
async fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut reader, mut writer) = stream.into_split();
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut reader, &mut buffer).await? {
        if request.path.starts_with("/control/") {
            let (status, body) =
                control::answer(shared, &request.method, &request.path, &request.body);
            respond(&mut writer, status, &[], &body.to_string()).await?;
            continue;
        }
        let at = shared.change(|state| {
            state.requests.push(Recorded {
                method: request.method.clone(),
                path: request.path.clone(),
                headers: request.headers.clone(),
                body: request.body.clone(),
                at_ms: shared.now_ms(),
                finished_ms: None,
                closed_early_ms: None,
            });
            state.requests.len() - 1
        });
        let outcome = tokio::select! {
            outcome = answer(&mut writer, &request, shared) => outcome,
            // Nobody sends before the answer is there: what can be read now is the end.
            _ = reader.read_u8() => Err(io::ErrorKind::ConnectionReset.into()),
        };
        shared.change(|state| {
            // A reset may have forgotten it.
            if let Some(record) = state.requests.get_mut(at) {
                match &outcome {
                    Ok(_) => record.finished_ms = Some(shared.now_ms()),
                    Err(_) => record.closed_early_ms = Some(shared.now_ms()),
                }
            }
        });
        match outcome? {
            Connection::Open => {}
            Connection::Cut => return Ok(()),
            Connection::Reset => {
                writer.as_ref().set_zero_linger()?;
                // Dropped, it would say goodbye first.
                writer.forget();
                return Ok(());
            }
        }
    }
    Ok(())
}

pub(super) enum Connection {
    Open,
    Cut,
    Reset,
}

async fn answer(
    writer: &mut OwnedWriteHalf,
    request: &Request,
    shared: &Shared,
) -> io::Result<Connection> {
    let config = shared.lock().config.clone();
    let path = request.path.as_str();
    let protocol = if path.starts_with("/v1/") || path == "/props" {
        Protocol::OpenAi
    } else {
        Protocol::Ollama
    };
    let spoken = match protocol {
        Protocol::Ollama => config.ollama,
        Protocol::OpenAi => config.openai,
    };
    let known_key = protocol == Protocol::Ollama
        || config.api_key.as_ref().is_none_or(|key| {
            request.header("authorization") == Some(format!("Bearer {key}").as_str())
        });
    let (status, body) = match (request.method.as_str(), path) {
        _ if !spoken => (404, "404 page not found".to_owned()),
        _ if !known_key => (401, error_body(protocol, "Invalid API Key")),
        ("POST", "/api/chat" | "/v1/chat/completions") => {
            let violations = check::violations(protocol, &request.body);
            let model = request.body["model"].as_str().unwrap_or_default();
            if !violations.is_empty() {
                let told = violations.join("; ");
                shared.change(|state| state.violations.extend(violations));
                (400, error_body(protocol, &told))
            } else if !has_model(&config, model) {
                let missing = format!("model '{model}' not found");
                (404, error_body(protocol, &missing))
            } else if let Some(refusal) = config.template.refusal(&request.body) {
                (500, error_body(protocol, &refusal))
            } else {
                return perform(writer, request, protocol, shared).await;
            }
        }
        ("POST", "/api/pull") => return perform(writer, request, protocol, shared).await,
        ("GET", "/api/version") => (200, json!({"version": "0.0.0-fake"}).to_string()),
        ("GET", "/api/tags") => (200, tags(&config).to_string()),
        ("POST", "/api/show") => (200, show(&config).to_string()),
        ("GET", "/props") if config.slots.is_some() => {
            (200, json!({"total_slots": config.slots}).to_string())
        }
        ("GET", "/v1/models") => (200, openai_models(&config).to_string()),
        _ => (404, "404 page not found".to_owned()),
    };
    respond(writer, status, &[], &body).await?;
    Ok(Connection::Open)
}

pub(super) async fn respond(
    writer: &mut OwnedWriteHalf,
    status: u16,
    headers: &[(String, String)],
    body: &str,
) -> io::Result<()> {
    let mut head = format!(
        "HTTP/1.1 {status} Fake\r\nContent-Length: {}\r\n",
        body.len()
    );
    if !headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
    {
        head.push_str("Content-Type: application/json\r\n");
    }
    for (name, value) in headers {
        write!(head, "{name}: {value}\r\n").expect("writing to a string");
    }
    writer
        .write_all(format!("{head}\r\n{body}").as_bytes())
        .await
}

/// None at the connection's end.
async fn read_request(
    reader: &mut OwnedReadHalf,
    buffer: &mut Vec<u8>,
) -> io::Result<Option<Request>> {
    let head_end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if reader.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&buffer[..head_end]).into_owned();
    let mut lines = head.lines();
    let mut first = lines.next().unwrap_or_default().split(' ');
    let method = first.next().unwrap_or_default().to_owned();
    let path = first.next().unwrap_or_default().to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0);
    if length > MAX_REQUEST_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    while buffer.len() < head_end + length {
        if reader.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    let body = serde_json::from_slice(&buffer[head_end..head_end + length]).unwrap_or_default();
    buffer.drain(..head_end + length);
    Ok(Some(Request {
        method,
        path,
        headers,
        body,
    }))
}

fn has_model(config: &Config, name: &str) -> bool {
    let bare = |name: &str| name.trim_end_matches(":latest").to_owned();
    config.models.iter().any(|model| bare(model) == bare(name))
}

pub(super) fn error_body(protocol: Protocol, message: &str) -> String {
    match protocol {
        Protocol::Ollama => json!({"error": message}).to_string(),
        Protocol::OpenAi => json!({"error": {"message": message}}).to_string(),
    }
}

fn tags(config: &Config) -> Value {
    let models: Vec<Value> = config
        .models
        .iter()
        .map(|name| json!({"name": name, "model": name, "digest": format!("digest of {name}"), "size": 4096}))
        .collect();
    json!({ "models": models })
}

fn show(config: &Config) -> Value {
    json!({
        "capabilities": config.capabilities,
        "model_info": {
            "general.architecture": "fake",
            "fake.context_length": config.context_window,
        },
    })
}

fn openai_models(config: &Config) -> Value {
    let models: Vec<Value> = config
        .models
        .iter()
        .map(|name| {
            json!({
                "id": name,
                "object": "model",
                "owned_by": config.owned_by,
                "max_model_len": config.context_window,
            })
        })
        .collect();
    json!({ "object": "list", "data": models })
}
