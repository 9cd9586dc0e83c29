//! Choosing the next token.

use std::cmp::Ordering;

/// Only so many of the likeliest tokens are ever considered.
const TOP_K: usize = 40;
const TOP_P: f32 = 0.95;

/// Small models fall into repeating themselves; what was said among the last so many tokens is
/// made less likely.
const PENALTY_WINDOW: usize = 96;

/// A tail that is nothing but one phrase again and again: the longest phrase looked for, how
/// often it must stand there, and how many tokens that must be at least.
const LONGEST_CYCLE: usize = 48;
const CYCLE_REPEATS: usize = 4;
const CYCLE_TOKENS: usize = 48;

/// How a model's tokens are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sampling {
    /// 0 always takes the likeliest token: the same prompt gives the same answer.
    pub(super) temperature: f32,
    /// Divides the score of what was said just now; 1 for none.
    pub(super) repeat_penalty: f32,
}

/// The state of one answer.
#[derive(Debug)]
pub(super) struct Sampler {
    sampling: Sampling,
    random: SplitMix,
    said: Vec<u32>,
}

impl Sampler {
    pub(super) fn new(sampling: Sampling, seed: u64) -> Self {
        Self {
            sampling,
            random: SplitMix(seed),
            said: Vec::new(),
        }
    }

    /// Chooses among `allowed` (all where none is given). None where nothing is allowed, or
    /// where the scores are no numbers.
    pub(super) fn choose(
        &mut self,
        logits: &mut [f32],
        allowed: Option<&dyn Fn(u32) -> bool>,
    ) -> Option<u32> {
        self.penalise(logits);
        let candidates = (0_u32..)
            .zip(logits.iter().copied())
            .filter(|(id, score)| !score.is_nan() && allowed.is_none_or(|allowed| allowed(*id)));
        if self.sampling.temperature <= 0.0 || !self.sampling.temperature.is_finite() {
            // The first of equals, so that the answer does not depend on their order.
            return candidates
                .reduce(|best, next| if next.1 > best.1 { next } else { best })
                .map(|(id, _)| id);
        }
        let mut candidates: Vec<(u32, f32)> = candidates.collect();
        let likelier =
            |a: &(u32, f32), b: &(u32, f32)| b.1.partial_cmp(&a.1).unwrap_or(Ordering::Equal);
        if candidates.len() > TOP_K {
            candidates.select_nth_unstable_by(TOP_K, likelier);
            candidates.truncate(TOP_K);
        }
        candidates.sort_by(likelier);
        self.draw(&candidates)
    }

    /// Notes what was said, chosen here or forced by a grammar.
    pub(super) fn said(&mut self, id: u32) {
        self.said.push(id);
    }

    /// What comes now may repeat what was said.
    pub(super) fn allow_repeats(&mut self) {
        self.sampling.repeat_penalty = 1.0;
    }

    /// Whether the answer only repeats itself by now.
    pub(super) fn is_stuck(&self) -> bool {
        (1..=LONGEST_CYCLE).any(|length| {
            let tokens = (length * CYCLE_REPEATS).max(CYCLE_TOKENS);
            let Some(from) = self.said.len().checked_sub(tokens) else {
                return false;
            };
            let tail = &self.said[from..];
            tail.iter().zip(&tail[length..]).all(|(a, b)| a == b)
        })
    }

    fn penalise(&self, logits: &mut [f32]) {
        let penalty = self.sampling.repeat_penalty;
        let mut recent: Vec<u32> = self
            .said
            .iter()
            .rev()
            .take(PENALTY_WINDOW)
            .copied()
            .collect();
        recent.sort_unstable();
        recent.dedup();
        for id in recent {
            if let Some(score) = usize::try_from(id).ok().and_then(|id| logits.get_mut(id)) {
                *score = if *score > 0.0 {
                    *score / penalty
                } else {
                    *score * penalty
                };
            }
        }
    }

    /// Draws from the likeliest candidates that together make `TOP_P`.
    fn draw(&mut self, candidates: &[(u32, f32)]) -> Option<u32> {
        let highest = candidates.first()?.1;
        let weights: Vec<f32> = candidates
            .iter()
            .map(|(_, score)| ((score - highest) / self.sampling.temperature).exp())
            .collect();
        let all: f32 = weights.iter().sum();
        let mut nucleus = 0.0;
        let mut kept = 0;
        for weight in &weights {
            nucleus += weight;
            kept += 1;
            if nucleus >= TOP_P * all {
                break;
            }
        }
        let mut point = self.random.fraction() * nucleus;
        for ((id, _), weight) in candidates.iter().zip(&weights).take(kept) {
            point -= weight;
            if point <= 0.0 {
                return Some(*id);
            }
        }
        candidates.first().map(|(id, _)| *id)
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): enough for choosing words.
#[derive(Debug)]
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 up to 1.
    fn fraction(&mut self) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "24 bits fit an f32 exactly")]
        let fraction = (self.next() >> 40) as f32 / (1_u32 << 24) as f32;
        fraction
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREEDY: Sampling = Sampling {
        temperature: 0.0,
        repeat_penalty: 1.0,
    };

    fn warm(temperature: f32) -> Sampling {
        Sampling {
            temperature,
            repeat_penalty: 1.0,
        }
    }

    #[test]
    fn without_temperature_the_likeliest_is_taken_and_the_first_of_equals() {
        let mut sampler = Sampler::new(GREEDY, 1);
        assert_eq!(
            sampler.choose(&mut [0.0, 2.0, 2.0, f32::NAN], None),
            Some(1)
        );
    }

    #[test]
    fn only_what_is_allowed_is_chosen() {
        for temperature in [0.0, 1.0] {
            let mut sampler = Sampler::new(warm(temperature), 1);
            let chosen = sampler.choose(&mut [9.0, 1.0, 0.0], Some(&|id| id == 2));
            assert_eq!(chosen, Some(2));
            assert_eq!(sampler.choose(&mut [9.0, 1.0], Some(&|_| false)), None);
        }
    }

    #[test]
    fn the_same_seed_chooses_the_same() {
        let run = |seed| {
            let mut sampler = Sampler::new(warm(1.0), seed);
            (0..50)
                .map(|_| sampler.choose(&mut [1.0, 1.1, 0.9, 1.2], None))
                .collect::<Vec<_>>()
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }

    #[test]
    fn what_is_unlikely_is_never_drawn() {
        let mut sampler = Sampler::new(warm(1.0), 3);
        for _ in 0..200 {
            assert_eq!(sampler.choose(&mut [10.0, 0.0, 0.0], None), Some(0));
        }
    }

    #[test]
    fn what_was_said_becomes_less_likely() {
        let mut sampler = Sampler::new(
            Sampling {
                temperature: 0.0,
                repeat_penalty: 1.3,
            },
            1,
        );
        sampler.said(1);
        assert_eq!(sampler.choose(&mut [1.9, 2.0], None), Some(0));
    }

    #[test]
    fn a_phrase_that_repeats_without_end_is_noticed() {
        let mut sampler = Sampler::new(GREEDY, 1);
        for id in (0..200_u32).map(|i| i * i % 173) {
            sampler.said(id);
            assert!(!sampler.is_stuck());
        }
        for _ in 0..12 {
            for id in [5, 6, 7, 8] {
                sampler.said(id);
            }
        }
        assert!(sampler.is_stuck());
    }
}
