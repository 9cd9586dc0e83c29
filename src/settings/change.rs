//! Settings that are changed while Navi runs: what stands in the file, what is in force, and what
//! will be at the next start.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use navi_actors::domain::redact::{HIDDEN, redacted};
use navi_actors::protocol::error::{ErrorCode, NaviError, invalid};
use navi_actors::protocol::phrase::{Phrase, PhraseCode};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;

use super::edit::{self, Edits};
use super::keys::{self, Key};
use super::page::SENT_TO;
use super::sources::Texts;
use super::written::{self, Unwritten};
use super::{
    Loaded, PendingValue, Secret, Settings, SettingsError, ShownValue, addresses, load_with,
};

/// What holds at once when it is changed.
const MODEL_SERVER: [&Key; 3] = [&keys::OPENAI_URL, &keys::OPENAI_KEY, &keys::OPENAI_MODEL];

/// What is set up, what will be, and where it is written.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SettingList {
    /// The file that was read, or else the one that would be.
    file: PathBuf,
    /// Of the file as it is now: a change has to name it.
    version: String,
    /// Whether there is an earlier version to put back, and nobody changed the file since.
    can_undo: bool,
    /// Why Navi would not start with the file as it is now; left out where she would.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Phrase>,
    settings: Vec<ShownValue>,
}

/// The settings file of a service that runs. Its methods block, but for those that say otherwise.
#[derive(Debug)]
pub(crate) struct SettingsFile {
    /// As at the start.
    loaded: Arc<Loaded>,
    in_force: Mutex<InForce>,
    last: Mutex<Option<LastWrite>>,
    /// Held from the look at the file until what it says is in force.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct InForce {
    texts: Texts,
    values: Vec<ShownValue>,
}

/// The last change from here since the start.
#[derive(Clone, Debug)]
struct LastWrite {
    /// Of the file that came of it.
    version: String,
    /// What it took the place of.
    before: Secret,
}

/// What was written.
#[derive(Debug)]
pub(crate) struct Written {
    /// As the next start will have it.
    pub(crate) loaded: Loaded,
    /// The settings that are otherwise now.
    pub(crate) changed: Vec<&'static str>,
}

/// What else must hold of settings, and of those that become others, before they are written.
pub(crate) type Check = dyn Fn(&Settings, &[&'static str]) -> Result<(), NaviError> + Send + Sync;

impl SettingsFile {
    pub(crate) fn new(loaded: Arc<Loaded>) -> Self {
        let in_force = InForce {
            texts: loaded.texts.clone(),
            values: loaded.values.clone(),
        };
        Self {
            loaded,
            in_force: Mutex::new(in_force),
            last: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// Waits until nobody else changes anything. Does not block.
    pub(crate) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// All settings as they are and will be.
    ///
    /// # Errors
    /// `internal` where the file cannot be read.
    pub(crate) fn list(&self) -> Result<SettingList, NaviError> {
        let text = self.read()?;
        let next = self.load(&text);
        let version = written::version(&text);
        let last = self.last.lock();
        let can_undo = last.as_ref().is_some_and(|last| last.version == version);
        let force = self.in_force.lock();
        let rows = force.values.iter().map(|row| match &next {
            Ok(next) => row_of(row, &force.texts, next),
            Err(_) => row.clone(),
        });
        Ok(SettingList {
            settings: rows.collect(),
            file: self.loaded.file.clone(),
            version,
            can_undo,
            problem: next.err().map(|error| problem_of(&error)),
        })
    }

    /// Writes changes, each a setting's text, or none for its default, onto the version that was
    /// read. They have to be as a start takes them.
    ///
    /// # Errors
    /// `change_conflict` where the file is another by now, or something else wins over it,
    /// `forbidden` for what is changed in the file alone, `invalid_field` with what is wrong.
    pub(crate) fn change(
        &self,
        version: &str,
        changes: &BTreeMap<String, Option<String>>,
        check: &Check,
    ) -> Result<Written, NaviError> {
        let now = self.read_version(version)?;
        let mut edits = Edits::new();
        for (name, text) in changes {
            let key = self.changeable(name)?;
            let text = text.as_deref().map(str::trim).filter(|it| !it.is_empty());
            if let Some(text) = text {
                self.refuse_fixed(key)?;
                refuse_hidden(key, text)?;
            }
            edits.insert(key.path, text.map(str::to_owned));
        }
        if edits.is_empty() {
            return Err(invalid("`changes` names no setting"));
        }
        let next = edit::edited(&now, &edits).map_err(|reason| self.broken(&reason))?;
        self.write(&now, &next, &edits, check)
    }

    /// Puts the version before the last change back, and keeps the one that it takes the place of.
    ///
    /// # Errors
    /// As [`SettingsFile::change`]; `not_found` where there is none, `forbidden` where the file was
    /// changed by hand since: that is not taken back unsaid.
    pub(crate) fn undo(&self, version: &str, check: &Check) -> Result<Written, NaviError> {
        let now = self.read_version(version)?;
        let last = self.last.lock().clone();
        let none = || NaviError::said(ErrorCode::NotFound, PhraseCode::NoEarlierSettings);
        let last = last.ok_or_else(none)?;
        if last.version != version {
            let by_hand = self.phrase(PhraseCode::UndoByHand);
            return Err(NaviError::said(ErrorCode::Forbidden, by_hand));
        }
        self.write(&now, last.before.reveal(), &Edits::new(), check)
    }

    /// Whether the OpenAI-compatible server that will be asked is asked already.
    pub(crate) fn has_model_server_of(&self, next: &Loaded) -> bool {
        let force = self.in_force.lock();
        let mut keys = MODEL_SERVER.iter();
        keys.all(|key| force.texts.get(key) == next.texts.get(key))
    }

    /// The OpenAI-compatible server of these settings is asked from now on.
    pub(crate) fn use_model_server_of(&self, next: &Loaded) {
        let mut force = self.in_force.lock();
        let InForce { texts, values } = &mut *force;
        for key in MODEL_SERVER {
            texts.take(key, &next.texts);
            let row = next.values.iter().find(|row| row.key == key.path);
            let here = values.iter_mut().find(|row| row.key == key.path);
            if let (Some(row), Some(here)) = (row, here) {
                here.clone_from(row);
            }
        }
    }

    /// The key for the model server at this address, where it was given for that very one.
    pub(crate) fn model_key(&self, base_url: &str) -> Option<String> {
        let text = self.read().ok()?;
        let next = self.load(&text).ok()?;
        let known = next.texts.get(&keys::OPENAI_URL)?;
        let is_same = host_of(known) == host_of(base_url);
        let key = next.texts.get(&keys::OPENAI_KEY).filter(|_| is_same);
        key.map(str::to_owned)
    }

    fn write(
        &self,
        now: &str,
        next: &str,
        edits: &Edits,
        check: &Check,
    ) -> Result<Written, NaviError> {
        let before = self.load(now).map_err(|error| {
            let problem = problem_of(&error);
            NaviError::said(
                ErrorCode::ChangeConflict,
                self.phrase(PhraseCode::SettingsBroken)
                    .with("problem", problem),
            )
        })?;
        let loaded = self.load(next).map_err(|error| refusal(&error, edits))?;
        keys_stay_home(&before.texts, &loaded.texts, edits)?;
        let changed = edit::differing(now, next, keys::ALL).into_iter();
        let changed: Vec<&'static str> = changed.map(|key| key.path).collect();
        check(&loaded.settings, &changed)?;
        if next != now {
            let put = written::put(&self.loaded.file, now, next);
            put.map_err(|why| self.unwritten(why))?;
            *self.last.lock() = Some(LastWrite {
                version: written::version(next),
                before: Secret::new(now.to_owned()),
            });
        }
        Ok(Written { loaded, changed })
    }

    fn unwritten(&self, why: Unwritten) -> NaviError {
        let error = match why {
            Unwritten::Moved => return self.moved(),
            Unwritten::Failed(error) => error,
        };
        tracing::error!(%error, file = %self.loaded.file.display(), "settings could not be written");
        let reason = Phrase::plain(error.to_string());
        let unwritten = self.phrase(PhraseCode::SettingsUnwritten);
        NaviError::said(ErrorCode::Internal, unwritten.with("reason", reason))
    }

    fn read(&self) -> Result<String, NaviError> {
        written::read(&self.loaded.file).map_err(|error| self.unread(&error))
    }

    fn read_version(&self, version: &str) -> Result<String, NaviError> {
        let text = self.read()?;
        if written::version(&text) == version {
            return Ok(text);
        }
        Err(self.moved())
    }

    fn moved(&self) -> NaviError {
        let moved = self.phrase(PhraseCode::SettingsMoved);
        NaviError::said(ErrorCode::ChangeConflict, moved)
    }

    fn load(&self, text: &str) -> Result<Loaded, SettingsError> {
        load_with(&self.loaded.sources, Some((&self.loaded.file, text)))
    }

    /// A setting that the page may change.
    fn changeable(&self, name: &str) -> Result<&'static Key, NaviError> {
        let known = keys::ALL.iter().copied().find(|key| key.path == name);
        let Some(key) = known else {
            let named = [("name", name.to_owned())];
            let unknown = Phrase::new(PhraseCode::UnknownSetting, named);
            return Err(NaviError::said(ErrorCode::InvalidField, unknown));
        };
        match key.file_only {
            None => Ok(key),
            Some(_) => Err(self.said(ErrorCode::Forbidden, PhraseCode::SettingFileOnly, name)),
        }
    }

    /// What the environment says, the file cannot change.
    fn refuse_fixed(&self, key: &Key) -> Result<(), NaviError> {
        if self.loaded.sources.sets(key) {
            let fixed = PhraseCode::SettingInEnvironment;
            return Err(self.said(ErrorCode::ChangeConflict, fixed, key.variable));
        }
        Ok(())
    }

    fn broken(&self, reason: &str) -> NaviError {
        let broken = self.phrase(PhraseCode::SettingsBroken);
        let reason = Phrase::plain(redacted(reason));
        NaviError::said(ErrorCode::ChangeConflict, broken.with("problem", reason))
    }

    fn unread(&self, error: &std::io::Error) -> NaviError {
        let reason = Phrase::plain(error.to_string());
        let unread = self.phrase(PhraseCode::SettingsUnread);
        NaviError::said(ErrorCode::Internal, unread.with("reason", reason))
    }

    fn phrase(&self, code: PhraseCode) -> Phrase {
        Phrase::new(code, [("path", self.loaded.file.display().to_string())])
    }

    fn said(&self, code: ErrorCode, phrase: PhraseCode, name: &str) -> NaviError {
        let mut phrase = self.phrase(phrase);
        phrase.params.insert("name".to_owned(), name.to_owned());
        NaviError::said(code, phrase)
    }
}

/// What is shown in a secret's place is no value.
fn refuse_hidden(key: &Key, text: &str) -> Result<(), NaviError> {
    if text.contains(HIDDEN) {
        let key = [("key", key.path.to_owned())];
        let wrong = Phrase::new(PhraseCode::SettingWrong, key);
        let wrong = wrong.with("expected", PhraseCode::ExpectWhole);
        return Err(NaviError::said(ErrorCode::InvalidField, wrong));
    }
    Ok(())
}

/// A setting as it is in force, with what it will be where that is something else.
fn row_of(row: &ShownValue, in_force: &Texts, next: &Loaded) -> ShownValue {
    let key = keys::ALL.iter().find(|key| key.path == row.key);
    let stays = key.is_some_and(|key| in_force.get(key) == next.texts.get(key));
    let mut row = row.clone();
    if let Some(there) = next.values.iter().find(|it| it.key == row.key) {
        row.in_file = there.in_file;
        row.pending = (!stays).then(|| PendingValue {
            value: there.value.clone(),
            origin: there.origin.clone(),
        });
    }
    row
}

/// A key that was given for one address goes to no other.
fn keys_stay_home(before: &Texts, next: &Texts, edits: &Edits) -> Result<(), NaviError> {
    for (key, address) in SENT_TO {
        let (Some(now), Some(to)) = (next.get(key), next.get(address)) else {
            continue;
        };
        let moves = before.get(address).map(host_of) != Some(host_of(to));
        let is_given = edits.get(key.path).is_some_and(Option::is_some);
        if moves && !is_given && before.get(key) == Some(now) {
            let name = [("name", key.variable.to_owned())];
            let stays = Phrase::new(PhraseCode::KeyOfAnother, name);
            return Err(NaviError::said(ErrorCode::InvalidField, stays));
        }
    }
    Ok(())
}

/// To whom an address leads: scheme, host and port.
fn host_of(address: &str) -> Option<url::Origin> {
    let url = url::Url::parse(&addresses::whole(address));
    url.ok().map(|url| url.origin())
}

/// Why changes are refused: by the setting that is none, where it is one of them.
fn refusal(error: &SettingsError, edits: &Edits) -> NaviError {
    let mut wrong = error.wrong.iter();
    let wrong = wrong.find(|(path, _)| edits.contains_key(path));
    let phrase = match wrong {
        Some((path, expected)) => {
            let key = [("key", (*path).to_owned())];
            Phrase::new(PhraseCode::SettingWrong, key).with("expected", expectation(expected))
        }
        None => Phrase::from(PhraseCode::SettingsRefused).with("problem", problem_of(error)),
    };
    NaviError::said(ErrorCode::InvalidField, phrase)
}

fn problem_of(error: &SettingsError) -> Phrase {
    let first = error.problems.first().map_or("", String::as_str);
    Phrase::plain(redacted(first))
}

/// What a setting should be, as a code where the page has words for it.
fn expectation(text: &str) -> Phrase {
    let range = text.strip_prefix("a number from ");
    if let Some((from, to)) = range.and_then(|range| range.split_once(" to ")) {
        let range = [("from", from.to_owned()), ("to", to.to_owned())];
        return Phrase::new(PhraseCode::ExpectNumber, range);
    }
    if let Some(words) = text.strip_prefix("one of ") {
        return Phrase::new(PhraseCode::ExpectOneOf, [("words", words.to_owned())]);
    }
    PhraseCode::saying(text).map_or_else(|| Phrase::plain(text), Phrase::from)
}
