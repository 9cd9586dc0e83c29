//! What is measured, and what it is compared with, side by side.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::conversation::{Conversation, Dialect};
use crate::cores::Cores;
use crate::house::House;
use crate::http::{self, Call, Identity};
use crate::model::{ModelServer, Protocol};
use crate::navi::Navi;
use crate::process::Process;
use crate::profile::Profiler;

/// How long a server may take to answer at first.
const PATIENCE: Duration = Duration::from_secs(60);

/// What every server here is started with.
#[derive(Debug)]
pub(crate) struct Ground {
    /// The built `navi`.
    pub(crate) program: PathBuf,
    pub(crate) cores: Cores,
    pub(crate) protocol: Protocol,
    pub(crate) model: ModelServer,
    /// Where it is asked for, what samples each Navi.
    pub(crate) profiler: Option<Profiler>,
}

impl Ground {
    /// A pass-through and a Navi with nothing in it, both ready.
    ///
    /// # Errors
    /// One of them does not start.
    pub(crate) async fn pair(&self) -> Result<Pair> {
        self.pair_in(&House::new()?).await
    }

    /// A pass-through and a Navi in this house, both ready.
    ///
    /// # Errors
    /// One of them does not start.
    pub(crate) async fn pair_in(&self, house: &House) -> Result<Pair> {
        let (limit, _) = self.pass_through().await?;
        let navi = house.start(self).await?;
        navi.ready().await?;
        Ok(Pair { limit, navi })
    }

    /// A pass-through, and how long it took to its first answer.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) async fn pass_through(&self) -> Result<(PassThrough, Duration)> {
        let address = free_address()?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg("pass-through")
            .args(["--port", &address.port().to_string()])
            .args(["--model", &self.model.address.to_string()])
            .args(["--protocol", &self.protocol.to_string()])
            .stdin(Stdio::piped());
        let begun = Instant::now();
        let mut process = Process::start(command, self.cores)?;
        answers(address, &mut process).await?;
        let took = begun.elapsed();
        Ok((PassThrough { process, address }, took))
    }
}

/// The limit, as a process.
#[derive(Debug)]
pub(crate) struct PassThrough {
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
}

/// The two that figures compare.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) limit: PassThrough,
    pub(crate) navi: Navi,
}

impl Pair {
    /// Both, the other one first in every other round: what goes first pays for nothing alone.
    pub(crate) fn in_turn(&self, round: usize) -> [Side<'_>; 2] {
        let (limit, navi) = (Side::Limit(&self.limit), Side::Navi(&self.navi));
        if round.is_multiple_of(2) {
            [limit, navi]
        } else {
            [navi, limit]
        }
    }
}

/// One of the two.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side<'a> {
    Limit(&'a PassThrough),
    Navi(&'a Navi),
}

impl Side<'_> {
    /// A new conversation, with its tab.
    ///
    /// # Errors
    /// The server refuses it.
    pub(crate) async fn open(self) -> Result<Conversation> {
        match self {
            Self::Limit(limit) => {
                let nobody = &Identity::Nobody;
                Conversation::open(limit.address, "/", nobody, Dialect::PassThrough).await
            }
            Self::Navi(navi) => {
                let session = navi.new_session().await?;
                navi.tab(&session).await
            }
        }
    }

    /// The processor time that it has used so far.
    ///
    /// # Errors
    /// It has ended.
    pub(crate) fn processor_time(self) -> Result<Duration> {
        match self {
            Self::Limit(limit) => limit.process.processor_time(),
            Self::Navi(navi) => navi.process.processor_time(),
        }
    }
}

/// An address of loopback that nobody listens on.
///
/// # Errors
/// There is none left.
pub(crate) fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
    Ok(listener.local_addr()?)
}

/// Waits for a server's first answer.
///
/// # Errors
/// It ends before that, or takes too long.
pub(crate) async fn answers(address: SocketAddr, process: &mut Process) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    while http::call(address, Call::get("/health", &Identity::Nobody))
        .await
        .is_err()
    {
        if let Some(status) = process.ended() {
            bail!("it ended at its start, {status}");
        }
        if Instant::now() > until {
            bail!("no answer from {address} within {PATIENCE:?}");
        }
        // A closed port tells nobody when it opens.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}
