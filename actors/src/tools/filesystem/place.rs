//! From the path that the model gave to the directory that it is opened in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::File;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::access::{Allowed, FileAccess};
use super::limits::Limits;
use super::path::{InnerPath, check_text};
use super::root::Root;
use crate::tools::ToolError;
use crate::tools::output::shortened;

/// As much of a wrong path as an error shows.
const SHOWN_BYTES: usize = 120;

/// A directory that paths are opened in, and cannot leave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RootId {
    Workspace,
    /// One of `FS_ALLOWED_PATHS`; `/` where that is `*`.
    Outside(PathBuf),
}

/// What one call may reach.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    pub(super) access: Arc<FileAccess>,
    pub(super) workspace: PathBuf,
    pub(super) limits: Limits,
    pub(super) stop: CancellationToken,
}

/// A path, and its root as this call has it open.
#[derive(Debug)]
pub(super) struct Spot {
    pub(super) root: Root,
    pub(super) path: InnerPath,
}

impl Reach {
    /// The spot that a path names.
    pub(super) fn spot(&self, text: &str) -> Result<Spot, ToolError> {
        let (id, path) = self.resolve(text)?;
        Ok(Spot {
            root: self.open(&id)?,
            path,
        })
    }

    /// The spot of a change, as it was stored.
    pub(super) fn stored(&self, id: &RootId, path: &Path) -> Result<Spot, ToolError> {
        let base = match id {
            RootId::Workspace => None,
            RootId::Outside(directory) => Some(directory.as_path()),
        };
        Ok(Spot {
            root: self.open(id)?,
            path: InnerPath::stored(base, path)?,
        })
    }

    fn open(&self, id: &RootId) -> Result<Root, ToolError> {
        match id {
            RootId::Workspace => Root::open(&self.workspace, self.limits, self.stop.clone()),
            RootId::Outside(directory) if self.allows(directory) => Root::outside(
                directory,
                &self.access.closed,
                self.limits,
                self.stop.clone(),
            ),
            RootId::Outside(directory) => Err(ToolError(format!(
                "`{}` is not among FS_ALLOWED_PATHS any more",
                directory.display()
            ))),
        }
    }

    fn allows(&self, directory: &Path) -> bool {
        match &self.access.allowed {
            Allowed::Workspace => false,
            Allowed::Directories(directories) => directories.iter().any(|it| it == directory),
            Allowed::Everything => directory == Path::new("/"),
        }
    }

    fn resolve(&self, text: &str) -> Result<(RootId, InnerPath), ToolError> {
        let Some(absolute) = self.access.absolute(text) else {
            return Ok((RootId::Workspace, InnerPath::parse(text)?));
        };
        check_text(&absolute)?;
        // What other tools print is the workspace's own place on the disk.
        for workspace in [
            Some(self.workspace.clone()),
            self.workspace.canonicalize().ok(),
        ] {
            let workspace = workspace.as_deref().and_then(Path::to_str);
            if let Some(rest) = workspace.and_then(|it| rest_of(&absolute, it)) {
                return Ok((RootId::Workspace, InnerPath::parse(rest)?));
            }
        }
        let directories: &[PathBuf] = match &self.access.allowed {
            // The hint is the one that all paths get.
            Allowed::Workspace => return Err(not_allowed(text, &absolute, None)),
            Allowed::Everything => &[PathBuf::from("/")],
            Allowed::Directories(directories) => directories,
        };
        let real = |directory: &PathBuf| directory.canonicalize().unwrap_or_default();
        let found = directories
            .iter()
            .flat_map(|directory| [(directory, directory.clone()), (directory, real(directory))])
            .filter_map(|(directory, spelt)| {
                let rest = rest_of(&absolute, spelt.to_str()?)?;
                Some((spelt.as_os_str().len(), directory, rest))
            })
            // The nearest one: it was named for what lies in it.
            .max_by_key(|(length, ..)| *length);
        match found {
            Some((_, directory, rest)) => Ok((
                RootId::Outside(directory.clone()),
                InnerPath::under(directory, rest)?,
            )),
            None => Err(not_allowed(text, &absolute, self.access.words())),
        }
    }
}

/// A regular file of a session's workspace, open for reading, for tools that read one. No path
/// leads out of it by `..`, a link or another name of the same file.
pub(in crate::tools) fn open_in_workspace(workspace: &Path, path: &str) -> Result<File, ToolError> {
    let root = Root::open(workspace, Limits::default(), CancellationToken::new())?;
    root.open_file(&InnerPath::parse(path)?)
}

/// What follows a directory in an absolute path: a relative path, maybe empty.
fn rest_of<'a>(absolute: &'a str, directory: &str) -> Option<&'a str> {
    let directory = directory.trim_end_matches('/');
    let rest = absolute.strip_prefix(directory)?;
    if directory.is_empty() && absolute.is_empty() {
        return None;
    }
    let inside = rest.is_empty() || rest.starts_with('/');
    inside.then(|| rest.trim_start_matches('/'))
}

fn not_allowed(text: &str, absolute: &str, beside: Option<String>) -> ToolError {
    match (InnerPath::parse(absolute), beside) {
        (Err(error), None) => error,
        (_, beside) => ToolError(format!(
            "the path `{}` is outside of what may be used: the workspace, and {}",
            shortened(text, SHOWN_BYTES),
            beside.unwrap_or_else(|| "nothing else".to_owned())
        )),
    }
}
