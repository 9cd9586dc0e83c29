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
