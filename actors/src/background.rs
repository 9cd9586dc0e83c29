//! Work on files that come in, on threads that stand behind those that answer people: where the
//! processor is short, who has sent in much waits for it, and nobody else does. What may take a
//! time and no longer, as a document's reading, is not done here: on a busy machine it would fail.

use std::io;
use std::sync::LazyLock;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// How far something stands behind: it has a tenth of its share. With less a command does not begin
/// within seconds where the processor is short.
const NICE: i32 = 10;

/// So much is done at once; what is beyond that waits.
const AT_ONCE: usize = 8;

/// How long a thread without work is kept.
const KEEP: Duration = Duration::from_secs(5);

/// Only its threads are of use: nothing is driven on it.
static THREADS: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    Builder::new_current_thread()
        .thread_name("background")
        .max_blocking_threads(AT_ONCE)
        .thread_keep_alive(KEEP)
        .on_thread_start(|| {
            // One that cannot works all the same.
            let _ = stand_behind();
        })
        .build()
});

/// Begins a piece of work that may block. It is done whether anybody waits for it or not.
fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    match &*THREADS {
        Ok(threads) => threads.spawn_blocking(work),
        Err(_) => tokio::task::spawn_blocking(work),
    }
}

/// The same for what may fail as files do, with its outcome.
pub(crate) async fn on_files<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    spawn(work).await.map_err(io::Error::other)?
}

/// From here on this thread stands behind the others of its session, and so does what it starts.
///
/// # Errors
/// What the system says.
pub(crate) fn stand_behind() -> io::Result<()> {
    // Elsewhere it would be the whole process that does.
    #[cfg(target_os = "linux")]
    if rustix::process::getpriority_process(None)? < NICE {
        rustix::process::setpriority_process(None, NICE)?;
    }
    Ok(())
}

/// The same for the session of a process, as a group beside the service's. Where the kernel shares
/// the processor between sessions (`autogroup`), how nice a process is counts only among those of
/// its own, and whoever begins one begins with a full share.
pub(crate) fn let_session_stand_behind(pid: i32) {
    let group = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/autogroup"));
    let pid = pid.to_string();
    // A session that is shared with us is nobody's to change.
    let own = group("self").unwrap_or_default();
    if group(&pid).is_ok_and(|group| group.ends_with(" nice 0\n") && group != own) {
        // Of who is not root the kernel takes one in a while.
        let _ = std::fs::write(format!("/proc/{pid}/autogroup"), NICE.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_stands_behind_and_what_goes_on_beside_it_does_not() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let before = nice();
        assert_eq!(spawn(nice).await.unwrap(), before.max(NICE));
        assert_eq!(nice(), before);
        let failed = on_files(|| std::fs::read("/nowhere/at/all")).await;
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
