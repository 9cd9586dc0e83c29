//! The user ids that commands of different people run under, where the service is root: a range
//! of which nobody else has any.

use std::fmt;
use std::fs;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::user::SandboxUser;
use crate::protocol::phrase::{Phrase, PhraseCode, Trouble};

/// What is taken where the setting names nothing: the first of these that is free here.
const USUAL: [Uids; 2] = [
    // Of the ids that systemd keeps for nothing (UIDS-GIDS), and that no tool gives away.
    Uids {
        first: 1_900_000_000,
        last: 1_900_065_535,
    },
    // In a container that has 65,536 ids: those of users that come and go with a service
    // (DynamicUser), which are seldom there.
    Uids {
        first: 61_184,
        last: 65_519,
    },
];

/// Nobody's, by old and new ways of saying that.
const NOBODYS: [u32; 3] = [65_534, 65_535, u32::MAX];

/// Below are the system's own accounts.
const FIRST: u32 = 1_000;

/// A range of user ids, with both its ends; each is a group's id, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uids {
    first: u32,
    last: u32,
}

/// What the settings say of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PersonUids {
    #[default]
    Usual,
    From(Uids),
    /// Everybody's commands run as one user.
    None,
}

impl fmt::Display for Uids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

impl Uids {
    /// A range as a person writes it.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let ends = text.split_once('-');
        let ends = ends.and_then(|(first, last)| {
            Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
        });
        let range = ends.map(|(first, last)| Self { first, last });
        range
            .filter(|range| FIRST <= range.first && range.first <= range.last)
            .filter(|range| !NOBODYS.iter().any(|id| range.has(*id)))
            .ok_or_else(|| {
                format!(
                    "none, or a range of user ids from {FIRST} on that nobody has, such as {}, and without 65534 and 65535",
                    USUAL[0]
                )
            })
    }

    /// One id.
    pub(super) const fn one(id: u32) -> Self {
        Self {
            first: id,
            last: id,
        }
    }

    pub(super) const fn has(self, id: u32) -> bool {
        self.first <= id && id <= self.last
    }

    /// From the first to the last.
    pub const fn range(self) -> RangeInclusive<u32> {
        self.first..=self.last
    }

    /// Why these cannot be used on this machine.
    fn taken(self, usual: &SandboxUser) -> Result<(), Phrase> {
        if self.has(usual.uid) || self.has(usual.gid) {
            let name = [("name", usual.name.clone())];
            return Err(Phrase::new(PhraseCode::UidsOfUser, name));
        }
        let by = |code, name: &str, table: &str| {
            Phrase::new(
                code,
                [("name", name.to_owned()), ("table", table.to_owned())],
            )
        };
        for table in ["/proc/self/uid_map", "/proc/self/gid_map"] {
            let map = fs::read_to_string(table).unwrap_or_default();
            if !self.is_mapped(&map) {
                return Err(PhraseCode::UidsUnmapped.into());
            }
        }
        for table in ["/etc/passwd", "/etc/group"] {
            let accounts = fs::read_to_string(table).unwrap_or_default();
            if let Some(name) = self.holder(&accounts) {
                return Err(by(PhraseCode::UidsHad, name, table));
            }
        }
        for table in ["/etc/subuid", "/etc/subgid"] {
            let given = fs::read_to_string(table).unwrap_or_default();
            if let Some(name) = self.borrower(&given) {
                return Err(by(PhraseCode::UidsGiven, name, table));
            }
        }
        Ok(())
    }

    /// Whether a user namespace's map (user_namespaces(7)) has all of them.
    fn is_mapped(self, map: &str) -> bool {
        map.lines().any(|line| {
            let mut words = line.split_whitespace().map(str::parse::<u64>);
            let (Some(Ok(inside)), Some(Ok(count))) = (words.next(), words.nth(1)) else {
                return false;
            };
            inside <= u64::from(self.first) && u64::from(self.last) < inside.saturating_add(count)
        })
    }

    /// Who of a table of accounts or groups has one.
    fn holder(self, accounts: &str) -> Option<&str> {
        accounts.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            let id: u32 = fields.nth(1)?.parse().ok()?;
            self.has(id).then_some(name)
        })
    }

    /// Who was given some for containers (subuid(5)).
    fn borrower(self, given: &str) -> Option<&str> {
        given.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            let first: u64 = fields.next()?.parse().ok()?;
            let count: u64 = fields.next()?.trim().parse().ok()?;
            let overlaps = first <= u64::from(self.last)
                && u64::from(self.first) < first.saturating_add(count);
            overlaps.then_some(name)
        })
    }
}

/// The ids that people's commands run under; none where they all run as `usual`, or where nobody
/// is dropped to.
///
/// # Errors
/// Why those that the setting names cannot be used.
pub(super) fn wanted(
    setting: PersonUids,
    usual: Option<&SandboxUser>,
) -> Result<Option<Uids>, Trouble> {
    let Some(usual) = usual else {
        return Ok(None);
    };
    match setting {
        PersonUids::None => Ok(None),
        PersonUids::Usual => Ok(USUAL.into_iter().find(|ids| ids.taken(usual).is_ok())),
        PersonUids::From(ids) => ids.taken(usual).map(|()| Some(ids)).map_err(|why| {
            Trouble::new(
                Phrase::new(PhraseCode::UidsTaken, [("uids", ids.to_string())]).with("reason", why),
                PhraseCode::NameUids,
            )
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Uids {
        Uids::parse(text).unwrap()
    }

    #[test]
    fn a_range_is_read_and_one_that_is_somebodys_is_not() {
        assert_eq!(
            ids("200000-265535"),
            Uids {
                first: 200_000,
                last: 265_535
            }
        );
        for wrong in [
            "",
            "5",
            "0-10",
            "999-2000",
            "3000-2000",
            "60000-70000",
            "1000-4294967295",
            "1000-4294967296",
            "a-b",
            "-1-5",
        ] {
            assert!(Uids::parse(wrong).is_err(), "{wrong}");
        }
        for usual in USUAL {
            assert_eq!(ids(&usual.to_string()), usual);
        }
    }

    #[test]
    fn who_has_one_of_them_is_found() {
        let range = ids("200000-265535");
        assert_eq!(
            range.holder("root:x:0:0::/:/bin/sh\nann:x:1000:1000::/:\n"),
            None
        );
        assert_eq!(range.holder("eve:x:265535:1::/:/bin/sh"), Some("eve"));
        assert_eq!(range.borrower("ann:100000:65536\n"), None);
        assert_eq!(
            range.borrower("ann:100000:65536\nben:165536:65536\n"),
            Some("ben")
        );
        assert!(range.is_mapped("         0          0 4294967295\n"));
        assert!(!range.is_mapped("0 1000 1\n1 100000 65536\n"));
        assert!(ids("61184-65519").is_mapped("0 1000 1\n1 100000 65536\n"));
    }

    #[test]
    fn who_drops_to_nobody_gives_no_ids_away() {
        let named = PersonUids::From(ids("200000-265535"));
        assert_eq!(wanted(named, None), Ok(None));
        let user = SandboxUser {
            name: "box".to_owned(),
            uid: 200_001,
            gid: 200_001,
        };
        let refused = wanted(named, Some(&user)).unwrap_err().to_string();
        assert!(refused.contains("the user box is one of them"), "{refused}");
        assert_eq!(wanted(PersonUids::None, Some(&user)), Ok(None));
    }
}
