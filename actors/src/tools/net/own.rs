//! What of the internet is this machine itself, or stands beside it: its own public addresses,
//! behind which its services listen past every firewall, and the IPv6 networks that it is on,
//! where the machines of its owner's have public addresses too.

use std::io;
use std::net::IpAddr;

use ipnet::{IpNet, Ipv6Net};
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;

use super::address::inside;

/// The length of an IPv6 network, where an interface's own says nothing: one address alone, as
/// DHCPv6 gives it out, or half the internet, as some tunnels have it.
const USUAL_PREFIX: u8 = 64;
const SHORTEST_PREFIX: u8 = 32;

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
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says so by failing")]
    use super::*;

    #[test]
    fn own_addresses_and_their_ipv6_neighbours_are_known() {
        let own = [
            ("198.41.0.4", 24),
            ("2001:41d0:a:b::5", 64),
            ("2001:41d0:ffff::7", 128),
            ("2001:41d1::7", 48),
            ("2a01::1", 3),
        ];
        let own = own.map(|(ip, prefix)| network(ip.parse().unwrap(), Some(prefix)));
        let own = OwnNetworks(own.to_vec());
        for (ip, expected) in [
            ("198.41.0.4", true),
            ("64:ff9b::198.41.0.4", true),
            ("198.41.0.5", false),
            ("2001:41d0:a:b::5", true),
            ("2001:41d0:a:b:ffff::", true),
            ("2001:41d0:a:c::5", false),
            ("2001:41d0:ffff::1234", true),
            ("2001:41d0:ffff:1::7", false),
            ("2001:41d1:0:ff::1", true),
            ("2001:41d1:1::1", false),
            ("2a01::2", true),
            ("2606:4700::1111", false),
        ] {
            assert_eq!(own.kind_of(ip.parse().unwrap()).is_some(), expected, "{ip}");
        }
    }

    #[tokio::test]
    async fn this_machine_knows_its_loopback_address() {
        let own = OwnNetworks::of_this_machine().await.unwrap();
        let loopback = "127.0.0.1".parse().unwrap();
        assert_eq!(own.kind_of(loopback), Some("this machine"));
    }
}
