//! Which addresses are of the public internet, what the others are, and what of it is this machine
//! itself, or stands beside it: its own public addresses, behind which its services listen past every
//! firewall, and the IPv6 networks that it is on, where the machines of its owner's have public
//! addresses too.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use ipnet::{IpNet, Ipv6Net};
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;

/// Kinds of addresses that are not of the public internet, with their networks: IANA's registries
/// of special-purpose addresses (RFC 6890), and places that clouds keep for themselves. The first
/// one with an address counts. Outdated are IPv4-compatible and IPv4-translated addresses: neither
/// is in use on the internet.
const KINDS: &str = "\
a cloud's metadata service: 100.100.100.200/32 168.63.129.16/32 169.254.169.254/32 192.0.0.192/32 fd00:ec2::/32
an unspecified address, which means this machine: 0.0.0.0/8 ::/128
this machine: 127.0.0.0/8 ::1/128
a private address: 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7
an address behind a provider's NAT: 100.64.0.0/10
a link-local address: 169.254.0.0/16 fe80::/10
a site-local address: fec0::/10
an address for documentation: 192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20
an address for benchmarks: 198.18.0.0/15 2001:2::/48
a multicast address: 224.0.0.0/4 ff00::/8
the broadcast address: 255.255.255.255/32
a Teredo tunnel: 2001::/32
a 6to4 tunnel: 2002::/16
an IPv4 address in an outdated form: ::/96 ::ffff:0:0:0/96
a reserved address: 192.0.0.0/24 192.88.99.0/24 240.0.0.0/4 2001::/23";

/// The length of an IPv6 network, where an interface's own says nothing: one address alone, as
/// DHCPv6 gives it out, or half the internet, as some tunnels have it.
const USUAL_PREFIX: u8 = 64;
const SHORTEST_PREFIX: u8 = 32;

#[expect(
    clippy::expect_used,
    reason = "the networks above are networks, which a test looks at"
)]
static NETWORKS: LazyLock<Vec<(IpNet, &str)>> = LazyLock::new(|| {
    let network = |text: &str| text.parse().expect("a network");
    let kinds = KINDS.lines().filter_map(|line| line.split_once(": "));
    let networks = kinds.flat_map(|(kind, all)| all.split(' ').map(move |it| (network(it), kind)));
    networks.collect()
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
fn inside(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(v6) if v6.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0] => last_four(v6),
        other => other,
    }
}

fn last_four(ip: Ipv6Addr) -> IpAddr {
    let [.., a, b, c, d] = ip.octets();
    Ipv4Addr::new(a, b, c, d).into()
}

/// The addresses of this machine's interfaces, as they are now, each with its network.
#[derive(Debug)]
pub(super) struct OwnNetworks(Vec<IpNet>);

impl OwnNetworks {
    /// Asks the system, each time: addresses come and go.
    pub(super) async fn of_this_machine() -> io::Result<Self> {
        tokio::task::spawn_blocking(|| {
            let found = getifaddrs()?.filter_map(|interface| {
                let ip = address(interface.address.as_ref()?)?;
                let mask = interface.netmask.as_ref().and_then(address);
                let told = mask.and_then(|mask| IpNet::with_netmask(ip, mask).ok());
                Some(network(ip, told.map(|net| net.prefix_len())))
            });
            Ok(Self(found.collect()))
        })
        .await?
    }

    /// What an address of the internet is to this machine; none for those of others.
    pub(super) fn kind_of(&self, ip: IpAddr) -> Option<&'static str> {
        let ip = inside(ip);
        if self.0.iter().any(|own| own.addr() == ip) {
            return Some("this machine");
        }
        let is_beside = ip.is_ipv6() && self.0.iter().any(|own| own.contains(&ip));
        is_beside.then_some("an address of this machine's own network")
    }
}

fn address(socket: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = socket.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
    v4.or_else(|| Some(IpAddr::V6(socket.as_sockaddr_in6()?.ip())))
}

/// The network of an interface's address. `told`: how many bits of it name that network.
fn network(ip: IpAddr, told: Option<u8>) -> IpNet {
    let told = told.filter(|told| (SHORTEST_PREFIX..=USUAL_PREFIX).contains(told));
    match ip {
        // Beside a public one stand the machines of others.
        IpAddr::V4(_) => ip.into(),
        IpAddr::V6(ip) => Ipv6Net::new_assert(ip, told.unwrap_or(USUAL_PREFIX)).into(),
    }
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
