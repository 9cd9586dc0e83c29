//! How a message reaches the service, and what it says comes back.

use eventsource_stream::Eventsource as _;
use futures_util::StreamExt as _;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;
use tokio::sync::mpsc::Sender;
use tokio::sync::{Mutex, RwLock};

use super::Duration;
use super::line::{Line, refusal};
use crate::client::{Client, ClientError};
use crate::doors::mcp::{CONSENT, NO_CONSENT, PATH, SERVER_ERROR, SESSION_ID};
use crate::settings::Settings;

const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";
const EVENTS: &str = "text/event-stream";
/// Longer than any tool takes, a person's five minutes before a question among them.
const TOOL_LIMIT: Duration = Duration::from_secs(10 * 60);
/// Of whatever else.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// The way to the service.
pub(super) struct Carrier {
    settings: Settings,
    consent: bool,
    client: Mutex<Option<Client>>,
    agreed: RwLock<Agreed>,
}

/// What client and service agreed on.
#[derive(Clone, Debug, Default)]
struct Agreed {
    /// As the client last said, or `initialize` ended.
    version: Option<String>,
    session: Option<String>,
    /// How it began: the service may have been started anew since.
    beginning: Option<Line>,
}

/// Why a message brought nothing back.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("{0}")]
    Refused(String),
    #[error(
        "the connection to navi was lost in mid-answer ({0}); a run that it began may go on: run_wait tells"
    )]
    Lost(String),
}

impl Carrier {
    pub(super) fn new(settings: Settings, consent: bool) -> Self {
        Self {
            settings,
            consent,
            client: Mutex::default(),
            agreed: RwLock::default(),
        }
    }

    /// Whether the client speaks a revision that has sessions.
    pub(super) async fn has_session(&self) -> bool {
        self.agreed.read().await.session.is_some()
    }

    /// Carries a message there, and what comes back to standard output.
    pub(super) async fn carry(&self, line: Line, out: &Sender<String>) {
        if let Err(error) = self.carried(&line, out).await
            && let Some(id) = line.asks()
        {
            let told = refusal(id, SERVER_ERROR, &error.to_string());
            // Nobody reads any more: standard input ends soon.
            let _ = out.send(told).await;
        }
    }

    /// Ends what was begun.
    pub(super) async fn leave(&self) {
        let Some(client) = self.client.lock().await.take() else {
            return;
        };
        let agreed = self.agreed.read().await.clone();
        if agreed.session.is_some()
            && let Ok(request) = client.request(Method::DELETE, PATH)
        {
            let _ = with_session(request, &agreed).send().await;
        }
        client.log_out().await;
    }

    async fn carried(&self, line: &Line, out: &Sender<String>) -> Result<(), Failed> {
        if let Some(version) = line.version() {
            self.agreed.write().await.version = Some(version.to_owned());
        }
        let agreed = self.agreed.read().await.clone();
        let mut response = self.post(line, &agreed).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            // The login is a month old, or was taken back.
            *self.client.lock().await = None;
            response = self.post(line, &agreed).await?;
        }
        if response.status() == StatusCode::NOT_FOUND && agreed.session.is_some() {
            let agreed = self.begin_anew(&agreed).await?;
            response = self.post(line, &agreed).await?;
        }
        if line.begins() {
            return self.begun(line, response, out).await;
        }
        told(response, line.asks(), out).await
    }

    async fn client(&self) -> Result<Client, ClientError> {
        let mut client = self.client.lock().await;
        if let Some(client) = client.as_ref() {
            return Ok(client.clone());
        }
        let logged_in = Client::log_in(&self.settings).await?;
        *client = Some(logged_in.clone());
        Ok(logged_in)
    }

    async fn post(&self, line: &Line, agreed: &Agreed) -> Result<Response, Failed> {
        let client = self.client().await?;
        let mut request = client
            .request(Method::POST, PATH)?
            .timeout(if line.method() == Some("tools/call") {
                TOOL_LIMIT
            } else {
                TIME_LIMIT
            })
            .header(ACCEPT, format!("application/json, {EVENTS}"))
            .json(line.message());
        if !self.consent {
            request = request.header(CONSENT, NO_CONSENT);
        }
        if line.begins() {
            // It is what the rest is agreed on in.
        } else if agreed.session.is_some() {
            request = with_session(request, agreed);
        } else {
            let version = line.version().or(agreed.version.as_deref());
            for (name, value) in [
                (VERSION, version.map(str::to_owned)),
                (METHOD, line.method().map(str::to_owned)),
                (NAME, line.name().map(in_header)),
            ] {
                if let Some(value) = value {
                    request = request.header(name, value);
                }
            }
        }
        let sent = request.send().await;
        sent.map_err(|error| Failed::Client(client.unreachable(&error)))
    }

    /// Tells what `initialize` brought, once it is known what comes of it.
    async fn begun(
        &self,
        line: &Line,
        response: Response,
        out: &Sender<String>,
    ) -> Result<(), Failed> {
        let session = session_of(&response);
        let messages = messages(response, line.asks()).await?;
        let version = version_of(&messages);
        if let (Some(session), Some(version)) = (session, version) {
            *self.agreed.write().await = Agreed {
                version: Some(version),
                session: Some(session),
                beginning: Some(line.clone()),
            };
        }
        for message in messages {
            let _ = out.send(message.to_string()).await;
        }
        Ok(())
    }

    /// Begins once more where the service knows nothing of what was agreed on: it was started
    /// anew. Who else noticed that meanwhile takes what came of it.
    async fn begin_anew(&self, before: &Agreed) -> Result<Agreed, Failed> {
        let mut agreed = self.agreed.write().await;
        if agreed.session != before.session {
            return Ok(agreed.clone());
        }
        let lost = || Failed::Refused("navi has forgotten this session; begin anew".to_owned());
        let beginning = before.beginning.clone().ok_or_else(lost)?;
        let response = self.post(&beginning, before).await?;
        let session = session_of(&response);
        let version = version_of(&messages(response, beginning.asks()).await?);
        let anew = Agreed {
            version: Some(version.ok_or_else(lost)?),
            session: Some(session.ok_or_else(lost)?),
            beginning: Some(beginning),
        };
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let ready = Line::read(ready).map_err(Failed::Refused)?;
        self.post(&ready, &anew).await?;
        *agreed = anew.clone();
        Ok(anew)
    }
}

fn with_session(mut request: RequestBuilder, agreed: &Agreed) -> RequestBuilder {
    if let Some(version) = &agreed.version {
        request = request.header(VERSION, version);
    }
    if let Some(session) = &agreed.session {
        request = request.header(SESSION_ID, session);
    }
    request
}

/// A name as the protocol has it in a header.
fn in_header(name: &str) -> String {
    use base64::Engine as _;
    let plain = name.bytes().all(|byte| matches!(byte, b' '..=b'~')) && name.trim() == name;
    if plain && !name.starts_with("=?base64?") {
        return name.to_owned();
    }
    let coded = base64::prelude::BASE64_STANDARD.encode(name);
    format!("=?base64?{coded}?=")
}

fn session_of(response: &Response) -> Option<String> {
    let session = response.headers().get(SESSION_ID)?.to_str().ok()?;
    Some(session.to_owned())
}

fn version_of(messages: &[Value]) -> Option<String> {
    let mut versions = messages.iter().map(|it| &it["result"]["protocolVersion"]);
    let version = versions.find_map(Value::as_str)?;
    Some(version.to_owned())
}

fn is_events(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.starts_with(EVENTS))
}

fn lost(error: &impl std::fmt::Display) -> Failed {
    Failed::Lost(error.to_string())
}

/// Whether this is what the request with this id came to. One of the service's own may have the
/// same id.
fn answers(message: &Value, id: &Value) -> bool {
    let has = |name| message.get(name).is_some();
    message["id"] == *id && (has("result") || has("error"))
}

/// All that an answer says.
async fn messages(response: Response, asked: Option<&Value>) -> Result<Vec<Value>, Failed> {
    let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
    let mut messages = Vec::new();
    let telling = async move { told(response, asked, &sender).await };
    let gathering = async {
        while let Some(line) = receiver.recv().await {
            messages.extend(serde_json::from_str::<Value>(&line));
        }
    };
    let (told, ()) = tokio::join!(telling, gathering);
    told?;
    Ok(messages)
}

/// Passes on what an answer says, message by message. `asked` is the id of the request.
async fn told(
    response: Response,
    asked: Option<&Value>,
    out: &Sender<String>,
) -> Result<(), Failed> {
    let status = response.status();
    if status.is_success() && is_events(&response) {
        let mut unanswered = asked;
        let mut events = response.bytes_stream().eventsource();
        while let Some(event) = events.next().await {
            let event = event.map_err(|error| lost(&error))?;
            // The first one of a stream only says how to come back.
            if let Ok(message) = serde_json::from_str::<Value>(&event.data) {
                unanswered = unanswered.filter(|id| !answers(&message, id));
                let _ = out.send(message.to_string()).await;
            }
        }
        // A service that shuts down ends its streams in order, answered or not.
        return match unanswered {
            None => Ok(()),
            Some(_) => Err(lost(&"it ended before the answer")),
        };
    }
    let body = response.bytes().await.map_err(|error| lost(&error))?;
    if body.is_empty() && status.is_success() {
        return Ok(());
    }
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    if message["id"].is_null() {
        // The service read no id: it is the request that this answers.
        let why = message["error"]["message"].as_str();
        let why = why.map_or_else(|| format!("navi answered {status}"), str::to_owned);
        return Err(Failed::Refused(why));
    }
    let _ = out.send(message.to_string()).await;
    Ok(())
}
