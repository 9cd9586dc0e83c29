use super::*;
use crate::store::testing::{TestDb, Writer, at, on_both};

on_both!(
    files_come_within_the_quota_all_or_none,
    a_use_and_the_expiry_cannot_both_win,
    what_was_read_outlives_the_file_but_not_its_deletion,
    a_purged_session_takes_its_files_along,
);

const QUOTA: FileQuota = FileQuota {
    files: 3,
    bytes: 100,
};

fn new_file(path: &str, bytes: u64) -> NewFile {
    NewFile {
        file: AttachedFile {
            file_id: FileId::new(),
            name: "a\0 звіт.txt".to_owned(),
            path: path.to_owned(),
            media_type: "text/plain".to_owned(),
            bytes,
            image: false,
        },
        source: FileSource::Upload,
        text: Some("text\0".to_owned()),
        text_bytes: 5,
        problem: None,
    }
}

async fn files_come_within_the_quota_all_or_none(db: TestDb) {
    let store = db.open().await;
    let (writer, other) = (Writer::new(&store).await, Writer::new(&store).await);
    let add = async |files| store.add_files(writer.id, files, QUOTA, at(1)).await;
    let first = new_file("uploads/a", 60);
    assert_eq!(add(vec![first.clone()]).await, Ok(true));
    let too_much = vec![new_file("uploads/b", 30), new_file("uploads/c", 11)];
    assert_eq!(add(too_much).await, Ok(false));
    let too_many = ["b", "c", "d"].map(|name| new_file(name, 1)).to_vec();
    assert_eq!(add(too_many).await, Ok(false));
    let held = FileQuota {
        files: 1,
        bytes: 60,
    };
    assert_eq!(store.files_held(writer.id).await, Ok(held));
    let files = store.files(writer.id).await.unwrap();
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].file, first.file);
    assert!(files[0].has_text && files[0].last_used_at == at(1));

    // Another session's are not found, by id or by path.
    let id = first.file.file_id;
    assert_eq!(store.file(other.id, id).await, Ok(None));
    let paths = ["uploads/a".to_owned()];
    assert_eq!(store.files_at(other.id, &paths).await, Ok(Vec::new()));
    assert_eq!(store.files_at(writer.id, &paths).await.unwrap().len(), 1);
    assert_eq!(
        store.use_files(other.id, &[id], at(2)).await,
        Ok(Vec::new())
    );
    assert_eq!(store.delete_file(other.id, id).await, Ok(None));
    assert_eq!(store.file_texts(other.id, &[id]).await, Ok(Vec::new()));
    let nobody = store.add_files(SessionId::new(), vec![new_file("x", 1)], QUOTA, at(1));
    assert_eq!(nobody.await, Err(StoreError::SessionNotFound));
}

async fn a_use_and_the_expiry_cannot_both_win(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let (used, unused) = (new_file("uploads/a", 1), new_file("uploads/b", 1));
    let (used_id, unused_id) = (used.file.file_id, unused.file.file_id);
    let added = store.add_files(writer.id, vec![used, unused], QUOTA, at(1));
    assert_eq!(added.await, Ok(true));
    let expired = store.files_unused_since(at(10), 10).await.unwrap();
    assert_eq!(expired.len(), 2);
    assert_eq!(store.files_unused_since(at(10), 1).await.unwrap().len(), 1);
    assert_eq!(store.files_unused_since(at(1), 10).await, Ok(Vec::new()));
    // The sweep has seen both; one is used before it gets there.
    let there = store.use_files(writer.id, &[used_id], at(20)).await;
    assert_eq!(there, Ok(vec![used_id]));
    assert_eq!(store.retire_file(used_id, at(10), at(21)).await, Ok(false));
    assert_eq!(store.retire_file(unused_id, at(10), at(21)).await, Ok(true));
    assert_eq!(
        store.retire_file(unused_id, at(10), at(21)).await,
        Ok(false)
    );
    let both = [used_id, unused_id];
    let there = store.use_files(writer.id, &both, at(30)).await;
    assert_eq!(there, Ok(vec![used_id]));
    assert_eq!(store.files_there(&both).await, Ok(vec![used_id]));
    assert_eq!(store.file(writer.id, unused_id).await, Ok(None));
    assert_eq!(store.files_held(writer.id).await.unwrap().files, 1);
}

async fn what_was_read_outlives_the_file_but_not_its_deletion(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let (gone, deleted) = (new_file("uploads/a", 1), new_file("uploads/b", 1));
    let (gone_id, deleted_id) = (gone.file.file_id, deleted.file.file_id);
    let added = store.add_files(writer.id, vec![gone, deleted.clone()], QUOTA, at(1));
    assert_eq!(added.await, Ok(true));
    assert_eq!(store.retire_file(gone_id, at(10), at(11)).await, Ok(true));
    let known = store.delete_file(writer.id, deleted_id).await.unwrap();
    assert_eq!(known.unwrap().file, deleted.file);
    let again = store.delete_file(writer.id, deleted_id).await;
    assert_eq!(again, Ok(None));
    let texts = store.file_texts(writer.id, &[gone_id, deleted_id]).await;
    let [text] = &texts.unwrap()[..] else {
        unreachable!("one is deleted")
    };
    assert_eq!((text.file_id, text.gone), (gone_id, true));
    assert_eq!(text.text.as_deref(), Some("text\0"));
}

async fn a_purged_session_takes_its_files_along(db: TestDb) {
    use crate::domain::session::write::Write;
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let file = new_file("uploads/a", 1);
    let id = file.file.file_id;
    let added = store.add_files(writer.id, vec![file], QUOTA, at(1));
    assert_eq!(added.await, Ok(true));
    let ids = [writer.id];
    writer
        .write(vec![Write::Deleted(Some(at(2)))])
        .await
        .unwrap();
    assert_eq!(store.sessions_known(&ids).await, Ok(ids.to_vec()));
    store.purge_session(writer.id, at(0)).await.unwrap();
    assert_eq!(store.sessions_known(&ids).await, Ok(Vec::new()));
    assert_eq!(store.files_there(&[id]).await, Ok(Vec::new()));
}
