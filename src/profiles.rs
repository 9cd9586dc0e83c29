//! Profiles and the persona: the built-in ones, and those of the user's folder.
//!
//! A file that is wrong is refused whole, with the field and the reason, and never stops
//! the start: it becomes a warning, and a built-in profile of the same id stays in force.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use navi_actors::protocol::profile::Profile;
use rust_embed::RustEmbed;
use serde_json::{Map, Value};

use crate::settings::Persona;

/// Larger than any sensible prompt; keeps a wrong file from being read into memory.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

const BUILT_IN_PERSONA: &str = include_str!("../config/persona.txt");

#[derive(RustEmbed)]
#[folder = "config/profiles"]
struct BuiltIn;

/// The profiles in force, and what was wrong with others.
#[derive(Debug, Default)]
pub(crate) struct LoadedProfiles {
    /// Sorted by id.
    pub(crate) profiles: Vec<Profile>,
    pub(crate) warnings: Vec<String>,
}

/// Loads the built-in profiles and those of `dir`, which need not exist.
pub(crate) fn load(dir: &Path, known_tools: &[String]) -> LoadedProfiles {
    let mut loaded = Loader {
        known_tools,
        profiles: BTreeMap::new(),
        warnings: Vec::new(),
    };
    for name in BuiltIn::iter() {
        if let Some(file) = BuiltIn::get(&name) {
            loaded.add(&name, &String::from_utf8_lossy(&file.data));
        }
    }
    let built_in = std::mem::take(&mut loaded.profiles);
    loaded.add_folder(dir);
    let mut profiles = built_in;
    profiles.extend(loaded.profiles);
    LoadedProfiles {
        profiles: profiles.into_values().collect(),
        warnings: loaded.warnings,
    }
}

/// The persona's text. One that cannot be read is replaced by the built-in one, with a warning.
pub(crate) fn persona(setting: &Persona, warnings: &mut Vec<String>) -> String {
    let text = match setting {
        Persona::BuiltIn => None,
        Persona::Inline(text) => Some(text.clone()),
        Persona::File(path) => match read(path) {
            Ok(text) => Some(text),
            Err(reason) => {
                warnings.push(format!(
                    "NAVI_PERSONA_FILE {}: {reason}; the built-in persona is used",
                    path.display()
                ));
                None
            }
        },
    };
    text.as_deref()
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| BUILT_IN_PERSONA.trim())
        .to_owned()
}

struct Loader<'a> {
    known_tools: &'a [String],
    profiles: BTreeMap<String, Profile>,
    warnings: Vec<String>,
}

impl Loader<'_> {
    fn add_folder(&mut self, dir: &Path) {
        let entries = match std::fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(error) => {
                self.warnings
                    .push(format!("profiles folder {}: {error}", dir.display()));
                return;
            }
        };
        let mut paths: Vec<PathBuf> = entries
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| {
                path.extension()
                    .is_some_and(|extension| extension == "toml")
            })
            .collect();
        paths.sort();
        for path in paths {
            let name = path.display().to_string();
            match read(&path) {
                Ok(text) => self.add(&name, &text),
                Err(reason) => self.warnings.push(format!("profile {name}: {reason}")),
            }
        }
    }

    fn add(&mut self, name: &str, text: &str) {
        let profile = match parse(text) {
            Ok(profile) => profile,
            Err(reason) => {
                self.warnings
                    .push(format!("profile {name} is refused: {reason}"));
                return;
            }
        };
        if self.profiles.contains_key(&profile.id) {
            self.warnings.push(format!(
                "profile {name} is refused: field `id`: another file has \"{}\" already",
                profile.id
            ));
            return;
        }
        for tool in profile.enabled_tools.iter().chain(&profile.subagent_tools) {
            if !self.known_tools.contains(tool) {
                self.warnings.push(format!(
                    "profile {}: there is no tool `{tool}`; it is left out",
                    profile.id
                ));
            }
        }
        self.profiles.insert(profile.id.clone(), profile);
    }
}

fn read(path: &Path) -> Result<String, String> {
    let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if metadata.len() > MAX_FILE_BYTES {
        return Err(format!("the file is larger than {MAX_FILE_BYTES} bytes"));
    }
    std::fs::read_to_string(path).map_err(|error| error.to_string())
}

/// A profile from its file's text, or the field and the reason why not.
fn parse(text: &str) -> Result<Profile, String> {
    let fields: Map<String, Value> =
        toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    check_fields(&fields)?;
    let profile: Profile =
        serde_json::from_value(Value::Object(fields)).map_err(|error| error.to_string())?;
    check_ranges(&profile)?;
    Ok(profile)
}

/// Compares the fields with the profile's own schema: `flatten` lets serde neither refuse an
/// unknown field nor name a mistyped one.
fn check_fields(fields: &Map<String, Value>) -> Result<(), String> {
    let schema = schemars::schema_for!(Profile);
    let Some(known) = schema.get("properties").and_then(Value::as_object) else {
        return Ok(());
    };
    for (name, value) in fields {
        let Some(field) = known.get(name) else {
            let near = known
                .keys()
                .map(|known| (strsim::jaro_winkler(name, known), known))
                .filter(|(similarity, _)| *similarity > 0.8)
                .max_by(|(a, _), (b, _)| a.total_cmp(b))
                .map(|(_, known)| format!("; did you mean `{known}`?"));
            return Err(format!(
                "field `{name}` is unknown{}",
                near.unwrap_or_default()
            ));
        };
        if !has_type(value, field) {
            return Err(format!(
                "field `{name}`: expected {}, found {value}",
                type_names(field)
            ));
        }
    }
    Ok(())
}

fn types(field: &Value) -> Vec<&str> {
    match field.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn type_names(field: &Value) -> String {
    let names: Vec<&str> = types(field)
        .into_iter()
        .filter_map(|name| match name {
            "string" => Some("a text"),
            "boolean" => Some("true or false"),
            "integer" => Some("a whole number that is not negative"),
            "number" => Some("a number"),
            "array" => Some("a list of texts"),
            _ => None,
        })
        .collect();
    names.join(" or ")
}

fn has_type(value: &Value, field: &Value) -> bool {
    types(field).into_iter().any(|name| match name {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_u64().is_some_and(|n| u32::try_from(n).is_ok()),
        "number" => value.is_number(),
        "array" => value
            .as_array()
            .is_some_and(|items| items.iter().all(Value::is_string)),
        _ => false,
    })
}

fn check_ranges(profile: &Profile) -> Result<(), String> {
    let wrong = |field: &str, reason: &str| Err(format!("field `{field}`: {reason}"));
    let id_is_plain = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
    };
    if profile.id.is_empty() || profile.id.len() > 64 || !id_is_plain(&profile.id) {
        return wrong("id", "1 to 64 of a-z, 0-9, _ and - are expected");
    }
    if profile.name.trim().is_empty() || profile.name.chars().count() > 100 {
        return wrong("name", "1 to 100 characters are expected");
    }
    if profile.system_prompt.trim().is_empty() {
        return wrong("system_prompt", "it is empty");
    }
    if !(0.0..=2.0).contains(&profile.temperature) {
        return wrong("temperature", "a number from 0 to 2 is expected");
    }
    if !(1..=1000).contains(&profile.max_iterations) {
        return wrong("max_iterations", "a number from 1 to 1000 is expected");
    }
    if !["ollama", "openai", "starter"].contains(&profile.llm_backend.as_str()) {
        return wrong("llm_backend", "ollama, openai or starter is expected");
    }
    if profile
        .model
        .as_ref()
        .is_some_and(|model| model.trim().is_empty())
    {
        return wrong("model", "it is empty; leave it out for the default model");
    }
    if profile.flags.goal_anchoring_interval == 0 {
        return wrong("goal_anchoring_interval", "at least 1 is expected");
    }
    if profile.flags.anti_stall_threshold == 0 {
        return wrong("anti_stall_threshold", "at least 1 is expected");
    }
    let sections = &profile.scratchpad_sections;
    if sections.len() > 32
        || sections
            .iter()
            .any(|name| name.trim().is_empty() || name.len() > 64)
    {
        return wrong(
            "scratchpad_sections",
            "up to 32 names of 1 to 64 characters are expected",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn tools() -> Vec<String> {
        ["filesystem", "todo", "scratchpad"]
            .map(str::to_owned)
            .to_vec()
    }

    fn minimal(extra: &str) -> String {
        format!(
            "id = \"own\"\nname = \"Own\"\ndescription = \"\"\nsystem_prompt = \"Help.\"\n\
             enabled_tools = []\ntemperature = 0.5\n{extra}\n"
        )
    }

    #[test]
    fn the_built_in_profiles_are_those_of_the_contract() {
        let loaded = load(Path::new("/nowhere"), &tools());
        assert_eq!(loaded.warnings, Vec::<String>::new());
        let seen: Vec<_> = loaded
            .profiles
            .iter()
            .map(|p| {
                (
                    p.id.as_str(),
                    p.name.as_str(),
                    p.temperature,
                    p.flags.planning_enabled,
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("secretary", "Personal Secretary", 0.7, true),
                ("server_admin", "Server Administrator", 0.2, true),
                ("smart_home", "Smart Home Assistant", 0.3, true),
            ]
        );
        assert_eq!(
            loaded.profiles[0].scratchpad_sections,
            ["findings", "sources", "drafts"]
        );
    }

    #[test]
    fn a_wrong_file_is_refused_with_the_field_and_the_reason() {
        for (extra, expected) in [
            (
                "temperatur = 1",
                "field `temperatur` is unknown; did you mean `temperature`?",
            ),
            (
                "max_iterations = \"x\"",
                "field `max_iterations`: expected a whole number",
            ),
            (
                "max_iterations = 0",
                "field `max_iterations`: a number from 1",
            ),
            (
                "max_iterations = -1",
                "field `max_iterations`: expected a whole number",
            ),
            (
                "planning_enabled = \"yes\"",
                "field `planning_enabled`: expected true or false",
            ),
            (
                "scratchpad_sections = [1]",
                "field `scratchpad_sections`: expected a list of texts",
            ),
            ("llm_backend = \"x\"", "field `llm_backend`: ollama"),
            ("anti_stall_threshold = 0", "field `anti_stall_threshold`"),
            ("model = 3", "field `model`: expected a text"),
        ] {
            let reason = parse(&minimal(extra)).unwrap_err();
            assert!(reason.contains(expected), "{extra}: {reason}");
        }
        let reason = parse("id = \"x\"").unwrap_err();
        assert!(reason.contains("missing field"), "{reason}");
        let reason = parse(&minimal("").replace("0.5", "3")).unwrap_err();
        assert!(reason.contains("field `temperature`"), "{reason}");
        let reason = parse(&minimal("").replace("\"own\"", "\"../x\"")).unwrap_err();
        assert!(reason.contains("field `id`"), "{reason}");
    }

    #[test]
    fn a_folder_adds_replaces_and_never_stops_the_start() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        file("a.toml", &minimal("model = \"m\""));
        file("b.toml", &minimal(""));
        file("c.toml", "not toml at all");
        file(
            "d.toml",
            &minimal("")
                .replace("\"own\"", "\"secretary\"")
                .replace("\"Own\"", "\"Mine\""),
        );
        file(
            "e.toml",
            &minimal("")
                .replace("\"own\"", "\"odd\"")
                .replace("[]", "[\"teleport\"]"),
        );
        file("notes.txt", "ignored");
        let loaded = load(dir.path(), &tools());
        let ids: Vec<_> = loaded.profiles.iter().map(|p| p.id.as_str()).collect();
        assert_eq!(
            ids,
            ["odd", "own", "secretary", "server_admin", "smart_home"]
        );
        assert_eq!(loaded.profiles[2].name, "Mine");
        assert_eq!(loaded.profiles[1].model.as_deref(), Some("m"));
        assert_eq!(loaded.warnings.len(), 3, "{:?}", loaded.warnings);
        assert!(loaded.warnings[0].contains("b.toml") && loaded.warnings[0].contains("`id`"));
        assert!(loaded.warnings[2].contains("teleport"));
    }

    #[test]
    fn the_persona_falls_back_with_a_warning() {
        let mut warnings = Vec::new();
        assert!(persona(&Persona::BuiltIn, &mut warnings).contains("Navi"));
        assert_eq!(
            persona(&Persona::Inline(" Be short. ".into()), &mut warnings),
            "Be short."
        );
        assert!(warnings.is_empty());
        let text = persona(&Persona::File("/nowhere".into()), &mut warnings);
        assert!(text.contains("Navi"));
        assert_eq!(warnings.len(), 1);
    }
}
