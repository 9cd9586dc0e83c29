//! What of the owner's own network tools may reach.

use std::net::IpAddr;
use std::str::FromStr as _;

use ipnet::IpNet;
use reqwest::Url;

/// Places that are reached though their addresses are not public. None by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants(Vec<Rule>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    All,
    Network(IpNet),
    /// A host by its name, or by its address as it is written, on one port or any.
    Host {
        name: String,
        port: Option<u16>,
    },
    /// Every host under a name.
    Under(String),
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
            name: host.to_owned(),
            port: url.port_or_known_default(),
        });
        Self(rule.into_iter().collect())
    }

    /// Whether this address may be reached as the host of `url`.
    pub fn cover(&self, url: &Url, ip: IpAddr) -> bool {
        let host = url.host_str().unwrap_or_default().trim_end_matches('.');
        self.0.iter().any(|rule| match rule {
            Rule::All => true,
            Rule::Network(network) => network.contains(&ip),
            Rule::Host { name, port } => {
                name.eq_ignore_ascii_case(host)
                    && port.is_none_or(|port| url.port_or_known_default() == Some(port))
            }
            Rule::Under(name) => host
                .to_ascii_lowercase()
                .strip_suffix(name.as_str())
                .is_some_and(|rest| rest.ends_with('.')),
        })
    }
}

fn rule(entry: &str) -> Option<Rule> {
    if entry == "*" {
        return Some(Rule::All);
    }
    if let Ok(network) = IpNet::from_str(entry) {
        return Some(Rule::Network(network.trunc()));
    }
    if let Ok(ip) = IpAddr::from_str(entry.trim_start_matches('[').trim_end_matches(']')) {
        return Some(Rule::Network(IpNet::from(ip)));
    }
    if let Some(name) = entry.strip_prefix("*.") {
        return is_name(name).then(|| Rule::Under(name.to_ascii_lowercase()));
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
        name: name.to_owned(),
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
#[path = "grants_tests.rs"]
mod tests;
