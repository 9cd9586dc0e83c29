//! What of the workspace an approval of a command holds: each file that the command names, or
//! that a program goes by which it names, with the hash of its content.
//!
//! A shell is not taken at its word here: every word of the command counts as a path, in the
//! directory of the command and in each one that the command names.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};

use super::run::Wanted;
use crate::tools::sandbox::Fence;
use crate::tools::trust::open_regular;

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

/// Each such file by its path from the workspace, with what its content comes to.
pub(super) fn files_of(wanted: &Wanted) -> BTreeMap<String, String> {
    let words = words_of(&wanted.command);
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
        if held.contains_key(&shown) {
            continue;
        }
        if let Some(content) = content_of(&path, &mut room) {
            held.insert(shown, content);
        }
    }
    held
}

/// The command's words, as a shell has them and as they stand between its signs.
fn words_of(command: &str) -> Vec<String> {
    let signs = |c: char| c.is_whitespace() || BETWEEN_WORDS.contains(c);
    let mut words = shlex::split(command).unwrap_or_default();
    words.extend(command.split(signs).map(str::to_owned));
    words.retain(|word| !word.is_empty() && !word.contains('\0'));
    words
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
