//! Characters that a reader does not see, or that move what stands around them: what a person
//! consents to is shown with each of them by its name. This is the one list; the page's own
//! (`web/state/invisible.js`) is the same by a test.

use icu_properties::props::{
    BidiControl, BinaryProperty as _, DefaultIgnorableCodePoint, EnumeratedProperty as _,
    GeneralCategory, NoncharacterCodePoint,
};

/// Characters that Unicode counts among letters and signs, and that no font draws: blanks of
/// Braille, of music and of hieroglyphs, and the place of an object that is not there.
const DRAWN_AS_NOTHING: [char; 5] = [
    '\u{2800}',
    '\u{fffc}',
    '\u{13441}',
    '\u{13442}',
    '\u{1d159}',
];

/// Whether a character hides, moves or breaks the text around it, or looks like a space and is
/// none: controls, marks of direction, what has no width or no shape, what no font knows.
#[must_use]
pub fn is_unseen(c: char) -> bool {
    use GeneralCategory::{
        Control, Format, LineSeparator, ParagraphSeparator, PrivateUse, SpaceSeparator,
    };
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    matches!(
        GeneralCategory::for_char(c),
        Control | Format | LineSeparator | ParagraphSeparator | PrivateUse | SpaceSeparator
    ) || DefaultIgnorableCodePoint::for_char(c)
        || NoncharacterCodePoint::for_char(c)
        || DRAWN_AS_NOTHING.contains(&c)
}

/// Whether a character moves or breaks the text around it. Fewer than [`is_unseen`]: names of
/// files have joined emoji and wide spaces in them, and are opened by these names.
#[must_use]
pub fn is_moving(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') || BidiControl::for_char(c)
}

/// The text with what is unseen by its name, but for its lines and tabs.
#[must_use]
pub fn named(text: &str) -> String {
    escaped(text, |c| is_unseen(c) && !matches!(c, '\n' | '\t'))
}

/// The same on one line.
#[must_use]
pub fn named_on_a_line(text: &str) -> String {
    escaped(text, is_unseen)
}

/// The text with some of its characters as escapes, as in `\u{202e}`.
#[must_use]
pub fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_escaped(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ranges that the page's test holds its own list against.
    const RANGES: &str = include_str!("../../../web/tests/unseen.json");

    #[test]
    fn the_page_names_the_same_characters() {
        let mut ranges: Vec<[u32; 2]> = Vec::new();
        let shown_by_the_page = |c: char| !matches!(c, '\n' | '\t');
        for c in ('\0'..=char::MAX).filter(|c| is_unseen(*c) && shown_by_the_page(*c)) {
            match ranges.last_mut() {
                Some([_, last]) if *last + 1 == c as u32 => *last += 1,
                _ => ranges.push([c as u32; 2]),
            }
        }
        let known: Vec<[u32; 2]> = serde_json::from_str(RANGES).unwrap();
        assert_eq!(
            known,
            ranges,
            "web/tests/unseen.json should be {}",
            serde_json::to_string(&ranges).unwrap()
        );
    }

    #[test]
    fn what_deceives_is_named_and_what_is_read_stays() {
        for c in [
            '\0',
            '\r',
            '\u{1b}',
            '\u{7f}',
            '\u{85}',
            '\u{a0}',
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{115f}',
            '\u{180e}',
            '\u{200b}',
            '\u{200d}',
            '\u{202e}',
            '\u{2066}',
            '\u{2028}',
            '\u{2800}',
            '\u{3000}',
            '\u{3164}',
            '\u{e000}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{e0041}',
            '\u{e0100}',
        ] {
            assert!(is_unseen(c), "{c:?}");
            let name = named(&c.to_string());
            assert!(name.is_ascii() && name.starts_with('\\'), "{name}");
        }
        for text in ["ls -la 'a b'", "звіт 📎.md", "日本語", "\tif x:\n\t\ty"] {
            assert_eq!(named(text), text);
        }
        assert_eq!(named_on_a_line("a\nb\u{202e}c"), "a\\nb\\u{202e}c");
    }

    #[test]
    fn what_moves_is_unseen() {
        assert!(('\0'..=char::MAX).all(|c| !is_moving(c) || is_unseen(c)));
        assert!(!is_moving('\u{200d}') && !is_moving('\u{3000}') && is_moving('\u{200f}'));
    }
}
