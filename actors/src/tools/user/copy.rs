//! Copies of allowed tools, to run: of the very bytes whose hash was checked.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::folder::{self, Content};

/// Where copies are kept. What is in it is as trusted as the database beside it.
#[derive(Clone, Debug)]
pub struct Copies(PathBuf);

impl Copies {
    /// Copies in this folder, which is emptied: nothing of an earlier process is leaned on.
    /// Blocks.
    pub fn new(dir: PathBuf) -> Self {
        // It is made anew with the first copy; what cannot be removed is told then.
        let _ = fs::remove_dir_all(&dir);
        Self(dir)
    }

    /// The folder of a copy of `source` as it is now, where that has this hash. Blocks.
    pub(super) fn of(&self, source: &Path, sha256: &str) -> Result<PathBuf, String> {
        // Read at every call: a folder that was changed must not run as what it was.
        let content = folder::read(source)?;
        refuse_if!(
            content.sha256 != sha256,
            "its folder was changed since it was allowed"
        );
        let place = self.0.join(sha256);
        if place.is_dir() {
            return Ok(place);
        }
        let failed =
            |error: std::io::Error| format!("no copy could be made in Navi's folder: {error}");
        make_dir(&self.0).map_err(failed)?;
        let unfinished = self.0.join(format!("new-{}", Uuid::now_v7().simple()));
        write(&content, &unfinished).map_err(failed)?;
        match fs::rename(&unfinished, &place) {
            Ok(()) => Ok(place),
            // Another call was faster, with the same bytes.
            Err(_) if place.is_dir() => {
                let _ = fs::remove_dir_all(&unfinished);
                Ok(place)
            }
            Err(error) => Err(failed(error)),
        }
    }
}

fn write(content: &Content, dir: &Path) -> std::io::Result<()> {
    make_dir(dir)?;
    for (path, file) in &content.files {
        let path = dir.join(path);
        if let Some(parent) = path.parent() {
            make_dir(parent)?;
        }
        let mode = if file.is_executable { 0o555 } else { 0o444 };
        fs::write(&path, &file.bytes)?;
        fs::set_permissions(&path, Permissions::from_mode(mode))?;
    }
    Ok(())
}

fn make_dir(path: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(path)
}
