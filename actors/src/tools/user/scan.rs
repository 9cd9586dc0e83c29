//! What stands in `TOOLS_DIR`, read again whenever something may have changed.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::folder::{self, Listing};
use super::manifest::{FILES, Manifest};
use crate::tools::output::shortened;

const MAX_TOOLS: usize = 64;
const MAX_MANIFEST: u64 = 64 * 1024;
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
        let (names, problem) = match folders(&self.dir) {
            Ok(names) => (names, None),
            Err(error) => {
                let shown = self.dir.display();
                return Scan {
                    tools: self.before.values().cloned().collect(),
                    problem: Some(format!(
                        "TOOLS_DIR {shown}: {error}; what was read from it before stays"
                    )),
                };
            }
        };
        let too_many = (names.len() > MAX_TOOLS).then(|| {
            format!(
                "TOOLS_DIR {}: it holds {} folders; those after the first {MAX_TOOLS} are left out",
                self.dir.display(),
                names.len()
            )
        });
        let mut before = std::mem::take(&mut self.before);
        let tools: Vec<ScannedTool> = names
            .into_iter()
            .take(MAX_TOOLS)
            .map(|name| {
                let known = before.remove(&name);
                self.look(name, known)
            })
            .collect();
        self.before = tools
            .iter()
            .map(|tool| (tool.name.clone(), tool.clone()))
            .collect();
        Scan {
            tools,
            problem: problem.or(too_many),
        }
    }

    fn look(&self, name: String, known: Option<ScannedTool>) -> ScannedTool {
        let folder = self.dir.join(&name);
        let listing = folder::list(&folder);
        if let (Some(known), Ok(listing)) = (known, &listing)
            && known.listing.as_ref() == Some(listing)
        {
            return known;
        }
        let found = listing
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|listing| read(&folder, &name, listing));
        ScannedTool {
            name,
            folder,
            found,
            listing: listing.ok(),
        }
    }
}

fn read(folder: &Path, name: &str, listing: &Listing) -> Result<(Arc<Manifest>, String), String> {
    let has = |wanted: &str| listing.iter().any(|entry| entry.path == wanted);
    let file = match FILES.map(has) {
        [true, false] => FILES[0],
        [false, true] => FILES[1],
        [true, true] => {
            return Err(format!(
                "it has both {} and {}; keep one",
                FILES[0], FILES[1]
            ));
        }
        [false, false] => return Err(format!("it has no manifest; add a {}", FILES[0])),
    };
    // Of what is read now, so that manifest and hash are of one state.
    let content = folder::read(folder)?;
    let bytes = content
        .files
        .get(file)
        .map(|file| file.bytes.as_slice())
        .unwrap_or_default();
    let mut text = String::new();
    bytes
        .take(MAX_MANIFEST + 1)
        .read_to_string(&mut text)
        .map_err(|error| format!("{file}: {error}"))?;
    if text.len() as u64 > MAX_MANIFEST {
        return Err(format!("{file}: larger than {MAX_MANIFEST} bytes"));
    }
    let manifest =
        Manifest::parse(file, &text, name).map_err(|reason| format!("{file}: {reason}"))?;
    let wanted = manifest
        .executable
        .strip_prefix("./")
        .unwrap_or(&manifest.executable);
    match content.files.get(wanted) {
        None => Err(format!(
            "{file}: field `executable`: there is no file {wanted:?} in the folder (is it built?)"
        )),
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
