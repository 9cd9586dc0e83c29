//! What stands in `TOOLS_DIR`, read again whenever something may have changed.

use std::collections::BTreeMap;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::folder::{self, Listing};
use super::manifest::{FILES, Manifest};
use crate::tools::extension_folders::folders;
use crate::tools::output::shortened;

const MAX_MANIFEST: usize = 64 * 1024;
const SHOWN_BYTES: usize = 60;

/// A folder of `TOOLS_DIR`.
#[derive(Clone, Debug)]
pub struct ScannedTool {
    /// The folder's name, which a good tool has too.
    pub name: String,
    pub folder: PathBuf,
    /// Its manifest and the hash of everything in it, or what is wrong with it.
    pub found: Result<(Arc<Manifest>, String), String>,
    listing: Option<Listing>,
}

/// All of them, by name.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    pub tools: Vec<ScannedTool>,
    /// What is wrong with the folder of folders.
    pub problem: Option<String>,
}

/// Reads `TOOLS_DIR`. What did not change, as far as the file system tells, is not read again.
#[derive(Clone, Debug)]
pub struct Scanner {
    dir: PathBuf,
    before: BTreeMap<String, ScannedTool>,
}

impl Scanner {
    /// A scanner of a folder, which need not exist.
    pub fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            before: BTreeMap::new(),
        }
    }

    /// Reads everything as it is now. Blocks.
    pub fn scan(&mut self) -> Scan {
        // A link is told for what it is; files beside the folders are nobody's business.
        let is_folder = |entry: &DirEntry| Ok(!entry.file_type()?.is_file());
        let (names, problem) = match folders("TOOLS_DIR", &self.dir, is_folder) {
            Ok(found) => found,
            Err(problem) => {
                return Scan {
                    tools: self.before.values().cloned().collect(),
                    problem: Some(format!("{problem}; what was read from it before stays")),
                };
            }
        };
        let mut before = std::mem::take(&mut self.before);
        for name in names {
            let name = shortened(&name, SHOWN_BYTES);
            let tool = self.look(&name, before.remove(&name));
            self.before.insert(name, tool);
        }
        Scan {
            tools: self.before.values().cloned().collect(),
            problem,
        }
    }

    fn look(&self, name: &str, known: Option<ScannedTool>) -> ScannedTool {
        let folder = self.dir.join(name);
        let listing = folder::list(&folder);
        if let (Some(known), Ok(listing)) = (known, &listing)
            && known.listing.as_ref() == Some(listing)
        {
            return known;
        }
        let found = listing.as_ref().map_err(Clone::clone);
        ScannedTool {
            name: name.to_owned(),
            found: found.and_then(|listing| read(&folder, name, listing)),
            folder,
            listing: listing.ok(),
        }
    }
}

fn read(folder: &Path, name: &str, listing: &Listing) -> Result<(Arc<Manifest>, String), String> {
    let [toml, json] = FILES;
    let file = match FILES.map(|file| listing.contains_key(file)) {
        [true, false] => toml,
        [false, true] => json,
        [true, true] => refuse!("it has both {toml} and {json}; keep one"),
        [false, false] => refuse!("it has no manifest; add a {toml}"),
    };
    // Of what is read now, so that manifest and hash are of one state.
    let content = folder::read(folder)?;
    let of_file = |error: String| format!("{file}: {error}");
    let bytes = content.files.get(file).map(|file| file.bytes.as_slice());
    let bytes = bytes.unwrap_or_default();
    if bytes.len() > MAX_MANIFEST {
        return Err(of_file(format!("larger than {MAX_MANIFEST} bytes")));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| of_file(error.to_string()))?;
    let manifest = Manifest::parse(file, text, name).map_err(of_file)?;
    let wanted = &manifest.executable;
    match content.files.get(wanted) {
        None => Err(of_file(format!(
            "field `executable`: there is no file {wanted:?} in the folder (is it built?)"
        ))),
        Some(file) if !file.is_executable => {
            Err(format!("{wanted} cannot be executed; run chmod +x on it"))
        }
        Some(_) => Ok((Arc::new(manifest), content.sha256)),
    }
}
