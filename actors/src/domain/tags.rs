//! What a user files conversations under.

use super::unseen::is_unseen;
use crate::protocol::error::{NaviError, invalid};

/// The most tags of a session.
pub const MAX_TAGS: usize = 10;
/// The most characters of a tag.
pub const TAG_CHARS: usize = 40;

/// The tags in their one form: without space around them, each once, however it is written.
///
/// # Errors
/// `invalid_field` where one is empty, too long or cannot be seen, or there are too many.
pub fn valid(tags: &[String]) -> Result<Vec<String>, NaviError> {
    if tags.len() > MAX_TAGS {
        return Err(invalid(format!(
            "a session has at most {MAX_TAGS} tags; these are {}",
            tags.len()
        )));
    }
    let mut kept: Vec<String> = Vec::new();
    for tag in tags {
        let words: Vec<&str> = tag.split_whitespace().collect();
        let chars = tag.chars().filter(|_| !words.is_empty()).count();
        let tag = words.join(" ");
        if chars == 0 || chars > TAG_CHARS {
            return Err(invalid(format!(
                "a tag must have 1 to {TAG_CHARS} characters; this one has {chars}"
            )));
        }
        if tag.chars().any(|c| c.is_control() || is_unseen(c)) {
            return Err(invalid("a tag must not hold characters that nobody sees"));
        }
        if !holds(&kept, &tag) {
            kept.push(tag);
        }
    }
    Ok(kept)
}

/// Whether this tag is among them, in whatever case.
#[must_use]
pub fn holds(tags: &[String], tag: &str) -> bool {
    let wanted = tag.trim().to_lowercase();
    tags.iter().any(|tag| tag.to_lowercase() == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::error::ErrorCode;

    fn of(tags: &[&str]) -> Result<Vec<String>, NaviError> {
        let tags: Vec<String> = tags.iter().map(|&tag| tag.to_owned()).collect();
        valid(&tags)
    }

    #[test]
    fn tags_stand_once_and_in_order() {
        let tags = of(&[" Робота ", "home  office", "РОБОТА", "x"]).unwrap();
        assert_eq!(tags, ["Робота", "home office", "x"]);
        assert!(holds(&tags, "Home Office ") && !holds(&tags, "home"));
        assert_eq!(of(&[]).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn what_is_no_tag_is_refused() {
        let long = "x".repeat(TAG_CHARS + 1);
        for tag in ["", "  ", "a\u{0}b", "a\u{200b}b", long.as_str()] {
            assert_eq!(
                of(&[tag]).unwrap_err().code,
                ErrorCode::InvalidField,
                "{tag:?}"
            );
        }
        let many: Vec<String> = (0..=MAX_TAGS).map(|n| n.to_string()).collect();
        assert!(valid(&many).is_err() && valid(&many[1..]).is_ok());
    }
}
