//! A session's events, over whatever happens to the connection.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use navi_actors::protocol::command::{ClientFrame, UserInput};
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::event::{Envelope, Event};
use navi_actors::protocol::ids::SessionId;
use reqwest::Method;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::{Client, ClientError};

/// The service asks after 15 s of silence whether anybody is there.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);
/// How long it is tried again where the service is gone: a restart takes a few seconds.
const AWAY_LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(300);
/// The newest messages that a `resync` has.
const MESSAGES: u32 = 50;
/// How many messages wait to be accepted at the most.
const OUTBOX: usize = 64;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// See the module. What is told of parts that are open is told again after a connection was lost:
/// a delta's offset says how much of it is known.
pub(crate) struct Events {
    client: Client,
    session: SessionId,
    after: Option<u64>,
    epoch: Option<i64>,
    socket: Option<Socket>,
    /// Since when there is no connection.
    away_since: Option<Instant>,
    /// Messages that were not accepted yet, by their `client_id`: they are sent again where the
    /// connection was lost, and are one message all the same.
    outbox: Vec<(String, Message)>,
    /// How many of them went over this connection.
    sent: usize,
}

impl Events {
    pub(super) fn new(client: Client, session: SessionId, after: Option<u64>) -> Self {
        Self {
            client,
            session,
            after,
            epoch: None,
            socket: None,
            away_since: None,
            outbox: Vec::new(),
            sent: 0,
        }
    }

    /// Sends a message, as a tab does: what becomes of it is told as events. It goes with the next
    /// [`Self::next`].
    ///
    /// # Errors
    /// Too many wait to be accepted.
    pub(crate) fn send(&mut self, input: UserInput) -> Result<(), ClientError> {
        if self.outbox.len() >= OUTBOX {
            let full = "too many messages wait for navi already; wait until she answers";
            return Err(NaviError::new(ErrorCode::QueueFull, full).into());
        }
        let id = input.client_id.clone().unwrap_or_default();
        let frame = serde_json::to_string(&ClientFrame::Message(input));
        let frame = frame.map_err(|error| ClientError::Unreadable(error.to_string()))?;
        self.outbox.push((id, Message::text(frame)));
        Ok(())
    }

    /// Whether the service could not be reached when it was tried last.
    pub(crate) fn is_away(&self) -> bool {
        self.away_since.is_some()
    }

    /// What is told next. May be dropped at any time, and asked again.
    ///
    /// # Errors
    /// The service refuses, or has been away for a minute.
    pub(crate) async fn next(&mut self) -> Result<Envelope, ClientError> {
        loop {
            let Some(socket) = &mut self.socket else {
                self.connect().await?;
                continue;
            };
            while let Some((_, frame)) = self.outbox.get(self.sent) {
                // What is dropped here was not taken yet; what was taken is flushed below.
                if socket.feed(frame.clone()).await.is_err() {
                    break;
                }
                self.sent += 1;
            }
            // One that is broken is told by what is read of it.
            let _ = timeout(SILENCE_LIMIT, socket.flush()).await;
            let text = match timeout(SILENCE_LIMIT, socket.next()).await {
                Ok(Some(Ok(Message::Text(text)))) => text,
                Ok(Some(Ok(Message::Close(frame)))) => {
                    self.socket = None;
                    if let Some(frame) = frame
                        && let Some(error) = refused(u16::from(frame.code), &frame.reason)
                    {
                        return Err(error.into());
                    }
                    continue;
                }
                // Pings are answered by the library, in the next read.
                Ok(Some(Ok(_))) => continue,
                Ok(Some(Err(_)) | None) | Err(_) => {
                    self.socket = None;
                    continue;
                }
            };
            let envelope: Envelope = serde_json::from_str(&text)
                .map_err(|error| ClientError::Unreadable(error.to_string()))?;
            self.after = envelope.seq.or(self.after);
            self.answered(&envelope.event);
            if let Event::Resync { session, .. } = &envelope.event {
                self.epoch = Some(session.epoch);
                self.after = Some(session.last_seq);
            }
            return Ok(envelope);
        }
    }

    /// A message that was accepted or refused is not sent again.
    fn answered(&mut self, event: &Event) {
        let (Event::MessageAccepted { client_id, .. } | Event::Error { client_id, .. }) = event
        else {
            return;
        };
        let waits = self
            .outbox
            .iter()
            .position(|(id, _)| Some(id) == client_id.as_ref());
        if let Some(at) = waits {
            self.outbox.remove(at);
            self.sent -= usize::from(at < self.sent);
        }
    }

    /// Opens the socket, or waits a moment where that failed.
    async fn connect(&mut self) -> Result<(), ClientError> {
        let failed = match self.open().await {
            Ok(socket) => {
                self.socket = Some(socket);
                self.away_since = None;
                self.sent = 0;
                return Ok(());
            }
            Err(error @ (ClientError::Refused(_) | ClientError::NoLink { .. })) => {
                return Err(error);
            }
            Err(error) => error,
        };
        let since = *self.away_since.get_or_insert_with(Instant::now);
        if since.elapsed() > AWAY_LIMIT {
            return Err(failed);
        }
        sleep(PAUSE).await;
        Ok(())
    }

    async fn open(&self) -> Result<Socket, ClientError> {
        let mut path = format!("/ws/sessions/{}?messages={MESSAGES}", self.session);
        if let Some(after) = self.after {
            path.push_str(&format!("&after={after}"));
        }
        if let Some(epoch) = self.epoch {
            path.push_str(&format!("&epoch={epoch}"));
        }
        let like = self.client.request(Method::GET, &path)?.build();
        let like = like.map_err(|error| ClientError::Unreadable(error.to_string()))?;
        let address = self.client.address()?;
        let unreachable = |reason: String| ClientError::Unreachable { address, reason };
        let url = format!("ws://{address}{path}");
        let request = url.into_client_request();
        let mut request = request.map_err(|error| unreachable(error.to_string()))?;
        request.headers_mut().extend(like.headers().clone());
        let opened = timeout(SILENCE_LIMIT, tokio_tungstenite::connect_async(request)).await;
        match opened {
            Ok(Ok((socket, _))) => Ok(socket),
            Ok(Err(tungstenite::Error::Http(response))) => {
                let body = response.body().as_deref().unwrap_or_default();
                Err(serde_json::from_slice::<NaviError>(body)
                    .map_or_else(|_| unreachable(response.status().to_string()), Into::into))
            }
            Ok(Err(error)) => Err(unreachable(error.to_string())),
            Err(_) => Err(unreachable("no answer".to_owned())),
        }
    }
}

/// What a close code forbids (`http::error`); another one invites to come back.
fn refused(code: u16, reason: &str) -> Option<NaviError> {
    let code = match code {
        4004 => ErrorCode::SessionNotFound,
        4001 => ErrorCode::Unauthorized,
        1008 => ErrorCode::InvalidField,
        _ => return None,
    };
    Some(NaviError::new(code, reason))
}
