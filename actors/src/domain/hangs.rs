//! Which threads hang: what follows from whether they answered, and what is to be done.

use std::time::Duration;

/// How long silence is borne, and how often a hang is mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// A thread that has not answered for this long hangs.
    pub hang: Duration,
    /// One that cannot be replaced and has not answered for this long ends the process.
    pub lost: Duration,
    /// More replacements than this within `window`, and the process ends: it does not get
    /// better by itself.
    pub replacements: usize,
    pub window: Duration,
}

impl Patience {
    /// The usual one, for threads that hang after `hang`.
    #[must_use]
    pub fn of(hang: Duration) -> Self {
        Self {
            hang,
            lost: hang * 6,
            replacements: 10,
            window: Duration::from_secs(3600),
        }
    }

    /// How often it is looked whether threads answer.
    #[must_use]
    pub fn interval(&self) -> Duration {
        (self.hang / 5).max(Duration::from_millis(10))
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self::of(Duration::from_secs(5))
    }
}

/// What stands behind a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sessions: they can be read again from the store on another thread.
    Sessions,
    /// What there is one of, by name.
    Service(&'static str),
}

/// A thread that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId(pub u64);

/// What is to be done about a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Its sessions are to be taken to another thread. It is not watched any more.
    Replace { id: ThreadId, silent: Duration },
    /// It hangs, and there is nothing to do but wait.
    Hangs {
        service: &'static str,
        silent: Duration,
    },
    /// One that hung answers again.
    Back {
        service: &'static str,
        silent: Duration,
    },
    /// The process cannot go on.
    Lost { silent: Duration },
}

#[derive(Debug)]
struct Thread {
    id: ThreadId,
    role: Role,
    silent: Duration,
}

/// Watches threads, by the answers that it is told of.
///
/// Time counts only as far as the watcher itself was on time: where it was late, the machine
/// slept, the process was stopped or starved, and so were those that it watches.
#[derive(Debug)]
pub struct Watch {
    patience: Patience,
    threads: Vec<Thread>,
    /// All time that counted.
    clock: Duration,
    /// When threads were replaced.
    replaced: Vec<Duration>,
}

impl Watch {
    #[must_use]
    pub fn new(patience: Patience) -> Self {
        Self {
            patience,
            threads: Vec::new(),
            clock: Duration::ZERO,
            replaced: Vec::new(),
        }
    }

    pub fn add(&mut self, id: ThreadId, role: Role) {
        self.threads.push(Thread {
            id,
            role,
            silent: Duration::ZERO,
        });
    }

    pub fn forget(&mut self, id: ThreadId) {
        self.threads.retain(|thread| thread.id != id);
    }

    /// Looks at all threads. `passed` is the time since the last look, `answered` says whether
    /// a thread has answered what it was asked then.
    pub fn look(&mut self, passed: Duration, answered: impl Fn(ThreadId) -> bool) -> Vec<Finding> {
        let Patience {
            hang,
            lost,
            replacements,
            window,
        } = self.patience;
        let passed = passed.min(self.patience.interval() * 2);
        self.clock += passed;
        let mut findings = Vec::new();
        let mut replaced = Vec::new();
        for thread in &mut self.threads {
            let before = thread.silent;
            if answered(thread.id) {
                thread.silent = Duration::ZERO;
                if let Role::Service(service) = thread.role
                    && before >= hang
                {
                    findings.push(Finding::Back {
                        service,
                        silent: before,
                    });
                }
                continue;
            }
            thread.silent += passed;
            let silent = thread.silent;
            match thread.role {
                Role::Sessions if silent >= hang => replaced.push((thread.id, silent)),
                Role::Service(_) if silent >= lost => findings.push(Finding::Lost { silent }),
                Role::Service(service) if before < hang && silent >= hang => {
                    findings.push(Finding::Hangs { service, silent });
                }
                Role::Sessions | Role::Service(_) => {}
            }
        }
        for (id, silent) in replaced {
            self.forget(id);
            self.replaced.retain(|at| self.clock - *at < window);
            if self.replaced.len() >= replacements {
                findings.push(Finding::Lost { silent });
                continue;
            }
            self.replaced.push(self.clock);
            findings.push(Finding::Replace { id, silent });
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_secs(1);
    const ONE: ThreadId = ThreadId(1);
    const TWO: ThreadId = ThreadId(2);

    fn watch() -> Watch {
        let mut watch = Watch::new(Patience::default());
        watch.add(ONE, Role::Sessions);
        watch.add(TWO, Role::Service("services"));
        watch
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn who_answers_is_left_alone() {
        let mut watch = watch();
        for _ in 0..100 {
            assert_eq!(watch.look(TICK, |_| true), []);
        }
    }

    #[test]
    fn a_silent_thread_of_sessions_is_replaced_once() {
        let mut watch = watch();
        for _ in 0..4 {
            assert_eq!(watch.look(TICK, |id| id != ONE), []);
        }
        let replace = Finding::Replace {
            id: ONE,
            silent: seconds(5),
        };
        assert_eq!(watch.look(TICK, |id| id != ONE), [replace]);
        for _ in 0..100 {
            assert_eq!(watch.look(TICK, |id| id != ONE), []);
        }
    }

    #[test]
    fn an_answer_in_time_begins_the_count_anew() {
        let mut watch = watch();
        for look in 0..100 {
            assert_eq!(watch.look(TICK, |id| id != ONE || look % 5 == 4), []);
        }
    }

    #[test]
    fn a_silent_service_is_told_then_it_ends_the_process() {
        let mut watch = watch();
        let told: Vec<_> = (0..30)
            .flat_map(|_| watch.look(TICK, |id| id != TWO))
            .collect();
        let hangs = Finding::Hangs {
            service: "services",
            silent: seconds(5),
        };
        let lost = Finding::Lost {
            silent: seconds(30),
        };
        assert_eq!(told, [hangs, lost]);
    }

    #[test]
    fn a_service_that_comes_back_is_told() {
        let mut watch = watch();
        let told: Vec<_> = (0..20)
            .flat_map(|look| watch.look(TICK, |id| id != TWO || look >= 10))
            .collect();
        let hangs = Finding::Hangs {
            service: "services",
            silent: seconds(5),
        };
        let back = Finding::Back {
            service: "services",
            silent: seconds(10),
        };
        assert_eq!(told, [hangs, back]);
    }

    #[test]
    fn a_machine_that_slept_hangs_nobody() {
        let mut watch = watch();
        assert_eq!(watch.look(TICK, |_| true), []);
        // What was asked before the sleep is answered after it, a moment late.
        assert_eq!(watch.look(seconds(8 * 3600), |_| false), []);
        assert_eq!(watch.look(TICK, |_| false), []);
        assert_eq!(watch.look(TICK, |_| true), []);
    }

    #[test]
    fn threads_that_hang_again_and_again_end_the_process() {
        let mut watch = Watch::new(Patience::default());
        let mut told = Vec::new();
        for id in 0..11 {
            watch.add(ThreadId(id), Role::Sessions);
            for _ in 0..5 {
                told.extend(watch.look(TICK, |_| false));
            }
        }
        assert_eq!(told.len(), 11);
        assert_eq!(
            told[9],
            Finding::Replace {
                id: ThreadId(9),
                silent: seconds(5),
            }
        );
        assert_eq!(told[10], Finding::Lost { silent: seconds(5) });
    }

    #[test]
    fn hangs_that_are_hours_apart_are_mended_each_time() {
        let mut watch = Watch::new(Patience::default());
        for id in 0..100 {
            watch.add(ThreadId(id), Role::Sessions);
            let told: Vec<_> = (0..5).flat_map(|_| watch.look(TICK, |_| false)).collect();
            assert_eq!(told.len(), 1);
            assert!(matches!(told[0], Finding::Replace { .. }), "{told:?}");
            for _ in 0..360 {
                watch.look(TICK, |_| true);
            }
        }
    }
}
