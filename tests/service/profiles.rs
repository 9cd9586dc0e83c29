//! Profiles and the persona: what is told of them, and that their files may change while Navi
//! runs.

use std::fs;

use serde_json::{Value, json};

use crate::fake_model::FakeModel;
use crate::server::{House, Server, Socket};

fn own(prompt: &str) -> String {
    format!(
        "id = \"own\"\nname = \"Own\"\ndescription = \"Mine\"\nsystem_prompt = \"{prompt}\"\n\
         enabled_tools = [\"todo\"]\ntemperature = 0.5\nplanning_enabled = true\n"
    )
}

/// Waits until the page is told a status whose warnings about `own.toml` are of this number.
async fn warned(page: &mut Socket, count: usize) -> Vec<Value> {
    loop {
        let frame = page.next_of("status").await;
        let warnings = frame["status"]["warnings"].as_array().unwrap();
        let about = warnings
            .iter()
            .filter(|warning| warning.as_str().unwrap().contains("own.toml"));
        let about: Vec<Value> = about.cloned().collect();
        if about.len() == count {
            return about;
        }
    }
}

async fn profile(server: &Server, id: &str) -> Option<Value> {
    let profiles = server.get("/agents/profiles").await;
    let mut profiles = profiles.as_array().unwrap().iter();
    profiles.find(|profile| profile["id"] == id).cloned()
}

#[tokio::test]
async fn a_profiles_file_may_change_while_navi_runs() {
    let house = House::new(&[]);
    let server = house.start();
    let mut page = server.socket("/ws/sessions").await;
    page.next_of("sessions").await;
    assert_eq!(profile(&server, "own").await, None);

    // The folder is not there before, and comes with the whole file in it.
    let folder = house.data_dir().join("profiles");
    let aside = house.data_dir().join("aside");
    fs::create_dir(&aside).unwrap();
    fs::write(aside.join("own.toml"), own("One.")).unwrap();
    fs::rename(&aside, &folder).unwrap();
    let file = folder.join("own.toml");
    let found = loop {
        page.next_of("status").await;
        if let Some(found) = profile(&server, "own").await {
            break found;
        }
    };
    assert_eq!(found["system_prompt"], "One.");
    let created = server.post("/sessions", json!({"profile_id": "own"})).await;
    let context = format!(
        "/sessions/{}/context",
        created["session_id"].as_str().unwrap()
    );

    fs::write(&file, own("Two.").replace("0.5", "5.5")).unwrap();
    let warning = warned(&mut page, 1).await.remove(0);
    let warning = warning.as_str().unwrap();
    assert!(warning.contains("field `temperature`"), "{warning}");
    assert!(warning.contains("last good version"), "{warning}");
    let found = profile(&server, "own").await.unwrap();
    assert_eq!(found["system_prompt"], "One.");
    let status = server.get("/api/status").await;
    assert!(status["warnings"].to_string().contains("own.toml"));

    fs::write(&file, own("Three.")).unwrap();
    warned(&mut page, 0).await;
    let found = profile(&server, "own").await.unwrap();
    assert_eq!(found["system_prompt"], "Three.");
    let sent = server.get(&context).await.to_string();
    assert!(sent.contains("---\\nThree."), "{sent}");

    // Without its file the profile goes, and its session goes on with the default one.
    fs::remove_file(&file).unwrap();
    while profile(&server, "own").await.is_some() {
        page.next_of("status").await;
    }
    let sent = server.get(&context).await.to_string();
    assert!(!sent.contains("Three."), "{sent}");
}

#[tokio::test]
async fn a_personas_file_may_change_while_navi_runs() {
    let house = House::new(&[("NAVI_PERSONA_FILE", "persona.txt")]);
    fs::create_dir(house.data_dir()).unwrap();
    let file = house.data_dir().join("persona.txt");
    fs::write(&file, "You are a cat.").unwrap();
    let server = house.start();
    let session = server.new_session().await;
    let context = format!("/sessions/{session}/context");
    let sent = server.get(&context).await.to_string();
    assert!(sent.contains("You are a cat."), "{sent}");
    let mut page = server.socket("/ws/sessions").await;
    page.next_of("sessions").await;
    fs::write(&file, "You are a dog.").unwrap();
    while !server
        .get(&context)
        .await
        .to_string()
        .contains("You are a dog.")
    {
        page.next_of("status").await;
    }
}

#[tokio::test]
async fn the_profile_of_a_session_that_names_none_is_told() {
    let server = House::new(&[("NAVI_DEFAULT_PROFILE", "smart_home")]).start();
    let status = server.get("/api/status").await;
    let profiles = status["profile_models"].as_array().unwrap().iter();
    let default: Vec<&str> = profiles
        .filter(|it| it["is_default"] == true)
        .filter_map(|it| it["profile_id"].as_str())
        .collect();
    assert_eq!(default, ["smart_home"]);
    let created = json!({"profile_id": null});
    let created = server.post("/sessions", created).await;
    assert_eq!(created["profile_id"], "smart_home");
}

#[tokio::test]
async fn every_field_of_a_profile_is_told() {
    let server = House::new(&[]).start();
    let secretary = profile(&server, "secretary").await.unwrap();
    let fields: Vec<&str> = secretary
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let mut expected = [
        "id",
        "name",
        "description",
        "system_prompt",
        "subagent_system_prompt",
        "enabled_tools",
        "subagent_tools",
        "llm_backend",
        "model",
        "temperature",
        "max_iterations",
        "scratchpad_sections",
        "think_enabled",
        "iteration_budget_enabled",
        "planning_enabled",
        "planning_phase2_enabled",
        "goal_anchoring_enabled",
        "goal_anchoring_interval",
        "anti_stall_enabled",
        "anti_stall_threshold",
        "step_validation_enabled",
        "adaptive_replan_enabled",
        "subagent_planning_enabled",
    ];
    let mut fields = fields;
    fields.sort_unstable();
    expected.sort_unstable();
    assert_eq!(fields, expected);
    assert_eq!(secretary["goal_anchoring_interval"], 5);
    assert_eq!(secretary["anti_stall_threshold"], 8);
    assert_eq!(secretary["planning_enabled"], true);
    assert_eq!(secretary["scratchpad_sections"][0], "findings");
}

#[tokio::test]
async fn a_profile_chooses_its_backend_and_a_fall_back_is_told_once() {
    let (ollama, openai) = (FakeModel::start(), FakeModel::start());
    let house = House::new(&[
        ("OLLAMA_HOST", &ollama.url()),
        ("OPENAI_BASE_URL", &openai.url()),
    ]);
    let folder = house.data_dir().join("profiles");
    fs::create_dir_all(&folder).unwrap();
    for backend in ["openai", "starter"] {
        let text = format!(
            "{}llm_backend = \"{backend}\"\n",
            own("Help.").replace("\"own\"", &format!("\"{backend}\""))
        );
        fs::write(folder.join(format!("{backend}.toml")), text).unwrap();
    }
    let server = house.start();
    let ask = async |profile: &str| {
        let created = json!({"profile_id": profile});
        let session = server.post("/sessions", created).await["session_id"].take();
        let session = session.as_str().unwrap().to_owned();
        let path = format!("/sessions/{session}/messages");
        let answer = server.post(&path, json!({"content": profile})).await;
        assert_eq!(answer["content"], format!("You said: {profile}"));
        let mut tab = server.tab(&session, Some(0)).await;
        let frames = tab.until("stream_end").await;
        let told = frames
            .into_iter()
            .filter(|it| it["code"] == "backend_missing");
        told.collect::<Vec<_>>()
    };
    let asked = |model: &FakeModel, text: &str| {
        let mut chats = model.chats().into_iter();
        chats.any(|it| it.last_user_text() == text)
    };
    assert_eq!(ask("secretary").await, Vec::<Value>::new());
    assert_eq!(ask("openai").await, Vec::<Value>::new());
    let told = ask("starter").await;
    assert_eq!(told.len(), 1);
    assert!(
        told[0]["message"]
            .as_str()
            .unwrap()
            .contains("backend starter"),
        "{told:#?}"
    );
    assert_eq!(ask("starter").await, Vec::<Value>::new());
    for (text, by_openai) in [("secretary", false), ("openai", true), ("starter", false)] {
        assert_eq!(asked(&openai, text), by_openai, "{text}");
        assert_eq!(asked(&ollama, text), !by_openai, "{text}");
    }
}
