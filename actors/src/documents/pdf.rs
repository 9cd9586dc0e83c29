//! Text of PDFs.

use std::io::{self, Write};

use pdf_extract::{Document, PlainTextOutput};

use super::{DocumentError, MAX_TEXT_BYTES};

/// The most pages that are read.
const MAX_PAGES: usize = 5_000;

/// A text that takes no more than its limit.
#[derive(Debug, Default)]
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.0.len() + piece.len() > MAX_TEXT_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The text page by page. A page that cannot be read costs that page.
pub(super) fn text(bytes: &[u8]) -> Result<String, DocumentError> {
    let mut document = Document::load_mem(bytes).map_err(|error| damaged(&error))?;
    if document.is_encrypted() && document.decrypt("").is_err() {
        return Err(DocumentError::Locked);
    }
    let pages = document.get_pages();
    let mut all = Bounded::default();
    let mut failed = 0;
    for number in pages.keys().take(MAX_PAGES) {
        let mut page = Bounded::default();
        let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut output = PlainTextOutput::new(&mut page as &mut dyn Write);
            pdf_extract::output_doc_page(&document, &mut output, *number)
        }));
        if !matches!(read, Ok(Ok(()))) {
            failed += 1;
        }
        if all.write_all(&page.0).is_err() || all.write_all(b"\n\n").is_err() {
            break;
        }
    }
    let all = String::from_utf8_lossy(&all.0).into_owned();
    if failed > 0 && failed == pages.len().min(MAX_PAGES) && all.trim().is_empty() {
        return Err(DocumentError::Damaged(
            "none of its pages can be read".to_owned(),
        ));
    }
    Ok(all)
}

fn damaged(error: &pdf_extract::Error) -> DocumentError {
    let said: String = error.to_string().chars().take(200).collect();
    DocumentError::Damaged(said)
}
