//! How somebody reaches a conversation, and what that is good for. Whoever does not reach it finds
//! that there is none.

use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::{LinkId, UserId};

/// The most who take part in a conversation beside its owner.
pub const MAX_PEOPLE: u64 = 50;
/// The most links to one that are good at once.
pub const MAX_LINKS: u64 = 20;
/// The longest a link may be good for.
pub const MAX_LINK_DAYS: u32 = 90;

/// Who it is that reaches for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    Person(UserId),
    /// Whoever has this link.
    Link(LinkId),
}

impl By {
    /// Who it is, where that is known.
    #[must_use]
    pub const fn person(self) -> Option<UserId> {
        match self {
            Self::Person(user) => Some(user),
            Self::Link(_) => None,
        }
    }
}

impl From<UserId> for By {
    fn from(user: UserId) -> Self {
        Self::Person(user)
    }
}

/// How far somebody reaches. The later has all that the earlier has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Sees what is said, and what the runs do.
    Looks,
    /// Speaks, steers what goes, answers requests for consent one by one, and has its files.
    TakesPart,
    /// Shares and deletes it, and says what Navi may do in it.
    Owns,
}

impl Reach {
    /// # Errors
    /// `forbidden`, where something needs more.
    pub fn check(self, needed: Self) -> Result<(), NaviError> {
        if self >= needed {
            return Ok(());
        }
        let lacking = match needed {
            Self::Owns => {
                "this conversation is somebody else's: only its owner shares, renames and deletes it, and changes what Navi may do in it"
            }
            Self::TakesPart | Self::Looks => "who came by a link looks, and changes nothing",
        };
        Err(NaviError::new(ErrorCode::Forbidden, lacking))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_reaches_further_may_all_that_others_may() {
        let all = [Reach::Looks, Reach::TakesPart, Reach::Owns];
        for (at, reach) in all.into_iter().enumerate() {
            for (needed_at, needed) in all.into_iter().enumerate() {
                assert_eq!(reach.check(needed).is_ok(), at >= needed_at);
            }
        }
    }
}
