//! Sessions: listed, searched, read.

use std::cmp::Reverse;

use chrono::{DateTime, Utc};
use navi_actors::domain::outside;
use navi_actors::protocol::error::{NaviError, invalid};
use navi_actors::protocol::ids::{MessageId, SessionId};
use navi_actors::protocol::message::{Message, MessageState, Role, ToolOutcome};
use navi_actors::protocol::session::{SessionState, SessionSummary};
use navi_actors::store::Listed;
use rmcp::model::CallToolResponse;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::server::{Call, limit, of_length, told};
use super::watch::Cursor;

/// How many of anything are told where a call does not say, and at the most.
const USUAL: u32 = 20;
const MOST_LISTED: u32 = 100;
const MOST_HITS: u32 = 50;
const MOST_MESSAGES: u32 = 100;
const MAX_WORDS_CHARS: usize = 500;
/// As much of one message is told, and as much of a page.
const MESSAGE_BYTES: usize = 16 * 1024;
/// It is told twice, as data and as the text of it, and clients take events of 1 MB.
const PAGE_BYTES: usize = 64 * 1024;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListArgs {
    /// Only those whose title or a tag has this in it, in whatever case.
    #[schemars(length(min = 1, max = 500))]
    query: Option<String>,
    /// Those that are put away, in place of the others.
    archived: Option<bool>,
    /// How many at the most; 20 where it is left out.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Listing {
    sessions: Vec<ListedSession>,
    /// Where the next page begins; left out where this is the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A session of a list.
#[derive(Debug, Serialize, JsonSchema)]
struct ListedSession {
    session_id: SessionId,
    title: String,
    profile: String,
    state: SessionState,
    pinned: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    /// How many requests for consent wait for the user.
    approvals: u32,
    created_at: DateTime<Utc>,
    last_active: DateTime<Utc>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchArgs {
    /// Words to look for.
    #[schemars(length(min = 1, max = 500))]
    query: String,
    /// How many hits at the most; 20 where it is left out.
    #[schemars(range(min = 1, max = 50))]
    limit: Option<u32>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Hits {
    hits: Vec<Hit>,
}

/// A message, or a session's title, that holds the words.
#[derive(Debug, Serialize, JsonSchema)]
struct Hit {
    session_id: SessionId,
    session_title: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    archived: bool,
    /// Left out where the title was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<MessageId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
    /// A few words around what was found.
    text: String,
    at: DateTime<Utc>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadArgs {
    /// The session to read.
    session_id: SessionId,
    /// How many messages at the most; 20 where it is left out.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
    /// `earlier_cursor` of the page that was read last: the messages before it.
    cursor: Option<String>,
}

/// A page of a conversation, in order.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Page {
    session_id: SessionId,
    title: String,
    state: SessionState,
    messages: Vec<Told>,
    /// How many messages stand before these.
    earlier: u64,
    /// Leads to those; left out where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    earlier_cursor: Option<String>,
    /// For run_wait: what the session tells from here on.
    run_cursor: String,
}

/// A message of a conversation.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Message")]
struct Told {
    message_id: MessageId,
    role: Role,
    text: String,
    /// Whether the text came from outside and is data, whatever it says.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    outside: bool,
    /// The tools that the message calls; of a result, the tool that gave it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<String>,
    /// How the call ended, of a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<ToolOutcome>,
    /// Where it was not told to its end.
    #[serde(skip_serializing_if = "is_complete")]
    state: MessageState,
    /// Whether it is a plan, and no answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_plan: bool,
    /// How many images and files came with it; they are on Navi's page.
    #[serde(skip_serializing_if = "is_none")]
    attachments: usize,
    /// How much of the text is left out here, in bytes.
    #[serde(skip_serializing_if = "is_none")]
    left_out_bytes: usize,
    at: DateTime<Utc>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_complete(state: &MessageState) -> bool {
    *state == MessageState::Complete
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_none(count: &usize) -> bool {
    *count == 0
}

pub(super) async fn list(call: &Call<'_>) -> Result<CallToolResponse, NaviError> {
    let args: ListArgs = call.read()?;
    let most = limit(args.limit, USUAL, MOST_LISTED)?;
    let after = args.cursor.as_deref().map(Place::read).transpose()?;
    let words = match &args.query {
        Some(query) => {
            of_length("query", query, MAX_WORDS_CHARS)?;
            query.to_lowercase()
        }
        None => String::new(),
    };
    let listed = if args.archived.unwrap_or(false) {
        Listed::Archived
    } else {
        Listed::Current
    };
    let mut sessions = call.app.engine.sessions(call.who.user, listed).await?;
    let holds = |text: &String| text.to_lowercase().contains(&words);
    sessions.retain(|session| holds(&session.title) || session.tags.iter().any(holds));
    sessions.sort_by_key(Place::of);
    // A list that changed meanwhile goes on where this page would begin now.
    sessions.retain(|session| after.is_none_or(|after| Place::of(session) > after));
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let goes_on = sessions.len() > most;
    sessions.truncate(most);
    let last = sessions.last().filter(|_| goes_on);
    let listing = Listing {
        next_cursor: last.map(|session| Place::of(session).written()),
        sessions: sessions.into_iter().map(listed_session).collect(),
    };
    told(&listing)
}

/// A session's place in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place(Reverse<bool>, Reverse<i64>, SessionId);

impl Place {
    fn of(session: &SessionSummary) -> Self {
        let active = session.last_active.timestamp_micros();
        Self(Reverse(session.pinned), Reverse(active), session.id)
    }

    fn written(&self) -> String {
        format!("{}.{}.{}", u8::from(self.0.0), self.1.0, self.2)
    }

    fn read(text: &str) -> Result<Self, NaviError> {
        let mut parts = text.splitn(3, '.');
        let pinned = parts.next().and_then(|pinned| match pinned {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        });
        let active = parts.next().and_then(|active| active.parse().ok());
        let id = parts.next().and_then(|id| id.parse().ok());
        match (pinned, active, id) {
            (Some(pinned), Some(active), Some(id)) => {
                Ok(Self(Reverse(pinned), Reverse(active), id))
            }
            _ => Err(invalid("cursor must be next_cursor of the page before")),
        }
    }
}

fn listed_session(session: SessionSummary) -> ListedSession {
    ListedSession {
        session_id: session.id,
        title: session.title,
        profile: session.profile_id,
        state: session.state,
        pinned: session.pinned,
        tags: session.tags,
        approvals: session.asks,
        created_at: session.created_at,
        last_active: session.last_active,
    }
}

pub(super) async fn search(call: &Call<'_>) -> Result<CallToolResponse, NaviError> {
    let args: SearchArgs = call.read()?;
    of_length("query", &args.query, MAX_WORDS_CHARS)?;
    let most = limit(args.limit, USUAL, MOST_HITS)?;
    let engine = &call.app.engine;
    let hits = engine.search(call.who.user, &args.query, most).await?;
    let hit = hits.into_iter().map(|hit| Hit {
        session_id: hit.session_id,
        session_title: hit.session_title,
        archived: hit.session_archived,
        message_id: hit.message_id,
        role: hit.role,
        text: hit.snippet.text,
        at: hit.at,
    });
    told(&Hits {
        hits: hit.collect(),
    })
}

pub(super) async fn read(call: &Call<'_>) -> Result<CallToolResponse, NaviError> {
    let args: ReadArgs = call.read()?;
    let most = limit(args.limit, USUAL, MOST_MESSAGES)?;
    let wrong = |_| invalid("cursor must be earlier_cursor of the page that was read last");
    let before = args.cursor.as_deref().map(str::parse::<MessageId>);
    let before = before.transpose().map_err(wrong)?;
    let (engine, user) = (&call.app.engine, call.who.user);
    let newest = if before.is_none() { most } else { 1 };
    let stands = engine.with_newest(user, args.session_id, Some(newest));
    let stands = stands.await?;
    let (messages, earlier) = match before {
        None => (stands.messages, stands.earlier),
        Some(before) => {
            let page = engine.messages_before(user, args.session_id, before, most);
            let page = page.await?;
            (page.messages, page.earlier)
        }
    };
    let (messages, left) = within_page(messages.into_iter().map(told_message).collect());
    let earlier = earlier + left;
    let first = messages.first().filter(|_| earlier > 0);
    told(&Page {
        session_id: args.session_id,
        title: stands.summary.title,
        state: stands.summary.state,
        earlier_cursor: first.map(|message| message.message_id.to_string()),
        messages,
        earlier,
        run_cursor: Cursor::at(stands.last_seq).to_string(),
    })
}

/// The newest of the messages that fit into a page, and how many of the others are left.
fn within_page(mut messages: Vec<Told>) -> (Vec<Told>, u64) {
    let mut bytes = 0;
    let fits = messages.iter().rev().take_while(|message| {
        bytes += message.text.len();
        bytes <= PAGE_BYTES
    });
    let fits = fits.count().max(1);
    let left = messages.len().saturating_sub(fits);
    messages.drain(..left);
    (messages, u64::try_from(left).unwrap_or(u64::MAX))
}

fn told_message(message: Message) -> Told {
    let text = message.content.unwrap_or_default();
    let (text, left_out_bytes) = shortened(&text, MESSAGE_BYTES);
    let text = match &message.tool_call_id {
        Some(call) if message.outside => outside::mark(call, text),
        _ => text.to_owned(),
    };
    let tools = match message.name {
        Some(tool) => vec![tool],
        None => message.tool_calls.into_iter().map(|it| it.name).collect(),
    };
    Told {
        message_id: message.id,
        role: message.role,
        text,
        outside: message.outside,
        tools,
        outcome: message.outcome,
        state: message.state,
        is_plan: message.is_plan,
        attachments: message.images.len() + message.image_urls.len() + message.files.len(),
        left_out_bytes,
        at: message.created_at,
    }
}

/// The beginning of a text that is too long, and how much of it is left out.
pub(super) fn shortened(text: &str, most: usize) -> (&str, usize) {
    let end = text.floor_char_boundary(most);
    (&text[..end], text.len() - end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_the_list_is_read_as_it_was_written() {
        let id = SessionId::new();
        let place = Place(Reverse(true), Reverse(1_764_000_000_000_123), id);
        assert_eq!(Place::read(&place.written()).unwrap(), place);
        let newer = Place(Reverse(true), Reverse(1_764_000_000_000_124), id);
        let unpinned = Place(Reverse(false), Reverse(1_764_000_000_000_124), id);
        assert!(newer < place && place < unpinned);
        for wrong in ["", "x", "2.1.x", "1.x.y", "1.2"] {
            assert!(Place::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_text_is_shortened_between_characters() {
        assert_eq!(shortened("ab", 2), ("ab", 0));
        assert_eq!(shortened("aйb", 2), ("a", 3));
    }
}
