//! Conversations, listed, searched and picked.

use std::collections::HashSet;

use chrono::{DateTime, Local, Utc};
use navi_actors::protocol::ids::SessionId;
use navi_actors::protocol::search::SearchHit;
use navi_actors::protocol::session::{SessionState, SessionSummary};
use serde::Deserialize;
use url::form_urlencoded::byte_serialize;

use super::{Talk, Wish, problem_message, read};
use crate::doors::chat::commands::pick;
use crate::doors::chat::style::{Line, Look, Tint, brief};

/// How many are listed.
const LISTED: usize = 20;
/// How much of a line a title takes, and what was found.
const TITLE: usize = 60;
const FOUND: usize = 100;

/// What a search gives.
#[derive(Deserialize)]
struct Found {
    hits: Vec<SearchHit>,
}

impl Talk<'_> {
    /// Lists the newest conversations, or those that hold these words.
    pub(super) async fn sessions(&mut self, words: &str) -> Result<(), String> {
        let (ids, mut lines) = if words.is_empty() {
            let all: Result<Vec<SessionSummary>, _> = self.client.get("/sessions").await;
            let all = all.map_err(|error| problem_message(&error))?;
            newest(&all)
        } else {
            let words: String = byte_serialize(words.as_bytes()).collect();
            let path = format!("/search?limit={LISTED}&q={words}");
            let found: Result<Found, _> = self.client.get(&path).await;
            found_in(&found.map_err(|error| problem_message(&error))?.hits)
        };
        if ids.is_empty() {
            lines.push(Line::of(Tint::Dim, "there is none"));
        } else {
            lines.push(Line::of(Tint::Dim, "  a number opens one"));
        }
        self.picks = !ids.is_empty();
        self.listed = ids;
        self.terminal.print(&lines);
        Ok(())
    }

    /// Opens a conversation of the list, or one by its id.
    pub(super) async fn pick(&mut self, which: &str) -> Result<(), String> {
        let session = pick(which, &self.listed)?;
        let snapshot = read(&self.client, session, &Wish::default()).await;
        let snapshot = snapshot.map_err(|error| problem_message(&error))?;
        self.files.clear();
        self.show(&snapshot);
        Ok(())
    }
}

fn newest(all: &[SessionSummary]) -> (Vec<SessionId>, Vec<Line>) {
    let listed = || all.iter().take(LISTED);
    let lines = listed().enumerate().map(|(at, session)| {
        let state = match session.state {
            _ if session.asks > 0 => " · asks you something",
            SessionState::Idle => "",
            SessionState::Running => " · a run goes",
            SessionState::Interrupted => " · was cut off",
            SessionState::Failed => " · failed",
        };
        let pinned = if session.pinned { " · pinned" } else { "" };
        entry(at, &session.title).and(
            Tint::Dim,
            &format!(" · {}{pinned}{state}", when(session.last_active)),
        )
    });
    (
        listed().map(|session| session.id).collect(),
        lines.collect(),
    )
}

fn found_in(hits: &[SearchHit]) -> (Vec<SessionId>, Vec<Line>) {
    let (mut ids, mut lines, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
    for hit in hits {
        if seen.insert(hit.session_id) {
            let line = entry(ids.len(), &hit.session_title);
            lines.push(line.and(Tint::Dim, &format!(" · {}", when(hit.at))));
            ids.push(hit.session_id);
        }
        if hit.message_id.is_some() {
            let snippet = format!("       {}", brief(&hit.snippet.text, FOUND));
            lines.push(Line::of(Tint::Dim, &snippet));
        }
    }
    (ids, lines)
}

fn entry(at: usize, title: &str) -> Line {
    let title = if title.is_empty() {
        "(no title)"
    } else {
        title
    };
    Line::of(Look::BOLD, &format!("  {:>2} ", at + 1)).and(Tint::Plain, &brief(title, TITLE))
}

fn when(at: DateTime<Utc>) -> String {
    let at = at.with_timezone(&Local);
    at.format("%Y-%m-%d %H:%M").to_string()
}
