//! Going through directories, by handles: a directory that becomes a link while the walk is on
//! its way is not entered, and no link is followed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, File, FileType, Metadata, ReadDir};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::fault::OrFault as _;
use super::path::InnerPath;
use super::root::{Root, open_nonblocking, read_whole};
use crate::tools::ToolResult;
use crate::tools::output::counted;

/// As many entries as a walk looks at.
const MAX_ENTRIES: usize = 50_000;
/// As deep as a walk goes: each level holds an open directory.
pub(crate) const MAX_DEPTH: usize = 64;
/// As many bytes as a file of ignore rules has.
const MAX_RULES_BYTES: u64 = 64 * 1024;

/// Which entries a walk passes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rules {
    Everything,
    /// Leaves out `.git` and what `.gitignore` and `.ignore` files name. Files above the walk's
    /// start have no say: who asks for an ignored directory by its name means it.
    Ignored,
}

/// What a walk has come to.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    /// From the root.
    pub(crate) path: &'a Path,
    pub(crate) file_type: FileType,
    directory: &'a Dir,
    name: &'a Path,
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Entries that the rules left out.
    ignored: usize,
    /// Entries were left out because there are too many, or too deep ones.
    pub(crate) incomplete: bool,
}

impl Outcome {
    /// For the end of a search's result.
    pub(crate) fn incomplete_note(&self) -> &'static str {
        if self.incomplete {
            "\n[not everything was searched: there is too much; give a path]"
        } else {
            ""
        }
    }

    /// For the end of the result of a search that found nothing.
    pub(crate) fn ignored_note(&self) -> String {
        if self.ignored == 0 {
            return String::new();
        }
        format!(
            "\n[{} left out, as .gitignore says; name a path to search there]",
            counted(self.ignored, "entry")
        )
    }
}

impl Entry<'_> {
    /// In bytes; 0 where it cannot be told.
    pub(crate) fn size(&self) -> u64 {
        self.metadata().map_or(0, |metadata| metadata.len())
    }

    /// Of the entry itself; none where it went.
    pub(crate) fn metadata(&self) -> Option<Metadata> {
        self.directory.symlink_metadata(self.name).ok()
    }

    /// Where a link says that it leads.
    pub(crate) fn link_target(&self) -> Option<PathBuf> {
        self.directory.read_link_contents(self.name).ok()
    }

    pub(crate) fn open(&self) -> std::io::Result<File> {
        open_nonblocking(self.directory, self.name)
    }
}

/// A walk under way.
struct Walk<'a> {
    root: &'a Root,
    rules: Rules,
    depth: usize,
    visit: &'a mut dyn FnMut(&Entry<'_>),
    /// Of the directories from the start down to where the walk is.
    ignored: Vec<Gitignore>,
    /// As many entries as it still looks at.
    room: usize,
    outcome: Outcome,
}

impl Root {
    /// Visits what lies under a directory, so many levels down: by name within each directory,
    /// and a directory before what it has.
    pub(crate) fn walk(
        &self,
        start: &InnerPath,
        rules: Rules,
        depth: usize,
        visit: impl FnMut(&Entry<'_>),
    ) -> ToolResult<Outcome> {
        self.walk_at_most(MAX_ENTRIES, start, rules, depth, visit)
    }

    /// The same for this many entries.
    pub(super) fn walk_at_most(
        &self,
        room: usize,
        start: &InnerPath,
        rules: Rules,
        depth: usize,
        mut visit: impl FnMut(&Entry<'_>),
    ) -> ToolResult<Outcome> {
        let directory = self.directory(start.prefix(), start)?;
        let directory = directory.ok_or_else(|| self.missing(start))?;
        let mut walk = Walk {
            root: self,
            rules,
            depth: depth.clamp(1, MAX_DEPTH),
            visit: &mut visit,
            ignored: Vec::new(),
            room,
            outcome: Outcome::default(),
        };
        let entries = directory.entries().or_fault(start)?;
        walk.enter(&directory, entries, start.prefix(), 1)?;
        Ok(walk.outcome)
    }
}

impl Walk<'_> {
    fn enter(
        &mut self,
        directory: &Dir,
        entries: ReadDir,
        path: &Path,
        depth: usize,
    ) -> ToolResult<()> {
        let names = self.names(entries);
        if self.rules == Rules::Ignored {
            self.ignored.push(rules_of(directory, path));
        }
        for (name, file_type) in names {
            self.root.check_stop()?;
            let inner = path.join(&name);
            let name = Path::new(&name);
            if self.root.is_closed(directory, name) {
                continue;
            }
            if self.rules == Rules::Ignored && self.is_ignored(&inner, file_type) {
                self.outcome.ignored += 1;
                continue;
            }
            (self.visit)(&Entry {
                path: &inner,
                file_type,
                directory,
                name,
            });
            if !file_type.is_dir() {
                continue;
            }
            if depth >= self.depth {
                self.outcome.incomplete |= self.depth == MAX_DEPTH;
                continue;
            }
            // Gone, forbidden or swapped for a link meanwhile: what cannot be entered has
            // nothing to show.
            if let Ok(next) = directory.open_dir_nofollow(name)
                && let Ok(entries) = next.entries()
            {
                self.enter(&next, entries, &inner, depth + 1)?;
            }
        }
        self.ignored.pop();
        Ok(())
    }

    fn names(&mut self, entries: ReadDir) -> Vec<(OsString, FileType)> {
        let mut names = Vec::new();
        for entry in entries {
            if self.room == 0 {
                self.outcome.incomplete = true;
                break;
            }
            self.room -= 1;
            if let Ok(entry) = entry
                && let Ok(file_type) = entry.file_type()
            {
                names.push((entry.file_name(), file_type));
            }
        }
        names.sort_by(|(a, _), (b, _)| a.cmp(b));
        names
    }

    fn is_ignored(&self, path: &Path, file_type: FileType) -> bool {
        if path.file_name().is_some_and(|name| name == ".git") {
            return true;
        }
        // The nearest file that says something decides.
        for rules in self.ignored.iter().rev() {
            match rules.matched(path, file_type.is_dir()) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

/// The rules that lie in a directory. Rules that cannot be read are no rules.
fn rules_of(directory: &Dir, path: &Path) -> Gitignore {
    let mut builder = GitignoreBuilder::new(path);
    for name in [".gitignore", ".ignore"] {
        let file = open_nonblocking(directory, Path::new(name)).or_fault(name);
        let bytes = file.and_then(|file| read_whole(file, name, MAX_RULES_BYTES));
        for line in String::from_utf8_lossy(&bytes.unwrap_or_default()).lines() {
            // A line that is no glob is passed over, as git does.
            let _ = builder.add_line(None, line);
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
