//! A session's title from its first message.

/// The most characters of a title that nobody chose.
const MAX_CHARS: usize = 60;

/// The start of a text as a title: one line, cut at a word.
#[must_use]
pub fn from_text(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MAX_CHARS {
        return line;
    }
    let head: String = line.chars().take(MAX_CHARS).collect();
    let cut = head.rfind(' ').filter(|at| *at > MAX_CHARS / 2);
    format!("{}…", &head[..cut.unwrap_or(head.len())])
}

#[cfg(test)]
mod tests {
    use super::from_text;

    #[test]
    fn short_text_is_its_own_title() {
        assert_eq!(from_text("  buy\nmilk "), "buy milk");
    }

    #[test]
    fn long_text_is_cut_at_a_word() {
        let title = from_text(&"wörter ".repeat(40));
        assert!(title.ends_with("wörter…"), "{title}");
        assert!(title.chars().count() <= 61);
    }

    #[test]
    fn one_long_word_is_cut_anywhere() {
        assert_eq!(from_text(&"ї".repeat(100)).chars().count(), 61);
    }
}
