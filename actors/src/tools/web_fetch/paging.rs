//! Long texts in parts.

/// As many characters as one part has.
const PART_CHARS: usize = 16_000;
/// A part ends at the end of a line if there is one in its last so many characters.
const LINE_CHARS: usize = 2_000;

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part<'a> {
    pub(super) text: &'a str,
    start: usize,
    end: usize,
    whole: usize,
}

impl Part<'_> {
    /// Where it stands; none where it is the whole.
    pub(super) fn place(&self) -> Option<String> {
        let (start, end, whole) = (self.start, self.end, self.whole);
        if end < whole {
            Some(format!(
                "Characters {start} to {end} of {whole}; for the next part call web_fetch with the same url and start={end}"
            ))
        } else {
            (start > 0).then(|| format!("Characters {start} to {end} of {whole}, the last part"))
        }
    }
}

/// The part that begins at character `start`.
pub(super) fn part(text: &str, start: u64) -> Result<Part<'_>, String> {
    let whole = text.chars().count();
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    refuse_if!(
        start > 0 && start >= whole,
        "start={start} is after the end: the text has {whole} characters"
    );
    let from = offset(text, start);
    let rest = &text[from..];
    let to = offset(rest, PART_CHARS);
    let mut shown = &rest[..to];
    if to < rest.len() {
        let earliest = offset(rest, PART_CHARS - LINE_CHARS);
        if let Some(line_end) = shown[earliest..].rfind('\n') {
            shown = &shown[..earliest + line_end + 1];
        }
    }
    Ok(Part {
        text: shown,
        start,
        end: start + shown.chars().count(),
        whole,
    })
}

/// The byte at which character `index` begins.
fn offset(text: &str, index: usize) -> usize {
    text.char_indices()
        .nth(index)
        .map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says so by failing")]
    use super::*;

    #[test]
    fn parts_come_to_the_whole() {
        let text: String = (0..9_000).map(|n| format!("рядок {n}\n")).collect();
        let mut read = String::new();
        let mut start = 0;
        loop {
            let part = part(&text, start as u64).unwrap();
            read.push_str(part.text);
            assert!(part.text.ends_with('\n'));
            start = part.end;
            if part.end == part.whole {
                assert!(part.place().unwrap().ends_with("the last part"));
                break;
            }
            assert!(part.place().unwrap().contains(&format!("start={start}")));
        }
        assert_eq!(read, text);
        assert!(
            part(&text, 10_000_000)
                .unwrap_err()
                .contains("after the end")
        );
        let short = part("a", 0).unwrap();
        assert_eq!((short.text, short.place()), ("a", None));
        assert_eq!(part("", 0).unwrap().text, "");
        let line = "x".repeat(40_000);
        assert_eq!(part(&line, 0).unwrap().text.len(), PART_CHARS);
    }
}
