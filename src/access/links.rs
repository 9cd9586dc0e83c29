//! One-time login links, as files in the data directory.
//!
//! Whoever can read that directory is the user already, so `navi link` may put a link there
//! while the server runs, and nothing has to be sent between the two. A file is named by
//! the secret's hash: reading the folder opens no door. Using a link renames its file, which
//! the file system lets one process do once.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use subtle::ConstantTimeEq as _;

use super::random;

/// How long a link can be used.
pub(crate) const LINK_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// The newest links that are kept, used ones among them.
const MAX_LINKS: usize = 64;
const USED: &str = "used";

/// The folder of links.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    dir: PathBuf,
}

/// What became of a link that was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redeemed {
    Accepted,
    AlreadyUsed,
    Expired,
    Unknown,
}

impl Links {
    pub(crate) fn new(data_dir: &Path) -> Self {
        Self {
            dir: data_dir.join("links"),
        }
    }

    /// Makes a link; gives back its secret.
    ///
    /// # Errors
    /// The data directory cannot be written to.
    pub(crate) fn issue(&self) -> io::Result<String> {
        make_private_dir(&self.dir)?;
        self.prune();
        let secret = random::fresh();
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(self.dir.join(name(&secret)))?;
        file.write_all(b"a one-time login link of Navi, named by the hash of its secret\n")?;
        Ok(secret)
    }

    /// Uses a link up.
    ///
    /// # Errors
    /// The folder cannot be read or changed.
    pub(crate) fn redeem(&self, secret: &str) -> io::Result<Redeemed> {
        let wanted = name(secret);
        let Some(path) = self.find(&wanted)? else {
            return Ok(Redeemed::Unknown);
        };
        if path.extension().is_some() {
            return Ok(Redeemed::AlreadyUsed);
        }
        if is_expired(&path) {
            return Ok(Redeemed::Expired);
        }
        match fs::rename(&path, path.with_extension(USED)) {
            Ok(()) => Ok(Redeemed::Accepted),
            // Another tab was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Redeemed::AlreadyUsed),
            Err(error) => Err(error),
        }
    }

    /// Makes a used link good again, for what let nobody in.
    ///
    /// # Errors
    /// The folder cannot be changed.
    pub(crate) fn give_back(&self, secret: &str) -> io::Result<()> {
        let path = self.dir.join(name(secret));
        fs::rename(path.with_extension(USED), path)
    }

    fn find(&self, wanted: &str) -> io::Result<Option<PathBuf>> {
        Ok(self.paths()?.into_iter().find(|path| {
            path.file_stem()
                .is_some_and(|stem| bool::from(stem.as_encoded_bytes().ct_eq(wanted.as_bytes())))
        }))
    }

    fn paths(&self) -> io::Result<Vec<PathBuf>> {
        match fs::read_dir(&self.dir) {
            Ok(entries) => Ok(entries
                .filter_map(|entry| entry.ok().map(|entry| entry.path()))
                .collect()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Drops the oldest links, those first that open nothing any more. Best effort: a folder that cannot be pruned fails at the write.
    fn prune(&self) {
        let mut paths: Vec<(SystemTime, PathBuf)> = self
            .paths()
            .unwrap_or_default()
            .into_iter()
            .filter_map(|path| {
                let modified = fs::metadata(&path).and_then(|metadata| metadata.modified());
                modified.ok().map(|modified| (modified, path))
            })
            .collect();
        let is_spent = |path: &Path| path.extension().is_some() || is_expired(path);
        paths.sort_by_key(|(modified, path)| (!is_spent(path), *modified));
        let surplus = (paths.len() + 1).saturating_sub(MAX_LINKS);
        for (_, path) in paths.into_iter().take(surplus) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Creates a directory that only its owner can enter, with its parents.
///
/// # Errors
/// Those of the file system.
pub(crate) fn make_private_dir(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

fn name(secret: &str) -> String {
    hex::encode(random::digest(secret))
}

/// A clock that was set back makes no link live longer than a new one would.
fn is_expired(path: &Path) -> bool {
    fs::metadata(path)
        .and_then(|metadata| metadata.modified())
        .ok()
        .and_then(|made| SystemTime::now().duration_since(made).ok())
        .is_some_and(|age| age > LINK_LIFETIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links() -> (tempfile::TempDir, Links) {
        let dir = tempfile::tempdir().unwrap();
        let links = Links::new(dir.path());
        (dir, links)
    }

    #[test]
    fn a_link_works_once() {
        let (_dir, links) = links();
        let secret = links.issue().unwrap();
        assert_eq!(links.redeem("0000").unwrap(), Redeemed::Unknown);
        assert_eq!(links.redeem(&secret).unwrap(), Redeemed::Accepted);
        assert_eq!(links.redeem(&secret).unwrap(), Redeemed::AlreadyUsed);
    }

    #[test]
    fn a_link_that_is_given_back_works_once_more() {
        let (_dir, links) = links();
        let secret = links.issue().unwrap();
        assert_eq!(links.redeem(&secret).unwrap(), Redeemed::Accepted);
        links.give_back(&secret).unwrap();
        assert_eq!(links.redeem(&secret).unwrap(), Redeemed::Accepted);
        assert_eq!(links.redeem(&secret).unwrap(), Redeemed::AlreadyUsed);
    }

    #[test]
    fn two_at_once_do_not_both_get_in() {
        let (_dir, links) = links();
        let secret = links.issue().unwrap();
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let (links, secret) = (links.clone(), secret.clone());
                std::thread::spawn(move || links.redeem(&secret).unwrap())
            })
            .collect();
        let accepted = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .filter(|redeemed| *redeemed == Redeemed::Accepted)
            .count();
        assert_eq!(accepted, 1);
    }

    #[test]
    fn an_old_link_has_expired() {
        let (_dir, links) = links();
        let secret = links.issue().unwrap();
        let file = fs::File::open(links.dir.join(name(&secret))).unwrap();
        let long_ago = SystemTime::now() - LINK_LIFETIME - Duration::from_secs(1);
        file.set_modified(long_ago).unwrap();
        assert_eq!(links.redeem(&secret).unwrap(), Redeemed::Expired);
    }

    #[test]
    fn the_folder_tells_no_secret_and_stays_small() {
        let (_dir, links) = links();
        let secret = links.issue().unwrap();
        for path in links.paths().unwrap() {
            assert!(!path.to_string_lossy().contains(&secret));
            assert!(!fs::read_to_string(path).unwrap().contains(&secret));
        }
        for _ in 0..2 * MAX_LINKS {
            links.issue().unwrap();
        }
        assert_eq!(links.paths().unwrap().len(), MAX_LINKS);
    }

    #[test]
    fn what_was_used_makes_room_first() {
        let (_dir, links) = links();
        let kept = links.issue().unwrap();
        for _ in 0..2 * MAX_LINKS {
            let secret = links.issue().unwrap();
            assert_eq!(links.redeem(&secret).unwrap(), Redeemed::Accepted);
        }
        assert_eq!(links.redeem(&kept).unwrap(), Redeemed::Accepted);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_look() {
        use std::os::unix::fs::PermissionsExt as _;
        let (_dir, links) = links();
        links.issue().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&links.dir), 0o700);
        assert_eq!(mode(&links.paths().unwrap()[0]), 0o600);
    }
}
