use proptest::prelude::*;

use super::*;

/// What each kind of piece adds up to, in order, runs joined.
fn read(pieces: &[&str]) -> Vec<Piece> {
    let mut tags = ThinkTags::default();
    let mut found: Vec<Piece> = pieces.iter().flat_map(|piece| tags.push(piece)).collect();
    found.extend(tags.finish());
    let mut joined: Vec<Piece> = Vec::new();
    for piece in found {
        match (joined.last_mut(), piece) {
            (Some(Piece::Text(text)), Piece::Text(more))
            | (Some(Piece::Thinking(text)), Piece::Thinking(more)) => text.push_str(&more),
            (_, piece) => joined.push(piece),
        }
    }
    joined
}

fn text(text: &str) -> Piece {
    Piece::Text(text.to_owned())
}

fn thinking(text: &str) -> Piece {
    Piece::Thinking(text.to_owned())
}

#[test]
fn reasoning_is_told_apart_wherever_it_is_cut() {
    let cases: [(&str, &[Piece]); 15] = [
        ("plain", &[text("plain")]),
        ("<think>a</think>b", &[thinking("a"), text("b")]),
        ("\n<think>\na\n</think>\n\nb", &[thinking("a\n"), text("b")]),
        ("a<think>b</think>c", &[text("a"), thinking("b"), text("c")]),
        ("<think>é𝄞</think>ü", &[thinking("é𝄞"), text("ü")]),
        ("<think></think>b", &[text("b")]),
        ("<think>a", &[thinking("a")]),
        ("<think>a</thi", &[thinking("a</thi")]),
        ("a <thin", &[text("a <thin")]),
        ("1 < 2 and <b>", &[text("1 < 2 and <b>")]),
        (
            "<<think>a<</think>b",
            &[text("<"), thinking("a<"), text("b")],
        ),
        ("the `<think>` tag", &[text("the `<think>` tag")]),
        ("```\n<think>\n```\n", &[text("```\n<think>\n```\n")]),
        (
            "```\nx\n```\n<think>a</think>b",
            &[text("```\nx\n```\n"), thinking("a"), text("b")],
        ),
        ("  \n ", &[text("  \n ")]),
    ];
    for (said, expected) in cases {
        assert_eq!(read(&[said]), expected, "{said:?}");
        for (at, _) in said.char_indices() {
            let (left, right) = said.split_at(at);
            assert_eq!(read(&[left, right]), expected, "{said:?}, cut at {at}");
        }
        let characters: Vec<String> = said.chars().map(String::from).collect();
        let characters: Vec<&str> = characters.iter().map(String::as_str).collect();
        assert_eq!(read(&characters), expected, "{said:?}, by character");
    }
}

#[test]
fn text_is_not_held_back_without_need() {
    let mut tags = ThinkTags::default();
    assert_eq!(tags.push("Hello <b"), [text("Hello <b")]);
    assert_eq!(tags.push(" <"), [text(" ")]);
    assert_eq!(tags.push("x"), [text("<x")]);
}

proptest! {
    #[test]
    fn any_cut_gives_the_same(
        parts in prop::collection::vec(
            prop::sample::select(vec!["<think>", "</think>", "<", "</", "th", "\n", "`", "```", " ", "é", "word"]),
            0..20,
        ),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
    ) {
        let said = parts.concat();
        let mut places: Vec<usize> = said.char_indices().map(|(at, _)| at).collect();
        places.push(said.len());
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| *cut.get(&places)).collect();
        cuts.extend([0, said.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&str> = cuts.windows(2).map(|pair| &said[pair[0]..pair[1]]).collect();
        prop_assert_eq!(read(&pieces), read(&[&said]));
    }
}
