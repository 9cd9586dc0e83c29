//! What is decided of files: their names, where the tools find them, and how the model is told.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cut::clip;
use super::unseen::is_unseen;
use crate::protocol::file::AttachedFile;
use crate::protocol::ids::FileId;
use crate::protocol::message::Message;

/// The directory of the workspace where the session's tools find its files.
pub const FILES_DIR: &str = "uploads";
/// The most files of one message, and of one upload.
pub const MAX_FILES: usize = 20;
/// How much of a file's text is kept for the model, in bytes. The whole stands in the workspace.
pub const MAX_INLINE_BYTES: usize = 64 * 1024;
/// A file's text has at least this much room in a message, in bytes.
const MIN_INLINE_BYTES: usize = 1024;
/// The most images of files that one call shows; older ones are named.
pub const MAX_IMAGES_SHOWN: usize = 16;
/// The longest label, in characters.
const MAX_LABEL_CHARS: usize = 120;
/// The longest extension that is taken from a name.
const MAX_EXTENSION: usize = 8;

/// What the model reads of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileView {
    /// The beginning of its text.
    pub text: Option<Arc<str>>,
    /// How much text there is in all, in bytes.
    pub text_bytes: u64,
    /// Base64 of the image.
    pub image: Option<Arc<str>>,
    /// Why there is neither.
    pub problem: Option<String>,
    /// The file has gone; what was read of it is still known.
    pub gone: bool,
}

/// What is known of the files of a conversation. One that is not here was deleted.
pub type FileViews = BTreeMap<FileId, FileView>;

/// The sender's name for a file as it may be shown anywhere: on one line, without directories,
/// without characters that move, hide or break the text around them, and not long.
#[must_use]
pub fn label(name: &str) -> String {
    let base = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let visible: String = base
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .filter(|c| !is_unseen(*c))
        .collect();
    let visible = visible.trim_matches(|c| c == ' ' || c == '.');
    if visible.is_empty() {
        return "file".to_owned();
    }
    if visible.chars().count() <= MAX_LABEL_CHARS {
        return visible.to_owned();
    }
    // The end tells what kind of file it is.
    let ending = extension(visible).map_or_else(String::new, |ending| format!(".{ending}"));
    let kept: String = visible
        .chars()
        .take(MAX_LABEL_CHARS - ending.len() - 1)
        .collect();
    format!("{kept}…{ending}")
}

/// The extension of a name, where it is a plain one.
#[must_use]
pub fn extension(name: &str) -> Option<String> {
    let (stem, ending) = name.rsplit_once('.')?;
    let plain = !stem.is_empty()
        && (1..=MAX_EXTENSION).contains(&ending.len())
        && ending.bytes().all(|byte| byte.is_ascii_alphanumeric());
    plain.then(|| ending.to_ascii_lowercase())
}

/// Where the tools find a file: a name of our own, short enough for a small model to repeat.
#[must_use]
pub fn path_of(file_id: FileId, extension: &str) -> String {
    let id = file_id.0.simple().to_string();
    // The end of the id is random, its beginning is the time.
    format!("{FILES_DIR}/{}.{extension}", &id[id.len() - 8..])
}

/// Where the tools find the text of a file that is no text itself.
#[must_use]
pub fn text_path(path: &str) -> String {
    format!("{path}.txt")
}

/// The paths of files that a call's arguments name.
#[must_use]
pub fn named_paths(arguments: &str) -> Vec<String> {
    let prefix = format!("{FILES_DIR}/");
    let mut found = Vec::new();
    for (at, _) in arguments.match_indices(&prefix).take(MAX_FILES) {
        let name: String = arguments[at + prefix.len()..]
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '.')
            .take(64)
            .collect();
        let name = name.trim_end_matches('.');
        let named = [Some(name), name.strip_suffix(".txt")];
        for name in named.into_iter().flatten().filter(|name| !name.is_empty()) {
            let path = format!("{prefix}{name}");
            if !found.contains(&path) {
                found.push(path);
            }
        }
    }
    found
}

/// A message's text with what the model is told of its files. `room` is for all their texts.
#[must_use]
pub fn with_files(text: &str, message: &Message, views: &FileViews, room: usize) -> String {
    let mut told = text.to_owned();
    let room = (room / message.files.len().max(1)).max(MIN_INLINE_BYTES);
    for file in &message.files {
        if !told.is_empty() {
            told.push_str("\n\n");
        }
        told.push_str(&told_of(file, views.get(&file.file_id), room));
    }
    told
}

/// The images of a message's files, in order.
pub fn images<'a>(
    message: &'a Message,
    views: &'a FileViews,
) -> impl Iterator<Item = (&'a AttachedFile, &'a Arc<str>)> {
    message.files.iter().filter_map(|file| {
        let image = views.get(&file.file_id)?.image.as_ref()?;
        Some((file, image))
    })
}

fn told_of(file: &AttachedFile, view: Option<&FileView>, room: usize) -> String {
    let AttachedFile {
        name,
        path,
        media_type,
        bytes,
        ..
    } = file;
    let head = format!("[attached file {name:?}: {media_type}, {bytes} bytes");
    let Some(view) = view else {
        return format!("{head}; the user deleted it since]");
    };
    if view.gone && view.text.is_none() {
        return format!("{head}; it is no longer kept]");
    }
    let place = if view.gone {
        String::new()
    } else {
        format!("; path {path}")
    };
    if let Some(text) = &view.text {
        let is_text = *bytes == view.text_bytes;
        let whole_at = if is_text {
            path.clone()
        } else {
            text_path(path)
        };
        let shown = cut(text, room);
        let rest = if shown.len() as u64 >= view.text_bytes {
            String::new()
        } else if view.gone {
            format!(
                "; the first {} of {} bytes of its text",
                shown.len(),
                view.text_bytes
            )
        } else {
            format!(
                "; the first {} of {} bytes of its text, all of it is at {whole_at}",
                shown.len(),
                view.text_bytes
            )
        };
        return format!("{head}{place}{rest}]\n{}", as_data(shown));
    }
    match &view.problem {
        Some(problem) => format!("{head}{place}; {problem}]"),
        None if file.image && view.image.is_none() => {
            format!("{head}{place}; look at it with view_image]")
        }
        None => format!("{head}{place}]"),
    }
}

/// The text of a file as the model gets it: marked as what it is. The one place that does it
/// for files; what stands between the marks is data, whatever it says (DESIGN section 6).
fn as_data(text: &str) -> String {
    const BEGIN: &str = "<file_text>";
    const END: &str = "</file_text>";
    // A text that holds the mark itself cannot end it.
    let text = text.replace("file_text>", "file_text >");
    format!("{BEGIN}\n{}\n{END}", text.trim_end())
}

fn cut(text: &str, room: usize) -> &str {
    if text.len() <= room {
        return text;
    }
    let end = text.floor_char_boundary(room);
    // At a line's end, where one is near.
    match text[..end].rfind('\n') {
        Some(line) if line > end / 2 => &text[..line],
        _ => &text[..end],
    }
}

/// The files of a message in one line, for who is told of them in passing.
#[must_use]
pub fn in_passing(message: &Message) -> String {
    if message.files.is_empty() {
        return String::new();
    }
    let names: Vec<String> = message
        .files
        .iter()
        .map(|file| format!("{} ({})", clip(&file.name, 60), file.path))
        .collect();
    format!(" [files: {}]", names.join(", "))
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
