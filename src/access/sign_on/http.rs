//! Requests to the provider, over Navi's own client: bounded in time and size, and led nowhere else.

use std::time::Duration;

use navi_actors::https;
use openidconnect::{HttpRequest, HttpResponse};
use reqwest::Client;
use reqwest::redirect::Policy;

/// One request takes no longer.
const LIMIT: Duration = Duration::from_secs(8);
/// The largest answer.
const MAX_BYTES: usize = 1024 * 1024;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpFault {
    #[error("{}", https::innermost(.0))]
    Request(reqwest::Error),
    #[error("the answer is larger than {MAX_BYTES} bytes")]
    TooLarge,
}

pub(super) fn client() -> Result<Client, reqwest::Error> {
    https::client()
        .redirect(Policy::none())
        .timeout(LIMIT)
        .build()
}

pub(super) async fn send(client: Client, request: HttpRequest) -> Result<HttpResponse, HttpFault> {
    let fault = |error: reqwest::Error| HttpFault::Request(error.without_url());
    let request = reqwest::Request::try_from(request).map_err(fault)?;
    let mut response = client.execute(request).await.map_err(fault)?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(fault)? {
        if body.len() + chunk.len() > MAX_BYTES {
            return Err(HttpFault::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    let mut answer = HttpResponse::new(body);
    *answer.status_mut() = response.status();
    *answer.headers_mut() = response.headers().clone();
    Ok(answer)
}
