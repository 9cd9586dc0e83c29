//! HTTP clients: one TLS configuration for all of them.
//!
//! The certificates that this machine trusts are read once, at the first handshake. Each client
//! by itself would read some hundred files, and most of what Navi asks stands on this machine
//! and speaks no TLS.

use std::sync::{Arc, LazyLock, OnceLock};

use reqwest::{Client, ClientBuilder};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;

/// A client to be built, by Navi's name. It asks for nothing packed.
pub fn client() -> ClientBuilder {
    static TLS: LazyLock<Result<ClientConfig, Error>> = LazyLock::new(tls);
    let client = Client::builder()
        .user_agent(concat!("navi/", env!("CARGO_PKG_VERSION")))
        .gzip(false);
    match &*TLS {
        Ok(tls) => client.tls_backend_preconfigured(tls.clone()),
        // None that it knows: it says so when it is built.
        Err(_) => client.tls_backend_preconfigured(()),
    }
}

/// The innermost cause of an error, which says what happened; those around it say where, and the
/// address once more.
#[must_use]
pub fn innermost(error: &reqwest::Error) -> &(dyn std::error::Error + 'static) {
    let mut cause: &(dyn std::error::Error + 'static) = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause
}

fn tls() -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(Trusted {
        provider: Arc::clone(&provider),
        certificates: OnceLock::new(),
    });
    let mut tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(tls)
}

/// Trusts whom the machine trusts.
#[derive(Debug)]
struct Trusted {
    provider: Arc<CryptoProvider>,
    certificates: OnceLock<Result<Verifier, Error>>,
}

impl Trusted {
    fn certificates(&self) -> Result<&Verifier, Error> {
        let read = || Verifier::new(Arc::clone(&self.provider));
        self.certificates
            .get_or_init(read)
            .as_ref()
            .map_err(Clone::clone)
    }
}

impl ServerCertVerifier for Trusted {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.certificates()?.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        )
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.certificates()?
            .verify_tls12_signature(message, cert, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.certificates()?
            .verify_tls13_signature(message, cert, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
