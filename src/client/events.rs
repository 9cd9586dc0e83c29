//! A session's events, over whatever happens to the connection.

use std::time::Duration;

use futures_util::StreamExt as _;
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
        }
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
            if let Event::Resync { session, .. } = &envelope.event {
                self.epoch = Some(session.epoch);
                self.after = Some(session.last_seq);
            }
            return Ok(envelope);
        }
    }

    /// Opens the socket, or waits a moment where that failed.
    async fn connect(&mut self) -> Result<(), ClientError> {
        let failed = match self.open().await {
            Ok(socket) => {
                self.socket = Some(socket);
                self.away_since = None;
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
