//! A PostgreSQL database for one server under test, where a server for tests is named.

use sea_orm::{ConnectionTrait as _, Database};
use url::Url;
use uuid::Uuid;

/// Where the PostgreSQL server for tests is; SQLite where it is not set.
const TEST_SERVER: &str = "NAVI_TEST_DATABASE_URL";

/// An empty database. It goes when this is dropped.
#[derive(Debug)]
pub(crate) struct TestDatabase {
    server: Url,
    name: String,
}

impl TestDatabase {
    /// Makes one. None where the tests are to run on SQLite.
    pub(crate) fn create() -> Option<Self> {
        let server = std::env::var(TEST_SERVER).ok()?;
        let database = Self {
            server: server.parse().expect("the test server's URL"),
            name: format!("navi_test_{}", Uuid::new_v4().simple()),
        };
        database.execute(format!("CREATE DATABASE {}", database.name));
        Some(database)
    }

    /// For `DATABASE_URL`.
    pub(crate) fn url(&self) -> String {
        let mut url = self.server.clone();
        url.set_path(&self.name);
        url.into()
    }

    /// On a thread of its own: tests are asynchronous, and this must be done when it returns.
    fn execute(&self, sql: String) {
        let server = self.server.to_string();
        let work = move || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime")
                .block_on(async {
                    let admin = Database::connect(server).await.expect("a connection");
                    admin.execute_unprepared(&sql).await.expect("done");
                    admin.close().await.expect("closed");
                });
        };
        // A failure has been printed by that thread.
        let done = std::thread::spawn(work).join();
        assert!(done.is_ok() || std::thread::panicking());
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        self.execute(format!("DROP DATABASE {} WITH (FORCE)", self.name));
    }
}
