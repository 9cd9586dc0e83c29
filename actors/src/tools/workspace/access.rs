//! Which files a call may reach beside its session's workspace: `FS_ALLOWED_PATHS`, and what
//! stays closed whatever that says.

use std::path::{Path, PathBuf};

use itertools::Itertools as _;

use super::WorkspaceLimits;

/// The tool's settings. The default is the workspace and nothing else.
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
    /// Whether every file of the machine is allowed.
    pub fn is_everything(&self) -> bool {
        self.allowed.iter().any(|it| it == Path::new("/"))
    }

    /// An absolute path as the model gives it, with `~` as the home directory; none where the
    /// path is relative, or where `~` means nothing here.
    pub(super) fn absolute(&self, text: &str) -> Option<String> {
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
                        .any(|part| part == std::path::Component::ParentDir)
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
