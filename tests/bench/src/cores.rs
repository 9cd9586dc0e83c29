//! Which processor does what: what is measured has one to itself.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

/// The calling thread, for the kernel.
const SELF: Pid = Pid::from_raw(0);

/// How long is computed to see what else runs.
const COMPUTED: Duration = Duration::from_millis(300);

/// How the processors are given out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cores {
    /// None where there is only one: nothing is pinned then.
    pinned: Option<Pinned>,
    /// How many this process may use.
    pub(crate) count: usize,
}

#[derive(Clone, Copy, Debug)]
struct Pinned {
    server: CpuSet,
    others: CpuSet,
}

impl Cores {
    /// Gives the first processor to the servers that are measured, and the others to this thread
    /// and all that it starts: the model server and the clients.
    ///
    /// # Errors
    /// The kernel does not say which processors there are, or refuses the choice.
    pub(crate) fn divide() -> Result<Self> {
        let all = sched_getaffinity(SELF).context("no list of processors")?;
        let usable: Vec<usize> = (0..CpuSet::count())
            .filter(|core| all.is_set(*core).unwrap_or(false))
            .collect();
        let count = usable.len();
        let [first, rest @ ..] = usable.as_slice() else {
            return Ok(Self {
                pinned: None,
                count,
            });
        };
        if rest.is_empty() {
            return Ok(Self {
                pinned: None,
                count,
            });
        }
        let pinned = Pinned {
            server: set_of(&[*first])?,
            others: set_of(rest)?,
        };
        sched_setaffinity(SELF, &pinned.others).context("processors cannot be divided")?;
        Ok(Self {
            pinned: Some(pinned),
            count,
        })
    }

    /// How many times its processor time a computation takes on the servers' processor: once where
    /// nothing else runs there, twice beside a busy loop.
    ///
    /// # Errors
    /// The kernel tells no times, or refuses the processor.
    pub(crate) fn stretch(&self) -> Result<f64> {
        let cores = *self;
        let computed = std::thread::spawn(move || {
            cores.move_to_server()?;
            let used = || clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from);
            let (begun, before) = (Instant::now(), used()?);
            while begun.elapsed() < COMPUTED {}
            let used = used()? - before;
            anyhow::Ok(begun.elapsed().as_secs_f64() / used.as_secs_f64())
        });
        computed
            .join()
            .map_err(|_| anyhow!("the thread that computes panicked"))?
    }

    pub(crate) fn are_divided(&self) -> bool {
        self.pinned.is_some()
    }

    /// Moves the calling thread, with all that it starts, to the servers' processor.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub(crate) fn move_to_server(&self) -> Result<()> {
        if let Some(pinned) = &self.pinned {
            sched_setaffinity(SELF, &pinned.server).context("a server cannot be pinned")?;
        }
        Ok(())
    }
}

/// How many processes want to run on this machine, on average over the last minute. None where the
/// kernel does not say it.
pub(crate) fn load() -> Option<f64> {
    let averages = std::fs::read_to_string("/proc/loadavg").ok()?;
    averages.split(' ').next()?.parse().ok()
}

fn set_of(cores: &[usize]) -> Result<CpuSet> {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(*core)
            .with_context(|| format!("processor {core}"))?;
    }
    Ok(set)
}
