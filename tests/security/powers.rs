//! What is powerful, for those to whom nobody granted it: attacks on what an admin decides.

use std::fs;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Step};
use crate::person::Person;
use crate::server::{House, Server};

/// A service with accounts, and a folder with a secret that the filesystem tool may reach.
struct Place {
    model: FakeModel,
    server: Server,
    outside: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let model = FakeModel::start();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret.txt"), "the word is plum").unwrap();
        let allowed = outside.path().to_str().unwrap();
        let settings = [
            ("OLLAMA_HOST", &*model.url()),
            ("NAVI_ACCOUNTS", "on"),
            ("FS_ALLOWED_PATHS", allowed),
        ];
        let house = House::new(&settings);
        let skill = house.data_dir().join("skills/rhymes");
        fs::create_dir_all(&skill).unwrap();
        let text = "---\nname: rhymes\ndescription: Writes rhymes.\n---\nRhyme every line.\n";
        fs::write(skill.join("SKILL.md"), text).unwrap();
        let server = house.start();
        Self {
            model,
            server,
            outside,
        }
    }

    fn secret(&self) -> String {
        let path = self.outside.path().join("secret.txt");
        path.to_str().unwrap().to_owned()
    }

    /// What came of a call that somebody's model makes, with nobody asked.
    async fn call(&self, person: &Person, tool: &str, arguments: Value) -> String {
        let session = self.session(person).await;
        self.model.script(vec![Step::tool_call(tool, arguments)]);
        let body = json!({"content": "go on", "consent": "allow"});
        let path = format!("/sessions/{session}/messages");
        let (status, said) = person
            .call(&self.server, Method::POST, &path, Some(body))
            .await;
        assert!(status.is_success(), "{status} {said}");
        self.result(person, &session).await
    }

    async fn session(&self, person: &Person) -> String {
        let made = person.call(&self.server, Method::POST, "/sessions", Some(json!({})));
        made.await.1["session_id"].as_str().unwrap().to_owned()
    }

    /// What the last call of a session gave back.
    async fn result(&self, person: &Person, session: &str) -> String {
        let path = format!("/sessions/{session}");
        let snapshot = person.call(&self.server, Method::GET, &path, None).await.1;
        let messages = snapshot["messages"].as_array().unwrap();
        let mut results = messages.iter().filter(|it| it["role"] == "tool");
        let last = results.next_back().expect("a result")["content"].clone();
        last.as_str().unwrap().to_owned()
    }

    /// What an admin grants a person.
    async fn grant(&self, person: &Person, powers: Value) {
        let path = format!("/api/people/{}", person.id);
        let body = json!({"powers": powers});
        let (status, said) = self.server.call(Method::PATCH, &path, Some(body)).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{said}");
    }

    async fn tools(&self, person: &Person) -> Vec<String> {
        let listed = person.call(&self.server, Method::GET, "/agents/tools", None);
        let listed = listed.await.1;
        let names = listed.as_array().unwrap().iter();
        let names = names.map(|it| it["name"].as_str().unwrap().to_owned());
        names.collect()
    }
}

fn read(path: &str) -> Value {
    json!({"action": "read", "path": path})
}

const NOT_THEIRS: &str = "is not the user's to use";

#[tokio::test]
async fn what_nobody_granted() {
    let place = Place::new();
    let anna = Person::join(&place.server, "Anna", "user").await;
    let tools = place.tools(&anna).await;
    for withheld in ["terminal", "web_search", "home_assistant", "ssh", "skill"] {
        assert!(!tools.iter().any(|it| it == withheld), "{tools:?}");
    }
    assert!(tools.iter().any(|it| it == "filesystem"), "{tools:?}");
    for path in ["/skills", "/tools", "/mcp"] {
        let listed = anna.call(&place.server, Method::GET, path, None).await.1;
        assert_eq!(listed, json!([]), "{path}");
    }

    let said = place
        .call(&anna, "terminal", json!({"command": "echo x"}))
        .await;
    assert!(said.contains(NOT_THEIRS), "{said}");
    let said = place.call(&anna, "skill", json!({"name": "rhymes"})).await;
    assert!(said.contains(NOT_THEIRS), "{said}");
    let said = place.call(&anna, "filesystem", read(&place.secret())).await;
    assert!(!said.contains("plum"), "{said}");
    // Her model is not even told of them.
    let told: String = place
        .model
        .chats()
        .iter()
        .map(|chat| chat.body.to_string())
        .collect();
    let outside = place.outside.path().to_str().unwrap();
    assert!(!told.contains("Writes rhymes"));
    let chats = place.model.chats();
    let offered = chats
        .iter()
        .filter_map(|chat| chat.body["tools"].as_array());
    let mut names = offered.flatten().map(|tool| &tool["function"]["name"]);
    assert!(names.clone().any(|name| name == "filesystem"));
    assert!(!names.any(|name| name == "terminal" || name == "skill"));
    assert!(!told.contains(&format!("you may also use: {outside}")));
    // Nor may she grant it to herself.
    let path = format!("/api/people/{}", anna.id);
    let body = json!({"powers": ["terminal"]});
    let (status, _) = anna
        .call(&place.server, Method::PATCH, &path, Some(body))
        .await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn what_is_granted_to_one_and_to_all() {
    let place = Place::new();
    let anna = Person::join(&place.server, "Anna", "user").await;
    let borys = Person::join(&place.server, "Borys", "user").await;
    place
        .grant(&anna, json!(["outside_files", "skills:rhymes"]))
        .await;
    let said = place.call(&anna, "filesystem", read(&place.secret())).await;
    assert!(said.contains("plum"), "{said}");
    let said = place.call(&anna, "skill", json!({"name": "rhymes"})).await;
    assert_eq!(said, "Rhyme every line.");
    let said = place
        .call(&borys, "filesystem", read(&place.secret()))
        .await;
    assert!(!said.contains("plum"), "{said}");

    let body = json!({"users": ["skills"]});
    let (status, _) = place
        .server
        .call(Method::PUT, "/api/powers", Some(body))
        .await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let said = place.call(&borys, "skill", json!({"name": "rhymes"})).await;
    assert_eq!(said, "Rhyme every line.");
    let powers = place.server.get("/api/powers").await;
    assert_eq!(powers["users"], json!(["skills"]));
    let grantable = powers["grantable"].as_array().unwrap();
    assert!(grantable.contains(&json!("skills:rhymes")), "{powers}");
    let people = place.server.get("/api/people").await;
    let people = people.as_array().unwrap().iter();
    let granted: Vec<_> = people.map(|it| it["powers"].clone()).collect();
    let hers = json!(["outside_files", "skills:rhymes"]);
    assert_eq!(granted, [json!([]), hers, json!([])]);
    let record = place.server.get("/api/record").await;
    let lines = record.as_array().unwrap().iter();
    let lines: Vec<_> = lines
        .filter(|line| line["what"] == "powers_granted")
        .map(|line| line["about"].as_str().unwrap())
        .collect();
    assert_eq!(
        lines,
        ["users: skills", "Anna: outside_files, skills:rhymes"]
    );
}

#[tokio::test]
async fn nonsense_is_not_granted() {
    let place = Place::new();
    let anna = Person::join(&place.server, "Anna", "user").await;
    let path = format!("/api/people/{}", anna.id);
    let many: Vec<String> = (0..201).map(|number| format!("ssh:h{number}")).collect();
    for powers in [
        json!(["root"]),
        json!(["terminal:ls"]),
        json!(["mcp:"]),
        json!("ssh"),
        json!(many),
    ] {
        let body = json!({ "powers": powers });
        let (status, said) = place.server.call(Method::PATCH, &path, Some(body)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{said}");
    }
    let (status, _) = place
        .server
        .call(Method::PATCH, &path, Some(json!({"powrs": []})))
        .await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let nobody = "/api/people/0190a0b0-0000-7000-8000-0000000000ff";
    let body = json!({"powers": ["ssh"]});
    let (status, _) = place.server.call(Method::PATCH, nobody, Some(body)).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

/// An admin takes it back while the person is asked, or is an admin no more: what they allow then
/// is not done.
#[tokio::test]
async fn a_power_that_is_taken_back_while_its_call_waits() {
    let place = Place::new();
    let anna = Person::join(&place.server, "Anna", "user").await;
    let olha = Person::join(&place.server, "Olha", "admin").await;
    place.grant(&anna, json!(["outside_files"])).await;
    for (person, by_role) in [(&anna, false), (&olha, true)] {
        let session = place.session(person).await;
        let path = place.outside.path().join(format!("{}.txt", person.name));
        let arguments = json!({"action": "write", "path": path, "content": "x"});
        place
            .model
            .script(vec![Step::tool_call("filesystem", arguments)]);
        let socket = format!("/ws/sessions/{session}");
        let by = |token: &str| [("authorization", format!("Bearer {token}"))];
        let mut tab = place
            .server
            .socket_with(&socket, &by(&person.token))
            .await
            .unwrap();
        tab.send(&json!({"type": "message", "content": "write"}))
            .await;
        let asked = tab.next_of("approval_requested").await;
        if by_role {
            let demoted = place.server.house().run(&["user", "role", "Olha", "user"]);
            assert!(demoted.status.success(), "{demoted:?}");
            tab.closed().await;
            tab = place
                .server
                .socket_with(&socket, &by(&person.token))
                .await
                .unwrap();
        } else {
            place.grant(person, json!([])).await;
        }
        let id = &asked["approval_id"];
        tab.send(&json!({"type": "approve", "approval_id": id, "decision": "once"}))
            .await;
        tab.next_of("stream_end").await;
        assert!(!path.exists(), "{path:?}");
        let said = place.result(person, &session).await;
        assert!(!said.contains("created"), "{said}");
    }
}
