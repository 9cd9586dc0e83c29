//! Everything together: a session, its journal, a run that says things, tabs.

use std::sync::{Arc, Mutex};

use navi_actors::protocol::ids::MessageId;
use shuttle::future::{JoinHandle, block_on, spawn, yield_now};
use shuttle::rand::{Rng, thread_rng};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::session::{self, Address, Fate, Order, Say, piece};
use crate::shelf::Shelf;
use crate::tab;

/// What the root knows. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct House {
    pub(crate) shelf: Shelf,
    directory: Arc<Mutex<Directory>>,
    journal: mpsc::UnboundedSender<Order>,
}

#[derive(Debug, Default)]
struct Directory {
    live: Option<Address>,
    /// Someone reads the session just now.
    reading: bool,
    /// The last one was given up, or told what may not be stored.
    seize: bool,
}

impl House {
    /// The session that lives; it is started where none does.
    pub(crate) async fn open(&self) -> Address {
        loop {
            {
                let mut directory = self.directory.lock().unwrap();
                match &directory.live {
                    Some(live) if !live.to.is_closed() => return live.clone(),
                    last if !directory.reading => {
                        let last = last.as_ref();
                        let seize = last.is_some_and(|last| last.unsettled.is_cancelled());
                        directory.seize |= seize;
                        directory.reading = true;
                        break;
                    }
                    _ => {}
                }
            }
            yield_now().await;
        }
        yield_now().await;
        let seize = std::mem::take(&mut self.directory.lock().unwrap().seize);
        let taken = self.shelf.take(seize);
        yield_now().await;
        let address = session::start(taken, self.journal.clone(), self.shelf.clone());
        let mut directory = self.directory.lock().unwrap();
        directory.reading = false;
        directory.live = Some(address.clone());
        address
    }

    /// What the root does with a session that hangs.
    fn give_up(&self) {
        let mut directory = self.directory.lock().unwrap();
        if let Some(live) = directory.live.take() {
            directory.seize = true;
            live.given_up.cancel();
        }
    }
}

/// A session's life, from its first event to the end.
pub(crate) fn live() {
    let (journal, orders) = mpsc::unbounded_channel();
    let house = House {
        shelf: Shelf::default(),
        directory: Arc::default(),
        journal,
    };
    let mut rng = thread_rng();
    let fates = (0..12).map(|_| match rng.gen_range(0..24) {
        0 => Fate::Refused,
        1 => Fate::Lost,
        _ => Fate::Written,
    });
    spawn(session::journal(
        house.shelf.clone(),
        orders,
        fates.collect(),
    ));
    let tabs: Vec<JoinHandle<()>> = (0..2)
        .map(|_| {
            let drops = (0..rng.gen_range(0..3)).map(|_| rng.gen_range(1..6));
            spawn(tab::watch(house.clone(), drops.collect()))
        })
        .collect();
    block_on(async move {
        run(&house).await;
        for tab in tabs {
            tab.await.unwrap();
        }
    });
}

/// Says things, until the last of them is committed.
async fn run(house: &House) {
    let mut rng = thread_rng();
    let mut messages = 0_u128..;
    let mut session = house.open().await;
    let mut open: Option<(MessageId, usize)> = None;
    for _ in 0..rng.gen_range(6..14) {
        let said = match rng.gen_range(0..16) {
            0..8 => {
                let (message, offset) = *open.get_or_insert_with(|| {
                    let next = messages.next().unwrap_or(u128::MAX);
                    (MessageId(Uuid::from_u128(next)), 0)
                });
                let text = format!("{offset:x}-");
                open = Some((message, offset + text.len()));
                Say::Text(piece(message, offset, &text))
            }
            8..10 => Say::Event("said", None),
            10..12 => match open.take() {
                Some((message, _)) => Say::Event("over", Some(message)),
                None => Say::Event("said", None),
            },
            12..14 => Say::Log,
            14 => Say::Die,
            _ => {
                house.give_up();
                Say::Log
            }
        };
        if session.to.send(said).is_err() || session.given_up.is_cancelled() {
            // Its run went with it: what it had open stays as it is.
            session = house.open().await;
            open = None;
        }
        yield_now().await;
    }
    loop {
        let session = house.open().await;
        let _ = session.to.send(Say::Event("the end", None));
        if house.ask(Say::Settled).await.is_some() {
            return;
        }
        yield_now().await;
    }
}
