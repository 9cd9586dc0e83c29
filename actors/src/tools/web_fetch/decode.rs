//! From bytes to text: by the mark at its start, by what the server said, by what the page says.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// As far into a page as its own word on its encoding counts (HTML standard).
const PRESCAN_BYTES: usize = 1024;

/// The text of a body. `told` is what the server said of its encoding.
pub(super) fn text(body: &[u8], told: Option<&str>) -> String {
    let encoding = told
        .and_then(label)
        .or_else(|| label(said_by_page(body)?.as_str()))
        .unwrap_or_else(|| {
            if std::str::from_utf8(body).is_ok() {
                UTF_8
            } else {
                WINDOWS_1252
            }
        });
    // A byte order mark wins over everything, and is taken out.
    let (text, _, _) = encoding.decode(body);
    text.into_owned()
}

fn label(name: &str) -> Option<&'static Encoding> {
    Encoding::for_label(name.trim().as_bytes())
}

/// What stands after `charset=` or `encoding=` near the start.
fn said_by_page(body: &[u8]) -> Option<String> {
    let head = &body[..body.len().min(PRESCAN_BYTES)];
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let after = |word: &str| head.find(word).map(|at| &head[at + word.len()..]);
    let rest =
        after("charset=").or_else(|| head.starts_with("<?xml").then(|| after("encoding="))?)?;
    let name: String = rest
        .trim_start_matches(['"', '\'', ' '])
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':'))
        .collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_is_found_where_it_stands() {
        let cyrillic = [0xcf, 0xf0, 0xe8, 0xe2, 0xb3, 0xf2];
        assert_eq!(text(&cyrillic, Some("windows-1251")), "Привіт");
        let mut page = b"<meta charset='windows-1251'>".to_vec();
        page.extend(cyrillic);
        assert!(text(&page, None).ends_with("Привіт"));
        let mut page = b"<?xml version=\"1.0\" encoding=\"windows-1251\"?>".to_vec();
        page.extend(cyrillic);
        assert!(text(&page, None).ends_with("Привіт"));
        assert_eq!(text("Привіт".as_bytes(), None), "Привіт");
        assert_eq!(text("Привіт".as_bytes(), Some("no-such")), "Привіт");
        assert_eq!(text(b"\xef\xbb\xbfx", Some("windows-1251")), "x");
        assert_eq!(text(b"\xff\xfex\0", None), "x");
        assert_eq!(text(b"caf\xe9", None), "café");
    }
}
