use serde_json::json;

use super::tests::Fixture;

fn project() -> Fixture {
    let place = Fixture::new();
    place.put("README.md", "# Navi\nAll about the Project.\n");
    place.put("src/main.rs", "fn main() {\n\tlet total = 1 + 1;\n}\n");
    place.put("src/deep/Notes.MD", "project total: 12\nproject total: 7\n");
    place.put("build/out.md", "project\n");
    place.put("src/deep/.env", "TOTAL=1\n");
    place.put(".git/config", "project\n");
    place.put(".gitignore", "build/\n*.log\n!keep.log\n");
    place.put("src/debug.log", "project\n");
    place.put("src/keep.log", "project\n");
    place.put("src/.ignore", "deep/secret*\n");
    place.put("src/deep/secret.txt", "project\n");
    place.put("logo.png", b"\x89PNG\0project");
    place
}

#[tokio::test]
async fn names_are_found_by_glob_and_by_part() {
    let place = project();
    for (pattern, path, found) in [
        ("*.md", ".", vec!["README.md", "src/deep/Notes.MD"]),
        ("readme", ".", vec!["README.md"]),
        ("src/**/*.rs", ".", vec!["src/main.rs"]),
        ("deep", ".", vec!["src/deep/"]),
        ("deep/*", "src", vec!["src/deep/.env", "src/deep/Notes.MD"]),
        ("*.{rs,log}", ".", vec!["src/keep.log", "src/main.rs"]),
        ("out*", "build", vec!["build/out.md"]),
    ] {
        let arguments = json!({"action": "search_names", "pattern": pattern, "path": path});
        let text = place.ok(arguments).await;
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(lines, found, "{pattern}");
    }
}

#[tokio::test]
async fn lines_are_found() {
    let place = project();
    for (pattern, path, found) in [
        (
            "total: [0-9]+",
            ".",
            vec![
                "src/deep/Notes.MD:1: project total: 12",
                "src/deep/Notes.MD:2: project total: 7",
            ],
        ),
        // Small letters find capitals, capitals only themselves.
        (
            "project",
            "README.md",
            vec!["README.md:2: All about the Project."],
        ),
        ("Project", ".", vec!["README.md:2: All about the Project."]),
        (
            "^\\s*let",
            "src",
            vec!["src/main.rs:2: \tlet total = 1 + 1;"],
        ),
        ("project", "build", vec!["build/out.md:1: project"]),
    ] {
        let arguments = json!({"action": "search_content", "pattern": pattern, "path": path});
        let text = place.ok(arguments).await;
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(lines, found, "{pattern}");
    }
}

#[tokio::test]
async fn a_line_ends_where_its_text_does() {
    let place = Fixture::new();
    place.put("unix.txt", "one;\n\ntwo\n");
    place.put("windows.txt", "one;\r\n\r\ntwo\r\n");
    for (pattern, line) in [(";$", "1: one;"), ("^$", "2:"), ("^two$", "3: two")] {
        let arguments = json!({"action": "search_content", "pattern": pattern});
        let text = place.ok(arguments).await;
        let lines: Vec<&str> = text.lines().skip(1).map(str::trim_end).collect();
        let found = ["unix", "windows"].map(|name| format!("{name}.txt:{line}"));
        assert_eq!(lines, found, "{pattern}");
    }
}

#[tokio::test]
async fn plain_text_is_found_where_no_expression_would() {
    let place = project();
    let arguments = json!({"action": "search_content", "pattern": "main() {", "literal": true});
    let text = place.ok(arguments).await;
    assert_eq!(text, "1 line in 1 file:\nsrc/main.rs:1: fn main() {");
}

#[tokio::test]
async fn nothing_found_is_said_with_what_was_left_out() {
    let place = project();
    let arguments = json!({"action": "search_names", "pattern": "out.md"});
    insta::assert_snapshot!(place.ok(arguments).await, @r"
    no file has a name that matches `out.md`; to look inside files use search_content
    [4 entries left out, as .gitignore says; name a path to search there]
    ");
    let arguments = json!({"action": "search_content", "pattern": "nowhere"});
    insta::assert_snapshot!(place.ok(arguments).await, @r"
    nothing in 8 files matches `nowhere`
    [4 entries left out, as .gitignore says; name a path to search there]
    ");
}

#[tokio::test]
async fn matches_are_bounded_in_number_and_length() {
    let place = Fixture::new();
    place.put("many.txt", "needle\n".repeat(250));
    let long = format!("{} needle {}", "a".repeat(5_000), "z".repeat(5_000));
    place.put("long.txt", &long);
    let arguments = json!({"action": "search_content", "pattern": "needle"});
    let text = place.ok(arguments).await;
    assert!(text.starts_with("100 lines in 2 files:\nlong.txt:1: …aaa"));
    assert!(text.contains("needle zzz"));
    assert!(text.lines().all(|line| line.len() < 400));
    assert!(text.ends_with("[there are more; use a narrower pattern, or a path]"));
}

#[tokio::test]
async fn a_greedy_pattern_is_refused_and_a_nasty_one_is_fast() {
    let place = Fixture::new();
    place.put("a.txt", format!("{}!\n", "a".repeat(50_000)));
    let arguments = json!({"action": "search_content", "pattern": "(a+)+$"});
    let text = place.ok(arguments).await;
    assert!(text.starts_with("nothing in 1 file"), "{text}");
    let arguments = json!({"action": "search_content", "pattern": "((a{100}){100}){100}"});
    let error = place.error(arguments).await;
    assert!(error.contains("size limit"), "{error}");
}
