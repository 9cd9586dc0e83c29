//! Who gets a backend's slot next, who gives it back, and what those who wait are told.

use std::time::Duration;

use strum::IntoStaticStr;

use crate::protocol::phrase::{Phrase, PhraseCode};

/// Who goes first when several wait for a slot; of one lane, who came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Priority {
    /// A person waits for the answer.
    Interactive,
    /// A child run: a person waits for its parent.
    Subagent,
    /// The plan of a run that has not begun to answer.
    Planning,
    /// A summary of old turns that a run waits for.
    Compression,
    /// Titles, memory, a summary after a turn: nobody waits.
    Background,
}

/// Whoever waits this long moves one lane up, and once more each time it passes again: so
/// that the last lane is served too where the first is never empty.
const AGEING: Duration = Duration::from_secs(60);

impl Priority {
    /// The lane that someone stands in who came with this priority and waits so long.
    #[must_use]
    pub fn after(self, waited: Duration) -> Self {
        const LANES: [Priority; 5] = [
            Priority::Interactive,
            Priority::Subagent,
            Priority::Planning,
            Priority::Compression,
            Priority::Background,
        ];
        let up = usize::try_from(waited.as_secs() / AGEING.as_secs()).unwrap_or(usize::MAX);
        LANES[(self as usize).saturating_sub(up)]
    }

    /// Whether background work gives its slot back for this.
    #[must_use]
    pub fn presses(self) -> bool {
        match self {
            Self::Interactive | Self::Subagent | Self::Planning | Self::Compression => true,
            Self::Background => false,
        }
    }

    /// Whether a call that was let in from this lane gives its slot back to one that presses.
    /// A call of the last lane that was let in from a higher one has waited its time.
    #[must_use]
    pub fn gives_way(self) -> bool {
        self == Self::Background
    }
}

/// How a person fares beside others. Who holds less goes first, and of equals who was let in longer
/// ago: the slots are shared between people before they are between one's runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share {
    /// How many slots are theirs now.
    pub held: usize,
    /// When they were let in last, as a count of all who were; 0: nobody remembers.
    pub served: u64,
}

impl Share {
    /// Whether they leave the rest to others: where others ask, the last of several slots is kept
    /// for whoever has none, since what holds the others may take long.
    #[must_use]
    pub fn is_used_up(self, most: usize) -> bool {
        most > 1 && self.held + 1 >= most
    }
}

/// One that waits: what it came with, for how long it waits, and how its person fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub priority: Priority,
    pub waited: Duration,
    pub share: Share,
    /// It waits for another of its person's to end.
    pub held_back: bool,
}

impl Waiting {
    /// The lane that it stands in by now.
    #[must_use]
    pub fn lane(self) -> Priority {
        self.priority.after(self.waited)
    }

    /// What decides its turn, the least first. Work that nobody waits for stands behind
    /// everybody's that somebody does.
    fn turn(self) -> (bool, bool, Share, Priority) {
        let lane = self.lane();
        let unwatched = lane == Priority::Background;
        (self.held_back, unwatched, self.share, lane)
    }
}

/// The place of the next to be let in. `waiting` is in the order of arrival.
#[must_use]
pub fn next(waiting: &[Waiting]) -> Option<usize> {
    // Of equals this is the first.
    let next = (0..waiting.len()).min_by_key(|at| waiting[*at].turn());
    next.filter(|at| !waiting[*at].held_back)
}

/// How many are let in before the one at this place.
#[must_use]
pub fn ahead(waiting: &[Waiting], at: usize) -> usize {
    let Some(turn) = waiting.get(at).map(|it| it.turn()) else {
        return 0;
    };
    waiting
        .iter()
        .enumerate()
        .filter(|(other, it)| (it.turn(), *other) < (turn, at))
        .count()
}

/// How a backend's queue looks to one that waits in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueView {
    /// What holds the slots.
    pub running: Vec<Priority>,
    /// How many go first.
    pub ahead: usize,
    /// How many the backend is sent at once.
    pub most: usize,
}

/// The sentence for one that waits. It names kinds of work only: whose it is, is nobody
/// else's business.
#[must_use]
pub fn waiting_phrase(view: &QueueView) -> Phrase {
    let kinds = [
        Priority::Interactive,
        Priority::Subagent,
        Priority::Planning,
        Priority::Compression,
        Priority::Background,
    ];
    let kinds = kinds.into_iter().filter_map(|kind| {
        let count = view.running.iter().filter(|it| **it == kind).count();
        let (one, several) = words(kind);
        match count {
            0 => None,
            1 => Some(Phrase::from(one)),
            _ => Some(numbered(several, count)),
        }
    });
    let Some(holds) = listed(kinds.collect()) else {
        return PhraseCode::MakingReady.into();
    };
    let order = match view.ahead {
        0 => PhraseCode::GoesNext.into(),
        1 => PhraseCode::AheadOne.into(),
        more => numbered(PhraseCode::Ahead, more),
    };
    let busy = match view.most {
        0 | 1 => PhraseCode::BusyWith.into(),
        most => numbered(PhraseCode::BusyWithMost, most),
    };
    busy.with("holds", holds).with("order", order)
}

fn numbered(code: PhraseCode, n: usize) -> Phrase {
    Phrase::new(code, [("n", n.to_string())])
}

/// One after the other, as a person lists them.
fn listed(mut phrases: Vec<Phrase>) -> Option<Phrase> {
    let last = phrases.pop()?;
    let before = phrases.into_iter().rev().reduce(|next, first| {
        Phrase::from(PhraseCode::Listed)
            .with("first", first)
            .with("next", next)
    });
    Some(match before {
        None => last,
        Some(before) => Phrase::from(PhraseCode::And)
            .with("first", before)
            .with("last", last),
    })
}

/// One piece of this work, and several.
fn words(kind: Priority) -> (PhraseCode, PhraseCode) {
    match kind {
        Priority::Interactive => (PhraseCode::WorkAnswer, PhraseCode::WorkAnswers),
        Priority::Subagent => (PhraseCode::WorkSubagent, PhraseCode::WorkSubagents),
        Priority::Planning => (PhraseCode::WorkPlan, PhraseCode::WorkPlans),
        Priority::Compression => (PhraseCode::WorkSummary, PhraseCode::WorkSummaries),
        Priority::Background => (PhraseCode::WorkUnawaited, PhraseCode::WorksUnawaited),
    }
}

#[cfg(test)]
mod tests {
    use super::Priority::*;
    use super::*;

    fn waiting(priority: Priority, seconds: u64) -> Waiting {
        Waiting {
            priority,
            waited: Duration::from_secs(seconds),
            share: Share::default(),
            held_back: false,
        }
    }

    fn of(priority: Priority, held: usize, served: u64) -> Waiting {
        Waiting {
            share: Share { held, served },
            ..waiting(priority, 0)
        }
    }

    #[test]
    fn who_holds_less_goes_first_and_of_equals_who_was_let_in_longer_ago() {
        let queue = [
            of(Interactive, 3, 1),
            of(Subagent, 2, 7),
            of(Planning, 2, 4),
        ];
        assert_eq!(next(&queue), Some(2));
        assert_eq!(ahead(&queue, 0), 2);
        // Work that nobody waits for stands behind everybody's.
        let queue = [of(Background, 0, 0), of(Interactive, 5, 9)];
        assert_eq!(next(&queue), Some(1));
    }

    #[test]
    fn the_last_of_several_slots_is_kept_for_who_has_none() {
        let used_up = |held, most| Share { held, served: 0 }.is_used_up(most);
        assert!(!used_up(0, 1) && !used_up(0, 2) && used_up(1, 2));
        assert!(!used_up(2, 4) && used_up(3, 4));
        let held_back = Waiting {
            held_back: true,
            ..of(Interactive, 3, 0)
        };
        assert_eq!(next(&[held_back]), None);
        assert_eq!(next(&[held_back, of(Background, 4, 0)]), Some(1));
    }

    #[test]
    fn a_minute_is_a_lane() {
        for (priority, seconds, lane) in [
            (Background, 0, Background),
            (Background, 59, Background),
            (Background, 60, Compression),
            (Background, 239, Subagent),
            (Background, 240, Interactive),
            (Background, u64::MAX, Interactive),
            (Planning, 61, Subagent),
            (Interactive, 600, Interactive),
        ] {
            let now = waiting(priority, seconds).lane();
            assert_eq!(now, lane, "{priority:?} after {seconds} s");
        }
    }

    #[test]
    fn the_first_of_the_first_lane_is_next() {
        let queue = [
            waiting(Background, 70),
            waiting(Planning, 30),
            waiting(Interactive, 20),
            waiting(Interactive, 10),
        ];
        assert_eq!(next(&queue), Some(2));
        assert_eq!(ahead(&queue, 0), 3);
        assert_eq!(ahead(&queue, 1), 2);
        assert_eq!(ahead(&queue, 2), 0);
        assert_eq!(ahead(&queue, 3), 1);
        assert_eq!(next(&[]), None);
    }

    #[test]
    fn who_waits_long_enough_is_let_in_before_those_that_came_later() {
        let queue = [waiting(Background, 240), waiting(Interactive, 1)];
        assert_eq!(next(&queue), Some(0));
        let queue = [waiting(Background, 239), waiting(Interactive, 1)];
        assert_eq!(next(&queue), Some(1));
    }

    #[test]
    fn the_sentence_names_kinds_and_counts() {
        let told = |running: &[Priority], ahead: usize| {
            waiting_phrase(&QueueView {
                running: running.to_vec(),
                ahead,
                most: running.len(),
            })
            .to_string()
        };
        assert_eq!(
            told(&[Interactive], 2),
            "the model is busy with an answer in another conversation; 2 more go first"
        );
        assert_eq!(
            told(&[Background], 0),
            "the model is busy with work that nobody waits for; this is next"
        );
        assert_eq!(
            told(&[Planning, Interactive, Interactive, Compression], 1),
            "the model is busy with 2 answers in other conversations, a plan and a summary, and takes 4 at once; 1 more goes first"
        );
        assert_eq!(told(&[], 0), "the model is being got ready");
    }
}
