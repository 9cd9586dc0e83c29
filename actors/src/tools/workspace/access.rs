//! Which files a call may reach beside its session's workspace: `FS_ALLOWED_PATHS`, and what
//! stays closed whatever that says.

use std::path::{Path, PathBuf};

use itertools::Itertools as _;

use super::WorkspaceLimits;

/// The tool's settings. The default is the workspace and nothing else.
#[derive(Clone, Debug, Default)]
pub struct FileAccess {
    pub allowed: Allowed,
    /// Files and directories that stay closed even where `*` lifts the fence: Navi's data, its
    /// settings, the tools' folder. Absolute; they need not exist.
    pub closed: Vec<PathBuf>,
    /// Each session's workspace is a directory in it.
    pub sessions_dir: PathBuf,
    /// What `~` stands for.
    pub home: Option<PathBuf>,
    pub workspace: WorkspaceLimits,
}

/// `FS_ALLOWED_PATHS`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Allowed {
    /// The workspace alone.
    #[default]
    Workspace,
    /// These directories too. Absolute.
    Directories(Vec<PathBuf>),
    /// `*`: every file that the service's account may use.
    Everything,
}

impl FileAccess {
    /// An absolute path as the model gives it, with `~` as the home directory; none where the
    /// path is relative, or where `~` means nothing here.
    pub(super) fn absolute(&self, text: &str) -> Option<String> {
        if text.starts_with('/') {
            return Some(text.to_owned());
        }
        let rest = text.strip_prefix('~')?;
        if self.allowed == Allowed::Workspace || !(rest.is_empty() || rest.starts_with('/')) {
            return None;
        }
        Some(format!("{}{rest}", self.home.as_ref()?.display()))
    }

    /// Whether a path that a call names may lie beyond its workspace. A path into another
    /// session's is refused before anything is done, so it counts as inside.
    pub(crate) fn leads_outside(&self, text: &str) -> bool {
        self.allowed != Allowed::Workspace
            && self.absolute(text).is_some_and(|path| {
                self.sessions_dir.as_os_str().is_empty()
                    || !Path::new(&path).starts_with(&self.sessions_dir)
                    || Path::new(&path)
                        .components()
                        .any(|part| part == std::path::Component::ParentDir)
            })
    }

    /// What may be used beside the workspace, in words; none where nothing may.
    pub(crate) fn words(&self) -> Option<String> {
        match &self.allowed {
            Allowed::Workspace => None,
            Allowed::Directories(directories) => {
                Some(directories.iter().map(|it| it.display()).join(", "))
            }
            Allowed::Everything => Some("any file of this machine".to_owned()),
        }
    }
}
