//! What is said of a path that does not exist: what is near it.

use std::path::Path;

use super::path::InnerPath;
use super::root::Root;
use crate::tools::ToolError;
use crate::tools::arguments::nearest;
use crate::tools::output::visible;

/// As many names of a directory as an error for a missing file shows.
const SUGGESTED_NAMES: usize = 10;
/// As many names of a directory as an error for a missing file looks at.
const COMPARED_NAMES: usize = 1_000;

impl Root {
    /// The error for a path that does not exist, with what is near it.
    pub(super) fn missing(&self, path: &InnerPath) -> ToolError {
        let mut directory = Path::new("").to_owned();
        let mut absent = None;
        for name in path.prefix() {
            let next = directory.join(name);
            // A link that leads nowhere is there, and yet is not.
            if self.dir.metadata(self.real(&next)).is_err() {
                absent = Some(name.to_string_lossy().into_owned());
                break;
            }
            directory = next;
        }
        let shown = path.shown();
        let mut text = format!("`{shown}` does not exist");
        let Some(absent) = absent else {
            return ToolError(text);
        };
        let names = self.names(&directory);
        let place = if directory.as_os_str().is_empty() {
            self.words()
        } else {
            format!("`{}`", self.shown(&directory))
        };
        if let Some(near) = nearest(&absent, names.iter().map(String::as_str)) {
            let near = directory.join(near);
            text.push_str(&format!(
                "; did you mean `{}`?",
                visible(&self.shown(&near))
            ));
        } else if names.is_empty() {
            text.push_str(&format!("; {place} is empty"));
        } else {
            let more = if names.len() > SUGGESTED_NAMES {
                ", …"
            } else {
                ""
            };
            let first: Vec<String> = names
                .iter()
                .take(SUGGESTED_NAMES)
                .map(|name| visible(name))
                .collect();
            text.push_str(&format!("; {place} has {}{more}", first.join(", ")));
        }
        ToolError(text)
    }

    fn names(&self, directory: &Path) -> Vec<String> {
        let path = if directory.as_os_str().is_empty() {
            Path::new(".")
        } else {
            directory
        };
        let Ok(directory) = self.dir.open_dir(self.real(path)) else {
            return Vec::new();
        };
        if self.check_directory("", &directory).is_err() {
            return Vec::new();
        }
        let Ok(entries) = directory.entries() else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .take(COMPARED_NAMES)
            .filter_map(Result::ok)
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}
