use proptest::prelude::*;

use super::*;

#[test]
fn plain_paths_are_taken() {
    for (text, path, names_directory) in [
        (".", ".", true),
        ("./", ".", true),
        ("a", "a", false),
        ("./a//b/./c.md", "a/b/c.md", false),
        ("a/", "a", true),
        ("a/.", "a", true),
        ("…/звіт 1.md", "…/звіт 1.md", false),
        ("...", "...", false),
        ("a~/~", "a~/~", false),
    ] {
        let parsed = InnerPath::parse(text).unwrap();
        assert_eq!(parsed.as_path(), Path::new(path), "{text}");
        assert_eq!(parsed.names_directory(), names_directory, "{text}");
    }
}

#[test]
fn other_paths_are_refused_with_a_hint() {
    let long_name = "x".repeat(256);
    let long_path = "x/".repeat(600);
    let deep_path = "x/".repeat(33);
    let errors: Vec<String> = [
        "..",
        "a/../b",
        "../etc/passwd",
        "/etc/passwd",
        "//a",
        "/",
        "~/notes",
        "..\\secret",
        "a\0b",
        "a\nb",
        "safe\u{202e}txt.exe",
        &long_name,
        &long_path,
        &deep_path,
    ]
    .into_iter()
    .map(|text| InnerPath::parse(text).unwrap_err().0)
    .collect();
    insta::assert_snapshot!(errors.join("\n"));
}

proptest! {
    #[test]
    fn a_parsed_path_has_only_names(text in "[a./~\\\\ \u{2024}\u{ff0f}\0-\u{20}]{0,20}") {
        if let Ok(parsed) = InnerPath::parse(&text) {
            let components: Vec<_> = parsed.prefix().components().collect();
            let all_names = components
                .iter()
                .all(|component| matches!(component, std::path::Component::Normal(_)));
            prop_assert!(all_names, "{:?}", components);
        }
    }
}
