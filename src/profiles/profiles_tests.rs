//! What is in force when files come, change, go wrong and go.

use std::fs;

use navi_actors::domain::context::prompt::for_tools;
use navi_actors::tools::registry::{Registry, ToolConfig};
use tempfile::TempDir;

use super::*;

pub(super) fn minimal(id: &str, prompt: &str) -> String {
    format!(
        "id = \"{id}\"\nname = \"Own\"\ndescription = \"\"\nsystem_prompt = \"{prompt}\"\n\
         enabled_tools = []\ntemperature = 0.5\n"
    )
}

/// A folder of profiles and whoever reads it.
pub(super) struct House {
    pub(super) dir: TempDir,
    pub(super) files: ProfileFiles,
}

pub(super) fn house(persona: impl FnOnce(&Path) -> Persona) -> House {
    let dir = tempfile::tempdir().unwrap();
    let files = ProfileFiles {
        dir: dir.path().join("profiles"),
        persona: persona(dir.path()),
        known_tools: every_tool(),
        tools_dir: dir.path().join("tools"),
        good: BTreeMap::new(),
        good_persona: None,
    };
    House { dir, files }
}

fn every_tool() -> BTreeSet<String> {
    let registry = Registry::builtin(&ToolConfig::default());
    registry.all().map(|spec| spec.name.clone()).collect()
}

impl House {
    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn remove(&self, name: &str) {
        fs::remove_file(self.dir.path().join(name)).unwrap();
    }

    /// The prompt of a profile as it is now, and all warnings.
    fn look(&mut self, id: &str) -> (Option<String>, Vec<String>) {
        let found = self.files.read();
        let profile = found.profiles.iter().find(|profile| profile.id == id);
        (
            profile.map(|profile| profile.system_prompt.clone()),
            told(&found.warnings),
        )
    }
}

fn told(warnings: &[Phrase]) -> Vec<String> {
    warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn the_built_in_profiles_are_those_of_the_contract() {
    let found = house(|_| Persona::BuiltIn).files.read();
    assert_eq!(found.warnings, []);
    let seen: Vec<_> = found
        .profiles
        .iter()
        .map(|p| {
            (
                p.id.as_str(),
                p.name.as_str(),
                p.temperature,
                p.flags.planning_enabled,
                p.scratchpad_sections.join(", "),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (
                "secretary",
                "Personal Secretary",
                0.7,
                true,
                "findings, sources, drafts".to_owned()
            ),
            (
                "server_admin",
                "Server Administrator",
                0.2,
                true,
                "status, logs, errors, plan".to_owned()
            ),
            (
                "smart_home",
                "Smart Home Assistant",
                0.3,
                true,
                "state, config, errors".to_owned()
            ),
        ]
    );
    for profile in &found.profiles {
        assert_eq!(profile.model.as_deref(), Some("gemma4:26b-a4b-it-q4_K_M"));
        assert_eq!(profile.max_iterations, 50);
        assert_eq!(profile.llm_backend, None);
        // A small model reads all of it before each answer.
        let prompt = profile.system_prompt.len() + found.persona.len();
        assert!(prompt < 4500, "{}: {prompt} bytes", profile.id);
        let child = &profile.subagent_system_prompt;
        assert!(!child.is_empty() && child.len() < 1000, "{}", profile.id);
    }
}

#[test]
fn a_folder_adds_replaces_and_never_stops_the_start() {
    let mut house = house(|_| Persona::BuiltIn);
    house.write(
        "profiles/a.toml",
        &format!("{}model = \"m\"", minimal("own", "Help.")),
    );
    house.write("profiles/b.toml", &minimal("own", "Another."));
    house.write("profiles/c.toml", "not toml at all");
    house.write("profiles/d.toml", &minimal("secretary", "Mine."));
    house.write(
        "profiles/e.toml",
        &minimal("odd", "Odd.").replace("[]", "[\"teleport\", \"todo\", \"fly\"]"),
    );
    house.write("profiles/.#d.toml", "an editor's own");
    house.write("profiles/notes.txt", "ignored");
    fs::create_dir(house.dir.path().join("profiles/f.toml")).unwrap();
    let found = house.files.read();
    let ids: Vec<_> = found.profiles.iter().map(|p| p.id.as_str()).collect();
    assert_eq!(
        ids,
        ["odd", "own", "secretary", "server_admin", "smart_home"]
    );
    assert_eq!(found.profiles[2].system_prompt, "Mine.");
    assert_eq!(found.profiles[1].model.as_deref(), Some("m"));
    let expected = [
        ("b.toml is refused: field `id`", "a.toml has \"own\""),
        ("c.toml is refused", "expected"),
        ("f.toml is refused", "no regular file"),
        ("profile odd: there are no tools `fly`, `teleport`", ""),
    ];
    assert_eq!(found.warnings.len(), expected.len(), "{:?}", found.warnings);
    for (warning, (one, other)) in told(&found.warnings).iter().zip(expected) {
        assert!(
            warning.contains(one) && warning.contains(other),
            "{warning}"
        );
    }
}

#[test]
fn a_file_that_goes_wrong_leaves_its_last_good_version() {
    let mut house = house(|_| Persona::BuiltIn);
    house.write("profiles/s.toml", &minimal("secretary", "Mine."));
    assert_eq!(house.look("secretary").0.as_deref(), Some("Mine."));
    for broken in [
        "",
        "id = \"secretary\"",
        &minimal("secretary", "Worse.").replace("0.5", "9"),
    ] {
        house.write("profiles/s.toml", broken);
        let (prompt, warnings) = house.look("secretary");
        assert_eq!(prompt.as_deref(), Some("Mine."));
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("s.toml is refused: "), "{warnings:?}");
        assert!(warnings[0].ends_with("its last good version stays in force"));
    }
    house.write("profiles/s.toml", &minimal("secretary", "Mended."));
    assert_eq!(
        house.look("secretary"),
        (Some("Mended.".to_owned()), Vec::new())
    );
}

#[test]
fn a_file_that_is_deleted_leaves_the_built_in_profile_or_none() {
    let mut house = house(|_| Persona::BuiltIn);
    house.write("profiles/s.toml", &minimal("secretary", "Mine."));
    house.write("profiles/o.toml", &minimal("own", "Help."));
    house.look("own");
    house.remove("profiles/s.toml");
    house.remove("profiles/o.toml");
    let (prompt, warnings) = house.look("secretary");
    assert!(prompt.unwrap().contains("research"));
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(house.look("own").0, None);
    // It was good once, and that is forgotten with it.
    house.write("profiles/o.toml", "broken");
    let (prompt, warnings) = house.look("own");
    assert_eq!(prompt, None);
    assert!(!warnings[0].contains("stays in force"), "{warnings:?}");
}

#[test]
fn whoever_has_an_id_keeps_it() {
    let mut house = house(|_| Persona::BuiltIn);
    house.write("profiles/b.toml", &minimal("own", "First."));
    house.look("own");
    house.write("profiles/a.toml", &minimal("own", "Newcomer."));
    let (prompt, warnings) = house.look("own");
    assert_eq!(prompt.as_deref(), Some("First."));
    assert!(warnings[0].contains("a.toml is refused"), "{warnings:?}");
    // Gone wrong it still has it; renamed away it gives it up.
    house.write("profiles/b.toml", "broken");
    assert_eq!(house.look("own").0.as_deref(), Some("First."));
    house.write("profiles/b.toml", &minimal("other", "Moved."));
    assert_eq!(house.look("own").0.as_deref(), Some("Newcomer."));
    assert_eq!(house.look("other"), (Some("Moved.".into()), Vec::new()));
}

#[test]
fn a_folder_that_cannot_be_read_leaves_what_was_read() {
    let mut house = house(|_| Persona::BuiltIn);
    house.write("profiles/o.toml", &minimal("own", "Help."));
    house.look("own");
    let folder = house.dir.path().join("profiles");
    fs::rename(&folder, house.dir.path().join("away")).unwrap();
    fs::write(&folder, "no folder").unwrap();
    let (prompt, warnings) = house.look("own");
    assert_eq!(prompt.as_deref(), Some("Help."));
    assert!(warnings[0].contains("profiles folder"), "{warnings:?}");
    fs::remove_file(&folder).unwrap();
    assert_eq!(house.look("own"), (None, Vec::new()));
}

#[test]
fn more_files_than_are_read_are_told() {
    let mut house = house(|_| Persona::BuiltIn);
    for n in 0..=MAX_FILES {
        house.write(
            &format!("profiles/{n:03}.toml"),
            &minimal(&format!("p{n}"), "x"),
        );
    }
    assert_eq!(house.look(&format!("p{MAX_FILES}")).0, None);
    let (last, warnings) = house.look(&format!("p{}", MAX_FILES - 1));
    assert_eq!(last.as_deref(), Some("x"));
    assert!(warnings[0].contains("left out"), "{warnings:?}");
}

#[test]
fn the_persona_is_what_was_set() {
    let found = house(|_| Persona::Inline(" Be short. ".into()))
        .files
        .read();
    assert_eq!(found.persona, "Be short.");
    assert!(
        house(|_| Persona::BuiltIn)
            .files
            .read()
            .persona
            .contains("Navi")
    );
}

#[test]
fn a_personas_file_goes_by_the_same_rules() {
    let mut house = house(|dir| Persona::File(dir.join("persona.txt")));
    let look = |house: &mut House| {
        let found = house.files.read();
        (found.persona, told(&found.warnings).join("; "))
    };
    let (persona, warning) = look(&mut house);
    assert!(persona.contains("Navi"));
    assert!(warning.contains("NAVI_PERSONA_FILE") && warning.contains("built-in"));
    house.write("persona.txt", "Be a cat.\n");
    assert_eq!(look(&mut house), ("Be a cat.".into(), String::new()));
    house.write("persona.txt", " \n");
    let (persona, warning) = look(&mut house);
    assert_eq!(persona, "Be a cat.");
    assert!(warning.contains("it is empty; its last good"), "{warning}");
    house.remove("persona.txt");
    let (persona, warning) = look(&mut house);
    assert!(persona.contains("Navi"));
    assert!(warning.contains("built-in"), "{warning}");
}

/// Which tools there are depends on the settings: a prompt speaks of those, and of no others.
#[test]
fn a_built_in_prompt_names_the_tools_of_its_profile_that_are_there_and_no_others() {
    let tools = every_tool();
    let named = |prompt: &str| -> BTreeSet<String> {
        let quoted = prompt.split('`').skip(1).step_by(2);
        let quoted = quoted.map(str::to_owned);
        quoted.filter(|name| tools.contains(name)).collect()
    };
    for profile in built_in(&mut Vec::new()).values() {
        let own = profile.enabled_tools.iter();
        let own: BTreeSet<String> = own.filter(|tool| tools.contains(*tool)).cloned().collect();
        let with = |offered: &BTreeSet<String>| {
            let is_tool = |name: &str| own.contains(name);
            named(&for_tools(&profile.system_prompt, is_tool, |name| {
                offered.contains(name)
            }))
        };
        // As it is written: all of them.
        assert_eq!(named(&profile.system_prompt), own, "{}", profile.id);
        assert_eq!(with(&own), own, "{}", profile.id);
        for missing in &own {
            let mut others = own.clone();
            others.remove(missing);
            assert_eq!(with(&others), others, "{} without {missing}", profile.id);
        }
        assert!(with(&BTreeSet::new()).is_empty(), "{}", profile.id);
        assert!(named(&profile.subagent_system_prompt).is_empty());
    }
}
