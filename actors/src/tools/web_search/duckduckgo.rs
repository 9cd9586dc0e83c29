//! DuckDuckGo's page for browsers without scripts. It is no API: what it looks like may change,
//! and then this says so instead of finding nothing.

use dom_query::{Document, NodeRef};
use reqwest::{StatusCode, Url};

use super::engine::{Found, Hit, Question, SearchEngine, SearchError};

pub(super) async fn search(engine: &SearchEngine, query: &str) -> Result<Found, SearchError> {
    let mut url = engine.base().clone();
    url.query_pairs_mut().append_pair("q", query);
    let base = url.clone();
    let (status, bytes) = engine.ask(Question::get(url)).await?;
    // It answers 202 with a puzzle to those whom it takes for robots.
    if status == StatusCode::ACCEPTED {
        return Err(SearchError::Status(403));
    }
    let page = String::from_utf8_lossy(&bytes).into_owned();
    let read = tokio::task::spawn_blocking(move || results(&page, &base));
    read.await
        .unwrap_or_else(|_| Err(SearchError::Unexpected("a damaged page".to_owned())))
}

fn results(page: &str, base: &Url) -> Result<Found, SearchError> {
    let page = Document::from(page);
    if page
        .select(".anomaly-modal__modal, #challenge-form")
        .exists()
    {
        return Err(SearchError::Status(403));
    }
    let entries = page.select(".result:not(.result--ad)");
    let results: Vec<Hit> = entries
        .nodes()
        .iter()
        .filter_map(|entry| hit(entry, base))
        .collect();
    let says_so =
        page.select(".no-results").exists() || page.select(".no-results__message").exists();
    if results.is_empty() && !says_so {
        let what = "a page that has another form than is known".to_owned();
        return Err(SearchError::Unexpected(what));
    }
    Ok(Found {
        answers: Vec::new(),
        results,
    })
}

fn hit(entry: &NodeRef<'_>, base: &Url) -> Option<Hit> {
    let first = |class: &str| entry.descendants_it().find(|node| node.has_class(class));
    let link = first("result__a")?;
    Some(Hit {
        title: link.text().to_string(),
        url: target(&link.attr("href")?, base)?,
        snippet: first("result__snippet")
            .map(|node| node.text().to_string())
            .unwrap_or_default(),
        date: None,
    })
}

/// Links lead over DuckDuckGo, with the real address in `uddg`.
fn target(href: &str, base: &Url) -> Option<String> {
    let url = base.join(href).ok()?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    // Advertisements lead over another page of its.
    if url.path() == "/y.js" {
        return None;
    }
    let mut query = url.query_pairs();
    match query.find(|(name, _)| name == "uddg") {
        Some((_, real)) if real.starts_with("http") => Some(real.into_owned()),
        Some(_) => None,
        None => Some(url.to_string()),
    }
}
