//! A run as a program is told of it, in no protocol's terms: how it is joined stands in `joining`,
//! when it ends for the program in `listening`, where the conversation is in `place`, and what of
//! its events is told in `view`.

mod files;
mod joining;
mod listening;
mod past;
mod place;
mod stops;
mod told;
mod turns;
mod view;

use std::collections::VecDeque;
use std::time::Duration;

use navi_actors::domain::demands::Demands;
use navi_actors::protocol::ids::{CallId, RunId, SessionId, UserId};
use navi_actors::protocol::import::ImportedMessage;
use navi_actors::tools::lent::{LentByProgram, Offer};
use sha2::{Digest as _, Sha256};

pub(crate) use self::files::SentFile;
use self::listening::Ear;
pub(crate) use self::listening::used;
pub(crate) use self::past::{Past, past};
pub(crate) use self::place::{Place, Repeat, was_asked_in};
pub(crate) use self::stops::StopWords;
pub(crate) use self::told::{Approvals, Ending, Step, Told, Whole};
pub(crate) use self::turns::{Ask, Begin, Waits};
use self::view::View;
use super::requests::{Listening, Seen};
use crate::access::Principal;
use crate::http::App;

/// Calls of lent tools that come so soon one after the other are handed over together.
const TOGETHER: Duration = Duration::from_millis(100);

/// What a program asks.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) profile_id: Option<String>,
    pub(crate) place: Place,
    /// What was said before. It counts where the session is made for it.
    pub(crate) history: Vec<ImportedMessage>,
    pub(crate) text: String,
    pub(crate) images: Vec<String>,
    pub(crate) files: Vec<SentFile>,
    pub(crate) lent: LentByProgram,
    pub(crate) approvals: Approvals,
    pub(crate) repeat: Repeat,
    /// How long the program may take to come back where its connection was cut.
    pub(crate) patience: Duration,
}

impl Question {
    /// SHA-256 of what is asked, whatever else the request says of how.
    fn said(&self) -> [u8; 32] {
        let mut said = Sha256::new_with_prefix(&self.text);
        let images = self.images.iter().map(String::as_bytes);
        for shown in images.chain(self.files.iter().map(|file| &*file.content)) {
            said.update(shown.len().to_le_bytes());
            said.update(shown);
        }
        said.finalize().into()
    }
}

/// What a program says to calls of its own tools.
#[derive(Debug)]
pub(crate) struct GoOn<'a> {
    pub(crate) results: &'a [(CallId, String)],
    /// Of the answer that comes now.
    pub(crate) demands: &'a Demands,
    pub(crate) approvals: Approvals,
    pub(crate) patience: Duration,
    /// Where the answer ends.
    pub(crate) stops: &'a StopWords,
}

/// A run that is listened to. Dropped before its end, it goes on where its session can be seen,
/// and is stopped soon where nobody could ever read it. It is handed on boxed: it is large.
pub(crate) struct Answer {
    app: App,
    who: Principal,
    pub(crate) session: SessionId,
    pub(crate) run_id: RunId,
    pub(crate) ephemeral: bool,
    patience: Duration,
    /// None while it goes on.
    ending: Option<Ending>,
    seen: Option<Seen>,
    ear: Ear,
    view: View,
    told: VecDeque<Told>,
    stops: StopWords,
    /// Taken back with this, unless the run is yet to begin.
    offer: Option<Offer>,
    listening: Option<Listening>,
    /// Calls that were handed over.
    handed: Vec<CallId>,
}

impl Answer {
    /// The same, where the program may take so long to come back.
    pub(crate) fn patient(mut self: Box<Self>, patience: Duration) -> Box<Self> {
        self.patience = patience;
        self
    }

    /// The same, up to the first of these words.
    pub(crate) fn until(mut self: Box<Self>, stops: StopWords) -> Box<Self> {
        self.stops = stops;
        self
    }

    /// Counts as handed over: who asks the same again wants another answer.
    pub(crate) fn deliver(&self) {
        self.seen.iter().for_each(Seen::deliver);
    }

    /// Who asked.
    pub(crate) fn by(&self) -> UserId {
        self.who.user
    }

    /// Which of the run's answers this is, counted from none; known when something was told.
    pub(crate) fn number(&self) -> u32 {
        self.view.turns().answers()
    }
}
