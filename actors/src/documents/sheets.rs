//! Text of spreadsheets: each sheet under its name, a row a line, cells with tabs between.

use std::io::Cursor;

use calamine::{Data, ExcelDateTime, Ods, Reader as _, Sheets, Xls, Xlsx};

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
                    let cell = match cell {
                        Data::DateTime(at) => moment(*at),
                        cell => cell.to_string(),
                    };
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

/// A day, a time or how long something took, as a person reads it: a workbook has days and parts of
/// them since an epoch.
fn moment(at: ExcelDateTime) -> String {
    let days = at.as_f64();
    if at.is_duration() {
        let seconds = (days.abs() * 86_400.0).round() as u64;
        let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        let sign = if days < 0.0 { "-" } else { "" };
        return format!("{sign}{hours}:{minutes:02}:{seconds:02}");
    }
    let (year, month, day, hour, minute, second, _) = at.to_ymd_hms_milli();
    let time = match second {
        0 => format!("{hour:02}:{minute:02}"),
        _ => format!("{hour:02}:{minute:02}:{second:02}"),
    };
    let day = format!("{year:04}-{month:02}-{day:02}");
    match (days.trunc() == 0.0, days.fract() == 0.0) {
        (true, _) => time,
        (false, true) => day,
        (false, false) => format!("{day} {time}"),
    }
}

fn damaged(error: &dyn std::fmt::Display) -> DocumentError {
    let said: String = error.to_string().chars().take(200).collect();
    if said.to_lowercase().contains("password") {
        return DocumentError::Locked;
    }
    DocumentError::Damaged(said)
}
