//! Row: `kill -9` at random points of scripted runs, by fail points and by time.

use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use navi_actors::faults::POINTS;
use serde_json::{Value, json};

use crate::fake_model::FakeModel;
use crate::rounds::{Chance, rounds};
use crate::script::{Client, Seen, house, lines, results, script};
use crate::server::{Server, Socket};

/// How often the scripted run comes to each point, or not much more often: beyond that the
/// run is over before it is killed, which is a case of its own.
fn passes(point: &str) -> u64 {
    match point {
        "session::send" => 2,
        "journal::append" | "journal::write" | "journal::written" | "session::tell" => 26,
        "run::step" | "session::stream" => 10,
        _ => 7,
    }
}

/// A session is used for so many rounds, so that crashes meet what crashes left.
const ROUNDS_OF_A_SESSION: usize = 6;

struct Rig {
    model: FakeModel,
    server: Server,
    client: Client,
    chance: Chance,
    round: usize,
    interrupted: usize,
    /// How long the last run was watched.
    took: Duration,
}

impl Rig {
    async fn new() -> Self {
        let (model, house) = house(&[]);
        let server = house.start();
        let client = Client::new(&server).await;
        Self {
            model,
            server,
            client,
            chance: Chance::new(),
            round: 0,
            interrupted: 0,
            took: Duration::ZERO,
        }
    }

    /// A job, a kill, and all that must hold after it. `kill` ends the service, at once or soon.
    async fn round(mut self, kill: Kill) -> Self {
        self.round += 1;
        if self.round.is_multiple_of(ROUNDS_OF_A_SESSION) {
            self.client = Client::new(&self.server).await;
        }
        let number = self.round;
        let text = script(&self.model, number);
        let mut tab = self.client.tab(&self.server).await;
        if let Kill::At(point, count) = kill {
            self.server.arm(&format!("kill {point}:{count}")).await;
        }
        self.client.say(&mut tab, &number.to_string(), &text).await;
        let begun = Instant::now();
        let seen = match kill {
            Kill::At(..) => self.client.watch(&mut tab).await,
            Kill::After(time) => {
                // Time is the fault here.
                let watched = tokio::time::timeout(time, self.client.watch(&mut tab)).await;
                watched.unwrap_or(Seen::Closed)
            }
        };
        self.took = begun.elapsed();
        assert_ne!(seen, Seen::Interrupted);
        if seen == Seen::Closed && matches!(kill, Kill::At(..)) {
            let ended = self.server.ended().await;
            assert_eq!(ended.signal(), Some(9), "{kill:?}: {}", self.server.said());
        }
        self.server = self.server.crash_and_restart();
        drop(tab);

        let mut tab = self.client.come_back(&self.server).await;
        let found = self.client.assert_sound(&self.server).await;
        let allowed: &[&str] = match seen {
            Seen::End => &["idle"],
            _ => &["idle", "interrupted"],
        };
        let state = found["state"].as_str().unwrap();
        assert!(allowed.contains(&state), "{kill:?}: {found:#?}");
        assert_eq!(found["can_continue"], state == "interrupted", "{found:#?}");
        self.assert_effects(&found);
        self.interrupted += usize::from(state == "interrupted");
        self.go_on(&mut tab, &found).await;
        drop(tab);
        // Whatever comes after it: no second result, no second effect.
        let found = self.client.assert_sound(&self.server).await;
        self.assert_effects(&found);
        assert_eq!(self.model.violations(), Vec::<String>::new());
        self
    }

    /// What a page does that comes back: sends again what nobody acknowledged; else its user
    /// has the run continued, or says something else.
    async fn go_on(&mut self, tab: &mut Socket, found: &Value) {
        let outbox = self.client.outbox();
        if !outbox.is_empty() {
            for (id, text) in outbox {
                self.client.say(tab, &id, &text).await;
            }
        } else if found["can_continue"] == true && self.chance.between(0, 2) == 0 {
            tab.send(&json!({"type": "continue"})).await;
        } else {
            let text = format!("still there, number {}?", self.round);
            let id = format!("after {}", self.round);
            self.client.say(tab, &id, &text).await;
        }
        let seen = self.client.watch(tab).await;
        assert_eq!(seen, Seen::End, "{}", self.server.said());
        assert!(self.client.outbox().is_empty());
    }

    /// Each command left its line as often as its results say, and never twice.
    fn assert_effects(&self, found: &Value) {
        for result in results(found) {
            if result["name"] != "terminal" {
                continue;
            }
            let messages = found["messages"].as_array().unwrap().iter();
            let calls = messages.filter_map(|it| it["tool_calls"].as_array());
            let call = calls
                .flatten()
                .find(|call| call["id"] == result["tool_call_id"]);
            let command = call.unwrap()["arguments"]["command"].as_str().unwrap();
            let line = command.split(' ').nth(1).unwrap();
            let count = lines(&self.server, &self.client.session, line);
            let allowed = match result["outcome"].as_str().unwrap() {
                "success" => 1..=1,
                "outcome_unknown" => 0..=1,
                _ => 0..=0,
            };
            assert!(allowed.contains(&count), "{count} times: {result}");
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Kill {
    At(&'static str, u64),
    After(Duration),
}

#[tokio::test]
async fn kill_at_every_fail_point_of_a_scripted_run() {
    let mut rig = Rig::new().await;
    let all = rounds(POINTS.len(), 120);
    for at in 0..all {
        let point = POINTS[at % POINTS.len()];
        let count = rig.chance.between(1, passes(point) + 1);
        rig = rig.round(Kill::At(point, count)).await;
    }
    // Otherwise nothing was hit, and nothing was tried.
    assert!(rig.interrupted > 0, "of {all}");
}

#[tokio::test]
async fn kill_at_random_moments_of_a_scripted_run() {
    let mut rig = Rig::new().await;
    // What such a run takes here and now: the next ones are killed somewhere within.
    rig = rig.round(Kill::After(Duration::from_secs(60))).await;
    let whole = u64::try_from(rig.took.as_millis()).unwrap();
    for _ in 0..rounds(6, 80) {
        let time = Duration::from_millis(rig.chance.between(0, whole));
        rig = rig.round(Kill::After(time)).await;
    }
}
