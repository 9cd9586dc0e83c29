//! Text whose words are as common as in a language: few are everywhere, most are rare. The same
//! each time.

/// How many different words there are.
const WORDS: u64 = 10_000;

/// Of a word's syllables, the last digit of its number first.
const SYLLABLES: [&str; 10] = ["po", "ne", "mi", "lo", "tu", "ra", "se", "ki", "do", "vu"];

/// Makes words.
#[derive(Debug)]
pub(crate) struct Words {
    state: u64,
}

impl Default for Words {
    fn default() -> Self {
        Self { state: 1 }
    }
}

impl Words {
    /// So many of them, with spaces in between.
    pub(crate) fn some(&mut self, count: usize) -> String {
        let words: Vec<String> = (0..count).map(|_| self.next()).collect();
        words.join(" ")
    }

    /// The third power of an even spread: a tenth of all words is the first ten, and the last
    /// ones come once in thirty thousand.
    fn next(&mut self) -> String {
        const MULTIPLIER: u64 = 6_364_136_223_846_793_005;
        const INCREMENT: u64 = 1_442_695_040_888_963_407;
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT);
        let even = (self.state >> 11) as f64 / (1_u64 << 53) as f64;
        word((even.powi(3) * WORDS as f64) as u64)
    }
}

/// The word of a number: `pone` is the tenth, and each number has another one.
fn word(number: u64) -> String {
    let digits = format!("{number:02}");
    let syllables = digits.bytes().rev();
    let syllables = syllables.map(|digit| SYLLABLES[usize::from(digit - b'0')]);
    syllables.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_common_or_rare_and_the_same_each_time() {
        let text = Words::default().some(100_000);
        assert_eq!(text, Words::default().some(100_000));
        let count = |sought: &str| text.split(' ').filter(|word| *word == sought).count();
        assert!(count(&word(0)) > 3_000, "{}", count(&word(0)));
        let rare = count(&word(9_000));
        assert!((1..20).contains(&rare), "{rare}");
        assert_eq!(word(10), "pone");
    }
}
