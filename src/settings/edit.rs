//! A settings file's text with some settings changed in it: what stands around them stays as a
//! person wrote it.

use std::collections::BTreeMap;

use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

use super::keys::Key;
use super::layers::{DEFAULTS, leaves, without_source};

/// What each is to be; none: it is taken out.
pub(super) type Edits = BTreeMap<&'static str, Option<String>>;

/// The text with these settings as they are to be.
///
/// # Errors
/// What is wrong with the text as it is.
pub(super) fn edited(text: &str, edits: &Edits) -> Result<String, String> {
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error: toml_edit::TomlError| without_source(&error.to_string()))?;
    let defaults: DocumentMut = DEFAULTS.parse().unwrap_or_default();
    for (path, text) in edits {
        let (section, name) = path.split_once('.').unwrap_or(("", path));
        match text {
            Some(text) => {
                let like = defaults.get(section).and_then(|section| section.get(name));
                put(&mut document, section, name, value(text, like))?;
            }
            None => take_out(&mut document, section, name),
        }
    }
    let written = ends_as(text, document.to_string());
    if is_meant(text, &written, edits) {
        Ok(written)
    } else {
        Err("it sets this in a way that cannot be changed from here".to_owned())
    }
}

/// With the line ends that the text before had.
fn ends_as(before: &str, written: String) -> String {
    let windows = before.matches("\r\n").count();
    if windows == 0 || windows < before.matches('\n').count() {
        return written;
    }
    written.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// Whether nothing but these changed.
fn is_meant(before: &str, written: &str, edits: &Edits) -> bool {
    let (Ok(mut meant), Ok(written)) = (leaves(before), leaves(written)) else {
        return false;
    };
    meant.retain(|path, _| !edits.contains_key(path.as_str()));
    let others = |path: &String| !edits.contains_key(path.as_str());
    let stays = written.iter().filter(|(path, _)| others(path));
    let is_set =
        |(path, text): (&&str, &Option<String>)| written.contains_key(*path) == text.is_some();
    stays.eq(meant.iter()) && edits.iter().all(is_set)
}

/// A text as a value: of the type that the default has, where it is one.
fn value(text: &str, like: Option<&Item>) -> Value {
    let typed = match like.and_then(Item::as_value) {
        Some(Value::Boolean(_)) => text.parse::<bool>().map(Value::from).ok(),
        Some(Value::Integer(_) | Value::Float(_)) => number(text),
        _ => None,
    };
    typed.unwrap_or_else(|| Value::from(text))
}

fn number(text: &str) -> Option<Value> {
    if let Ok(whole) = text.parse::<i64>() {
        return Some(Value::from(whole));
    }
    let number = text.parse::<f64>().ok()?;
    number.is_finite().then(|| Value::from(number))
}

fn put(
    document: &mut DocumentMut,
    section: &str,
    name: &str,
    mut value: Value,
) -> Result<(), String> {
    let table = document
        .entry(section)
        .or_insert_with(|| Item::Table(Table::new()))
        .as_table_like_mut()
        .ok_or_else(|| format!("`{section}` is no section there"))?;
    match table.get_mut(name).and_then(Item::as_value_mut) {
        Some(there) => {
            // A note that stands behind it stays.
            *value.decor_mut() = there.decor().clone();
            *there = value;
        }
        None => {
            table.insert(name, Item::Value(value));
        }
    }
    Ok(())
}

/// Takes a setting out; the notes above it stay where it was.
fn take_out(document: &mut DocumentMut, section: &str, name: &str) {
    let Some(table) = document.get_mut(section).and_then(Item::as_table_like_mut) else {
        return;
    };
    let next = after(table, name);
    let Some((key, _)) = table.get_key_value(name) else {
        return;
    };
    let notes = key.leaf_decor().prefix().and_then(|it| it.as_str());
    let notes = notes.unwrap_or_default().to_owned();
    table.remove(name);
    if notes.trim().is_empty() {
        return;
    }
    if let Some(mut key) = next.and_then(|next| table.key_mut(&next)) {
        let decor = key.leaf_decor_mut();
        let below = decor
            .prefix()
            .and_then(|it| it.as_str())
            .unwrap_or_default();
        decor.set_prefix(format!("{notes}{below}"));
        return;
    }
    below_section(document, section, &notes);
}

fn after(table: &dyn TableLike, name: &str) -> Option<String> {
    let mut names = table.iter().map(|(name, _)| name);
    names.find(|it| *it == name)?;
    names.next().map(str::to_owned)
}

/// Has notes stand where a section ends.
fn below_section(document: &mut DocumentMut, section: &str, notes: &str) {
    let place = |item: &Item| item.as_table().and_then(Table::position);
    let here = document.get(section).and_then(place);
    let mut following: Vec<_> = document
        .iter()
        .filter_map(|(name, item)| Some((place(item)?, name.to_owned())))
        .filter(|(at, _)| Some(*at) > here)
        .collect();
    following.sort();
    let next = following.into_iter().next();
    match next.and_then(|(_, name)| document.get_mut(&name)?.as_table_mut()) {
        Some(table) => {
            let decor = table.decor_mut();
            let below = decor
                .prefix()
                .and_then(|it| it.as_str())
                .unwrap_or_default();
            decor.set_prefix(format!("{notes}{below}"));
        }
        None => {
            let below = document.trailing().as_str().unwrap_or_default().to_owned();
            document.set_trailing(format!("{notes}{below}"));
        }
    }
}

/// The settings that two texts have otherwise.
pub(super) fn differing(one: &str, other: &str, keys: &[&'static Key]) -> Vec<&'static Key> {
    let (one, other) = (
        leaves(one).unwrap_or_default(),
        leaves(other).unwrap_or_default(),
    );
    let differs = |key: &&&'static Key| one.get(key.path) != other.get(key.path);
    keys.iter().filter(differs).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
# Mine.
[runs]
# Two are enough.
subagent_depth = 1 # for now
time_limit_minutes = 30

[log]
# Quiet.
level = \"warn\"
# The end.
";

    fn edit(text: &str, edits: &[(&'static str, Option<&str>)]) -> String {
        let edits = edits.iter();
        let edits = edits.map(|(path, text)| (*path, text.map(str::to_owned)));
        edited(text, &edits.collect()).unwrap()
    }

    #[test]
    fn what_a_person_wrote_stays_around_what_changes() {
        let changed = edit(FILE, &[("runs.subagent_depth", Some("2"))]);
        assert_eq!(
            changed,
            FILE.replace("subagent_depth = 1", "subagent_depth = 2")
        );
        let added = edit(
            FILE,
            &[
                ("runs.token_limit", Some("5000")),
                ("context.compression_threshold", Some("0.5")),
                ("openai.base_url", Some("http://localhost:1/v1")),
            ],
        );
        assert_eq!(
            added,
            FILE.replace("minutes = 30\n", "minutes = 30\ntoken_limit = 5000\n")
                .replace(
                    "# The end.\n",
                    "\n[context]\ncompression_threshold = 0.5\n\n[openai]\nbase_url = \"http://localhost:1/v1\"\n# The end.\n"
                )
        );
    }

    #[test]
    fn what_is_taken_out_leaves_its_notes() {
        let out = edit(FILE, &[("runs.subagent_depth", None)]);
        assert_eq!(out, FILE.replace("subagent_depth = 1 # for now\n", ""));
        let last = edit(
            FILE,
            &[("runs.time_limit_minutes", None), ("log.level", None)],
        );
        let expected = FILE
            .replace("time_limit_minutes = 30\n", "")
            .replace("level = \"warn\"\n", "");
        assert_eq!(last, expected);
        assert_eq!(edit(FILE, &[("web.searxng_url", None)]), FILE);
        assert_eq!(edit("", &[("log.level", None)]), "");
    }

    #[test]
    fn every_way_of_writing_a_file_is_kept() {
        for (before, after) in [
            ("runs.subagent_depth = 1\n", "runs.subagent_depth = 2\n"),
            (
                "runs = { subagent_depth = 1 }\n",
                "runs = { subagent_depth = 2 }\n",
            ),
            ("", "[runs]\nsubagent_depth = 2\n"),
            (
                "[\"runs\"]\n'subagent_depth' = \"1\"",
                "[\"runs\"]\n'subagent_depth' = 2\n",
            ),
        ] {
            assert_eq!(edit(before, &[("runs.subagent_depth", Some("2"))]), after);
        }
        // On Windows.
        let of_windows = FILE.replace('\n', "\r\n");
        for (before, after) in [
            (of_windows.as_str(), "subagent_depth = 2 # for now\r\n"),
            ("[runs]\r\n", "[runs]\r\nsubagent_depth = 2\r\n"),
            (
                "[persona]\r\ntext = \"\"\"\r\none\r\ntwo\"\"\"\r\n",
                "\"\"\"\r\none\r\ntwo\"\"\"\r\n\r\n[runs]\r\nsubagent_depth = 2\r\n",
            ),
        ] {
            let written = edit(before, &[("runs.subagent_depth", Some("2"))]);
            assert!(written.contains(after), "{written:?}");
            assert_eq!(
                written.matches('\n').count(),
                written.matches("\r\n").count()
            );
        }
        let text = "it is \"so\"\nand '''so'''";
        let written = edit("", &[("persona.text", Some(text))]);
        assert_eq!(leaves(&written).unwrap()["persona.text"], text);
        let wrong = edited("[runs", &Edits::new());
        assert!(wrong.is_err());
        let none = Edits::from([("runs.subagent_depth", Some("2".to_owned()))]);
        assert!(edited("runs = 1\n", &none).is_err());
    }
}
