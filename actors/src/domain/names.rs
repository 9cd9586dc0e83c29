//! Names of people: what one may be, and when two look alike.

use unicode_security::skeleton;

use super::unseen::is_unseen;

/// The longest name, in characters.
pub const MAX_CHARS: usize = 64;

/// A name as it is kept.
///
/// # Errors
/// What a name must be.
pub fn checked(name: &str) -> Result<String, String> {
    let name = name.trim();
    let count = name.chars().count();
    if count == 0 || count > MAX_CHARS || name.chars().any(is_unseen) {
        return Err(format!(
            "name must have 1 to {MAX_CHARS} characters, each of which can be seen"
        ));
    }
    Ok(name.to_owned())
}

/// What names come to that a reader takes for one: no two people have the same, so that nobody
/// passes for somebody else.
pub fn key(name: &str) -> String {
    let drawn: String = skeleton(&name.trim().to_lowercase()).collect();
    // What looks like a small letter may be drawn as a capital.
    skeleton(&drawn.to_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_are_one() {
        for (one, other) in [
            ("Anna", "anna"),
            ("Anna", "Аnna"),
            ("anna", " ＡＮＮＡ "),
            ("paypal", "раураl"),
            ("e\u{301}va", "éva"),
        ] {
            assert_eq!(key(one), key(other), "{one} {other}");
        }
        assert_ne!(key("Anna"), key("Hanna"));
        assert_ne!(key("Олег"), key("Ольга"));
    }

    #[test]
    fn a_name_can_be_seen() {
        assert_eq!(checked(" Olha K. "), Ok("Olha K.".to_owned()));
        for wrong in [
            "",
            "  ",
            "a\u{200b}b",
            "a\nb",
            "\u{202e}abc",
            &"a".repeat(65),
        ] {
            assert!(checked(wrong).is_err(), "{wrong:?}");
        }
    }
}
