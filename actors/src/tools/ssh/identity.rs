//! Who Navi is to a host: a private key's file, or the keys of the ssh agent.
//!
//! RSA keys are signed with by ring. The `rsa` crate that russh would use leaks a private key
//! through timing (RUSTSEC-2023-0071) and stays out of the tree. That leaves RSA host keys
//! unchecked and so refused; every OpenSSH server since 2014 has an ed25519 key beside.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use num_bigint::BigUint;
use ring::rand::SystemRandom;
use ring::rsa::{KeyPair, KeyPairComponents, PublicKeyComponents};
use ring::signature::{RSA_PKCS1_SHA256, RSA_PKCS1_SHA512, RsaEncoding};
use russh::AgentAuthError;
use russh::client::Handle;
use russh::keys::agent::AgentIdentity;
use russh::keys::agent::client::AgentClient;
use russh::keys::ssh_key::encoding::Encode as _;
use russh::keys::ssh_key::private::RsaKeypair;
use russh::keys::ssh_key::public::{KeyData, RsaPublicKey};
use russh::keys::ssh_key::{Mpint, Signature};
use russh::keys::{
    self, Algorithm, HashAlg, PrivateKey, PrivateKeyWithHashAlg, PublicKey, ssh_key,
};
use rustix::fs::OFlags;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::net::UnixStream;

use super::NAME;
use super::connection::Client;
use super::hosts::Host;
use crate::tools::trust::{open_regular, read_all};
use crate::tools::{ToolError, ToolResult, blocking};

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
) -> ToolResult<()> {
    let Some(path) = &host.key else {
        return with_agent(handle, host, agent_socket, None).await;
    };
    let (name, file) = (host.name.clone(), path.clone());
    let key = blocking(NAME, move || {
        load(&file).map_err(|problem| {
            refusal!(
                "the key of the host `{name}`, {}, {problem}; the user has to correct it",
                file.display()
            )
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
    let Host { name, user, .. } = host;
    refusal!(
        "the host `{name}` refused the user {user} {how}; the user has to add the key's public half to ~/.ssh/authorized_keys there"
    )
}

/// Tries the agent's keys; of `only`, where given, that one alone.
async fn with_agent(
    handle: &mut Handle<Client>,
    host: &Host,
    socket: Option<&Path>,
    only: Option<&PublicKey>,
) -> ToolResult<()> {
    let Some(socket) = socket else {
        refuse!(
            "the host `{}` wants the ssh agent, and SSH_AUTH_SOCK was not set when Navi started; the user has to start Navi where the agent runs, or name a key file for this host",
            host.name
        );
    };
    let failed = |what: String| {
        refusal!(
            "the ssh agent at {} {what}; the user has to look at it",
            socket.display()
        )
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
        let answer = handle.authenticate_publickey_with(&host.user, key, hash, &mut agent);
        match answer.await {
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
    match keys::decode_secret_key(text, None) {
        Ok(key) => Ok(FileKey::Plain(Arc::new(key))),
        Err(keys::Error::KeyIsEncrypted) => Ok(FileKey::Encrypted(None)),
        Err(_) => Err(KINDS.to_owned()),
    }
}

/// Signs log-ins with an RSA key.
#[derive(Debug)]
struct RsaSigner {
    pair: KeyPair,
    public: PublicKey,
}

impl RsaSigner {
    /// A key of OpenSSH's own format, which leaves out what follows from the rest.
    fn of_openssh(key: &RsaKeypair) -> Result<Self, String> {
        let (public, private) = (key.public(), key.private());
        let number = |value: &Mpint| {
            value
                .as_positive_bytes()
                .map(BigUint::from_bytes_be)
                .ok_or_else(|| "is broken: a number in it is negative".to_owned())
        };
        let d = number(private.d())?;
        let p = number(private.p())?;
        let q = number(private.q())?;
        let one = BigUint::from(1_u8);
        refuse_if!(
            p <= one || q <= one,
            "is broken: a factor in it is no prime"
        );
        let components = KeyPairComponents {
            public_key: PublicKeyComponents {
                n: number(public.n())?.to_bytes_be(),
                e: number(public.e())?.to_bytes_be(),
            },
            dP: (&d % (&p - &one)).to_bytes_be(),
            dQ: (&d % (&q - &one)).to_bytes_be(),
            qInv: number(private.iqmp())?.to_bytes_be(),
            d: d.to_bytes_be(),
            p: p.to_bytes_be(),
            q: q.to_bytes_be(),
        };
        Self::of_pair(KeyPair::from_components(&components).map_err(rejected)?)
    }

    /// A key of an older format: PKCS#1, or PKCS#8 where it is an RSA key.
    fn of_pem(text: &str) -> Result<Option<Self>, String> {
        let pair = match PrivateKeyDer::from_pem_slice(text.as_bytes()) {
            Ok(PrivateKeyDer::Pkcs1(der)) => KeyPair::from_der(der.secret_pkcs1_der()),
            Ok(PrivateKeyDer::Pkcs8(der)) => KeyPair::from_pkcs8(der.secret_pkcs8_der()),
            // Not an RSA key, which another reader may take.
            _ => return Ok(None),
        };
        match pair {
            Ok(pair) => Self::of_pair(pair).map(Some),
            Err(error) if error.to_string() == "WrongAlgorithm" => Ok(None),
            Err(error) => Err(rejected(error)),
        }
    }

    fn of_pair(pair: KeyPair) -> Result<Self, String> {
        let components = PublicKeyComponents::<Vec<u8>>::from(pair.public());
        let number = |bytes: &[u8]| Mpint::from_positive_bytes(bytes);
        let public = RsaPublicKey::new(number(&components.e), number(&components.n))
            .map_err(|error| format!("is broken: {error}"))?;
        Ok(Self {
            pair,
            public: PublicKey::new(KeyData::Rsa(public), ""),
        })
    }

    fn sign(&self, hash: Option<HashAlg>, data: &[u8]) -> ssh_key::Result<Signature> {
        let (hash, padding): (_, &'static dyn RsaEncoding) = match hash {
            Some(HashAlg::Sha256) => (HashAlg::Sha256, &RSA_PKCS1_SHA256),
            _ => (HashAlg::Sha512, &RSA_PKCS1_SHA512),
        };
        let mut signature = vec![0; self.pair.public().modulus_len()];
        self.pair
            .sign(padding, &SystemRandom::new(), data, &mut signature)
            .map_err(|_| ssh_key::Error::Crypto)?;
        Signature::new(Algorithm::Rsa { hash: Some(hash) }, signature)
    }
}

impl russh::Signer for RsaSigner {
    type Error = AgentAuthError;

    /// Gives back what is to be signed with the signature after it, as russh wants it.
    async fn auth_sign(
        &mut self,
        _: &AgentIdentity,
        hash: Option<HashAlg>,
        mut to_sign: Vec<u8>,
    ) -> Result<Vec<u8>, AgentAuthError> {
        let signature = self.sign(hash, &to_sign).map_err(keys::Error::from)?;
        let added = signature.encode_prefixed(&mut to_sign);
        added.map_err(keys::Error::from)?;
        Ok(to_sign)
    }
}

fn rejected(error: ring::error::KeyRejected) -> String {
    format!("is no RSA key that can be used (of 2048 to 4096 bits): {error}")
}
