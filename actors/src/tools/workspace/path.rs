//! Paths as a model gives them.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::fault::{ends_with_slash, is_directory};
use crate::domain::unseen::is_moving;
use crate::tools::ToolResult;
use crate::tools::output::shown;

/// As many bytes as a path has.
const MAX_PATH_BYTES: usize = 1_024;
/// As many bytes as a name has, on every file system in use.
const MAX_NAME_BYTES: usize = 255;
/// As many names as a path has. Fewer levels than a walk goes down, so that every file counts
/// towards the workspace's limits.
const MAX_LEVELS: usize = 32;

/// A directory that paths are opened in, and cannot leave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RootId {
    Workspace,
    /// One of `FS_ALLOWED_PATHS`; `/` where that is `*`.
    Outside(PathBuf),
}

/// A path inside of a root: relative, without `.`, `..` or empty components. That it stays
/// inside when links come into play is the work of the directory handle it is opened by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InnerPath {
    root: RootId,
    path: PathBuf,
    /// It ended with a slash, so that no file can be meant.
    #[serde(skip)]
    names_directory: bool,
}

impl InnerPath {
    /// The workspace itself.
    pub(super) fn workspace() -> Self {
        Self {
            root: RootId::Workspace,
            path: PathBuf::new(),
            names_directory: true,
        }
    }

    /// A path in the workspace, as the model gives it.
    pub(crate) fn parse(text: &str) -> ToolResult<Self> {
        check_text(text)?;
        let shown = shown(text);
        if let Some(relative) = text.strip_prefix('/') {
            let relative = relative.trim_start_matches('/');
            let example = if relative.is_empty() { "." } else { relative };
            refuse!(
                "the path `{shown}` is absolute; paths are relative to the workspace, such as `{example}`"
            );
        }
        refuse_if!(
            text.split('/').find(|name| !matches!(*name, "" | ".")) == Some("~"),
            "the path `{shown}` means a home directory; paths are relative to the workspace"
        );
        Self::under(RootId::Workspace, text)
    }

    /// The path of a file in the workspace, for who opens it later.
    pub(crate) fn file(text: &str) -> ToolResult<Self> {
        let path = Self::parse(text)?;
        if path.is_root() {
            return Err(is_directory(&path));
        }
        if path.names_directory {
            return Err(ends_with_slash(&path));
        }
        Ok(path)
    }

    /// A path in a root, from there on.
    pub(super) fn under(root: RootId, text: &str) -> ToolResult<Self> {
        check_text(text)?;
        let shown = shown(text);
        let mut path = PathBuf::new();
        for name in text.split('/').filter(|name| !matches!(*name, "" | ".")) {
            refuse_if!(
                name == "..",
                "the path `{shown}` has `..`; give the path from the workspace down"
            );
            refuse_if!(
                name.len() > MAX_NAME_BYTES,
                "the path `{shown}` has a name of {} bytes, and {MAX_NAME_BYTES} is the limit; use a shorter one",
                name.len()
            );
            path.push(name);
        }
        refuse_if!(
            path.components().count() > MAX_LEVELS,
            "the path `{shown}` goes through more than {MAX_LEVELS} directories; use fewer"
        );
        let names_directory =
            path.as_os_str().is_empty() || text.ends_with('/') || text.ends_with("/.");
        Ok(Self {
            root,
            path,
            names_directory,
        })
    }

    /// Another path of the same root, made of names that come from the disk.
    pub(crate) fn at(&self, path: &Path) -> Self {
        Self {
            root: self.root.clone(),
            path: path.to_owned(),
            names_directory: path.as_os_str().is_empty(),
        }
    }

    pub(crate) fn root(&self) -> &RootId {
        &self.root
    }

    pub(crate) fn in_workspace(&self) -> bool {
        self.root == RootId::Workspace
    }

    pub(crate) fn is_root(&self) -> bool {
        self.path.as_os_str().is_empty()
    }

    pub(crate) fn names_directory(&self) -> bool {
        self.names_directory
    }

    /// For a directory handle of the root: never empty.
    pub(super) fn as_path(&self) -> &Path {
        if self.is_root() {
            Path::new(".")
        } else {
            &self.path
        }
    }

    /// To join names to: empty for the root.
    pub(crate) fn prefix(&self) -> &Path {
        &self.path
    }

    /// The last name in it.
    pub(crate) fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// How a message shows a path of the same root.
    pub(crate) fn shown_as(&self, path: &Path) -> String {
        self.at(path).to_string()
    }

    /// What a sentence calls the directory that it names.
    pub(crate) fn place(&self) -> String {
        if self.is_root() && self.in_workspace() {
            "the workspace".to_owned()
        } else {
            format!("`{self}`")
        }
    }
}

/// As a message shows it.
impl fmt::Display for InnerPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.root {
            RootId::Workspace => self.as_path().display().fmt(f),
            RootId::Outside(root) if self.is_root() => root.display().fmt(f),
            RootId::Outside(root) => root.join(&self.path).display().fmt(f),
        }
    }
}

/// Refuses what no path may have, wherever it leads.
pub(super) fn check_text(text: &str) -> ToolResult<()> {
    let shown = shown(text);
    refuse_if!(
        text.len() > MAX_PATH_BYTES,
        "the path `{shown}` has {} bytes, and {MAX_PATH_BYTES} is the limit; use a shorter one",
        text.len()
    );
    refuse_if!(
        text.chars().any(is_moving),
        "the path `{shown}` has control characters; use plain letters"
    );
    refuse_if!(
        text.contains('\\'),
        "the path `{shown}` has a backslash; put / between directories"
    );
    Ok(())
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
