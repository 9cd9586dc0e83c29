//! The profiles and the persona in force: a shelf that every run reads and that is swapped
//! whole when a file changes (SPEC section 10).

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::event::Event;
use crate::protocol::phrase::{Phrase, PhraseCode};
use crate::protocol::profile::Profile;

/// The profiles and the persona as their files give them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProfileSet {
    pub profiles: Vec<Profile>,
    pub persona: String,
    /// What is wrong with the files, one sentence each, for the page.
    pub warnings: Vec<Phrase>,
}

/// See the module. Whoever holds a profile keeps it as it was when it was taken.
#[derive(Debug)]
pub struct Profiles {
    default_id: String,
    // Held for a moment at a time, never across an await.
    shelf: RwLock<Arc<Shelf>>,
}

#[derive(Debug)]
struct Shelf {
    by_id: BTreeMap<String, Arc<Profile>>,
    default: Arc<Profile>,
    persona: Arc<str>,
    warnings: Vec<Phrase>,
}

/// The profile that a session's run goes by.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionProfile {
    pub profile: Arc<Profile>,
    /// The session's own profile, where there is no such one any more.
    pub instead_of: Option<String>,
}

impl SessionProfile {
    /// What the user is told where the session's own profile is gone.
    #[must_use]
    pub fn notice(&self) -> Option<Event> {
        let gone = self.instead_of.as_ref()?;
        let params = [("gone", gone.clone()), ("name", self.profile.name.clone())];
        let phrase = Phrase::new(PhraseCode::ProfileMissing, params);
        Some(Event::notice("profile_missing", phrase))
    }
}

impl Profiles {
    /// A shelf with these profiles, one of which is the default.
    ///
    /// # Errors
    /// `unknown_profile` where the default one is not among them.
    pub fn new(set: ProfileSet, default_id: String) -> Result<Self, NaviError> {
        let by_id = by_id(set.profiles, None);
        let default = by_id
            .get(&default_id)
            .cloned()
            .ok_or_else(|| unknown(&default_id, &by_id))?;
        Ok(Self {
            shelf: RwLock::new(Arc::new(Shelf {
                by_id,
                default,
                persona: set.persona.into(),
                warnings: set.warnings,
            })),
            default_id,
        })
    }

    /// Puts other profiles and another persona in force. The default profile never goes: one
    /// that is not in `set` stays as it was, with a warning. A profile that is the same as
    /// before stays the same `Arc`, for those who cache by it.
    pub fn replace(&self, set: ProfileSet) {
        let mut shelf = self.shelf.write();
        let mut warnings = set.warnings;
        let mut by_id = by_id(set.profiles, Some(&shelf.by_id));
        let default = by_id.get(&self.default_id).cloned().unwrap_or_else(|| {
            warnings.push(Phrase::new(
                PhraseCode::DefaultGone,
                [("profile", self.default_id.clone())],
            ));
            Arc::clone(&shelf.default)
        });
        by_id.insert(self.default_id.clone(), Arc::clone(&default));
        *shelf = Arc::new(Shelf {
            by_id,
            default,
            persona: set.persona.into(),
            warnings,
        });
    }

    /// The profile of this id.
    ///
    /// # Errors
    /// `unknown_profile`, naming those there are.
    pub fn find(&self, id: &str) -> Result<Arc<Profile>, NaviError> {
        let shelf = self.shelf();
        let found = shelf.by_id.get(id).cloned();
        found.ok_or_else(|| unknown(id, &shelf.by_id))
    }

    /// The profile of a session that has this id: the default one where there is no such one
    /// any more (its file was deleted), so that the session stays usable.
    #[must_use]
    pub fn of_session(&self, id: &str) -> SessionProfile {
        let shelf = self.shelf();
        match shelf.by_id.get(id) {
            Some(profile) => SessionProfile {
                profile: Arc::clone(profile),
                instead_of: None,
            },
            None => SessionProfile {
                profile: Arc::clone(&shelf.default),
                instead_of: Some(id.to_owned()),
            },
        }
    }

    /// Every profile, by id.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Profile>> {
        self.shelf().by_id.values().cloned().collect()
    }

    /// The profile of a session that names none.
    #[must_use]
    pub fn default_id(&self) -> &str {
        &self.default_id
    }

    /// The text before every profile's prompt.
    #[must_use]
    pub fn persona(&self) -> Arc<str> {
        Arc::clone(&self.shelf().persona)
    }

    /// What is wrong with the files, one sentence each.
    #[must_use]
    pub fn warnings(&self) -> Vec<Phrase> {
        self.shelf().warnings.clone()
    }

    fn shelf(&self) -> Arc<Shelf> {
        let shelf = self.shelf.read();
        Arc::clone(&shelf)
    }
}

fn by_id(
    profiles: Vec<Profile>,
    before: Option<&BTreeMap<String, Arc<Profile>>>,
) -> BTreeMap<String, Arc<Profile>> {
    profiles
        .into_iter()
        .map(|profile| {
            let same = before
                .and_then(|before| before.get(&profile.id))
                .filter(|known| ***known == profile)
                .cloned();
            (
                profile.id.clone(),
                same.unwrap_or_else(|| Arc::new(profile)),
            )
        })
        .collect()
}

fn unknown(id: &str, by_id: &BTreeMap<String, Arc<Profile>>) -> NaviError {
    let known: Vec<&str> = by_id.keys().map(String::as_str).collect();
    NaviError::new(
        ErrorCode::UnknownProfile,
        format!("there is no profile {id:?}; there are {}", known.join(", ")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(id: &str, prompt: &str) -> Profile {
        serde_json::from_value(serde_json::json!({
            "id": id, "name": id.to_uppercase(), "description": "", "system_prompt": prompt,
            "enabled_tools": [], "temperature": 0.5,
        }))
        .unwrap()
    }

    fn set(profiles: &[(&str, &str)], persona: &str, warnings: &[&str]) -> ProfileSet {
        ProfileSet {
            profiles: profiles.iter().map(|(id, p)| profile(id, p)).collect(),
            persona: persona.to_owned(),
            warnings: warnings.iter().map(|it| Phrase::plain(*it)).collect(),
        }
    }

    fn shelf() -> Profiles {
        let set = set(&[("a", "one"), ("b", "two")], "Be Navi.", &[]);
        Profiles::new(set, "a".to_owned()).unwrap()
    }

    #[test]
    fn without_the_default_profile_there_is_no_shelf() {
        let error = Profiles::new(set(&[("b", "two")], "", &[]), "a".to_owned()).unwrap_err();
        assert_eq!(error.code, ErrorCode::UnknownProfile);
        assert!(error.message.contains("there are b"), "{error}");
    }

    #[test]
    fn a_swap_holds_at_once_and_leaves_what_was_taken() {
        let shelf = shelf();
        let (a, b) = (shelf.find("a").unwrap(), shelf.find("b").unwrap());
        shelf.replace(set(
            &[("a", "one"), ("b", "three"), ("c", "four")],
            "Be brief.",
            &["d.toml is wrong"],
        ));
        assert!(Arc::ptr_eq(&a, &shelf.find("a").unwrap()), "it is the same");
        assert_eq!(shelf.find("b").unwrap().system_prompt, "three");
        assert_eq!(b.system_prompt, "two");
        assert_eq!(&*shelf.persona(), "Be brief.");
        assert_eq!(shelf.warnings(), [Phrase::plain("d.toml is wrong")]);
        let ids: Vec<String> = shelf.all().iter().map(|p| p.id.clone()).collect();
        assert_eq!(ids, ["a", "b", "c"]);
        shelf.replace(set(&[("a", "one")], "", &[]));
        assert_eq!(shelf.warnings(), []);
    }

    #[test]
    fn the_default_profile_stays_whatever_comes() {
        let shelf = shelf();
        shelf.replace(set(&[("b", "two")], "", &[]));
        assert_eq!(shelf.find("a").unwrap().system_prompt, "one");
        assert_eq!(shelf.warnings()[0].code, PhraseCode::DefaultGone);
        shelf.replace(set(&[], "", &[]));
        assert_eq!(shelf.all().len(), 1);
        shelf.replace(set(&[("a", "new")], "", &[]));
        assert_eq!(shelf.find("a").unwrap().system_prompt, "new");
        assert_eq!(shelf.warnings(), []);
    }

    #[test]
    fn a_session_whose_profile_is_gone_gets_the_default_one_and_a_notice() {
        let shelf = shelf();
        assert_eq!(shelf.of_session("b").notice(), None);
        shelf.replace(set(&[("a", "one")], "", &[]));
        assert_eq!(shelf.find("b").unwrap_err().code, ErrorCode::UnknownProfile);
        let found = shelf.of_session("b");
        assert_eq!(found.profile.id, "a");
        let Some(Event::Notice { code, message, .. }) = found.notice() else {
            unreachable!("a notice is due");
        };
        assert_eq!(code, "profile_missing");
        assert!(message.contains("profile b is not there"), "{message}");
        shelf.replace(set(&[("a", "one"), ("b", "back")], "", &[]));
        assert_eq!(shelf.of_session("b").profile.system_prompt, "back");
    }
}
