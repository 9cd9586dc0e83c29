//! What of the owner's own network tools may reach.

use std::net::IpAddr;
use std::str::FromStr as _;

use ipnet::IpNet;
use reqwest::Url;
use wildmatch::WildMatch;

/// Places that are reached though their addresses are not public. None by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants(Vec<Rule>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    Network(IpNet),
    /// A host by its name in small letters, or by its address as it is written, on one port or any.
    /// `*` stands for any host, and at a name's beginning for every one under it.
    Host {
        name: String,
        port: Option<u16>,
    },
}

impl Grants {
    /// Reads a list with commas between: names (`nas.lan`, `nas.lan:8080`, `*.home.arpa`),
    /// addresses, networks (`192.168.1.0/24`), or `*` for everything.
    ///
    /// # Errors
    /// The entry that is none of those.
    pub fn parse(list: &str) -> Result<Self, String> {
        list.split(',')
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
            .map(|entry| {
                rule(entry).ok_or_else(|| {
                    format!(
                        "host names, addresses and networks with commas between, as in nas.lan, 192.168.1.0/24 (`{entry}` is none)"
                    )
                })
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The host and port of one URL, whatever its address: for servers that the owner named.
    pub fn of_origin(url: &Url) -> Self {
        let rule = url.host_str().map(|host| Rule::Host {
            name: host.to_ascii_lowercase(),
            port: url.port_or_known_default(),
        });
        Self(rule.into_iter().collect())
    }

    /// Whether this address may be reached as the host of `url`.
    pub fn cover(&self, url: &Url, ip: IpAddr) -> bool {
        let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
        let host = host.trim_end_matches('.');
        self.0.iter().any(|rule| match rule {
            Rule::Network(network) => network.contains(&ip),
            Rule::Host { name, port } => {
                WildMatch::new(name).matches(host)
                    && port.is_none_or(|port| url.port_or_known_default() == Some(port))
            }
        })
    }
}

fn rule(entry: &str) -> Option<Rule> {
    if entry == "*" || entry.strip_prefix("*.").is_some_and(is_name) {
        let name = entry.to_ascii_lowercase();
        return Some(Rule::Host { name, port: None });
    }
    if let Ok(network) = IpNet::from_str(entry) {
        return Some(Rule::Network(network.trunc()));
    }
    if let Ok(ip) = IpAddr::from_str(entry.trim_start_matches('[').trim_end_matches(']')) {
        return Some(Rule::Network(IpNet::from(ip)));
    }
    // The same reading as of an address that is fetched: `Host` and `host` are one.
    let url = Url::parse(&format!("http://{entry}/")).ok()?;
    let has_more = url.path() != "/" || url.query().is_some() || !url.username().is_empty();
    let name = url.host_str().filter(|_| !has_more)?;
    let port = match entry.rsplit_once(':') {
        Some((_, port)) => Some(port.parse().ok()?),
        None => None,
    };
    (is_name(name) || name.starts_with('[')).then(|| Rule::Host {
        name: name.to_ascii_lowercase(),
        port,
    })
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '-' | '.' | '_'))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says so by failing")]
    use super::*;

    #[track_caller]
    fn covers(list: &str, url: &str, ip: &str) -> bool {
        let grants = Grants::parse(list).unwrap();
        grants.cover(&Url::parse(url).unwrap(), ip.parse().unwrap())
    }

    #[test]
    fn a_list_grants_what_it_names_and_no_more() {
        let list = "nas.lan, Printer:631, 192.168.1.7/24, 10.0.0.5, fd00::/8, *.home.arpa";
        for (url, ip, expected) in [
            ("http://nas.lan/", "10.9.9.9", true),
            ("http://NAS.LAN.:99/", "10.9.9.9", true),
            ("http://evil-nas.lan/", "10.9.9.9", false),
            ("http://printer:631/", "10.9.9.9", true),
            ("http://printer/", "10.9.9.9", false),
            ("http://any.example/", "192.168.1.200", true),
            ("http://any.example/", "192.168.2.1", false),
            ("http://10.0.0.5:8080/", "10.0.0.5", true),
            ("http://10.0.0.6/", "10.0.0.6", false),
            ("http://x/", "fd12::1", true),
            ("http://a.home.arpa/", "10.9.9.9", true),
            ("http://home.arpa/", "10.9.9.9", false),
            ("http://ahome.arpa/", "10.9.9.9", false),
        ] {
            assert_eq!(covers(list, url, ip), expected, "{url} {ip}");
        }
        assert!(covers("*", "http://x/", "127.0.0.1"));
        assert!(!covers("", "http://x/", "127.0.0.1"));
        assert!(covers("127.0.0.1:80", "http://127.0.0.1/", "127.0.0.1"));
        assert!(!covers("127.0.0.1:80", "http://127.0.0.1:81/", "127.0.0.1"));
        for wrong in [
            "http://nas.lan/",
            "a b",
            "10.0.0.0/40",
            "nas.lan:x",
            "x/y",
            "me@x",
        ] {
            assert!(Grants::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_server_of_the_owner_is_granted_on_its_port_only() {
        let url = |text| Url::parse(text).unwrap();
        let grants = Grants::of_origin(&url("http://localhost:8888/searxng"));
        let loopback = "127.0.0.1".parse().unwrap();
        assert!(grants.cover(&url("http://localhost:8888/x"), loopback));
        assert!(!grants.cover(&url("http://localhost:22/"), loopback));
        assert!(!grants.cover(&url("http://127.0.0.1:8888/"), loopback));
    }
}
