//! What a command writes, as the model reads it, and what that tells.

use anstream::adapter::strip_str;
use itertools::Itertools as _;

/// A text without colours and cursor movements; of a line that was written over, the last state.
pub(super) fn readable(text: &str) -> String {
    let plain = strip_str(text).to_string();
    if !plain.contains('\r') {
        return plain;
    }
    let lines = plain.split('\n').map(|line| line.trim_end_matches('\r'));
    lines
        .map(|line| line.rsplit('\r').next().unwrap_or(line))
        .join("\n")
}

/// Whether the output ends as a question does that waits for a person.
pub(super) fn asks(text: &str) -> bool {
    let line = text.trim_end().lines().next_back().unwrap_or_default();
    if line.len() > 4096 {
        return false;
    }
    let line = line.to_lowercase();
    let is_short = line.len() < 200;
    let mut ends_so =
        "[y/n] [y/n]: (y/n) (yes/no) [y/n/q] password: passphrase: ? continue:".split(' ');
    is_short && ends_so.any(|end| line.ends_with(end))
        || line.contains("press any key")
        || line.contains("press enter")
        // A program that would have asked on the terminal itself.
        || line.contains("/dev/tty")
}

/// What commands without a network say.
pub(super) fn misses_network(text: &str) -> bool {
    [
        "Could not resolve",
        "could not resolve",
        "name resolution",
        "Network is unreachable",
        "socket: Operation not permitted",
        "getaddrinfo",
        "EAI_AGAIN",
        "dns error",
    ]
    .iter()
    .any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tools::output::{decoded, decoder};

    #[test]
    fn the_model_reads_plain_text() {
        assert_eq!(readable("\x1b[31mred\x1b[0m\n"), "red\n");
        assert_eq!(readable("a\r\nb\r\n"), "a\nb\n");
        assert_eq!(readable("10%\r50%\r100%\ndone"), "100%\ndone");
        assert_eq!(readable("\x1b]0;title\x07x"), "x");
    }

    #[test]
    fn questions_are_seen() {
        assert!(asks("Overwrite? [y/N] "));
        assert!(asks("Password:"));
        assert!(!asks("done."));
        assert!(!asks(""));
        assert!(misses_network(
            "curl: (6) Could not resolve host: example.org"
        ));
    }

    proptest! {
        #[test]
        fn text_in_pieces_is_the_same_text(text in "\\PC{0,60}", at in 0usize..60) {
            let bytes = text.as_bytes();
            let at = at.min(bytes.len());
            let mut decoder = decoder();
            let first = decoded(&mut decoder, &bytes[..at], false);
            let second = decoded(&mut decoder, &bytes[at..], false);
            prop_assert_eq!(first + &second, text);
        }
    }
}
