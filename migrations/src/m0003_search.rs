//! Full-text search over what people and Navi said, and over titles: FTS5 on SQLite,
//! `tsvector` on PostgreSQL. The database itself keeps the index: whatever is written or
//! deleted is found or not found from the same commit on.
//!
//! Both fold the same way: case, and the diacritics of Latin letters; everything but
//! letters and digits parts words.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_pk_auto, uuid, uuid_null};
use sea_orm_migration::sea_orm::{ConnectionTrait, DbBackend, Statement};

use crate::m0001_initial::{belongs_to, index};

/// How much of a text is searched, in characters. PostgreSQL refuses a `tsvector` of 1 MB.
const SEARCHED: u32 = 100_000;

/// Latin letters and what they are with a diacritic, in lower case.
const FOLDED: &[(char, &str)] = &[
    ('a', "àáâãäåāăąǎạảấầẩẫậắằẳẵặ"),
    ('c', "çćĉċč"),
    ('d', "ď"),
    ('e', "èéêëēĕėęěẹẻẽếềểễệ"),
    ('g', "ĝğġģǧ"),
    ('h', "ĥ"),
    ('i', "ìíîïĩīĭįǐỉị"),
    ('j', "ĵ"),
    ('k', "ķ"),
    ('l', "ĺļľ"),
    ('n', "ñńņň"),
    ('o', "òóôõöōŏőǒọỏốồổỗộ"),
    ('r', "ŕŗř"),
    ('s', "śŝşšș"),
    ('t', "ţťț"),
    ('u', "ùúûüũūŭůűųǔụủ"),
    ('w', "ŵ"),
    ('y', "ýÿŷỳỵỷỹ"),
    ('z', "źżž"),
];

/// See the module.
pub(crate) struct Search;

impl MigrationName for Search {
    fn name(&self) -> &'static str {
        "m0003_search"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Search {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        match manager.get_database_backend() {
            DbBackend::Sqlite => {
                manager.create_table(search_docs()).await?;
                manager.create_index(docs_of_session()).await?;
                run(manager, &sqlite_up()).await
            }
            _ => {
                let collation = collation(manager).await?;
                run(manager, &postgres_up(collation)).await
            }
        }
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        match manager.get_database_backend() {
            DbBackend::Sqlite => run(manager, &owned(SQLITE_DOWN)).await,
            _ => run(manager, &owned(POSTGRES_DOWN)).await,
        }
    }
}

async fn run(manager: &SchemaManager<'_>, statements: &[String]) -> Result<(), DbErr> {
    for statement in statements {
        manager
            .get_connection()
            .execute_unprepared(statement)
            .await?;
    }
    Ok(())
}

fn owned(statements: &[&str]) -> Vec<String> {
    statements.iter().map(|s| (*s).to_owned()).collect()
}

/// What is found on SQLite: a message, or where there is none the session's title. The index
/// knows it by its number, since a row's own number may change.
fn search_docs() -> TableCreateStatement {
    Table::create()
        .table("search_docs")
        .col(big_pk_auto("id"))
        .col(uuid("session_id"))
        .col(uuid_null("message_id"))
        .foreign_key(&mut belongs_to("search_docs", "session_id", "sessions"))
        .take()
}

fn docs_of_session() -> IndexCreateStatement {
    index("search_docs", &["session_id", "message_id"])
}

fn sqlite_up() -> Vec<String> {
    let text = |column: &str| format!("substr({column}, 1, {SEARCHED})");
    let (body, title) = (text("new.content"), text("new.title"));
    vec![
        // Without a copy of the text: it stands in `messages` and `sessions`.
        "CREATE VIRTUAL TABLE search_words USING fts5(title, body, content='', \
         contentless_delete=1, tokenize='unicode61 remove_diacritics 2')"
            .to_owned(),
        "INSERT INTO search_docs (session_id, message_id) \
         SELECT id, NULL FROM sessions WHERE title <> ''"
            .to_owned(),
        "INSERT INTO search_docs (session_id, message_id) \
         SELECT session_id, id FROM messages \
         WHERE role IN ('user', 'assistant') AND content <> '' ORDER BY created_at, ordinal"
            .to_owned(),
        format!(
            "INSERT INTO search_words (rowid, title, body) \
             SELECT d.id, CASE WHEN d.message_id IS NULL THEN {} END, {} \
             FROM search_docs d JOIN sessions s ON s.id = d.session_id \
             LEFT JOIN messages m ON m.id = d.message_id",
            text("s.title"),
            text("m.content")
        ),
        format!(
            "CREATE TRIGGER search_message AFTER INSERT ON messages \
             WHEN new.role IN ('user', 'assistant') AND new.content <> '' BEGIN \
             INSERT INTO search_docs (session_id, message_id) VALUES (new.session_id, new.id); \
             INSERT INTO search_words (rowid, body) VALUES (last_insert_rowid(), {body}); END"
        ),
        format!(
            "CREATE TRIGGER search_first_title AFTER INSERT ON sessions \
             WHEN new.title <> '' BEGIN \
             INSERT INTO search_docs (session_id) VALUES (new.id); \
             INSERT INTO search_words (rowid, title) VALUES (last_insert_rowid(), {title}); END"
        ),
        format!(
            "CREATE TRIGGER search_title AFTER UPDATE OF title ON sessions \
             WHEN new.title <> old.title BEGIN \
             DELETE FROM search_docs WHERE session_id = new.id AND message_id IS NULL; \
             INSERT INTO search_docs (session_id) VALUES (new.id); \
             INSERT INTO search_words (rowid, title) VALUES (last_insert_rowid(), {title}); END"
        ),
        "CREATE TRIGGER search_gone AFTER DELETE ON search_docs BEGIN \
         DELETE FROM search_words WHERE rowid = old.id; END"
            .to_owned(),
    ]
}

const SQLITE_DOWN: &[&str] = &[
    "DROP TRIGGER search_message",
    "DROP TRIGGER search_first_title",
    "DROP TRIGGER search_title",
    "DROP TRIGGER search_gone",
    "DROP TABLE search_docs",
    "DROP TABLE search_words",
];

/// Knows the letters of every language, whatever the database was created with: in the
/// locale `C`, PostgreSQL knows only those of English. A server that was built without ICU
/// lacks it; there the database's own has to do.
async fn collation(manager: &SchemaManager<'_>) -> Result<&'static str, DbErr> {
    let find = "SELECT 1 FROM pg_collation WHERE collname = 'und-x-icu'";
    let found = manager
        .get_connection()
        .query_one_raw(Statement::from_string(DbBackend::Postgres, find))
        .await?;
    Ok(found.map_or("", |_| " COLLATE \"und-x-icu\""))
}

fn postgres_up(collation: &str) -> Vec<String> {
    let (mut from, mut to) = (String::new(), String::new());
    for (letter, variants) in FOLDED {
        from.push_str(variants);
        to.extend(variants.chars().map(|_| letter));
    }
    // Diacritics that stand by themselves stand for nothing.
    from.extend('\u{300}'..='\u{36f}');
    let folded = |text: &str| format!("translate(lower({text}{collation}), '{from}', '{to}')");
    let function = |name: &str, returns: &str, value: &str| {
        format!(
            "CREATE FUNCTION {name}(asked text) RETURNS {returns} \
             LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT {value} $$"
        )
    };
    let words = format!(
        "to_tsvector('pg_catalog.simple', regexp_replace({}, '[^[:alnum:]]+', ' ', 'g'))",
        folded(&format!("left(asked, {SEARCHED})"))
    );
    // Leaves the operators of `to_tsquery` alone.
    let query = format!(
        "to_tsquery('pg_catalog.simple', \
         regexp_replace({}, '[^[:alnum:]''&<>:*-]+', ' ', 'g'))",
        folded("asked")
    );
    vec![
        function("search_words", "tsvector", &words),
        function("search_query", "tsquery", &query),
        "ALTER TABLE messages ADD COLUMN words tsvector GENERATED ALWAYS AS \
         (CASE WHEN role IN ('user', 'assistant') THEN search_words(content) END) STORED"
            .to_owned(),
        "ALTER TABLE sessions ADD COLUMN title_words tsvector GENERATED ALWAYS AS \
         (search_words(title)) STORED"
            .to_owned(),
        "CREATE INDEX idx_messages_words ON messages USING gin (words)".to_owned(),
        "CREATE INDEX idx_sessions_title_words ON sessions USING gin (title_words)".to_owned(),
    ]
}

const POSTGRES_DOWN: &[&str] = &[
    "ALTER TABLE sessions DROP COLUMN title_words",
    "ALTER TABLE messages DROP COLUMN words",
    "DROP FUNCTION search_query(text)",
    "DROP FUNCTION search_words(text)",
];
