//! Holds the house in shape: imports point one way, and each library stays in its room.
//!
//! `protocol ← domain ← {store, llm, tools} ← the actors ← src ← eval`

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests fail by panicking, and a file near its limit is worth a line in the log"
)]

mod documents;
mod paths;
mod rules;

use std::path::{Path, PathBuf};

use rules::{Layer, violations};

/// Past this a file is worth splitting; it is named in the log.
const LONG_FILE_LINES: usize = 500;
/// Past this it is split before anything else is added to it.
const MAX_FILE_LINES: usize = 800;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(dir)
        .unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        // Packages of the browser tests may bring Rust files of their own.
        if path.is_dir() && !path.ends_with("node_modules") {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Every Rust file of the product, by its path from the workspace's root.
fn sources() -> Vec<(String, String)> {
    let root = root();
    let mut files = Vec::new();
    for dir in [
        "actors/src",
        "eval/src",
        "migrations/src",
        "src",
        "threads/src",
    ] {
        rust_files(&root.join(dir), &mut files);
    }
    files
        .iter()
        .map(|file| {
            let path = file.strip_prefix(&root).unwrap().to_str().unwrap();
            (path.to_owned(), std::fs::read_to_string(file).unwrap())
        })
        .collect()
}

#[test]
fn imports_point_one_way() {
    let sources = sources();
    assert!(sources.len() > 20, "the sources were not found");
    let found: Vec<_> = sources
        .iter()
        .flat_map(|(path, text)| violations(path, text))
        .collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn files_stay_short() {
    let mut too_long = Vec::new();
    for (path, text) in sources() {
        let lines = text.lines().count();
        if lines > MAX_FILE_LINES {
            too_long.push(format!("{path}: {lines} lines"));
        } else if lines > LONG_FILE_LINES {
            println!("{path} has {lines} lines: split it when you next work on it");
        }
    }
    assert!(
        too_long.is_empty(),
        "over {MAX_FILE_LINES} lines, split them by responsibility:\n{}",
        too_long.join("\n")
    );
}

#[test]
fn every_layer_has_files() {
    let sources = sources();
    for layer in [
        Layer::Protocol,
        Layer::Domain,
        Layer::Store,
        Layer::Llm,
        Layer::Https,
        Layer::Programs,
        Layer::Documents,
        Layer::Tools,
        Layer::Actors,
        Layer::Migrations,
        Layer::Service,
        Layer::Eval,
        Layer::Threads,
    ] {
        let has_one = sources.iter().any(|(path, _)| Layer::of(path) == layer);
        assert!(has_one, "no file of {layer:?}: do the paths still fit?");
    }
}

/// The checker finds `rule` in a made-up file, so a green check means something.
#[track_caller]
fn refuses(path: &str, text: &str, rule: &str) {
    let found = violations(path, text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains(rule), "{found:?}");
}

#[track_caller]
fn accepts(path: &str, text: &str) {
    assert_eq!(violations(path, text), Vec::<String>::new());
}

#[test]
fn the_checker_refuses_imports_against_the_arrow() {
    for (path, text) in [
        (
            "actors/src/protocol/event.rs",
            "use crate::domain::todo::X;",
        ),
        ("actors/src/domain/run.rs", "use crate::store::Commit;"),
        (
            "actors/src/domain/run.rs",
            "fn f() -> crate::llm::LlmError { todo() }",
        ),
        ("actors/src/store/mod.rs", "use crate::llm::LlmError;"),
        (
            "actors/src/llm/mod.rs",
            "use crate::{protocol::ids::X, tools::Tool};",
        ),
        (
            "actors/src/tools/todo.rs",
            "use super::super::store::Commit;",
        ),
        (
            "actors/src/tools/todo.rs",
            "use crate::session::SessionActor;",
        ),
        (
            "actors/src/store/a.rs",
            "mod tests { use super::super::super::llm::X; }",
        ),
        (
            "actors/src/tools/mod.rs",
            "use crate::{protocol::{ids::X, tool::Y}, llm};",
        ),
        ("migrations/src/lib.rs", "use navi_actors::store::Store;"),
        ("threads/src/lib.rs", "use navi_actors::store::Store;"),
        ("src/serve.rs", "use navi_eval::tasks::Task;"),
        ("actors/src/root.rs", "use navi::settings::Settings;"),
    ] {
        refuses(path, text, "against the arrow");
    }
}

#[test]
fn the_checker_refuses_a_library_outside_its_room() {
    for (path, text) in [
        ("actors/src/session/mod.rs", "use sea_orm::EntityTrait;"),
        ("src/main.rs", "fn f(_: sqlx::Pool) {}"),
        (
            "actors/src/llm/starter/mod.rs",
            "navi_threads::leave_one_free();",
        ),
        ("actors/src/tools/mod.rs", "use actix::prelude::*;"),
        (
            "actors/src/protocol/ids.rs",
            "#[derive(actix::Message)] struct X;",
        ),
        ("actors/src/session/mod.rs", "use actix_web::HttpResponse;"),
        ("eval/src/drive.rs", "use actix_web::HttpResponse;"),
        (
            "actors/src/store/passkeys.rs",
            "use webauthn_rs::prelude::Passkey;",
        ),
        (
            "src/http/metrics.rs",
            "use prometheus_client::registry::Registry;",
        ),
        (
            "actors/src/traces/mod.rs",
            "use opentelemetry_otlp::SpanExporter;",
        ),
        ("actors/src/llm/mod.rs", "use ::actix::Actor;"),
        ("actors/src/domain/mod.rs", "use tokio::sync::mpsc;"),
    ] {
        refuses(path, text, "belongs to");
    }
}

#[test]
fn the_checker_accepts_what_points_the_right_way() {
    for (path, text) in [
        (
            "actors/src/store/mod.rs",
            "use crate::protocol::ids::X; use super::domain::Y;",
        ),
        ("actors/src/store/mod.rs", "use sea_orm::EntityTrait;"),
        (
            "actors/src/session/mod.rs",
            "use crate::{store, llm::Backend, tools::Tool};",
        ),
        ("actors/src/session/mod.rs", "use actix::prelude::*;"),
        (
            "src/http.rs",
            "use navi_actors::root::SystemRoot; use actix_web::web;",
        ),
        (
            "eval/src/house.rs",
            "use navi::settings::Settings; use navi_actors::store::Store;",
        ),
        (
            "actors/src/tools/todo.rs",
            "use super::Tool; pub(crate) fn f() {}",
        ),
        (
            "actors/src/llm/ollama.rs",
            "mod tests { use super::super::Backend; }",
        ),
        // Words in comments, strings and lifetimes are no imports.
        (
            "actors/src/tools/mod.rs",
            "// use crate::store::X;\n/* actix::x /* y */ */",
        ),
        (
            "actors/src/tools/mod.rs",
            r##"const A: &str = r#"crate::store "actix::x"#;"##,
        ),
        (
            "actors/src/tools/mod.rs",
            r#"const A: (char, &str) = ('"', "\"crate::store::X");"#,
        ),
        (
            "actors/src/tools/mod.rs",
            "fn f<'a>(x: &'a str) -> my::sea_orm::X<'a> { x }",
        ),
    ] {
        accepts(path, text);
    }
}
