//! A picture that stands elsewhere, for a person who asked to see it.

use std::time::Duration;

use reqwest::header::{ACCEPT, HeaderValue};
use reqwest::{Method, Request, Url};
use tokio::sync::Semaphore;

use super::fetch::{MAX_REDIRECTS, redirect, same_site};
use crate::tools::ToolResult;
use crate::tools::net::guard::{Guard, read_body};
use crate::tools::net::url::{authority, parse};

/// The largest picture that is fetched.
pub const MAX_BYTES: usize = 10 * 1024 * 1024;
/// For all of one, redirects among it.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// As many are fetched at once, whoever asks.
const AT_ONCE: usize = 8;

static PLACES: Semaphore = Semaphore::const_new(AT_ONCE);

/// What stands at the address, which the caller has yet to find to be a picture. The guard looks
/// at each address on the way; on another site than that which the person named, nothing but
/// the public network is reached.
///
/// # Errors
/// It is no address of the web, may not be reached, takes too long, or is too large.
pub async fn picture(guard: &Guard, address: &str) -> ToolResult<Vec<u8>> {
    let url = parse(address)?;
    let host = authority(&url);
    // Never closed.
    let _place = PLACES.acquire().await.ok();
    let fetched = tokio::time::timeout(TIME_LIMIT, follow(guard.clone(), url)).await;
    fetched.unwrap_or_else(|_| {
        let seconds = TIME_LIMIT.as_secs();
        Err(refusal!("{host} did not send it within {seconds} s"))
    })
}

async fn follow(mut guard: Guard, mut url: Url) -> ToolResult<Vec<u8>> {
    for _ in 0..=MAX_REDIRECTS {
        let mut request = Request::new(Method::GET, url.clone());
        let wanted = HeaderValue::from_static("image/png, image/jpeg, image/gif, image/webp");
        request.headers_mut().insert(ACCEPT, wanted);
        let response = guard.send(request).await?;
        if let Some(next) = redirect(&url, &response)? {
            if !same_site(&url, &next) {
                guard = guard.public();
            }
            url = next;
            continue;
        }
        let (host, status) = (authority(&url), response.status());
        refuse_if!(!status.is_success(), "{host} answered {status}");
        return read_body(response, MAX_BYTES).await;
    }
    refuse!(
        "{} redirects more than {MAX_REDIRECTS} times; the address leads nowhere",
        authority(&url)
    )
}
