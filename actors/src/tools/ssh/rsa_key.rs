//! RSA keys, signed with by ring. The `rsa` crate that russh would use leaks a private key
//! through timing (RUSTSEC-2023-0071) and stays out of the tree. That leaves RSA host keys
//! unchecked and so refused; every OpenSSH server since 2014 has an ed25519 key beside.

use num_bigint::BigUint;
use ring::rand::SystemRandom;
use ring::rsa::{KeyPair, KeyPairComponents, PublicKeyComponents};
use ring::signature::{RSA_PKCS1_SHA256, RSA_PKCS1_SHA512, RsaEncoding};
use russh::AgentAuthError;
use russh::keys::agent::AgentIdentity;
use russh::keys::ssh_key::encoding::Encode as _;
use russh::keys::ssh_key::private::RsaKeypair;
use russh::keys::ssh_key::public::{KeyData, RsaPublicKey};
use russh::keys::ssh_key::{Mpint, Signature};
use russh::keys::{self, Algorithm, HashAlg, PublicKey, ssh_key};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;

/// Signs log-ins with an RSA key.
#[derive(Debug)]
pub(super) struct RsaSigner {
    pair: KeyPair,
    pub(super) public: PublicKey,
}

impl RsaSigner {
    /// A key of OpenSSH's own format, which leaves out what follows from the rest.
    pub(super) fn of_openssh(key: &RsaKeypair) -> Result<Self, String> {
        let (public, private) = (key.public(), key.private());
        let number = |value: &Mpint| {
            value
                .as_positive_bytes()
                .map(BigUint::from_bytes_be)
                .ok_or_else(|| "is broken: a number in it is negative".to_owned())
        };
        let (d, p, q) = (
            number(private.d())?,
            number(private.p())?,
            number(private.q())?,
        );
        let one = BigUint::from(1_u8);
        refuse_if!(
            p <= one || q <= one,
            "is broken: a factor in it is no prime"
        );
        let bytes = |value: &BigUint| value.to_bytes_be();
        let components = KeyPairComponents {
            public_key: PublicKeyComponents {
                n: bytes(&number(public.n())?),
                e: bytes(&number(public.e())?),
            },
            dP: bytes(&(&d % (&p - &one))),
            dQ: bytes(&(&d % (&q - &one))),
            qInv: bytes(&number(private.iqmp())?),
            d: bytes(&d),
            p: bytes(&p),
            q: bytes(&q),
        };
        Self::of_pair(KeyPair::from_components(&components).map_err(rejected)?)
    }

    /// A key of an older format: PKCS#1, or PKCS#8 where it is an RSA key.
    pub(super) fn of_pem(text: &str) -> Result<Option<Self>, String> {
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
