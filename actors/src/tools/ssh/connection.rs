//! One connection to a host: made, checked, logged in to, hung up.

use std::fmt;
use std::net::Shutdown;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use russh::client::{self, Handle, Msg};
use russh::keys::{Algorithm, EcdsaCurve, PublicKeyOrCertificate};
use russh::{AlgorithmKind, Channel, Preferred};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::hosts::Host;
use super::identity;
use super::known_hosts::{HostKey, KeyStatus, Known};
use crate::tools::ToolError;

/// How long each part of connecting may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// The name's look-up and TCP.
    pub(super) connect: Duration,
    /// From the first byte to the host's key.
    pub(super) handshake: Duration,
    /// Long enough for a person to confirm the use of a key.
    pub(super) log_in: Duration,
    /// A channel on a connection that stands.
    pub(super) channel: Duration,
    /// All of it, where only the key is learnt: a person waits to be asked.
    pub(super) learn: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            handshake: Duration::from_secs(15),
            log_in: Duration::from_secs(30),
            channel: Duration::from_secs(15),
            learn: Duration::from_secs(9),
        }
    }
}

/// A silent connection is asked for a sign of life this often, and given up after four times.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// What a host's key is held against.
#[derive(Debug)]
pub(super) enum Check {
    /// Nothing: learn it, and go no further.
    Learn,
    /// It must be known, or be the one that was approved.
    Trust {
        known: Known,
        approved: Option<HostKey>,
    },
}

/// russh's view of us: checks the host's key, and takes nothing that the host offers by itself.
#[derive(Debug)]
pub(super) struct Client {
    check: Check,
    seen: Arc<Mutex<Option<Seen>>>,
}

/// What was found out about a host's key.
#[derive(Clone, Debug)]
struct Seen {
    key: HostKey,
    status: KeyStatus,
}

impl Client {
    fn judge(&self, key: HostKey) -> bool {
        let (status, trusted) = match &self.check {
            Check::Learn => (KeyStatus::Unknown, false),
            Check::Trust { known, approved } => {
                let status = known.status(&key);
                let trusted = match status {
                    KeyStatus::Known => true,
                    KeyStatus::Unknown => approved.as_ref() == Some(&key),
                    KeyStatus::Changed(_) | KeyStatus::Revoked(_) => false,
                };
                (status, trusted)
            }
        };
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(Seen { key, status });
        trusted
    }
}

/// A channel that the host opens is refused by dropping what would answer it. russh's own
/// answer is to take it.
macro_rules! refuse_channels {
    ($($name:ident($($type:ty),*)),* $(,)?) => {
        $(
            async fn $name(
                &mut self,
                _: Channel<Msg>,
                $(_: $type,)*
                _: client::ChannelOpenHandle,
                _: &mut client::Session,
            ) -> Result<(), russh::Error> {
                Ok(())
            }
        )*
    };
}

impl client::Handler for Client {
    type Error = russh::Error;

    async fn check_server_key(
        &mut self,
        offered: &PublicKeyOrCertificate,
    ) -> Result<bool, russh::Error> {
        let key = match offered {
            PublicKeyOrCertificate::PublicKey { key, .. } => HostKey::of(key),
            PublicKeyOrCertificate::Certificate(_) => None,
        };
        Ok(key.is_some_and(|key| self.judge(key)))
    }

    refuse_channels! {
        server_channel_open_forwarded_tcpip(&str, u32, &str, u32),
        server_channel_open_forwarded_streamlocal(&str),
        server_channel_open_agent_forward(),
        server_channel_open_session(),
        server_channel_open_direct_tcpip(&str, u32, &str, u32),
        server_channel_open_direct_streamlocal(&str),
        server_channel_open_x11(&str, u32),
    }
}

/// A connection that is logged in. Dropping it hangs up.
pub(super) struct Connection {
    handle: Handle<Client>,
    host: String,
    channel_time: Duration,
    /// Last, so that the handle goes first.
    _line: HangUp,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("host", &self.host)
            .field("closed", &self.handle.is_closed())
            .finish_non_exhaustive()
    }
}

/// Ends the socket, whoever still holds it: russh reads it in a task of its own, which a time-out
/// of ours would not end.
#[derive(Debug)]
struct HangUp(std::net::TcpStream);

impl Drop for HangUp {
    fn drop(&mut self) {
        // Fails where the other side was first.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

impl Connection {
    /// Connects, checks the host's key and logs in. The key that was checked comes with it, and
    /// whether it still has to be stored.
    pub(super) async fn open(
        host: &Host,
        check: Check,
        agent_socket: Option<&Path>,
        times: Times,
    ) -> Result<(Self, HostKey, KeyStatus), ToolError> {
        let (mut handle, line, seen) = match reach(host, check, times).await? {
            (Ok(handle), line, Some(seen)) => (handle, line, seen),
            (Err(error), _, seen) => return Err(turned_away(host, seen, &error)),
            (Ok(_), _, None) => return Err(turned_away(host, None, &russh::Error::UnknownKey)),
        };
        timeout(
            times.log_in,
            identity::authenticate(&mut handle, host, agent_socket),
        )
        .await
        .unwrap_or_else(|_| {
            Err(ToolError(format!(
                "logging in to `{}` was not done within {} s; try again, or tell the user",
                host.name,
                times.log_in.as_secs()
            )))
        })?;
        let connection = Self {
            handle,
            host: host.name.clone(),
            channel_time: times.channel,
            _line: line,
        };
        Ok((connection, seen.key, seen.status))
    }

    pub(super) fn is_closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// A new channel on this connection.
    pub(super) async fn channel(&self) -> Result<Channel<Msg>, ChannelError> {
        match timeout(self.channel_time, self.handle.channel_open_session()).await {
            Ok(Ok(channel)) => Ok(channel),
            Ok(Err(russh::Error::ChannelOpenFailure(_))) => Err(ChannelError::Refused),
            Ok(Err(_)) | Err(_) => Err(ChannelError::Dead),
        }
    }
}

/// Why there is no channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChannelError {
    /// The host opens no more of them, or none to this user.
    Refused,
    /// The connection is gone.
    Dead,
}

/// The key that a host shows, without logging in.
pub(super) async fn learn(host: &Host, times: Times) -> Result<HostKey, ToolError> {
    let Ok(reached) = timeout(times.learn, reach(host, Check::Learn, times)).await else {
        return Err(ToolError(format!(
            "the host `{}` did not show its key within {} s; check with the user that it is up",
            host.name,
            times.learn.as_secs()
        )));
    };
    let (result, _line, seen) = reached?;
    match (seen, result) {
        (Some(seen), _) => Ok(seen.key),
        (None, Err(error)) => Err(turned_away(host, None, &error)),
        (None, Ok(_)) => Err(turned_away(host, None, &russh::Error::UnknownKey)),
    }
}

type Reached = (Result<Handle<Client>, russh::Error>, HangUp, Option<Seen>);

/// Goes as far as the check of the host's key.
async fn reach(host: &Host, check: Check, times: Times) -> Result<Reached, ToolError> {
    let unreachable = |reason: &str| {
        ToolError(format!(
            "the host `{}` ({}, port {}) cannot be reached: {reason}; check with the user that it is up",
            host.name, host.address, host.port
        ))
    };
    let address = (host.address.as_str(), host.port);
    let stream = match timeout(times.connect, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(unreachable(&error.to_string())),
        Err(_) => {
            return Err(unreachable(&format!(
                "no answer within {} s",
                times.connect.as_secs()
            )));
        }
    };
    let (stream, line) = with_hang_up(stream).map_err(|error| unreachable(&error.to_string()))?;
    let config = config(match &check {
        Check::Learn => None,
        Check::Trust { known, .. } => Some(known),
    });
    let seen = Arc::default();
    let client = Client {
        check,
        seen: Arc::clone(&seen),
    };
    let connecting = client::connect_stream(Arc::new(config), stream, client);
    let Ok(result) = timeout(times.handshake, connecting).await else {
        return Err(ToolError(format!(
            "the host `{}` did not finish the SSH handshake within {} s; it is overloaded, or no SSH server listens on port {}",
            host.name,
            times.handshake.as_secs(),
            host.port
        )));
    };
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).take();
    Ok((result, line, seen))
}

fn with_hang_up(stream: TcpStream) -> std::io::Result<(TcpStream, HangUp)> {
    stream.set_nodelay(true)?;
    let stream = stream.into_std()?;
    let line = HangUp(stream.try_clone()?);
    Ok((TcpStream::from_std(stream)?, line))
}

fn config(known: Option<&Known>) -> client::Config {
    client::Config {
        client_id: russh::SshId::Standard(
            concat!("SSH-2.0-Navi_", env!("CARGO_PKG_VERSION")).into(),
        ),
        keepalive_interval: Some(KEEPALIVE),
        keepalive_max: 3,
        preferred: Preferred {
            key: host_key_algorithms(known).into(),
            ..Preferred::DEFAULT
        },
        ..client::Config::default()
    }
}

/// The kinds of host keys that can be checked, those that are known for the host first, so that
/// a server with several keys shows the one that can be compared.
fn host_key_algorithms(known: Option<&Known>) -> Vec<Algorithm> {
    let mut algorithms = vec![
        Algorithm::Ed25519,
        Algorithm::Ecdsa {
            curve: EcdsaCurve::NistP256,
        },
        Algorithm::Ecdsa {
            curve: EcdsaCurve::NistP384,
        },
        Algorithm::Ecdsa {
            curve: EcdsaCurve::NistP521,
        },
    ];
    let known: Vec<&str> = known.into_iter().flat_map(Known::algorithms).collect();
    algorithms.sort_by_key(|algorithm| !known.contains(&algorithm.as_str()));
    algorithms
}

/// Why the connection did not come about, by what is known of the host's key.
fn turned_away(host: &Host, seen: Option<Seen>, error: &russh::Error) -> ToolError {
    let name = &host.name;
    if let Some(Seen { key, status }) = seen
        && matches!(error, russh::Error::UnknownKey)
    {
        return match status {
            KeyStatus::Changed(_) | KeyStatus::Revoked(_) => distrusted(host, Some(&key), &status),
            KeyStatus::Known | KeyStatus::Unknown => ToolError(format!(
                "the host `{name}` shows the key {}, which nobody has approved, so nothing was done. Make the call again to have the user asked about this key; where the session's mode is auto nobody is asked, and the user has to choose another mode for that",
                key.shown()
            )),
        };
    }
    ToolError(match error {
        russh::Error::NoCommonAlgo {
            kind: AlgorithmKind::Key,
            ..
        } => format!(
            "the host `{name}` has no host key that can be checked here (ed25519 or ecdsa); the user has to make one there with ssh-keygen -A"
        ),
        russh::Error::NoCommonAlgo { kind, .. } => format!(
            "the host `{name}` offers no safe algorithm that is known here ({kind:?}); the user has to bring its SSH server up to date"
        ),
        russh::Error::Version => format!(
            "what answers at the host `{name}`, port {}, is no SSH server",
            host.port
        ),
        error => format!(
            "the SSH handshake with the host `{name}` failed: {error}; try once more, then tell the user"
        ),
    })
}

/// The refusal of a host whose key is not the known one. `key` is none where it was not looked at.
pub(super) fn distrusted(host: &Host, key: Option<&HostKey>, status: &KeyStatus) -> ToolError {
    let name = &host.name;
    let key = key.map_or_else(String::new, |key| format!(", {},", key.shown()));
    ToolError(match status {
        KeyStatus::Revoked(place) => format!(
            "refused: the key{key} of the host `{name}` is marked as revoked in {}, line {}; tell the user",
            place.file.display(),
            place.line
        ),
        KeyStatus::Changed(place) => format!(
            "refused: the host `{name}` shows another key{key} than the one known from {}, line {}. Somebody may be in between, or the host was set up anew. Tell the user; only after checking may they remove that line",
            place.file.display(),
            place.line
        ),
        KeyStatus::Known | KeyStatus::Unknown => {
            format!("the key of the host `{name}` is not trusted")
        }
    })
}
