//! Which addresses are of the public internet, and what the others are.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is, where it is not one of the public internet. The list is IANA's registries
/// of special-purpose addresses (RFC 6890), and places that clouds keep for themselves.
pub(crate) fn not_public(ip: IpAddr) -> Option<&'static str> {
    match ip {
        IpAddr::V4(ip) => not_public_v4(ip),
        IpAddr::V6(ip) => not_public_v6(ip),
    }
}

/// The address that really is reached: an IPv4 one that is written as IPv6 is that IPv4 one.
pub(crate) fn reached(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(ip, IpAddr::V4),
        IpAddr::V4(_) => ip,
    }
}

fn not_public_v4(ip: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, d] = ip.octets();
    let kind = match (a, b, c, d) {
        (0, ..) => "an unspecified address, which means this machine",
        (10, ..) | (172, 16..=31, ..) | (192, 168, ..) => "a private address",
        (100, 100, 100, 200) | (168, 63, 129, 16) | (169, 254, 169, 254) | (192, 0, 0, 192) => {
            "a cloud's metadata service"
        }
        (100, 64..=127, ..) => "an address behind a provider's NAT",
        (127, ..) => "this machine",
        (169, 254, ..) => "a link-local address",
        (192, 0, 0, _) | (192, 88, 99, _) => "a reserved address",
        (192, 0, 2, _) | (198, 51, 100, _) | (203, 0, 113, _) => "an address for documentation",
        (198, 18..=19, ..) => "an address for benchmarks",
        (224..=239, ..) => "a multicast address",
        (255, 255, 255, 255) => "the broadcast address",
        (240..=255, ..) => "a reserved address",
        _ => return None,
    };
    Some(kind)
}

fn not_public_v6(ip: Ipv6Addr) -> Option<&'static str> {
    let segments = ip.segments();
    let low = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        Ipv4Addr::new(a, b, c, d)
    };
    let kind = match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => "an unspecified address, which means this machine",
        [0, 0, 0, 0, 0, 0, 0, 1] => "this machine",
        // IPv4-mapped, and what NAT64 translates: it is as good as the address inside.
        [0, 0, 0, 0, 0, 0xffff, h, l] | [0x64, 0xff9b, 0, 0, 0, 0, h, l] => {
            return not_public_v4(low(h, l));
        }
        // IPv4-compatible and IPv4-translated: neither is in use on the internet.
        [0, 0, 0, 0, 0 | 0xffff, 0, ..] => "an IPv4 address in an outdated form",
        [0xfd00, 0x0ec2, ..] => "a cloud's metadata service",
        [0xfc00..=0xfdff, ..] => "a private address",
        [0xfe80..=0xfebf, ..] => "a link-local address",
        [0xfec0..=0xfeff, ..] => "a site-local address",
        [0xff00..=0xffff, ..] => "a multicast address",
        [0x2001, 0, ..] => "a Teredo tunnel",
        [0x2001, 2, 0, ..] => "an address for benchmarks",
        [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => "an address for documentation",
        [0x2001, 0..=0x01ff, ..] => "a reserved address",
        [0x2002, ..] => "a 6to4 tunnel",
        // ISATAP: the IPv4 address inside is where it leads.
        [_, _, _, _, 0 | 0x0200, 0x5efe, h, l] if not_public_v4(low(h, l)).is_some() => {
            "an ISATAP tunnel to an address that is not public"
        }
        [0x2000..=0x3fff, ..] => return None,
        _ => "a reserved address",
    };
    Some(kind)
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
