//! The pages that were read last, so that the parts of a long one are parts of one text and the
//! host is not asked again for each.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use reqwest::Url;

use super::page::Page;
use crate::protocol::ids::SessionId;

const ENTRIES: usize = 8;
const KEPT: Duration = Duration::from_secs(15 * 60);

/// See the module. Bounded: a page's text is, and so is their number.
#[derive(Debug, Default)]
pub(super) struct Cache {
    pages: Mutex<VecDeque<Entry>>,
}

#[derive(Debug)]
struct Entry {
    session_id: SessionId,
    url: Url,
    page: Page,
    at: Instant,
}

impl Cache {
    pub(super) fn get(&self, session_id: SessionId, url: &Url) -> Option<Page> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.retain(|entry| entry.at.elapsed() < KEPT);
        pages
            .iter()
            .find(|entry| entry.session_id == session_id && entry.url == *url)
            .map(|entry| entry.page.clone())
    }

    pub(super) fn put(&self, session_id: SessionId, url: &Url, page: Page) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.retain(|entry| entry.session_id != session_id || entry.url != *url);
        if pages.len() == ENTRIES {
            pages.pop_front();
        }
        pages.push_back(Entry {
            session_id,
            url: url.clone(),
            page,
            at: Instant::now(),
        });
    }
}
