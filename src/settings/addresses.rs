//! Addresses: where Navi listens, and where model servers are.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The address to serve on.
pub(crate) fn bind(text: &str) -> Result<SocketAddr, String> {
    let address = match text.rsplit_once(':') {
        Some((host, port)) if host.eq_ignore_ascii_case("localhost") => port
            .parse()
            .ok()
            .map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)),
        _ => text.parse().ok(),
    };
    address.ok_or_else(|| "an address and a port, as in 127.0.0.1:8000".to_owned())
}

/// Ollama's address as Ollama's own variable allows it: scheme and port may be left out,
/// and the address that a server listens on everywhere means this machine.
pub(crate) fn ollama(text: &str) -> Result<String, String> {
    let full = whole(text);
    let mut url = http_url(&full, "http://localhost:11434")?;
    if matches!(full, Cow::Owned(_)) && !names_port(text) {
        // `set_port` fails only for URLs without a host, which `http_url` refuses.
        let _ = url.set_port(Some(11434));
    }
    if matches!(url.host_str(), Some("0.0.0.0" | "[::]")) {
        let _ = url.set_host(Some("127.0.0.1"));
    }
    Ok(trimmed(&url))
}

/// Whether an address without its scheme names a port. One that is the scheme's own is forgotten
/// by `Url`.
fn names_port(text: &str) -> bool {
    let host = text.split(['/', '?', '#']).next().unwrap_or(text);
    let port = host.rsplit_once(':').map_or("", |(_, port)| port);
    !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
}

/// An OpenAI-compatible server's base URL, with the query that each request has. Its scheme may be
/// left out where there is no password and no query in it: what is secret there is found and hidden
/// by the scheme.
pub(crate) fn base_url(text: &str) -> Result<String, String> {
    let full: Cow<'_, str> = match text.contains(['@', '?']) {
        true => text.into(),
        false => whole(text),
    };
    let url = web_url(&full, "http://localhost:8080/v1")?;
    let is_found = url.query().is_none() || full.contains("://");
    if !is_found || (matches!(full, Cow::Owned(_)) && !is_near(&url)) {
        // The key would go there unencrypted.
        return Err("a URL with its scheme, as in https://api.example.com/v1".to_owned());
    }
    if url.query().is_some() {
        return Ok(url.into());
    }
    Ok(trimmed(&url))
}

/// Whether an address is of this machine or of its network, as far as it shows that.
fn is_near(url: &url::Url) -> bool {
    const OWN: [&str; 5] = [".local", ".lan", ".home", ".internal", ".home.arpa"];
    match url.host() {
        Some(url::Host::Domain(name)) => {
            !name.contains('.') || OWN.iter().any(|end| name.ends_with(end))
        }
        Some(url::Host::Ipv4(ip)) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback() || ip.is_unique_local(),
        None => false,
    }
}

/// An address with the scheme and the host that are meant where they are left out.
pub(crate) fn whole(text: &str) -> Cow<'_, str> {
    let is_web = |url: &url::Url| matches!(url.scheme(), "http" | "https");
    if text.contains("://") || url::Url::parse(text).is_ok_and(|url| is_web(&url)) {
        text.into()
    } else if text.starts_with(':') {
        format!("http://localhost{text}").into()
    } else {
        format!("http://{text}").into()
    }
}

/// A PostgreSQL connection URL. The driver checks the rest.
pub(crate) fn database_url(text: &str) -> Result<String, String> {
    let expected = "postgres://user:password@host/database";
    let url = url::Url::parse(text).map_err(|_| expected.to_owned())?;
    if matches!(url.scheme(), "postgres" | "postgresql") {
        Ok(text.to_owned())
    } else {
        Err(format!("{expected} (for SQLite, set DB_PATH instead)"))
    }
}

/// The address of a service that tools use, as it is asked for. The example is of such a one.
pub(crate) fn service(text: &str, example: &str) -> Result<url::Url, String> {
    let url = http_url(text, example)?;
    if url.username().is_empty() && url.password().is_none() {
        Ok(url)
    } else {
        Err("a URL without a user name and a password".to_owned())
    }
}

fn http_url(text: &str, example: &str) -> Result<url::Url, String> {
    let url = web_url(text, example)?;
    if url.query().is_some() {
        return Err(format!("a URL, as in {example}, without a query"));
    }
    Ok(url)
}

/// The same, which may have a query.
fn web_url(text: &str, example: &str) -> Result<url::Url, String> {
    let expected = format!("a URL, as in {example}");
    let url = url::Url::parse(text).map_err(|error| format!("{expected} ({error})"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(expected);
    }
    if url.fragment().is_some() {
        return Err(format!("{expected}, without a fragment"));
    }
    Ok(url)
}

fn trimmed(url: &url::Url) -> String {
    url.as_str().trim_end_matches('/').to_owned()
}
