//! One connection to a host: made, checked, logged in to, hung up.

use std::fmt;
use std::net::Shutdown;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use russh::client::{self, Handle, Msg};
use russh::keys::ssh_key::public::KeyData;
use russh::keys::{Algorithm, EcdsaCurve, PublicKeyOrCertificate};
use russh::{AlgorithmKind, Channel, Preferred};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::hosts::Host;
use super::identity;
use super::known_hosts::{KeyStatus, Known, shown};
use crate::tools::{ToolError, ToolResult};

/// For the name's look-up and TCP.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// For a channel on a connection that stands.
const CHANNEL_TIME: Duration = Duration::from_secs(15);
/// For all of it, where only the key is learnt: a person waits to be asked.
const LEARN_TIME: Duration = Duration::from_secs(9);
/// A silent connection is asked for a sign of life this often, and given up after four times.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// How long other parts of connecting may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// From the first byte to the host's key.
    pub(super) handshake: Duration,
    /// Long enough for a person to confirm the use of a key.
    pub(super) log_in: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(15),
            log_in: Duration::from_secs(30),
        }
    }
}

/// russh's view of us: checks the host's key, and takes nothing that the host offers by itself.
#[derive(Debug)]
pub(super) struct Client {
    known: Known,
    seen: Arc<OnceLock<Seen>>,
}

/// A host's key, and what was found out about it.
type Seen = (KeyData, KeyStatus);

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
        let PublicKeyOrCertificate::PublicKey { key, .. } = offered else {
            return Ok(false);
        };
        let key = key.key_data().clone();
        let status = self.known.status(&key);
        let is_trusted = self.known.is_trusted(&key, &status);
        // One that is shown later, when keys are exchanged anew, is judged all the same.
        let _ = self.seen.set((key, status));
        Ok(is_trusted)
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
    /// Last, so that the handle goes first.
    _line: HangUp,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connection (closed: {})", self.is_closed())
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
    /// Connects, checks the host's key and logs in. A key that was trusted because it was
    /// approved comes with it, to be stored.
    pub(super) async fn open(
        host: &Host,
        known: Known,
        agent_socket: Option<&Path>,
        times: Times,
    ) -> ToolResult<(Self, Option<KeyData>)> {
        let (result, line, seen) = reach(host, known, times).await?;
        let (mut handle, (key, status)) = match (result, seen) {
            (Ok(handle), Some(seen)) => (handle, seen),
            (result, seen) => return Err(turned_away(host, seen, result.err())),
        };
        let logging_in = identity::authenticate(&mut handle, host, agent_socket);
        let logged_in = timeout(times.log_in, logging_in).await;
        logged_in.unwrap_or_else(|_| {
            let (name, seconds) = (&host.name, times.log_in.as_secs());
            refuse!(
                "logging in to `{name}` was not done within {seconds} s; try again, or tell the user"
            )
        })?;
        let connection = Self {
            handle,
            _line: line,
        };
        Ok((connection, (status == KeyStatus::Unknown).then_some(key)))
    }

    pub(super) fn is_closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// A new channel on this connection, or why there is none: it goes on from "the host …".
    pub(super) async fn channel(&self) -> Result<Channel<Msg>, &'static str> {
        match timeout(CHANNEL_TIME, self.handle.channel_open_session()).await {
            Ok(Ok(channel)) => Ok(channel),
            Ok(Err(russh::Error::ChannelOpenFailure(_))) => {
                Err("opens no more sessions for this user; wait until a command has ended")
            }
            Ok(Err(_)) | Err(_) => Err(DEAD),
        }
    }
}

/// Why there is no channel on a connection that is gone.
pub(super) const DEAD: &str = "does not answer any more; try again, or tell the user";

/// The key that a host shows, and what is known of it, without logging in.
pub(super) async fn learn(host: &Host, known: Known, times: Times) -> ToolResult<Seen> {
    let reached = timeout(LEARN_TIME, reach(host, known, times)).await;
    let (result, _line, seen) = reached.unwrap_or_else(|_| {
        let (name, seconds) = (&host.name, LEARN_TIME.as_secs());
        refuse!(
            "the host `{name}` did not show its key within {seconds} s; check with the user that it is up"
        )
    })?;
    seen.ok_or_else(|| turned_away(host, None, result.err()))
}

type Reached = (Result<Handle<Client>, russh::Error>, HangUp, Option<Seen>);

/// Goes as far as the check of the host's key.
async fn reach(host: &Host, known: Known, times: Times) -> ToolResult<Reached> {
    let (name, address, port) = (&host.name, host.address.as_str(), host.port);
    let unreachable = |reason: &str| {
        refusal!(
            "the host `{name}` ({address}, port {port}) cannot be reached: {reason}; check with the user that it is up"
        )
    };
    let (stream, line) = timeout(CONNECT_TIME, TcpStream::connect((address, port)))
        .await
        .map_err(|_| unreachable(&format!("no answer within {} s", CONNECT_TIME.as_secs())))?
        .and_then(with_hang_up)
        .map_err(|error| unreachable(&error.to_string()))?;
    let config = config(&known);
    let seen = Arc::<OnceLock<Seen>>::default();
    let client = Client {
        known,
        seen: Arc::clone(&seen),
    };
    let connecting = client::connect_stream(Arc::new(config), stream, client);
    let Ok(result) = timeout(times.handshake, connecting).await else {
        refuse!(
            "the host `{name}` did not finish the SSH handshake within {} s; it is overloaded, or no SSH server listens on port {port}",
            times.handshake.as_secs()
        );
    };
    Ok((result, line, seen.get().cloned()))
}

fn with_hang_up(stream: TcpStream) -> std::io::Result<(TcpStream, HangUp)> {
    stream.set_nodelay(true)?;
    let stream = stream.into_std()?;
    let line = HangUp(stream.try_clone()?);
    Ok((TcpStream::from_std(stream)?, line))
}

fn config(known: &Known) -> client::Config {
    use EcdsaCurve::{NistP256, NistP384, NistP521};
    // The kinds of host keys that can be checked, those that are known for the host first, so that
    // a server with several keys shows the one that can be compared.
    let mut algorithms = vec![Algorithm::Ed25519];
    algorithms.extend([NistP256, NistP384, NistP521].map(|curve| Algorithm::Ecdsa { curve }));
    let known: Vec<Algorithm> = known.algorithms().collect();
    algorithms.sort_by_key(|algorithm| !known.contains(algorithm));
    client::Config {
        client_id: russh::SshId::Standard(
            concat!("SSH-2.0-Navi_", env!("CARGO_PKG_VERSION")).into(),
        ),
        keepalive_interval: Some(KEEPALIVE),
        keepalive_max: 3,
        preferred: Preferred {
            key: algorithms.into(),
            ..Preferred::DEFAULT
        },
        ..client::Config::default()
    }
}

/// Why the connection did not come about, by what is known of the host's key.
fn turned_away(host: &Host, seen: Option<Seen>, error: Option<russh::Error>) -> ToolError {
    let name = &host.name;
    let error = error.unwrap_or(russh::Error::UnknownKey);
    if let (Some((key, status)), russh::Error::UnknownKey) = (seen, &error) {
        let key_shown = shown(&key);
        return status.refusal(host, &key).unwrap_or_else(|| {
            refusal!(
                "the host `{name}` shows the key {key_shown}, which nobody has approved, so nothing was done. Make the call again to have the user asked about this key; where the session's mode is auto nobody is asked, and the user has to choose another mode for that"
            )
        });
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
