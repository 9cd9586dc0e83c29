//! Task files: the built-in ones, or a folder's. One that is wrong stops the start, with its
//! name, the field and the reason: a score that leaves out a task in silence means nothing.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use rust_embed::RustEmbed;

use super::{Task, TaskFile};

/// Larger than any sensible file of tasks.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

#[derive(RustEmbed)]
#[folder = "tasks"]
struct BuiltIn;

/// Why there are no tasks.
#[derive(Debug, thiserror::Error)]
pub(super) enum TaskError {
    #[error("the folder of tasks {} cannot be read: {error}", dir.display())]
    Folder { dir: PathBuf, error: io::Error },
    #[error("the folder of tasks {} has no .toml file", .0.display())]
    Empty(PathBuf),
    #[error("the task file {name} cannot be read: {reason}")]
    Unreadable { name: String, reason: String },
    #[error("the task file {name} is wrong: {reason}")]
    Wrong { name: String, reason: String },
}

/// The built-in tasks, in the order of their files.
///
/// # Errors
/// A file that is wrong; a test holds that none is.
pub(super) fn built_in() -> Result<Vec<Task>, TaskError> {
    let files = BuiltIn::iter().filter_map(|name| {
        let file = BuiltIn::get(&name)?;
        let text = String::from_utf8_lossy(&file.data).into_owned();
        Some((name.into_owned(), text))
    });
    tasks(files.collect())
}

/// The tasks of a folder's `.toml` files.
///
/// # Errors
/// The folder or a file cannot be read, or a file is wrong.
pub(super) fn of_folder(dir: &Path) -> Result<Vec<Task>, TaskError> {
    let folder = |error| TaskError::Folder {
        dir: dir.to_owned(),
        error,
    };
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(dir).map_err(folder)? {
        let path = entry.map_err(folder)?.path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let name = path.display().to_string();
        let text = read(&path).map_err(|reason| TaskError::Unreadable {
            name: name.clone(),
            reason,
        })?;
        files.insert(name, text);
    }
    if files.is_empty() {
        return Err(TaskError::Empty(dir.to_owned()));
    }
    tasks(files)
}

fn read(path: &Path) -> Result<String, String> {
    let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if metadata.len() > MAX_FILE_BYTES {
        return Err(format!("the file is larger than {MAX_FILE_BYTES} bytes"));
    }
    std::fs::read_to_string(path).map_err(|error| error.to_string())
}

/// The tasks of these files, by name and text.
fn tasks(files: BTreeMap<String, String>) -> Result<Vec<Task>, TaskError> {
    let mut all: Vec<Task> = Vec::new();
    for (name, text) in files {
        let wrong = |reason: String| TaskError::Wrong {
            name: name.clone(),
            reason,
        };
        let file: TaskFile = toml::from_str(&text)
            .map_err(|error| wrong(error.to_string().trim_end().to_owned()))?;
        for mut task in file.tasks {
            task.area.clone_from(&file.area);
            if let Some(problem) = task.problem() {
                return Err(wrong(format!("task {:?}: {problem}", task.name)));
            }
            if all.iter().any(|known| known.name == task.name) {
                return Err(wrong(format!(
                    "task {:?}: field `name`: another task has this name already",
                    task.name
                )));
            }
            all.push(task);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn reason(task: &str) -> String {
        let text = format!("area = \"own\"\n[[task]]\n{task}");
        let files = BTreeMap::from([("own.toml".to_owned(), text)]);
        tasks(files).unwrap_err().to_string()
    }

    #[test]
    fn the_built_in_tasks_cover_every_area() {
        let all = built_in().unwrap();
        assert!(all.len() >= 36, "{}", all.len());
        let areas: BTreeSet<&str> = all.iter().map(|task| task.area.as_str()).collect();
        let expected = [
            "answers",
            "compression",
            "memory",
            "planning",
            "profiles",
            "subagents",
            "tools",
        ];
        assert_eq!(areas, BTreeSet::from(expected));
    }

    #[test]
    fn a_wrong_file_is_refused_with_its_name_the_field_and_the_reason() {
        let base = "name = \"a\"\nsay = [\"hi\"]\nchecks = [\"completed\"]\n";
        for (task, expected) in [
            (
                "say = [\"hi\"]\nchecks = [\"completed\"]",
                "missing field `name`",
            ),
            (&format!("{base}shout = 1"), "unknown field `shout`"),
            (
                &format!("{base}minutes = 0"),
                "field `minutes`: a number from 1",
            ),
            (&format!("{base}minutes = \"x\""), "minutes = \"x\""),
            (
                &format!("{base}max_model_calls = 0"),
                "field `max_model_calls`",
            ),
            (
                &format!("{base}settings = {{ NAVI_BIND = \"x\" }}"),
                "field `settings`",
            ),
            (
                &format!("{base}files = {{ \"../x\" = \"\" }}"),
                "no path inside",
            ),
            (&base.replace("\"hi\"", "\" \""), "field `say`"),
            (
                &base.replace("\"hi\"", "{ words = \"hi\" }"),
                "unknown field `words`",
            ),
            (&base.replace("\"a\"", "\"A b\""), "field `name`"),
            (&base.replace("[\"completed\"]", "[]"), "field `checks`"),
            (
                &base.replace("completed", "complete"),
                "unknown variant `complete`",
            ),
            (
                &base.replace("\"completed\"", "{ file_exists = { file = \"x\" } }"),
                "unexpected keys in table: file",
            ),
            (
                &base.replace("\"completed\"", "{ file_contains = { path = \"x\" } }"),
                "missing field `matches`",
            ),
            (
                &base.replace("\"completed\"", "{ answer_matches = { matches = \"(\" } }"),
                "no regular expression",
            ),
            (
                &format!("{base}[[task]]\n{base}"),
                "another task has this name",
            ),
        ] {
            let reason = reason(task);
            assert!(reason.contains("own.toml"), "{reason}");
            assert!(reason.contains(expected), "{task}: {reason}");
        }
    }

    #[test]
    fn a_folder_is_read_whole_or_refused() {
        let dir = tempfile::tempdir().unwrap();
        let error = of_folder(dir.path()).unwrap_err().to_string();
        assert!(error.contains("no .toml file"), "{error}");
        let task = "area = \"own\"\n[[task]]\nname = \"a\"\nchecks = [\"completed\"]\n\
                    say = [\"hi\", { text = \"ho\", new_session = true }]\n";
        std::fs::write(dir.path().join("a.toml"), task).unwrap();
        std::fs::write(dir.path().join("notes.txt"), "ignored").unwrap();
        let tasks = of_folder(dir.path()).unwrap();
        assert_eq!((tasks.len(), tasks[0].area.as_str()), (1, "own"));
        let sessions: Vec<bool> = tasks[0].say.iter().map(|say| say.new_session).collect();
        assert_eq!(sessions, [false, true]);
        let error = of_folder(&dir.path().join("nowhere")).unwrap_err();
        assert!(error.to_string().contains("nowhere"), "{error}");
    }
}
