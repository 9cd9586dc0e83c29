//! The documents name tests and files; those have to be there.

use crate::{root, rust_files};

/// What stands in backticks in a text.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The last cell of each row of the table of invariants.
fn holders(architecture: &str) -> Vec<&str> {
    let (_, table) = architecture.split_once("## What always holds").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    table
        .lines()
        .filter_map(|line| {
            line.strip_prefix("| ")?
                .strip_suffix(" |")?
                .rsplit(" | ")
                .next()
        })
        .flat_map(quoted)
        .collect()
}

#[test]
fn every_test_that_the_architecture_names_exists() {
    let root = root();
    let architecture = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let named = holders(&architecture);
    assert!(named.len() >= 8, "the table was not found: {named:?}");

    let mut files = Vec::new();
    for dir in ["actors", "eval", "migrations", "src", "tests"] {
        rust_files(&root.join(dir), &mut files);
    }
    let tests: String = files
        .iter()
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect();

    let missing: Vec<_> = named
        .into_iter()
        .filter(|name| {
            let there = if name.contains('/') {
                root.join(name).exists()
            } else {
                tests.contains(&format!("fn {name}("))
            };
            !there
        })
        .collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names {missing:?}");
}
