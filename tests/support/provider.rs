//! A provider of OpenID Connect for tests, on loopback, that can lie in whatever it says.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use crate::server::PATIENCE;

/// What it calls Navi.
pub(crate) const CLIENT: &str = "navi-of-the-tests";
/// By what Navi shows that it is the one.
pub(crate) const SECRET: &str = "a secret of the client";

/// A key that signs tokens.
#[derive(Debug)]
pub(crate) struct Signer {
    pair: EcdsaKeyPair,
    kid: String,
}

impl Signer {
    pub(crate) fn new(kid: &str) -> Self {
        let random = SystemRandom::new();
        let curve = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let made = EcdsaKeyPair::generate_pkcs8(curve, &random).unwrap();
        Self {
            pair: EcdsaKeyPair::from_pkcs8(curve, made.as_ref(), &random).unwrap(),
            kid: kid.to_owned(),
        }
    }

    fn public(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        json!({
            "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.kid,
            "x": part(&point[1..33]), "y": part(&point[33..]),
        })
    }

    /// A token of these claims.
    pub(crate) fn sign(&self, claims: &Value) -> String {
        self.sign_as(&json!({"alg": "ES256", "kid": self.kid}), claims)
    }

    /// The same with a header of one's own.
    pub(crate) fn sign_as(&self, header: &Value, claims: &Value) -> String {
        let signed = unsigned(header, claims);
        let random = SystemRandom::new();
        let signature = self.pair.sign(&random, signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    }
}

/// A token without what follows its last dot.
pub(crate) fn unsigned(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}

/// What it says.
#[derive(Debug, Default)]
struct Says {
    /// Beside or in the place of what a provider says of itself.
    metadata: Value,
    /// The keys that it names.
    keys: Vec<Value>,
    /// What each code is good for, once.
    codes: HashMap<String, Granted>,
    /// What it says of a person to who has the access token.
    person: Value,
    /// The heads of what it was asked.
    asked: Vec<String>,
}

#[derive(Debug)]
struct Granted {
    challenge: String,
    id_token: String,
}

/// See the module. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) issuer: String,
    pub(crate) signer: Signer,
    says: Arc<Mutex<Says>>,
    serving: Option<AbortHandle>,
}

impl Provider {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let signer = Signer::new("one");
        let says = Says {
            keys: vec![signer.public()],
            metadata: json!({}),
            person: Value::Null,
            ..Says::default()
        };
        let mut provider = Self {
            issuer: format!("http://{}", listener.local_addr().unwrap()),
            signer,
            says: Arc::new(Mutex::new(says)),
            serving: None,
        };
        provider.serve(listener);
        provider
    }

    fn serve(&mut self, listener: TcpListener) {
        let (says, issuer) = (Arc::clone(&self.says), self.issuer.clone());
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (says, issuer) = (Arc::clone(&says), issuer.clone());
                tokio::spawn(async move {
                    // Whoever asked may have gone.
                    let _ = answer(stream, &says, &issuer).await;
                });
            }
        });
        self.serving = Some(serving.abort_handle());
    }

    /// Nobody answers at its address any more.
    pub(crate) fn stop(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.abort();
        }
    }

    /// Answers again, where it did before.
    pub(crate) async fn start_again(&mut self) {
        let address = self.issuer.trim_start_matches("http://");
        let bound = async {
            loop {
                match TcpListener::bind(address).await {
                    Ok(listener) => return listener,
                    // Somebody may have been given the port for a moment.
                    Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        };
        let listener = tokio::time::timeout(PATIENCE, bound).await.unwrap();
        self.serve(listener);
    }

    /// Says this of itself, too.
    pub(crate) fn claims_to_be(&self, metadata: Value) {
        self.says.lock().metadata = metadata;
    }

    /// Says this of a person to who has the access token.
    pub(crate) fn tells(&self, person: Value) {
        self.says.lock().person = person;
    }

    /// Gives out a code for this token.
    pub(crate) fn grants(&self, code: &str, challenge: &str, id_token: String) {
        let granted = Granted {
            challenge: challenge.to_owned(),
            id_token,
        };
        self.says.lock().codes.insert(code.to_owned(), granted);
    }

    /// The heads of what it was asked.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.says.lock().asked.clone()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn answer(mut stream: TcpStream, says: &Mutex<Says>, issuer: &str) -> std::io::Result<()> {
    let mut read = Vec::new();
    let head = loop {
        let mut part = [0; 4096];
        let count = stream.read(&mut part).await?;
        if count == 0 {
            return Ok(());
        }
        read.extend_from_slice(&part[..count]);
        if let Some(end) = read.windows(4).position(|it| it == b"\r\n\r\n") {
            break String::from_utf8_lossy(&read[..end]).into_owned();
        }
    };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<usize>().ok())?
    });
    let begin = head.len() + 4;
    while read.len() < begin + length.unwrap_or(0) {
        let mut part = [0; 4096];
        let count = stream.read(&mut part).await?;
        read.extend_from_slice(&part[..count]);
    }
    let form = url::form_urlencoded::parse(&read[begin..]);
    let form: HashMap<String, String> = form.into_owned().collect();
    let (status, body) = says.lock().answer(&head, &form, issuer);
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await
}

impl Says {
    fn answer(
        &mut self,
        head: &str,
        form: &HashMap<String, String>,
        issuer: &str,
    ) -> (&'static str, Value) {
        self.asked.push(head.to_owned());
        let path = head.split(' ').nth(1).unwrap_or_default();
        match path {
            "/.well-known/openid-configuration" => {
                let mut all = json!({
                    "issuer": issuer,
                    "authorization_endpoint": format!("{issuer}/authorize"),
                    "token_endpoint": format!("{issuer}/token"),
                    "userinfo_endpoint": format!("{issuer}/person"),
                    "end_session_endpoint": format!("{issuer}/end"),
                    "jwks_uri": format!("{issuer}/keys"),
                    "response_types_supported": ["code"],
                    "subject_types_supported": ["public"],
                    "id_token_signing_alg_values_supported": ["ES256"],
                });
                if self.person.is_null() {
                    all["userinfo_endpoint"] = Value::Null;
                }
                for (name, value) in self.metadata.as_object().into_iter().flatten() {
                    all[name] = value.clone();
                }
                ("200 OK", all)
            }
            "/keys" => ("200 OK", json!({"keys": self.keys})),
            "/token" => match self.token(form) {
                Some(answer) => ("200 OK", answer),
                None => ("400 Bad Request", json!({"error": "invalid_grant"})),
            },
            "/person" if !self.person.is_null() => ("200 OK", self.person.clone()),
            _ => ("404 Not Found", json!({})),
        }
    }

    /// A code is good once, and for who made the challenge.
    fn token(&mut self, form: &HashMap<String, String>) -> Option<Value> {
        let granted = self.codes.remove(form.get("code")?)?;
        let verifier = Sha256::digest(form.get("code_verifier")?);
        if URL_SAFE_NO_PAD.encode(verifier) != granted.challenge {
            return None;
        }
        Some(json!({
            "access_token": "an access token", "token_type": "Bearer", "expires_in": 60,
            "id_token": granted.id_token,
        }))
    }
}
