//! An answer as the text that the model reads: decoded by the mark at its start, by what the server
//! said, by what a page or an XML document says of itself.

use std::sync::Arc;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use reqwest::Url;
use tokio::sync::Semaphore;

use super::fetch::RawPage;
use super::html;
use crate::documents;
use crate::tools::ToolResult;
use crate::tools::output::human_size;

/// How many answers are converted at once: a conversion cannot be ended from outside, so what a
/// malicious page keeps busy must be bounded by number.
pub(super) const AT_ONCE: usize = 2;
/// The longest text that is kept.
const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;

/// As far into a page as its own word on its encoding counts (HTML standard).
const PRESCAN_BYTES: usize = 1024;

/// Kinds of `application/` that are text.
const TEXTS: &str = "ecmascript graphql javascript jsonl sql toml x-ndjson x-sh x-yaml yaml";

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
    Xml,
    Plain,
}

impl Page {
    /// Reads an answer, away from the threads that others wait on, when one of the `places` is
    /// free.
    pub(super) async fn read(answer: RawPage, places: &Arc<Semaphore>) -> ToolResult<Self> {
        let status = answer.status;
        let form = form(&answer)?;
        let mut page = match form {
            Form::Pdf => pdf(answer).await,
            Form::Html => convert(answer, form, places, |text, url| html::page(&text, url)).await,
            Form::Xml | Form::Plain => {
                convert(answer, form, places, |text, url| Ok(Self::plain(url, text))).await
            }
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
    form: Form,
    places: &Arc<Semaphore>,
    read: impl FnOnce(String, Url) -> Result<Page, String> + Send + 'static,
) -> Result<Page, String> {
    let place = Arc::clone(places).acquire_owned().await;
    let work = tokio::task::spawn_blocking(move || {
        // Held until the work is done, even if nobody waits for it any more.
        let _place = place;
        let text = decoded(&answer.body, answer.charset.as_deref(), form);
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

fn form(answer: &RawPage) -> ToolResult<Form> {
    let media_type = answer.media_type.as_str();
    let is_pdf = answer.body.starts_with(b"%PDF-");
    let is_xml =
        matches!(media_type, "text/xml" | "application/xml") || media_type.ends_with("+xml");
    let is_text = media_type.starts_with("text/")
        || is_data(media_type)
        || media_type
            .strip_prefix("application/")
            .is_some_and(|name| TEXTS.split(' ').any(|it| it == name));
    match media_type {
        "text/html" | "application/xhtml+xml" => Ok(Form::Html),
        "application/pdf" | "application/x-pdf" if is_pdf => Ok(Form::Pdf),
        "application/pdf" | "application/x-pdf" => {
            refuse!("the server calls it a PDF, but it is none")
        }
        _ if is_xml => Ok(Form::Xml),
        _ if is_text => Ok(Form::Plain),
        "" | "application/octet-stream" | "binary/octet-stream" if is_pdf => Ok(Form::Pdf),
        "" => unnamed(answer),
        _ => refuse!(
            "it is {media_type} of {}; web_fetch reads pages, text, JSON and PDF",
            human_size(answer.body.len() as u64)
        ),
    }
}

/// The form of a body that the server gave no type.
fn unnamed(answer: &RawPage) -> ToolResult<Form> {
    let head = &answer.body[..answer.body.len().min(1024)];
    let start = String::from_utf8_lossy(head);
    let start = start.trim_start().to_ascii_lowercase();
    if start.starts_with("<!doctype html") || start.starts_with("<html") {
        Ok(Form::Html)
    } else if !answer.body.contains(&0) && std::str::from_utf8(&answer.body).is_ok() {
        Ok(Form::Plain)
    } else {
        refuse!(
            "it has no type and is no text ({}); web_fetch reads pages, text, JSON and PDF",
            human_size(answer.body.len() as u64)
        )
    }
}

/// The text of a body. `told` is what the server said of its encoding.
fn decoded(body: &[u8], told: Option<&str>, form: Form) -> String {
    let encoding = told
        .and_then(label)
        .or_else(|| label(said_by_page(body, form)?.as_str()))
        .unwrap_or_else(|| match std::str::from_utf8(body) {
            Ok(_) => UTF_8,
            Err(_) => WINDOWS_1252,
        });
    // A byte order mark wins over everything, and is taken out.
    let (text, _, _) = encoding.decode(body);
    text.into_owned()
}

fn label(name: &str) -> Option<&'static Encoding> {
    Encoding::for_label(name.trim().as_bytes())
}

/// What stands near the start of HTML after `charset=`, or in an XML declaration. Elsewhere such
/// words are a part of the text.
fn said_by_page(body: &[u8], form: Form) -> Option<String> {
    let head = &body[..body.len().min(PRESCAN_BYTES)];
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let after = |word: &str| head.find(word).map(|at| &head[at + word.len()..]);
    let declared = || after("encoding=").filter(|_| head.starts_with("<?xml"));
    let rest = match form {
        Form::Html => after("charset=").or_else(declared),
        Form::Xml => declared(),
        Form::Pdf | Form::Plain => None,
    }?;
    let name: String = rest
        .trim_start_matches(['"', '\'', ' '])
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':'))
        .collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_is_found_where_it_stands() {
        let cyrillic = [0xcf, 0xf0, 0xe8, 0xe2, 0xb3, 0xf2];
        let told = decoded(&cyrillic, Some("windows-1251"), Form::Plain);
        assert_eq!(told, "Привіт");
        let mut page = b"<meta charset='windows-1251'>".to_vec();
        page.extend(cyrillic);
        assert!(decoded(&page, None, Form::Html).ends_with("Привіт"));
        let mut page = b"<?xml version=\"1.0\" encoding=\"windows-1251\"?>".to_vec();
        page.extend(cyrillic);
        for form in [Form::Html, Form::Xml] {
            assert!(decoded(&page, None, form).ends_with("Привіт"), "{form:?}");
        }
        let plain = |body: &[u8], told| decoded(body, told, Form::Plain);
        assert_eq!(plain("Привіт".as_bytes(), None), "Привіт");
        assert_eq!(plain("Привіт".as_bytes(), Some("no-such")), "Привіт");
        assert_eq!(plain(b"\xef\xbb\xbfx", Some("windows-1251")), "x");
        assert_eq!(plain(b"\xff\xfex\0", None), "x");
        assert_eq!(plain(b"caf\xe9", None), "café");
    }

    #[test]
    fn a_text_that_speaks_of_an_encoding_says_nothing_of_its_own() {
        let page = "<meta charset=windows-1251>";
        let xml = format!("<?xml version='1.0'?><a>Привіт: {page}</a>");
        for (text, form) in [
            (format!("Привіт: {page}"), Form::Plain),
            (format!("{{\"page\": \"Привіт: {page}\"}}"), Form::Plain),
            (xml, Form::Xml),
        ] {
            assert_eq!(decoded(text.as_bytes(), None, form), text);
        }
    }
}
