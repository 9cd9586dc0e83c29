//! What one commit costs at least where Navi's database is: a page appended to a file and synced.
//! Whatever answers only when something is durable waits for that, so it belongs to the limit.

use std::fs::File;
use std::io::{self, Write as _};
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow};

use super::ms;
use crate::cores::Cores;
use crate::report::Samples;
use crate::statistics::median;

const PAGE: [u8; 4096] = [7; 4096];
const TRIES: usize = 15;

/// The median of some on the servers' processor, in milliseconds.
///
/// # Errors
/// The temporary directory cannot be written to.
pub(super) fn commit_ms(cores: Cores) -> Result<f64> {
    let committer = std::thread::spawn(move || {
        cores.move_to_server()?;
        commits().context("no commit in the temporary directory")
    });
    let took = committer.join();
    Ok(median(&took.map_err(|_| anyhow!("a commit panicked"))??))
}

/// How long some took, in milliseconds each.
fn commits() -> io::Result<Vec<f64>> {
    let dir = tempfile::tempdir()?;
    let mut file = File::create(dir.path().join("log"))?;
    let mut took = Vec::with_capacity(TRIES);
    for _ in 0..TRIES {
        let begun = Instant::now();
        file.write_all(&PAGE)?;
        file.sync_data()?;
        took.push(ms(begun.elapsed()));
    }
    Ok(took)
}

/// The same samples, each of the pass-through with what a commit took in its round.
pub(super) fn with_commits(samples: &Samples, commits: &[f64]) -> Samples {
    let rounds = samples.limit.iter().zip(commits);
    Samples {
        limit: rounds
            .map(|(forwarded, commit)| forwarded + commit)
            .collect(),
        navi: samples.navi.clone(),
    }
}
