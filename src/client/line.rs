//! A socket of the service, opened again where it is lost.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use navi_actors::protocol::error::{ErrorCode, NaviError};
use reqwest::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_util::either::Either;

use super::{Client, ClientError};
use crate::instance::Running;
use crate::tls::Wire;

/// The service asks after 15 s of silence whether anybody is there.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);
/// How long it is tried again where the service is gone: a restart takes a few seconds.
const AWAY_LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(300);

type Stream = Either<TcpStream, TlsStream<TcpStream>>;
type Socket = WebSocketStream<Stream>;

/// What a frame says.
#[derive(Debug, PartialEq)]
pub(super) enum Told<T> {
    Known(T),
    /// Of a `type` that only a newer service has.
    Unknown {
        seq: Option<u64>,
    },
}

/// See the module. All that waits may be dropped at any time, and asked again.
pub(super) struct Line {
    client: Client,
    socket: Option<Socket>,
    /// Since when there is no connection.
    away_since: Option<Instant>,
}

impl Line {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            socket: None,
            away_since: None,
        }
    }

    /// Whether there is a connection; it may have been lost in the last instant.
    pub(super) fn is_open(&self) -> bool {
        self.socket.is_some()
    }

    /// Whether the service could not be reached when it was tried last.
    pub(super) fn is_away(&self) -> bool {
        self.away_since.is_some()
    }

    /// Opens the socket, or waits a moment where that failed.
    ///
    /// # Errors
    /// The service refuses, or has been away for a minute. It may be tried again.
    pub(super) async fn open(&mut self, path: &str) -> Result<(), ClientError> {
        let failed = match self.connect(path).await {
            Ok(socket) => {
                self.socket = Some(socket);
                self.away_since = None;
                return Ok(());
            }
            Err(error) if is_final(&error) => return Err(error),
            Err(error) => error,
        };
        let since = *self.away_since.get_or_insert_with(Instant::now);
        if since.elapsed() > AWAY_LIMIT {
            self.away_since = None;
            return Err(failed);
        }
        sleep(PAUSE).await;
        Ok(())
    }

    /// Takes a frame to be sent, where there is a connection. It is on its way with the next
    /// [`Self::flush`].
    pub(super) async fn feed(&mut self, text: &str) {
        let Some(socket) = &mut self.socket else {
            return;
        };
        let fed = timeout(SILENCE_LIMIT, socket.feed(Message::text(text))).await;
        if !matches!(fed, Ok(Ok(()))) {
            self.socket = None;
        }
    }

    pub(super) async fn flush(&mut self) {
        let Some(socket) = &mut self.socket else {
            return;
        };
        let flushed = timeout(SILENCE_LIMIT, socket.flush()).await;
        if !matches!(flushed, Ok(Ok(()))) {
            self.socket = None;
        }
    }

    /// The next frame; none where the connection was lost. `Kind` has the types of frames.
    ///
    /// # Errors
    /// The service says that it will not go on, or what it says cannot be read.
    pub(super) async fn next<T: DeserializeOwned, Kind: DeserializeOwned>(
        &mut self,
    ) -> Result<Option<Told<T>>, ClientError> {
        loop {
            let Some(socket) = &mut self.socket else {
                return Ok(None);
            };
            match timeout(SILENCE_LIMIT, socket.next()).await {
                Ok(Some(Ok(Message::Text(text)))) => {
                    return read::<T, Kind>(&text).map(Some);
                }
                Ok(Some(Ok(Message::Close(frame)))) => {
                    self.socket = None;
                    if let Some(frame) = frame
                        && let Some(error) = refused(u16::from(frame.code), &frame.reason)
                    {
                        return Err(error.into());
                    }
                }
                // Pings are answered by the library, in the next read.
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(_)) | None) | Err(_) => self.socket = None,
            }
        }
    }

    async fn connect(&self, path: &str) -> Result<Socket, ClientError> {
        let like = self.client.request(Method::GET, path)?.build();
        let like = like.map_err(|error| ClientError::Unreadable(error.to_string()))?;
        let running = self.client.running()?;
        let address = running.url();
        let url = format!("{}{path}", address.replacen("http", "ws", 1));
        let unreachable = |reason: String| ClientError::Unreachable {
            address: address.clone(),
            reason,
        };
        let request = url.into_client_request();
        let mut request = request.map_err(|error| unreachable(error.to_string()))?;
        request.headers_mut().extend(like.headers().clone());
        let opening = async {
            let stream = self.stream(&running).await?;
            tokio_tungstenite::client_async(request, stream).await
        };
        match timeout(SILENCE_LIMIT, opening).await {
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

    async fn stream(&self, running: &Running) -> io::Result<Stream> {
        let stream = TcpStream::connect(running.address).await?;
        stream.set_nodelay(true)?;
        match running.wire() {
            Wire::Plain => Ok(Either::Left(stream)),
            Wire::Tls => {
                let connector = TlsConnector::from(Arc::clone(&self.client.tls));
                let name = running.address.ip().into();
                Ok(Either::Right(connector.connect(name, stream).await?))
            }
        }
    }
}

fn read<T: DeserializeOwned, Kind: DeserializeOwned>(text: &str) -> Result<Told<T>, ClientError> {
    #[derive(Deserialize)]
    struct Label {
        #[serde(rename = "type")]
        kind: String,
        seq: Option<u64>,
    }
    let error = match serde_json::from_str(text) {
        Ok(known) => return Ok(Told::Known(known)),
        Err(error) => error,
    };
    match serde_json::from_str::<Label>(text) {
        Ok(label) if is_unknown::<Kind>(&label.kind) => Ok(Told::Unknown { seq: label.seq }),
        _ => Err(ClientError::Unreadable(error.to_string())),
    }
}

/// Whether there is no such type: with nothing but that a known one lacks its fields at most.
fn is_unknown<Kind: DeserializeOwned>(kind: &str) -> bool {
    let alone = serde_json::from_value::<Kind>(json!({"type": kind}));
    alone.is_err_and(|error| error.to_string().starts_with("unknown variant"))
}

/// Whether it would be the same a moment later.
fn is_final(error: &ClientError) -> bool {
    match error {
        ClientError::Refused(refused) => !matches!(
            refused.code,
            ErrorCode::RateLimited
                | ErrorCode::ShuttingDown
                | ErrorCode::StoreUnavailable
                | ErrorCode::Internal
        ),
        ClientError::NoLink { .. } => true,
        ClientError::NotRunning { .. }
        | ClientError::Unreachable { .. }
        | ClientError::Unreadable(_) => false,
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

#[cfg(test)]
mod tests {
    use navi_actors::hub::HubFrame;
    use navi_actors::protocol::event::{Envelope, Event};
    use serde_json::Value;

    use super::*;

    fn session(frame: &Value) -> Result<Told<Envelope>, ClientError> {
        read::<Envelope, Event>(&frame.to_string())
    }

    #[test]
    fn what_a_newer_service_tells_is_passed_over_and_nothing_else_is() {
        let at = "2026-01-01T00:00:00Z";
        let unknown = json!({"type": "weather_changed", "seq": 7, "at": at, "sky": "clear"});
        let told = session(&unknown).unwrap();
        assert_eq!(told, Told::Unknown { seq: Some(7) });
        let told = read::<HubFrame, HubFrame>(r#"{"type":"moon_changed"}"#).unwrap();
        assert_eq!(told, Told::Unknown { seq: None });

        let known = json!({"type": "mode_changed", "seq": 7, "at": at, "mode": "ask"});
        assert!(matches!(session(&known), Ok(Told::Known(_))));
        for wrong in [
            json!({"type": "mode_changed", "seq": 7, "at": at, "mode": "weather_changed"}),
            json!({"type": "mode_changed", "seq": 7, "at": at}),
            json!({"type": "pong"}),
            json!({"seq": 7, "at": at}),
            json!("weather_changed"),
        ] {
            let read = session(&wrong);
            assert!(matches!(read, Err(ClientError::Unreadable(_))), "{read:?}");
        }
    }
}
