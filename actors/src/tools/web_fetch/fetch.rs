//! One address to its answer, over the redirects that stay with its host.

use ::url::Host;
use reqwest::header::{
    ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER,
};
use reqwest::{Method, Request, Response, StatusCode, Url};

use crate::tools::ToolResult;
use crate::tools::net::guard::{Guard, read_body};
use crate::tools::net::url;
use crate::tools::output::shortened;

/// The most of an error's body.
const MAX_ERROR_BYTES: usize = 64 * 1024;
pub(super) const MAX_REDIRECTS: usize = 10;

const ACCEPTED: &str = "text/html, application/xhtml+xml, text/markdown, text/plain, application/json, application/pdf;q=0.9, */*;q=0.5";

/// What came.
#[derive(Debug)]
pub(super) enum Fetched {
    Page(RawPage),
    /// A redirect to another host. It is the model's to decide on and the person's to allow:
    /// an allowed host that redirects anywhere would be a way out for whatever stands in an
    /// address.
    Redirected(Url),
}

/// An answer as it came.
#[derive(Debug)]
pub(super) struct RawPage {
    pub(super) url: Url,
    pub(super) status: StatusCode,
    /// In lower case, without parameters. Empty where the server said nothing.
    pub(super) media_type: String,
    pub(super) charset: Option<String>,
    pub(super) body: Vec<u8>,
}

/// Fetches `url`. The guard looks at each address on the way.
pub(super) async fn fetch(guard: &Guard, mut url: Url, max_bytes: usize) -> ToolResult<Fetched> {
    for _ in 0..=MAX_REDIRECTS {
        let mut request = Request::new(Method::GET, url.clone());
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static(ACCEPTED));
        headers.insert(ACCEPT_LANGUAGE, HeaderValue::from_static("*"));
        let response = guard.send(request).await?;
        let Some(next) = redirect(&url, &response)? else {
            return answer(url, response, max_bytes).await.map(Fetched::Page);
        };
        if !same_site(&url, &next) {
            // What may not be reached is said now, not when the model has asked once more. A
            // name is not looked up for that: the question alone would reach its owner.
            if !matches!(next.host(), Some(Host::Domain(_))) {
                guard.admit(&next).await?;
            }
            return Ok(Fetched::Redirected(next));
        }
        url = next;
    }
    refuse!(
        "{} redirects more than {MAX_REDIRECTS} times; the address leads nowhere",
        url::authority(&url)
    )
}

/// Where a response sends its reader.
pub(super) fn redirect(from: &Url, response: &Response) -> ToolResult<Option<Url>> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(LOCATION) else {
        return Ok(None);
    };
    let wrong = || refusal!("{} redirects to no address", url::authority(from));
    let text = std::str::from_utf8(location.as_bytes()).map_err(|_| wrong())?;
    let mut next = from.join(text).map_err(|_| wrong())?;
    next.set_fragment(None);
    url::check(&next)?;
    refuse_if!(
        from.scheme() == "https" && next.scheme() == "http",
        "{} redirects from https to http, where anyone on the way could change the page; fetch {} itself if that does not matter",
        url::authority(from),
        shortened(next.as_str(), 200)
    );
    Ok(Some(next))
}

/// Whether two addresses are of one site: the same host and port, `www.` and https aside.
pub(super) fn same_site(a: &Url, b: &Url) -> bool {
    let host = |url: &Url| {
        let host = url.host_str().unwrap_or_default().to_owned();
        host.strip_prefix("www.").map(str::to_owned).unwrap_or(host)
    };
    let upgraded =
        a.scheme() == "http" && b.scheme() == "https" && a.port().is_none() && b.port().is_none();
    host(a) == host(b) && (upgraded || a.port_or_known_default() == b.port_or_known_default())
}

async fn answer(url: Url, response: Response, max_bytes: usize) -> ToolResult<RawPage> {
    let status = response.status();
    let (media_type, charset) = content_type(response.headers());
    if !status.is_success() && !super::page::is_data(&media_type) {
        let hint = match status.as_u16() {
            401 | 403 | 407 => {
                "it lets nobody in without a login, or no programs; try another source"
            }
            404 | 410 => "there is no such page; check the address, or search for it",
            429 => "it was asked too often; try another source, or later",
            500..=599 => "the server has a fault; try again later, or another source",
            _ => "try another source",
        };
        let later = response.headers().get(RETRY_AFTER);
        let later = later
            .and_then(|value| value.to_str().ok())
            .filter(|value| value.bytes().all(|byte| byte.is_ascii_digit()))
            .map(|seconds| format!(" (in {} s, it says)", shortened(seconds, 10)))
            .unwrap_or_default();
        refuse!("{} answered {status}: {hint}{later}", url::authority(&url));
    }
    let limit = if status.is_success() {
        max_bytes
    } else {
        MAX_ERROR_BYTES
    };
    let body = read_body(response, limit).await?;
    Ok(RawPage {
        url,
        status,
        media_type,
        charset,
        body,
    })
}

fn content_type(headers: &HeaderMap) -> (String, Option<String>) {
    let text = headers
        .get(CONTENT_TYPE)
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .unwrap_or_default();
    let mut parts = text.split(';');
    let media_type = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case("charset")
            .then(|| value.trim().trim_matches(['"', '\'']).to_owned())
    });
    (shortened(&media_type, 80), charset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_site_is_one_host() {
        for (a, b, expected) in [
            ("http://a.example/x", "http://a.example/y", true),
            ("http://a.example/x", "https://a.example/x", true),
            ("http://a.example/x", "https://www.a.example/x", true),
            ("https://www.a.example/", "https://a.example/", true),
            ("https://a.example/", "https://b.example/", false),
            ("https://a.example/", "https://sub.a.example/", false),
            ("http://a.example:8080/", "http://a.example:22/", false),
            ("http://a.example:8080/", "https://a.example/", false),
            ("https://a.example/", "https://www.evil-a.example/", false),
        ] {
            let url = |text| Url::parse(text).unwrap();
            assert_eq!(same_site(&url(a), &url(b)), expected, "{a} {b}");
        }
    }
}
