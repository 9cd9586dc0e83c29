//! A model server that answers as fast as it is told to, and notes when.
//!
//! It speaks HTTP by hand, on one thread, and reads of a request no more than it has to: what it
//! costs must not be seen beside what is measured. The figure `model-server` shows that.

mod answer;
mod ledger;
mod serve;
mod wire;

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use tokio::sync::oneshot;

pub(crate) use self::ledger::{Call, Ledger};

/// The one model that there is.
pub(crate) const MODEL: &str = "bench";

/// Whose way of speaking is spoken to the server; it understands both at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Protocol {
    Openai,
    Ollama,
}

impl Protocol {
    /// Where a model call goes.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Openai => "/v1/chat/completions",
            Self::Ollama => "/api/chat",
        }
    }
}

impl fmt::Display for Protocol {
    /// As the command line has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Openai => "openai",
            Self::Ollama => "ollama",
        })
    }
}

/// The server as it runs. It ends, and cuts every connection, when this is dropped.
#[derive(Debug)]
pub(crate) struct ModelServer {
    pub(crate) address: SocketAddr,
    pub(crate) ledger: Arc<Ledger>,
    _shutdown: oneshot::Sender<()>,
}

impl ModelServer {
    /// Starts it on a free port of loopback, on a thread of its own and on the processors of the
    /// calling one.
    ///
    /// # Errors
    /// There is no port or no thread left.
    pub(crate) fn start() -> Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .context("no port for the model server")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let ledger = Arc::new(Ledger::default());
        let (shutdown, ended) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let served = Arc::clone(&ledger);
        std::thread::Builder::new()
            .name("model-server".to_owned())
            .spawn(move || runtime.block_on(serve::run(listener, served, ended)))
            .context("no thread for the model server")?;
        Ok(Self {
            address,
            ledger,
            _shutdown: shutdown,
        })
    }
}
