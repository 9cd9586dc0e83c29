//! An answer as the text that the model reads.

use std::sync::Arc;

use reqwest::Url;
use tokio::sync::Semaphore;

use super::fetch::RawPage;
use super::{decode, html};
use crate::documents;
use crate::tools::ToolError;
use crate::tools::output::human_size;

/// How many answers are converted at once: a conversion cannot be ended from outside, so what a
/// malicious page keeps busy must be bounded by number.
pub(super) const AT_ONCE: usize = 2;
/// The longest text that is kept.
const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;

/// Kinds of `application/` that are text.
const TEXTS: [&str; 11] = [
    "ecmascript",
    "graphql",
    "javascript",
    "jsonl",
    "sql",
    "toml",
    "x-ndjson",
    "x-sh",
    "x-yaml",
    "xml",
    "yaml",
];

/// A page as text.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) url: Url,
    /// Empty where there is none.
    pub(super) title: String,
    pub(super) text: String,
    /// What the reader should know of it.
    pub(super) notes: Vec<String>,
}

/// How an answer is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Html,
    Pdf,
    Plain,
}

impl Page {
    /// Reads an answer, away from the threads that others wait on, when one of the `places` is
    /// free.
    pub(super) async fn read(answer: RawPage, places: &Arc<Semaphore>) -> Result<Self, ToolError> {
        let status = answer.status;
        let mut page = match form(&answer)? {
            Form::Pdf => pdf(answer).await,
            Form::Html => convert(answer, places, |text, url| html::page(&text, url)).await,
            Form::Plain => convert(answer, places, |text, url| Ok(Self::plain(url, text))).await,
        }?;
        if !status.is_success() {
            let note = format!("the server answered {status}; this is its text");
            page.notes.insert(0, note);
        }
        if page.text.len() > MAX_TEXT_BYTES {
            let end = page.text.floor_char_boundary(MAX_TEXT_BYTES);
            page.text.truncate(end);
            page.notes
                .push("the text is longer than what is kept; its end is left out".to_owned());
        }
        Ok(page)
    }

    fn plain(url: Url, text: String) -> Self {
        Self {
            url,
            title: String::new(),
            text,
            notes: Vec::new(),
        }
    }
}

async fn pdf(answer: RawPage) -> Result<Page, String> {
    let text = documents::text_of(answer.body.into(), "application/pdf")
        .await
        .map_err(|error| format!("the PDF cannot be read: {error}"))?;
    refuse_if!(
        text.trim().is_empty(),
        "the PDF has no text; it may hold scanned pages"
    );
    Ok(Page::plain(answer.url, text))
}

async fn convert(
    answer: RawPage,
    places: &Arc<Semaphore>,
    read: impl FnOnce(String, Url) -> Result<Page, String> + Send + 'static,
) -> Result<Page, String> {
    let place = Arc::clone(places).acquire_owned().await;
    let work = tokio::task::spawn_blocking(move || {
        // Held until the work is done, even if nobody waits for it any more.
        let _place = place;
        let text = decode::text(&answer.body, answer.charset.as_deref());
        read(text, answer.url)
    });
    work.await.unwrap_or_else(|error| {
        tracing::debug!(%error, "a page could not be converted");
        Err("its content could not be read: it is damaged".to_owned())
    })
}

/// Whether a media type is that of an API's answer.
pub(super) fn is_data(media_type: &str) -> bool {
    media_type == "application/json" || media_type.ends_with("+json")
}

fn form(answer: &RawPage) -> Result<Form, ToolError> {
    let media_type = answer.media_type.as_str();
    let is_pdf = answer.body.starts_with(b"%PDF-");
    let is_text = media_type.starts_with("text/")
        || is_data(media_type)
        || media_type.ends_with("+xml")
        || media_type
            .strip_prefix("application/")
            .is_some_and(|name| TEXTS.contains(&name));
    match media_type {
        "text/html" | "application/xhtml+xml" => Ok(Form::Html),
        "application/pdf" | "application/x-pdf" if is_pdf => Ok(Form::Pdf),
        "application/pdf" | "application/x-pdf" => {
            refuse!("the server calls it a PDF, but it is none")
        }
        _ if is_text => Ok(Form::Plain),
        "" | "application/octet-stream" | "binary/octet-stream" if is_pdf => Ok(Form::Pdf),
        "" => unnamed(answer),
        _ => Err(ToolError(format!(
            "it is {media_type} of {}; web_fetch reads pages, text, JSON and PDF",
            human_size(answer.body.len() as u64)
        ))),
    }
}

/// The form of a body that the server gave no type.
fn unnamed(answer: &RawPage) -> Result<Form, ToolError> {
    let head = &answer.body[..answer.body.len().min(1024)];
    let start = String::from_utf8_lossy(head)
        .trim_start()
        .to_ascii_lowercase();
    if start.starts_with("<!doctype html") || start.starts_with("<html") {
        Ok(Form::Html)
    } else if !answer.body.contains(&0) && std::str::from_utf8(&answer.body).is_ok() {
        Ok(Form::Plain)
    } else {
        Err(ToolError(format!(
            "it has no type and is no text ({}); web_fetch reads pages, text, JSON and PDF",
            human_size(answer.body.len() as u64)
        )))
    }
}
