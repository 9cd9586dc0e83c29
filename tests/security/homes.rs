//! Several people's files and commands on one machine: what one leaves, and what another reaches
//! of it. By other user ids, too, where these tests run as root.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use reqwest::{Method, StatusCode, multipart};
use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Step};
use crate::person::{Person, answered};
use crate::processes::{NOBODY, begun, is_root, marker, processes_with};
use crate::server::{House, PATIENCE, Server, TOKEN, client};

/// A service, and its model.
struct Place {
    model: FakeModel,
    server: Server,
}

impl Place {
    fn new(variables: &[(&str, &str)]) -> Self {
        let model = FakeModel::start();
        let url = model.url();
        let all = [("OLLAMA_HOST", url.as_str()), ("NAVI_ACCOUNTS", "on")];
        let server = House::new(&all).with(variables).start();
        Self { model, server }
    }

    /// Ends it, and starts it with these settings.
    fn restarted(self, variables: &[(&str, &str)]) -> Self {
        let Self { model, server } = self;
        let house = server.house().clone().with(variables);
        drop(server);
        let server = house.start();
        Self { model, server }
    }

    /// Somebody who may run commands.
    async fn person(&self, name: &str) -> Person {
        let person = Person::join(&self.server, name, "user").await;
        let path = format!("/api/people/{}", person.id);
        let powers = json!({"powers": ["terminal"]});
        let (status, said) = self.server.call(Method::PATCH, &path, Some(powers)).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{said}");
        person
    }

    async fn ask(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (StatusCode, Value) {
        let request = client().request(method, format!("{}{path}", self.server.url));
        answered(request.bearer_auth(token), body).await
    }

    async fn session(&self, token: &str) -> String {
        let made = self.ask(token, Method::POST, "/sessions", Some(json!({})));
        made.await.1["session_id"].as_str().unwrap().to_owned()
    }

    /// What came of a call that somebody's model makes, with nobody asked.
    async fn call(&self, token: &str, session: &str, tool: &str, arguments: Value) -> String {
        let body = json!({"content": "go on", "consent": "allow"});
        self.called(token, session, (tool, arguments), body).await
    }

    async fn called(
        &self,
        token: &str,
        session: &str,
        (tool, arguments): (&str, Value),
        body: Value,
    ) -> String {
        self.model.script(vec![Step::tool_call(tool, arguments)]);
        let path = format!("/sessions/{session}/messages");
        let (status, said) = self.ask(token, Method::POST, &path, Some(body)).await;
        assert!(status.is_success(), "{status} {said}");
        let path = format!("/sessions/{session}");
        let snapshot = self.ask(token, Method::GET, &path, None).await.1;
        let messages = snapshot["messages"].as_array().unwrap();
        let mut results = messages.iter().filter(|it| it["role"] == "tool");
        let last = results.next_back().expect("a result")["content"].clone();
        last.as_str().unwrap().to_owned()
    }

    async fn run(&self, token: &str, session: &str, command: &str) -> String {
        self.call(token, session, "terminal", run(command)).await
    }

    async fn write(&self, token: &str, session: &str, path: &str, content: &str) -> String {
        let arguments = json!({"action": "write", "path": path, "content": content});
        self.call(token, session, "filesystem", arguments).await
    }

    async fn upload(&self, token: &str, session: &str, bytes: usize) -> (StatusCode, Value) {
        let part = multipart::Part::bytes(vec![b'x'; bytes]).file_name("x.txt");
        let form = multipart::Form::new().part("file", part);
        let path = format!("{}/sessions/{session}/files", self.server.url);
        let request = client().post(path).bearer_auth(token);
        answered(request.multipart(form), None).await
    }

    fn sessions(&self) -> PathBuf {
        self.server.house().data_dir().join("session_files")
    }

    fn home(&self, person: &Person) -> PathBuf {
        self.sessions().join(&person.id)
    }
}

fn run(command: &str) -> Value {
    json!({"action": "run", "command": command})
}

/// The first line that a command wrote, as a number.
fn number(said: &str) -> u32 {
    let line = said.lines().next().unwrap_or_default();
    line.parse().unwrap_or_else(|_| panic!("no number: {said}"))
}

fn owner(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().uid()
}

fn open(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn workspaces_from_before_there_were_people() {
    let place = Place::new(&[("NAVI_ACCOUNTS", "local")]);
    let session = place.session(TOKEN).await;
    place.write(TOKEN, &session, "note.txt", "first").await;
    place.write(TOKEN, &session, "note.txt", "second").await;
    let (status, said) = place.upload(TOKEN, &session, 10).await;
    assert_eq!(status, StatusCode::CREATED, "{said}");
    let before = place.sessions().join(&session);
    assert!(before.join("note.txt").exists());

    let place = place.restarted(&[("NAVI_ACCOUNTS", "on")]);
    let (_, account) = place.ask(TOKEN, Method::GET, "/api/account", None).await;
    let home = place.sessions().join(account["id"].as_str().unwrap());
    assert!(!before.exists() && home.join(&session).join("note.txt").exists());
    // All of it goes on there: what was changed is taken back, and what was sent in is at hand.
    let changes = format!("/sessions/{session}/changes");
    let (_, listed) = place.ask(TOKEN, Method::GET, &changes, None).await;
    let newest = listed["changes"][0]["id"]
        .as_str()
        .unwrap_or_else(|| panic!("{listed}"));
    let undo = format!("{changes}/{newest}/undo");
    let (status, said) = place.ask(TOKEN, Method::POST, &undo, None).await;
    assert!(status.is_success(), "{status} {said}");
    let note = fs::read_to_string(home.join(&session).join("note.txt"));
    assert_eq!(note.unwrap(), "first");
    let listing = format!("/sessions/{session}/workspace?path=uploads");
    let (_, uploads) = place.ask(TOKEN, Method::GET, &listing, None).await;
    assert_eq!(uploads["entries"].as_array().unwrap().len(), 1, "{uploads}");

    // Another's are beside it, and what one deletes waits with them.
    let anna = Person::join(&place.server, "Anna", "user").await;
    let hers = place.session(&anna.token).await;
    place.write(&anna.token, &hers, "a.txt", "hers").await;
    let workspace = place.home(&anna).join(&hers);
    assert!(workspace.join("a.txt").exists());
    let path = format!("/sessions/{hers}");
    place.ask(&anna.token, Method::DELETE, &path, None).await;
    assert!(!workspace.exists() && place.home(&anna).join(".trash").join(&hers).exists());
    let restore = format!("{path}/restore");
    let (status, said) = place.ask(&anna.token, Method::POST, &restore, None).await;
    assert!(status.is_success(), "{status} {said}");
    assert!(workspace.join("a.txt").exists());

    let place = place.restarted(&[("NAVI_ACCOUNTS", "local")]);
    assert!(before.join("note.txt").exists() && workspace.exists());
    let (_, uploads) = place.ask(TOKEN, Method::GET, &listing, None).await;
    assert_eq!(uploads["entries"].as_array().unwrap().len(), 1, "{uploads}");
}

#[tokio::test]
async fn commands_of_two_people() {
    if !is_root() {
        return;
    }
    let place = Place::new(&[("NAVI_SANDBOX_UIDS", "300000-300010")]);
    let (anna, borys) = (place.person("Anna").await, place.person("Borys").await);
    let mut ids = Vec::new();
    for person in [&anna, &borys] {
        let session = place.session(&person.token).await;
        place
            .write(&person.token, &session, "ours", "by Navi")
            .await;
        let command = "id -u; id -G; id -un; echo more >>ours && touch theirs; cat /etc/group";
        let said = place.run(&person.token, &session, command).await;
        let id = number(&said);
        let lines: Vec<&str> = said.lines().take(3).collect();
        assert_eq!(
            lines,
            [&id.to_string(), &id.to_string(), &format!("navi-{id}")]
        );
        assert!(
            said.contains("exit code 0") && said.contains("root:x:0:"),
            "{said}"
        );
        let workspace = place.home(person).join(&session);
        for name in ["ours", "theirs", ""] {
            assert_eq!(owner(&workspace.join(name)), id, "{name}");
        }
        // Who has this id passes the home, and makes nothing there.
        let home = fs::metadata(place.home(person)).unwrap();
        assert_eq!(
            (home.uid(), home.gid(), home.mode() & 0o777),
            (0, id, 0o710)
        );
        // The next session's, and after a restart, are the same.
        let other = place.session(&person.token).await;
        assert_eq!(number(&place.run(&person.token, &other, "id -u").await), id);
        ids.push(id);
    }
    assert_eq!(ids, [300_000, 300_001]);
    let place = place.restarted(&[("NAVI_SANDBOX_UIDS", "400000-400010")]);
    let session = place.session(&borys.token).await;
    let said = place.run(&borys.token, &session, "id -u").await;
    assert_eq!(number(&said), 300_001, "a number stays its person's");
}

/// Where nothing else is between them.
#[tokio::test]
async fn files_and_processes_of_another_person_without_namespaces() {
    if !is_root() {
        return;
    }
    let house = [
        ("FAILPOINT_NO_NAMESPACES", "1"),
        ("NAVI_SANDBOX_USER", "nobody"),
    ];
    let place = Place::new(&house);
    let data = place.server.house().data_dir();
    for above in [data.parent().unwrap(), &data, &place.sessions()] {
        open(above, 0o711);
    }
    let (anna, borys) = (place.person("Anna").await, place.person("Borys").await);
    let (hers, his) = (
        place.session(&anna.token).await,
        place.session(&borys.token).await,
    );
    let word = marker();
    let background =
        json!({"action": "run", "command": format!("sleep {word}"), "background": true});
    place.call(&anna.token, &hers, "terminal", background).await;
    begun(&word).await;
    let said = place
        .run(
            &anna.token,
            &hers,
            "echo secret >note; chmod 777 . note; pwd",
        )
        .await;
    let workspace = place.home(&anna).join(&hers);
    assert!(said.contains(hers.as_str()), "{said}");

    let path = workspace.display();
    // Names and times are nothing that Landlock holds: her own command has them.
    let look = format!("stat {path} {path}/note");
    let said = place.run(&anna.token, &hers, &look).await;
    assert!(said.contains("exit code 0"), "{said}");
    for attack in [
        look.clone(),
        format!("cat {path}/note"),
        format!("chmod 600 {path}/note"),
        format!("touch {path}/new"),
        format!("ls {}", place.home(&anna).display()),
    ] {
        let said = place.run(&borys.token, &his, &attack).await;
        assert!(said.contains("ermission denied"), "{attack}: {said}");
    }
    for pid in processes_with(&word) {
        let said = place
            .run(&borys.token, &his, &format!("kill -9 {pid}"))
            .await;
        assert!(!said.contains("exit code 0"), "{said}");
        let look = format!("cat /proc/{pid}/environ");
        let said = place.run(&borys.token, &his, &look).await;
        assert!(!said.contains("exit code 0"), "{said}");
    }
    assert!(!processes_with(&word).is_empty());
}

#[tokio::test]
async fn what_a_former_user_of_the_sandbox_left() {
    if !is_root() {
        return;
    }
    let place = Place::new(&[("NAVI_ACCOUNTS", "local")]);
    let session = place.session(TOKEN).await;
    let made = "echo a >made; mkdir folder; echo b >folder/inner; chmod 700 folder; ls";
    place.run(TOKEN, &session, made).await;
    let workspace = place.sessions().join(&session);
    assert_eq!(owner(&workspace.join("folder/inner")), NOBODY);

    let place = place.restarted(&[("NAVI_ACCOUNTS", "on")]);
    let goes_on = "id -u && echo more >>made && echo more >>folder/inner && touch newer";
    let said = place.run(TOKEN, &session, goes_on).await;
    assert!(said.contains("exit code 0"), "{said}");
    let id = number(&said);
    assert!(id != 0 && id != NOBODY, "{id}");
    let (_, account) = place.ask(TOKEN, Method::GET, "/api/account", None).await;
    let home = place.sessions().join(account["id"].as_str().unwrap());
    assert_eq!(owner(&home.join(&session).join("folder/inner")), id);

    let place = place.restarted(&[("NAVI_ACCOUNTS", "local")]);
    let said = place
        .run(TOKEN, &session, &format!("{goes_on} && rm -r folder"))
        .await;
    assert!(said.contains("exit code 0"), "{said}");
    assert_eq!(
        (number(&said), owner(&workspace.join("newer"))),
        (NOBODY, NOBODY)
    );
}

#[tokio::test]
async fn a_command_that_a_participant_asked_for() {
    if !is_root() {
        return;
    }
    let place = Place::new(&[]);
    let (anna, olha) = (place.person("Anna").await, place.person("Olha").await);
    let (hers, of_olha) = (
        place.session(&anna.token).await,
        place.session(&olha.token).await,
    );
    let id = number(&place.run(&anna.token, &hers, "id -u").await);
    let other = number(&place.run(&olha.token, &of_olha, "id -u").await);
    assert_ne!(id, other);
    let mode = format!("/sessions/{hers}/mode");
    let set = place.ask(
        &anna.token,
        Method::PATCH,
        &mode,
        Some(json!({"mode": "auto"})),
    );
    assert!(set.await.0.is_success());
    let people = format!("/sessions/{hers}/people");
    let added = place.ask(
        &anna.token,
        Method::POST,
        &people,
        Some(json!({"name": "Olha"})),
    );
    assert_eq!(added.await.0, StatusCode::CREATED);
    let asked = json!({"content": "run it"});
    let call = ("terminal", run("id -u; touch by-olha"));
    let said = place.called(&olha.token, &hers, call, asked).await;
    assert_eq!(number(&said), id, "the owner's");
    assert_eq!(owner(&place.home(&anna).join(&hers).join("by-olha")), id);
}

#[tokio::test]
async fn files_of_a_person_who_was_removed_and_the_one_who_comes_next() {
    let place = Place::new(&[("NAVI_SANDBOX_UIDS", "300000-300001")]);
    let anna = place.person("Anna").await;
    let session = place.session(&anna.token).await;
    let said = place
        .run(&anna.token, &session, "echo x >secret; id -u")
        .await;
    let home = place.home(&anna);
    assert!(home.join(&session).join("secret").exists(), "{said}");
    let path = format!("/api/people/{}", anna.id);
    let (status, said) = place.server.call(Method::DELETE, &path, None).await;
    assert!(status.is_success(), "{said}");
    // A start sweeps at once.
    let place = place.restarted(&[]);
    let until = Instant::now() + PATIENCE;
    while home.exists() {
        assert!(Instant::now() < until, "{} is left", home.display());
        // No event tells of it.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    if !is_root() {
        return;
    }
    let borys = place.person("Borys").await;
    let his = place.session(&borys.token).await;
    let id = number(&place.run(&borys.token, &his, "id -u").await);
    assert_eq!(id, 300_001, "hers is nobody's any more");
    // None is shared where there are no more.
    let eve = place.person("Eve").await;
    let of_eve = place.session(&eve.token).await;
    let said = place.run(&eve.token, &of_eve, "id -u").await;
    assert!(said.contains("no user id is left"), "{said}");
}

#[test]
fn doctor_says_what_is_between_the_commands_of_people() {
    let said = |variables: &[(&str, &str)]| {
        let said = House::new(variables).run(&["doctor"]);
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let line = said.lines().find(|line| line.contains("sandbox"));
        line.unwrap_or_else(|| panic!("{said}")).to_owned()
    };
    let on = ("NAVI_ACCOUNTS", "on");
    assert!(!said(&[]).contains("people"));
    let refused = House::new(&[("NAVI_SANDBOX_UIDS", "60000-70000")]).run(&["doctor"]);
    let why = String::from_utf8_lossy(&refused.stderr).into_owned()
        + &String::from_utf8_lossy(&refused.stdout);
    assert!(
        why.contains("NAVI_SANDBOX_UIDS") && why.contains("without 65534"),
        "{why}"
    );
    if !is_root() {
        assert!(said(&[on]).contains("as Navi's own user, each in namespaces of its own"));
        return;
    }
    let range = ("NAVI_SANDBOX_UIDS", "300000-300010");
    let each = "each person's run under a user id of their own instead, of 300000-300010";
    assert!(said(&[on, range]).contains(each), "{}", said(&[on, range]));
    let none = said(&[on, ("NAVI_SANDBOX_UIDS", "none")]);
    assert!(none.contains("those of all people run as nobody"), "{none}");
    let taken = said(&[on, range, ("NAVI_SANDBOX_USER", "300001")]);
    assert!(taken.contains("the user 300001 is one of them"), "{taken}");
}

#[tokio::test]
async fn files_that_commands_leave_in_many_conversations() {
    let place = Place::new(&[("NAVI_PERSON_FILES_MB", "2")]);
    let (anna, borys) = (place.person("Anna").await, place.person("Borys").await);
    let (first, second) = (
        place.session(&anna.token).await,
        place.session(&anna.token).await,
    );
    let fill = "head -c 1500000 /dev/zero >big && echo filled";
    for session in [&first, &second] {
        let said = place.run(&anna.token, session, fill).await;
        assert!(said.contains("filled"), "{said}");
    }
    // By whatever way, and in each conversation.
    let full = "there is no room left for the files of the user's conversations";
    for session in [&first, &second] {
        let said = place.run(&anna.token, session, "echo x").await;
        assert!(
            said.contains(full) && said.contains("NAVI_PERSON_FILES_MB"),
            "{said}"
        );
        let said = place.write(&anna.token, session, "note.txt", "x").await;
        assert!(said.contains(full), "{said}");
        let (status, said) = place.upload(&anna.token, session, 1000).await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{said}");
        let why = said["message"].as_str().unwrap();
        assert!(why.contains("NAVI_PERSON_FILES_MB"), "{why}");
    }
    // Nobody else is kept from anything.
    let his = place.session(&borys.token).await;
    let said = place.run(&borys.token, &his, fill).await;
    assert!(said.contains("filled"), "{said}");
    // What was deleted counts until it is gone for good.
    let path = format!("/sessions/{second}");
    place.ask(&anna.token, Method::DELETE, &path, None).await;
    let said = place.run(&anna.token, &first, "echo x").await;
    assert!(said.contains(full), "{said}");
    // Room can be made with what there is.
    let read = json!({"action": "list"});
    let said = place.call(&anna.token, &first, "filesystem", read).await;
    assert!(said.contains("big"), "{said}");
    let delete = json!({"action": "delete", "path": "big"});
    let said = place.call(&anna.token, &first, "filesystem", delete).await;
    assert!(said.contains("for good"), "{said}");
    let said = place.run(&anna.token, &first, "echo x").await;
    assert!(said.contains("exit code 0"), "{said}");
}

#[tokio::test]
async fn an_upload_of_a_participant_counts_for_the_owner() {
    let place = Place::new(&[("NAVI_PERSON_FILES_MB", "1")]);
    let (anna, olha) = (place.person("Anna").await, place.person("Olha").await);
    let hers = place.session(&anna.token).await;
    let people = format!("/sessions/{hers}/people");
    let added = place.ask(
        &anna.token,
        Method::POST,
        &people,
        Some(json!({"name": "Olha"})),
    );
    assert_eq!(added.await.0, StatusCode::CREATED);
    let half = 600 * 1024;
    assert_eq!(
        place.upload(&olha.token, &hers, half).await.0,
        StatusCode::CREATED
    );
    let (status, said) = place.upload(&olha.token, &hers, half).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{said}");
    let of_olha = place.session(&olha.token).await;
    assert_eq!(
        place.upload(&olha.token, &of_olha, half).await.0,
        StatusCode::CREATED
    );
}
