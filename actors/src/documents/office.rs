//! Text of word processors' and presentations' files: ZIP archives of XML.

use std::io::{BufReader, Cursor, Read as _};

use quick_xml::events::Event;
use quick_xml::reader::Reader;
use zip::ZipArchive;

use super::{DocumentError, MAX_TEXT_BYTES, MAX_UNPACKED_BYTES};

pub(super) const DOCX: &str =
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
pub(super) const PPTX: &str =
    "application/vnd.openxmlformats-officedocument.presentationml.presentation";
pub(super) const ODT: &str = "application/vnd.oasis.opendocument.text";
pub(super) const ODP: &str = "application/vnd.oasis.opendocument.presentation";

/// The most slides that are read.
const MAX_SLIDES: usize = 2_000;
/// The most files of an archive.
const MAX_ENTRIES: usize = 20_000;
/// What one part of a document may unpack to.
const MAX_PART_BYTES: u64 = 128 * 1024 * 1024;

type Archive<'a> = ZipArchive<Cursor<&'a [u8]>>;

pub(super) fn is_office(media_type: &str) -> bool {
    [DOCX, PPTX, ODT, ODP].contains(&media_type)
}

pub(super) fn text(bytes: &[u8], media_type: &str) -> Result<String, DocumentError> {
    let mut archive = open(bytes)?;
    match media_type {
        DOCX => part(&mut archive, "word/document.xml", Words::Marked("t")),
        PPTX => slides(&mut archive),
        _ => part(&mut archive, "content.xml", Words::InParagraphs),
    }
}

/// An archive with a bearable number of files.
pub(super) fn open(bytes: &[u8]) -> Result<Archive<'_>, DocumentError> {
    let archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| damaged(&error))?;
    if archive.len() > MAX_ENTRIES {
        return Err(DocumentError::Bomb);
    }
    Ok(archive)
}

/// Refuses an archive that unpacks to more than a document does. What it says of itself proves
/// nothing, so it is unpacked once, and thrown away.
pub(super) fn refuse_bomb(archive: &mut Archive<'_>) -> Result<(), DocumentError> {
    let mut left = MAX_UNPACKED_BYTES;
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|error| damaged(&error))?;
        let unpacked = std::io::copy(&mut entry.take(left + 1), &mut std::io::sink());
        left = unpacked
            .ok()
            .and_then(|bytes| left.checked_sub(bytes))
            .ok_or(DocumentError::Bomb)?;
    }
    Ok(())
}

/// Which character data is text.
#[derive(Clone, Copy)]
enum Words {
    /// What stands in elements of this name.
    Marked(&'static str),
    /// Whatever stands in a paragraph.
    InParagraphs,
}

fn slides(archive: &mut Archive<'_>) -> Result<String, DocumentError> {
    let mut numbers: Vec<u32> = archive
        .file_names()
        .filter_map(|name| {
            let name = name.ok()?;
            let number = name
                .strip_prefix("ppt/slides/slide")?
                .strip_suffix(".xml")?;
            number.parse().ok()
        })
        .collect();
    numbers.sort_unstable();
    let mut all = String::new();
    for number in numbers.into_iter().take(MAX_SLIDES) {
        let name = format!("ppt/slides/slide{number}.xml");
        let slide = part(archive, &name, Words::Marked("t"))?;
        if all.len() + slide.len() > MAX_TEXT_BYTES {
            break;
        }
        all.push_str(&format!("## Slide {number}\n{slide}\n"));
    }
    Ok(all)
}

/// The text of one XML file of an archive.
fn part(archive: &mut Archive<'_>, name: &str, words: Words) -> Result<String, DocumentError> {
    let entry = archive.by_name(name).map_err(|error| damaged(&error))?;
    let mut reader = Reader::from_reader(BufReader::new(entry.take(MAX_PART_BYTES)));
    // A document that was cut off gives what there is of it.
    reader.config_mut().check_end_names = false;
    let mut text = String::new();
    let mut inside = 0_usize;
    let mut buffer = Vec::new();
    loop {
        if text.len() > MAX_TEXT_BYTES {
            break;
        }
        buffer.clear();
        let event = reader
            .read_event_into(&mut buffer)
            .map_err(|error| damaged(&error))?;
        match event {
            Event::Eof => break,
            Event::Start(element) if words.begins(element.local_name().as_ref()) => inside += 1,
            Event::Empty(element) => text.push_str(space(element.local_name().as_ref())),
            Event::End(element) => {
                let name = element.local_name();
                if words.begins(name.as_ref()) {
                    inside = inside.saturating_sub(1);
                }
                text.push_str(after(name.as_ref()));
            }
            Event::Text(piece) if inside > 0 => text.push_str(&piece),
            Event::CData(piece) if inside > 0 => text.push_str(&piece),
            // Only what XML itself defines: no document brings entities of its own.
            Event::GeneralRef(reference) if inside > 0 => {
                let character = match reference.as_ref() {
                    "lt" => Some('<'),
                    "gt" => Some('>'),
                    "amp" => Some('&'),
                    "quot" => Some('"'),
                    "apos" => Some('\''),
                    other => numbered(other),
                };
                text.extend(character);
            }
            _ => {}
        }
    }
    Ok(text)
}

impl Words {
    fn begins(self, element: &str) -> bool {
        match self {
            Self::Marked(name) => element == name,
            Self::InParagraphs => matches!(element, "p" | "h"),
        }
    }
}

/// What stands for an element without content.
fn space(element: &str) -> &'static str {
    match element {
        "tab" => "\t",
        "br" | "cr" | "line-break" | "p" => "\n",
        "s" => " ",
        _ => "",
    }
}

/// What stands after an element's end.
fn after(element: &str) -> &'static str {
    match element {
        "p" | "h" | "tr" | "table-row" => "\n",
        "tc" | "table-cell" => "\t",
        _ => "",
    }
}

/// `#65` or `#x41`.
fn numbered(reference: &str) -> Option<char> {
    let number = reference.strip_prefix('#')?;
    let code = match number.strip_prefix('x') {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => number.parse().ok()?,
    };
    char::from_u32(code)
}

fn damaged(error: &dyn std::fmt::Display) -> DocumentError {
    let said: String = error.to_string().chars().take(200).collect();
    DocumentError::Damaged(said)
}
