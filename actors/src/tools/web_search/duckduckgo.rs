//! DuckDuckGo's page for browsers without scripts. It is no API: what it looks like may change,
//! and then this says so instead of finding nothing.

use dom_query::{Document, NodeRef};
use reqwest::{Method, Request, Url};

use super::engine::{Found, Hit, SearchEngine};
use crate::tools::ToolResult;

pub(super) async fn search(engine: &SearchEngine, query: &str) -> ToolResult<Found> {
    let url = engine.with_query(&[("q", query)]);
    let request = Request::new(Method::GET, url.clone());
    let bytes = engine.ask(request).await?;
    let page = String::from_utf8_lossy(&bytes).into_owned();
    let own = engine.clone();
    let read = tokio::task::spawn_blocking(move || results(&own, &page, &url));
    read.await
        .unwrap_or_else(|_| Err(engine.unexpected("a damaged page")))
}

fn results(engine: &SearchEngine, page: &str, base: &Url) -> ToolResult<Found> {
    let page = Document::from(page);
    if page
        .select(".anomaly-modal__modal, #challenge-form")
        .exists()
    {
        return Err(engine.refused(403));
    }
    let entries = page.select(".result:not(.result--ad)");
    let hits = entries.nodes().iter().filter_map(|entry| hit(entry, base));
    let results: Vec<Hit> = hits.collect();
    let says_so = page.select(".no-results, .no-results__message").exists();
    if results.is_empty() && !says_so {
        return Err(engine.unexpected("a page that has another form than is known"));
    }
    Ok(results.into())
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
    // Advertisements lead over another page of its.
    if !matches!(url.scheme(), "http" | "https") || url.path() == "/y.js" {
        return None;
    }
    let mut query = url.query_pairs();
    match query.find(|(name, _)| name == "uddg") {
        Some((_, real)) if real.starts_with("http") => Some(real.into_owned()),
        Some(_) => None,
        None => Some(url.to_string()),
    }
}
