//! A web server that misbehaves as it is told: bare sockets, since a good library would not.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What a site does once it has read a request's head.
#[derive(Clone, Debug)]
pub(crate) enum SiteReply {
    /// These bytes, then the end.
    Bytes(Vec<u8>),
    /// A head, then this again and again, with a pause between.
    Endless(Vec<u8>, Vec<u8>, Duration),
    /// Nothing at all.
    Silence,
}

/// A site on one loopback address. It ends with this.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    /// The heads of the requests that came.
    requests: Arc<Mutex<Vec<String>>>,
    served: JoinHandle<()>,
}

impl Site {
    /// Answers by the request's head.
    pub(crate) async fn start(
        ip: IpAddr,
        answer: impl Fn(&str) -> SiteReply + Send + Sync + 'static,
    ) -> Self {
        Self::start_on(SocketAddr::new(ip, 0), answer).await
    }

    pub(crate) async fn start_on(
        at: SocketAddr,
        answer: impl Fn(&str) -> SiteReply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(at).await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        let answer = Arc::new(answer);
        let served = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                tokio::spawn(async move {
                    // A client that goes away is what some tests want.
                    let _ = serve(stream, &kept, answer.as_ref()).await;
                });
            }
        });
        Self {
            address,
            requests,
            served,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.served.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    kept: &Mutex<Vec<String>>,
    answer: &(dyn Fn(&str) -> SiteReply + Send + Sync),
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).await? == 0 {
            return Ok(());
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    kept.lock().unwrap().push(head.clone());
    match answer(&head) {
        SiteReply::Bytes(bytes) => {
            stream.write_all(&bytes).await?;
            stream.shutdown().await?;
        }
        SiteReply::Endless(head, piece, pause) => {
            stream.write_all(&head).await?;
            loop {
                stream.write_all(&piece).await?;
                tokio::time::sleep(pause).await;
            }
        }
        SiteReply::Silence => {
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await?;
        }
    }
    Ok(())
}

/// A whole answer: its status line's end, its headers, its body.
pub(crate) fn answer(status: &str, headers: &[&str], body: &[u8]) -> SiteReply {
    let mut bytes = format!("HTTP/1.1 {status}\r\nConnection: close\r\n").into_bytes();
    for header in headers {
        bytes.extend_from_slice(format!("{header}\r\n").as_bytes());
    }
    bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
    bytes.extend_from_slice(body);
    SiteReply::Bytes(bytes)
}

pub(crate) fn page(body: &str) -> SiteReply {
    answer("200 OK", &["Content-Type: text/html"], body.as_bytes())
}

pub(crate) fn redirect(to: &str) -> SiteReply {
    answer("302 Found", &[&format!("Location: {to}")], b"")
}
