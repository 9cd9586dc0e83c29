//! `Host` and `Origin`: what keeps other web pages, and names that resolve to this machine,
//! away from a service that listens on loopback.

use std::net::{IpAddr, SocketAddr};

use actix_web::http::header::{self, HeaderMap, HeaderName};
use actix_web::http::uri::Authority;
use navi_actors::protocol::error::{ErrorCode, NaviError};

use super::prefix;
use crate::settings::PublicUrl;
use crate::tls::Wire;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses a request that came under another name than a loopback one: a web page whose
/// name was made to resolve to 127.0.0.1 (DNS rebinding) sends its own name as `Host`.
///
/// # Errors
/// `forbidden_host`.
pub(crate) fn check_host(headers: &HeaderMap, ours: &Places) -> Result<(), NaviError> {
    let mut hosts = headers.get_all(header::HOST);
    let (host, another) = (hosts.next(), hosts.next());
    let host = host.and_then(|host| host.to_str().ok());
    let host = host.filter(|_| another.is_none());
    if host.is_some_and(|host| ours.have(host)) {
        return Ok(());
    }
    let refused = host.map_or_else(String::new, |host| format!(", and not under {host}"));
    Err(NaviError::new(
        ErrorCode::ForbiddenHost,
        format!(
            "navi answers only under its own address, {}{refused}; NAVI_PUBLIC_URL names another one for those outside",
            ours.page()
        ),
    ))
}

/// Where Navi is.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// Where the service listens.
    pub(crate) address: SocketAddr,
    wire: Wire,
    /// Where it is for those outside.
    pub(crate) public: Option<PublicUrl>,
    /// What a proxy may leave before each path.
    pub(super) prefix: Option<String>,
}

impl Places {
    pub(crate) fn new(address: SocketAddr, wire: Wire, public: Option<PublicUrl>) -> Self {
        Self {
            address,
            wire,
            prefix: public.as_ref().and_then(prefix::left_on),
            public,
        }
    }

    /// The page's address, as it is told to people.
    pub(crate) fn page(&self) -> String {
        match &self.public {
            Some(public) => public.url.to_string(),
            None => self.wire.url(self.address),
        }
    }

    /// Whether browsers come by TLS: Navi's own, or that of the proxy outside.
    pub(crate) fn is_secure(&self) -> bool {
        self.wire == Wire::Tls || self.public.as_ref().is_some_and(PublicUrl::is_secure)
    }

    /// Whether this `Host` names one of them.
    fn have(&self, host: &str) -> bool {
        self.is_public(host) || is_ours(host, self.address)
    }

    /// Whether this `Host` is the name for those outside.
    fn is_public(&self, host: &str) -> bool {
        let public = self.public.as_ref();
        public.is_some_and(|it| it.authority.eq_ignore_ascii_case(host))
    }
}

/// How far a request can be trusted to come from our own page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// A browser's cookie: the browser sends it whoever made it ask.
    Cookie,
    /// A token: nobody but its holder sends it.
    Token,
}

/// Refuses a changing request or an upgrade that another page made a browser send.
///
/// # Errors
/// `forbidden_origin`.
pub(crate) fn check_origin(
    headers: &HeaderMap,
    ours: &Places,
    trust: Trust,
) -> Result<(), NaviError> {
    let host = text(headers, &header::HOST).unwrap_or_default();
    let mut origins = headers.get_all(header::ORIGIN);
    let allowed = match (origins.next(), origins.next()) {
        (Some(origin), None) => origin.to_str().is_ok_and(|origin| {
            // Outside, another scheme is another page: who is on the way can make one of it.
            is_public(origin, ours) || !ours.is_public(host) && is_same_origin(origin, host)
        }),
        (None, _) => trust == Trust::Token || text(headers, &SEC_FETCH_SITE) == Some("same-origin"),
        (Some(_), Some(_)) => false,
    };
    if allowed { Ok(()) } else { Err(forbidden()) }
}

/// Refuses what another page made a browser fetch with its cookie, even if it only reads.
/// Browsers that do not say stay with `SameSite` and `Cross-Origin-Resource-Policy`.
///
/// # Errors
/// `forbidden_origin`.
pub(crate) fn check_fetch_site(headers: &HeaderMap) -> Result<(), NaviError> {
    match text(headers, &SEC_FETCH_SITE) {
        None | Some("same-origin" | "none") => Ok(()),
        Some(_) => Err(forbidden()),
    }
}

fn forbidden() -> NaviError {
    NaviError::new(
        ErrorCode::ForbiddenOrigin,
        "the request does not come from Navi's own page; scripts use a token (`navi token add NAME`) instead of the cookie",
    )
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn is_ours(host: &str, address: SocketAddr) -> bool {
    // An authority can carry a user, a `Host` cannot.
    let Some(authority) = host
        .parse::<Authority>()
        .ok()
        .filter(|_| !host.contains('@'))
    else {
        return false;
    };
    let name = authority.host();
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let literal = name
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(name);
    literal.parse::<IpAddr>().is_ok_and(|ip| {
        // No name was made to resolve to what is no name.
        ip.is_loopback() || ip == address.ip() || address.ip().is_unspecified()
    })
}

/// A proxy may ask under a name of its own.
fn is_public(origin: &str, ours: &Places) -> bool {
    let public = ours.public.as_ref();
    public.is_some_and(|public| public.origin().eq_ignore_ascii_case(origin))
}

fn is_same_origin(origin: &str, host: &str) -> bool {
    let Some((scheme, authority)) = origin.split_once("://") else {
        return false;
    };
    let default_port = match scheme {
        "http" => ":80",
        // Behind a TLS proxy of the user's on this machine.
        "https" => ":443",
        _ => return false,
    };
    let plain = |authority: &str| {
        authority
            .strip_suffix(default_port)
            .unwrap_or(authority)
            .to_ascii_lowercase()
    };
    !authority.is_empty() && plain(authority) == plain(host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::HeaderValue;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(
                HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            );
        }
        headers
    }

    fn here(public: Option<&str>) -> Places {
        let public = public.map(|url| PublicUrl {
            authority: url.parse::<url::Url>().unwrap().authority().to_owned(),
            url: url.parse().unwrap(),
        });
        Places::new("127.0.0.1:8000".parse().unwrap(), Wire::Plain, public)
    }

    fn host_passes(host: &str) -> bool {
        check_host(&headers(&[("host", host)]), &here(None)).is_ok()
    }

    #[test]
    fn only_loopback_names_are_ours() {
        for host in [
            "localhost",
            "LOCALHOST:8000",
            "127.0.0.1:8000",
            "127.0.0.2",
            "[::1]:9",
            "[::1]",
        ] {
            assert!(host_passes(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:8000",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "localhost@evil.example",
            "evil@localhost",
            "0.0.0.0:8000",
            "192.168.1.2:8000",
            "127.1",
            "[::1",
            "localhost/..",
        ] {
            assert!(!host_passes(host), "{host}");
        }
        let here = here(None);
        assert!(check_host(&headers(&[]), &here).is_err());
        let two = headers(&[("host", "localhost"), ("host", "evil.example")]);
        assert!(check_host(&two, &here).is_err());
    }

    #[test]
    fn the_public_name_is_ours_and_its_page_too() {
        let here = here(Some("https://home.example/navi"));
        let host = |host| check_host(&headers(&[("host", host)]), &here).is_ok();
        assert!(host("home.example") && host("HOME.example") && host("localhost:8000"));
        assert!(!host("home.example:8000") && !host("home.example.evil.example"));
        let from = |origin, host| {
            let all = headers(&[("host", host), ("origin", origin)]);
            check_origin(&all, &here, Trust::Cookie).is_ok()
        };
        assert!(from("https://home.example", "home.example"));
        assert!(!from("http://home.example", "home.example"));
        // A proxy that asks under a name of its own.
        assert!(from("https://home.example", "127.0.0.1:8000"));
        assert!(!from("http://home.example", "127.0.0.1:8000"));
        assert!(!from("https://evil.example", "127.0.0.1:8000"));
    }

    #[test]
    fn who_listens_everywhere_is_asked_by_any_address_and_by_no_name() {
        let everywhere = Places::new("0.0.0.0:8000".parse().unwrap(), Wire::Plain, None);
        let host = |host| check_host(&headers(&[("host", host)]), &everywhere).is_ok();
        assert!(host("192.168.1.2:8000") && host("[fe80::1]:8000"));
        assert!(!host("evil.example:8000"));
    }

    #[test]
    fn a_cookie_needs_our_own_origin() {
        let check = |pairs: &[(&'static str, &str)], trust| {
            let mut all = vec![("host", "localhost:8000")];
            all.extend_from_slice(pairs);
            check_origin(&headers(&all), &here(None), trust).is_ok()
        };
        assert!(check(&[("origin", "http://localhost:8000")], Trust::Cookie));
        assert!(check(&[("sec-fetch-site", "same-origin")], Trust::Cookie));
        assert!(!check(&[], Trust::Cookie));
        assert!(check(&[], Trust::Token));
        for origin in [
            "null",
            "",
            "http://localhost:3000",
            "http://127.0.0.1:8000",
            "http://evil.example",
            "http://localhost:8000.evil.example",
            "ftp://localhost:8000",
            "http://",
        ] {
            assert!(!check(&[("origin", origin)], Trust::Cookie), "{origin}");
            assert!(!check(&[("origin", origin)], Trust::Token), "{origin}");
        }
        assert!(!check(&[("sec-fetch-site", "same-site")], Trust::Cookie));
        let two = [
            ("origin", "http://localhost:8000"),
            ("origin", "http://evil.example"),
        ];
        assert!(!check(&two, Trust::Cookie));
    }

    #[test]
    fn default_ports_may_be_left_out() {
        assert!(is_same_origin("http://localhost", "localhost:80"));
        assert!(is_same_origin("https://localhost", "localhost"));
        assert!(!is_same_origin("http://", ""));
    }

    #[test]
    fn reading_for_another_page_is_refused() {
        assert!(check_fetch_site(&headers(&[])).is_ok());
        assert!(check_fetch_site(&headers(&[("sec-fetch-site", "none")])).is_ok());
        assert!(check_fetch_site(&headers(&[("sec-fetch-site", "same-site")])).is_err());
        assert!(check_fetch_site(&headers(&[("sec-fetch-site", "cross-site")])).is_err());
    }
}
