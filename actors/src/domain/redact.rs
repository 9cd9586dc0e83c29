//! Texts without the passwords and keys that addresses in them carry: for everything that is
//! printed, logged or told.

use std::borrow::Cow;

/// What stands in place of a secret.
pub const HIDDEN: &str = "[hidden]";

/// The text with the user's part of each URL in it hidden, and the values of those parameters
/// that are named as keys are.
#[must_use]
pub fn redacted(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find("://") else {
        return Cow::Borrowed(text);
    };
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    let mut next = Some(first);
    while let Some(at) = next {
        let (before, address) = rest.split_at(at + "://".len());
        shown.push_str(before);
        let end = address.find(ends_address).unwrap_or(address.len());
        let (address, after) = address.split_at(end);
        push_address(address, &mut shown);
        rest = after;
        next = rest.find("://");
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

/// A URL has none of these. Others that are rare in one may stand in a password.
fn ends_address(c: char) -> bool {
    c.is_whitespace() || c.is_control() || matches!(c, '"' | '<' | '>' | '`' | '\\')
}

/// What follows the `://` of a URL.
fn push_address(address: &str, shown: &mut String) {
    let authority = address.find(['/', '?', '#']).unwrap_or(address.len());
    let mut rest = address;
    if let Some(at) = address[..authority].rfind('@') {
        shown.push_str(HIDDEN);
        rest = &address[at..];
    }
    while let Some(at) = rest.find(['?', '&']) {
        let (before, parameters) = rest.split_at(at + 1);
        shown.push_str(before);
        rest = parameters;
        let end = rest.find(['&', '#']).unwrap_or(rest.len());
        if let Some(equals) = rest[..end].find('=')
            && names_key(&rest[..equals])
        {
            shown.push_str(&rest[..=equals]);
            shown.push_str(HIDDEN);
            rest = &rest[end..];
        }
    }
    shown.push_str(rest);
}

/// The text with each of these hidden in it. What is shorter than six bytes is no secret, and
/// would take words apart.
#[must_use]
pub fn without<'a>(text: &str, secrets: impl IntoIterator<Item = &'a str>) -> String {
    let secrets = secrets.into_iter().filter(|secret| secret.len() >= 6);
    secrets.fold(text.to_owned(), |text, secret| text.replace(secret, HIDDEN))
}

/// Whether a parameter or a variable of this name holds a secret, as far as one can tell.
#[must_use]
pub fn names_key(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with("key")
        || matches!(
            name.as_str(),
            "auth" | "authorization" | "pw" | "pwd" | "sig"
        )
        || ["token", "secret", "passw", "signature", "credential"]
            .iter()
            .any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lose_their_secrets_and_nothing_else() {
        for (text, expected) in [
            ("no address", "no address"),
            ("http://localhost:11434", "http://localhost:11434"),
            ("http://me:pw@host:1/v1", "http://[hidden]@host:1/v1"),
            ("at https://key@host.", "at https://[hidden]@host."),
            ("http://a:p@ss,(w)@host", "http://[hidden]@host"),
            (
                "url (http://a:b@x/), then \"socks5h://c:d@y\"",
                "url (http://[hidden]@x/), then \"socks5h://[hidden]@y\"",
            ),
            ("https://x/@scope/pkg?a=1", "https://x/@scope/pkg?a=1"),
            (
                "https://x/?a=1&api_key=k&b=2#c",
                "https://x/?a=1&api_key=[hidden]&b=2#c",
            ),
            (
                "https://x?access_token=k",
                "https://x?access_token=[hidden]",
            ),
            ("https://x/?q=key", "https://x/?q=key"),
            ("://", "://"),
        ] {
            assert_eq!(redacted(text), expected, "{text}");
        }
    }
}
