//! What Navi says to a person in words of her own, as a code and what stands in it: the page says
//! it in its reader's language. The English is in `codes`, and a test of the page holds its own to it.

mod codes;

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::codes::{CheckName, Label, PhraseCode};

/// Words of Navi's own. They are told in English as they are written out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Phrase {
    pub code: PhraseCode,
    /// What stands in it, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
    /// Those of them that are Navi's own words too, by the same names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub phrases: BTreeMap<String, Phrase>,
}

/// What is wrong, and the one thing to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Trouble {
    pub problem: Phrase,
    pub remedy: Phrase,
}

impl Phrase {
    #[must_use]
    pub fn new<const N: usize>(code: PhraseCode, params: [(&str, String); N]) -> Self {
        let params = params.map(|(name, value)| (name.to_owned(), value));
        Self {
            code,
            params: params.into(),
            phrases: BTreeMap::new(),
        }
    }

    /// What somebody else says, word for word.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::new(PhraseCode::Plain, [("text", text.into())])
    }

    /// The same with words of Navi's own standing in it.
    #[must_use]
    pub fn with(mut self, name: &str, phrase: impl Into<Self>) -> Self {
        let phrase = phrase.into();
        self.params.insert(name.to_owned(), phrase.to_string());
        self.phrases.insert(name.to_owned(), phrase);
        self
    }

    /// The same with all that stands in it made fit to be shown.
    #[must_use]
    pub fn shown(self, fit: impl Fn(&str) -> String + Copy) -> Self {
        let (params, phrases) = (self.params.into_iter(), self.phrases.into_iter());
        Self {
            code: self.code,
            params: params.map(|(name, value)| (name, fit(&value))).collect(),
            phrases: phrases
                .map(|(name, phrase)| (name, phrase.shown(fit)))
                .collect(),
        }
    }
}

impl Trouble {
    pub fn new(problem: impl Into<Phrase>, remedy: impl Into<Phrase>) -> Self {
        Self {
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }
}

impl From<Trouble> for Phrase {
    fn from(Trouble { problem, remedy }: Trouble) -> Self {
        Self::from(PhraseCode::Remedied)
            .with("problem", problem)
            .with("remedy", remedy)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.problem, self.remedy)
    }
}

impl From<PhraseCode> for Phrase {
    fn from(code: PhraseCode) -> Self {
        Self::new(code, [])
    }
}

impl fmt::Display for Phrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.code.english();
        // What stands in it is taken as it is, braces and all.
        while let Some((before, rest)) = left.split_once('{') {
            let (name, after) = rest.split_once('}').unwrap_or((rest, ""));
            f.write_str(before)?;
            f.write_str(self.params.get(name).map_or("", String::as_str))?;
            left = after;
        }
        f.write_str(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_a_phrase_is_not_read_again() {
        let moved = Phrase::new(
            PhraseCode::Move,
            [("from", "{to}".to_owned()), ("to", "b".to_owned())],
        );
        assert_eq!(moved.to_string(), "move `{to}` to `b`");
        let told = serde_json::to_value(&moved).unwrap();
        assert_eq!(
            told,
            serde_json::json!({"code": "move", "params": {"from": "{to}", "to": "b"}})
        );
        let fit = moved.shown(|value| value.replace('{', "("));
        assert_eq!(fit.to_string(), "move `(to}` to `b`");
    }

    #[test]
    fn words_that_stand_in_words_are_told_both_ways_and_shown_with_the_same_care() {
        let trouble = Trouble::new(
            Phrase::new(PhraseCode::UidsTaken, [("uids", "5-6".to_owned())])
                .with("reason", Phrase::plain("a\tb")),
            PhraseCode::NameUids,
        );
        let phrase = Phrase::from(trouble.clone());
        let text = "NAVI_SANDBOX_UIDS is 5-6, and a\tb; name a range that nobody has, or none";
        assert_eq!(phrase.to_string(), text);
        assert_eq!(trouble.to_string(), text);
        let told = serde_json::to_value(&phrase).unwrap();
        assert_eq!(told["phrases"]["remedy"]["code"], "name_uids");
        assert_eq!(told["phrases"]["problem"]["params"]["reason"], "a\tb");
        let shown = phrase.shown(|text| text.replace('\t', "<tab>"));
        let reason = &shown.phrases["problem"].phrases["reason"];
        assert_eq!(reason.to_string(), "a<tab>b");
        assert!(!shown.to_string().contains('\t'));
    }
}
