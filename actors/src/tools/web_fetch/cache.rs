//! The pages that were read last, so that the parts of a long one are parts of one text and the
//! host is not asked again for each.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use reqwest::Url;

use super::page::Page;
use crate::protocol::ids::SessionId;

const ENTRIES: usize = 8;
const KEPT: Duration = Duration::from_secs(15 * 60);

/// See the module. Bounded: a page's text is, and so is their number.
#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<VecDeque<Entry>>);

#[derive(Debug)]
struct Entry {
    place: (SessionId, Url),
    page: Arc<Page>,
    at: Instant,
}

impl Cache {
    pub(super) fn get(&self, session_id: SessionId, url: &Url) -> Option<Arc<Page>> {
        let pages = self.0.lock();
        let mut fresh = pages.iter().filter(|entry| entry.at.elapsed() < KEPT);
        let found = fresh.find(|entry| entry.place.0 == session_id && entry.place.1 == *url)?;
        Some(Arc::clone(&found.page))
    }

    pub(super) fn put(&self, session_id: SessionId, url: Url, page: Arc<Page>) {
        let mut pages = self.0.lock();
        let place = (session_id, url);
        pages.retain(|entry| entry.place != place && entry.at.elapsed() < KEPT);
        if pages.len() == ENTRIES {
            pages.pop_front();
        }
        let at = Instant::now();
        pages.push_back(Entry { place, page, at });
    }
}
