//! HTML as Markdown: the article where there is one, else the whole page. Without scripts, forms
//! and what is hidden from a reader's eye; without images but for what they show, in words.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use dom_query::{Document, NodeRef};
use dom_smoothie::{Config, Readability, TextMode};
use html5ever::tendril::TendrilSink as _;
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{ParseOpts, parse_document};
use itertools::Itertools as _;
use reqwest::Url;

use super::page::Page;
use crate::tools::output::shortened;

/// A few bytes of HTML can stand for any number of elements, and each level of nesting makes
/// the next dearer. So the parser is fed in pieces, and looked after between them.
const PIECE_BYTES: usize = 1024;
const MAX_NODES: usize = 200_000;
const MAX_DEPTH: usize = 400;
/// What one more piece can add to that.
const MAX_DEPTH_AFTER: usize = MAX_DEPTH + PIECE_BYTES;
const PARSE_LIMIT: Duration = Duration::from_secs(5);
/// A page with more elements is shown whole: finding its article would take too long.
const MAX_ARTICLE_ELEMENTS: usize = 30_000;
/// An article that is shorter is more likely a mistake.
const MIN_ARTICLE_CHARS: usize = 250;
/// As much of what an image shows as is told.
const ALT_BYTES: usize = 200;

/// What says nothing in words, or not to a reader.
const UNREAD: &str = "script, style, template, svg, math, canvas, iframe, frame, object, embed, \
    applet, video, audio, input, select, textarea, datalist, dialog, [hidden]";

/// The page that stands at `url`.
pub(super) fn page(source: &str, url: Url) -> Result<Page, String> {
    let (document, cut) = parsed(source);
    // A walk without recursion.
    let root = document.root();
    let mut depths = HashMap::from([(root.id, 0_usize)]);
    for node in root.descendants_it() {
        let above = node.parent().and_then(|parent| depths.get(&parent.id));
        let depth = above.map_or(0, |depth| depth + 1);
        depths.insert(node.id, depth);
    }
    refuse_if!(
        depths.into_values().any(|depth| depth > MAX_DEPTH_AFTER),
        "the page is nested too deeply to be read"
    );
    let mut notes = Vec::new();
    if cut {
        notes.push("the page is too large or too deeply nested; its end is left out".to_owned());
    }
    let title = document.select("title").first().text();
    let title = title.split_whitespace().join(" ");
    clean(&document, &url);
    let text = article(&document).unwrap_or_else(|| {
        let body = document.body().unwrap_or_else(|| document.root());
        body.md(None).to_string()
    });
    Ok(Page {
        url,
        title,
        text: text.trim().to_owned(),
        notes,
    })
}

/// The document, and whether it was cut off.
fn parsed(source: &str) -> (Document, bool) {
    let options = ParseOpts {
        tree_builder: TreeBuilderOpts {
            scripting_enabled: false,
            ..TreeBuilderOpts::default()
        },
        ..ParseOpts::default()
    };
    let mut parser = parse_document(Document::default(), options);
    let begun = Instant::now();
    let mut rest = source;
    let mut cut = false;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES.min(rest.len())));
        parser.process(piece.into());
        rest = after;
        let document = &parser.tokenizer.sink.sink;
        // How deep its end lies.
        let open = std::iter::successors(Some(document.root()), NodeRef::last_child);
        if document.tree.len() > MAX_NODES
            || open.take(MAX_DEPTH + 2).count() > MAX_DEPTH
            || begun.elapsed() > PARSE_LIMIT
        {
            cut = !rest.is_empty();
            break;
        }
    }
    (parser.finish(), cut)
}

/// Takes out what is not read, puts words in the place of images, and makes links whole.
fn clean(document: &Document, url: &Url) {
    document.select(UNREAD).remove();
    for node in document.select("[style]").nodes() {
        let style = node.attr("style").unwrap_or_default();
        let style = style.to_ascii_lowercase();
        let style: String = style.split_whitespace().collect();
        if style.contains("display:none") || style.contains("visibility:hidden") {
            node.remove_from_parent();
        }
    }
    for node in document.select("img").nodes() {
        let alt = node.attr("alt").unwrap_or_default();
        let alt = alt.split_whitespace().join(" ");
        let words = if alt.is_empty() {
            String::new()
        } else {
            format!("(image: {})", shortened(&alt, ALT_BYTES))
        };
        node.replace_with(&document.tree.new_text(words));
    }
    let base = document
        .base_uri()
        .and_then(|base| url.join(&base).ok())
        .unwrap_or_else(|| url.clone());
    for node in document.select("a[href]").nodes() {
        let href = node.attr("href").unwrap_or_default();
        match base.join(href.trim()) {
            Ok(link) if matches!(link.scheme(), "http" | "https" | "mailto" | "tel") => {
                node.set_attr("href", link.as_str());
            }
            _ => node.remove_attr("href"),
        }
    }
}

/// The article's Markdown, where the page has one.
fn article(document: &Document) -> Option<String> {
    let config = Config {
        max_elements_to_parse: MAX_ARTICLE_ELEMENTS,
        // The scripts that carry it are gone.
        disable_json_ld: true,
        text_mode: TextMode::Markdown,
        ..Config::default()
    };
    let mut readability = Readability::with_document(document.clone(), None, Some(config)).ok()?;
    if !readability.is_probably_readable() {
        return None;
    }
    let article = readability.parse().ok()?;
    (article.length >= MIN_ARTICLE_CHARS).then(|| article.text_content.to_string())
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
