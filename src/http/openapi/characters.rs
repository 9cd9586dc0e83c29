//! Classes of characters, as regular expressions that ECMA-262 (with `u`), Rust and Python read
//! alike have them. What an escape of four digits cannot name stands there itself. They are what
//! the code goes by: a test looks at every character there is.

/// White space.
pub(super) const SPACE: &str = "\
    \\u0009-\\u000d\\u0020\\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028-\\u2029\\u202f\\u205f\
    \\u3000";
/// Controls.
pub(super) const CONTROL: &str = "\\u0000-\\u001f\\u007f-\\u009f";
/// What moves or breaks the text around it.
pub(super) const MOVING: &str =
    "\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e-\\u200f\\u2028-\\u202e\\u2066-\\u2069";
/// What nobody sees.
pub(super) const UNSEEN: &str = "\
    \\u0000-\\u001f\\u007f-\\u00a0\\u00ad\\u034f\\u0600-\\u0605\\u061c\\u06dd\\u070f\
    \\u0890-\\u0891\\u08e2\\u115f-\\u1160\\u1680\\u17b4-\\u17b5\\u180b-\\u180f\\u2000-\\u200f\
    \\u2028-\\u202f\\u205f-\\u206f\\u2800\\u3000\\u3164\\ue000-\\uf8ff\\ufdd0-\\ufdef\
    \\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffc\\ufffe-\\uffff\u{110bd}\u{110cd}\
    \u{13430}-\u{1343f}\u{13441}-\u{13442}\u{1bca0}-\u{1bca3}\u{1d159}\u{1d173}-\u{1d17a}\
    \u{1fffe}-\u{1ffff}\u{2fffe}-\u{2ffff}\u{3fffe}-\u{3ffff}\u{4fffe}-\u{4ffff}\
    \u{5fffe}-\u{5ffff}\u{6fffe}-\u{6ffff}\u{7fffe}-\u{7ffff}\u{8fffe}-\u{8ffff}\
    \u{9fffe}-\u{9ffff}\u{afffe}-\u{affff}\u{bfffe}-\u{bffff}\u{cfffe}-\u{cffff}\
    \u{dfffe}-\u{e0fff}\u{efffe}-\u{10ffff}";
/// What nobody sees, and no white space.
pub(super) const HIDDEN: &str = "\
    \\u0000-\\u0008\\u000e-\\u001f\\u007f-\\u0084\\u0086-\\u009f\\u00ad\\u034f\\u0600-\\u0605\
    \\u061c\\u06dd\\u070f\\u0890-\\u0891\\u08e2\\u115f-\\u1160\\u17b4-\\u17b5\\u180b-\\u180f\
    \\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ue000-\\uf8ff\\ufdd0-\\ufdef\
    \\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffc\\ufffe-\\uffff\u{110bd}\u{110cd}\
    \u{13430}-\u{1343f}\u{13441}-\u{13442}\u{1bca0}-\u{1bca3}\u{1d159}\u{1d173}-\u{1d17a}\
    \u{1fffe}-\u{1ffff}\u{2fffe}-\u{2ffff}\u{3fffe}-\u{3ffff}\u{4fffe}-\u{4ffff}\
    \u{5fffe}-\u{5ffff}\u{6fffe}-\u{6ffff}\u{7fffe}-\u{7ffff}\u{8fffe}-\u{8ffff}\
    \u{9fffe}-\u{9ffff}\u{afffe}-\u{affff}\u{bfffe}-\u{bffff}\u{cfffe}-\u{cffff}\
    \u{dfffe}-\u{e0fff}\u{efffe}-\u{10ffff}";

#[cfg(test)]
mod tests {
    use navi_actors::domain::unseen::{is_moving, is_unseen};

    use super::*;

    /// The ranges of these characters.
    fn class(is_of: impl Fn(char) -> bool) -> String {
        let mut ranges: Vec<(char, char)> = Vec::new();
        for c in (char::MIN..=char::MAX).filter(|c| is_of(*c)) {
            match ranges.last_mut() {
                Some((_, last)) if u32::from(*last) + 1 == u32::from(c) => *last = c,
                _ => ranges.push((c, c)),
            }
        }
        let named = |c: char| match u32::from(c) {
            code @ 0..=0xffff => format!(r"\u{code:04x}"),
            _ => c.to_string(),
        };
        let ranges = ranges.into_iter().map(|(first, last)| {
            if first == last {
                named(first)
            } else {
                format!("{}-{}", named(first), named(last))
            }
        });
        ranges.collect()
    }

    #[test]
    fn classes_are_what_the_code_goes_by() {
        assert_eq!(SPACE, class(char::is_whitespace));
        assert_eq!(CONTROL, class(char::is_control));
        assert_eq!(MOVING, class(is_moving));
        assert_eq!(UNSEEN, class(is_unseen));
        let is_hidden = |c: char| is_unseen(c) && !c.is_whitespace();
        assert_eq!(HIDDEN, class(is_hidden));
    }
}
