//! Keys and tokens of the services that tools use.

use std::fmt;

use reqwest::header::HeaderValue;

/// A secret. Its `Debug` says only that there is one.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Takes a key that can stand in a header; none where it cannot.
    pub fn new(text: String) -> Option<Self> {
        HeaderValue::from_str(&text)
            .is_ok()
            .then_some(Self(text))
            .filter(|key| !key.0.is_empty())
    }

    /// The text without the key, for words of a server that repeats what it was sent.
    pub fn hidden_in(&self, text: &str) -> String {
        text.replace(&self.0, "[hidden]")
    }

    /// As a header's value, with `prefix` before it: `Bearer ` for example. Marked, so that no
    /// library prints it.
    pub fn header(&self, prefix: &str) -> HeaderValue {
        let mut value = HeaderValue::from_str(&format!("{prefix}{}", self.0))
            // A prefix of ours and a key that was checked always make a header.
            .unwrap_or_else(|_| HeaderValue::from_static(""));
        value.set_sensitive(true);
        value
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_printed() {
        let key = ApiKey::new("hunter2".to_owned()).unwrap();
        let shown = format!("{key:?} {:?}", key.header("Bearer "));
        assert!(!shown.contains("hunter2"), "{shown}");
        assert_eq!(key.header("Bearer ").as_bytes(), b"Bearer hunter2");
        assert_eq!(key.hidden_in("Bearer hunter2!"), "Bearer [hidden]!");
        assert!(ApiKey::new("a\nb".to_owned()).is_none());
    }
}
