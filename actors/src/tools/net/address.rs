//! Which addresses are of the public internet, and what the others are.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use ipnet::IpNet;

/// Kinds of addresses that are not of the public internet, with their networks: IANA's registries
/// of special-purpose addresses (RFC 6890), and places that clouds keep for themselves. The first
/// one with an address counts.
const KINDS: [(&str, &str); 15] = [
    (
        "a cloud's metadata service",
        "100.100.100.200/32 168.63.129.16/32 169.254.169.254/32 192.0.0.192/32 fd00:ec2::/32",
    ),
    (
        "an unspecified address, which means this machine",
        "0.0.0.0/8 ::/128",
    ),
    ("this machine", "127.0.0.0/8 ::1/128"),
    (
        "a private address",
        "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7",
    ),
    ("an address behind a provider's NAT", "100.64.0.0/10"),
    ("a link-local address", "169.254.0.0/16 fe80::/10"),
    ("a site-local address", "fec0::/10"),
    (
        "an address for documentation",
        "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20",
    ),
    ("an address for benchmarks", "198.18.0.0/15 2001:2::/48"),
    ("a multicast address", "224.0.0.0/4 ff00::/8"),
    ("the broadcast address", "255.255.255.255/32"),
    ("a Teredo tunnel", "2001::/32"),
    ("a 6to4 tunnel", "2002::/16"),
    // IPv4-compatible and IPv4-translated: neither is in use on the internet.
    (
        "an IPv4 address in an outdated form",
        "::/96 ::ffff:0:0:0/96",
    ),
    (
        "a reserved address",
        "192.0.0.0/24 192.88.99.0/24 240.0.0.0/4 2001::/23",
    ),
];

#[expect(
    clippy::expect_used,
    reason = "the networks above are networks, which a test looks at"
)]
static NETWORKS: LazyLock<Vec<(IpNet, &str)>> = LazyLock::new(|| {
    let network = |text: &str| text.parse().expect("a network");
    let networks =
        |(kind, all): (_, &'static str)| all.split(' ').map(move |it| (network(it), kind));
    KINDS.into_iter().flat_map(networks).collect()
});

/// What an address is, where it is not one of the public internet.
pub(crate) fn not_public(ip: IpAddr) -> Option<&'static str> {
    let ip = inside(ip);
    if let Some((_, kind)) = NETWORKS.iter().find(|(network, _)| network.contains(&ip)) {
        return Some(kind);
    }
    let IpAddr::V6(ip) = ip else {
        return None;
    };
    match ip.segments() {
        // ISATAP: the IPv4 address inside is where it leads.
        [_, _, _, _, 0 | 0x0200, 0x5efe, ..] if not_public(last_four(ip)).is_some() => {
            Some("an ISATAP tunnel to an address that is not public")
        }
        [0x2000..=0x3fff, ..] => None,
        _ => Some("a reserved address"),
    }
}

/// An IPv4 address that is written as IPv6, or that NAT64 translates: what it is, that IPv4 one is.
pub(super) fn inside(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(v6) if v6.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0] => last_four(v6),
        other => other,
    }
}

fn last_four(ip: Ipv6Addr) -> IpAddr {
    let [.., a, b, c, d] = ip.octets();
    Ipv4Addr::new(a, b, c, d).into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says so by failing")]
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        for text in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:10.1.2.3",
            "::ffff:0:127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:0:7f00:1::",
            "2001:2::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:0a00:0001::1",
            "2a00:1450::5efe:10.0.0.1",
            "3fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(not_public(text.parse().unwrap()).is_some(), "{text}");
        }
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.1",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2001:4860:4860::8888",
            "2606:4700:4700::1111",
            "2a00:1450:4001:830::200e",
        ] {
            assert_eq!(not_public(text.parse().unwrap()), None, "{text}");
        }
    }
}
