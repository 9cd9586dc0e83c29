//! Ceremonies under way: what was asked of an authenticator, until it answers. Each answer is to
//! one question, once, in the browser that asked, and soon.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How long an authenticator may take, and a person to find it.
pub(super) const PATIENCE: Duration = Duration::from_secs(5 * 60);
/// So many are under way at once. For one more, the oldest is forgotten: nobody keeps others out
/// by beginning many.
const MOST: usize = 4_096;

/// What was asked, by what names the question.
#[derive(Debug)]
pub(super) struct Ceremonies<K, Q>(Mutex<HashMap<K, (Instant, Q)>>);

impl<K, Q> Default for Ceremonies<K, Q> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + Eq + Hash, Q> Ceremonies<K, Q> {
    /// Keeps a question, in the place of an earlier one of this name.
    pub(super) fn begin(&self, name: K, question: Q, now: Instant) {
        let mut under_way = self.0.lock();
        if under_way.len() >= MOST {
            under_way.retain(|_, (began, _)| now.duration_since(*began) < PATIENCE);
        }
        if under_way.len() >= MOST {
            let oldest = under_way.iter().min_by_key(|(_, (began, _))| *began);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                under_way.remove(&oldest);
            }
        }
        under_way.insert(name, (now, question));
    }

    /// The question of this name, which is answered now, be it rightly or not.
    pub(super) fn end(&self, name: &K, now: Instant) -> Option<Q> {
        let (began, question) = self.0.lock().remove(name)?;
        (now.duration_since(began) < PATIENCE).then_some(question)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_answered_once_and_soon() {
        let (ceremonies, began) = (Ceremonies::default(), Instant::now());
        ceremonies.begin("a", 1, began);
        ceremonies.begin("b", 2, began);
        assert_eq!(ceremonies.end(&"c", began), None);
        let last = began + PATIENCE - Duration::from_millis(1);
        assert_eq!(ceremonies.end(&"a", last), Some(1));
        assert_eq!(ceremonies.end(&"a", last), None);
        assert_eq!(ceremonies.end(&"b", began + PATIENCE), None);
        ceremonies.begin("a", 3, began);
        ceremonies.begin("a", 4, began);
        assert_eq!(ceremonies.end(&"a", began), Some(4), "the latest");
    }

    #[test]
    fn of_many_the_oldest_is_forgotten() {
        let (ceremonies, began) = (Ceremonies::default(), Instant::now());
        let at = |n: usize| began + Duration::from_millis(u64::try_from(n).unwrap_or_default());
        for n in 0..=MOST {
            ceremonies.begin(n, n, at(n));
        }
        assert_eq!(ceremonies.0.lock().len(), MOST);
        assert_eq!(ceremonies.end(&0, at(MOST)), None);
        assert_eq!(ceremonies.end(&1, at(MOST)), Some(1));
        // Those that nobody answered go first.
        for n in 0..MOST {
            ceremonies.begin(MOST + 1 + n, n, at(n) + PATIENCE);
        }
        assert!(ceremonies.0.lock().len() <= MOST);
    }
}
