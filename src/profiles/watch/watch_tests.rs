//! Changes of files reach whoever is to be told.

use std::fs;
use std::os::unix::fs::symlink;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;
use crate::profiles::profiles_tests::{House, house, minimal};
use crate::settings::Persona;

/// Far less than the next unasked look: what comes in this time came by a word of change.
const PATIENCE: Duration = Duration::from_secs(20);

struct Updates {
    sets: UnboundedReceiver<ProfileSet>,
    _watch: AbortOnDropHandle<()>,
}

impl Updates {
    /// Waits for a set of which this is true.
    async fn until(&mut self, is: impl Fn(&ProfileSet) -> bool) -> ProfileSet {
        let found = async {
            loop {
                let set = self.sets.recv().await.unwrap();
                if is(&set) {
                    return set;
                }
            }
        };
        timeout(PATIENCE, found).await.expect("it was not told")
    }

    /// Waits until profile `own` has this prompt.
    async fn prompt(&mut self, prompt: &str) -> ProfileSet {
        self.until(|set| own(set) == Some(prompt)).await
    }
}

fn own(set: &ProfileSet) -> Option<&str> {
    let own = set.profiles.iter().find(|profile| profile.id == "own");
    own.map(|profile| profile.system_prompt.as_str())
}

fn watched(house: &House, closing: &CancellationToken) -> Updates {
    let mut files = house.files.clone();
    let in_force = files.read();
    let (tx, sets) = unbounded_channel();
    let put_in_force = move |set| {
        let _ = tx.send(set);
    };
    Updates {
        sets,
        _watch: watch(files, in_force, put_in_force, closing.clone()),
    }
}

#[tokio::test]
async fn a_folder_that_comes_later_is_seen_and_so_is_each_change_in_it() {
    let house = house(|_| Persona::BuiltIn);
    let mut told = watched(&house, &CancellationToken::new());
    house.write("profiles/own.toml", &minimal("own", "One."));
    told.prompt("One.").await;
    house.write("profiles/own.toml", "broken");
    let set = told.until(|set| !set.warnings.is_empty()).await;
    assert_eq!(own(&set), Some("One."));
    // As most editors save: beside it, then over it.
    house.write("profiles/.own.toml.new", &minimal("own", "Two."));
    let folder = house.dir.path().join("profiles");
    fs::rename(folder.join(".own.toml.new"), folder.join("own.toml")).unwrap();
    let set = told.prompt("Two.").await;
    assert_eq!(set.warnings, []);
    house.remove("profiles/own.toml");
    told.until(|set| own(set).is_none()).await;
}

#[tokio::test]
async fn a_folder_that_is_replaced_is_watched_on() {
    let house = house(|_| Persona::BuiltIn);
    house.write("profiles/own.toml", &minimal("own", "One."));
    house.write("others/own.toml", &minimal("own", "Two."));
    let mut told = watched(&house, &CancellationToken::new());
    let path = |name: &str| house.dir.path().join(name);
    // The first look may still come: it tells nothing, since nothing changed.
    house.write("profiles/more.toml", &minimal("more", "x"));
    told.until(|set| set.profiles.len() == 5).await;
    fs::rename(path("profiles"), path("away")).unwrap();
    fs::rename(path("others"), path("profiles")).unwrap();
    told.prompt("Two.").await;
    house.write("profiles/own.toml", &minimal("own", "Three."));
    told.prompt("Three.").await;
    fs::remove_dir_all(path("profiles")).unwrap();
    told.until(|set| own(set).is_none()).await;
    house.write("profiles/own.toml", &minimal("own", "Four."));
    told.prompt("Four.").await;
}

#[tokio::test]
async fn a_personas_file_is_watched_where_it_is() {
    let house = house(|dir| Persona::File(dir.join("who/persona.txt")));
    let mut told = watched(&house, &CancellationToken::new());
    house.write("who/persona.txt", "Be a cat.");
    let set = told.until(|set| set.persona == "Be a cat.").await;
    assert_eq!(set.warnings, []);
    house.write("who/persona.txt", "Be a dog.");
    told.until(|set| set.persona == "Be a dog.").await;
}

#[tokio::test]
async fn what_no_word_comes_of_is_seen_at_the_next_look() {
    let house = house(|_| Persona::BuiltIn);
    // A change behind a link makes no event in the folder.
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("own.toml");
    fs::write(&target, minimal("own", "One.")).unwrap();
    let folder = house.dir.path().join("profiles");
    fs::create_dir(&folder).unwrap();
    symlink(&target, folder.join("own.toml")).unwrap();
    let mut files = house.files.clone();
    let in_force = files.read();
    assert_eq!(own(&in_force), Some("One."));
    let (tx, sets) = unbounded_channel();
    let changed = Arc::new(Notify::new());
    let watches = Watches::new(files.places(), Arc::clone(&changed));
    let pace = Pace {
        rescan: Duration::from_millis(20),
        ..PACE
    };
    let put_in_force = move |set| {
        let _ = tx.send(set);
    };
    let following = follow(files, watches, in_force, changed, put_in_force, pace);
    let mut told = Updates {
        sets,
        _watch: AbortOnDropHandle::new(tokio::spawn(following)),
    };
    fs::write(&target, minimal("own", "Two.")).unwrap();
    told.prompt("Two.").await;
}

#[tokio::test]
async fn it_ends_with_the_service() {
    let house = house(|_| Persona::BuiltIn);
    let closing = CancellationToken::new();
    let mut told = watched(&house, &closing);
    house.write("profiles/own.toml", &minimal("own", "One."));
    told.prompt("One.").await;
    closing.cancel();
    let next = timeout(PATIENCE, told.sets.recv()).await;
    assert_eq!(next.expect("it goes on"), None);
}
