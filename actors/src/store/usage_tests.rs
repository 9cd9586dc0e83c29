//! Tokens of runs, added up by model.

use super::testing::{TestDb, Writer, at, ended, on_both, run};
use crate::domain::prices::Used;
use crate::domain::session::write::{RunRow, Write};
use crate::protocol::ids::RunId;
use crate::protocol::session::RunState;

on_both!(what_runs_used_is_told_by_model);

fn used(model: &str, runs: u64) -> Used {
    Used {
        backend: "ollama".to_owned(),
        model: model.to_owned(),
        prompt_tokens: 1_000 * runs,
        completion_tokens: 20 * runs,
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
