//! The doors: a request and the opening of a tab, by a script with its token and by a browser that
//! has followed a one-time link. The pass-through asks nobody who they are.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::{Bench, ms};
use crate::conversation::{Conversation, Dialect};
use crate::ground::{PassThrough, Side};
use crate::http::{self, Call, Identity};
use crate::report::{Row, Samples};
use crate::statistics::median;

const REQUESTS: usize = 20;

pub(super) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let pair = bench.ground.pair().await?;
    let navi = &pair.navi;
    let session = navi.new_session().await?;
    let path = format!("/sessions/{session}");
    let callers = [
        ("token", "a script's token", navi.script().clone()),
        (
            "login",
            "a browser's login",
            navi.browser(&bench.ground.program).await?,
        ),
    ];
    let mut rows = Vec::new();
    for (name, by, who) in &callers {
        let (mut requests, mut tabs) = (Samples::default(), Samples::default());
        for round in 0..bench.rounds(5) {
            for side in pair.in_turn(round) {
                let (mut asked, mut opened) = (Vec::new(), Vec::new());
                for _ in 0..REQUESTS {
                    match side {
                        Side::Limit(limit) => {
                            asked.push(ms(ask_limit(limit).await?));
                            opened.push(ms(open_limit(limit).await?));
                        }
                        Side::Navi(navi) => {
                            asked.push(ms(navi.timed(who, &path).await?.1));
                            let begun = Instant::now();
                            navi.tab_of(who, &session).await?;
                            opened.push(ms(begun.elapsed()));
                        }
                    }
                }
                requests.add(side, median(&asked));
                tabs.add(side, median(&opened));
            }
        }
        let request = format!("a session is read, by {by}");
        let tab = format!("a tab is opened, by {by}");
        rows.push(Row::lower(
            &format!("request-{name}"),
            &request,
            "ms",
            requests,
        ));
        rows.push(Row::lower(&format!("tab-{name}"), &tab, "ms", tabs));
    }
    Ok(rows)
}

async fn ask_limit(limit: &PassThrough) -> Result<Duration> {
    let begun = Instant::now();
    http::call(limit.address, Call::get("/health", &Identity::Nobody)).await?;
    Ok(begun.elapsed())
}

async fn open_limit(limit: &PassThrough) -> Result<Duration> {
    let begun = Instant::now();
    Conversation::open(limit.address, "/", &Identity::Nobody, Dialect::PassThrough).await?;
    Ok(begun.elapsed())
}
