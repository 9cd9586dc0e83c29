use proptest::prelude::*;

use super::*;

fn phrase(words: &[&str], is_open: bool) -> Phrase {
    Phrase {
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        is_open,
    }
}

fn parsed(text: &str) -> Vec<Phrase> {
    SearchQuery::parse(text).map_or_else(Vec::new, |query| query.phrases)
}

/// The snippet, with what is marked in brackets.
fn shown(query: &str, text: &str) -> String {
    let snippet = SearchQuery::parse(query)
        .map(|query| query.snippet(text))
        .unwrap_or_default();
    let units: Vec<u16> = snippet.text.encode_utf16().collect();
    let (mut shown, mut from) = (String::new(), 0);
    let part = |from: u32, to: u32| String::from_utf16_lossy(&units[from as usize..to as usize]);
    for mark in &snippet.marks {
        shown += &format!("{}[{}]", part(from, mark.start), part(mark.start, mark.end));
        from = mark.end;
    }
    shown + &String::from_utf16_lossy(&units[from as usize..])
}

#[test]
fn any_text_is_a_query() {
    assert_eq!(
        parsed("Hello, wor-ld!"),
        [
            phrase(&["Hello"], true),
            phrase(&["wor"], true),
            phrase(&["ld"], true)
        ]
    );
    assert_eq!(
        parsed(r#"the "green tea" NOT (x OR*"#),
        [
            phrase(&["the"], true),
            phrase(&["green", "tea"], false),
            phrase(&["NOT"], true),
            phrase(&["x"], true),
            phrase(&["OR"], true)
        ]
    );
    assert_eq!(parsed(r#""green te"#), [phrase(&["green", "te"], true)]);
    for nothing in ["", "  ", "\"\"", "🎉 -- *", "\0", "\u{301} \"\u{301}\""] {
        assert_eq!(parsed(nothing), [], "{nothing:?}");
    }
    let long = parsed(&"я".repeat(1_000));
    assert_eq!(long, [phrase(&["я".repeat(MAX_QUERY).as_str()], true)]);
}

#[test]
fn what_matches_is_marked() {
    for (query, text, expected) in [
        (
            "tea",
            "Tea for two, teapots, steam",
            "[Tea] for two, [teapots], steam",
        ),
        ("\"tea\"", "Tea, teapots", "[Tea], teapots"),
        (
            "\"for two\" TEA",
            "tea for  two\nfor me",
            "[tea] [for two] for me",
        ),
        (
            "київ",
            "У Києві, Київ — «Київ».",
            "У Києві, [Київ] — «[Київ]».",
        ),
        (
            "cafe",
            "Un café, un cafe\u{301}!",
            "Un [café], un [cafe\u{301}]!",
        ),
        ("wörd", "👩‍👩‍👧 word 👩‍👩‍👧", "👩‍👩‍👧 [word] 👩‍👩‍👧"),
        ("nowhere", "some other text", "some other text"),
        ("a", "", ""),
    ] {
        assert_eq!(shown(query, text), expected);
    }
}

#[test]
fn a_snippet_is_short_and_stands_around_the_first_match() {
    let text = format!(
        "{}needle {}needle",
        "hay ".repeat(100),
        "straw ".repeat(100)
    );
    let snippet = shown("needle", &text);
    assert!(snippet.starts_with("…hay hay"), "{snippet}");
    assert!(snippet.contains("hay [needle] straw straw"), "{snippet}");
    assert!(snippet.ends_with('…'), "{snippet}");
    assert!(snippet.chars().count() <= SNIPPET + 4, "{snippet}");
}

proptest! {
    #[test]
    fn marks_are_in_order_and_inside(query in ".{0,30}", text in "[a-c ü\n👩и\u{301}]{0,300}") {
        if let Some(query) = SearchQuery::parse(&query) {
            let snippet = query.snippet(&text);
            let length = snippet.text.encode_utf16().count();
            let mut last = 0;
            for mark in &snippet.marks {
                prop_assert!(last <= mark.start && mark.start < mark.end);
                last = mark.end;
            }
            prop_assert!(last as usize <= length);
        }
    }

    #[test]
    fn a_word_of_the_text_is_marked(words in proptest::collection::vec("[a-zà-öø-ÿа-яґїєі]{1,8}", 1..20), n in 0..20_usize) {
        let word = &words[n % words.len()];
        let query = SearchQuery::parse(word).unwrap();
        let snippet = query.snippet(&words.join(", "));
        prop_assert!(!snippet.marks.is_empty());
    }
}
