//! What we lean on in actix-web-actors, so that an upgrade cannot change it silently:
//! a tab that doesn't read its socket is not polled, so it cannot grow, and cannot time
//! itself out either (DESIGN section 3).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use std::net::SocketAddr;
use std::time::Duration;

use actix::prelude::*;
use actix_web::web::{self, Bytes};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};
use actix_web_actors::ws;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

/// More than the buffers of both ends of a loopback socket hold together.
const MORE_THAN_BUFFERS_BYTES: usize = 64 << 20;
const FRAME_BYTES: usize = 256 << 10;
/// How long nothing must happen before it counts as standing still.
const STILL: Duration = Duration::from_millis(500);
const LIMIT: Duration = Duration::from_secs(20);

/// What a tab tells the test.
enum Told {
    Open(Addr<Tab>),
    Tick,
}

struct Tab(UnboundedSender<Told>);

impl Actor for Tab {
    type Context = ws::WebsocketContext<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let _ = self.0.send(Told::Open(ctx.address()));
        ctx.run_interval(Duration::from_millis(10), |tab, _| {
            let _ = tab.0.send(Told::Tick);
        });
    }
}

impl StreamHandler<Result<ws::Message, ws::ProtocolError>> for Tab {
    fn handle(&mut self, _: Result<ws::Message, ws::ProtocolError>, _: &mut Self::Context) {}
}

#[derive(Message)]
#[rtype(result = "()")]
struct Write(Bytes);

impl Handler<Write> for Tab {
    type Result = ();

    fn handle(&mut self, frame: Write, ctx: &mut Self::Context) {
        ctx.binary(frame.0);
    }
}

async fn open(
    request: HttpRequest,
    body: web::Payload,
    told: web::Data<UnboundedSender<Told>>,
) -> actix_web::Result<HttpResponse> {
    ws::start(Tab(told.get_ref().clone()), &request, body)
}

/// A server with one socket open on it, whose client has read nothing but the handshake.
async fn silent_client() -> (TcpStream, Addr<Tab>, UnboundedReceiver<Told>) {
    let (tell, mut told) = unbounded_channel();
    let server = HttpServer::new(move || {
        App::new()
            .app_data(web::Data::new(tell.clone()))
            .route("/ws", web::get().to(open))
    })
    .workers(1)
    .disable_signals()
    .bind("127.0.0.1:0")
    .unwrap();
    let address = server.addrs()[0];
    actix::spawn(server.run());

    let client = shake_hands(address).await;
    let Some(Told::Open(tab)) = told.recv().await else {
        panic!("the tab tells its address first");
    };
    (client, tab, told)
}

async fn shake_hands(address: SocketAddr) -> TcpStream {
    let mut client = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "GET /ws HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    );
    client.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101"));
    client
}

/// Writes frames until the tab no longer takes a message.
async fn write_until_stuck(tab: &Addr<Tab>) -> bool {
    let frame = Bytes::from(vec![0; FRAME_BYTES]);
    for _ in 0..MORE_THAN_BUFFERS_BYTES / FRAME_BYTES {
        if timeout(STILL, tab.send(Write(frame.clone())))
            .await
            .is_err()
        {
            return true;
        }
    }
    false
}

async fn ticks_within(told: &mut UnboundedReceiver<Told>, time: Duration) -> bool {
    timeout(time, told.recv()).await.is_ok()
}

#[actix::test]
async fn a_tab_whose_socket_is_full_is_not_polled_and_its_timers_stand_still() {
    let (mut client, tab, mut told) = silent_client().await;
    assert!(ticks_within(&mut told, LIMIT).await, "the timer goes");

    assert!(write_until_stuck(&tab).await, "the mailbox stands still");
    while told.try_recv().is_ok() {}
    assert!(!ticks_within(&mut told, STILL).await, "the timer stands");

    // Reading from the other end sets everything going again.
    let reader = actix::spawn(async move {
        let mut buffer = vec![0; FRAME_BYTES];
        while client.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
    });
    assert!(ticks_within(&mut told, LIMIT).await, "the timer goes again");
    let answered = timeout(LIMIT, tab.send(Write(Bytes::new()))).await;
    assert_eq!(answered.unwrap(), Ok(()));
    reader.abort();
}
