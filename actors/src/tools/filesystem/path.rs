//! Paths as a model gives them.

use std::path::{Path, PathBuf};

use crate::tools::ToolError;
use crate::tools::output::{is_deceptive, shortened};

/// As many bytes as a path has.
const MAX_PATH_BYTES: usize = 1_024;
/// As many bytes as a name has, on every file system in use.
const MAX_NAME_BYTES: usize = 255;
/// As many names as a path has. Fewer levels than a walk goes down, so that every file counts
/// towards the workspace's limits.
const MAX_LEVELS: usize = 32;
/// As much of a wrong path as an error shows.
const SHOWN_BYTES: usize = 120;

/// A path inside of the workspace: relative, without `.`, `..` or empty components. That it
/// stays inside when links come into play is the work of the directory handle it is opened by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WorkspacePath {
    path: PathBuf,
    /// It ended with a slash, so that no file can be meant.
    names_directory: bool,
}

impl WorkspacePath {
    /// The workspace itself.
    pub(super) fn root() -> Self {
        Self {
            path: PathBuf::new(),
            names_directory: true,
        }
    }

    pub(super) fn parse(text: &str) -> Result<Self, ToolError> {
        let refuse = |reason: &str| {
            let shown = shortened(text, SHOWN_BYTES);
            Err(ToolError(format!("the path `{shown}` {reason}")))
        };
        if text.len() > MAX_PATH_BYTES {
            return refuse(&format!(
                "has {} bytes, and {MAX_PATH_BYTES} is the limit; use a shorter one",
                text.len()
            ));
        }
        if text.chars().any(is_deceptive) {
            return refuse("has control characters; use plain letters");
        }
        if let Some(relative) = text.strip_prefix('/') {
            let relative = relative.trim_start_matches('/');
            return refuse(&format!(
                "is absolute; paths are relative to the workspace, such as `{}`",
                if relative.is_empty() { "." } else { relative }
            ));
        }
        if text.contains('\\') {
            return refuse("has a backslash; put / between directories");
        }
        let mut path = PathBuf::new();
        for name in text.split('/') {
            match name {
                "" | "." => {}
                ".." => {
                    return refuse("has `..`; give the path from the workspace down");
                }
                "~" if path.as_os_str().is_empty() => {
                    return refuse("means a home directory; paths are relative to the workspace");
                }
                name if name.len() > MAX_NAME_BYTES => {
                    return refuse(&format!(
                        "has a name of {} bytes, and {MAX_NAME_BYTES} is the limit; use a shorter one",
                        name.len()
                    ));
                }
                name => path.push(name),
            }
        }
        if path.components().count() > MAX_LEVELS {
            return refuse(&format!(
                "goes through more than {MAX_LEVELS} directories; use fewer"
            ));
        }
        let names_directory =
            path.as_os_str().is_empty() || text.ends_with('/') || text.ends_with("/.");
        Ok(Self {
            path,
            names_directory,
        })
    }

    pub(super) fn is_root(&self) -> bool {
        self.path.as_os_str().is_empty()
    }

    pub(super) fn names_directory(&self) -> bool {
        self.names_directory
    }

    /// For a directory handle of the workspace's root: never empty.
    pub(super) fn as_path(&self) -> &Path {
        if self.is_root() {
            Path::new(".")
        } else {
            &self.path
        }
    }

    /// To join names to: empty for the root.
    pub(super) fn prefix(&self) -> &Path {
        &self.path
    }

    /// The path as a message shows it.
    pub(super) fn shown(&self) -> String {
        self.as_path().display().to_string()
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a test that cannot go on should say so by failing"
    )]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_paths_are_taken() {
        for (text, path, names_directory) in [
            (".", ".", true),
            ("./", ".", true),
            ("a", "a", false),
            ("./a//b/./c.md", "a/b/c.md", false),
            ("a/", "a", true),
            ("a/.", "a", true),
            ("…/звіт 1.md", "…/звіт 1.md", false),
            ("...", "...", false),
            ("a~/~", "a~/~", false),
        ] {
            let parsed = WorkspacePath::parse(text).unwrap();
            assert_eq!(parsed.as_path(), Path::new(path), "{text}");
            assert_eq!(parsed.names_directory(), names_directory, "{text}");
        }
    }

    #[test]
    fn other_paths_are_refused_with_a_hint() {
        let long_name = "x".repeat(256);
        let long_path = "x/".repeat(600);
        let deep_path = "x/".repeat(33);
        let errors: Vec<String> = [
            "..",
            "a/../b",
            "../etc/passwd",
            "/etc/passwd",
            "//a",
            "/",
            "~/notes",
            "..\\secret",
            "a\0b",
            "a\nb",
            "safe\u{202e}txt.exe",
            &long_name,
            &long_path,
            &deep_path,
        ]
        .into_iter()
        .map(|text| WorkspacePath::parse(text).unwrap_err().0)
        .collect();
        insta::assert_snapshot!(errors.join("\n"));
    }

    proptest! {
        #[test]
        fn a_parsed_path_has_only_names(text in "[a./~\\\\ \u{2024}\u{ff0f}\0-\u{20}]{0,20}") {
            if let Ok(parsed) = WorkspacePath::parse(&text) {
                let components: Vec<_> = parsed.prefix().components().collect();
                let all_names = components
                    .iter()
                    .all(|component| matches!(component, std::path::Component::Normal(_)));
                prop_assert!(all_names, "{:?}", components);
            }
        }
    }
}
