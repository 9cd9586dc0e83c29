//! The rows "SQLite locked by another process" and "PostgreSQL restarted": what is sent waits
//! or is refused by name, and is stored once.

use std::time::{Duration, Instant};

use reqwest::StatusCode;
use sea_orm::{
    ConnectionTrait as _, Database, DatabaseConnection, DatabaseTransaction, TransactionTrait as _,
};
use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Step};
use crate::rounds::{Chance, rounds};
use crate::server::{House, Server, Told, client};

fn message(client_id: &str) -> Value {
    json!({"type": "message", "content": format!("this is {client_id}"), "client_id": client_id})
}

async fn connect(house: &House) -> DatabaseConnection {
    let file = house.data_dir().join("navi.db");
    let url = house
        .variable("DATABASE_URL")
        .unwrap_or_else(|| format!("sqlite://{}", file.display()));
    let mut options = sea_orm::ConnectOptions::new(url);
    options.max_connections(1);
    Database::connect(options).await.expect("it opens")
}

/// Keeps everybody from writing, and nobody from reading.
const LOCK_POSTGRES: &str = "LOCK TABLE sessions IN SHARE MODE";
const LOCK_SQLITE: &str = "UPDATE sessions SET pinned = pinned";

fn is_sqlite(house: &House) -> bool {
    house.variable("DATABASE_URL").is_none()
}

/// A lock that another process holds, until it is rolled back or dropped.
pub(crate) async fn lock(house: &House) -> DatabaseTransaction {
    let other = connect(house).await;
    let lock = other.begin().await.expect("a transaction");
    let statement = if is_sqlite(house) {
        LOCK_SQLITE
    } else {
        LOCK_POSTGRES
    };
    lock.execute_unprepared(statement).await.expect("the lock");
    lock
}

#[tokio::test]
async fn a_database_that_another_process_locks_is_waited_for() {
    let model = FakeModel::start();
    let house = House::new(&[("OLLAMA_HOST", &model.url())]);
    let is_sqlite = is_sqlite(&house);
    let server = house.start();
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&message("before")).await;
    tab.next_of("stream_end").await;

    let lock = lock(server.house()).await;
    tab.send(&message("while")).await;
    let snapshot = server.get(&format!("/sessions/{session}/context")).await;
    assert!(
        snapshot.to_string().contains("this is before"),
        "it can be read"
    );
    if is_sqlite && rounds(0, 1) == 1 {
        // After some twenty seconds: patience has an end, and says so.
        let refused = tab.next_of("error").await;
        assert_eq!(refused["code"], "store_unavailable");
        assert_eq!(refused["client_id"], "while");
        tab.send(&message("while")).await;
    }
    lock.rollback().await.expect("it lets go");

    let accepted = tab.next_of("message_accepted").await;
    assert_eq!(accepted["client_id"], "while");
    let answered = tab.next_of("stream_end").await;
    assert_eq!(answered["content"], "You said: this is while");
    model.assert_clean();
}

/// Neither the message that waits for the lock nor the closing of the database keeps it.
#[tokio::test]
async fn a_database_that_another_process_locks_holds_up_no_shutdown() {
    let model = FakeModel::start();
    let house = House::new(&[("OLLAMA_HOST", &model.url())]);
    let mut server = house.start();
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&message("before")).await;
    tab.next_of("stream_end").await;
    let lock = lock(&house).await;
    tab.send(&message("while")).await;
    // Long enough for it to come to the lock; nobody is told of that.
    tokio::time::sleep(Duration::from_secs(1)).await;

    let asked = Instant::now();
    server.ask_to_end();
    assert_eq!(server.ended().await.code(), Some(0), "{}", server.said());
    let took = asked.elapsed();
    // Nine seconds, and what a busy machine adds; a connection waits for the lock for twenty.
    assert!(
        took < Duration::from_secs(18),
        "{took:?}: {}",
        server.said()
    );
    lock.rollback().await.expect("it lets go");
    drop(server);

    let server = house.start();
    let mut tab = server.tab(&session, None).await;
    tab.send(&message("while")).await;
    let answered = tab.next_of("stream_end").await;
    assert_eq!(answered["content"], "You said: this is while");
    model.assert_clean();
}

#[tokio::test]
async fn a_link_that_the_database_let_nobody_in_by_is_good_still() {
    let house = House::new(&[]);
    let server = house.start();
    let link = server.link();
    let open = async || client().get(&link).send().await.unwrap().status();
    let other = connect(&house).await;
    let rename = async |from: &str, to: &str| {
        let statement = format!("ALTER TABLE {from} RENAME TO {to}");
        other.execute_unprepared(&statement).await.unwrap();
    };
    rename("web_logins", "elsewhere").await;
    let failed = open().await;
    assert!(failed.is_server_error(), "{failed}");
    rename("elsewhere", "web_logins").await;
    assert_eq!(open().await, StatusCode::SEE_OTHER);
    assert_eq!(open().await, StatusCode::GONE);
}

/// Between Navi and PostgreSQL; cuts everything and refuses, as a server that restarts does.
mod proxy {
    use std::net::SocketAddr;
    use std::sync::Mutex;

    use tokio::io::copy_bidirectional;
    use tokio::net::{TcpListener, TcpStream};
    use tokio_util::sync::{CancellationToken, DropGuard};

    #[derive(Debug)]
    pub(super) struct Proxy {
        pub(super) address: SocketAddr,
        server: String,
        up: Mutex<Option<DropGuard>>,
    }

    impl Proxy {
        pub(super) async fn before(server: String) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let proxy = Self {
                address: listener.local_addr().expect("its address"),
                server,
                up: Mutex::default(),
            };
            proxy.serve(listener);
            proxy
        }

        fn serve(&self, listener: TcpListener) {
            let down = CancellationToken::new();
            *self.up.lock().expect("nobody panics") = Some(down.clone().drop_guard());
            let server = self.server.clone();
            tokio::spawn(async move {
                while let Some(Ok((mut near, _))) =
                    down.run_until_cancelled(listener.accept()).await
                {
                    let (down, server) = (down.clone(), server.clone());
                    tokio::spawn(down.run_until_cancelled_owned(async move {
                        let mut far = TcpStream::connect(server).await.expect("the server");
                        let _ = copy_bidirectional(&mut near, &mut far).await;
                    }));
                }
            });
        }

        pub(super) fn cut(&self) {
            self.up.lock().expect("nobody panics").take();
        }

        pub(super) async fn restore(&self) {
            // The port is free as soon as the task has ended that held it.
            let listener = loop {
                match TcpListener::bind(self.address).await {
                    Ok(listener) => break listener,
                    Err(_) => tokio::task::yield_now().await,
                }
            };
            self.serve(listener);
        }
    }
}

/// Hears of the message out: its run's end, its refusal, or the socket's end.
async fn hear_out(server: &Server, session: &str, client_id: &str, break_it: impl AsyncFnOnce()) {
    let mut tab = server.tab(session, None).await;
    tab.send(&message(client_id)).await;
    break_it().await;
    loop {
        match tab.next().await {
            Told::Frame(frame) if frame["type"] == "error" => {
                assert_eq!(frame["code"], "store_unavailable");
                return;
            }
            Told::Frame(frame) => {
                let kind = frame["type"].as_str();
                if matches!(kind, Some("stream_end" | "run_interrupted")) {
                    return;
                }
            }
            Told::Closed(code) => {
                // The session went down, or could not be read when the tab came.
                assert!(matches!(code, 1011 | 1013), "{code}");
                return;
            }
        }
    }
}

/// On threads of its own: the proxy goes on while a start is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_that_restarts_loses_nothing_acknowledged() {
    let model = FakeModel::start();
    let house = House::new(&[("OLLAMA_HOST", &model.url())]);
    let Some(url) = house.variable("DATABASE_URL") else {
        // SQLite has no server.
        return;
    };
    let mut chance = Chance::new();
    let admin = connect(&house).await;
    let mut url: url::Url = url.parse().expect("a URL");
    let server = format!(
        "{}:{}",
        url.host_str().expect("a host"),
        url.port().unwrap_or(5432)
    );
    let proxy = proxy::Proxy::before(server).await;
    url.set_host(Some("127.0.0.1")).expect("it has a host");
    url.set_port(Some(proxy.address.port()))
        .expect("it has a port");
    let mut server = house
        .clone()
        .with(&[("DATABASE_URL", url.as_str())])
        .start();
    let session = server.new_session().await;
    let mut said = Vec::new();
    for round in 0..rounds(8, 30) {
        let client_id = format!("c{round}");
        model.script([
            Step::text("one "),
            Step::hold(&client_id),
            Step::text("two"),
        ]);
        let moment = chance.between(0, 3);
        hear_out(&server, &session, &client_id, async || {
            if moment == 1 {
                // In mid-run; otherwise while the message is being stored.
                model
                    .wait_for(|chats| {
                        chats
                            .iter()
                            .any(|chat| chat.last_user_text().contains(&client_id))
                    })
                    .await;
            }
            if moment == 2 {
                admin
                    .execute_unprepared(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                     WHERE datname = current_database() AND pid <> pg_backend_pid()",
                    )
                    .await
                    .expect("they end");
                model.release(&client_id);
            } else {
                proxy.cut();
                model.release(&client_id);
                proxy.restore().await;
            }
        })
        .await;
        let mut tab = server.tab(&session, None).await;
        tab.send(&message(&client_id)).await;
        let accepted = tab.next_of("message_accepted").await;
        assert_eq!(accepted["client_id"], client_id);
        if !accepted["seq"].is_null() {
            tab.next_of("stream_end").await;
        }
        said.push(client_id);
        if round % 4 == 3 {
            server = server.crash_and_restart();
        }
    }
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    let messages = snapshot["messages"].as_array().expect("messages");
    let kept: Vec<_> = messages
        .iter()
        .filter_map(|message| message["client_id"].as_str())
        .collect();
    assert_eq!(kept, said);
    assert_eq!(model.violations(), Vec::<String>::new());
    admin.close().await.expect("closed");
}
