//! Programs of user tools against what holds them.

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use navi_actors::programs::{Bounds, Cut, Ended};
use navi_actors::protocol::tool::Effect;
use navi_actors::tools::sandbox::Order;
use navi_actors::tools::user::Runner;

use super::ward::Ward;
use crate::processes::{gone, marker};

/// Runs a shell script as a tool in a session where no command ran before.
async fn run(ward: &Ward, script: &str, effect: Effect) -> Ended {
    let folder = ward.foreign().join("tool");
    std::fs::create_dir(&folder).unwrap();
    let program = folder.join("run.sh");
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let runner = Runner::new(Some(ward.sandbox()));
    let order = Order {
        program: program.to_str().unwrap().to_owned(),
        input: Some("{}".to_owned()),
        read: vec![folder],
        ..runner.order(effect, ward.workspace())
    };
    let bounds = Bounds {
        time: Duration::from_secs(60),
        output_bytes: 64 * 1024,
    };
    runner.run(order, bounds).await.unwrap()
}

#[tokio::test]
async fn a_tool_runs_in_a_fresh_session() {
    let ward = Ward::inside();
    let script = "cat && touch here \"$TMPDIR/there\" && ! ls /root";
    let ended = run(&ward, script, Effect::Read).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stdout, b"{}");
    assert!(ward.workspace().join("here").exists());
}

#[tokio::test]
async fn a_flood_is_told_as_one_whatever_holds_it() {
    for effect in [Effect::Read, Effect::Host] {
        let began = Instant::now();
        let ended = run(&Ward::inside(), "exec yes flood", effect).await;
        assert_eq!(ended.cut, Some(Cut::TooMuch), "{effect:?}: {ended:?}");
        assert_eq!(ended.stdout.len(), 64 * 1024);
        assert!(began.elapsed() < Duration::from_secs(30));
    }
}

#[tokio::test]
async fn what_it_leaves_behind_ends_whatever_holds_it() {
    for effect in [Effect::Read, Effect::Egress, Effect::Host] {
        let mark = marker();
        let script = format!("setsid sleep {mark} >/dev/null 2>&1 & sleep 0.3; echo done");
        let ended = run(&Ward::inside(), &script, effect).await;
        assert_eq!(ended.stdout, b"done\n", "{ended:?}");
        gone(&mark).await;
    }
}
