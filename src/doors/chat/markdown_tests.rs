//! What comes of a text, however it is cut into pieces.

use super::super::style::Colours;
use super::*;

/// The text in pieces of so many characters.
fn set(text: &str, size: usize, width: usize) -> Vec<Line> {
    let mut markdown = Markdown::new(width);
    let mut out = Vec::new();
    let chars: Vec<char> = text.chars().collect();
    for piece in chars.chunks(size) {
        let piece: String = piece.iter().collect();
        markdown.push(&piece, &mut out);
    }
    markdown.finish(&mut out);
    out
}

fn texts(lines: &[Line]) -> Vec<String> {
    lines.iter().map(Line::text).collect()
}

const ALL: &str = "# A *title*\n\nSome **bold text**, `code * here` and 2 * 3 * 4, 5*6*7, a_b_c.\n\n- one\n  - [x] done\n12. twelve\n> quoted\n\n```rust\nlet a = \"**\";\n\n\n```\n| a | b |\n---\nThe **end";

#[test]
fn it_is_the_same_in_whatever_pieces_it_comes() {
    let whole = set(ALL, 10_000, 60);
    for size in [1, 2, 3, 7, 20] {
        assert_eq!(set(ALL, size, 60), whole, "in pieces of {size}");
    }
    assert_eq!(
        texts(&whole),
        [
            "A title",
            "",
            "Some bold text, code * here and 2 * 3 * 4, 5*6*7, a_b_c.",
            "",
            "• one",
            "  ☑ done",
            "12. twelve",
            "│ quoted",
            "",
            "let a = \"**\";",
            "",
            "",
            "| a | b |",
            "────────────────────────────────────────",
            "The **end",
        ]
    );
}

#[test]
fn marks_become_looks() {
    let line = &set("a **b** *c* `d` ***e***", 100, 80)[0];
    assert_eq!(
        line.paint(Colours::On),
        "a \u{1b}[1mb\u{1b}[0m \u{1b}[3mc\u{1b}[0m \u{1b}[36md\u{1b}[0m \u{1b}[1m\u{1b}[3me\u{1b}[0m"
    );
}

#[test]
fn a_full_row_is_given_out_before_the_line_ends() {
    let mut markdown = Markdown::new(20);
    let mut out = Vec::new();
    markdown.push("- twelve of the fairest ", &mut out);
    assert_eq!(texts(&out), ["• twelve of the"]);
    markdown.push("and more", &mut out);
    markdown.finish(&mut out);
    assert_eq!(texts(&out), ["• twelve of the", "  fairest and more"]);
}

#[test]
fn a_word_longer_than_a_row_is_broken_and_nothing_of_it_is_lost() {
    let word = "x".repeat(55);
    let lines = set(&word, 1, 20);
    assert!(lines.iter().all(|line| line.text().len() <= 20));
    assert_eq!(texts(&lines).concat(), word);
}

#[test]
fn what_comes_between_leaves_a_block_of_code_open() {
    let mut markdown = Markdown::new(40);
    let mut out = Vec::new();
    markdown.push("```\none", &mut out);
    markdown.pause(&mut out);
    markdown.push("*two*\n```\n*three*", &mut out);
    markdown.finish(&mut out);
    assert_eq!(texts(&out), ["one", "*two*", "three"]);
}

#[test]
fn escapes_stand_for_what_they_escape() {
    assert_eq!(texts(&set(r"2 \* 3 \n \\", 1, 40)), [r"2 * 3 \n \"]);
}

#[test]
fn nothing_at_all_is_no_line() {
    assert_eq!(set("", 1, 40), []);
    assert_eq!(set("\n\n", 1, 40), []);
}

proptest::proptest! {
    /// Whatever comes: no panic, and no letter is lost.
    #[test]
    fn no_letter_is_lost(text in "[a-c*`#>|\\\\ \n~_-]{0,80}", size in 1_usize..9) {
        let letters = |text: &str| text.chars().filter(char::is_ascii_alphabetic).count();
        let lines = set(&text, size, 20);
        // The word behind a fence names its language.
        if !text.contains("```") && !text.contains("~~~") {
            proptest::prop_assert_eq!(letters(&texts(&lines).concat()), letters(&text));
        }
    }
}
