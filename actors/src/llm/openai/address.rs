//! `OPENAI_BASE_URL` in the ways that people write it.

use reqwest::Url;

/// The URL that the API's paths stand under. `/v1` is added where no part of the path is a
/// version already. An endpoint that was pasted along is taken off: what stands before
/// `/chat/completions` is known to be whole.
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
    if !is_whole && !segments.iter().any(|segment| is_version(segment)) {
        segments.push("v1");
    }
    let path = segments.join("/");
    url.set_path(&path);
    url.set_query(None);
    url.set_fragment(None);
    if url.host_str() == Some("0.0.0.0") {
        url.set_host(Some("127.0.0.1")).ok()?;
    }
    Some(url)
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
        ] {
            let root = api_root(text).map(|url| url.to_string());
            assert_eq!(root.as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "  ", "ftp://example.com", "http://", "http://bad host/"] {
            assert_eq!(api_root(text), None, "{text}");
        }
    }
}
