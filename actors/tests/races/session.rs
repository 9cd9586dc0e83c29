//! A session as small as it can be: it drives [`Telling`] as the session's actor does.

use std::collections::VecDeque;

use chrono::{DateTime, Utc};
use navi_actors::domain::session::change::{Change, Closed};
use navi_actors::domain::session::write::Write;
use navi_actors::protocol::approval::ConsentMode;
use navi_actors::protocol::event::{Event, PartKind};
use navi_actors::protocol::ids::{MessageId, Origin, PartId, RunId, SessionId, UserId};
use navi_actors::protocol::session::{SessionSnapshot, SessionState, SessionSummary};
use navi_actors::session::messages::{Attach, Attached};
use navi_actors::session::outline::Outline;
use navi_actors::session::sequencer::{At, Piece};
use navi_actors::session::telling::{Committed, StoredPosition, Telling};
use shuttle::future::yield_now;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::shelf::Shelf;

/// The one run.
const RUN: RunId = RunId(Uuid::nil());

/// So few frames that tabs lag.
const CAPACITY: usize = 2;

/// What a session can be told.
#[derive(Debug)]
pub(crate) enum Say {
    /// An event with this code; with it, this message's text is over.
    Event(&'static str, Option<MessageId>),
    /// The next piece of a message's text.
    Text(Piece),
    /// Streamed text is to be logged: the actor's timer.
    Log,
    Attach(Attach, oneshot::Sender<Attached>),
    /// Where the session stands once everything before it is told, and its epoch.
    Look(oneshot::Sender<(u64, i64)>),
    /// Told when everything before it is told.
    Settled(oneshot::Sender<()>),
    /// What became of a commit.
    Journal(Result<(), &'static str>),
    Die,
}

/// A commit on its way to the journal.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) epoch: i64,
    pub(crate) writes: Vec<Write>,
    pub(crate) answer: mpsc::UnboundedSender<Say>,
}

/// Where a session is.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) to: mpsc::UnboundedSender<Say>,
    pub(crate) given_up: CancellationToken,
    /// It went down over a commit that failed, and had told what may not be stored.
    pub(crate) unsettled: CancellationToken,
}

/// What is done once something was told.
enum Then {
    Nothing,
    Attach(Attach, oneshot::Sender<Attached>),
    Look(oneshot::Sender<(u64, i64)>),
    Settled(oneshot::Sender<()>),
}

struct Session {
    telling: Telling<Then>,
    epoch: i64,
    /// The last event whose writes are in the session's state, and in its snapshots.
    applied: u64,
    journal: mpsc::UnboundedSender<Order>,
    own: mpsc::UnboundedSender<Say>,
    unsettled: CancellationToken,
    shelf: Shelf,
}

/// Starts a session that was just taken.
pub(crate) fn start(
    taken: StoredPosition,
    journal: mpsc::UnboundedSender<Order>,
    shelf: Shelf,
) -> Address {
    let (to, mut mailbox) = mpsc::unbounded_channel();
    let given_up = CancellationToken::new();
    let unsettled = CancellationToken::new();
    let address = Address {
        to: to.clone(),
        given_up: given_up.clone(),
        unsettled: unsettled.clone(),
    };
    let (epoch, last_seq) = (taken.epoch, taken.last_seq);
    let mut session = Session {
        telling: Telling::new(taken, CAPACITY, given_up),
        epoch,
        applied: last_seq,
        journal,
        own: to,
        unsettled,
        shelf,
    };
    shuttle::future::spawn(async move {
        // What the one before it left open is closed first.
        if last_seq > 0 {
            session.submit("interrupted", None, Then::Nothing).await;
        }
        while let Some(said) = mailbox.recv().await {
            yield_now().await;
            if !session.hear(said).await {
                return;
            }
        }
    });
    address
}

impl Session {
    /// False where it ends.
    async fn hear(&mut self, said: Say) -> bool {
        match said {
            Say::Die => {
                let open = self.telling.sequencer().beyond_log();
                self.shelf.leave(open.map(|piece| piece.part_id.clone()));
                return false;
            }
            Say::Journal(Err(_)) => {
                if self.telling.has_told_beyond_log() {
                    self.unsettled.cancel();
                }
                return false;
            }
            Say::Event(code, over) => self.submit(code, over, Then::Nothing).await,
            Say::Text(piece) => {
                self.telling.delta(piece, at());
                self.tell().await;
                self.advance().await;
            }
            Say::Log => {
                self.telling.log_chunks();
                self.advance().await;
            }
            Say::Attach(attach, reply) => {
                let now = self.attached(&attach);
                if self.telling.may_begin(&attach, &now) {
                    let _ = reply.send(now);
                } else {
                    self.when_settled(Then::Attach(attach, reply)).await;
                }
            }
            Say::Look(reply) => self.when_settled(Then::Look(reply)).await,
            Say::Settled(reply) => self.when_settled(Then::Settled(reply)).await,
            Say::Journal(Ok(())) => {
                self.telling.committed();
                self.tell().await;
                self.advance().await;
            }
        }
        true
    }

    async fn submit(&mut self, code: &str, over: Option<MessageId>, then: Then) {
        let event = Event::Notice {
            code: code.to_owned(),
            message: over.map_or_else(String::new, |id| PartId::text(id).to_string()),
            phrase: None,
            is_subagent: false,
        };
        let change = Change {
            events: vec![(None, event)],
            writes: vec![Write::Pinned(true)],
            closed: over
                .map(|id| Closed::Message(RUN, id))
                .into_iter()
                .collect(),
        };
        self.telling.submit(change, at(), then);
        self.advance().await;
    }

    async fn when_settled(&mut self, then: Then) {
        self.telling.submit(Change::default(), at(), then);
        self.advance().await;
    }

    async fn advance(&mut self) {
        if let Some(writes) = self.telling.next_commit() {
            let _ = self.journal.send(Order {
                epoch: self.epoch,
                writes,
                answer: self.own.clone(),
            });
        }
        self.tell().await;
    }

    async fn tell(&mut self) {
        if !self.telling.begin() {
            return;
        }
        while let Some(Committed { frames, then, .. }) = self.telling.next_committed() {
            for frame in frames {
                if let At::Event(seq) = frame.place {
                    self.applied = seq;
                }
                yield_now().await;
                self.telling.send(frame);
            }
            yield_now().await;
            match then {
                Then::Nothing => {}
                Then::Attach(attach, reply) => {
                    let _ = reply.send(self.attached(&attach));
                }
                Then::Look(reply) => {
                    let _ = reply.send((self.standing(), self.epoch));
                }
                Then::Settled(reply) => {
                    let _ = reply.send(());
                }
            }
        }
    }

    fn attached(&self, attach: &Attach) -> Attached {
        self.telling.attach(attach, None, || self.outline())
    }

    /// Where a snapshot says that it stands.
    fn standing(&self) -> u64 {
        let seq = self.telling.sequencer().told_seq();
        assert_eq!(seq, self.applied, "a snapshot without what it says it has");
        seq
    }

    fn outline(&self) -> Outline {
        let summary = SessionSummary {
            id: SessionId(Uuid::nil()),
            user_id: UserId(Uuid::nil()),
            title: String::new(),
            profile_id: String::new(),
            model: None,
            pinned: false,
            archived: false,
            ephemeral: false,
            tags: Vec::new(),
            context_token_count: 0,
            state: SessionState::Idle,
            asks: 0,
            shared: None,
            created_at: at(),
            last_active: at(),
        };
        Outline {
            session: SessionSnapshot {
                unknown_calls: Vec::new(),
                summary,
                messages: Vec::new(),
                earlier: 0,
                todo: Vec::new(),
                plan: None,
                compression: None,
                forks: Vec::new(),
                queue: Vec::new(),
                run: None,
                mode: ConsentMode::Edits,
                tainted_at: None,
                approvals: Vec::new(),
                can_continue: false,
                reason: None,
                reason_phrase: None,
                notices: Vec::new(),
                max_context_tokens: 0,
                last_seq: self.standing(),
                epoch: self.epoch,
            },
            message_count: 0,
            branches: Vec::new(),
            branch_id: 0,
            last_run: None,
        }
    }
}

/// The journal: writes what it is given in order, after any time, and may fail.
pub(crate) async fn journal(
    shelf: Shelf,
    mut orders: mpsc::UnboundedReceiver<Order>,
    mut fates: VecDeque<Fate>,
) {
    while let Some(Order {
        epoch,
        writes,
        answer,
    }) = orders.recv().await
    {
        yield_now().await;
        let result = match fates.pop_front().unwrap_or(Fate::Written) {
            Fate::Written => shelf.commit(epoch, writes),
            Fate::Refused => Err("the disk is full"),
            Fate::Lost => {
                let _ = shelf.commit(epoch, writes);
                Err("the answer was lost")
            }
        };
        yield_now().await;
        // The session may have died meanwhile.
        let _ = answer.send(Say::Journal(result));
    }
}

/// What becomes of a commit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    Written,
    Refused,
    /// It is written, and nobody is told.
    Lost,
}

/// A piece of a message's text.
pub(crate) fn piece(message: MessageId, offset: usize, text: &str) -> Piece {
    Piece {
        origin: Origin::foreground(RUN),
        part_id: PartId::text(message),
        kind: PartKind::Text,
        message_id: message,
        offset: offset as u64,
        text: text.to_owned(),
    }
}

fn at() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH
}
