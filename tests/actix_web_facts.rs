//! What we lean on in actix-web-actors, so that an upgrade cannot change it silently:
//! a tab that doesn't read its socket is not polled, so it cannot grow, and cannot time
//! itself out either (DESIGN section 3).

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix::prelude::*;
use actix_web::web::{self, Bytes};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};
use actix_web_actors::ws;
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

/// What each end of a socket keeps: asked for, since what a system gives unasked grows.
const BUFFER_BYTES: u32 = 64 << 10;
const FRAME_BYTES: usize = 256 << 10;
/// Far more than the buffers of both ends hold together.
const FRAMES: usize = 128;
/// So often the timer of a tab that is polled goes while another one counts as standing still.
const TICKS: usize = 50;
/// Only a test that fails ever sees its end.
const PATIENCE: Duration = Duration::from_secs(60);

/// A tab, as the test has it from its beginning on.
struct Opened {
    tab: Addr<Tab>,
    ticks: UnboundedReceiver<()>,
    /// Whether what was heard is an end of the socket.
    heard: UnboundedReceiver<bool>,
}

struct Tab {
    opened: UnboundedSender<Opened>,
    hears: Option<UnboundedSender<bool>>,
}

impl Actor for Tab {
    type Context = ws::WebsocketContext<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let (tick, ticks) = unbounded_channel();
        let (hears, heard) = unbounded_channel();
        self.hears = Some(hears);
        let tab = ctx.address();
        let _ = self.opened.send(Opened { tab, ticks, heard });
        ctx.run_interval(Duration::from_millis(10), move |_, _| {
            let _ = tick.send(());
        });
    }
}

impl StreamHandler<Result<ws::Message, ws::ProtocolError>> for Tab {
    fn handle(&mut self, told: Result<ws::Message, ws::ProtocolError>, _: &mut Self::Context) {
        let is_end = matches!(told, Err(ws::ProtocolError::Io(_)));
        self.hears.iter().for_each(|hears| {
            let _ = hears.send(is_end);
        });
    }
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
    opened: web::Data<UnboundedSender<Opened>>,
) -> actix_web::Result<HttpResponse> {
    let opened = opened.get_ref().clone();
    let hears = None;
    ws::start(Tab { opened, hears }, &request, body)
}

/// A server with a single thread for its tabs.
fn serve() -> (SocketAddr, UnboundedReceiver<Opened>) {
    let (open_tab, opened) = unbounded_channel();
    let server = HttpServer::new(move || {
        App::new()
            .app_data(web::Data::new(open_tab.clone()))
            .route("/ws", web::get().to(open))
    })
    .on_connect(|stream, _| {
        let stream: &actix_web::rt::net::TcpStream = stream.downcast_ref().unwrap();
        SockRef::from(stream)
            .set_send_buffer_size(BUFFER_BYTES as usize)
            .unwrap();
    })
    .workers(1)
    .disable_signals()
    .bind("127.0.0.1:0")
    .unwrap();
    let address = server.addrs()[0];
    actix::spawn(server.run());
    (address, opened)
}

/// A socket whose client has read nothing but the handshake.
async fn join(address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(BUFFER_BYTES).unwrap();
    let mut client = socket.connect(address).await.unwrap();
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

/// How often a tab's timer goes while that of one on the same thread goes [`TICKS`] times: the
/// machine's pace is that of both.
async fn ticks_beside(tab: &mut Opened, other: &mut Opened) -> usize {
    while tab.ticks.try_recv().is_ok() {}
    while other.ticks.try_recv().is_ok() {}
    for _ in 0..TICKS {
        other.ticks.recv().await.unwrap();
    }
    std::iter::from_fn(|| tab.ticks.try_recv().ok()).count()
}

async fn a_full_socket() {
    let (address, mut opened) = serve();
    let mut silent = join(address).await;
    let mut full = opened.recv().await.unwrap();
    let _other = join(address).await;
    let mut other = opened.recv().await.unwrap();
    assert!(ticks_beside(&mut full, &mut other).await > 0);

    let taken = Arc::new(AtomicUsize::new(0));
    let (tab, beside) = (full.tab.clone(), other.tab.clone());
    let count = Arc::clone(&taken);
    let writer = actix::spawn(async move {
        let frame = Bytes::from(vec![0; FRAME_BYTES]);
        for _ in 0..FRAMES {
            tab.send(Write(frame.clone())).await.unwrap();
            // In one turn a tab takes whatever is there. This answers in the turn of another one.
            beside.send(Write(Bytes::new())).await.unwrap();
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    while ticks_beside(&mut full, &mut other).await > 0 {
        let taken = taken.load(Ordering::Relaxed);
        assert!(taken < FRAMES, "it takes all that is written");
    }
    let before = taken.load(Ordering::Relaxed);
    assert_eq!(ticks_beside(&mut full, &mut other).await, 0);
    assert_eq!(taken.load(Ordering::Relaxed), before, "its mailbox stands");

    // Reading from the other end sets everything going again.
    let reader = actix::spawn(async move {
        let mut buffer = vec![0; FRAME_BYTES];
        while silent.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
    });
    writer.await.unwrap();
    full.ticks.recv().await.unwrap();
    reader.abort();
}

/// What a tab hears as its client's end is gone: by an orderly end, or by a reset.
async fn a_lost_socket(is_reset: bool) -> Option<bool> {
    let (address, mut opened) = serve();
    let client = join(address).await;
    let mut tab = opened.recv().await.unwrap();
    if is_reset {
        SockRef::from(&client)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
    }
    drop(client);
    tab.heard.recv().await
}

#[actix::test]
async fn a_tab_hears_an_end_of_its_socket_as_an_error_and_is_dropped_by_a_reset_unheard() {
    for (is_reset, expected) in [(false, Some(true)), (true, None)] {
        let heard = timeout(PATIENCE, a_lost_socket(is_reset)).await;
        assert_eq!(heard.expect("in time"), expected, "{is_reset}");
    }
}

#[actix::test]
async fn a_tab_whose_socket_is_full_is_not_polled_and_its_timers_stand_still() {
    timeout(PATIENCE, a_full_socket()).await.expect("in time");
}
