//! A profile's file as a person reads it, and writes it anew.

use std::fs;
use std::path::{Path, PathBuf};

use navi_actors::protocol::error::{ErrorCode, NaviError, invalid};
use schemars::JsonSchema;
use serde::Serialize;
use tracing::error;

use super::{BuiltIn, file, read_text, toml_files};
use crate::access::links::make_private_dir;

/// What a profile is made of.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProfileText {
    /// Where it stands; where it is built in, where one that replaces it would.
    file: PathBuf,
    built_in: bool,
    /// TOML.
    text: String,
}

/// Reads the file of a profile. Blocks.
///
/// # Errors
/// `not_found`.
pub(crate) fn read(dir: &Path, id: &str) -> Result<ProfileText, NaviError> {
    let (file, text) = own(dir, id)?;
    let built_in = text.is_none();
    match text.or_else(|| built_in_text(id)) {
        Some(text) => Ok(ProfileText {
            file,
            built_in,
            text,
        }),
        None => Err(not_found()),
    }
}

/// Writes a profile's file, which has to be as the loader takes it. `before` is what stood there
/// when it was read; none where no file was. Blocks.
///
/// # Errors
/// `invalid_field` with what is wrong, `change_conflict` where the file is another by now.
pub(crate) fn write(
    dir: &Path,
    id: &str,
    text: &str,
    before: Option<&str>,
) -> Result<(), NaviError> {
    let profile = file::parse(text).map_err(invalid)?;
    if profile.id != id {
        return Err(invalid(format!(
            "field `id`: \"{id}\" is expected; copy the profile to have it under another id"
        )));
    }
    let (file, now) = own(dir, id)?;
    if now.as_deref() != before {
        return Err(NaviError::new(
            ErrorCode::ChangeConflict,
            format!(
                "{} was changed meanwhile; read it again before you write it",
                file.display()
            ),
        ));
    }
    put(&file, text).map_err(|error| {
        error!(%error, file = %file.display(), "a profile could not be written");
        NaviError::new(
            ErrorCode::Internal,
            format!("{} cannot be written to: {error}", file.display()),
        )
    })
}

/// The file that has this profile, or would have it, and what stands in it.
fn own(dir: &Path, id: &str) -> Result<(PathBuf, Option<String>), NaviError> {
    if !file::is_id(id) {
        return Err(not_found());
    }
    let failed = |error: std::io::Error| {
        NaviError::new(
            ErrorCode::Internal,
            format!("profiles folder {}: {error}", dir.display()),
        )
    };
    let holder = toml_files(dir)
        .map_err(failed)?
        .into_iter()
        .find_map(|path| {
            let text = read_text(&path).ok()?;
            let is_it = file::parse(&text).is_ok_and(|profile| profile.id == id);
            is_it.then_some((path, Some(text)))
        });
    Ok(holder.unwrap_or_else(|| {
        let path = dir.join(format!("{id}.toml"));
        // One that is refused is there all the same.
        let text = read_text(&path).ok();
        (path, text)
    }))
}

fn built_in_text(id: &str) -> Option<String> {
    let found = BuiltIn::get(&format!("{id}.toml"))?;
    Some(String::from_utf8_lossy(&found.data).into_owned())
}

fn not_found() -> NaviError {
    NaviError::new(
        ErrorCode::NotFound,
        "there is no profile of this id; GET /agents/profiles lists them",
    )
}

/// Whole or not at all: the loader takes no file for a profile that begins with a dot.
fn put(file: &Path, text: &str) -> std::io::Result<()> {
    let (Some(dir), Some(name)) = (file.parent(), file.file_name()) else {
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    make_private_dir(dir)?;
    let aside = dir.join(format!(".{}.new", name.to_string_lossy()));
    fs::write(&aside, text)?;
    fs::rename(&aside, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(outcome: Result<(), NaviError>) -> ErrorCode {
        outcome.unwrap_err().code
    }

    #[test]
    fn a_copy_is_written_when_it_is_right_and_edited_when_nobody_else_did() {
        let house = tempfile::tempdir().unwrap();
        let dir = house.path().join("profiles");
        let original = read(&dir, "secretary").unwrap();
        assert!(original.built_in && original.file == dir.join("secretary.toml"));
        let copy = original.text.replacen("\"secretary\"", "\"mine\"", 1);

        assert_eq!(
            code(write(&dir, "other", &copy, None)),
            ErrorCode::InvalidField
        );
        let wrong = copy.replace("temperature", "temperatur");
        assert_eq!(
            code(write(&dir, "mine", &wrong, None)),
            ErrorCode::InvalidField
        );
        assert!(!dir.exists(), "nothing is written when it is wrong");

        write(&dir, "mine", &copy, None).unwrap();
        let mine = read(&dir, "mine").unwrap();
        assert!(!mine.built_in && mine.text == copy);
        assert_eq!(
            code(write(&dir, "mine", &copy, None)),
            ErrorCode::ChangeConflict
        );
        // It may stand in a file of any name.
        fs::rename(dir.join("mine.toml"), dir.join("a.toml")).unwrap();
        let edited = copy.replace("Personal Secretary", "Mine");
        write(&dir, "mine", &edited, Some(&copy)).unwrap();
        assert_eq!(fs::read_to_string(dir.join("a.toml")).unwrap(), edited);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        // Nothing else is read by way of it.
        fs::write(house.path().join("out.toml"), &copy).unwrap();
        for id in ["../out", "", "Mine", "none"] {
            assert_eq!(
                read(&dir, id).unwrap_err().code,
                ErrorCode::NotFound,
                "{id}"
            );
        }
    }
}
