//! A browser's login, as the tests have it.

use reqwest::StatusCode;

use super::client;

/// What a page has after a login: its cookie, and the key that stays in its storage.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    pub(crate) cookie: String,
    pub(crate) key: String,
}

impl Login {
    pub(crate) async fn by(link: &str) -> Self {
        let answer = client().get(link).send().await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
        let header = |name: &str| answer.headers()[name].to_str().expect("text").to_owned();
        let (cookie, place) = (header("set-cookie"), header("location"));
        for attribute in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=2592000"] {
            assert!(cookie.contains(attribute), "{cookie}");
        }
        Self {
            cookie: cookie.split(';').next().unwrap_or_default().to_owned(),
            key: place
                .strip_prefix("../#key=")
                .unwrap_or_default()
                .to_owned(),
        }
    }

    /// As a script of the page sends it.
    pub(crate) fn headers(&self) -> [(&'static str, String); 2] {
        [
            ("cookie", self.cookie.clone()),
            ("x-navi-key", self.key.clone()),
        ]
    }
}
