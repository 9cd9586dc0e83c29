//! Texts that are made shorter: in the middle, at a character's boundary, and never in silence.

/// A text of at most `limit` bytes: the text itself, or its beginning and end around a note of
/// how much is missing. The beginning gets two thirds: most output leads with what matters. With
/// a limit that is too small for the note, the note stands alone.
#[must_use]
pub fn cut_middle(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    // The note's length depends on the number in it, and that on the note's length. The
    // longest number it can hold is the text's own length, so room is kept for that.
    let room = limit.saturating_sub(note(text.len()).len());
    let head = text.floor_char_boundary(room - room / 3);
    let tail = text.ceil_char_boundary(text.len() - room / 3);
    format!("{}{}{}", &text[..head], note(tail - head), &text[tail..])
}

fn note(missing_bytes: usize) -> String {
    format!("\n[… {missing_bytes} bytes cut here …]\n")
}

/// A text of at most `max_chars` characters, with `…` where its middle was. For places where a
/// line says what the text is about, and nobody needs to know how much is missing.
#[must_use]
pub fn clip(text: &str, max_chars: usize) -> String {
    const GAP: &str = " … ";
    // Bytes are never fewer than characters: most texts are settled without counting.
    if text.len() <= max_chars || text.chars().count() <= max_chars {
        return text.to_owned();
    }
    let room = max_chars.saturating_sub(GAP.chars().count());
    if room == 0 {
        return "…".chars().take(max_chars).collect();
    }
    let tail = room / 3;
    format!(
        "{}{GAP}{}",
        first_chars(text, room - tail),
        last_chars(text, tail)
    )
}

fn first_chars(text: &str, count: usize) -> &str {
    let end = text.char_indices().nth(count).map_or(text.len(), |at| at.0);
    &text[..end]
}

fn last_chars(text: &str, count: usize) -> &str {
    let Some(last) = count.checked_sub(1) else {
        return "";
    };
    let start = text.char_indices().rev().nth(last).map_or(0, |at| at.0);
    &text[start..]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_fits_stays_as_it_is() {
        assert_eq!(cut_middle("", 0), "");
        assert_eq!(cut_middle("abc", 3), "abc");
        assert_eq!(clip("", 0), "");
        assert_eq!(clip("звіт", 4), "звіт");
    }

    #[test]
    fn the_middle_goes_and_says_so() {
        let text = format!("{}{}", "a".repeat(500), "z".repeat(500));
        let cut = cut_middle(&text, 100);
        assert_eq!(cut.len(), 99);
        assert!(cut.starts_with("aaa") && cut.ends_with("zzz"));
        assert!(cut.contains("\n[… 931 bytes cut here …]\n"), "{cut}");
        assert_eq!(clip(&text, 12), "aaaaaa … zzz");
        assert_eq!(clip("їжачок", 5), "їж … ");
        assert_eq!(clip(&text, 3), "…");
        assert_eq!(clip(&text, 0), "");
    }

    proptest! {
        #[test]
        fn a_cut_text_keeps_its_ends_and_counts_right(text in "\\PC{0,400}", limit in 0usize..600) {
            let cut = cut_middle(&text, limit);
            if text.len() <= limit {
                prop_assert_eq!(&cut, &text);
            } else {
                let note_bytes = note(text.len()).len();
                prop_assert!(cut.len() <= limit.max(note_bytes));
                let (head, rest) = cut.split_once("\n[… ").expect("a note");
                let (missing, tail) = rest.split_once(" bytes cut here …]\n").expect("a note");
                prop_assert!(text.starts_with(head) && text.ends_with(tail));
                let missing: usize = missing.parse().expect("a number");
                prop_assert_eq!(head.len() + missing + tail.len(), text.len());
            }
        }

        #[test]
        fn a_clipped_text_has_no_more_than_it_may(text in "\\PC{0,200}", limit in 0usize..250) {
            let clipped = clip(&text, limit);
            prop_assert!(clipped.chars().count() <= limit);
            if text.chars().count() <= limit {
                prop_assert_eq!(clipped, text);
            }
        }
    }
}
