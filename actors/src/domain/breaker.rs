//! The circuit breaker: a backend that fails again and again is left alone for a while, so
//! that those who wait are told at once and it is not asked to death.

use std::time::Duration;

/// Failures in a row that open it.
const FAILURES: u32 = 5;

/// The first pause; each one after it is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(2);

/// The longest. A probe that finds the backend well again ends a pause early.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What a call showed of its backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It answered, if only to say no.
    Well,
    /// It could not be reached, or failed inside.
    Ill,
    /// It was stopped, timed out or broke off: that says nothing certain.
    Unclear,
}

/// Whether a call may be made now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    Free,
    /// One call, to see how the backend is.
    Trial,
    /// None, for so long. Zero while a trial is under way.
    Refused(Duration),
}

/// `now` is a time since some fixed moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breaker {
    /// In a row.
    failures: u32,
    /// Set while it is open.
    closed_until: Option<Duration>,
    /// The trial is under way.
    on_trial: bool,
}

impl Breaker {
    /// Whether a call may be made. A trial counts as begun.
    pub fn admit(&mut self, now: Duration) -> Admission {
        match self.closed_until {
            None => Admission::Free,
            Some(_) if self.on_trial => Admission::Refused(Duration::ZERO),
            Some(until) if now < until => Admission::Refused(until.saturating_sub(now)),
            Some(_) => {
                self.on_trial = true;
                Admission::Trial
            }
        }
    }

    /// Takes in what a call showed; `trial` where it was admitted as one. True where that
    /// opened the breaker, or opened it anew.
    #[must_use]
    pub fn learn(&mut self, health: Health, trial: bool, now: Duration) -> bool {
        match health {
            Health::Well => {
                *self = Self::default();
                false
            }
            Health::Unclear => {
                self.on_trial &= !trial;
                false
            }
            Health::Ill => {
                // What was under way when it opened says nothing new.
                if self.closed_until.is_some() && !trial {
                    return false;
                }
                self.on_trial = false;
                self.failures = self.failures.saturating_add(1);
                let Some(openings) = self.failures.checked_sub(FAILURES) else {
                    return false;
                };
                let pause = FIRST_PAUSE
                    .saturating_mul(2_u32.saturating_pow(openings))
                    .min(LONGEST_PAUSE);
                self.closed_until = Some(now + pause);
                true
            }
        }
    }

    /// Failures in a row so far.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// One that has just opened, at second 100.
    fn opened() -> Breaker {
        let mut breaker = Breaker::default();
        for _ in 1..FAILURES {
            assert!(!breaker.learn(Health::Ill, false, at(100)));
            assert_eq!(breaker.admit(at(100)), Admission::Free);
        }
        assert!(breaker.learn(Health::Ill, false, at(100)));
        breaker
    }

    #[test]
    fn five_failures_in_a_row_open_it() {
        let mut breaker = opened();
        assert_eq!(breaker.admit(at(100)), Admission::Refused(at(2)));
        assert_eq!(breaker.admit(at(101)), Admission::Refused(at(1)));
    }

    #[test]
    fn an_answer_between_them_starts_the_count_anew() {
        let mut breaker = Breaker::default();
        for _ in 0..3 {
            for _ in 1..FAILURES {
                assert!(!breaker.learn(Health::Ill, false, at(0)));
            }
            assert!(!breaker.learn(Health::Unclear, false, at(0)));
            assert!(!breaker.learn(Health::Well, false, at(0)));
        }
        assert_eq!(breaker.admit(at(0)), Admission::Free);
    }

    #[test]
    fn after_the_pause_one_call_tries() {
        let mut breaker = opened();
        assert_eq!(breaker.admit(at(102)), Admission::Trial);
        assert_eq!(breaker.admit(at(102)), Admission::Refused(at(0)));
        assert!(!breaker.learn(Health::Well, true, at(103)));
        assert_eq!(breaker.admit(at(103)), Admission::Free);
        assert_eq!(breaker.failures(), 0);
    }

    #[test]
    fn a_trial_that_fails_makes_the_pause_longer() {
        let mut breaker = opened();
        let mut now = at(102);
        for pause in [4, 8, 16, 30, 30] {
            assert_eq!(breaker.admit(now), Admission::Trial);
            assert!(breaker.learn(Health::Ill, true, now));
            assert_eq!(breaker.admit(now), Admission::Refused(at(pause)));
            now += at(pause);
        }
    }

    #[test]
    fn a_trial_that_shows_nothing_makes_room_for_another() {
        let mut breaker = opened();
        assert_eq!(breaker.admit(at(102)), Admission::Trial);
        assert!(!breaker.learn(Health::Unclear, true, at(103)));
        assert_eq!(breaker.admit(at(103)), Admission::Trial);
    }

    #[test]
    fn calls_that_were_under_way_do_not_prolong_the_pause() {
        let mut breaker = opened();
        assert!(!breaker.learn(Health::Ill, false, at(101)));
        assert_eq!(breaker.admit(at(102)), Admission::Trial);
    }
}
