//! Profiles and the persona: the built-in ones, and those of the user's files, which may
//! change at any time (SPEC section 10).
//!
//! A file that is wrong is refused whole, with the field and the reason, and never stops the
//! service: it becomes a warning. What stays in force is the version of that file that was
//! good last; without one, the built-in profile of the same id.

pub(crate) mod edit;
mod file;
#[cfg(test)]
mod profiles_tests;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use navi_actors::profiles::ProfileSet;
use navi_actors::protocol::phrase::{Phrase, PhraseCode};
use navi_actors::protocol::profile::Profile;
use navi_actors::tools::registry::comes_and_goes;
use navi_actors::tools::skills;
use rust_embed::RustEmbed;

pub(crate) use self::watch::watch;
use crate::settings::{Persona, Settings};

/// Larger than any sensible prompt; keeps a wrong file from being read into memory.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// How many files of the folder are read.
const MAX_FILES: usize = 100;

const BUILT_IN_PERSONA: &str = include_str!("../config/persona.txt");

#[derive(RustEmbed)]
#[folder = "config/profiles"]
struct BuiltIn;

/// Where profiles and the persona come from, and what was good when it was last read.
#[derive(Clone, Debug)]
pub struct ProfileFiles {
    /// It need not exist.
    dir: PathBuf,
    persona: Persona,
    known_tools: BTreeSet<String>,
    /// The user's own tools are folders in it, of their names.
    tools_dir: PathBuf,
    /// The folder's profiles by their files.
    good: BTreeMap<PathBuf, Profile>,
    good_persona: Option<String>,
}

impl ProfileFiles {
    pub fn new(settings: &Settings, known_tools: BTreeSet<String>) -> Self {
        Self {
            dir: settings.profiles_dir.clone(),
            persona: settings.persona.clone(),
            known_tools,
            tools_dir: settings.extensions.tools_dir.clone(),
            good: BTreeMap::new(),
            good_persona: None,
        }
    }

    /// Reads everything as it is now. Blocks.
    pub fn read(&mut self) -> ProfileSet {
        let mut warnings = Vec::new();
        let mut profiles = built_in(&mut warnings);
        self.read_folder(&mut warnings);
        for profile in self.good.values() {
            profiles.insert(profile.id.clone(), profile.clone());
        }
        warnings.extend(
            profiles
                .values()
                .filter_map(|profile| self.unknown_tools(profile)),
        );
        ProfileSet {
            profiles: profiles.into_values().collect(),
            persona: self.read_persona(&mut warnings),
            warnings,
        }
    }

    /// What has to be watched: the folder, and the persona's file where there is one.
    fn places(&self) -> Vec<PathBuf> {
        let persona = match &self.persona {
            Persona::File(path) => Some(path),
            Persona::BuiltIn | Persona::Inline(_) => None,
        };
        [Some(&self.dir), persona]
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    fn read_folder(&mut self, warnings: &mut Vec<Phrase>) {
        let mut paths = match toml_files(&self.dir) {
            Ok(paths) => paths,
            Err(error) => {
                let params = [
                    ("path", self.dir.display().to_string()),
                    ("error", error.to_string()),
                ];
                warnings.push(Phrase::new(PhraseCode::ProfilesUnread, params));
                return;
            }
        };
        if paths.len() > MAX_FILES {
            let params = [
                ("path", self.dir.display().to_string()),
                ("n", paths.len().to_string()),
                ("most", MAX_FILES.to_string()),
            ];
            warnings.push(Phrase::new(PhraseCode::TooManyProfiles, params));
            paths.truncate(MAX_FILES);
        }
        let before = std::mem::take(&mut self.good);
        let mut found: Vec<_> = paths
            .into_iter()
            .map(|path| {
                let parsed = read_text(&path).and_then(|text| file::parse(&text));
                (path, parsed)
            })
            .collect();
        // Files that have their id already keep it against a newcomer; then by name.
        found.sort_by_key(|(path, parsed)| match (before.get(path), parsed) {
            (Some(before), Ok(now)) => before.id != now.id,
            (Some(_), Err(_)) => false,
            (None, _) => true,
        });
        for (path, parsed) in found {
            let taken = parsed.and_then(|profile| match self.holder(&profile.id) {
                Some(other) => Err(format!(
                    "field `id`: {} has \"{}\" already",
                    other.display(),
                    profile.id
                )),
                None => Ok(profile),
            });
            let profile = taken.or_else(|reason| {
                let last = before.get(&path);
                let last = last.filter(|last| self.holder(&last.id).is_none());
                let code = match last {
                    Some(_) => PhraseCode::ProfileStays,
                    None => PhraseCode::ProfileRefused,
                };
                let params = [("path", path.display().to_string()), ("reason", reason)];
                warnings.push(Phrase::new(code, params));
                last.cloned().ok_or(())
            });
            if let Ok(profile) = profile {
                self.good.insert(path, profile);
            }
        }
    }

    /// The file that has this id.
    fn holder(&self, id: &str) -> Option<&Path> {
        let mut files = self.good.iter();
        files
            .find(|(_, profile)| profile.id == id)
            .map(|(path, _)| path.as_path())
    }

    /// Whether there is a tool of this name, or may be one while Navi runs.
    fn knows(&self, tool: &str) -> bool {
        self.known_tools.contains(tool)
            || comes_and_goes(tool)
            || tool == skills::NAME
            || self.tools_dir.join(tool).is_dir()
    }

    fn unknown_tools(&self, profile: &Profile) -> Option<Phrase> {
        let named: BTreeSet<&String> = profile
            .enabled_tools
            .iter()
            .chain(&profile.subagent_tools)
            .filter(|tool| !self.knows(tool))
            .collect();
        let names: Vec<String> = named.iter().map(|tool| format!("`{tool}`")).collect();
        let (code, what) = match names.len() {
            0 => return None,
            1 => (PhraseCode::NoSuchTool, "tool"),
            _ => (PhraseCode::NoSuchTools, "tools"),
        };
        let params = [("profile", profile.id.clone()), (what, names.join(", "))];
        Some(Phrase::new(code, params))
    }

    /// The persona's text. One that cannot be used leaves the one that was good last; a file
    /// that is gone, the built-in one.
    fn read_persona(&mut self, warnings: &mut Vec<Phrase>) -> String {
        let path = match &self.persona {
            Persona::BuiltIn => return built_in_persona(),
            Persona::Inline(text) => return text.trim().to_owned(),
            Persona::File(path) => path,
        };
        let found = read_text(path).and_then(|text| match text.trim() {
            "" => Err("it is empty".to_owned()),
            text => Ok(text.to_owned()),
        });
        match found {
            Ok(text) => self.good_persona = Some(text),
            Err(reason) => {
                if matches!(path.try_exists(), Ok(false)) {
                    self.good_persona = None;
                }
                let code = match self.good_persona {
                    Some(_) => PhraseCode::PersonaStays,
                    None => PhraseCode::PersonaBuiltIn,
                };
                let params = [("path", path.display().to_string()), ("reason", reason)];
                warnings.push(Phrase::new(code, params));
            }
        }
        self.good_persona.clone().unwrap_or_else(built_in_persona)
    }
}

fn built_in_persona() -> String {
    BUILT_IN_PERSONA.trim().to_owned()
}

fn built_in(warnings: &mut Vec<Phrase>) -> BTreeMap<String, Profile> {
    let mut profiles = BTreeMap::new();
    for name in BuiltIn::iter() {
        let Some(found) = BuiltIn::get(&name) else {
            continue;
        };
        match file::parse(&String::from_utf8_lossy(&found.data)) {
            Ok(profile) => {
                profiles.insert(profile.id.clone(), profile);
            }
            Err(reason) => {
                let params = [("path", name.to_string()), ("reason", reason)];
                warnings.push(Phrase::new(PhraseCode::ProfileRefused, params));
            }
        }
    }
    profiles
}

/// The profiles' files in name's order. Hidden ones are editors' own.
fn toml_files(dir: &Path) -> Result<Vec<PathBuf>, std::io::Error> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let hidden = path
            .file_name()
            .is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden
            && path
                .extension()
                .is_some_and(|extension| extension == "toml")
        {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn read_text(path: &Path) -> Result<String, String> {
    let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
    // Opening a pipe would wait for a writer.
    if !metadata.is_file() {
        return Err("it is no regular file".to_owned());
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(format!("the file is larger than {MAX_FILE_BYTES} bytes"));
    }
    std::fs::read_to_string(path).map_err(|error| error.to_string())
}
