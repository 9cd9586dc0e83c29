//! From the path that the model gave to the directory that it is opened in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::File;
use tokio_util::sync::CancellationToken;

use super::WorkspaceLimits;
use super::access::{Allowed, FileAccess};
use super::path::{InnerPath, RootId, check_text};
use super::root::Root;
use crate::tools::ToolError;
use crate::tools::output::shown;

/// How much one call may do, and the workspace may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Of a file that is written or edited.
    pub(crate) write_bytes: u64,
    /// Of a file that is taken in whole.
    pub(crate) read_bytes: u64,
    /// Counted before a call that adds to it.
    pub(crate) workspace: WorkspaceLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            write_bytes: 4 << 20,
            read_bytes: 16 << 20,
            workspace: WorkspaceLimits::default(),
        }
    }
}

/// What one call may reach.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    pub(crate) access: Arc<FileAccess>,
    pub(crate) workspace: PathBuf,
    pub(crate) limits: Limits,
    pub(crate) stop: CancellationToken,
}

/// A path, and its root as this call has it open.
#[derive(Debug)]
pub(crate) struct Spot {
    pub(crate) root: Root,
    pub(crate) path: InnerPath,
}

impl Reach {
    /// As the settings say.
    pub(crate) fn new(access: &Arc<FileAccess>, workspace: &Path, stop: CancellationToken) -> Self {
        Self {
            access: Arc::clone(access),
            workspace: workspace.to_owned(),
            limits: Limits {
                workspace: access.workspace,
                ..Limits::default()
            },
            stop,
        }
    }

    /// The workspace and nothing beside it, for who has limits of their own.
    pub(crate) fn inside(workspace: &Path) -> Self {
        let access = FileAccess {
            workspace: WorkspaceLimits::NONE,
            ..FileAccess::default()
        };
        Self::new(&Arc::new(access), workspace, CancellationToken::new())
    }

    /// The spot that a path names.
    pub(crate) fn spot(&self, text: &str) -> Result<Spot, ToolError> {
        self.open(self.resolve(text)?)
    }

    /// The spot of a change, as it was stored.
    pub(crate) fn stored(&self, path: &InnerPath) -> Result<Spot, ToolError> {
        self.open(path.again()?)
    }

    pub(crate) fn open(&self, path: InnerPath) -> Result<Spot, ToolError> {
        let is_allowed = |directory: &Path| match &self.access.allowed {
            Allowed::Workspace => false,
            Allowed::Directories(directories) => directories.iter().any(|it| it == directory),
            Allowed::Everything => directory == Path::new("/"),
        };
        let root = match path.root() {
            RootId::Workspace => Root::workspace(self)?,
            RootId::Outside(directory) if is_allowed(directory) => Root::outside(self, directory)?,
            RootId::Outside(directory) => {
                refuse!(
                    "`{}` is not among FS_ALLOWED_PATHS any more",
                    directory.display()
                );
            }
        };
        Ok(Spot { root, path })
    }

    fn resolve(&self, text: &str) -> Result<InnerPath, ToolError> {
        let Some(absolute) = self.access.absolute(text) else {
            return InnerPath::parse(text);
        };
        check_text(&absolute)?;
        // What other tools print is the workspace's own place on the disk.
        for workspace in [
            Some(self.workspace.clone()),
            self.workspace.canonicalize().ok(),
        ] {
            let workspace = workspace.as_deref().and_then(Path::to_str);
            if let Some(rest) = workspace.and_then(|it| rest_of(&absolute, it)) {
                return InnerPath::parse(rest);
            }
        }
        let directories: &[PathBuf] = match &self.access.allowed {
            // Refused, with the hint that all absolute paths get.
            Allowed::Workspace => return InnerPath::parse(&absolute),
            Allowed::Everything => &[PathBuf::from("/")],
            Allowed::Directories(directories) => directories,
        };
        let found = directories
            .iter()
            .flat_map(|directory| {
                [
                    (directory, Ok(directory.clone())),
                    (directory, directory.canonicalize()),
                ]
            })
            .filter_map(|(directory, spelt)| {
                let spelt = spelt.ok()?;
                let rest = rest_of(&absolute, spelt.to_str()?)?;
                Some((spelt.as_os_str().len(), directory, rest))
            })
            // The nearest one: it was named for what lies in it.
            .max_by_key(|(length, ..)| *length);
        let Some((_, directory, rest)) = found else {
            refuse!(
                "the path `{}` is outside of what may be used: the workspace, and {}",
                shown(text),
                self.access.words().unwrap_or_default()
            );
        };
        InnerPath::under(RootId::Outside(directory.clone()), rest)
    }
}

/// A regular file of a session's workspace, open for reading, for tools that read one. No path
/// leads out of it by `..`, a link or another name of the same file.
pub(crate) fn open_in_workspace(workspace: &Path, path: &str) -> Result<File, ToolError> {
    let Spot { root, path } = Reach::inside(workspace).spot(path)?;
    root.open_file(&path)
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
