//! How Navi's values stand in columns, the same on both databases.

use std::borrow::Cow;

use chrono::{DateTime, SubsecRound, Utc};
use memchr::{memchr, memchr2};
use sea_orm::sea_query::{ArrayType, ColumnType, Nullable, ValueType, ValueTypeErr};
use sea_orm::{ColIdx, QueryResult, TryGetError, TryGetable, Value};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::StoreError;

/// Text from outside. PostgreSQL refuses U+0000 in text, models and tools produce it all
/// the same, and a log that gives back other text than was told would show two tabs two
/// conversations. So it is escaped on the way in and restored on the way out; all other
/// text stands in the column as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DbText(pub(super) String);

/// A noncharacter, which Unicode sets aside for use inside a program.
const ESCAPE: char = '\u{FDD0}';
/// Its first byte, which few other characters begin with.
const ESCAPE_LEAD: u8 = 0xEF;

impl DbText {
    fn escape(text: String) -> String {
        if memchr2(0, ESCAPE_LEAD, text.as_bytes()).is_none() {
            return text;
        }
        let mut escaped = String::with_capacity(text.len() + 8);
        for c in text.chars() {
            match c {
                '\0' => escaped.extend([ESCAPE, '0']),
                ESCAPE => escaped.extend([ESCAPE, '1']),
                other => escaped.push(other),
            }
        }
        escaped
    }

    fn restore(text: String) -> String {
        if memchr(ESCAPE_LEAD, text.as_bytes()).is_none() {
            return text;
        }
        let mut restored = String::with_capacity(text.len());
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                ESCAPE if chars.next() == Some('0') => restored.push('\0'),
                other => restored.push(other),
            }
        }
        restored
    }
}

impl<'a, T: Into<Cow<'a, str>>> From<T> for DbText {
    fn from(text: T) -> Self {
        Self(text.into().into_owned())
    }
}

impl From<DbText> for Value {
    fn from(text: DbText) -> Self {
        DbText::escape(text.0).into()
    }
}

impl TryGetable for DbText {
    fn try_get_by<I: ColIdx>(row: &QueryResult, index: I) -> Result<Self, TryGetError> {
        String::try_get_by(row, index).map(|text| Self(Self::restore(text)))
    }
}

impl ValueType for DbText {
    fn try_from(value: Value) -> Result<Self, ValueTypeErr> {
        <String as ValueType>::try_from(value).map(|text| Self(Self::restore(text)))
    }

    fn type_name() -> String {
        "DbText".to_owned()
    }

    fn array_type() -> ArrayType {
        ArrayType::String
    }

    fn column_type() -> ColumnType {
        ColumnType::Text
    }
}

impl Nullable for DbText {
    fn null() -> Value {
        <String as Nullable>::null()
    }
}

/// What a column holds is not what this program wrote.
pub(super) fn corrupt(column: &str, problem: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("{column}: {problem}"))
}

/// An enum's name on the wire, which is its name in the database too.
pub(super) fn name_of<T: Serialize>(value: &T) -> Result<String, StoreError> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => Ok(name),
        other => Err(corrupt("a name", format!("{other:?} is none"))),
    }
}

/// The enum that has this name.
pub(super) fn named<T: DeserializeOwned>(column: &str, name: String) -> Result<T, StoreError> {
    serde_json::from_value(serde_json::Value::String(name)).map_err(|e| corrupt(column, e))
}

pub(super) fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|e| corrupt("JSON", e))
}

/// A list's JSON, or null for the empty one: most messages have no images and no calls.
pub(super) fn list_to_json<T: Serialize>(list: &[T]) -> Result<Option<String>, StoreError> {
    (!list.is_empty()).then(|| to_json(list)).transpose()
}

pub(super) fn from_json<T: DeserializeOwned>(column: &str, json: &str) -> Result<T, StoreError> {
    serde_json::from_str(json).map_err(|e| corrupt(column, e))
}

pub(super) fn option_to_json<T: Serialize>(
    value: Option<&T>,
) -> Result<Option<DbText>, StoreError> {
    Ok(value.map(to_json).transpose()?.map(Into::into))
}

pub(super) fn option_from_json<T: DeserializeOwned>(
    column: &str,
    json: Option<DbText>,
) -> Result<Option<T>, StoreError> {
    json.map(|json| from_json(column, &json.0)).transpose()
}

pub(super) fn list_from_json<T: DeserializeOwned>(
    column: &str,
    json: Option<&str>,
) -> Result<Vec<T>, StoreError> {
    json.map_or_else(|| Ok(Vec::new()), |json| from_json(column, json))
}

/// A count or number as a column holds it.
pub(super) fn to_db(number: u64) -> Result<i64, StoreError> {
    <i64 as TryFrom<u64>>::try_from(number)
        .map_err(|_| corrupt("a number", format!("{number} is too large")))
}

pub(super) fn from_db<T: TryFrom<i64>>(column: &str, number: i64) -> Result<T, StoreError> {
    <T as TryFrom<i64>>::try_from(number)
        .map_err(|_| corrupt(column, format!("{number} is out of range")))
}

/// A time as precise as both databases keep it: PostgreSQL has microseconds.
pub(super) fn db_time(time: DateTime<Utc>) -> DateTime<Utc> {
    time.trunc_subsecs(6)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::DbText;

    proptest! {
        #[test]
        fn any_text_comes_back_and_holds_no_nul(
            text in proptest::collection::vec(
                prop_oneof![Just('\0'), Just('\u{FDD0}'), Just('0'), Just('1'), any::<char>()],
                0..40,
            ).prop_map(String::from_iter)
        ) {
            let escaped = DbText::escape(text.clone());
            prop_assert!(!escaped.contains('\0'));
            prop_assert_eq!(DbText::restore(escaped), text);
        }
    }
}
