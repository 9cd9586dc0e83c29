//! What opening a database does, and says where it cannot.

use std::path::Path;
use std::task::Poll;

use navi_migrations::{MigrateError, Migrator};
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, Statement};
use sea_orm_migration::prelude::*;

use super::testing::{TestDb, Writer, on_both, on_sqlite};
use super::{Location, OpenError, Store, StoreConfig};

on_both!(
    opening_twice_keeps_what_is_there,
    opening_at_once_creates_one_database,
    a_newer_schema_is_refused,
    the_schema_goes_up_down_and_up,
    a_migration_that_fails_leaves_the_schema_as_it_was,
    a_transaction_that_is_given_up_while_it_begins_is_nobody_elses,
);

async fn opening_twice_keeps_what_is_there(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let user = store.local_user().await.unwrap();
    store.ping().await.unwrap();
    store.close().await.unwrap();
    assert!(store.ping().await.is_err());
    let store = db.open().await;
    assert_eq!(store.local_user().await.unwrap(), user);
    store.find_session(user.id, writer.id).await.unwrap();
}

async fn opening_at_once_creates_one_database(db: TestDb) {
    let opening = (0..4).map(|_| db.open());
    let stores = futures_util::future::join_all(opening).await;
    let mut users = Vec::new();
    for store in &stores {
        users.push(store.local_user().await.unwrap());
    }
    users.dedup();
    assert_eq!(users.len(), 1);
}

async fn a_transaction_that_is_given_up_while_it_begins_is_nobody_elses(db: TestDb) {
    let store = db.open().await;
    for woken in (1..8).cycle().take(100) {
        let mut begins = Box::pin(store.begin_read());
        let mut left = woken;
        // It is polled so often, and given up when it is woken once more.
        std::future::poll_fn(|context| {
            left -= 1;
            if left == 0 {
                return Poll::Ready(());
            }
            begins.as_mut().poll(context).map(drop)
        })
        .await;
        drop(begins);
        store.local_user().await.unwrap();
        let read = store.begin_read().await.unwrap();
        read.rollback().await.unwrap();
    }
}

async fn a_newer_schema_is_refused(db: TestDb) {
    let store = db.open().await;
    let later = "INSERT INTO seaql_migrations (version, applied_at) VALUES ('m9999_later', 0)";
    store.write.execute_unprepared(later).await.unwrap();
    let error = Store::open(&db.config).await.unwrap_err();
    assert!(matches!(error, OpenError::Newer { .. }), "{error:?}");
    assert!(error.to_string().contains("m9999_later"), "{error}");
}

async fn the_schema_goes_up_down_and_up(db: TestDb) {
    let store = db.open().await;
    let up = schema(&store.write).await;
    assert!(up.iter().any(|line| line.contains("web_logins")));
    Writer::new(&store).await;
    navi_migrations::down::<Migrator>(&store.write)
        .await
        .unwrap();
    let down = schema(&store.write).await;
    assert!(
        down.iter().all(|line| line.contains("seaql_migrations")),
        "{down:?}"
    );
    navi_migrations::up::<Migrator>(&store.write).await.unwrap();
    assert_eq!(schema(&store.write).await, up);
}

/// The real migrations, and one that fails after its first statement.
struct Failing;

struct CreatesThenFails;

impl MigrationName for CreatesThenFails {
    fn name(&self) -> &'static str {
        "m9998_fails"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for CreatesThenFails {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut column = ColumnDef::new("id");
        let half = Table::create().table("half").col(column.integer()).take();
        manager.create_table(half).await?;
        Err(DbErr::Custom("killed".to_owned()))
    }
}

impl MigratorTrait for Failing {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        let mut all = Migrator::migrations();
        all.push(Box::new(CreatesThenFails));
        all
    }
}

async fn a_migration_that_fails_leaves_the_schema_as_it_was(db: TestDb) {
    let store = db.open().await;
    let before = schema(&store.write).await;
    let failed = navi_migrations::up::<Failing>(&store.write).await;
    assert!(
        matches!(failed, Err(MigrateError::Database(_))),
        "{failed:?}"
    );
    assert_eq!(schema(&store.write).await, before);

    navi_migrations::down::<Migrator>(&store.write)
        .await
        .unwrap();
    let empty = schema(&store.write).await;
    assert!(
        navi_migrations::up::<Failing>(&store.write).await.is_err(),
        "the first migration goes back with the second"
    );
    assert_eq!(schema(&store.write).await, empty);
}

/// Everything that the schema is made of, in words.
pub(super) async fn schema(db: &DatabaseConnection) -> Vec<String> {
    let sql = match db.get_database_backend() {
        DbBackend::Sqlite => {
            "SELECT coalesce(sql, name) FROM sqlite_master
             WHERE name <> 'sqlite_sequence' ORDER BY name"
        }
        _ => {
            "SELECT table_name || ' ' || column_name || ' ' || data_type || ' ' || is_nullable
                    || ' ' || is_identity AS line
             FROM information_schema.columns WHERE table_schema = 'public'
             UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
             UNION ALL SELECT conrelid::regclass || ' ' || pg_get_constraintdef(oid)
             FROM pg_constraint WHERE connamespace = 'public'::regnamespace
             ORDER BY line"
        }
    };
    let statement = Statement::from_string(db.get_database_backend(), sql);
    let rows = db.query_all_raw(statement).await.unwrap();
    rows.iter().map(|row| row.try_get_by(0).unwrap()).collect()
}

async fn ask<T: sea_orm::TryGetable>(db: &DatabaseConnection, sql: &str) -> T {
    let statement = Statement::from_string(db.get_database_backend(), sql);
    let row = db.query_one_raw(statement).await.unwrap();
    row.unwrap().try_get_by(0).unwrap()
}

#[tokio::test]
async fn sqlite_is_set_up_to_keep_its_word() {
    on_sqlite(async |db| {
        let store = db.open().await;
        assert_eq!(
            ask::<String>(&store.write, "PRAGMA journal_mode").await,
            "wal"
        );
        assert_eq!(ask::<i32>(&store.write, "PRAGMA synchronous").await, 2);
        for connection in [&store.write, &store.read] {
            assert_eq!(ask::<i32>(connection, "PRAGMA foreign_keys").await, 1);
            assert_eq!(ask::<i32>(connection, "PRAGMA busy_timeout").await, 5_000);
        }
        let write = "INSERT INTO users VALUES (x'00', '', '', '')";
        assert!(store.read.execute_unprepared(write).await.is_err());
    })
    .await;
}

#[tokio::test]
async fn a_transaction_that_sqlite_ended_by_itself_takes_none_along() {
    on_sqlite(async |db| {
        let store = db.open().await;
        let ended = store.begin_write().await.unwrap();
        // As SQLite does where the disk fails it.
        ended.execute_unprepared("ROLLBACK").await.unwrap();
        drop(ended);
        drop(store.begin_write().await.unwrap());
        let writer = Writer::new(&store).await;
        let user = store.local_user().await.unwrap();
        store.find_session(user.id, writer.id).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn the_bundled_sqlite_has_full_text_search_and_the_wal_reset_fix() {
    on_sqlite(async |db| {
        let store = db.open().await;
        for sql in [
            "CREATE VIRTUAL TABLE temp.words USING fts5(text)",
            "INSERT INTO temp.words VALUES ('a fine day')",
        ] {
            store.write.execute_unprepared(sql).await.unwrap();
        }
        let found = "SELECT text FROM temp.words WHERE words MATCH 'fine'";
        assert_eq!(ask::<String>(&store.write, found).await, "a fine day");
        let version: String = ask(&store.write, "SELECT sqlite_version()").await;
        let numbers: Vec<u32> = version.split('.').map(|n| n.parse().unwrap()).collect();
        assert!(numbers >= vec![3, 51, 3], "{version}");
    })
    .await;
}

async fn open_error(location: Location) -> OpenError {
    Store::open(&StoreConfig { location }).await.unwrap_err()
}

async fn open_file(path: &Path) -> OpenError {
    open_error(Location::Sqlite(path.to_owned())).await
}

#[tokio::test]
async fn what_is_no_database_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("notes.txt");
    std::fs::write(&text, "these are my notes\n".repeat(100)).unwrap();
    let error = open_file(&text).await;
    assert!(matches!(error, OpenError::NotADatabase { .. }), "{error:?}");
    let kept = std::fs::read_to_string(&text).unwrap();
    assert!(kept.starts_with("these are my notes"), "it is left alone");

    let below_a_file = open_file(&text.join("navi.db")).await;
    let a_directory = open_file(dir.path()).await;
    for error in [below_a_file, a_directory] {
        assert!(matches!(error, OpenError::NotWritable { .. }), "{error:?}");
        assert!(error.to_string().contains("DB_PATH"), "{error}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn the_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data").join("navi.db");
    let location = Location::Sqlite(path.clone());
    let store = Store::open(&StoreConfig { location }).await.unwrap();
    Writer::new(&store).await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&path.with_extension("db-wal")), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
}

#[tokio::test]
async fn a_password_is_never_told() {
    let url = "postgres://ann:s3cret@127.0.0.1:1/navi";
    let broken = "postgres://ann:s3cret@127.0.0.1:port/navi";
    let other = "mysql://ann:s3cret@127.0.0.1/navi";
    for (url, unreachable) in [(url, true), (broken, false), (other, false)] {
        let location = Location::Postgres(url.to_owned());
        assert!(!format!("{location:?}").contains("s3cret"), "{location:?}");
        let error = open_error(location).await;
        let told = format!("{error} {error:?}");
        assert!(!told.contains("s3cret"), "{told}");
        assert!(told.contains("DATABASE_URL"), "{told}");
        assert_eq!(
            told.to_lowercase().contains("refused"),
            unreachable,
            "{told}"
        );
        assert_eq!(
            matches!(error, OpenError::Unreachable { .. }),
            unreachable,
            "{told}"
        );
    }
}
