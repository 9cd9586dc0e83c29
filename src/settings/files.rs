//! `FS_ALLOWED_PATHS`: what the filesystem tool may reach beside a session's own directory, and
//! what stays closed to it whatever that says.

use std::path::{Path, PathBuf};

use navi_actors::protocol::phrase::{Phrase, PhraseCode};
use navi_actors::tools::workspace::{FileAccess, WorkspaceLimits};

use super::read::{self, Reader};
use super::{keys, platform_data_dir, ssh, written};
use crate::whole_file;

/// What Navi keeps in the data directory under these names, whatever the settings say.
const KEPT: [&str; 6] = [
    "links",
    "models",
    "navi.lock",
    "server.json",
    "ssh",
    "tool_copies",
];

/// Reads what the tool may reach. `base` is the data directory.
pub(super) fn access(r: &mut Reader<'_>, base: &Path) -> Option<FileAccess> {
    let home = directories::BaseDirs::new().map(|dirs| dirs.home_dir().to_owned());
    let sessions_dir = r.optional(&keys::FILES_DIR, read::path_in(base))?;
    let closed = closed(r, base);
    // Where it is `*`, the whole machine is one directory.
    let allowed = match r.text(&keys::FS_ALLOWED) {
        None => Vec::new(),
        Some(text) if text == "*" => vec![PathBuf::from("/")],
        Some(_) => r.optional(&keys::FS_ALLOWED, |text| {
            directories(text, home.as_deref(), base, &closed)
        })?,
    };
    Some(FileAccess {
        allowed,
        closed,
        sessions_dir,
        home,
        workspace: workspace(r)?,
    })
}

/// What a workspace may hold, whoever fills it.
pub(super) fn workspace(r: &mut Reader<'_>) -> Option<WorkspaceLimits> {
    let megabytes = r.required(&keys::WORKSPACE_SIZE, read::number(1_u64..=16_777_216));
    let entries = r.required(&keys::WORKSPACE_FILES, read::number(10_u64..=100_000_000));
    Some(WorkspaceLimits {
        bytes: megabytes? << 20,
        entries: entries?,
    })
}

/// Navi's own places: what it keeps, what it is set up by, what it logs in with, and what it runs.
pub(super) fn closed(r: &mut Reader<'_>, base: &Path) -> Vec<PathBuf> {
    let own = [
        &keys::FILES_DIR,
        &keys::DB_PATH,
        &keys::PERSONA_FILE,
        &keys::PROFILES_DIR,
        &keys::TOOLS_DIR,
        &keys::SKILLS_DIR,
        &keys::MCP_CONFIG,
        &keys::SSH_HOSTS,
        &keys::SSH_KNOWN_HOSTS,
        &keys::SSH_MORE_KNOWN_HOSTS,
        &keys::TLS_KEY,
    ];
    let mut closed = vec![base.to_owned()];
    closed.extend(KEPT.map(|name| base.join(name)));
    closed.extend(
        own.into_iter()
            .filter_map(|key| r.optional(key, read::path_in(base))),
    );
    let servers = r.optional(&keys::MCP_CONFIG, read::path_in(base));
    closed.extend(servers.map(|file| whole_file::aside(&file)));
    if let Some(file) = r.file() {
        closed.extend(written::beside(&file));
        closed.push(file);
    }
    closed.extend(ssh::private_keys(r, base));
    // Those of other starts of Navi, with other settings.
    closed.extend(platform_data_dir());
    closed.extend(
        directories::ProjectDirs::from("", "", "navi").map(|dirs| dirs.config_dir().to_owned()),
    );
    closed.retain(|path| path.is_absolute());
    closed.dedup();
    closed
}

fn directories(
    text: &str,
    home: Option<&Path>,
    base: &Path,
    closed: &[PathBuf],
) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for name in text
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
    {
        if name == "*" {
            return Err("either * alone, or directories with commas between them".to_owned());
        }
        let path = match (name.strip_prefix('~'), home) {
            (Some(""), Some(home)) => home.to_owned(),
            (Some(rest), Some(home)) if rest.starts_with('/') => {
                home.join(rest.trim_start_matches('/'))
            }
            _ => PathBuf::from(name),
        };
        let plain = path.is_absolute()
            && path
                .components()
                .all(|part| part != std::path::Component::ParentDir);
        if !plain {
            return Err(format!(
                "absolute directories (or ~/…) with commas between them, and \"{name}\" is none"
            ));
        }
        // A folder of the user's in the data directory may be named; what Navi keeps there not.
        let is_own = |own: &&PathBuf| path.starts_with(own) && (*own != base || path == base);
        if let Some(own) = closed.iter().find(is_own) {
            return Err(format!(
                "directories that are not Navi's own, and \"{name}\" lies in {}",
                own.display()
            ));
        }
        if !found.contains(&path) {
            found.push(path);
        }
    }
    if found.is_empty() {
        return Err("directories with commas between them, or *".to_owned());
    }
    Ok(found)
}

/// What a person should know of it, one sentence each; the page shows them.
pub(super) fn warnings(access: &FileAccess) -> Vec<Phrase> {
    if access.is_everything() {
        return vec![PhraseCode::AllowedEveryFile.into()];
    }
    let missing = access.allowed.iter().filter(|path| !path.is_dir());
    missing
        .map(|directory| {
            let directory = [("directory", directory.display().to_string())];
            Phrase::new(PhraseCode::AllowedNoDirectory, directory)
        })
        .collect()
}
