//! Ten thousand sessions in memory, two thousand of them with a tab: whether all are held, what
//! they take, and how long a message among them takes to its first token.

use std::time::Duration;

use anyhow::{Result, bail};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use super::Bench;
use super::first_token::added_by;
use super::memory::{KB, MB};
use crate::conversation::Conversation;
use crate::house::{Filling, House};
use crate::navi::Navi;
use crate::process::open_files;
use crate::report::{Goal, Row, Samples};
use crate::statistics::median;

const FILLING: Filling = Filling {
    sessions: 10_000,
    messages: 4,
};
const TABS: usize = 2_000;
/// Files that are open beside the tabs' sockets.
const OTHER_FILES: usize = 500;
const AT_ONCE: usize = 8;
/// How long what the last of them leaves to be done may take.
const SETTLED: Duration = Duration::from_secs(3);

pub(super) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let (house, sessions) = House::filled(FILLING).await?;
    let navi = house
        .with(&[("NAVI_METRICS", "on")])
        .start(&bench.ground)
        .await?;
    navi.ready().await?;
    let before = navi.process.memory()?;
    let most = open_files()?.saturating_sub(OTHER_FILES);
    let mut tabs = open(&navi, &sessions, TABS.min(most)).await?;
    tokio::time::sleep(SETTLED).await;
    let live = navi.live_sessions().await?;
    if live < sessions.len() {
        bail!("{live} sessions are held of {}", sessions.len());
    }
    let memory = navi.process.memory()?;
    let added = turns(bench, &mut tabs).await?;
    let cut = if tabs.len() < TABS {
        " (as many as files may be open)"
    } else {
        ""
    };
    let who = format!("{live} live idle sessions, {} tabs{cut}", tabs.len());
    let share = (memory.anonymous - before.anonymous) as f64 / live as f64;
    let row = |key: &str, what: &str, unit, value| {
        let samples = Samples::of_navi(vec![value]);
        Row::lower(key, &format!("{who}: {what}"), unit, samples)
    };
    Ok(vec![
        row("live", "resident", "MB", memory.resident as f64 / MB).with_goal(Goal::Value(500.0)),
        row("live-session", "each of them", "KB", share / KB),
        row("live-first-token", "added to a first token", "ms", added),
    ])
}

/// Has all of the sessions read into memory, and opens tabs on the first so many.
async fn open(navi: &Navi, sessions: &[String], tabs: usize) -> Result<Vec<Conversation>> {
    let opened = sessions
        .iter()
        .enumerate()
        .map(|(number, session)| async move {
            let seq = navi.last_seq(session).await?;
            if number < tabs {
                return anyhow::Ok(Some(navi.tab_after(session, seq).await?));
            }
            Ok(None)
        });
    let opened = stream::iter(opened).buffer_unordered(AT_ONCE);
    opened
        .try_filter_map(|tab| async { Ok(tab) })
        .try_collect()
        .await
}

/// A turn in each tab, one after the other: the median of what is added to the first token, in
/// milliseconds.
async fn turns(bench: &Bench, tabs: &mut [Conversation]) -> Result<f64> {
    let mut added = Vec::with_capacity(tabs.len());
    for tab in tabs {
        added.push(added_by(tab, &bench.ground.model.ledger).await?);
    }
    Ok(median(&added))
}
