//! A command as a person is asked about it, and what of the workspace an approval of it holds: each
//! file that the command names, or that a program goes by which it names, with the hash of its
//! content.
//!
//! A shell is not taken at its word here: every word of the command counts as a path, in the
//! directory of the command and in each one that the command names.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use itertools::Itertools as _;
use rustix::fs::OFlags;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::run::Wanted;
use super::{NAME, Terminal};
use crate::protocol::approval::Detail;
use crate::protocol::phrase::{Label, Phrase, PhraseCode};
use crate::tools::output::shortened;
use crate::tools::sandbox::Fence;
use crate::tools::trust::open_regular;
use crate::tools::{Proposal, RuleSubject, ToolContext, ToolResult, blocking};

/// As many files as a person is told by name.
const NAMED_FILES: usize = 12;
/// As many bytes of content as are hashed. Of files beyond that, size and times are held.
const CONTENT_BYTES: u64 = 64 << 20;
/// As many directories as a command is looked at for.
const DIRECTORIES: usize = 8;

/// What means something to a shell, and stands between words that it is not one of.
const BETWEEN_WORDS: &str = ";&|()<>{}$`\"'=,:";

/// Programs that go by files which nobody names, and those files.
const GO_BY: [(&str, &str); 9] = [
    ("make gmake", "GNUmakefile makefile Makefile"),
    ("npm npx pnpm yarn bun", "package.json"),
    ("just", "justfile Justfile .justfile"),
    ("cargo", "Cargo.toml build.rs .cargo/config.toml"),
    ("cmake ctest", "CMakeLists.txt"),
    ("gradle gradlew", "build.gradle build.gradle.kts"),
    ("mvn", "pom.xml"),
    ("rake", "Rakefile"),
    (
        "pytest tox",
        "conftest.py pytest.ini tox.ini pyproject.toml",
    ),
];

impl Terminal {
    pub(super) async fn propose(&self, wanted: &Wanted) -> ToolResult<Proposal> {
        let for_files = wanted.clone();
        let files = blocking(NAME, move || Ok(files_of(&for_files))).await?;
        let directory = match wanted.told(&wanted.order.directory) {
            told if told.is_empty() => Detail::words(Label::Directory, PhraseCode::Workspace),
            told => Detail::text(Label::Directory, told),
        };
        let time = if wanted.background {
            PhraseCode::InBackground.into()
        } else {
            let seconds = wanted.time.as_secs().to_string();
            Phrase::new(PhraseCode::AtMost, [("seconds", seconds)])
        };
        let mut details = vec![
            Detail::code(Label::Command, &wanted.command),
            directory,
            Detail::words(Label::Time, time),
            Detail::words(Label::Held, held(&files)),
        ];
        let open = self.why_open();
        let job = self.sandbox.job(wanted.order.clone(), true);
        let is_held = open.is_none();
        details.extend(open);
        let command = |bytes| [("command", shortened(&wanted.command, bytes))];
        let rule = is_held.then(|| {
            RuleSubject::new(
                json!([wanted.command, wanted.order.directory, files]).to_string(),
                Phrase::new(PhraseCode::CommandExactly, command(120)),
            )
        });
        Ok(Proposal {
            summary: Phrase::new(PhraseCode::Run, command(200)),
            details,
            rule,
            // The command, its directory, its environment, and the content of each file that it
            // names.
            binding: json!({
                "command": wanted.command,
                "directory": wanted.order.directory,
                "environment": job.order.environment,
                "inside": is_held,
                "files": files,
            })
            .to_string(),
        })
    }

    /// An end of a background command.
    pub(super) fn propose_end(&self, id: u64, context: &ToolContext) -> ToolResult<Proposal> {
        let command = self
            .shells
            .of(context.session_id, id, |found| found.command.clone())?;
        Ok(Proposal {
            summary: Phrase::new(PhraseCode::EndCommand, [("id", id.to_string())]),
            details: vec![Detail::code(Label::Command, &command)],
            rule: Some(RuleSubject::new("end", PhraseCode::EndingCommands)),
            binding: command,
        })
    }

    /// Why a command is not held as it should be; none where it is.
    pub(super) fn why_open(&self) -> Option<Detail> {
        match (self.fence(), self.sandbox.available()) {
            (Fence::Lifted, _) => Some(Detail::words(Label::WhyItAsks, PhraseCode::FenceLifted)),
            (Fence::Inside, Err(reason)) => Some(Detail::words(Label::WhyItAsks, reason.clone())),
            (Fence::Inside, Ok(_)) => None,
        }
    }
}

/// What a person has to know of a command that reads more than they are shown.
fn held(files: &BTreeMap<String, String>) -> Phrase {
    let named = files.keys().take(NAMED_FILES).join(", ");
    match files.len() {
        0 => PhraseCode::HeldNone.into(),
        1..=NAMED_FILES => Phrase::new(PhraseCode::Held, [("files", named)]),
        all => {
            let more = (all - NAMED_FILES).to_string();
            Phrase::new(PhraseCode::HeldMore, [("files", named), ("more", more)])
        }
    }
}

/// Each file that a command holds by its path from the workspace, with what its content comes to.
fn files_of(wanted: &Wanted) -> BTreeMap<String, String> {
    // As a shell has them, and as they stand between its signs.
    let signs = |c: char| c.is_whitespace() || BETWEEN_WORDS.contains(c);
    let mut words = shlex::split(&wanted.command).unwrap_or_default();
    words.extend(wanted.command.split(signs).map(str::to_owned));
    words.retain(|word| !word.is_empty() && !word.contains('\0'));
    let mut directories = vec![wanted.order.directory.clone()];
    for word in &words {
        for at in 0..directories.len() {
            if let Ok(found) = directories[at].join(word).canonicalize()
                && found.is_dir()
                && directories.len() < DIRECTORIES
                && !directories.contains(&found)
            {
                directories.push(found);
            }
        }
    }
    let mut names: BTreeSet<&str> = words.iter().map(String::as_str).collect();
    for name in unnamed(&words) {
        names.insert(name);
    }
    let mut room = CONTENT_BYTES;
    let mut held = BTreeMap::new();
    let places = directories
        .iter()
        .flat_map(|directory| names.iter().map(|name| directory.join(name)));
    for path in places.filter_map(|place| place.canonicalize().ok()) {
        let shown = match path.strip_prefix(&wanted.order.workspace) {
            Ok(inside) => inside.display().to_string(),
            Err(_) if wanted.order.fence == Fence::Lifted => path.display().to_string(),
            Err(_) => continue,
        };
        if !held.contains_key(&shown)
            && let Some(content) = content_of(&path, &mut room)
        {
            held.insert(shown, content);
        }
    }
    held
}

/// The files that the programs among these words go by.
fn unnamed(words: &[String]) -> impl Iterator<Item = &'static str> {
    let programs = words.iter().filter_map(|word| Path::new(word).file_name());
    let programs: BTreeSet<&OsStr> = programs.collect();
    let known = GO_BY.into_iter().filter(move |(names, _)| {
        let mut names = names.split(' ').map(OsStr::new);
        names.any(|name| programs.contains(name))
    });
    known.flat_map(|(_, files)| files.split(' '))
}

/// None where it is no regular file, or cannot be read.
fn content_of(path: &Path, room: &mut u64) -> Option<String> {
    let (file, metadata) = open_regular(path, OFlags::empty()).ok()?;
    if metadata.len() > *room {
        return Some(format!(
            "{} bytes, {} {}, {} {}",
            metadata.len(),
            metadata.mtime(),
            metadata.mtime_nsec(),
            metadata.ctime(),
            metadata.ctime_nsec()
        ));
    }
    *room -= metadata.len();
    let mut content = Vec::new();
    file.take(metadata.len()).read_to_end(&mut content).ok()?;
    Some(hex::encode(Sha256::digest(&content)))
}
