//! The scratchpad: its commands and what they change.

use crate::protocol::todo::Scratchpad;

/// As many bytes as a section holds.
pub const MAX_SECTION_BYTES: usize = 16 * 1024;

/// The section of a profile that names none.
pub const DEFAULT_SECTION: &str = "notes";

/// What can be done to the notes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScratchpadCommand {
    Read,
    /// Replaces a section.
    Write {
        section: String,
        text: String,
    },
    /// Adds to a section's end, on a line of its own.
    Append {
        section: String,
        text: String,
    },
    Clear {
        section: String,
    },
}

/// The sections that a profile's session has: its own, or the one default.
#[must_use]
pub fn allowed_sections(profile_sections: &[String]) -> Vec<String> {
    if profile_sections.is_empty() {
        vec![DEFAULT_SECTION.to_owned()]
    } else {
        profile_sections.to_vec()
    }
}

/// The notes as they stand after a command, or a sentence that tells the model what to do
/// instead. `profile_sections` are those of the session's profile as it is now; notes that an
/// earlier profile left under other names can be read and cleared, not written. No section of
/// the result is empty.
pub fn apply(
    scratchpad: &Scratchpad,
    command: ScratchpadCommand,
    profile_sections: &[String],
) -> Result<Scratchpad, String> {
    let mut next = scratchpad.clone();
    match command {
        ScratchpadCommand::Read => {}
        ScratchpadCommand::Write { section, text } => {
            check_section(&section, profile_sections)?;
            put(&mut next, section, text)?;
        }
        ScratchpadCommand::Append { section, text } => {
            check_section(&section, profile_sections)?;
            let mut whole = next.remove(&section).unwrap_or_default();
            if !whole.is_empty() && !whole.ends_with('\n') {
                whole.push('\n');
            }
            whole.push_str(&text);
            put(&mut next, section, whole)?;
        }
        ScratchpadCommand::Clear { section } => {
            if next.remove(&section).is_none() {
                check_section(&section, profile_sections)?;
            }
        }
    }
    Ok(next)
}

fn put(scratchpad: &mut Scratchpad, section: String, text: String) -> Result<(), String> {
    if text.len() > MAX_SECTION_BYTES {
        return Err(format!(
            "section {section} would have {} bytes, and {MAX_SECTION_BYTES} is the limit; write a shorter version of it, or put the long text into a file",
            text.len()
        ));
    }
    if text.is_empty() {
        scratchpad.remove(&section);
    } else {
        scratchpad.insert(section, text);
    }
    Ok(())
}

fn check_section(section: &str, profile_sections: &[String]) -> Result<(), String> {
    let allowed = allowed_sections(profile_sections);
    if allowed.iter().any(|name| name == section) {
        return Ok(());
    }
    Err(format!(
        "there is no section {section:?}; use one of: {}",
        allowed.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(section: &str, text: &str) -> ScratchpadCommand {
        ScratchpadCommand::Write {
            section: section.to_owned(),
            text: text.to_owned(),
        }
    }

    fn append(section: &str, text: &str) -> ScratchpadCommand {
        ScratchpadCommand::Append {
            section: section.to_owned(),
            text: text.to_owned(),
        }
    }

    fn clear(section: &str) -> ScratchpadCommand {
        ScratchpadCommand::Clear {
            section: section.to_owned(),
        }
    }

    fn sections() -> Vec<String> {
        vec!["findings".to_owned(), "drafts".to_owned()]
    }

    #[test]
    fn notes_are_written_appended_and_cleared() {
        let pad = Scratchpad::new();
        let pad = apply(&pad, write("findings", "one"), &sections()).unwrap();
        let pad = apply(&pad, append("findings", "two"), &sections()).unwrap();
        let pad = apply(&pad, append("drafts", "first"), &sections()).unwrap();
        assert_eq!(pad["findings"], "one\ntwo");
        assert_eq!(pad["drafts"], "first");
        assert_eq!(
            apply(&pad, ScratchpadCommand::Read, &sections()).unwrap(),
            pad
        );
        let pad = apply(&pad, clear("findings"), &sections()).unwrap();
        let pad = apply(&pad, clear("findings"), &sections()).unwrap();
        let pad = apply(&pad, write("drafts", ""), &sections()).unwrap();
        assert!(pad.is_empty());
    }

    #[test]
    fn an_unknown_section_is_refused_with_the_known_ones() {
        let pad = Scratchpad::new();
        for command in [write("ideas", "x"), append("ideas", "x"), clear("ideas")] {
            assert_eq!(
                apply(&pad, command, &sections()).unwrap_err(),
                "there is no section \"ideas\"; use one of: findings, drafts"
            );
        }
    }

    #[test]
    fn a_profile_without_sections_has_notes() {
        let pad = apply(&Scratchpad::new(), write("notes", "x"), &[]).unwrap();
        assert_eq!(pad["notes"], "x");
        assert!(apply(&pad, write("findings", "x"), &[]).is_err());
    }

    #[test]
    fn sections_of_an_earlier_profile_can_be_cleared_but_not_written() {
        let pad = apply(&Scratchpad::new(), write("notes", "x"), &[]).unwrap();
        assert!(apply(&pad, append("notes", "y"), &sections()).is_err());
        assert!(apply(&pad, clear("notes"), &sections()).unwrap().is_empty());
    }

    #[test]
    fn a_section_has_a_limit_and_keeps_what_it_had() {
        let full = "x".repeat(MAX_SECTION_BYTES);
        let pad = apply(&Scratchpad::new(), write("notes", &full), &[]).unwrap();
        let error = apply(&pad, append("notes", "y"), &[]).unwrap_err();
        assert!(error.contains("16386 bytes"), "{error}");
        assert_eq!(pad["notes"].len(), MAX_SECTION_BYTES);
    }
}
