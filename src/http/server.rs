//! The listening socket and what stands behind it.

use std::any::Any;
use std::io;
use std::net::TcpListener;
use std::time::Duration;

use actix_tls::accept::rustls_0_23::TlsStream;
use actix_web::dev::{Extensions, ServerHandle};
use actix_web::error::{InternalError, QueryPayloadError};
use actix_web::middleware::from_fn;
use actix_web::rt::net::TcpStream;
use actix_web::web::{PayloadConfig, QueryConfig};
use actix_web::{App as WebApp, HttpServer, web};
use navi_actors::protocol::error::ErrorCode;
use rustls::ServerConfig;
use socket2::SockRef;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tracing::debug;

use super::error::ApiError;
use super::{App, gate, routes};
use crate::doors;
use crate::doors::mcp::McpDoor;

/// The largest body of a request that carries no message.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// How long open requests have at the end.
const SHUTDOWN_SECONDS: u64 = 5;
const MAX_WORKERS: usize = 4;
/// How long a connection is kept that nobody uses.
pub(crate) const IDLE_SECONDS: u64 = 5;
/// How long a client may take to agree on TLS.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
/// What a tab that does not read may leave in the kernel, and for how long: its actor is
/// not polled meanwhile and cannot end itself.
const SEND_BUFFER_BYTES: usize = 128 * 1024;
const UNREAD_LIMIT: Duration = Duration::from_secs(15);

/// The HTTP server as it runs.
#[derive(Debug)]
pub(crate) struct HttpDoor {
    handle: ServerHandle,
    running: JoinHandle<io::Result<()>>,
}

/// Serves on a socket that listens already. To be called within the actix system.
///
/// # Errors
/// Those of the socket.
pub(crate) fn open(
    app: App,
    listener: TcpListener,
    tls: Option<ServerConfig>,
) -> io::Result<HttpDoor> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // One for all workers: the sessions of older clients live in it.
    let mcp = web::Data::new(McpDoor::new(&app, Handle::current()));
    let data = web::Data::new(app);
    let server = HttpServer::new(move || {
        data.engine.watch_thread("http");
        WebApp::new()
            .app_data(data.clone())
            .app_data(mcp.clone())
            .app_data(PayloadConfig::new(MAX_BODY_BYTES))
            .app_data(queries())
            .wrap(from_fn(gate::front))
            .configure(|config| routes(config, &data.loaded.settings.doors))
    })
    .workers(cores.min(MAX_WORKERS))
    .keep_alive(Duration::from_secs(IDLE_SECONDS))
    .shutdown_timeout(SHUTDOWN_SECONDS)
    .disable_signals()
    .on_connect(tune);
    let server = match tls {
        None => server.listen(listener)?,
        Some(tls) => server
            .tls_handshake_timeout(HANDSHAKE_LIMIT)
            .listen_rustls_0_23(listener, tls)?,
    };
    let server = server.run();
    Ok(HttpDoor {
        handle: server.handle(),
        running: actix::spawn(server),
    })
}

impl HttpDoor {
    /// Ends when the server does, which it should not by itself.
    pub(crate) async fn ended(&mut self) {
        let _ = (&mut self.running).await;
    }

    /// Takes no more connections and lets open requests end.
    pub(crate) async fn close(self) {
        self.handle.stop(true).await;
    }
}

/// What is wrong with a query is told as every other error is.
fn queries() -> QueryConfig {
    QueryConfig::default().error_handler(|error, request| {
        let reason = match &error {
            QueryPayloadError::Deserialize(reason) => reason.to_string(),
            other => other.to_string(),
        };
        let told = ApiError::new(ErrorCode::InvalidField, format!("query: {reason}"));
        let response = doors::refusal(request.path(), &told);
        InternalError::from_response(error, response).into()
    })
}

fn tune(connection: &dyn Any, _: &mut Extensions) {
    let of_tls = || {
        Some(
            connection
                .downcast_ref::<TlsStream<TcpStream>>()?
                .get_ref()
                .0,
        )
    };
    let Some(stream) = connection.downcast_ref::<TcpStream>().or_else(of_tls) else {
        return;
    };
    let socket = SockRef::from(stream);
    let tuned = socket
        .set_tcp_nodelay(true)
        .and_then(|()| socket.set_send_buffer_size(SEND_BUFFER_BYTES))
        .and_then(|()| socket.set_tcp_user_timeout(Some(UNREAD_LIMIT)));
    if let Err(error) = tuned {
        debug!(%error, "a connection could not be tuned");
    }
}
