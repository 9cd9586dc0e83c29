//! Progress that a client is told of while it waits.

use std::time::Duration;

use rmcp::model::ProgressNotificationParam;
use tokio::time::{Instant, timeout};

use super::View;
use crate::doors::mcp::server::Call;

/// Text that grows is told as progress this often.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);
/// A client that does not read has what it is told of progress left out.
const PROGRESS_LIMIT: Duration = Duration::from_secs(1);

/// Tells a client that something moves, where its request asked for that.
pub(super) struct Progress<'a> {
    call: &'a Call<'a>,
    told: u32,
    told_at: Instant,
    stepped: usize,
    text_bytes: usize,
}

impl<'a> Progress<'a> {
    pub(super) fn of(call: &'a Call<'a>) -> Self {
        Self {
            call,
            told: 0,
            told_at: Instant::now(),
            stepped: 0,
            text_bytes: 0,
        }
    }

    pub(super) async fn tell(&mut self, view: &View) {
        let Some(token) = self.call.context.meta.get_progress_token() else {
            return;
        };
        let message = if view.stepped > self.stepped {
            view.steps.back().cloned().unwrap_or_default()
        } else if view.text.len() > self.text_bytes
            && (self.text_bytes == 0 || self.told_at.elapsed() >= PROGRESS_EVERY)
        {
            format!("answers: {} characters so far", view.text.chars().count())
        } else {
            return;
        };
        self.stepped = view.stepped;
        self.text_bytes = view.text.len();
        self.told += 1;
        self.told_at = Instant::now();
        let param =
            ProgressNotificationParam::new(token, f64::from(self.told)).with_message(message);
        let telling = self.call.context.peer.notify_progress(param);
        // A client that is gone is noticed by its request.
        let _ = timeout(PROGRESS_LIMIT, telling).await;
    }
}
