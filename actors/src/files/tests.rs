//! Files from their way in to their end, on a real disk and database.
use std::path::Path;
use std::time::SystemTime;

use bytes::Bytes;
use chrono::TimeDelta;
use tempfile::TempDir;

use super::janitor::Sweeper;
use super::*;
use crate::domain::session::write::{EventRow, Write};
use crate::protocol::approval::ConsentMode;
use crate::protocol::command::FileRef;
use crate::protocol::file::AttachedFile;
use crate::protocol::ids::{MessageId, OwnerId, RunId, UserId};
use crate::protocol::message::Message;
use crate::protocol::people::UserRole;
use crate::store::{
    Commit, Location, LogCursor, LogLimits, LogRange, NewSession, PageLimits, StoreConfig,
};
use crate::tools::registry::Registry;
use crate::tools::sandbox::SandboxConfig;
use crate::tools::terminal::{Terminal, TerminalConfig};
use crate::tools::toolbox::Toolbox;
use crate::tools::{Tool, ToolImage};

struct Fixture {
    dir: TempDir,
    files: SessionFiles,
    session: SessionId,
}

impl Fixture {
    async fn new(limits: FileLimits) -> Self {
        let dir = TempDir::new().unwrap();
        let location = Location::Sqlite(dir.path().join("navi.db"));
        let store = Store::open(&StoreConfig { location }).await.unwrap();
        let files = SessionFiles::new(store, dir.path().join("sessions"), limits);
        let mut place = Self {
            dir,
            files,
            session: SessionId::new(),
        };
        place.session = place.another_session().await;
        place
    }

    async fn another_session(&self) -> SessionId {
        let user = self.files.store.local_user().await.unwrap();
        self.session_of(user.id).await
    }

    async fn session_of(&self, user_id: UserId) -> SessionId {
        let id = SessionId::new();
        let store = &self.files.store;
        let new = NewSession {
            id,
            user_id,
            title: String::new(),
            model: None,
            profile_id: "secretary".to_owned(),
            mode: ConsentMode::default(),
            ephemeral: false,
            created_at: now(),
        };
        store.create_session(new, &OwnerId::new()).await.unwrap();
        id
    }

    async fn upload(&self, files: &[(&str, &[u8])]) -> Result<Vec<SessionFile>, NaviError> {
        let mut upload = self.files.begin(self.session, None, Whose::alone()).await?;
        for (name, bytes) in files {
            upload.file(name).await?;
            for piece in bytes.chunks(1000) {
                upload.write(&Bytes::copy_from_slice(piece)).await?;
            }
        }
        upload.finish().await
    }

    fn sweeper(&self, started: SystemTime) -> Sweeper {
        self.sweeper_with(Registry::new([]), started)
    }

    fn sweeper_with(&self, tools: Registry, started: SystemTime) -> Sweeper {
        let (files, toolbox) = (self.files.clone(), Toolbox::new(tools));
        Sweeper::new(files, started, LogLimits::default(), toolbox)
    }

    fn workspace(&self) -> std::path::PathBuf {
        let sessions = self.dir.path().join("sessions");
        sessions.join(self.session.to_string())
    }

    /// Every file on the shelf.
    fn shelved(&self) -> Vec<String> {
        let mut found = Vec::new();
        walk(&self.dir.path().join("sessions/.files"), &mut found);
        found
    }
}

fn walk(dir: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, found);
        } else {
            found.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
}

fn refs(files: &[SessionFile]) -> Vec<FileRef> {
    let refs = files.iter().map(|known| FileRef {
        name: String::new(),
        path: known.file.path.clone(),
    });
    refs.collect()
}

fn message(files: Vec<AttachedFile>) -> Message {
    let mut message = Message::user(MessageId::new(), RunId::new(), "look".to_owned(), now());
    message.files = files;
    message
}

/// With something behind it that is none of its pixels.
fn picture() -> Vec<u8> {
    let mut png = crate::documents::fixtures::png(30, 20);
    png.extend(b"behind");
    png
}

#[tokio::test]
async fn a_file_comes_in_is_used_and_goes() {
    let place = Fixture::new(FileLimits::default()).await;
    let (files, session) = (&place.files, place.session);
    let sent = place
        .upload(&[("../звіт.md", b"# Title\n"), ("photo.png", &picture())])
        .await
        .unwrap();
    assert_eq!(files.list(session).await.unwrap(), sent);
    assert_eq!(sent[0].file.name, "звіт.md");
    assert!(sent[0].text && sent[1].file.image && !sent[1].text);
    assert_eq!(
        sent[0].expires_at,
        sent[0].created_at + TimeDelta::hours(24)
    );
    let copy = place.workspace().join(&sent[0].file.path);
    assert_eq!(std::fs::read(&copy).unwrap(), b"# Title\n");
    let attached = files.attach(session, &refs(&sent)).await.unwrap();
    // What a tool makes of its copy touches nobody else, and is not undone.
    std::fs::write(&copy, "changed").unwrap();
    files.attach(session, &refs(&sent)).await.unwrap();
    assert_eq!(std::fs::read(&copy).unwrap(), b"changed");
    let mut download = files.open(session, sent[0].file.file_id).await.unwrap();
    let mut whole = String::new();
    download.content.read_to_string(&mut whole).await.unwrap();
    assert_eq!((whole.as_str(), download.bytes), ("# Title\n", 8));
    let shown = files.image(session, sent[1].file.file_id).await.unwrap();
    assert_eq!(shown.media_type, "image/png");
    assert!(!shown.bytes.ends_with(b"behind"), "made anew");

    let views = files.views(session, [&message(attached.clone())]).await;
    let [text, image] = attached.each_ref_ids();
    assert_eq!(views[&text].text.as_deref(), Some("# Title\n"));
    assert!(views[&image].image.is_some());

    files.delete(session, text).await.unwrap();
    assert!(!copy.exists());
    let gone = files.open(session, text).await.unwrap_err();
    assert_eq!(gone.code, ErrorCode::FileNotFound);
    let views = files.views(session, [&message(attached)]).await;
    assert!(!views.contains_key(&text), "nobody reads anything of it");
    assert_eq!(
        place.shelved().len(),
        2,
        "the image and what is shown of it"
    );
}

trait Ids {
    fn each_ref_ids(&self) -> [FileId; 2];
}

impl Ids for Vec<AttachedFile> {
    fn each_ref_ids(&self) -> [FileId; 2] {
        [self[0].file_id, self[1].file_id]
    }
}

#[tokio::test]
async fn an_upload_that_is_refused_or_cut_off_leaves_nothing() {
    let limits = FileLimits {
        file_bytes: 1 << 20,
        upload_files: 3,
        session_files: 4,
        session_bytes: 2 << 20,
        ..FileLimits::default()
    };
    let place = Fixture::new(limits).await;
    let code = async |files: &[(&str, &[u8])]| {
        let refused = place.upload(files).await.unwrap_err();
        assert_eq!(place.shelved(), Vec::<String>::new(), "{refused}");
        assert_eq!(place.files.list(place.session).await.unwrap(), Vec::new());
        refused.code
    };
    let large = vec![b'x'; (1 << 20) + 1];
    assert_eq!(
        code(&[("a", b"x"), ("b", &large)]).await,
        ErrorCode::FileTooLarge
    );
    assert_eq!(
        code(&[("a", b"x"), ("b", b"")]).await,
        ErrorCode::InvalidUpload
    );
    assert_eq!(code(&[]).await, ErrorCode::InvalidUpload);
    let four = [("a", b"x".as_slice()); 4];
    assert_eq!(code(&four).await, ErrorCode::TooManyFiles);
    let whole = vec![b'x'; 1 << 20];
    let three = [("a", whole.as_slice()), ("b", &whole), ("c", &whole)];
    assert_eq!(code(&three).await, ErrorCode::FileTooLarge);

    let mut cut = place
        .files
        .begin(place.session, None, Whose::alone())
        .await
        .unwrap();
    cut.file("a").await.unwrap();
    cut.write(&Bytes::from_static(b"the first three quarters"))
        .await
        .unwrap();
    drop(cut);
    assert_eq!(place.shelved(), Vec::<String>::new());
    let announced = place
        .files
        .begin(place.session, Some(100 << 20), Whose::alone())
        .await;
    assert_eq!(announced.unwrap_err().code, ErrorCode::FileTooLarge);

    // Two that each fit alone: the second is refused whole.
    let mut second = place
        .files
        .begin(place.session, None, Whose::alone())
        .await
        .unwrap();
    for name in ["d", "e"] {
        second.file(name).await.unwrap();
        second.write(&Bytes::from_static(b"x")).await.unwrap();
    }
    place
        .upload(&[("a", b"x"), ("b", b"x"), ("c", b"x")])
        .await
        .unwrap();
    assert_eq!(
        second.finish().await.unwrap_err().code,
        ErrorCode::TooManyFiles
    );
    assert_eq!(place.shelved().len(), 3);
}

#[tokio::test]
async fn what_is_past_its_time_goes_and_what_is_used_stays() {
    let place = Fixture::new(FileLimits::default()).await;
    let sent = place
        .upload(&[("a.txt", b"a"), ("b.txt", b"b")])
        .await
        .unwrap();
    let attached = place
        .files
        .attach(place.session, &refs(&sent))
        .await
        .unwrap();
    let both @ [used, unused] = attached.each_ref_ids();
    let long_ago = now() - place.files.limits.keep * 2;
    let store = &place.files.store;
    let aged = store.use_files(place.session, &both, long_ago).await;
    assert_eq!(aged.unwrap().len(), 2);
    let mut open = place.files.open(place.session, used).await.unwrap();
    place.sweeper(SystemTime::UNIX_EPOCH).sweep().await;
    let listed = place.files.list(place.session).await.unwrap();
    assert_eq!(listed.len(), 1, "the one that was used a moment ago");
    assert_eq!(place.shelved(), [used.to_string()]);
    assert!(!place.workspace().join(&attached[1].path).exists());
    let gone = place
        .files
        .attach(place.session, &refs(&sent))
        .await
        .unwrap_err();
    assert_eq!(gone.code, ErrorCode::FileNotFound);
    let views = place.files.views(place.session, [&message(attached)]).await;
    assert!(views[&unused].gone && views[&unused].text.as_deref() == Some("b"));

    // A download that began goes on whatever becomes of the file.
    place.files.delete(place.session, used).await.unwrap();
    let mut whole = String::new();
    open.content.read_to_string(&mut whole).await.unwrap();
    assert_eq!(whole, "a");
}

#[tokio::test]
async fn what_a_crash_left_is_cleared_away() {
    let place = Fixture::new(FileLimits::default()).await;
    let sent = place.upload(&[("a.txt", b"a")]).await.unwrap();
    let shelf = &place.files.shelf;
    let (on_its_way, _) = shelf.draft().await.unwrap();
    let draft = on_its_way.path().to_owned();
    let orphan = shelf.content(place.session, FileId::new());
    let nobody = SessionId::new();
    shelf.make_room(nobody).await.unwrap();
    for path in [&draft, &orphan, &shelf.content(nobody, FileId::new())] {
        std::fs::write(path, "lost").unwrap();
    }
    let old = SystemTime::now() - Duration::from_secs(7200);
    std::fs::File::open(&orphan)
        .unwrap()
        .set_modified(old)
        .unwrap();
    // Of this process: it is on its way.
    place.sweeper(SystemTime::UNIX_EPOCH).sweep().await;
    assert!(draft.exists() && !orphan.exists() && !shelf.of_session(nobody).exists());
    let later = SystemTime::now() + Duration::from_secs(60);
    place.sweeper(later).sweep().await;
    assert!(!draft.exists());
    assert_eq!(place.shelved(), [sent[0].file.file_id.to_string()]);
}

#[cfg(unix)]
#[tokio::test]
async fn what_a_deleted_session_left_is_removed_though_it_was_closed() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let place = Fixture::new(FileLimits::default()).await;
    let sessions = place.dir.path().join("sessions");
    let trash = sessions.join(crate::engine::TRASH);
    let gone = SessionId::new();
    let left = trash.join(gone.to_string());
    let changes = crate::tools::filesystem::changes_dir(&sessions.join(gone.to_string()));
    let kept = trash.join(place.session.to_string());
    for dir in [left.join("closed/inner"), changes.clone(), kept.clone()] {
        std::fs::create_dir_all(dir).unwrap();
    }
    let linked = place.dir.path().join("linked");
    std::fs::create_dir(&linked).unwrap();
    std::fs::write(linked.join("file"), "kept").unwrap();
    symlink(&linked, left.join("closed/link")).unwrap();
    let shut = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(left.join("closed/inner"), shut(0o000)).unwrap();
    std::fs::set_permissions(left.join("closed"), shut(0o000)).unwrap();
    std::fs::set_permissions(&linked, shut(0o500)).unwrap();
    place.sweeper(SystemTime::UNIX_EPOCH).sweep().await;
    assert!(!left.exists() && !changes.exists() && kept.exists());
    assert!(linked.join("file").exists());
    let mode = std::fs::metadata(&linked).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o500);
    std::fs::set_permissions(&linked, shut(0o700)).unwrap();
}

#[tokio::test]
async fn what_tools_keep_for_a_session_goes_with_it_whoever_deleted_it() {
    let place = Fixture::new(FileLimits::default()).await;
    let scratch = place.dir.path().join("sandbox");
    let terminal = Terminal::new(TerminalConfig {
        sandbox: SandboxConfig {
            scratch: scratch.clone(),
            ..SandboxConfig::default()
        },
        ..TerminalConfig::default()
    });
    let terminal: Arc<dyn Tool> = Arc::new(terminal);
    let store = &place.files.store;
    let ann = store.create_user("Ann", UserRole::User).await.unwrap().id;
    let gone = place.session_of(ann).await;
    let [left, kept] = [gone, place.session].map(|it| scratch.join(it.to_string()));
    for dir in [&left, &kept] {
        std::fs::create_dir_all(dir).unwrap();
    }
    // As another process does it, which has no tools of this one.
    store.remove_person(ann, now()).await.unwrap();
    let sweeper = place.sweeper_with(Registry::new([terminal]), SystemTime::UNIX_EPOCH);
    sweeper.sweep().await;
    assert_eq!(store.sessions_known(&[gone]).await.unwrap(), []);
    assert!(!left.exists() && kept.exists());
}

#[tokio::test]
async fn another_sessions_file_is_nobodys() {
    let place = Fixture::new(FileLimits::default()).await;
    let other = place.another_session().await;
    let sent = place.upload(&[("photo.png", &picture())]).await.unwrap();
    let id = sent[0].file.file_id;
    let files = &place.files;
    for refused in [
        files.open(other, id).await.err(),
        files.image(other, id).await.err(),
        files.delete(other, id).await.err(),
        files.attach(other, &refs(&sent)).await.err(),
    ] {
        assert_eq!(refused.unwrap().code, ErrorCode::FileNotFound);
    }
    let views = files
        .views(other, [&message(vec![sent[0].file.clone()])])
        .await;
    assert!(views.is_empty());
    assert!(files.image(place.session, id).await.is_ok());
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_in_the_workspace_leads_no_copy_out() {
    use std::os::unix::fs::symlink;
    let place = Fixture::new(FileLimits::default()).await;
    let outside = place.dir.path().join("outside");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::create_dir_all(place.workspace()).unwrap();
    symlink(&outside, place.workspace().join("uploads")).unwrap();
    let sent = place.upload(&[("a.txt", b"a")]).await.unwrap();
    assert!(
        place
            .files
            .attach(place.session, &refs(&sent))
            .await
            .is_err()
    );
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);

    std::fs::remove_file(place.workspace().join("uploads")).unwrap();
    std::fs::create_dir(place.workspace().join("uploads")).unwrap();
    let target = outside.join("victim.txt");
    std::fs::write(&target, "mine").unwrap();
    symlink(&target, place.workspace().join(&sent[0].file.path)).unwrap();
    place
        .files
        .attach(place.session, &refs(&sent))
        .await
        .unwrap();
    place
        .files
        .delete(place.session, sent[0].file.file_id)
        .await
        .unwrap();
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "mine");
}

#[tokio::test]
async fn images_of_tools_are_made_our_own_and_bounded() {
    let place = Fixture::new(FileLimits::default()).await;
    let image = |bytes: Vec<u8>| ToolImage {
        media_type: "image/png".to_owned(),
        bytes,
    };
    let mut given = vec![image(picture()), image(b"<svg onload=alert(1)>".to_vec())];
    given.extend((0..4).map(|_| image(picture())));
    let kept = place
        .files
        .keep_images(place.session, "camera", given)
        .await;
    assert_eq!((kept.files.len(), kept.views.len()), (3, 3));
    assert_eq!(kept.problems.len(), 2, "{:?}", kept.problems);
    assert_eq!(kept.files[0].name, "camera 1.png");
    let shown = place
        .files
        .image(place.session, kept.files[0].file_id)
        .await;
    assert_eq!(shown.unwrap().media_type, "image/png");
}

#[cfg(unix)]
#[tokio::test]
async fn whatever_is_stored_is_for_none_but_navi() {
    use std::os::unix::fs::PermissionsExt as _;

    let place = Fixture::new(FileLimits::default()).await;
    let sent: [(&str, &[u8]); 2] = [("a.txt", b"a"), ("b.png", &picture())];
    place.upload(&sent).await.unwrap();
    let image = ToolImage {
        media_type: "image/png".to_owned(),
        bytes: picture(),
    };
    let kept = place
        .files
        .keep_images(place.session, "camera", vec![image]);
    assert_eq!(kept.await.files.len(), 1);
    let shelf = place.files.shelf.of_session(place.session);
    let stored: Vec<_> = std::fs::read_dir(shelf).unwrap().collect();
    assert!(stored.len() >= 5, "{stored:?}");
    for file in stored {
        let mode = file.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[tokio::test]
async fn a_sweep_shortens_the_logs_of_all_sessions() {
    let place = Fixture::new(FileLimits::default()).await;
    let store = &place.files.store;
    let owner = OwnerId::new();
    let mut sessions = Vec::new();
    // More than one sweep looks at.
    for _ in 0..60 {
        let id = place.another_session().await;
        let loaded = store.take_session(id, &owner).await.unwrap();
        let told = [31, 29].iter().zip(1..).map(|(days, seq)| {
            Write::Event(EventRow {
                seq,
                run_id: None,
                kind: "notice".to_owned(),
                json: "{}".to_owned(),
                at: now() - TimeDelta::days(*days),
            })
        });
        let commit = Commit {
            session_id: id,
            owner: owner.clone(),
            epoch: loaded.epoch,
            writes: told.collect(),
        };
        assert_eq!(store.commit_group(vec![commit]).await, [Ok(())]);
        sessions.push(id);
    }
    let mut sweeper = place.sweeper(SystemTime::UNIX_EPOCH);
    for _ in 0..2 {
        sweeper = sweeper.sweep().await;
    }
    for id in sessions {
        let limits = PageLimits {
            items: 10,
            bytes: 1_000,
        };
        let after = |seq| LogRange {
            from: LogCursor { seq, chunk: 0 },
            to_seq: 2,
        };
        assert_eq!(store.log_page(id, after(0), limits).await, Ok(None));
        let left = store.log_page(id, after(1), limits).await.unwrap();
        assert_eq!(left.unwrap().items.len(), 1);
    }
}
