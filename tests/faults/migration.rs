//! The row "migration killed": the old schema or the new, never something between.

use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use navi_migrations::Migrator;
use sea_orm::{ConnectionTrait as _, Database, DbBackend};
use sea_orm_migration::MigratorTrait as _;
use serde_json::json;

use crate::fake_model::FakeModel;
use crate::rounds::{Chance, rounds};
use crate::server::House;
use crate::shim::{DiskFault, Shim};

const UP: &[&str] = &["migrate", "up"];
const DOWN: &[&str] = &["migrate", "down", "--yes"];
/// More writes than any migration makes.
const ALL: u64 = 1 << 40;

/// A database with the first `steps` of the schema.
async fn with_steps(steps: usize, model: &FakeModel) -> (Shim, House) {
    let (shim, house) = Shim::load(House::new(&[("OLLAMA_HOST", &model.url())]));
    let steps = u32::try_from(steps).expect("few");
    std::fs::create_dir_all(house.data_dir()).expect("a directory");
    let file = house.data_dir().join("navi.db");
    let elsewhere = house.variable("DATABASE_URL");
    if steps > 0 || elsewhere.is_some() {
        let url = elsewhere.unwrap_or_else(|| format!("sqlite://{}?mode=rwc", file.display()));
        let database = Database::connect(url).await.expect("it opens");
        if database.get_database_backend() == DbBackend::Postgres {
            // The check's server makes databases that have the schema.
            let empty = "DROP SCHEMA public CASCADE; CREATE SCHEMA public";
            database.execute_unprepared(empty).await.expect("done");
        }
        if steps > 0 {
            Migrator::up(&database, Some(steps)).await.expect("done");
        }
        database.close().await.expect("closed");
    }
    (shim, house)
}

/// How many steps the database has. They must be the first ones.
fn steps(house: &House) -> usize {
    let output = house.run(&["migrate", "status"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let applied: Vec<bool> = said
        .lines()
        .filter(|line| line.contains(" m0"))
        .map(|line| line.trim_start().starts_with("applied"))
        .collect();
    assert_eq!(applied.len(), Migrator::migrations().len(), "{said}");
    assert!(
        applied.is_sorted_by(|before, after| before >= after),
        "{said}"
    );
    applied.iter().filter(|applied| **applied).count()
}

/// How long a command takes to its end: in writes below the data directory, or in time where
/// the database is elsewhere.
struct Course {
    writes: u64,
    time: Duration,
}

fn course(shim: &Shim, house: &House, command: &[&str]) -> Course {
    shim.fail(DiskFault::Kill, ALL);
    let started = Instant::now();
    let output = house.run(command);
    let time = started.elapsed();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let writes = shim.passed(ALL);
    shim.mend();
    Course { writes, time }
}

/// Runs the command and kills it somewhere on its way.
fn kill_on_the_way(
    (shim, house): (&Shim, &House),
    command: &[&str],
    course: &Course,
    chance: &mut Chance,
) -> ExitStatus {
    if house.variable("DATABASE_URL").is_none() {
        shim.fail(DiskFault::Kill, chance.between(0, course.writes));
        let killed = house.run(command).status;
        shim.mend();
        return killed;
    }
    let mut child = house
        .command(command)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("navi starts");
    // Its statements are not seen from here: the moment is one in time.
    let moment = chance.between(0, u64::try_from(course.time.as_micros()).expect("short"));
    std::thread::sleep(Duration::from_micros(moment));
    child.kill().expect("it was not waited for");
    child.wait().expect("it ends")
}

/// The database serves, whatever was begun on it.
async fn assert_serves(house: &House, model: &FakeModel) {
    let server = house.start();
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "hello"}))
        .await;
    tab.next_of("stream_end").await;
    assert_eq!(model.violations(), Vec::<String>::new());
    assert_eq!(steps(house), Migrator::migrations().len());
}

async fn killed(command: &[&str], from: usize, to: usize, count: usize) {
    let mut chance = Chance::new();
    let model = FakeModel::start();
    let (shim, house) = with_steps(from, &model).await;
    let course = course(&shim, &house, command);
    assert_eq!(steps(&house), to);
    for _ in 0..count {
        let (shim, house) = with_steps(from, &model).await;
        let status = kill_on_the_way((&shim, &house), command, &course, &mut chance);
        assert!(status.success() || status.signal() == Some(9), "{status}");
        let found = steps(&house);
        assert!(
            found == from || found == to,
            "{found} steps, neither {from} nor {to}"
        );
        assert_serves(&house, &model).await;
    }
}

#[tokio::test]
async fn a_first_start_that_is_killed_leaves_nothing_or_the_whole_schema() {
    let all = Migrator::migrations().len();
    killed(UP, 0, all, rounds(4, 30)).await;
}

#[tokio::test]
async fn an_upgrade_that_is_killed_leaves_the_old_schema_or_the_new() {
    let all = Migrator::migrations().len();
    // From the newest schema back; the short check leaves most of them out.
    for old in (1..all).rev().step_by(rounds(6, 1)) {
        killed(UP, old, all, rounds(1, 6)).await;
    }
}

#[tokio::test]
async fn a_downgrade_that_is_killed_leaves_the_whole_schema_or_nothing() {
    let all = Migrator::migrations().len();
    killed(DOWN, all, 0, rounds(3, 20)).await;
}

#[tokio::test]
async fn no_command_changes_the_schema_under_an_older_service() {
    let all = Migrator::migrations().len();
    let model = FakeModel::start();
    let (_shim, house) = with_steps(all - 1, &model).await;
    // As a service of an older program holds the directory.
    let lock = File::create(house.data_dir().join("navi.lock")).expect("a lock");
    lock.lock().expect("it is free");
    let note = json!({"pid": 1, "address": "127.0.0.1:1", "version": "0.0.1"});
    std::fs::write(house.data_dir().join("server.json"), note.to_string()).expect("a note");
    let commands = [["token", "list"], ["runs", "list"], ["migrate", "up"]];
    for command in commands {
        let output = house.run(&command);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{command:?}: {said}");
        assert!(said.contains("navi upgrade"), "{command:?}: {said}");
        assert_eq!(steps(&house), all - 1, "{command:?}");
    }
    drop(lock);
    for command in commands {
        let output = house.run(&command);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{command:?}: {said}");
    }
    assert_eq!(steps(&house), all);
}
