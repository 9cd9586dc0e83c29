//! What stands in `TOOLS_DIR`, read again whenever something may have changed.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::folder::{self, Listing};
use super::manifest::{FILES, Manifest};
use crate::tools::output::shortened;

const MAX_TOOLS: usize = 64;
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
    #[must_use]
    pub fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            before: BTreeMap::new(),
        }
    }

    /// Reads everything as it is now. Blocks.
    pub fn scan(&mut self) -> Scan {
        let shown = self.dir.display();
        let names = match folders(&self.dir) {
            Ok(names) => names,
            Err(error) => {
                return Scan {
                    tools: self.before.values().cloned().collect(),
                    problem: Some(format!(
                        "TOOLS_DIR {shown}: {error}; what was read from it before stays"
                    )),
                };
            }
        };
        let problem = (names.len() > MAX_TOOLS).then(|| {
            format!(
                "TOOLS_DIR {shown}: it holds {} folders; those after the first {MAX_TOOLS} are left out",
                names.len()
            )
        });
        let mut before = std::mem::take(&mut self.before);
        for name in names.into_iter().take(MAX_TOOLS) {
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
        [true, true] => return Err(format!("it has both {toml} and {json}; keep one")),
        [false, false] => return Err(format!("it has no manifest; add a {toml}")),
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

/// The names of the folders, in order. Hidden ones are somebody else's.
fn folders(dir: &Path) -> std::io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // A link is told for what it is; files beside the folders are nobody's business.
        if !name.starts_with('.') && !entry.file_type()?.is_file() {
            names.push(shortened(&name, SHOWN_BYTES));
        }
    }
    names.sort();
    Ok(names)
}
