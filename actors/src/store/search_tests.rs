//! What a search finds, and what it must not.

use std::sync::Arc;

use sea_orm::{ConnectionTrait, Statement};

use super::testing::{TestDb, Writer, at, on_both, user_message};
use super::types::NewSession;
use super::{MAX_HITS, Store};
use crate::domain::history::{Branch, ContextState};
use crate::domain::session::write::Write;
use crate::protocol::ids::{MessageId, OwnerId, RunId, SessionId, UserId};
use crate::protocol::message::{Message, Role, ToolCall, ToolOutcome};
use crate::protocol::people::UserRole;
use crate::protocol::search::{Mark, SearchHit};

on_both!(
    words_are_found_in_every_language,
    what_was_said_and_titles_are_found,
    any_query_is_valid,
    others_and_deleted_sessions_are_not_found,
    pages_follow_each_other,
    a_long_message_is_found_by_its_beginning,
);

async fn find(store: &Store, query: &str) -> Vec<SearchHit> {
    let user_id = store.local_user().await.unwrap().id;
    store.search(user_id, query, MAX_HITS, 0).await.unwrap()
}

async fn found(store: &Store, query: &str) -> Vec<String> {
    let hits = find(store, query).await;
    hits.into_iter().map(|hit| hit.snippet.text).collect()
}

fn says(text: &str, second: i64) -> Message {
    Message {
        created_at: at(second),
        ..user_message(text)
    }
}

/// Untitled, so that what is found was said.
async fn untitled(store: &Store, user_id: UserId) -> Writer {
    let (id, owner) = (SessionId::new(), OwnerId::new());
    let new = NewSession {
        id,
        user_id,
        title: String::new(),
        mode: crate::protocol::approval::ConsentMode::default(),
        ephemeral: false,
        model: None,
        profile_id: "secretary".to_owned(),
        created_at: at(0),
    };
    let loaded = store.create_session(new, &owner).await.unwrap();
    Writer {
        store: store.clone(),
        id,
        owner,
        epoch: loaded.epoch,
        seq: std::sync::Arc::default(),
    }
}

async fn of_local_user(store: &Store) -> Writer {
    untitled(store, store.local_user().await.unwrap().id).await
}

async fn words_are_found_in_every_language(db: TestDb) {
    let store = db.open().await;
    let writer = of_local_user(&store).await;
    let texts = [
        "Їжак під'їхав до «Київської» площі, ґанок зелений.",
        "Ёлка стоит во дворе — большая; подъезд №5.",
        "Un café crème à Besançon, s'il vous plaît",
        "See src/store/search.rs or mail ann@example.com, v2.10 👍",
        "Straße und Übermut",
    ];
    let writes = (1..)
        .zip(texts)
        .map(|(n, text)| Write::Message(Arc::new(says(text, n))));
    writer.write(writes.collect()).await.unwrap();
    for (query, expected) in [
        ("їжак", Some(0)),
        ("ЇЖАК", Some(0)),
        ("київськ", Some(0)),
        ("ґанок площ", Some(0)),
        ("під'їхав", Some(0)),
        ("ганок", None),
        ("ёлка", Some(1)),
        ("ЁЛКА БОЛЬШ", Some(1)),
        ("елка", None),
        ("подъезд 5", Some(1)),
        ("дворе большая", Some(1)),
        ("\"дворе большая\"", Some(1)),
        ("\"большая дворе\"", None),
        ("\"двор\"", None),
        ("cafe", Some(2)),
        ("CAFÉ creme", Some(2)),
        ("cafe\u{301}", Some(2)),
        ("besancon", Some(2)),
        ("search.rs", Some(3)),
        ("store", Some(3)),
        ("example", Some(3)),
        ("v2.10", Some(3)),
        ("übermut", Some(4)),
        ("strasse", None),
        ("stra", Some(4)),
    ] {
        let expected: Vec<&str> = expected.into_iter().map(|n: usize| texts[n]).collect();
        assert_eq!(found(&store, query).await, expected, "{query}");
    }
}

async fn what_was_said_and_titles_are_found(db: TestDb) {
    let store = db.open().await;
    let writer = of_local_user(&store).await;
    let run_id = RunId::new();
    let call = ToolCall {
        id: crate::protocol::ids::CallId::new(),
        name: "todo".to_owned(),
        arguments: serde_json::json!({"text": "apple"}),
    };
    let result = "an apple".to_owned();
    let tool = Message::tool_result(run_id, &call, ToolOutcome::Success, result, at(3));
    let answer = Message {
        content: Some("Apples, of course".to_owned()),
        thinking: Some("apple apple".to_owned()),
        ..Message::assistant(MessageId::new(), run_id, at(4))
    };
    let silent = Message::assistant(MessageId::new(), run_id, at(5));
    let asked = says("which apple?", 2);
    let beside = Branch {
        id: 1,
        parent_id: Some(0),
        fork_ordinal: 0,
        context: ContextState::default(),
    };
    let anew = says("an apple, anew", 6);
    writer
        .write(vec![
            Write::Title("Fruit".to_owned()),
            Write::Active(at(1)),
            Write::Message(Arc::new(asked.clone())),
            Write::Message(Arc::new(tool)),
            Write::Message(Arc::new(answer.clone())),
            Write::Message(Arc::new(silent)),
            Write::Fork(beside),
            Write::Message(Arc::new(anew.clone())),
            Write::ShowBranch(0),
            Write::Title("Apple pie".to_owned()),
            Write::Active(at(9)),
        ])
        .await
        .unwrap();
    let hits = find(&store, "apple").await;
    let places: Vec<_> = hits
        .iter()
        .map(|hit| (hit.message_id, hit.branch_id, hit.role, hit.at))
        .collect();
    assert_eq!(
        places,
        [
            (None, None, None, at(9)),
            (Some(anew.id), Some(1), Some(Role::User), at(6)),
            (Some(answer.id), Some(0), Some(Role::Assistant), at(4)),
            (Some(asked.id), Some(0), Some(Role::User), at(2)),
        ]
    );
    assert!(hits.iter().all(|hit| hit.session_title == "Apple pie"));
    assert!(hits.iter().all(|hit| hit.session_id == writer.id));
    let marks: Vec<_> = hits.iter().map(|hit| hit.snippet.marks[0]).collect();
    let mark = |start, end| Mark { start, end };
    assert_eq!(marks, [mark(0, 5), mark(3, 8), mark(0, 6), mark(6, 11)]);
    assert_eq!(
        found(&store, "fruit").await,
        [""; 0],
        "it is called so no more"
    );
    let untitled = vec![Write::Title(String::new())];
    writer.write(untitled).await.unwrap();
    assert_eq!(find(&store, "apple").await.len(), 3);
    assert_eq!(found(&store, "pie").await, [""; 0]);
}

async fn any_query_is_valid(db: TestDb) {
    let store = db.open().await;
    let writer = of_local_user(&store).await;
    let text = "NOT near AND or title body \0 हिन्दी ไทย 中文";
    let said = vec![
        Write::Title(text.to_owned()),
        Write::Message(Arc::new(says(text, 1))),
    ];
    writer.write(said).await.unwrap();
    for query in [
        "",
        " ",
        "\"",
        "\"\"",
        "'",
        "''",
        "\\",
        "*",
        "a*",
        "-",
        "-a",
        "^a",
        "a:b",
        "body:x",
        "{title}: a",
        "NEAR(a b, 2)",
        "AND",
        "OR OR",
        "NOT",
        "a NOT",
        "(",
        ")",
        "(a",
        "a & b | !c",
        "a <-> b",
        "<2>",
        ":*",
        "a':*",
        "'a':*b",
        "%",
        "_",
        ";",
        "--",
        "$1",
        "?1",
        "\0",
        "a\0b",
        "\u{FDD0}0",
        "🎉",
        "👩‍👩‍👧",
        "हिन्दी",
        "ไทย",
        "中文",
        "½",
        "\u{301}",
        "e\u{301}",
        "\u{202e}",
        "\"unfinished",
        "\"a\" \"",
        "\u{FFFF}",
    ] {
        find(&store, query).await;
    }
    find(&store, &"a \"b\" (".repeat(10_000)).await;
    find(&store, &"я".repeat(10_000)).await;
    for query in ["NOT near AND", "title", "हिन्दी", "हिन्", "中", "ไทย"]
    {
        assert_eq!(find(&store, query).await.len(), 2, "{query}");
    }
}

async fn others_and_deleted_sessions_are_not_found(db: TestDb) {
    let store = db.open().await;
    let other = store.create_user("Ann", UserRole::User).await.unwrap();
    let (mine, theirs) = (
        of_local_user(&store).await,
        untitled(&store, other.id).await,
    );
    for writer in [&mine, &theirs] {
        let title = Write::Title("secret".to_owned());
        let said = Write::Message(Arc::new(says("a secret", 1)));
        writer.write(vec![title, said]).await.unwrap();
    }
    let sessions = async |user_id| -> Vec<SessionId> {
        let hits = store.search(user_id, "secret", 10, 0).await.unwrap();
        hits.into_iter().map(|hit| hit.session_id).collect()
    };
    let user_id = store.local_user().await.unwrap().id;
    assert_eq!(sessions(user_id).await, [mine.id; 2]);
    assert_eq!(sessions(other.id).await, [theirs.id; 2]);
    assert_eq!(sessions(UserId::new()).await, []);

    let deleted = vec![Write::Deleted(Some(at(2)))];
    mine.write(deleted.clone()).await.unwrap();
    assert_eq!(sessions(user_id).await, []);
    store.restore(user_id, mine.id).await.unwrap();
    assert_eq!(sessions(user_id).await, [mine.id; 2]);

    mine.write(deleted).await.unwrap();
    store.purge_session(mine.id, at(0)).await.unwrap();
    assert_eq!(sessions(user_id).await, []);
    if store.read.get_database_backend() == sea_orm::DbBackend::Sqlite {
        let left = async |sql: &str| -> i64 {
            let ask = Statement::from_string(sea_orm::DbBackend::Sqlite, sql);
            let row = store.read.query_one_raw(ask).await.unwrap();
            row.unwrap().try_get_by(0).unwrap()
        };
        assert_eq!(left("SELECT COUNT(*) FROM search_docs").await, 2);
        let words = "SELECT COUNT(*) FROM search_words WHERE search_words MATCH 'secret'";
        assert_eq!(left(words).await, 2, "the index lets go of it");
    }
}

async fn pages_follow_each_other(db: TestDb) {
    let store = db.open().await;
    let user_id = store.local_user().await.unwrap().id;
    for session in 0..3_i64 {
        let writer = of_local_user(&store).await;
        let mut writes = vec![
            Write::Title(format!("apple {session}")),
            Write::Active(at(100 + session)),
        ];
        writes.extend((0..30).map(|n| Write::Message(Arc::new(says("apple", session * 30 + n)))));
        writer.write(writes).await.unwrap();
    }
    let page = async |limit, offset| store.search(user_id, "apple", limit, offset).await.unwrap();
    let first = page(1_000, 0).await;
    assert_eq!(first.len(), MAX_HITS as usize);
    let mut all = first;
    all.extend(page(1_000, MAX_HITS).await);
    assert_eq!(all.len(), 93);
    let titles = all.iter().take_while(|hit| hit.message_id.is_none());
    assert_eq!(titles.count(), 3);
    let parts = [&all[..3], &all[3..]];
    for part in parts {
        assert!(part.is_sorted_by_key(|hit| std::cmp::Reverse(hit.at)));
    }
    let mut small = Vec::new();
    for offset in (0..).step_by(2) {
        let page = page(2, offset).await;
        if page.is_empty() {
            break;
        }
        small.extend(page);
    }
    assert_eq!(small, all);
    assert_eq!(page(0, 0).await, []);
    assert_eq!(page(5, u32::MAX).await, []);
}

async fn a_long_message_is_found_by_its_beginning(db: TestDb) {
    let store = db.open().await;
    let writer = of_local_user(&store).await;
    // More different words than PostgreSQL takes in one index entry.
    let mut text = "beginning ".to_owned();
    text.extend((0..400_000).map(|n| format!("{n:x}ї ")));
    text.push_str("ending");
    let said = vec![Write::Message(Arc::new(says(&text, 1)))];
    writer.write(said).await.unwrap();
    assert_eq!(find(&store, "beginning").await.len(), 1);
    assert_eq!(find(&store, "ending").await, []);
}
