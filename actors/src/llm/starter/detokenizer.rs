//! Text from a stream of tokens whose bytes may part in the middle of a character.

/// Joins the bytes of tokens and hands out whole characters only.
#[derive(Debug, Default)]
pub(super) struct Detokenizer {
    /// The start of a character whose end has not come yet: three bytes at most.
    pending: Vec<u8>,
}

impl Detokenizer {
    /// Adds a token's bytes and gives back the text that is certain by now. Bytes that can
    /// never become a character turn into U+FFFD.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let mut text = String::new();
        let mut done = 0;
        while let Some(rest) = self.pending.get(done..).filter(|rest| !rest.is_empty()) {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    done = self.pending.len();
                }
                Err(error) => {
                    let (valid, broken) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    done += valid.len();
                    let Some(length) = error.error_len() else {
                        break;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    done += length.min(broken.len());
                }
            }
        }
        self.pending.drain(..done);
        text
    }

    /// What is left when no more tokens come.
    pub(super) fn finish(&mut self) -> &'static str {
        if std::mem::take(&mut self.pending).is_empty() {
            ""
        } else {
            "\u{FFFD}"
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn in_pieces(bytes: &[u8], cuts: &[usize]) -> String {
        let mut detokenizer = Detokenizer::default();
        let mut text = String::new();
        let mut from = 0;
        for cut in cuts.iter().map(|cut| cut % (bytes.len() + 1)) {
            let to = cut.max(from);
            text.push_str(&detokenizer.push(&bytes[from..to]));
            from = to;
        }
        text.push_str(&detokenizer.push(&bytes[from..]));
        text.push_str(detokenizer.finish());
        text
    }

    proptest! {
        #[test]
        fn any_text_survives_any_split(text in "\\PC{0,40}", cuts in prop::collection::vec(0_usize..200, 0..8)) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            prop_assert_eq!(in_pieces(text.as_bytes(), &cuts), text);
        }

        #[test]
        fn any_bytes_become_the_same_text_however_they_are_split(bytes in prop::collection::vec(any::<u8>(), 0..40), cut in 0_usize..40) {
            prop_assert_eq!(in_pieces(&bytes, &[cut]), String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn half_a_character_is_held_back() {
        let mut detokenizer = Detokenizer::default();
        let fox = "🦊".as_bytes();
        assert_eq!(detokenizer.push(&fox[..3]), "");
        assert_eq!(detokenizer.push(&fox[3..]), "🦊");
        assert_eq!(detokenizer.push(&fox[..1]), "");
        assert_eq!(detokenizer.finish(), "\u{FFFD}");
    }
}
