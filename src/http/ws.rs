//! The sockets: one for each tab on a session, and one for each page on the session list.

mod assemble;
mod frame;
mod heartbeat;
mod incoming;
mod rate;
mod tab;
pub(crate) mod tabs;
mod watch;

use std::future::pending;
use std::task::Poll;

use actix_web::http::Method;
use actix_web::{HttpRequest, HttpResponse, web};
use actix_web_actors::ws::{CloseCode, CloseReason, WsResponseBuilder};
use bytestring::ByteString;
use futures_util::{Stream, StreamExt as _, stream};
use navi_actors::domain::input::{MAX_CLIENT_ID_CHARS, MAX_MESSAGE_JSON_BYTES, validate_client_id};
use navi_actors::domain::permissions::{Action, Grant};
use navi_actors::feed::Feed;
use navi_actors::protocol::error::{ErrorCode, NaviError, invalid};
use navi_actors::protocol::ids::SessionId;
use serde::Deserialize;
use tokio::sync::oneshot;

use self::incoming::Incoming;
use self::tab::TabActor;
use self::tabs::{Seat, Sitter};
use self::watch::WatchActor;
use super::App;
use super::endpoint::{Endpoint, endpoint};
use super::error::{ApiError, close_reason};
use super::messages::page_size;
use super::path::session_id;
use crate::access::{Hold, Principal};
use crate::doors::Here;

/// What a page asks for beside its key, and is given: a browser wants one of those it named.
const PROTOCOL: &str = "navi";
/// A page that only watches the list has next to nothing to say.
const MAX_WATCH_FRAME_BYTES: usize = 4 * 1024;
/// Who may send no message is told so of a long one, and not of one with pictures.
const MAX_FORBIDDEN_BYTES: usize = 1024 * 1024;

pub(crate) fn routes() -> [Endpoint; 2] {
    [
        endpoint("/ws/sessions/{session_id}").on(Method::GET, Action::ReadConversations, session),
        endpoint("/ws/sessions").on(Method::GET, Action::ReadConversations, list),
    ]
}

/// Where a tab left off. Texts, so that a wrong one can be told on the socket.
#[derive(Debug, Default, Deserialize)]
struct Cursor {
    after: Option<String>,
    epoch: Option<String>,
    /// How many messages a `resync` has at the most.
    messages: Option<String>,
    /// What a program calls itself that lends tools to runs of this session. They are lent as long as
    /// it has such a socket.
    lender: Option<String>,
}

/// How much of a feed is taken before what was taken is written to the socket.
const PORTION_BYTES: usize = 64 * 1024;

/// Why a socket is closed that was opened with what opens nothing any more.
pub(crate) const LOGGED_OUT: &str = "the login or the token has ended";

/// What a tab asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subscription {
    pub(crate) session: SessionId,
    pub(crate) after: Option<u64>,
    pub(crate) epoch: Option<i64>,
    pub(crate) newest: Option<u32>,
}

/// What a socket has while it is open.
#[derive(Debug)]
pub(crate) struct Admission {
    _seat: Seat,
    /// What it was opened with.
    pub(crate) hold: Hold,
    /// The program on the other side, where it lends tools.
    pub(crate) lender: Option<Here>,
}

impl Admission {
    /// A place on this session, or on the list.
    ///
    /// # Errors
    /// `rate_limited` where there is none left.
    pub(crate) fn new(
        app: &App,
        session: Option<SessionId>,
        who: &Principal,
    ) -> Result<Self, NaviError> {
        let limits = app.engine.limits(who.user);
        let sitter = Sitter {
            user: who.user,
            most: limits.map(|limits| limits.tabs),
        };
        Ok(Self {
            _seat: app.tabs.seat(session, sitter)?,
            hold: app.access.hold(who),
            lender: None,
        })
    }
}

/// The most bytes of a message, in one frame or in many, on the socket of a tab.
fn max_message_bytes(grant: Grant) -> usize {
    match grant.check(Action::Converse) {
        Ok(()) => MAX_MESSAGE_JSON_BYTES,
        Err(_) => MAX_FORBIDDEN_BYTES,
    }
}

/// A browser cannot read the answer to a refused upgrade: what is wrong with the address is
/// told by a close code, after the upgrade.
async fn session(
    app: web::Data<App>,
    who: Principal,
    request: HttpRequest,
    path: web::Path<String>,
    stream: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let query = request.query_string();
    let asked = subscription(&path, query).and_then(|asked| Ok((asked, lender(query)?)));
    let session = asked.as_ref().ok().map(|(asked, _)| asked.session);
    let admission = Admission::new(&app, session, &who)?;
    let here = asked.as_ref().ok().and_then(|(asked, lender)| {
        let name = lender.as_deref()?;
        Some(app.lenders.arrive(who.user, asked.session, name))
    });
    let admission = Admission {
        lender: here,
        ..admission
    };
    let subscription = asked.map(|(asked, _)| asked);
    let app = app.as_ref().clone();
    let most = max_message_bytes(who.grant);
    let (incoming, refused) = Incoming::new(app.clone(), who.user, stream, most);
    let tab = TabActor::new(app, &who, subscription, admission, refused);
    WsResponseBuilder::new(tab, &request, incoming)
        .protocols(&[PROTOCOL])
        .frame_size(most)
        .start()
        .map_err(|error| not_an_upgrade(&error))
}

async fn list(
    app: web::Data<App>,
    who: Principal,
    request: HttpRequest,
    stream: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let admission = Admission::new(&app, None, &who)?;
    let app = app.as_ref().clone();
    let (incoming, refused) = Incoming::new(app.clone(), who.user, stream, MAX_WATCH_FRAME_BYTES);
    let page = WatchActor::new(app, who, admission, refused);
    WsResponseBuilder::new(page, &request, incoming)
        .protocols(&[PROTOCOL])
        .frame_size(MAX_WATCH_FRAME_BYTES)
        .start()
        .map_err(|error| not_an_upgrade(&error))
}

/// What an address asks for.
///
/// # Errors
/// `invalid_id`, `invalid_field`.
pub(crate) fn subscription(path: &str, query: &str) -> Result<Subscription, NaviError> {
    let wrong = |field: &str| invalid(format!("{field} must be a whole number"));
    let session = session_id(path)?;
    let Cursor {
        after,
        epoch,
        messages,
        lender: _,
    } = web::Query::<Cursor>::from_query(query)
        .map_err(|_| wrong("after"))?
        .into_inner();
    Ok(Subscription {
        session,
        after: number(after).map_err(|()| wrong("after"))?,
        epoch: number(epoch).map_err(|()| wrong("epoch"))?,
        newest: number(messages)
            .map_err(|()| wrong("messages"))?
            .map(|newest| page_size("messages", newest))
            .transpose()?,
    })
}

/// What a program that lends calls itself.
///
/// # Errors
/// `invalid_field`.
fn lender(query: &str) -> Result<Option<String>, NaviError> {
    let cursor = web::Query::<Cursor>::from_query(query);
    let name = cursor.map(|it| it.into_inner().lender).unwrap_or_default();
    name.map(checked_lender).transpose()
}

/// # Errors
/// `invalid_field`.
pub(crate) fn checked_lender(name: String) -> Result<String, NaviError> {
    match validate_client_id(&name) {
        Ok(()) => Ok(name),
        Err(_) => Err(invalid(format!(
            "lender must have 1 to {MAX_CLIENT_ID_CHARS} characters, and no control character"
        ))),
    }
}

/// A number of a query; an empty one counts as left out.
fn number<T: std::str::FromStr>(text: Option<String>) -> Result<Option<T>, ()> {
    text.filter(|text| !text.is_empty())
        .map(|text| text.parse().map_err(|_| ()))
        .transpose()
}

fn not_an_upgrade(error: &actix_web::Error) -> ApiError {
    invalid(format!("this path takes a WebSocket: {error}")).into()
}

/// A feed that pauses after each portion. An actor takes all that its stream has ready before it
/// gives any of it to the socket: a tab that does not read would hold as much.
fn in_portions(mut feed: Feed) -> impl Stream<Item = ByteString> {
    let mut taken = 0;
    stream::poll_fn(move |cx| {
        if taken >= PORTION_BYTES {
            taken = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let frame = feed.poll_next_unpin(cx);
        taken = match &frame {
            Poll::Ready(Some(frame)) => taken + frame.len(),
            Poll::Ready(None) | Poll::Pending => 0,
        };
        frame
    })
}

fn logged_out() -> CloseReason {
    close_reason(&NaviError::new(ErrorCode::Unauthorized, LOGGED_OUT))
}

/// How a socket is closed once its bytes are refused; without an end where none are.
async fn bytes_refused(refused: Option<oneshot::Receiver<NaviError>>) -> CloseReason {
    let refused = async { refused?.await.ok() };
    match refused.await {
        Some(error) => close_reason(&error),
        None => pending().await,
    }
}

/// How a socket is closed whose feed ended: a client comes back at once after a restart, and not
/// at all where the account went, with which its sessions do.
fn feed_ended(app: &App, admission: &Admission) -> impl Future<Output = CloseReason> + 'static {
    let (closing, hold) = (app.closing.clone(), admission.hold.standing());
    async move {
        let stands = closing.is_cancelled() || hold.await;
        if closing.is_cancelled() {
            let error = NaviError::new(ErrorCode::ShuttingDown, "navi is shutting down");
            close_reason(&error)
        } else if stands {
            CloseReason {
                code: CloseCode::Error,
                description: Some("the session was closed here; connect again".to_owned()),
            }
        } else {
            logged_out()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscription_is_read_or_refused_by_its_code() {
        let id = "0190a0b0-0000-7000-8000-000000000001";
        let found = subscription(id, "after=12&epoch=-3").unwrap();
        assert_eq!((found.after, found.epoch), (Some(12), Some(-3)));
        let found = subscription(id, "after=&other=1").unwrap();
        assert_eq!((found.after, found.epoch), (None, None));
        let code = |path, query| subscription(path, query).unwrap_err().code;
        assert_eq!(code("nonsense", ""), ErrorCode::InvalidId);
        assert_eq!(code("", ""), ErrorCode::InvalidId);
        assert_eq!(code(id, "after=-1"), ErrorCode::InvalidField);
        assert_eq!(code(id, "after=1&after=2"), ErrorCode::InvalidField);
        assert_eq!(code(id, "epoch=x"), ErrorCode::InvalidField);
        assert_eq!(lender("after=1&lender=a%20b").unwrap().unwrap(), "a b");
        assert_eq!(lender("after=1").unwrap(), None);
        assert!(lender("lender=").is_err() && lender("lender=a%0Ab").is_err());
    }
}
