//! Who Navi is to a host: a private key's file, or the keys of the ssh agent.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use russh::client::Handle;
use russh::keys::agent::AgentIdentity;
use russh::keys::agent::client::AgentClient;
use russh::keys::{HashAlg, PrivateKey, PrivateKeyWithHashAlg, PublicKey};
use rustix::fs::OFlags;
use tokio::net::UnixStream;

use super::NAME;
use super::connection::Client;
use super::hosts::Host;
use super::rsa_key::RsaSigner;
use crate::tools::trust::{open_regular, read_all};
use crate::tools::{ToolError, blocking};

/// As many bytes as a key file has.
const MAX_KEY_BYTES: u64 = 64 * 1024;
/// As many of the agent's keys as are tried: a server hangs up after six.
const MAX_AGENT_KEYS: usize = 5;

/// A key of a file, as far as it can be used.
#[derive(Debug)]
enum FileKey {
    Plain(Arc<PrivateKey>),
    Rsa(Box<RsaSigner>),
    /// It needs a passphrase; its public half says which of the agent's keys it is.
    Encrypted(Option<PublicKey>),
}

/// Logs in.
pub(super) async fn authenticate(
    handle: &mut Handle<Client>,
    host: &Host,
    agent_socket: Option<&Path>,
) -> Result<(), ToolError> {
    let Some(path) = &host.key else {
        return with_agent(handle, host, agent_socket, None).await;
    };
    let (name, file) = (host.name.clone(), path.clone());
    let key = blocking(NAME, move || {
        load(&file).map_err(|problem| {
            ToolError(format!(
                "the key of the host `{name}`, {}, {problem}; the user has to correct it",
                file.display()
            ))
        })
    });
    let answer = match key.await? {
        FileKey::Encrypted(public) if host.agent => {
            return with_agent(handle, host, agent_socket, public.as_ref()).await;
        }
        FileKey::Encrypted(_) => {
            refuse!(
                "the key of the host `{}`, {path}, is encrypted with a passphrase, which Navi does not ask for; the user has to give it to the ssh agent (ssh-add {path}) and write \"agent\": true for this host",
                host.name,
                path = path.display()
            );
        }
        FileKey::Plain(key) => {
            let key = PrivateKeyWithHashAlg::new(key, None);
            let answer = handle.authenticate_publickey(&host.user, key).await;
            answer.map_err(|error| error.to_string())
        }
        FileKey::Rsa(mut signer) => {
            let hash = Some(rsa_hash(handle).await);
            let public = signer.public.clone();
            let answer = handle.authenticate_publickey_with(&host.user, public, hash, &mut *signer);
            answer.await.map_err(|error| error.to_string())
        }
    };
    let how = format!("with the key {}", path.display());
    match answer {
        Ok(result) if result.success() => Ok(()),
        Ok(_) => Err(refused(host, &how)),
        Err(error) => refuse!("logging in to `{}` {how} failed: {error}", host.name),
    }
}

/// What a server that knows no SHA-2 would want is SHA-1, which nobody should sign with.
async fn rsa_hash(handle: &Handle<Client>) -> HashAlg {
    let best = handle.best_supported_rsa_hash().await;
    best.ok().flatten().flatten().unwrap_or(HashAlg::Sha512)
}

fn refused(host: &Host, how: &str) -> ToolError {
    ToolError(format!(
        "the host `{}` refused the user {} {how}; the user has to add the key's public half to ~/.ssh/authorized_keys there",
        host.name, host.user
    ))
}

/// Tries the agent's keys; of `only`, where given, that one alone.
async fn with_agent(
    handle: &mut Handle<Client>,
    host: &Host,
    socket: Option<&Path>,
    only: Option<&PublicKey>,
) -> Result<(), ToolError> {
    let Some(socket) = socket else {
        refuse!(
            "the host `{}` wants the ssh agent, and SSH_AUTH_SOCK was not set when Navi started; the user has to start Navi where the agent runs, or name a key file for this host",
            host.name
        );
    };
    let failed = |what: String| {
        ToolError(format!(
            "the ssh agent at {} {what}; the user has to look at it",
            socket.display()
        ))
    };
    let stream = UnixStream::connect(socket)
        .await
        .map_err(|error| failed(format!("cannot be reached: {error}")))?;
    let mut agent = AgentClient::connect(stream);
    if let Some(binding) = handle.agent_session_binding() {
        // Agents before OpenSSH 8.9 do not know this and say so. It matters for keys that are
        // meant for certain hosts only, and those are not in such agents.
        let _ = agent.bind_session(binding, false).await;
    }
    let identities = agent.request_identities().await;
    let identities =
        identities.map_err(|error| failed(format!("does not tell its keys: {error}")))?;
    let keys: Vec<PublicKey> = identities
        .into_iter()
        .filter_map(|identity| match identity {
            AgentIdentity::PublicKey { key, .. } => Some(key),
            AgentIdentity::Certificate { .. } => None,
        })
        .filter(|key| only.is_none_or(|only| only.key_data() == key.key_data()))
        .take(MAX_AGENT_KEYS)
        .collect();
    if keys.is_empty() {
        let what = if only.is_some() {
            "does not have the key of this host: it has to be added with ssh-add"
        } else {
            "has no keys: they have to be added with ssh-add"
        };
        return Err(failed(what.to_owned()));
    }
    let tried = keys.len();
    for key in keys {
        let hash = match key.algorithm().is_rsa() {
            true => Some(rsa_hash(handle).await),
            false => None,
        };
        let answer = handle
            .authenticate_publickey_with(&host.user, key, hash, &mut agent)
            .await;
        match answer {
            Ok(result) if result.success() => return Ok(()),
            Ok(_) if handle.is_closed() => break,
            Ok(_) => {}
            // The agent refuses to sign with this one, or the person did; there may be others.
            Err(error) => tracing::debug!(%error, host = host.name, "the ssh agent did not sign"),
        }
    }
    Err(refused(
        host,
        &format!("with each of the {tried} keys of the ssh agent that were tried"),
    ))
}

/// Reads a key's file. The error goes on from "the key … ".
fn load(path: &Path) -> Result<FileKey, String> {
    let (file, metadata) = open_regular(path, OFlags::empty())
        .map_err(|error| format!("cannot be opened: {error}"))?;
    let mode = metadata.permissions().mode() & 0o777;
    refuse_if!(
        mode & 0o077 != 0,
        "is open to others (mode {mode:03o}), so it may be known to them: chmod 600"
    );
    let text = read_all(file, MAX_KEY_BYTES);
    let text = text.and_then(|text| String::from_utf8(text).map_err(io::Error::other));
    parse(&text.map_err(|error| format!("cannot be read: {error}"))?)
}

fn parse(text: &str) -> Result<FileKey, String> {
    const KINDS: &str = "is no private key that can be read here (ed25519, ecdsa and rsa in OpenSSH's or PEM form can)";
    if text.contains("BEGIN OPENSSH PRIVATE KEY") {
        let key = PrivateKey::from_openssh(text).map_err(|error| format!("{KINDS}: {error}"))?;
        return if key.is_encrypted() {
            Ok(FileKey::Encrypted(Some(key.public_key().clone())))
        } else if let Some(rsa) = key.key_data().rsa() {
            RsaSigner::of_openssh(rsa).map(|signer| FileKey::Rsa(Box::new(signer)))
        } else {
            Ok(FileKey::Plain(Arc::new(key)))
        };
    }
    if text.contains("ENCRYPTED") {
        return Ok(FileKey::Encrypted(None));
    }
    if let Some(signer) = RsaSigner::of_pem(text)? {
        return Ok(FileKey::Rsa(Box::new(signer)));
    }
    match russh::keys::decode_secret_key(text, None) {
        Ok(key) => Ok(FileKey::Plain(Arc::new(key))),
        Err(russh::keys::Error::KeyIsEncrypted) => Ok(FileKey::Encrypted(None)),
        Err(_) => Err(KINDS.to_owned()),
    }
}
