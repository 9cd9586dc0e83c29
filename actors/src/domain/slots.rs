//! How many requests a backend is sent at once (DESIGN section 5): as many as was set, or as it
//! says, or as was learnt from what it refuses and from whether a stream begins while others go.

use std::time::Duration;

use super::lanes::Priority;

/// The most requests that any backend is sent at once.
pub const MOST: usize = 1024;

/// Streams that go on side by side for this long were not one after the other.
pub const SIDE_BY_SIDE: Duration = Duration::from_secs(1);

/// A stream that said nothing for this long, while another one came to its end, waited for it.
const QUEUED: Duration = Duration::from_secs(5);

/// The pause before a backend that kept a stream waiting is tried again; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(60);
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);

/// After a refusal the number grows by an eighth at most this often.
const GROWTH: Duration = Duration::from_secs(10);

/// `LLM_PARALLEL`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parallel {
    #[default]
    Auto,
    Fixed(usize),
}

/// What a backend says of how much it takes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// So many.
    Told(usize),
    /// It serves many people at once, and refuses what is too much for it.
    Many,
    /// Nothing. It may keep a request waiting without a word.
    Unknown,
}

/// One request under way. Times are since the backend's guard began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Call {
    id: u64,
    /// When its stream was asked for; none for a whole answer, which says nothing before its end.
    asked: Option<Duration>,
    /// When its first chunk came.
    talks: Option<Duration>,
}

/// What a refusal taught.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Refused {
    /// How many went when one more was too much, and what has grown from that since.
    most: usize,
    changed: Duration,
}

/// How many requests a backend is sent at once, and those that are under way.
#[derive(Clone, Debug)]
pub struct Slots {
    parallel: Parallel,
    capacity: Capacity,
    under_way: Vec<Call>,
    /// The most streams that went side by side; of account where the backend says nothing.
    seen: usize,
    /// From when on one more than that may be tried.
    try_from: Duration,
    pause: Duration,
    refused: Option<Refused>,
}

impl Slots {
    #[must_use]
    pub fn new(parallel: Parallel) -> Self {
        Self {
            parallel,
            capacity: Capacity::Unknown,
            under_way: Vec::new(),
            seen: 1,
            try_from: Duration::ZERO,
            pause: FIRST_PAUSE,
            refused: None,
        }
    }

    /// How many may go at once, by what is known.
    #[must_use]
    pub fn most(&self) -> usize {
        let known = match (self.parallel, self.capacity) {
            (Parallel::Fixed(number), _) => return number.clamp(1, MOST),
            (Parallel::Auto, Capacity::Told(number)) => number,
            (Parallel::Auto, Capacity::Many) => MOST,
            (Parallel::Auto, Capacity::Unknown) => self.seen,
        };
        let refused = self.refused.map_or(MOST, |refused| refused.most);
        known.min(refused).clamp(1, MOST)
    }

    /// Whether one more may go now for work of this kind. Where a backend does not say how many
    /// it takes, as many again as it was seen to take are tried, for work that somebody waits
    /// for and while those that are known to go do go: where it keeps them waiting they are
    /// next in its own queue, as they were here.
    #[must_use]
    pub fn admits(&self, work: Priority, now: Duration) -> bool {
        let (going, most) = (self.under_way.len(), self.most());
        let talking = self.under_way.iter().filter(|it| it.talks.is_some());
        going < most
            || (self.learns()
                && matches!(work, Priority::Interactive | Priority::Subagent)
                && now >= self.try_from
                && talking.count() >= most
                && going < most * 2)
    }

    /// Whether a request may be kept waiting by the backend while it answers others.
    #[must_use]
    pub fn may_queue(&self) -> bool {
        match self.capacity {
            Capacity::Told(number) => self.most() > number,
            Capacity::Many => false,
            Capacity::Unknown => true,
        }
    }

    /// The backend said how much it takes.
    pub fn said(&mut self, capacity: Capacity) {
        self.capacity = capacity;
    }

    /// The backend was started anew: what was learnt may hold no longer.
    pub fn forget(&mut self) {
        let under_way = std::mem::take(&mut self.under_way);
        *self = Self {
            under_way,
            capacity: self.capacity,
            ..Self::new(self.parallel)
        };
    }

    /// A request was let in. Tells whether more go now than are known to.
    pub fn granted(&mut self, id: u64) -> bool {
        self.under_way.push(Call {
            id,
            asked: None,
            talks: None,
        });
        self.under_way.len() > self.most()
    }

    /// It was sent, and a stream asked for.
    pub fn streams(&mut self, id: u64, now: Duration) {
        if let Some(call) = self.find(id) {
            call.asked = Some(now);
        }
    }

    /// Its first chunk came.
    pub fn talks(&mut self, id: u64, now: Duration) {
        if let Some(call) = self.find(id) {
            call.talks = Some(now);
        }
    }

    /// Takes in how many streams go side by side. True where more may go than before.
    pub fn look(&mut self, now: Duration) -> bool {
        let together = self
            .under_way
            .iter()
            .filter(|it| it.talks.is_some_and(|at| now >= at + SIDE_BY_SIDE))
            .count();
        let grew = together > self.seen;
        if grew {
            self.seen = together;
            self.pause = FIRST_PAUSE;
        }
        self.learns() && grew
    }

    /// It was answered well.
    pub fn answered(&mut self, now: Duration) {
        if let Some(refused) = &mut self.refused
            && now >= refused.changed + GROWTH
        {
            refused.most += refused.most.div_ceil(8);
            refused.changed = now;
            if refused.most >= MOST {
                self.refused = None;
            }
        }
    }

    /// It was refused as too much. Alone it says nothing of how many go side by side.
    pub fn refused(&mut self, id: u64, now: Duration) {
        self.under_way.retain(|it| it.id != id);
        let others = self.under_way.len();
        if others > 0 && others < self.most() {
            self.seen = self.seen.min(others);
            self.refused = Some(Refused {
                most: others,
                changed: now,
            });
        }
    }

    /// It came to its end, whatever that was.
    pub fn ended(&mut self, id: u64, now: Duration) {
        let Some(at) = self.under_way.iter().position(|it| it.id == id) else {
            return;
        };
        let talking = self.under_way.iter().filter(|it| it.talks.is_some());
        let talking = talking.count();
        let ended = self.under_way.swap_remove(at);
        let mut others = self.under_way.iter();
        let waited = |call: &Call| {
            let asked = call.asked.filter(|_| call.talks.is_none());
            asked.is_some_and(|asked| now >= asked + QUEUED)
        };
        if ended.talks.is_some() && others.any(waited) {
            self.seen = self.seen.min(talking);
            self.try_from = now + self.pause;
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Whether it is by trying that the number is found.
    #[must_use]
    pub fn learns(&self) -> bool {
        self.parallel == Parallel::Auto && self.capacity == Capacity::Unknown
    }

    fn find(&mut self, id: u64) -> Option<&mut Call> {
        self.under_way.iter_mut().find(|it| it.id == id)
    }
}

#[cfg(test)]
#[path = "slots_tests.rs"]
mod tests;
