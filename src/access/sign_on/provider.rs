//! A provider of OpenID Connect: what it says of itself is read when somebody needs it, and what it
//! says of people is believed when it is signed, for us, and new.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use openidconnect::core::{
    CoreAuthDisplay, CoreAuthenticationFlow, CoreClaimName, CoreClaimType, CoreClient,
    CoreClientAuthMethod, CoreErrorResponseType, CoreGenderClaim, CoreGrantType, CoreIdToken,
    CoreIdTokenClaims, CoreJsonWebKey, CoreJweContentEncryptionAlgorithm,
    CoreJweKeyManagementAlgorithm, CoreJwsSigningAlgorithm, CoreResponseMode, CoreResponseType,
    CoreSubjectIdentifierType, CoreTokenResponse,
};
use openidconnect::{
    AccessTokenHash, AdditionalClaims, AdditionalProviderMetadata, AuthType, AuthorizationCode,
    ClaimsVerificationError, ClientId, ClientSecret, CsrfToken, EndpointMaybeSet, EndpointNotSet,
    EndpointSet, HttpRequest, IdTokenVerifier, IssuerUrl, LogoutProviderMetadata, Nonce,
    OAuth2TokenResponse as _, PkceCodeChallenge, ProviderMetadata, RedirectUrl, RequestTokenError,
    Scope, SignatureVerificationError, StandardErrorResponse, TokenResponse as _, UserInfoClaims,
    UserInfoError,
};
use reqwest::Client as HttpClient;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use url::Url;

use super::flows::Secrets;
use super::http::{self, HttpFault};
use super::logout::{self, Ended};
use crate::access::random;
use crate::settings::ProviderSettings;

/// What a clock may be wrong by.
pub(super) const SKEW: TimeDelta = TimeDelta::seconds(60);
/// What a provider says of itself is read again after this long.
const READ_FOR: Duration = Duration::from_secs(3_600);
/// Its keys, where they do not fit, no sooner than this.
const KEYS_AFTER: Duration = Duration::from_secs(10);
/// A provider that did not answer is asked again after this long.
const TRY_AFTER: Duration = Duration::from_secs(1);
/// Reading what it says of itself takes no longer.
const READ_LIMIT: Duration = Duration::from_secs(10);
/// The longest name of a person or a session (OpenID Connect Core, 2).
const MAX_ID: usize = 255;
/// A token that is longer is not kept for the sign-out.
const MAX_KEPT_TOKEN: usize = 16 * 1024;
/// Those by which nobody signs who only knows what we know.
pub(super) const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// What a provider says of itself.
pub(super) type Metadata = ProviderMetadata<
    LogoutProviderMetadata<More>,
    CoreAuthDisplay,
    CoreClientAuthMethod,
    CoreClaimName,
    CoreClaimType,
    CoreGrantType,
    CoreJweContentEncryptionAlgorithm,
    CoreJweKeyManagementAlgorithm,
    CoreJsonWebKey,
    CoreResponseMode,
    CoreResponseType,
    CoreSubjectIdentifierType,
>;

type Client = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// And what the library does not read.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct More {
    /// Whether each answer names who gives it (RFC 9207).
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl AdditionalProviderMetadata for More {}

/// Claims of whatever name.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct AnyClaims {
    #[serde(flatten)]
    all: Map<String, Value>,
}

impl AdditionalClaims for AnyClaims {}

/// Why somebody does not come in.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// It does not answer, or not with what a provider says.
    #[error("{0}")]
    Unavailable(String),
    /// What is said is not true, or not said to us.
    #[error("{0}")]
    Untrue(String),
}

/// A browser that is on its way to the provider.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) location: Url,
    pub(super) state: String,
    pub(super) secrets: Secrets,
}

/// What came back with a browser.
#[derive(Clone, Debug)]
pub(super) struct Returned {
    pub(super) code: String,
    /// Who says to have given it.
    pub(super) iss: Option<String>,
}

/// What the provider says of a person.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) sub: String,
    pub(super) sid: Option<String>,
    pub(super) id_token: Option<String>,
    pub(super) claims: Map<String, Value>,
}

/// See the module. Clones are one.
#[derive(Clone, Debug)]
pub(super) struct Provider {
    settings: Arc<ProviderSettings>,
    http: HttpClient,
    known: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    read: Option<(Arc<Metadata>, Instant)>,
    failed: Option<(String, Instant)>,
}

/// Whether what is known serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    Known,
    /// They did not fit.
    Again,
}

impl Provider {
    pub(super) fn new(settings: ProviderSettings) -> Result<Self, reqwest::Error> {
        Ok(Self {
            settings: Arc::new(settings),
            http: http::client()?,
            known: Arc::default(),
        })
    }

    pub(super) fn settings(&self) -> &ProviderSettings {
        &self.settings
    }

    /// Sends a browser on its way.
    pub(super) async fn send(&self) -> Result<Sent, Fault> {
        let metadata = self.metadata(Keys::Known).await?;
        let client = self.client(&metadata)?;
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let (location, state, nonce) = client
            .authorize_url(
                CoreAuthenticationFlow::AuthorizationCode,
                || CsrfToken::new(random::fresh()),
                || Nonce::new(random::fresh()),
            )
            .add_scopes(self.settings.scopes.iter().cloned().map(Scope::new))
            .set_pkce_challenge(challenge)
            .url();
        Ok(Sent {
            location,
            state: state.secret().clone(),
            secrets: Secrets { nonce, verifier },
        })
    }

    /// Who came back.
    pub(super) async fn receive(
        &self,
        returned: Returned,
        secrets: Secrets,
    ) -> Result<Told, Fault> {
        let metadata = self.metadata(Keys::Known).await?;
        let names_itself = metadata.additional_metadata().additional_metadata.clone();
        match &returned.iss {
            Some(iss) if *iss != self.settings.issuer => {
                return Err(untrue(format!("the answer is another issuer's, {iss:?}")));
            }
            None if names_itself.authorization_response_iss_parameter_supported => {
                return Err(untrue("the answer does not name who gives it"));
            }
            Some(_) | None => {}
        }
        let client = self.client(&metadata)?;
        let send = |request: HttpRequest| http::send(self.http.clone(), request);
        let answer = client
            .exchange_code(AuthorizationCode::new(returned.code))
            .map_err(|error| unavailable(format!("it has no token endpoint: {error}")))?
            .set_pkce_verifier(secrets.verifier)
            .request_async(&send)
            .await
            .map_err(no_token)?;
        let token = answer
            .id_token()
            .ok_or_else(|| untrue("the answer has no ID token"))?;
        let checked = match self.check(token, &metadata, &secrets.nonce) {
            Err(ClaimsVerificationError::SignatureVerification(
                SignatureVerificationError::NoMatchingKey
                | SignatureVerificationError::CryptoError(_),
            )) => {
                let metadata = self.metadata(Keys::Again).await?;
                self.check(token, &metadata, &secrets.nonce)
            }
            checked => checked,
        };
        let claims = checked.map_err(|error| untrue(format!("the ID token: {error}")))?;
        self.check_access_token(&answer, token, &metadata, claims)?;
        let text = token.to_string();
        let mut all = payload(&text).ok_or_else(|| untrue("the ID token holds no claims"))?;
        self.check_rest(&all)?;
        let sub = claims.subject().to_string();
        if sub.is_empty() || sub.len() > MAX_ID {
            return Err(untrue("the ID token names nobody"));
        }
        if let Ok(request) = client.user_info(
            answer.access_token().clone(),
            Some(claims.subject().clone()),
        ) {
            let more: UserInfoClaims<AnyClaims, CoreGenderClaim> = request
                .request_async(&send)
                .await
                .map_err(|error| match error {
                    UserInfoError::Request(fault) => unavailable(fault.to_string()),
                    error => untrue(format!("what it says of the person: {error}")),
                })?;
            if let Ok(Value::Object(more)) = serde_json::to_value(more) {
                for (name, value) in more {
                    all.entry(name).or_insert(value);
                }
            }
        }
        let sid = all.get("sid").and_then(Value::as_str);
        Ok(Told {
            sid: sid.filter(|sid| sid.len() <= MAX_ID).map(str::to_owned),
            id_token: (text.len() <= MAX_KEPT_TOKEN).then_some(text),
            claims: all,
            sub,
        })
    }

    /// Where somebody who signs out here signs out there, where there is such a place.
    pub(super) async fn way_out(&self, id_token: Option<&str>) -> Option<Url> {
        let metadata = self.metadata(Keys::Known).await.ok()?;
        let end = metadata
            .additional_metadata()
            .end_session_endpoint
            .as_ref()?;
        let mut url = end.url().clone();
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("client_id", &self.settings.client_id)
                .append_pair("post_logout_redirect_uri", &self.settings.page);
            if let Some(token) = id_token {
                query.append_pair("id_token_hint", token);
            }
        }
        matches!(url.scheme(), "http" | "https").then_some(url)
    }

    /// Whom the provider signed out, by its token that says so.
    pub(super) async fn ended(&self, token: &str) -> Result<Ended, Fault> {
        let token = logout::Token::parse(token).ok_or_else(|| untrue("this is no logout token"))?;
        let metadata = self.metadata(Keys::Known).await?;
        if !token.is_signed(metadata.jwks()) {
            let metadata = self.metadata(Keys::Again).await?;
            if !token.is_signed(metadata.jwks()) {
                return Err(untrue("the provider did not sign this logout token"));
            }
        }
        let settings = &self.settings;
        token
            .ended(&settings.issuer, &settings.client_id, Utc::now())
            .map_err(untrue)
    }

    fn check<'a>(
        &self,
        token: &'a CoreIdToken,
        metadata: &Metadata,
        nonce: &Nonce,
    ) -> Result<&'a CoreIdTokenClaims, ClaimsVerificationError> {
        let verifier = self.verifier(metadata);
        token.claims(&verifier, nonce)
    }

    /// It knows no secret, so that nothing signed by one is believed.
    fn verifier(&self, metadata: &Metadata) -> IdTokenVerifier<'static, CoreJsonWebKey> {
        IdTokenVerifier::new_public_client(
            ClientId::new(self.settings.client_id.clone()),
            metadata.issuer().clone(),
            metadata.jwks().clone(),
        )
        .set_allowed_algs(ALGORITHMS)
        .set_time_fn(|| Utc::now() - SKEW)
        .set_issue_time_verifier_fn(|at: DateTime<Utc>| {
            if at <= Utc::now() + SKEW {
                Ok(())
            } else {
                Err("it was issued in the future".to_owned())
            }
        })
    }

    /// That the access token came with the ID token, where that says so.
    fn check_access_token(
        &self,
        answer: &CoreTokenResponse,
        token: &CoreIdToken,
        metadata: &Metadata,
        claims: &CoreIdTokenClaims,
    ) -> Result<(), Fault> {
        let Some(said) = claims.access_token_hash() else {
            return Ok(());
        };
        let verifier = self.verifier(metadata);
        let hash = token.signing_alg().ok().and_then(|algorithm| {
            let key = token.signing_key(&verifier).ok()?;
            AccessTokenHash::from_token(answer.access_token(), algorithm, key).ok()
        });
        match hash {
            Some(hash) if hash != *said => Err(untrue("the access token is not this ID token's")),
            Some(_) | None => Ok(()),
        }
    }

    /// What the library leaves to whoever uses it.
    fn check_rest(&self, claims: &Map<String, Value>) -> Result<(), Fault> {
        let is_ours = |azp: &Value| azp.as_str() == Some(&self.settings.client_id);
        if !claims.get("azp").is_none_or(is_ours) {
            return Err(untrue("the ID token was given to another client"));
        }
        let begins = claims.get("nbf").and_then(Value::as_f64);
        let latest = (Utc::now() + SKEW).timestamp();
        #[expect(
            clippy::cast_precision_loss,
            reason = "a second more or less is no matter"
        )]
        if begins.is_some_and(|at| at > latest as f64) {
            return Err(untrue("the ID token is good later than now"));
        }
        Ok(())
    }

    fn client(&self, metadata: &Metadata) -> Result<Client, Fault> {
        let settings = &self.settings;
        let secret = settings.client_secret.as_ref();
        let secret = secret.map(|secret| ClientSecret::new(secret.reveal().to_owned()));
        let back = RedirectUrl::new(settings.callback.clone());
        let back = back.map_err(|error| unavailable(format!("NAVI_PUBLIC_URL: {error}")))?;
        let ways = metadata.token_endpoint_auth_methods_supported();
        let takes = |way| ways.is_none_or(|ways| ways.contains(way));
        let in_body = !takes(&CoreClientAuthMethod::ClientSecretBasic)
            && takes(&CoreClientAuthMethod::ClientSecretPost);
        let client = CoreClient::from_provider_metadata(
            metadata.clone(),
            ClientId::new(settings.client_id.clone()),
            secret,
        );
        Ok(client.set_redirect_uri(back).set_auth_type(if in_body {
            AuthType::RequestBody
        } else {
            AuthType::BasicAuth
        }))
    }

    /// What the provider says of itself: what is known of it, where that is new enough, or where
    /// the provider does not answer.
    async fn metadata(&self, keys: Keys) -> Result<Arc<Metadata>, Fault> {
        // Whoever comes next waits for the first, and finds what it found.
        let mut known = self.known.lock().await;
        let enough = match keys {
            Keys::Known => READ_FOR,
            Keys::Again => KEYS_AFTER,
        };
        if let Some((metadata, read)) = &known.read
            && read.elapsed() < enough
        {
            return Ok(Arc::clone(metadata));
        }
        if let Some((why, failed)) = &known.failed
            && failed.elapsed() < TRY_AFTER
        {
            return match &known.read {
                Some((metadata, _)) => Ok(Arc::clone(metadata)),
                None => Err(Fault::Unavailable(why.clone())),
            };
        }
        match self.read().await {
            Ok(metadata) => {
                let metadata = Arc::new(metadata);
                known.read = Some((Arc::clone(&metadata), Instant::now()));
                known.failed = None;
                Ok(metadata)
            }
            Err(why) => {
                known.failed = Some((why.clone(), Instant::now()));
                match &known.read {
                    Some((metadata, _)) => Ok(Arc::clone(metadata)),
                    None => Err(Fault::Unavailable(why)),
                }
            }
        }
    }

    async fn read(&self) -> Result<Metadata, String> {
        let issuer = IssuerUrl::new(self.settings.issuer.clone());
        let issuer = issuer.map_err(|error| error.to_string())?;
        let send = |request: HttpRequest| http::send(self.http.clone(), request);
        let reading = Metadata::discover_async(issuer, &send);
        match timeout(READ_LIMIT, reading).await {
            Ok(Ok(metadata)) => Ok(metadata),
            Ok(Err(error)) => Err(told(&error)),
            Err(_) => Err(format!("no answer within {} s", READ_LIMIT.as_secs())),
        }
    }
}

fn no_token(
    error: RequestTokenError<HttpFault, StandardErrorResponse<CoreErrorResponseType>>,
) -> Fault {
    match error {
        RequestTokenError::ServerResponse(said) => {
            untrue(format!("the provider takes no such code: {}", said.error()))
        }
        RequestTokenError::Request(fault) => unavailable(fault.to_string()),
        RequestTokenError::Parse(error, _) => untrue(format!("its answer is none: {error}")),
        RequestTokenError::Other(why) => untrue(why),
    }
}

/// An error with what caused it, which says more.
fn told(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// The claims of a token, whose signature is another's matter.
pub(super) fn payload(token: &str) -> Option<Map<String, Value>> {
    let claims = logout::part(token.split('.').nth(1)?)?;
    serde_json::from_slice(&claims).ok()
}

fn unavailable(why: impl Into<String>) -> Fault {
    Fault::Unavailable(why.into())
}

fn untrue(why: impl Into<String>) -> Fault {
    Fault::Untrue(why.into())
}
