//! Addresses as a model writes them, read strictly.

use reqwest::Url;

use crate::tools::output::{shortened, shown};
use crate::tools::{ToolError, ToolResult};

/// The longest address that is taken.
pub const MAX_URL_BYTES: usize = 4096;

/// Reads an address: http or https, a host, no user name, no fragment (it is dropped: it is for
/// whoever shows the page). An error says what is wrong with it.
pub(crate) fn parse(text: &str) -> ToolResult<Url> {
    if text.len() > MAX_URL_BYTES {
        return Err(too_long());
    }
    let text = text.trim();
    // The parser would take these out in silence, and two readers could then disagree on where
    // an address leads.
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(wrong(text, "it has spaces or control characters in it"));
    }
    if text.contains('\\') {
        return Err(wrong(text, "it has a backslash in it"));
    }
    let mut url = Url::parse(text).map_err(|error| wrong(text, &error.to_string()))?;
    check(&url)?;
    url.set_fragment(None);
    Ok(url)
}

/// The same checks for an address that was made from another, as by a redirect.
pub(crate) fn check(url: &Url) -> ToolResult<()> {
    if url.as_str().len() > MAX_URL_BYTES {
        return Err(too_long());
    }
    refuse_if!(
        !matches!(url.scheme(), "http" | "https"),
        "{}: addresses are not fetched, only http: and https:; for files use `filesystem`",
        shortened(url.scheme(), 20)
    );
    refuse_if!(
        !url.username().is_empty() || url.password().is_some(),
        "the address carries a user name or a password; write it without them"
    );
    let host = url.host_str().unwrap_or_default();
    if host.trim_matches('.').is_empty() {
        return Err(wrong(url.as_str(), "it has no host"));
    }
    Ok(())
}

fn too_long() -> ToolError {
    refusal!("the address is longer than {MAX_URL_BYTES} bytes")
}

fn wrong(text: &str, reason: &str) -> ToolError {
    refusal!(
        "`{}` is no address: {reason}; write it whole, as in https://example.com/page",
        shown(text)
    )
}

/// The host as a person writes it, with its port where that is not the usual one.
pub(crate) fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
