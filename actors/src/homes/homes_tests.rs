use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::protocol::approval::ConsentMode;
use crate::protocol::ids::OwnerId;
use crate::protocol::people::UserRole;
use crate::services::now;
use crate::store::{Location, NewSession, Store, StoreConfig};

/// An installation with a session of its machine's user and one of Ann.
struct Place {
    dir: TempDir,
    store: Store,
    ann: UserId,
    sessions: [(UserId, SessionId); 2],
}

impl Place {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let location = Location::Sqlite(dir.path().join("navi.db"));
        let store = Store::open(&StoreConfig { location }).await.unwrap();
        let ann = store.create_user("Ann", UserRole::User).await.unwrap().id;
        let sessions = [LOCAL_USER, ann].map(|owner| (owner, SessionId::new()));
        for (owner, id) in sessions {
            add_session(&store, owner, id).await;
        }
        fs::create_dir(dir.path().join("sessions")).unwrap();
        Self {
            dir,
            store,
            ann,
            sessions,
        }
    }

    fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("sessions")
    }

    /// Everything that a session has, where a program had it that knew no homes.
    fn lay(&self, session: SessionId) {
        for place in places_in(&self.path(), &session.to_string()) {
            fs::create_dir_all(&place).unwrap();
            fs::write(place.join("note"), session.to_string()).unwrap();
        }
    }

    async fn settle(&self, homes: &Homes) {
        homes.settle(&self.store).await.unwrap();
    }

    /// Whether all of a session is there, and is its own.
    fn is_at(home: &Path, session: SessionId) -> bool {
        let name = session.to_string();
        let notes = places_in(home, &name).map(|place| fs::read_to_string(place.join("note")));
        notes.iter().all(|note| note.as_ref().ok() == Some(&name))
    }
}

async fn add_session(store: &Store, user_id: UserId, id: SessionId) {
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
}

#[tokio::test]
async fn who_was_alone_with_accounts_has_their_workspaces_back() {
    let dir = tempfile::tempdir().unwrap();
    let location = Location::Sqlite(dir.path().join("navi.db"));
    let store = Store::open(&StoreConfig { location }).await.unwrap();
    let (sessions, session) = (dir.path().join("sessions"), SessionId::new());
    add_session(&store, LOCAL_USER, session).await;
    let place = sessions.join(session.to_string());
    fs::create_dir_all(&place).unwrap();
    let each = Homes::of_each(sessions.clone());
    each.settle(&store).await.unwrap();
    assert!(!place.exists() && each.workspace(LOCAL_USER, session).exists());
    let one = Homes::from(sessions);
    one.settle(&store).await.unwrap();
    assert!(place.exists());
}

#[tokio::test]
async fn workspaces_go_home_when_people_come_and_back_when_they_leave() {
    let place = Place::new().await;
    let [(_, of_local), (_, of_ann)] = place.sessions;
    let stranger = SessionId::new();
    for session in [of_local, of_ann, stranger] {
        place.lay(session);
    }
    let dir = place.path();
    let (each, one) = (Homes::of_each(dir.clone()), Homes::from(dir.clone()));
    let home = |person: UserId| dir.join(person.to_string());

    // On one's own machine what is one's own stays where it is.
    place.settle(&one).await;
    assert!(Place::is_at(&dir, of_local));
    for _ in 0..2 {
        place.settle(&each).await;
        for (owner, session) in place.sessions {
            assert_eq!(
                each.workspace(owner, session),
                home(owner).join(session.to_string())
            );
            assert!(Place::is_at(&home(owner), session));
        }
    }
    place.settle(&one).await;
    assert!(Place::is_at(&dir, of_local) && Place::is_at(&home(place.ann), of_ann));
    assert!(Place::is_at(&dir, stranger), "nobody knows whose it is");
}

#[tokio::test]
async fn a_move_that_was_cut_off_goes_on_and_what_is_there_twice_stays() {
    let place = Place::new().await;
    let [(_, of_local), (_, of_ann)] = place.sessions;
    place.lay(of_local);
    place.lay(of_ann);
    let homes = Homes::of_each(place.path());
    // One of three was moved when the process was killed.
    let first = homes.workspace(place.ann, of_ann);
    fs::create_dir_all(homes.of(place.ann)).unwrap();
    fs::rename(place.path().join(of_ann.to_string()), &first).unwrap();
    // An older program has made another one since.
    let twice = homes.workspace(LOCAL_USER, of_local);
    fs::create_dir_all(&twice).unwrap();
    fs::write(twice.join("newer"), "").unwrap();
    place.settle(&homes).await;
    assert!(Place::is_at(&homes.of(place.ann), of_ann));
    assert!(twice.join("newer").exists());
    let left = place.path().join(of_local.to_string()).join("note");
    assert_eq!(fs::read_to_string(left).unwrap(), of_local.to_string());
}

#[tokio::test]
async fn a_home_goes_with_its_person_and_never_the_directory_of_all() {
    let place = Place::new().await;
    let dir = place.path();
    let (each, one) = (Homes::of_each(dir.clone()), Homes::from(dir.clone()));
    let file = each.of(place.ann).join("left/file");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "").unwrap();
    one.remove(LOCAL_USER).unwrap();
    assert!(file.exists());
    each.remove(place.ann).unwrap();
    each.remove(place.ann).unwrap();
    assert!(!each.of(place.ann).exists() && dir.exists());
}
