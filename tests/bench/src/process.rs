//! A server as a process, and what the kernel counts of it.

use std::fs;
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

use crate::cores::Cores;

/// How long a server that is asked to end may take.
const GOODBYE: Duration = Duration::from_secs(20);

/// A process that runs. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
}

/// What a process holds of the machine's memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    /// What of it is in memory, the program's own file too.
    pub(crate) resident: u64,
    /// What of that stands in no file: its data.
    pub(crate) anonymous: u64,
}

impl Process {
    /// Starts it on the servers' processor.
    ///
    /// # Errors
    /// The program is not there, or cannot be started.
    pub(crate) fn start(mut command: Command, cores: Cores) -> Result<Self> {
        // A child begins on the processors of the thread that starts it, and so do the threads
        // that it makes; moved afterwards, those that are there already would stay behind.
        let starter = std::thread::spawn(move || {
            cores.move_to_server()?;
            let program = command.get_program().to_owned();
            let child = command.spawn();
            child.with_context(|| format!("{} cannot be started", program.display()))
        });
        let child = starter
            .join()
            .map_err(|_| anyhow!("the thread that starts a server panicked"))??;
        Ok(Self { child })
    }

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.id().cast_signed())
    }

    /// The processor time of all its threads so far, of those that have ended too.
    ///
    /// # Errors
    /// It has ended.
    pub(crate) fn processor_time(&self) -> Result<Duration> {
        let clock = clock_getcpuclockid(self.pid()).context("no clock of the server")?;
        let time = clock_gettime(clock).context("the server's clock says nothing")?;
        Ok(time.into())
    }

    /// Its memory now.
    ///
    /// # Errors
    /// It has ended.
    pub(crate) fn memory(&self) -> Result<Memory> {
        let rollup = self.proc("smaps_rollup")?;
        let kilobytes = |name: &str| {
            number_after(&rollup, name).with_context(|| format!("smaps_rollup has no {name}"))
        };
        Ok(Memory {
            resident: kilobytes("Rss:")? * 1024,
            anonymous: kilobytes("Anonymous:")? * 1024,
        })
    }

    /// The bytes that it had written to disks so far. File systems in memory count nothing.
    ///
    /// # Errors
    /// It has ended.
    pub(crate) fn written(&self) -> Result<u64> {
        let counters = self.proc("io")?;
        number_after(&counters, "write_bytes:").context("io has no write_bytes")
    }

    fn proc(&self, file: &str) -> Result<String> {
        let path = format!("/proc/{}/{file}", self.pid());
        fs::read_to_string(&path).with_context(|| format!("{path} cannot be read"))
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Asks it to end, and waits until it has. One that takes too long is killed.
    pub(crate) async fn end(mut self) {
        let until = Instant::now() + GOODBYE;
        let _ = kill(self.pid(), Signal::SIGTERM);
        while self.ended().is_none() && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The number that follows a name in a text of the kernel.
fn number_after(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Lets this process and those that it starts have as many open files as the machine allows.
///
/// # Errors
/// The kernel refuses it.
pub(crate) fn raise_open_files() -> io::Result<()> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    Ok(())
}

/// How many files a process may have open.
///
/// # Errors
/// The kernel does not say it.
pub(crate) fn open_files() -> io::Result<usize> {
    let (most, _) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(usize::try_from(most).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::number_after;

    #[test]
    fn a_number_is_found_by_the_name_that_begins_its_line() {
        let text = "00400000-7fff r--p\nRss:               59392 kB\nPss_Anon:  1 kB\nAnonymous:  33792 kB\n";
        assert_eq!(number_after(text, "Rss:"), Some(59_392));
        assert_eq!(number_after(text, "Anonymous:"), Some(33_792));
        assert_eq!(number_after(text, "Swap:"), None);
        let text = "cancelled_write_bytes: 3\nwrite_bytes: 4096\n";
        assert_eq!(number_after(text, "write_bytes:"), Some(4096));
    }
}
