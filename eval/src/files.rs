//! The files that a task left, and what is said where one is missing.

use std::fs;
use std::path::{Path, PathBuf};

use crate::tasks::WorkspacePath;

/// How much of a file is looked at.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// How many files are named in place of one that is missing, and how deep they may lie.
const NAMED: usize = 8;
const DEPTH: usize = 6;

/// Where the file is.
///
/// # Errors
/// It is not there; with those that are, since a wrong folder is the usual reason.
pub(crate) fn find(workspace: &Path, path: &WorkspacePath) -> Result<PathBuf, String> {
    let place = path.in_dir(workspace);
    if place.is_file() {
        return Ok(place);
    }
    let mut there = Vec::new();
    collect(workspace, workspace, DEPTH, &mut there);
    Err(if there.is_empty() {
        format!("there is no file {path}, nor any other")
    } else {
        format!("there is no file {path}; there is {}", there.join(", "))
    })
}

/// The file's text.
///
/// # Errors
/// It is not there, too large, or cannot be read.
pub(crate) fn text(workspace: &Path, path: &WorkspacePath) -> Result<String, String> {
    let place = find(workspace, path)?;
    let unreadable = |error: std::io::Error| format!("{path} cannot be read: {error}");
    let size = fs::metadata(&place).map_err(unreadable)?.len();
    if size > MAX_FILE_BYTES {
        return Err(format!("{path} is too large to look at: {size} bytes"));
    }
    let bytes = fs::read(&place).map_err(unreadable)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Files by their paths, as far as they are named at all.
fn collect(workspace: &Path, dir: &Path, depth: usize, found: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten() {
        if found.len() == NAMED {
            return;
        }
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => collect(workspace, &path, depth - 1, found),
            Ok(kind) if kind.is_file() => {
                let inside = path.strip_prefix(workspace).unwrap_or(&path);
                found.push(inside.display().to_string());
            }
            _ => {}
        }
    }
}
