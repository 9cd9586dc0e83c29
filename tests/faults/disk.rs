//! The row "disk full, read-only, file removed": what was acknowledged stays, what cannot be
//! stored is refused by name, and all goes on when the disk does, without a restart.

use std::fs;
use std::path::PathBuf;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Step};
use crate::rounds::{Chance, rounds};
use crate::script::workspace;
use crate::server::{House, Server, Socket, Told};
use crate::shim::{DiskFault, Shim};

/// None on PostgreSQL, whose disk is its own.
fn house(model: &FakeModel) -> Option<(Shim, House)> {
    let house = House::new(&[("OLLAMA_HOST", &model.url())]);
    let is_sqlite = house.variable("DATABASE_URL").is_none();
    is_sqlite.then(|| Shim::load(house))
}

fn message(client_id: &str) -> Value {
    json!({"type": "message", "content": format!("this is {client_id}"), "client_id": client_id})
}

/// Reads until the message is refused, or its run ends or is cut off.
async fn hear_out(tab: &mut Socket) {
    loop {
        match tab.next().await {
            Told::Frame(frame) if frame["type"] == "stream_end" => return,
            Told::Frame(frame) if frame["type"] == "error" => {
                assert_eq!(frame["code"], "store_unavailable");
                return;
            }
            Told::Frame(_) => {}
            // The session could not be read again for a while (1011), or not yet: a tab is open
            // before it has joined (1013).
            Told::Closed(code) => {
                assert!([1011, 1013].contains(&code), "closed with {code}");
                return;
            }
        }
    }
}

/// Sends until it is acknowledged, and waits for what comes of it.
async fn send_again(server: &Server, session: &str, client_id: &str) {
    let mut tab = server.tab(session, None).await;
    tab.send(&message(client_id)).await;
    let accepted = tab.next_of("message_accepted").await;
    assert_eq!(accepted["client_id"], client_id);
    if !accepted["seq"].is_null() {
        tab.next_of("stream_end").await;
    }
}

async fn client_ids(server: &Server, session: &str) -> Vec<String> {
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    let messages = snapshot["messages"].as_array().expect("messages");
    messages
        .iter()
        .filter_map(|message| message["client_id"].as_str())
        .map(str::to_owned)
        .collect()
}

async fn nothing_is_lost(fault: DiskFault) {
    let model = FakeModel::start();
    let Some((shim, house)) = house(&model) else {
        return;
    };
    let mut chance = Chance::new();
    let mut server = house.start();
    let session = server.new_session().await;
    let mut acknowledged = Vec::new();
    for round in 0..rounds(8, 40) {
        let client_id = format!("c{round}");
        let mut tab = server.tab(&session, None).await;
        shim.fail(fault, chance.between(0, 40));
        tab.send(&message(&client_id)).await;
        hear_out(&mut tab).await;
        // A write outside of any session must not take the others' writes with it.
        let made = server
            .call(Method::POST, "/sessions", Some(json!({})))
            .await;
        if made.0 != StatusCode::CREATED {
            assert_eq!(made.1["code"], "store_unavailable");
        }
        shim.mend();
        send_again(&server, &session, &client_id).await;
        acknowledged.push(client_id);
        if round % 4 == 3 {
            server = server.crash_and_restart();
            assert_eq!(client_ids(&server, &session).await, acknowledged);
        }
    }
    assert_eq!(model.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_on_a_full_disk() {
    nothing_is_lost(DiskFault::Full).await;
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_on_a_disk_that_turns_read_only() {
    nothing_is_lost(DiskFault::ReadOnly).await;
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_on_a_disk_that_fails() {
    nothing_is_lost(DiskFault::Broken).await;
}

#[tokio::test]
async fn a_run_that_a_full_disk_cuts_off_says_so_and_goes_on_when_there_is_room() {
    let model = FakeModel::start();
    let Some((shim, house)) = house(&model) else {
        return;
    };
    let server = house.start();
    let session = server.new_session().await;
    model.script([
        Step::text("one "),
        Step::hold("full"),
        Step::text("two "),
        Step::Silence,
    ]);
    let mut tab = server.tab(&session, None).await;
    tab.send(&message("first")).await;
    tab.next_of("stream_delta").await;
    tab.send(&message("second")).await;
    let queued = tab.next_of("message_accepted").await;
    assert_eq!(queued["queued"], true);
    shim.fail(DiskFault::Full, 0);
    model.release("full");
    let told = tab.next_of("error").await;
    assert_eq!(told["code"], "store_unavailable");
    assert_eq!(told["recoverable"], false);
    assert!(told["seq"].is_null(), "it is in no log: {told}");

    // What is there can be read, and what cannot be stored is refused by name.
    let sessions = server.get("/sessions").await;
    assert_eq!(sessions[0]["id"], session);
    let refused = server
        .call(Method::POST, "/sessions", Some(json!({})))
        .await;
    assert_eq!(refused.0, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.1["code"], "store_unavailable");
    assert_eq!(server.get("/health").await["status"], "ok");

    // Nobody asks for it, and the message that waits is answered after all.
    drop(tab);
    let mut page = server.socket("/ws/sessions").await;
    page.next_of("sessions").await;
    shim.mend();
    while page.next_of("session_changed").await["session"]["state"] != "idle" {}
    let mut tab = server.tab(&session, Some(0)).await;
    let interrupted = tab.next_of("run_interrupted").await;
    assert_eq!(interrupted["run_id"], told["run_id"]);
    let answered = tab.next_of("stream_end").await;
    assert_eq!(answered["content"], "You said: this is second");
    assert_eq!(client_ids(&server, &session).await, ["first", "second"]);
    assert_eq!(model.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn a_start_on_a_full_or_read_only_disk_says_so() {
    let model = FakeModel::start();
    let Some((shim, house)) = house(&model) else {
        return;
    };
    for fault in [DiskFault::Full, DiskFault::ReadOnly] {
        shim.fail(fault, 0);
        let refused = house.run(&[]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{said}");
        assert!(
            said.contains("data directory") || said.contains("disk is full"),
            "{said}"
        );
        shim.mend();
    }
    let server = house.start();
    let session = server.new_session().await;
    send_again(&server, &session, "c").await;
}

#[tokio::test]
async fn a_database_whose_file_is_gone_takes_nothing_until_it_is_back() {
    let model = FakeModel::start();
    let house = House::new(&[("OLLAMA_HOST", &model.url())]);
    if house.variable("DATABASE_URL").is_some() {
        return;
    }
    let server = house.start();
    let session = server.new_session().await;
    send_again(&server, &session, "before").await;
    let place = |name: &str| house.data_dir().join(name);
    for end in ["", "-wal", "-shm"] {
        fs::rename(
            place(&format!("navi.db{end}")),
            place(&format!("aside.db{end}")),
        )
        .unwrap();
    }
    let path = format!("/ws/sessions/{session}");
    let mut tab = server.socket(&path).await;
    tab.send(&message("gone")).await;
    let refused = tab.next_of("error").await;
    assert_eq!(refused["code"], "store_unavailable");
    assert_eq!(refused["client_id"], "gone");
    // The session went down over it, and cannot be taken up again either, by no copy of it.
    for end in ["", "-wal"] {
        fs::copy(
            place(&format!("aside.db{end}")),
            place(&format!("navi.db{end}")),
        )
        .unwrap();
    }
    for _ in 0..2 {
        assert_eq!(server.socket(&path).await.closed().await, 1013);
        let refused = server
            .call(Method::POST, "/sessions", Some(json!({})))
            .await;
        assert_eq!(refused.0, StatusCode::SERVICE_UNAVAILABLE, "{}", refused.1);
    }
    assert!(
        server.said().contains("was removed or replaced"),
        "{}",
        server.said()
    );
    for end in ["", "-wal", "-shm"] {
        fs::rename(
            place(&format!("aside.db{end}")),
            place(&format!("navi.db{end}")),
        )
        .unwrap();
    }
    send_again(&server, &session, "gone").await;
    let server = server.crash_and_restart();
    assert_eq!(client_ids(&server, &session).await, ["before", "gone"]);
}

/// A service, where its deleted session is asked back, and where the files of that were.
async fn deleted() -> (Server, String, PathBuf) {
    let server = House::new(&[]).start();
    let session = server.new_session().await;
    let path = format!("/sessions/{session}");
    let workspace = workspace(&server, &session);
    fs::create_dir_all(&workspace).unwrap();
    fs::write(workspace.join("note.txt"), "kept").unwrap();
    let (status, _) = server.call(Method::DELETE, &path, None).await;
    assert!(status.is_success(), "{status}");
    assert!(!workspace.exists());
    (server, format!("{path}/restore"), workspace)
}

/// It stays deleted until its files are back.
#[tokio::test]
async fn a_session_whose_files_cannot_be_moved_back_is_had_back_later() {
    let (server, restore, workspace) = deleted().await;
    fs::create_dir(&workspace).unwrap();
    fs::write(workspace.join("in_the_way"), "").unwrap();
    let (status, _) = server.call(Method::POST, &restore, Some(json!({}))).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    fs::remove_dir_all(&workspace).unwrap();
    server.post(&restore, json!({})).await;
    let note = fs::read_to_string(workspace.join("note.txt")).unwrap();
    assert_eq!(note, "kept");
}

/// As an upload leaves it that ends while its session is deleted.
#[tokio::test]
async fn a_session_is_had_back_where_the_copy_of_an_upload_came_after_it() {
    let (server, restore, workspace) = deleted().await;
    fs::create_dir_all(workspace.join("uploads")).unwrap();
    fs::write(workspace.join("uploads/x"), "a copy").unwrap();
    server.post(&restore, json!({})).await;
    let note = fs::read_to_string(workspace.join("note.txt")).unwrap();
    assert_eq!(note, "kept");
}
