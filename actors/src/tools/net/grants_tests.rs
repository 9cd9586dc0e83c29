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
