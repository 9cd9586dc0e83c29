//! Text of spreadsheets: each sheet under its name, a row a line, cells with tabs between.

use std::io::Cursor;

use calamine::{Data, Ods, Reader as _, Sheets, Xls, Xlsx};

use super::office::{open, refuse_bomb};
use super::{DocumentError, MAX_TEXT_BYTES};

pub(super) const XLSX: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
pub(super) const ODS: &str = "application/vnd.oasis.opendocument.spreadsheet";
pub(super) const XLS: &str = "application/vnd.ms-excel";

/// The most sheets that are read.
const MAX_SHEETS: usize = 200;

pub(super) fn is_sheet(media_type: &str) -> bool {
    [XLSX, ODS, XLS].contains(&media_type)
}

pub(super) fn text(bytes: &[u8], media_type: &str) -> Result<String, DocumentError> {
    if bytes.starts_with(b"PK") {
        refuse_bomb(&mut open(bytes)?)?;
    }
    let source = Cursor::new(bytes);
    let mut book = match media_type {
        XLSX => Sheets::Xlsx(Xlsx::new(source).map_err(|error| damaged(&error))?),
        ODS => Sheets::Ods(Ods::new(source).map_err(|error| damaged(&error))?),
        _ => Sheets::Xls(Xls::new(source).map_err(|error| damaged(&error))?),
    };
    let mut all = String::new();
    for name in book.sheet_names().into_iter().take(MAX_SHEETS) {
        let Ok(range) = book.worksheet_range(&name) else {
            continue;
        };
        if range.is_empty() {
            continue;
        }
        all.push_str(&format!("## {name}\n"));
        for row in range.rows() {
            let from = all.len();
            for (column, cell) in row.iter().enumerate() {
                if column > 0 {
                    all.push('\t');
                }
                if !matches!(cell, Data::Empty) {
                    // A cell is one cell, whatever is in it.
                    let cell = cell.to_string();
                    all.extend(cell.chars().map(|c| if c.is_control() { ' ' } else { c }));
                }
            }
            let end = from + all[from..].trim_end().len();
            all.truncate(end);
            all.push('\n');
            if all.len() > MAX_TEXT_BYTES {
                return Ok(all);
            }
        }
        all.push('\n');
    }
    Ok(all)
}

fn damaged(error: &dyn std::fmt::Display) -> DocumentError {
    let said: String = error.to_string().chars().take(200).collect();
    if said.to_lowercase().contains("password") {
        return DocumentError::Locked;
    }
    DocumentError::Damaged(said)
}
