//! Nobody is reached by a socket, of whatever kind.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::Duration;

use crate::security::ward::Ward;

#[tokio::test]
async fn network_over_tcp() {
    for (ward, connects) in [(Ward::inside(), false), (Ward::outside(), true)] {
        for address in ["127.0.0.1", "::1"] {
            let Ok(listener) = TcpListener::bind((address, 0)) else {
                continue;
            };
            let port = listener.local_addr().unwrap().port();
            let program =
                format!("import socket; socket.create_connection(('{address}', {port}), 5)");
            assert_eq!(ward.python(&program).await, connects, "{address}");
            let by_shell = format!("exec 3<>/dev/tcp/{address}/{port}");
            assert_eq!(ward.works(&by_shell).await, connects, "{address}");
        }
        let program = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()";
        assert_eq!(ward.python(program).await, connects);
    }
}

#[tokio::test]
async fn network_over_udp_and_dns() {
    for (ward, sends) in [(Ward::inside(), false), (Ward::outside(), true)] {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let port = socket.local_addr().unwrap().port();
        // A question for the address of `secret.example`.
        let program = format!(
            "import socket\n\
             question = b'\\x00\\x01\\x01\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x06secret\\x07example\\x00\\x00\\x01\\x00\\x01'\n\
             socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(question, ('127.0.0.1', {port}))"
        );
        assert_eq!(ward.python(&program).await, sends);
        if sends {
            let mut buffer = [0; 100];
            let count = socket.recv(&mut buffer).unwrap();
            assert!(buffer[..count].windows(6).any(|part| part == b"secret"));
        }
    }
    assert!(
        !Ward::inside()
            .python("import socket; socket.getaddrinfo('example.invalid', 80)")
            .await
    );
}

#[tokio::test]
async fn other_kinds_of_sockets() {
    let inside = Ward::inside();
    for (family, kind) in [
        ("AF_NETLINK", "SOCK_RAW"),
        ("AF_PACKET", "SOCK_RAW"),
        ("AF_INET", "SOCK_RAW"),
        ("AF_VSOCK", "SOCK_STREAM"),
        ("AF_ALG", "SOCK_SEQPACKET"),
    ] {
        let program = format!("import socket; socket.socket(socket.{family}, socket.{kind})");
        assert!(!inside.python(&program).await, "{family}");
    }
}

#[tokio::test]
async fn unix_sockets() {
    for (ward, connects) in [(Ward::inside(), false), (Ward::outside(), true)] {
        let path = ward.foreign().join("socket");
        let _by_path = UnixListener::bind(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        let name = format!("navi-test-{}-{connects}", std::process::id());
        let abstract_name = SocketAddr::from_abstract_name(&name).unwrap();
        let _by_name = UnixListener::bind_addr(&abstract_name).unwrap();
        for address in [format!("'{}'", path.display()), format!("b'\\0{name}'")] {
            let program =
                format!("import socket; socket.socket(socket.AF_UNIX).connect({address})");
            assert_eq!(ward.python(&program).await, connects, "{address}");
        }
        // A pair reaches only its other end, unless it is one of datagrams.
        assert!(ward.python("import socket; socket.socketpair()").await);
        let datagrams = "import socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)";
        assert_eq!(ward.python(datagrams).await, connects);
    }
}
