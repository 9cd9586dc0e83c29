//! Going through directories, by handles: a directory that becomes a link while the walk is on
//! its way is not entered, and no link is followed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cap_fs_ext::{DirExt as _, FollowSymlinks};
use cap_std::fs::{Dir, File, FileType, Metadata};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::fault::fault;
use super::path::InnerPath;
use super::root::{Root, open_nonblocking, read_whole};
use crate::tools::ToolError;

/// As many entries as a walk looks at.
const MAX_ENTRIES: usize = 50_000;
/// As deep as a walk goes: each level holds an open directory.
const MAX_DEPTH: usize = 64;
/// As many bytes as a file of ignore rules has.
const MAX_RULES_BYTES: u64 = 64 * 1024;

/// Which entries a walk passes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rules {
    Everything,
    /// Leaves out `.git` and what `.gitignore` and `.ignore` files name. Files above the walk's
    /// start have no say: who asks for an ignored directory by its name means it.
    Ignored,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    Link,
    Special,
}

/// What a walk has come to.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    /// From the workspace's root.
    pub(super) path: &'a Path,
    pub(super) kind: Kind,
    directory: &'a Dir,
    name: &'a Path,
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Entries that the rules left out.
    pub(super) ignored: usize,
    /// Entries were left out because there are too many, or too deep ones.
    pub(super) incomplete: bool,
}

/// A walk to be made.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    root: &'a Root,
    rules: Rules,
    depth: usize,
}

struct State<V> {
    visit: V,
    /// Of the directories from the start down to where the walk is.
    rules: Vec<Gitignore>,
    seen: usize,
    outcome: Outcome,
}

impl Entry<'_> {
    /// In bytes; 0 where it cannot be told.
    pub(super) fn size(&self) -> u64 {
        self.metadata().map_or(0, |metadata| metadata.len())
    }

    /// Of the entry itself; none where it went.
    pub(super) fn metadata(&self) -> Option<Metadata> {
        self.directory.symlink_metadata(self.name).ok()
    }

    /// Where a link says that it leads.
    pub(super) fn link_target(&self) -> Option<PathBuf> {
        self.directory.read_link_contents(self.name).ok()
    }

    pub(super) fn open(&self) -> std::io::Result<File> {
        open_nonblocking(self.directory, self.name, FollowSymlinks::No)
    }
}

impl<'a> Walk<'a> {
    pub(super) fn new(root: &'a Root, rules: Rules) -> Self {
        Self {
            root,
            rules,
            depth: MAX_DEPTH,
        }
    }

    /// Stops at this many levels below the start.
    pub(super) fn depth(mut self, depth: usize) -> Self {
        self.depth = depth.clamp(1, MAX_DEPTH);
        self
    }

    /// Visits what lies under a directory: by name within each directory, and a directory
    /// before what it has.
    pub(super) fn run<V>(&self, start: &InnerPath, visit: V) -> Result<Outcome, ToolError>
    where
        V: FnMut(&Entry<'_>) -> Result<(), ToolError>,
    {
        let directory = self.root.open_directory(start)?;
        let mut state = State {
            visit,
            rules: Vec::new(),
            seen: 0,
            outcome: Outcome::default(),
        };
        self.enter(&directory, start.prefix(), 1, &mut state)?;
        Ok(state.outcome)
    }

    fn enter<V>(
        &self,
        directory: &Dir,
        path: &Path,
        depth: usize,
        state: &mut State<V>,
    ) -> Result<(), ToolError>
    where
        V: FnMut(&Entry<'_>) -> Result<(), ToolError>,
    {
        let names = self.names(directory, path, state)?;
        if self.rules == Rules::Ignored {
            state.rules.push(rules_of(directory, path));
        }
        for (name, file_type) in names {
            self.root.check_stop()?;
            let inner = path.join(&name);
            let kind = kind_of(file_type);
            if self.root.is_closed(directory, Path::new(&name)) {
                continue;
            }
            if self.rules == Rules::Ignored && is_ignored(&state.rules, &inner, kind) {
                state.outcome.ignored += 1;
                continue;
            }
            (state.visit)(&Entry {
                path: &inner,
                kind,
                directory,
                name: Path::new(&name),
            })?;
            if kind != Kind::Directory {
                continue;
            }
            if depth >= self.depth {
                state.outcome.incomplete |= self.depth == MAX_DEPTH;
                continue;
            }
            // Gone, forbidden or swapped for a link meanwhile: what cannot be entered has
            // nothing to show.
            if let Ok(next) = directory.open_dir_nofollow(&name) {
                self.enter(&next, &inner, depth + 1, state)?;
            }
        }
        if self.rules == Rules::Ignored {
            state.rules.pop();
        }
        Ok(())
    }

    fn names<V>(
        &self,
        directory: &Dir,
        path: &Path,
        state: &mut State<V>,
    ) -> Result<Vec<(OsString, FileType)>, ToolError> {
        let entries = directory
            .entries()
            .map_err(|error| fault(&path.display().to_string(), &error))?;
        let mut names = Vec::new();
        for entry in entries {
            if state.seen >= MAX_ENTRIES {
                state.outcome.incomplete = true;
                break;
            }
            state.seen += 1;
            if let Ok(entry) = entry
                && let Ok(file_type) = entry.file_type()
            {
                names.push((entry.file_name(), file_type));
            }
        }
        names.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(names)
    }
}

fn kind_of(file_type: FileType) -> Kind {
    if file_type.is_symlink() {
        Kind::Link
    } else if file_type.is_dir() {
        Kind::Directory
    } else if file_type.is_file() {
        Kind::File
    } else {
        Kind::Special
    }
}

/// The rules that lie in a directory. Rules that cannot be read are no rules.
fn rules_of(directory: &Dir, path: &Path) -> Gitignore {
    let mut builder = GitignoreBuilder::new(path);
    for name in [".gitignore", ".ignore"] {
        let Ok(file) = open_nonblocking(directory, Path::new(name), FollowSymlinks::No) else {
            continue;
        };
        let Ok(bytes) = read_whole(file, name, MAX_RULES_BYTES) else {
            continue;
        };
        for line in String::from_utf8_lossy(&bytes).lines() {
            // A line that is no glob is passed over, as git does.
            let _ = builder.add_line(None, line);
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

fn is_ignored(rules: &[Gitignore], path: &Path, kind: Kind) -> bool {
    if path.file_name().is_some_and(|name| name == ".git") {
        return true;
    }
    // The nearest file that says something decides.
    for rules in rules.iter().rev() {
        match rules.matched(path, kind == Kind::Directory) {
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
            Match::None => {}
        }
    }
    false
}
