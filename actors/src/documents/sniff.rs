//! What a file is, by what is in it. Its name only says which kind of text a text is.

use std::io::{self, Cursor, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use zip::ZipArchive;

use super::{MAX_DOCUMENT_BYTES, office, sheets, text};
use crate::domain::files::extension;

pub(super) const PDF: &str = "application/pdf";
/// How much of a file is looked at.
const HEAD_BYTES: u64 = 64 * 1024;
/// An archive with more files than this is an archive, and nothing else.
const MAX_ENTRIES: usize = 20_000;

/// What is to be done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Text,
    /// One that we can decode.
    Image,
    /// Perhaps with text in it.
    Document,
    Other,
}

/// What a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) class: Class,
    pub(super) media_type: String,
    /// Without a dot. Plain letters and figures.
    pub(super) extension: String,
}

impl Kind {
    fn new(class: Class, media_type: &str, extension: &str) -> Self {
        Self {
            class,
            media_type: media_type.to_owned(),
            extension: extension.to_owned(),
        }
    }
}

/// Whether a type is one of text.
pub(super) fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/")
        || matches!(
            media_type,
            "application/json" | "application/xml" | "image/svg+xml"
        )
}

/// Looks at a file. `name` is its sender's.
pub(super) fn file(path: &Path, name: &str) -> std::io::Result<Kind> {
    let mut file = std::fs::File::open(path)?;
    let mut head = Vec::new();
    (&mut file).take(HEAD_BYTES).read_to_end(&mut head)?;
    if head.starts_with(b"PK\x03\x04") {
        return archive(file);
    }
    Ok(sniffed(&head, name))
}

/// What the beginning of a file says, archives aside.
pub(super) fn sniffed(head: &[u8], name: &str) -> Kind {
    // Looked for first: a text may begin like anything.
    if text::looks_like_text(head) && !head.starts_with(b"%PDF-") {
        return textual(head, name);
    }
    let Some(found) = infer::get(head) else {
        return Kind::new(Class::Other, "application/octet-stream", "bin");
    };
    let class = match found.mime_type() {
        "image/png" | "image/jpeg" | "image/gif" | "image/webp" | "image/bmp" => Class::Image,
        PDF | sheets::XLS => Class::Document,
        _ => Class::Other,
    };
    Kind::new(class, found.mime_type(), found.extension())
}

/// Which kind of text: what browsers could run is told by its content, the rest by its name,
/// as far as it matters.
fn textual(head: &[u8], name: &str) -> Kind {
    let (text, _) = text::decoded(head);
    let start = text.trim_start_matches('\u{feff}').trim_start();
    let lower: String = start.chars().take(1024).collect::<String>().to_lowercase();
    let named = extension(name);
    let named = named.as_deref().unwrap_or("txt");
    let markup = lower.starts_with('<');
    if markup && lower.contains("<svg") {
        return Kind::new(Class::Text, "image/svg+xml", "svg");
    }
    if markup && (lower.contains("<html") || lower.contains("<!doctype html")) {
        return Kind::new(Class::Text, "text/html", "html");
    }
    if lower.starts_with("<?xml") {
        return Kind::new(Class::Text, "application/xml", "xml");
    }
    let media_type = match named {
        "html" | "htm" | "xhtml" => "text/html",
        "svg" => "image/svg+xml",
        "md" | "markdown" => "text/markdown",
        "csv" => "text/csv",
        "json" => "application/json",
        "css" => "text/css",
        "js" | "mjs" => "text/javascript",
        _ => "text/plain",
    };
    Kind::new(Class::Text, media_type, named)
}

/// What a ZIP archive is, by the files that are in it. One that is too large for a document is
/// no more than an archive.
fn archive(mut file: std::fs::File) -> io::Result<Kind> {
    file.seek(SeekFrom::Start(0))?;
    let mut bytes = Vec::new();
    file.take(MAX_DOCUMENT_BYTES as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(if bytes.len() <= MAX_DOCUMENT_BYTES && is_modest(&bytes) {
        archived(&bytes)
    } else {
        Kind::new(Class::Other, "application/zip", "zip")
    })
}

/// Whether an archive has so few files that it can be parsed: its parser holds all at once.
/// Wherever the archive begins for the parser, each file has a header, and the only record that
/// can say a great number is the one for large archives, which needs another to be found by.
pub(super) fn is_modest(bytes: &[u8]) -> bool {
    let has = |mark: &[u8; 4]| bytes.windows(4).any(|four| four == mark);
    let says_many = |record: &[u8]| {
        record.starts_with(b"PK\x06\x06")
            && [24, 32].into_iter().any(|at| {
                let count = record[at..].first_chunk::<8>().copied();
                count.is_none_or(|count| u64::from_le_bytes(count) > MAX_ENTRIES as u64)
            })
    };
    let headers = bytes.windows(4).filter(|four| four == b"PK\x01\x02");
    headers.count() <= MAX_ENTRIES && !(has(b"PK\x06\x07") && bytes.windows(40).any(says_many))
}

fn archived(bytes: &[u8]) -> Kind {
    let plain = Kind::new(Class::Other, "application/zip", "zip");
    let Ok(mut archive) = ZipArchive::new(Cursor::new(bytes)) else {
        return plain;
    };
    for (part, media_type, extension) in [
        ("word/document.xml", office::DOCX, "docx"),
        ("xl/workbook.xml", sheets::XLSX, "xlsx"),
        ("ppt/presentation.xml", office::PPTX, "pptx"),
    ] {
        if archive.index_for_name(part).is_some() {
            return Kind::new(Class::Document, media_type, extension);
        }
    }
    let mut declared = String::new();
    if let Ok(entry) = archive.by_name("mimetype") {
        // One that is no text is no declaration.
        let _ = entry.take(200).read_to_string(&mut declared);
    }
    for (media_type, extension) in [
        (office::ODT, "odt"),
        (office::ODP, "odp"),
        (sheets::ODS, "ods"),
    ] {
        if declared.trim() == media_type {
            return Kind::new(Class::Document, media_type, extension);
        }
    }
    plain
}
