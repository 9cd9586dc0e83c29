//! [`WatchActor`]: a page that watches the session list.

use std::time::Instant;

use actix::fut::{ActorFutureExt as _, WrapFuture as _};
use actix::{Actor, ActorContext as _, AsyncContext as _, StreamHandler};
use actix_web_actors::ws::{self, CloseCode, CloseReason, ProtocolError, WebsocketContext};
use bytestring::ByteString;
use navi_actors::hub::HubFrame;
use navi_actors::protocol::command::ClientFrame;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use tokio::sync::oneshot;

use super::frame;
use super::heartbeat::{CLOSE_GRACE, Heartbeat, PING_INTERVAL};
use super::rate::{FrameRate, frame_rate};
use super::{Admission, bytes_refused, feed_ended, in_portions, logged_out};
use crate::access::Principal;
use crate::http::App;
use crate::http::error::close_reason;

/// One WebSocket on the session list.
///
/// Started by the HTTP upgrade; ends with its socket, or when its feed ends. Owns nothing
/// but the feed, and takes no commands: what a page changes goes over REST. When it dies,
/// the page reconnects and gets the whole list.
#[derive(Debug)]
pub(crate) struct WatchActor {
    app: App,
    who: Principal,
    heartbeat: Heartbeat,
    rate: FrameRate,
    closing: bool,
    admission: Admission,
    /// Why no more of its bytes are taken; heard from the start on.
    refused: Option<oneshot::Receiver<NaviError>>,
}

impl WatchActor {
    pub(crate) fn new(
        app: App,
        who: Principal,
        admission: Admission,
        refused: oneshot::Receiver<NaviError>,
    ) -> Self {
        let now = Instant::now();
        Self {
            app,
            who,
            heartbeat: Heartbeat::new(now),
            rate: frame_rate(),
            closing: false,
            admission,
            refused: Some(refused),
        }
    }

    fn close(&mut self, reason: CloseReason, ctx: &mut WebsocketContext<Self>) {
        if self.closing {
            return;
        }
        self.closing = true;
        ctx.close(Some(reason));
        ctx.run_later(CLOSE_GRACE, |_, ctx| ctx.stop());
    }
}

impl Actor for WatchActor {
    type Context = WebsocketContext<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let ended = self.admission.hold.ended().into_actor(self);
        ctx.spawn(ended.map(|(), page, ctx| page.close(logged_out(), ctx)));
        let refused = bytes_refused(self.refused.take()).into_actor(self);
        ctx.spawn(refused.map(|why, page, ctx| page.close(why, ctx)));
        ctx.run_interval(PING_INTERVAL, |page, ctx| {
            if page.heartbeat.is_silent(Instant::now()) {
                ctx.stop();
            } else if !page.closing {
                ctx.ping(b"");
            }
        });
        let Principal { user, grant, .. } = self.who;
        ctx.add_stream(in_portions(self.app.engine.watch(user, grant.role)));
    }
}

/// The feed.
impl StreamHandler<ByteString> for WatchActor {
    fn handle(&mut self, frame: ByteString, ctx: &mut Self::Context) {
        if !self.closing && !self.admission.hold.has_ended() {
            ctx.text(frame);
        }
    }

    fn finished(&mut self, ctx: &mut Self::Context) {
        let why = feed_ended(&self.app, &self.admission).into_actor(self);
        ctx.spawn(why.map(|why, page, ctx| page.close(why, ctx)));
    }
}

/// The socket: nothing but its being there is expected, and asked about.
impl StreamHandler<Result<ws::Message, ProtocolError>> for WatchActor {
    fn handle(&mut self, frame: Result<ws::Message, ProtocolError>, ctx: &mut Self::Context) {
        let now = Instant::now();
        self.heartbeat.hear(now);
        if self.rate.check().is_err() {
            let error = NaviError::new(ErrorCode::RateLimited, "too many frames a second");
            self.close(close_reason(&error), ctx);
            return;
        }
        match frame {
            Ok(ws::Message::Ping(bytes)) if !self.closing => ctx.pong(&bytes),
            Ok(ws::Message::Text(text)) if !self.closing && is_ping(&text) => {
                ctx.text(serde_json::to_string(&HubFrame::Pong {}).unwrap_or_default());
            }
            Ok(ws::Message::Close(_)) if !self.closing => {
                ctx.close(Some(CloseCode::Normal.into()));
                ctx.stop();
            }
            Ok(ws::Message::Close(_)) | Err(ProtocolError::Io(_)) => ctx.stop(),
            Ok(_) => {}
            Err(_) => self.close(
                CloseReason {
                    code: CloseCode::Protocol,
                    description: Some("these frames are no WebSocket message".to_owned()),
                },
                ctx,
            ),
        }
    }
}

fn is_ping(text: &str) -> bool {
    matches!(frame::parse(text), Ok(parsed) if parsed.frame == ClientFrame::Ping {})
}
