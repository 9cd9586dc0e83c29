//! Which addresses lead to this very machine.

use std::net::IpAddr;

use url::Url;

/// Whether a URL points to this machine, as far as it says by itself.
#[must_use]
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    match host.parse::<IpAddr>() {
        Ok(ip) => ip.to_canonical().is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_known_in_all_its_forms() {
        for (url, expected) in [
            ("http://localhost:11434", true),
            ("http://navi.localhost", true),
            ("http://127.0.0.1:1", true),
            ("http://127.8.8.8", true),
            ("http://[::1]:1", true),
            ("http://[::ffff:127.0.0.1]:1", true),
            ("http://192.168.0.2", false),
            ("http://localhost.example.com", false),
            ("https://example.com", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
