//! `OPENAI_BASE_URL` in the ways that people write it.

use reqwest::Url;
use reqwest::header::HeaderName;

/// The URL that the API's paths stand under, with the query that each of them has. `/v1` is added
/// where neither a part of the path nor the query is a version already. An endpoint that was pasted
/// along is taken off: what stands before `/chat/completions` is known to be whole.
pub(super) fn api_root(text: &str) -> Option<Url> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let with_scheme = if text.contains("://") {
        text.to_owned()
    } else {
        format!("http://{text}")
    };
    let mut url = Url::parse(&with_scheme).ok()?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return None;
    }
    let mut segments: Vec<&str> = url
        .path()
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    let is_whole = matches!(segments.as_slice(), [.., "chat", "completions"]);
    match segments.as_slice() {
        [.., "chat", "completions"] => segments.truncate(segments.len() - 2),
        [.., "models" | "completions" | "chat"] => segments.truncate(segments.len() - 1),
        _ => {}
    }
    let has_version = has_api_version(&url) || segments.iter().any(|part| is_version(part));
    if !is_whole && !has_version {
        segments.push("v1");
    }
    let path = segments.join("/");
    url.set_path(&path);
    if url.query() == Some("") {
        url.set_query(None);
    }
    url.set_fragment(None);
    if url.host_str() == Some("0.0.0.0") {
        url.set_host(Some("127.0.0.1")).ok()?;
    }
    Some(url)
}

/// Azure has the version beside the path
/// (learn.microsoft.com/azure/ai-services/openai/reference).
fn has_api_version(url: &Url) -> bool {
    url.query_pairs().any(|(name, _)| name == "api-version")
}

/// The header that takes an API key as it is; none where a key is a bearer's. Where Azure has the
/// version in the query, a bearer is somebody who signed in.
pub(super) fn key_header(base: &Url) -> Option<HeaderName> {
    const AZURE: [&str; 3] = [
        ".openai.azure.com",
        ".cognitiveservices.azure.com",
        ".services.ai.azure.com",
    ];
    let host = base.host_str()?;
    let is_azure = AZURE.iter().any(|end| host.ends_with(end));
    (is_azure && has_api_version(base)).then(|| HeaderName::from_static("api-key"))
}

/// `v1`, `v1beta`, `v4`.
fn is_version(segment: &str) -> bool {
    segment
        .strip_prefix('v')
        .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_is_understood_in_every_usual_form() {
        for (text, expected) in [
            ("http://localhost:8080", "http://localhost:8080/v1"),
            ("http://localhost:8080/", "http://localhost:8080/v1"),
            ("http://localhost:8080/v1", "http://localhost:8080/v1"),
            (" http://localhost:8080/v1/ ", "http://localhost:8080/v1"),
            ("http://localhost:8080/v1//", "http://localhost:8080/v1"),
            ("localhost:8080", "http://localhost:8080/v1"),
            ("http://0.0.0.0:8080", "http://127.0.0.1:8080/v1"),
            ("https://example.com/api", "https://example.com/api/v1"),
            (
                "https://example.com/v1/chat/completions",
                "https://example.com/v1",
            ),
            ("https://example.com/v1/models", "https://example.com/v1"),
            (
                "https://example.com/serving-endpoints/chat/completions",
                "https://example.com/serving-endpoints",
            ),
            (
                "https://example.com/v1beta/openai/",
                "https://example.com/v1beta/openai",
            ),
            (
                "https://example.com/api/paas/v4",
                "https://example.com/api/paas/v4",
            ),
            ("https://example.com/?", "https://example.com/v1"),
            ("https://example.com?a=b", "https://example.com/v1?a=b"),
            (
                "https://example.com/openai/deployments/d/?api-version=2024-10-21",
                "https://example.com/openai/deployments/d?api-version=2024-10-21",
            ),
            (
                "https://example.com/openai/deployments/d/chat/completions?api-version=1#x",
                "https://example.com/openai/deployments/d?api-version=1",
            ),
        ] {
            let root = api_root(text).map(|url| url.to_string());
            assert_eq!(root.as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn azure_is_given_a_key_by_the_header_that_takes_one() {
        for (text, has_header) in [
            ("https://x.openai.azure.com/openai/d?api-version=1", true),
            ("https://x.openai.azure.com/openai/v1", false),
            ("https://example.com/v1?api-version=1", false),
        ] {
            let base = api_root(text).unwrap();
            assert_eq!(key_header(&base).is_some(), has_header, "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "  ", "ftp://example.com", "http://", "http://bad host/"] {
            assert_eq!(api_root(text), None, "{text}");
        }
    }
}
