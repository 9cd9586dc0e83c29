//! An authenticator in software, which does what it is told and so what no honest one would.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// The person was there.
const PRESENT: u8 = 0x01;
/// And it made sure of them.
const VERIFIED: u8 = 0x04;
/// The key comes with it.
const WITH_KEY: u8 = 0x40;

/// One passkey, and how it is told of.
pub(crate) struct Authenticator {
    key: EcdsaKeyPair,
    id: Vec<u8>,
    /// As whose it was made; empty before.
    pub(crate) handle: String,
    pub(crate) counter: u32,
    /// Where the page is that asks, as the browser says it.
    pub(crate) origin: String,
    pub(crate) host: String,
    pub(crate) verifies: bool,
}

impl Authenticator {
    /// In a browser at a page of this origin.
    pub(crate) fn at(origin: &str) -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let host = origin.split("://").nth(1).unwrap_or_default();
        Self {
            key: EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &random).unwrap(),
            id: Uuid::new_v4().as_bytes().to_vec(),
            handle: String::new(),
            counter: 0,
            origin: origin.to_owned(),
            host: host.split(':').next().unwrap_or_default().to_owned(),
            verifies: true,
        }
    }

    /// Answers `navigator.credentials.create`.
    pub(crate) fn make(&mut self, options: &Value) -> Value {
        text(&options["user"]["id"]).clone_into(&mut self.handle);
        let mut data = self.data(WITH_KEY);
        data.extend([0; 16]);
        data.extend(u16::try_from(self.id.len()).unwrap().to_be_bytes());
        data.extend(&self.id);
        // Uncompressed: a byte, x, y.
        let public = self.key.public_key().as_ref();
        data.extend([0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20]);
        data.extend(&public[1..33]);
        data.extend([0x22, 0x58, 0x20]);
        data.extend(&public[33..]);
        // {"fmt": "none", "attStmt": {}, "authData": …}
        let mut object = b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58".to_vec();
        object.push(u8::try_from(data.len()).unwrap());
        object.extend(&data);
        let response = json!({
            "clientDataJSON": base64(&self.said("webauthn.create", options)),
            "attestationObject": base64(&object),
            "transports": ["internal"],
        });
        self.credential(&response)
    }

    /// Answers `navigator.credentials.get`.
    pub(crate) fn answer(&mut self, options: &Value) -> Value {
        let (data, said) = (self.data(0), self.said("webauthn.get", options));
        let mut signed = data.clone();
        signed.extend(Sha256::digest(&said));
        let signature = self.key.sign(&SystemRandom::new(), &signed).unwrap();
        let response = json!({
            "clientDataJSON": base64(&said),
            "authenticatorData": base64(&data),
            "signature": base64(signature.as_ref()),
            "userHandle": self.handle,
        });
        self.credential(&response)
    }

    fn credential(&self, response: &Value) -> Value {
        let id = base64(&self.id);
        json!({
            "id": id,
            "rawId": id,
            "type": "public-key",
            "authenticatorAttachment": "platform",
            "clientExtensionResults": {},
            "response": response,
        })
    }

    fn data(&mut self, flags: u8) -> Vec<u8> {
        self.counter += 1;
        let verified = if self.verifies { VERIFIED } else { 0 };
        let mut data = Sha256::digest(self.host.as_bytes()).to_vec();
        data.push(PRESENT | verified | flags);
        data.extend(self.counter.to_be_bytes());
        data
    }

    fn said(&self, what: &str, options: &Value) -> Vec<u8> {
        json!({
            "type": what,
            "challenge": text(&options["challenge"]),
            "origin": self.origin,
            "crossOrigin": false,
        })
        .to_string()
        .into_bytes()
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn base64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
