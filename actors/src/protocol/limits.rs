//! How much one person may have of what all share.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// What each limit may be, for all people and for one.
pub const RUNS: RangeInclusive<u32> = 1..=10_000;
pub const UPLOADS: RangeInclusive<u32> = 1..=1_000;
pub const SESSIONS: RangeInclusive<u32> = 1..=10_000_000;
pub const FILES_MB: RangeInclusive<u32> = 1..=100_000_000;
pub const TOKENS_A_DAY: RangeInclusive<u64> = 0..=1_000_000_000_000;
pub const TABS: RangeInclusive<u32> = 1..=4_000;

/// What one person has at the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PersonLimits {
    /// Runs that go at once. Further ones wait.
    pub runs: u32,
    /// Uploads on their way at once.
    pub uploads: u32,
    /// Conversations, those that are put away with them.
    pub sessions: u32,
    /// Of files that were sent in or given back, in megabytes.
    pub files_mb: u32,
    /// Tokens that runs used in the last 24 hours; 0: as many as they like.
    pub tokens_a_day: u64,
    /// Tabs, and programs that listen as tabs do.
    pub tabs: u32,
}

impl PersonLimits {
    pub(crate) fn file_bytes(self) -> u64 {
        u64::from(self.files_mb) * 1024 * 1024
    }

    /// None: as many as they like.
    pub(crate) fn day_tokens(self) -> Option<u64> {
        Some(self.tokens_a_day).filter(|most| *most > 0)
    }

    /// These, but for what is somebody's own.
    #[must_use]
    pub fn but(self, own: OwnLimits) -> Self {
        Self {
            runs: own.runs.unwrap_or(self.runs),
            uploads: own.uploads.unwrap_or(self.uploads),
            sessions: own.sessions.unwrap_or(self.sessions),
            files_mb: own.files_mb.unwrap_or(self.files_mb),
            tokens_a_day: own.tokens_a_day.unwrap_or(self.tokens_a_day),
            tabs: own.tabs.unwrap_or(self.tabs),
        }
    }
}

/// What of it an admin set for one person alone; null: as the settings have it for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OwnLimits {
    pub runs: Option<u32>,
    pub uploads: Option<u32>,
    pub sessions: Option<u32>,
    pub files_mb: Option<u32>,
    /// 0: as many as they like.
    pub tokens_a_day: Option<u64>,
    pub tabs: Option<u32>,
}

/// What of a person's own limits becomes something else. What is left out stays; null: as the
/// settings have it for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitsChange {
    /// Runs that go at once.
    #[serde(default, deserialize_with = "even_null")]
    pub runs: Option<Option<u32>>,
    /// Uploads on their way at once.
    #[serde(default, deserialize_with = "even_null")]
    pub uploads: Option<Option<u32>>,
    /// Conversations.
    #[serde(default, deserialize_with = "even_null")]
    pub sessions: Option<Option<u32>>,
    /// Of all files, in megabytes.
    #[serde(default, deserialize_with = "even_null")]
    pub files_mb: Option<Option<u32>>,
    /// Tokens that runs use in 24 hours; 0: as many as they like.
    #[serde(default, deserialize_with = "even_null")]
    pub tokens_a_day: Option<Option<u64>>,
    /// Tabs, and programs that listen as tabs do.
    #[serde(default, deserialize_with = "even_null")]
    pub tabs: Option<Option<u32>>,
}

/// A field that is there, be it null.
fn even_null<'de, D, T>(value: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(value).map(Some)
}

impl LimitsChange {
    /// What these limits become.
    #[must_use]
    pub fn of(self, own: OwnLimits) -> OwnLimits {
        OwnLimits {
            runs: self.runs.unwrap_or(own.runs),
            uploads: self.uploads.unwrap_or(own.uploads),
            sessions: self.sessions.unwrap_or(own.sessions),
            files_mb: self.files_mb.unwrap_or(own.files_mb),
            tokens_a_day: self.tokens_a_day.unwrap_or(own.tokens_a_day),
            tabs: self.tabs.unwrap_or(own.tabs),
        }
    }

    /// # Errors
    /// Which of them nobody can have.
    pub fn check(self) -> Result<(), String> {
        within("runs", self.runs, &RUNS)?;
        within("uploads", self.uploads, &UPLOADS)?;
        within("sessions", self.sessions, &SESSIONS)?;
        within("files_mb", self.files_mb, &FILES_MB)?;
        within("tokens_a_day", self.tokens_a_day, &TOKENS_A_DAY)?;
        within("tabs", self.tabs, &TABS)
    }

    /// Each that becomes something else, and what: none where it is the installation's.
    pub fn told(self) -> impl Iterator<Item = (&'static str, Option<u64>)> {
        let small = |limit: Option<Option<u32>>| limit.map(|limit| limit.map(u64::from));
        let all = [
            ("runs", small(self.runs)),
            ("uploads", small(self.uploads)),
            ("sessions", small(self.sessions)),
            ("files_mb", small(self.files_mb)),
            ("tokens_a_day", self.tokens_a_day),
            ("tabs", small(self.tabs)),
        ];
        let changed = all.into_iter();
        changed.filter_map(|(name, limit)| Some((name, limit?)))
    }
}

fn within<T: Copy + PartialOrd + std::fmt::Display>(
    name: &str,
    limit: Option<Option<T>>,
    range: &RangeInclusive<T>,
) -> Result<(), String> {
    match limit.flatten() {
        Some(limit) if !range.contains(&limit) => Err(format!(
            "limits.{name} is {limit}; it must be {} to {}, or null for what all have",
            range.start(),
            range.end()
        )),
        _ => Ok(()),
    }
}

/// What a person has now of what is limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LimitsUse {
    pub runs: u64,
    pub uploads: u64,
    pub sessions: u64,
    pub file_bytes: u64,
    /// In the last 24 hours.
    pub tokens_a_day: u64,
    pub tabs: u64,
}

/// How a person stands to what is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LimitsInfo {
    pub own: OwnLimits,
    pub in_force: PersonLimits,
    pub used: LimitsUse,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(text: &str) -> LimitsChange {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn what_is_left_out_stays_and_null_takes_back() {
        let own = change("{\"runs\": 2, \"tokens_a_day\": 0}").of(OwnLimits::default());
        assert_eq!(
            (own.runs, own.tokens_a_day, own.tabs),
            (Some(2), Some(0), None)
        );
        let next = change("{\"runs\": null, \"tabs\": 7}");
        let own = next.of(own);
        assert_eq!(
            (own.runs, own.tokens_a_day, own.tabs),
            (None, Some(0), Some(7))
        );
        let told: Vec<_> = next.told().collect();
        assert_eq!(told, [("runs", None), ("tabs", Some(7))]);
    }

    #[test]
    fn what_nobody_can_have_says_which_it_is() {
        for text in [
            "{\"runs\": 0}",
            "{\"runs\": 10001}",
            "{\"uploads\": 0}",
            "{\"sessions\": 10000001}",
            "{\"files_mb\": 0}",
            "{\"tokens_a_day\": 1000000000001}",
            "{\"tabs\": 4001}",
        ] {
            let problem = change(text).check().unwrap_err();
            let name = text.split('"').nth(1).unwrap();
            assert!(problem.contains(name), "{problem}");
        }
        change("{\"runs\": 1, \"tabs\": 4000, \"tokens_a_day\": 0, \"uploads\": null}")
            .check()
            .unwrap();
    }
}
