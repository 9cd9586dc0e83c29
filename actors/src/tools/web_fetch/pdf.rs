//! PDFs as text.

use crate::documents;

/// The text of a PDF.
pub(super) async fn text(body: Vec<u8>) -> Result<String, String> {
    let text = documents::text_of(body.into(), "application/pdf")
        .await
        .map_err(|error| format!("the PDF cannot be read: {error}"))?;
    if text.trim().is_empty() {
        return Err("the PDF has no text; it may hold scanned pages".to_owned());
    }
    Ok(text)
}
