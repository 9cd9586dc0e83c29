//! From the path that the model gave to the directory that it is opened in: the workspace, or one
//! that `FS_ALLOWED_PATHS` adds to it.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use itertools::Itertools as _;
use tokio_util::sync::CancellationToken;

use super::WorkspaceLimits;
use super::path::{InnerPath, RootId, check_text};
use super::root::Root;
use crate::protocol::powers::{PowerKind, Powers};
use crate::tools::ToolResult;
use crate::tools::output::shown;

/// The settings of the filesystem tool. The default is the workspace and nothing else.
#[derive(Clone, Debug, Default)]
pub struct FileAccess {
    /// `FS_ALLOWED_PATHS`: directories that may be reached beside the workspace, absolute. `/`
    /// alone is every file that the service's account may use.
    pub allowed: Vec<PathBuf>,
    /// Files and directories that stay closed even where `*` lifts the fence: Navi's data, its
    /// settings, the tools' folder. Absolute; they need not exist.
    pub closed: Vec<PathBuf>,
    /// Each session's workspace is a directory in it.
    pub sessions_dir: PathBuf,
    /// What `~` stands for.
    pub home: Option<PathBuf>,
    pub workspace: WorkspaceLimits,
}

impl FileAccess {
    /// As much of it as somebody with these powers has.
    pub(crate) fn for_powers(self: &Arc<Self>, powers: &Powers) -> Arc<Self> {
        if self.allowed.is_empty() || powers.has(PowerKind::OutsideFiles) {
            return Arc::clone(self);
        }
        Arc::new(Self {
            allowed: Vec::new(),
            ..Self::clone(self)
        })
    }

    /// Whether every file of the machine is allowed.
    pub fn is_everything(&self) -> bool {
        self.allowed.iter().any(|it| it == Path::new("/"))
    }

    /// An absolute path as the model gives it, with `~` as the home directory; none where the
    /// path is relative, or where `~` means nothing here.
    fn absolute(&self, text: &str) -> Option<String> {
        if text.starts_with('/') {
            return Some(text.to_owned());
        }
        let rest = text.strip_prefix('~')?;
        if self.allowed.is_empty() || !(rest.is_empty() || rest.starts_with('/')) {
            return None;
        }
        Some(format!("{}{rest}", self.home.as_ref()?.display()))
    }

    /// Whether a path that a call names may lie beyond its workspace. A path into another
    /// session's is refused before anything is done, so it counts as inside.
    pub(crate) fn leads_outside(&self, text: &str) -> bool {
        !self.allowed.is_empty()
            && self.absolute(text).is_some_and(|path| {
                self.sessions_dir.as_os_str().is_empty()
                    || !Path::new(&path).starts_with(&self.sessions_dir)
                    || Path::new(&path)
                        .components()
                        .any(|part| part == Component::ParentDir)
            })
    }

    /// What may be used beside the workspace, in words; none where nothing may.
    pub(crate) fn words(&self) -> Option<String> {
        if self.is_everything() {
            return Some("any file of this machine".to_owned());
        }
        let directories = self.allowed.iter().map(|it| it.display()).join(", ");
        (!self.allowed.is_empty()).then_some(directories)
    }
}

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
    pub(crate) fn spot(&self, text: &str) -> ToolResult<Spot> {
        self.open(self.resolve(text)?)
    }

    /// The spot of a change, as it was stored: its path is checked again.
    pub(crate) fn stored(&self, path: &InnerPath) -> ToolResult<Spot> {
        let root = path.root().clone();
        self.open(InnerPath::under(root, &path.prefix().to_string_lossy())?)
    }

    pub(crate) fn open(&self, path: InnerPath) -> ToolResult<Spot> {
        let root = match path.root() {
            RootId::Workspace => Root::open(self, None)?,
            RootId::Outside(directory) if self.access.allowed.contains(directory) => {
                Root::open(self, Some(directory))?
            }
            RootId::Outside(directory) => {
                refuse!(
                    "`{}` is not among FS_ALLOWED_PATHS any more",
                    directory.display()
                );
            }
        };
        Ok(Spot { root, path })
    }

    fn resolve(&self, text: &str) -> ToolResult<InnerPath> {
        let Some(absolute) = self.access.absolute(text) else {
            return InnerPath::parse(text);
        };
        check_text(&absolute)?;
        // What other tools print is the workspace's own place on the disk.
        if let Some(rest) = rest_of(&absolute, &self.workspace) {
            return InnerPath::parse(rest);
        }
        if self.access.allowed.is_empty() {
            // Refused, with the hint that all absolute paths get.
            return InnerPath::parse(&absolute);
        }
        let directories = self.access.allowed.iter();
        let found = directories
            .filter_map(|directory| Some((directory, rest_of(&absolute, directory)?)))
            // The nearest one: it was named for what lies in it.
            .min_by_key(|(_, rest)| rest.len());
        let Some((directory, rest)) = found else {
            refuse!(
                "the path `{}` is outside of what may be used: the workspace, and {}",
                shown(text),
                self.access.words().unwrap_or_default()
            );
        };
        InnerPath::under(RootId::Outside(directory.clone()), rest)
    }
}

/// What follows a directory in an absolute path: a relative path, maybe empty. The directory's
/// own path counts, and the one with its links followed.
fn rest_of<'a>(absolute: &'a str, directory: &Path) -> Option<&'a str> {
    let rest = |spelt: PathBuf| {
        let rest = absolute.strip_prefix(spelt.to_str()?.trim_end_matches('/'))?;
        let is_inside = rest.is_empty() || rest.starts_with('/');
        is_inside.then(|| rest.trim_start_matches('/'))
    };
    rest(directory.to_owned()).or_else(|| rest(directory.canonicalize().ok()?))
}
