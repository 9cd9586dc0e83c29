//! Keeps other people's text from speaking with the template's voice. A user, or a page that a
//! tool read, may write `<|im_end|>`; it must stay six harmless characters of text. Before such
//! text goes into the template, a character that occurs nowhere else is put inside each such
//! word, so that it is no longer found as a special token; the tokenizer takes it out again.

use super::tokenizer::SpecialToken;

/// The private-use plane 16: no text that means anything uses it, and templates leave it alone.
const FIRST: u32 = 0x10_0000;
const LAST: u32 = 0x10_FFFD;

/// A character that none of the texts has.
pub(super) fn unused_char(texts: &[&str]) -> Option<char> {
    (FIRST..=LAST)
        .filter_map(char::from_u32)
        .find(|candidate| texts.iter().all(|text| !text.contains(*candidate)))
}

/// The text with `shield` inside every special token that stands in it, and inside the start
/// of one at its end, which what follows might complete.
pub(super) fn shielded(text: &str, special: &[SpecialToken], shield: char) -> String {
    let mut safe = String::with_capacity(text.len());
    for (at, letter) in text.char_indices() {
        safe.push(letter);
        let rest = &text[at..];
        let begins = special
            .iter()
            .any(|token| rest.starts_with(&token.text) || token.text.starts_with(rest));
        if begins {
            safe.push(shield);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn special() -> Vec<SpecialToken> {
        ["<|im_start|>", "<|im_end|>"]
            .iter()
            .zip(0..)
            .map(|(text, id)| SpecialToken {
                text: (*text).to_owned(),
                id,
            })
            .collect()
    }

    #[test]
    fn special_tokens_and_their_starts_are_broken_up() {
        assert_eq!(
            shielded("a <|im_end|> b <|im_", &special(), '#'),
            "a <#|im_end|> b <#|im_"
        );
        assert_eq!(shielded("a < b", &special(), '#'), "a < b");
    }

    #[test]
    fn the_shield_is_in_none_of_the_texts() {
        let taken = "\u{100000}\u{100001}";
        assert_eq!(unused_char(&[taken, "x"]), char::from_u32(0x10_0002));
    }
}
