//! Home Assistant's REST API: requests, and its refusals in our words. The token never leaves
//! this file, and a redirect is never followed with it.

use std::time::Duration;

use reqwest::header::AUTHORIZATION;
use reqwest::{Method, Request, Url};
use serde_json::Value;

use super::HomeAssistantConfig;
use crate::tools::ToolError;
use crate::tools::net::grants::Grants;
use crate::tools::net::guard::{Guard, post_json, read_body};
use crate::tools::output::shortened;

const LIMIT: Duration = Duration::from_secs(25);
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// As much of what the server says of a refusal as is told.
const MESSAGE_BYTES: usize = 300;

/// One instance.
#[derive(Clone, Debug)]
pub(super) struct Api {
    config: HomeAssistantConfig,
    guard: Guard,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ApiError {
    #[error(
        "Home Assistant has no such thing (404); the owner should look at HOME_ASSISTANT_URL if nothing is found"
    )]
    NotFound,
    /// With what the server said.
    #[error("Home Assistant refused the request: {0}")]
    BadRequest(String),
    #[error("{0}")]
    Other(String),
}

impl From<ApiError> for ToolError {
    fn from(error: ApiError) -> Self {
        Self(error.to_string())
    }
}

impl Api {
    pub(super) fn new(config: HomeAssistantConfig) -> Self {
        Self {
            guard: Guard::new(Grants::of_origin(&config.url)),
            config,
        }
    }

    /// Where it is.
    pub(super) fn place(&self) -> String {
        self.config.url.origin().ascii_serialization()
    }

    /// A text of the server's without the token, should it repeat what it was sent.
    pub(super) fn without_token(&self, text: &str) -> String {
        self.config.token.hidden_in(text)
    }

    /// Asks for something; with a body, for something to be done.
    pub(super) async fn ask(
        &self,
        path: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Value, ApiError> {
        let exchange = self.exchange(self.url(path, query), body);
        let asked = tokio::time::timeout(LIMIT, exchange).await;
        asked.unwrap_or_else(|_| {
            let mut text = format!("Home Assistant did not answer within {} s", LIMIT.as_secs());
            if body.is_some() {
                text.push_str("; it may have done it all the same, so look at the state");
            }
            Err(ApiError::Other(text))
        })
    }

    async fn exchange(&self, url: Url, body: Option<&Value>) -> Result<Value, ApiError> {
        let net = |ToolError(error)| {
            ApiError::Other(format!(
                "Home Assistant: {error}; the owner should look at HOME_ASSISTANT_URL"
            ))
        };
        let mut request = match body {
            None => Request::new(Method::GET, url),
            Some(body) => post_json(url, body),
        };
        let bearer = self.config.token.header("Bearer ");
        request.headers_mut().insert(AUTHORIZATION, bearer);
        let response = self.guard.send(request).await.map_err(net)?;
        let status = response.status();
        let bytes = read_body(response, MAX_BYTES).await.map_err(net)?;
        Err(ApiError::Other(match status.as_u16() {
            200 | 201 => match serde_json::from_slice(&bytes) {
                Ok(answer) => return Ok(answer),
                Err(_) => "Home Assistant sent something that is no JSON; the owner should look at HOME_ASSISTANT_URL".to_owned(),
            },
            400 => return Err(ApiError::BadRequest(said(&bytes))),
            401 | 403 => "Home Assistant refuses the token; the owner makes a new one on the profile page there, and sets HOME_ASSISTANT_TOKEN".to_owned(),
            404 => return Err(ApiError::NotFound),
            405 => "what answers at HOME_ASSISTANT_URL takes no such request (405); it may be no Home Assistant".to_owned(),
            300..=399 => format!(
                "Home Assistant answered {status}, a redirect; the owner should set HOME_ASSISTANT_URL to where it leads"
            ),
            500.. => format!(
                "Home Assistant failed ({status}): {}; its log says more",
                said(&bytes)
            ),
            _ => format!("Home Assistant answered {status}: {}", said(&bytes)),
        }))
    }

    fn url(&self, path: &str, query: &[(&str, &str)]) -> Url {
        let mut url = self.config.url.clone();
        // A person may have put the API's own path at its end.
        let base = url.path().trim_end_matches('/').to_owned();
        let base = base.strip_suffix("/api").unwrap_or(&base);
        url.set_path(&format!("{base}/api/{path}"));
        for (name, value) in query {
            let mut pairs = url.query_pairs_mut();
            if value.is_empty() {
                pairs.append_key_only(name);
            } else {
                pairs.append_pair(name, value);
            }
        }
        url
    }
}

/// The server's own words: `{"message": …}`, or plain text as in `400: Bad Request`.
fn said(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let message = serde_json::from_str::<Value>(&text)
        .ok()
        .and_then(|body| body["message"].as_str().map(str::to_owned));
    shortened(message.as_deref().unwrap_or(text.trim()), MESSAGE_BYTES)
}
