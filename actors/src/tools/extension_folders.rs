//! The folder of user tools, and that of skills: each holds a folder for every one.

use std::fs::DirEntry;
use std::io;
use std::path::Path;

use super::workspace::if_there;

/// As many as are looked at.
const MAX_FOLDERS: usize = 64;

/// The names of the folders in `dir`, which need not exist, in order, and what is wrong where
/// some are left out. Hidden ones are somebody else's. `setting` names `dir` to its owner,
/// where it cannot be read.
pub(super) fn folders(
    setting: &str,
    dir: &Path,
    is_folder: impl Fn(&DirEntry) -> io::Result<bool>,
) -> Result<(Vec<String>, Option<String>), String> {
    let setting = format!("{setting} {}", dir.display());
    let read = || -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in if_there(std::fs::read_dir(dir))?.into_iter().flatten() {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.starts_with('.') && is_folder(&entry)? {
                names.push(name);
            }
        }
        Ok(names)
    };
    let mut names = read().map_err(|error| format!("{setting}: {error}"))?;
    names.sort();
    let too_many = (names.len() > MAX_FOLDERS).then(|| {
        format!(
            "{setting}: it holds {} folders; those after the first {MAX_FOLDERS} are left out",
            names.len()
        )
    });
    names.truncate(MAX_FOLDERS);
    Ok((names, too_many))
}
