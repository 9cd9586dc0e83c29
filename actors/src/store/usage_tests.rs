//! Tokens of runs, added up by model.

use chrono::TimeDelta;

use super::testing::{TestDb, Writer, at, ended, on_both, run};
use crate::domain::prices::Used;
use crate::domain::session::write::{RunRow, Write};
use crate::protocol::ids::RunId;
use crate::protocol::people::UserRole;
use crate::protocol::session::RunState;

on_both!(
    what_runs_used_is_told_by_model,
    what_was_used_stays_used_when_its_session_goes,
);

fn used(model: &str, runs: u64) -> Used {
    Used {
        backend: "ollama".to_owned(),
        model: model.to_owned(),
        prompt_tokens: 1_000 * runs,
        completion_tokens: 20 * runs,
        cached_tokens: 0,
    }
}

fn sorted(mut used: Vec<Used>) -> Vec<Used> {
    used.sort_by(|a, b| a.model.cmp(&b.model));
    used
}

async fn what_runs_used_is_told_by_model(db: TestDb) {
    let store = db.open().await;
    let (writer, other) = (Writer::new(&store).await, Writer::new(&store).await);
    let user = store.local_user().await.unwrap().id;
    let of = |model: &str| RunRow {
        model: model.to_owned(),
        ..run()
    };
    let below = |parent: &RunRow, model: &str| RunRow {
        run_id: RunId::new(),
        parent_run_id: Some(parent.run_id),
        ..of(model)
    };
    let first = of("a");
    let child = below(&first, "b");
    let grandchild = below(&child, "a");
    let second = RunRow {
        started_at: at(100_000),
        ..of("b")
    };
    let mut writes = Vec::new();
    for row in [&first, &child, &grandchild, &second] {
        writes.push(Write::RunStarted(row.clone()));
        writes.push(ended(row, RunState::Completed));
    }
    writer.write(writes).await.unwrap();
    let elsewhere = of("a");
    let end = ended(&elsewhere, RunState::Completed);
    other
        .write(vec![Write::RunStarted(elsewhere), end])
        .await
        .unwrap();

    let of_run = store.used_by_run(first.run_id).await.unwrap();
    assert_eq!(sorted(of_run), [used("a", 2), used("b", 1)]);
    let of_child = store.used_by_run(child.run_id).await.unwrap();
    assert_eq!(sorted(of_child), [used("a", 1), used("b", 1)]);
    let of_session = store.used_by_session(writer.id).await.unwrap();
    assert_eq!(sorted(of_session), [used("a", 2), used("b", 2)]);
    // The second began just when the time is over.
    let within = store.used_within(user, at(0)..at(100_000)).await.unwrap();
    assert_eq!(sorted(within), [used("a", 3), used("b", 1)]);
    let nobody = store.used_by_run(RunId::new()).await.unwrap();
    assert_eq!(nobody, []);
}

async fn what_was_used_stays_used_when_its_session_goes(db: TestDb) {
    let store = db.open().await;
    let user = store.local_user().await.unwrap().id;
    let ann = store.create_user("Ann", UserRole::User).await.unwrap().id;
    let (day, now) = (at(0), at(24 * 3600));
    let held = async |user| {
        let one_by_one = store.tokens_since(user, day).await.unwrap();
        let all = store.held_by_people(None, day).await.unwrap();
        let all = all.get(&user).map_or(0, |held| held.tokens);
        assert_eq!(one_by_one, all);
        let one = store.held_by_people(Some(user), day).await.unwrap();
        assert_eq!(one.get(&user).map_or(0, |held| held.tokens), all);
        all
    };
    // One of them is there for one answer, and in each a run is older than a day.
    let writers = [Writer::new(&store).await, Writer::ephemeral(&store).await];
    for writer in &writers {
        for began in [-1, 1, 2, 7_200] {
            let row = RunRow {
                run_id: RunId::new(),
                started_at: at(began),
                ..run()
            };
            let end = ended(&row, RunState::Completed);
            let writes = vec![Write::RunStarted(row), end];
            writer.write(writes).await.unwrap();
        }
    }
    assert_eq!(held(user).await, 6 * 1_020);
    for writer in &writers {
        writer.write(vec![Write::Deleted(Some(now))]).await.unwrap();
        store.purge_session(writer.id, day).await.unwrap();
        assert_eq!(held(user).await, 6 * 1_020);
    }
    // What never had a run is added to it, for whoever asked.
    store.count_tokens(user, 5, at(3)).await.unwrap();
    store.count_tokens(ann, 7, at(3)).await.unwrap();
    store.count_tokens(ann, 8, at(7_200)).await.unwrap();
    assert_eq!((held(user).await, held(ann).await), (6 * 1_020 + 5, 15));
    // A day later it is forgotten; some minutes of the first hour are gone by then.
    store.forget_used_tokens(day).await.unwrap();
    assert_eq!(held(ann).await, 15);
    let later = day + TimeDelta::hours(1);
    store.forget_used_tokens(later).await.unwrap();
    assert_eq!(held(ann).await, 8);
    store.forget_used_tokens(now).await.unwrap();
    assert_eq!((held(user).await, held(ann).await), (0, 0));
    // And it goes with its person.
    store.count_tokens(ann, 9, now).await.unwrap();
    store.remove_person(ann, now).await.unwrap();
    assert_eq!(held(ann).await, 0);
}
