//! Where a question goes: which session, and whether it was asked before.

use chrono::{TimeDelta, Utc};
use futures_util::future::join_all;
use navi_actors::domain::input::validate_images;
use navi_actors::engine::ProgramSession;
use navi_actors::protocol::command::NewSessionRequest;
use navi_actors::protocol::error::{NaviError, invalid};
use navi_actors::protocol::ids::SessionId;
use navi_actors::store::KnownMessage;
use sha2::{Digest as _, Sha256};

use super::Question;
use crate::access::Principal;
use crate::doors::requests::{Sameness, Seen};
use crate::http::App;

/// The sender's id of the first message of a session that is made for it.
const ONLY: &str = "answer";
/// What the id of a session that is made for a request, and stays, is made of beside it. No name
/// that a header can say.
const NEW: &[u8] = b"\0new";
/// A request that comes again after a restart is joined to one that is no older than this.
const RECENT: TimeDelta = TimeDelta::minutes(10);
/// How many ids are tried for a name: one whose session was deleted is free again only later.
const IDS: u8 = 8;
/// What a program is told whose key stands for something else.
const OTHER_REQUEST: &str = "this Idempotency-Key came before with another question; send that one as it was, or this one with a key of its own";

/// By what a request is known where it comes again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeat {
    /// SHA-256 of the request, or of the key that it names.
    pub(crate) hash: [u8; 32],
    /// It is that of a key, which may come with another question.
    pub(crate) is_of_key: bool,
    /// The program says that it asks once more.
    pub(crate) again: bool,
}

/// Where the conversation is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the request.
    Request,
    /// In the session that the program knows by this name: its id, or a word of its own.
    Session(String),
    /// In a session that is made for it, and stays.
    New,
}

impl Place {
    /// Whether the request's session is its own, with what it says was said before.
    pub(super) fn is_its_own(&self) -> bool {
        matches!(self, Self::Request | Self::New)
    }
}

/// See the module.
pub(super) struct Found {
    pub(super) sameness: Sameness,
    pub(super) session: SessionId,
    pub(super) client_id: String,
    /// SHA-256 of what is asked ([`Question::said`]).
    pub(super) asked: Sameness,
    /// It was asked before, and is joined whatever became of it.
    pub(super) joins: bool,
    /// The name led there before. It may be gone since.
    pub(super) was_known: bool,
}

impl Found {
    pub(super) async fn of(
        app: &App,
        who: Principal,
        question: &Question,
    ) -> Result<Self, NaviError> {
        let place: &[u8] = match &question.place {
            Place::Request => b"",
            Place::New => NEW,
            Place::Session(name) => name.as_bytes(),
        };
        let sameness = hashed(who, &[place, &question.repeat.hash]);
        let asked = question.said();
        let known = app.requests.find(who.user, &sameness);
        if known.as_ref().is_some_and(|seen| seen.asked != asked) {
            return Err(invalid(OTHER_REQUEST));
        }
        if let Some(seen) = known.filter(|seen| comes_again(app, seen, question.repeat.again))
            && (app.engine.standing(who.user, seen.session).await).is_ok()
        {
            return Ok(Self {
                sameness,
                session: seen.session,
                client_id: seen.client_id,
                asked,
                joins: true,
                was_known: false,
            });
        }
        let mut was_known = false;
        let (session, client_id) = match &question.place {
            Place::Request | Place::New => (of_request(app, who, question).await?, ONLY.to_owned()),
            Place::Session(name) => {
                let called = hashed(who, &[b"name", name.as_bytes()]);
                let session = if let Some(session) = app.requests.session(who.user, &called) {
                    was_known = true;
                    session
                } else {
                    let session = of_name(app, who, question, name).await?;
                    app.requests.keep_session(who.user, called, session);
                    session
                };
                (session, hex::encode(question.repeat.hash))
            }
        };
        Ok(Self {
            sameness,
            session,
            client_id,
            asked,
            joins: question.repeat.again,
            was_known,
        })
    }
}

/// Whether what was seen before comes again, and is not asked once more: its program says so, or
/// could not hear the answer. Some clients ask again without a word then.
fn comes_again(app: &App, seen: &Seen, again: bool) -> bool {
    again || !seen.is_delivered() && !app.requests.is_heard(seen.session)
}

/// Whether this comes again, and was asked in the session before: it is joined there.
///
/// # Errors
/// What the store says.
pub(crate) async fn was_asked_in(
    app: &App,
    who: Principal,
    session: SessionId,
    Repeat { hash, again, .. }: Repeat,
) -> Result<bool, NaviError> {
    let name = session.to_string();
    let sameness = hashed(who, &[name.as_bytes(), &hash]);
    let known = app.requests.find(who.user, &sameness);
    if known.is_some_and(|seen| comes_again(app, &seen, again)) {
        return Ok(true);
    }
    // The process may be another one since.
    Ok(again
        && app
            .engine
            .knows_message(who.user, session, hex::encode(hash))
            .await?)
}

/// Refuses a key that came before with another question, by what is stored of that message: this
/// process may be another one since. Its files are stored elsewhere, and are not compared.
///
/// # Errors
/// `invalid_field`; what the store says.
pub(super) async fn check_key(
    app: &App,
    who: Principal,
    (session, client_id): (SessionId, String),
    question: &Question,
) -> Result<(), NaviError> {
    let known = app.engine.known_message(who.user, session, client_id);
    let (text, images) = match known.await? {
        Some(KnownMessage::Sent(sent)) => (sent.content.unwrap_or_default(), sent.images),
        Some(KnownMessage::Queued(queued)) => (queued.content, queued.images),
        // It was withdrawn.
        None => return Ok(()),
    };
    if text != question.text || images != validate_images(question.images.clone())? {
        return Err(invalid(OTHER_REQUEST));
    }
    Ok(())
}

/// A session for this request alone. Its id is made of the request, so that one that comes again
/// after a restart leads there.
async fn of_request(
    app: &App,
    who: Principal,
    question: &Question,
) -> Result<SessionId, NaviError> {
    let kind: &[u8] = match question.place {
        Place::New => NEW,
        Place::Request | Place::Session(_) => b"request",
    };
    let id = made_of(who, &[kind, &question.repeat.hash]);
    if make(app, who, question, id).await == Ok(true) {
        return Ok(id);
    }
    // Another like it may have made it just now.
    if question.repeat.again
        && let Ok(known) = app.engine.standing(who.user, id).await
        && known.summary.created_at + RECENT > Utc::now()
    {
        return Ok(id);
    }
    let id = SessionId::new();
    make(app, who, question, id).await?;
    Ok(id)
}

async fn of_name(
    app: &App,
    who: Principal,
    question: &Question,
    name: &str,
) -> Result<SessionId, NaviError> {
    if let Ok(id) = name.parse::<SessionId>()
        && let Ok(known) = app.engine.standing(who.user, id).await
        && !known.summary.ephemeral
    {
        return Ok(id);
    }
    let id = |n: u8| made_of(who, &[b"session", name.as_bytes(), &[n]]);
    let stands = (0..=IDS).map(|n| app.engine.standing(who.user, id(n)));
    let stands = join_all(stands).await.into_iter().flatten();
    // One that was deleted and came back has its name again, unless another was begun by it since.
    let newest = stands.max_by_key(|known| known.summary.created_at);
    if let Some(known) = newest {
        return Ok(known.summary.id);
    }
    for n in 0..IDS {
        // One that was deleted a moment ago still has its id.
        if make(app, who, question, id(n)).await.is_ok() {
            return Ok(id(n));
        }
    }
    let last = id(IDS);
    make(app, who, question, last).await?;
    Ok(last)
}

/// Makes the session of this id, unless there is one. Whether it was made now.
async fn make(
    app: &App,
    who: Principal,
    question: &Question,
    id: SessionId,
) -> Result<bool, NaviError> {
    let wanted = ProgramSession {
        wish: NewSessionRequest {
            profile_id: question.profile_id.clone(),
            ..NewSessionRequest::default()
        },
        ephemeral: question.place == Place::Request,
        history: if question.place.is_its_own() {
            question.history.clone()
        } else {
            Vec::new()
        },
    };
    app.engine.session_of_program(who.user, id, wanted).await
}

fn made_of(who: Principal, parts: &[&[u8]]) -> SessionId {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hashed(who, parts)[..16]);
    SessionId(uuid::Builder::from_random_bytes(bytes).into_uuid())
}

fn hashed(who: Principal, parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new_with_prefix(who.user.0.as_bytes());
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}
