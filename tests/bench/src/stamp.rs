//! Tokens that say when they were sent: `~` and six digits, then a space.
//!
//! The model server and the client are one process, so they read one clock. Eight bytes are
//! about as long as a token of a real model with its space.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// The bytes of a token.
pub(crate) const TOKEN_BYTES: usize = 8;

/// What a token begins with. It stands in nothing else that a benchmark sends.
const MARK: u8 = b'~';

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The clock's unit, in nanoseconds.
const TICK_NANOS: u128 = 100;

/// Where the clock begins anew: 62⁶ ticks are over one and a half hours.
const TICKS: u64 = 62_u64.pow(6);

static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A moment as it stands in a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(u64);

impl Stamp {
    pub(crate) fn now() -> Self {
        let begin = *BEGIN;
        Self::of(Instant::now().duration_since(begin))
    }

    fn of(since_begin: Duration) -> Self {
        let ticks = since_begin.as_nanos() / TICK_NANOS % u128::from(TICKS);
        Self(u64::try_from(ticks).unwrap_or_default())
    }

    /// The token that says it.
    pub(crate) fn token(self) -> [u8; TOKEN_BYTES] {
        let mut token = [b' '; TOKEN_BYTES];
        token[0] = MARK;
        let mut rest = self.0;
        for place in token[1..TOKEN_BYTES - 1].iter_mut().rev() {
            *place = DIGITS[(rest % 62) as usize];
            rest /= 62;
        }
        token
    }

    /// How long after `self` this is, in milliseconds; of less than the clock's whole turn.
    pub(crate) fn until_ms(self, later: Self) -> f64 {
        let ticks = (later.0 + TICKS - self.0) % TICKS;
        ticks as f64 / 10_000.0
    }

    /// The stamp behind a mark; none where something else stands there.
    fn read(digits: &[u8]) -> Option<Self> {
        let mut ticks = 0;
        for digit in digits {
            let value = match digit {
                b'0'..=b'9' => digit - b'0',
                b'A'..=b'Z' => digit - b'A' + 10,
                b'a'..=b'z' => digit - b'a' + 36,
                _ => return None,
            };
            ticks = ticks * 62 + u64::from(value);
        }
        Some(Self(ticks))
    }
}

/// The stamps of all tokens in these bytes.
pub(crate) fn stamps(bytes: &[u8]) -> impl Iterator<Item = Stamp> {
    memchr::memchr_iter(MARK, bytes)
        .filter_map(|at| Stamp::read(bytes.get(at + 1..at + TOKEN_BYTES - 1)?))
}

/// How many tokens stand in these bytes.
pub(crate) fn count(bytes: &[u8]) -> usize {
    memchr::memchr_iter(MARK, bytes).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_as_it_was_written() {
        for ticks in [0, 1, 61, 62, 123_456_789, TICKS - 1] {
            let token = Stamp(ticks).token();
            assert_eq!(stamps(&token).collect::<Vec<_>>(), [Stamp(ticks)]);
        }
    }

    #[test]
    fn all_tokens_of_a_text_are_found_and_nothing_else() {
        let [first, second] = [7, TICKS / 3].map(|ticks| Stamp(ticks).token());
        let text = [b"{\"delta\":\"", &first[..], &second[..], b"~cut\"}"].concat();
        let expected = [Stamp(7), Stamp(TICKS / 3)];
        assert_eq!(stamps(&text).collect::<Vec<_>>(), expected);
        assert_eq!(stamps(b"~ab de~").count(), 0);
    }

    #[test]
    fn time_goes_on_where_the_clock_begins_anew() {
        let at = |ms| Stamp::of(Duration::from_millis(ms));
        assert!((at(10).until_ms(at(35)) - 25.0).abs() < 1e-9);
        let last = Stamp(TICKS - 10_000);
        assert!((last.until_ms(Stamp(20_000)) - 3.0).abs() < 1e-9);
    }
}
