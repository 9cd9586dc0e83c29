//! `navi read-document TYPE`: the process in which one document is read.
//!
//! The service starts it without an environment, hands it the document on standard input and
//! ends it when it takes too long. It bounds itself before it reads a byte, and gives up
//! everything but its two streams: what it parses may have been made to fill all memory, or to
//! take its reader over.

use std::process::ExitCode;

use navi_actors::documents;
use rustix::process::{Resource, Rlimit, setrlimit};

/// Of memory that is written to, and of all that is mapped.
const DATA_BYTES: u64 = 1024 * 1024 * 1024;
const ADDRESS_BYTES: u64 = 8 * 1024 * 1024 * 1024;
const CPU_SECONDS: u64 = 40;
const OPEN_FILES: u64 = 32;

/// Reads one document.
pub(crate) fn run(media_type: &str) -> ExitCode {
    // A machine that is out of memory ends this before the service; one without this file cannot.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    if navi_actors::tools::sandbox::seal().is_err() {
        // A document is read confined or not at all, as a command runs.
        return ExitCode::FAILURE;
    }
    // What holds it is made before: the allocator may have asked for more than these already.
    for (resource, limit) in [
        (Resource::Data, DATA_BYTES),
        (Resource::As, ADDRESS_BYTES),
        (Resource::Cpu, CPU_SECONDS),
        (Resource::Nofile, OPEN_FILES),
        // It writes no file, and leaves none when it falls.
        (Resource::Fsize, 0),
        (Resource::Core, 0),
    ] {
        let limit = Rlimit {
            current: Some(limit),
            maximum: Some(limit),
        };
        // A limit that this system lacks; the service's own time limit still holds.
        let _ = setrlimit(resource, limit);
    }
    match documents::serve(media_type, std::io::stdin(), std::io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        // Nobody listens any more.
        Err(_) => ExitCode::FAILURE,
    }
}
