//! Text cut to fit.

/// A text on one line, of at most so many characters; what is cut off is shown by an ellipsis.
#[must_use]
pub fn one_line(text: &str, max_chars: usize) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    cut(&line, max_chars)
}

/// The start of a text, of at most so many characters, the ellipsis among them.
#[must_use]
pub fn cut(text: &str, max_chars: usize) -> String {
    if text.chars().nth(max_chars).is_none() {
        return text.to_owned();
    }
    let head: String = text.chars().take(max_chars.saturating_sub(1)).collect();
    format!("{}…", head.trim_end())
}

/// A text without its middle where it has more than so many characters: what someone wants
/// stands at the start or at the end of a long message.
#[must_use]
pub fn without_middle(text: &str, max_chars: usize) -> String {
    let chars = text.chars().count();
    if chars <= max_chars {
        return text.to_owned();
    }
    let half = max_chars / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(chars - half).collect();
    format!(
        "{head}\n[… {} characters left out …]\n{tail}",
        chars - 2 * half
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays_and_what_does_not_ends_in_an_ellipsis() {
        assert_eq!(one_line(" two\n  words ", 9), "two words");
        assert_eq!(one_line("two words", 8), "two wor…");
        assert_eq!(one_line("слово за словом", 7), "слово…");
        assert_eq!(cut("a\nb", 3), "a\nb");
        assert_eq!(cut("", 0), "");
    }

    #[test]
    fn a_long_text_keeps_both_ends() {
        assert_eq!(without_middle("abcdef", 6), "abcdef");
        assert_eq!(
            without_middle("ґbcdefgї", 4),
            "ґb\n[… 4 characters left out …]\ngї"
        );
    }
}
