//! TLS of Navi's own: the certificate that she shows, read again when its files change.
//!
//! Connections that are open stay with the certificate that they began with. Files that are wrong
//! leave the last good ones in force, and the log says what is wrong with them.

use std::fs::File;
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

use crate::settings::TlsFiles;

/// How often it is looked whether the files have changed. By this and not by what the system tells
/// of changes: they are links, often, whose ends are in folders of programs that renew them.
const LOOK: Duration = Duration::from_secs(1);
/// A chain of certificates has some kilobytes.
const MAX_BYTES: u64 = 1 << 20;

/// How the service is spoken with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Plain,
    Tls,
}

impl Wire {
    /// Where a service that listens here is on this machine, without a slash at the end.
    pub(crate) fn url(self, mut address: SocketAddr) -> String {
        // Everywhere is nowhere that a browser could go.
        match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
            IpAddr::V4(_) | IpAddr::V6(_) => {}
        }
        self.url_of(&address.to_string())
    }

    /// The same of a host with its port.
    pub(crate) fn url_of(self, place: &str) -> String {
        match self {
            Self::Plain => format!("http://{place}"),
            Self::Tls => format!("https://{place}"),
        }
    }
}

/// A certificate, by the SHA-256 of it in hex.
pub(crate) fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    hex::encode(Sha256::digest(certificate))
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Tls {
    files: TlsFiles,
    read: Stamps,
    shown: watch::Sender<Arc<CertifiedKey>>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// What is wrong with them, as one sentence.
    pub(crate) fn read(files: &TlsFiles) -> Result<Self, String> {
        let stamps = Stamps::of(files);
        let certificate = certificate(files)?;
        Ok(Self {
            files: files.clone(),
            read: stamps,
            shown: watch::Sender::new(Arc::new(certificate)),
        })
    }

    /// What a server needs to show what is read.
    ///
    /// # Errors
    /// None that can happen with what is built in.
    pub(crate) fn config(&self) -> Result<ServerConfig, rustls::Error> {
        let shown = Arc::new(Shown(self.shown.subscribe()));
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions()?;
        Ok(builder.with_no_client_auth().with_cert_resolver(shown))
    }

    /// The certificate that is shown now.
    pub(crate) fn fingerprint(&self) -> String {
        fingerprint_of(&self.shown.borrow())
    }

    /// Reads the files again when they change, until the service closes. `tell` is told which
    /// certificates may be met, before and after one takes another's place.
    pub(crate) fn watch(
        mut self,
        tell: impl Fn(Vec<String>) + Send + Sync + 'static,
        closing: CancellationToken,
    ) -> AbortOnDropHandle<()> {
        let watch = async move {
            let mut seen = self.read.clone();
            while closing
                .run_until_cancelled(tokio::time::sleep(LOOK))
                .await
                .is_some()
            {
                let now = self.stamps().await;
                // What changed since the last look may be half written.
                let is_steady = now == seen;
                seen = now;
                if is_steady && seen != self.read {
                    self.read = seen.clone();
                    self.renew(&tell).await;
                }
            }
        };
        AbortOnDropHandle::new(tokio::spawn(watch))
    }

    async fn stamps(&self) -> Stamps {
        let files = self.files.clone();
        let stamps = spawn_blocking(move || Stamps::of(&files)).await;
        stamps.unwrap_or_default()
    }

    async fn renew(&self, tell: &(impl Fn(Vec<String>) + Sync)) {
        let files = self.files.clone();
        let read = spawn_blocking(move || certificate(&files)).await;
        match read.map_err(|error| error.to_string()).flatten() {
            Ok(certificate) => {
                let (new, old) = (fingerprint_of(&certificate), self.fingerprint());
                tell(vec![new.clone(), old]);
                self.shown.send_replace(Arc::new(certificate));
                tell(vec![new]);
                info!("the certificate was read again and is shown from now on");
            }
            Err(why) => warn!("the certificate stays as it was: {why}"),
        }
    }
}

#[derive(Debug)]
struct Shown(watch::Receiver<Arc<CertifiedKey>>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.borrow()))
    }
}

/// By what a file is known to be another one, or to be written anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Stamps(Vec<Option<[i128; 5]>>);

impl Stamps {
    fn of(files: &TlsFiles) -> Self {
        let paths = [&files.certificate, &files.key];
        let stamp = |path: &Path| {
            let found = std::fs::metadata(path).ok()?;
            Some([
                found.dev().into(),
                found.ino().into(),
                found.size().into(),
                i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec()),
                i128::from(found.ctime()) * 1_000_000_000 + i128::from(found.ctime_nsec()),
            ])
        };
        Self(paths.map(|path| stamp(path)).to_vec())
    }
}

fn fingerprint_of(certificate: &CertifiedKey) -> String {
    certificate
        .cert
        .first()
        .map(fingerprint)
        .unwrap_or_default()
}

/// The certificate that stands in the files, without those that vouch for it.
///
/// # Errors
/// What is wrong with the files, as one sentence.
pub(crate) fn leaf(files: &TlsFiles) -> Result<CertificateDer<'static>, String> {
    let mut chain = certificate(files)?.cert;
    if chain.is_empty() {
        return Err(format!("{} is empty", files.certificate.display()));
    }
    Ok(chain.swap_remove(0))
}

/// Reads both files, which have to belong together.
fn certificate(files: &TlsFiles) -> Result<CertifiedKey, String> {
    let (path, key_path) = (files.certificate.display(), files.key.display());
    let text = contents(&files.certificate)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|error| format!("{path} is no certificate in PEM: {error}"))?;
    if chain.is_empty() {
        return Err(format!("{path} has no certificate in PEM"));
    }
    let key = PrivateKeyDer::from_pem_slice(&contents(&files.key)?)
        .map_err(|error| format!("{key_path} has no key in PEM without a password: {error}"))?;
    CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => {
            format!("the key in {key_path} is not that of the certificate in {path}")
        }
        other => {
            format!("the certificate in {path} cannot be used with the key in {key_path}: {other}")
        }
    })
}

fn contents(path: &Path) -> Result<Vec<u8>, String> {
    let unreadable = |error| format!("{} cannot be read: {error}", path.display());
    let file = File::open(path).map_err(unreadable)?;
    let mut text = Vec::new();
    let read = file.take(MAX_BYTES + 1).read_to_end(&mut text);
    match u64::try_from(read.map_err(unreadable)?) {
        Ok(bytes) if bytes <= MAX_BYTES => Ok(text),
        _ => Err(format!("{} is larger than 1 MB", path.display())),
    }
}
