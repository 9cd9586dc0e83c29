//! Many conversations at once.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use tokio::task::JoinSet;

use crate::conversation::{Conversation, Heard, Turn};
use crate::ground::Side;
use crate::model::{Call, Ledger};
use crate::script::{Rate, Script};

/// How many are opened at once.
const OPENED_AT_ONCE: usize = 8;

/// Conversations that have had their first turn.
#[derive(Debug)]
pub(crate) struct Fleet {
    members: Vec<Conversation>,
    ledger: Arc<Ledger>,
    /// To all of them.
    pub(crate) heard: Heard,
}

/// A turn as its client and as the model server saw it.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) turn: Turn,
    pub(crate) call: Call,
}

impl Fleet {
    pub(crate) fn new(ledger: &Arc<Ledger>) -> Self {
        Self {
            members: Vec::new(),
            ledger: Arc::clone(ledger),
            heard: Heard::default(),
        }
    }

    /// Opens so many that there are `count`, and gives each new one its first turn and its title.
    ///
    /// # Errors
    /// The server refuses one, or does not answer it.
    pub(crate) async fn grow(&mut self, side: Side<'_>, count: usize) -> Result<()> {
        let more = count.saturating_sub(self.members.len());
        let opened = stream::iter(0..more).map(|_| async move {
            let mut conversation = side.open().await?;
            let script = Script::new(1, Rate::Joined);
            conversation.turn(script).await?;
            anyhow::Ok((conversation, script.id))
        });
        let mut opened = opened.buffer_unordered(OPENED_AT_ONCE);
        while let Some((conversation, script)) = opened.try_next().await? {
            self.members.push(conversation.counted_in(&self.heard));
            self.ledger.take_one(script)?;
        }
        self.ledger.quiet().await;
        Ok(())
    }

    /// Has a turn in each of the first `count`, the beginnings spread over a time.
    ///
    /// # Errors
    /// One of them fails; the fleet is of no use any more then.
    pub(crate) async fn turns(
        &mut self,
        count: usize,
        (tokens, rate): (u32, Rate),
        spread: Duration,
    ) -> Result<Vec<Done>> {
        let mut going = JoinSet::new();
        let crew = count.min(self.members.len());
        for (number, mut conversation) in (0_u32..).zip(self.members.drain(..crew)) {
            let wait = spread.mul_f64(f64::from(number) / crew as f64);
            let script = Script::new(tokens, rate);
            going.spawn(async move {
                tokio::time::sleep(wait).await;
                let turn = conversation.turn(script).await;
                (conversation, script, turn)
            });
        }
        let mut done = Vec::with_capacity(crew);
        while let Some(ended) = going.join_next().await {
            let (conversation, script, turn) = ended.context("a client panicked")?;
            done.push(Done {
                turn: turn?,
                call: self.ledger.take_one(script.id)?,
            });
            self.members.push(conversation);
        }
        Ok(done)
    }
}
