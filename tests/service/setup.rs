//! How Navi is set up, as the page shows it: settings.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::server::{House, TOKEN, client};

#[tokio::test]
async fn the_settings_are_those_that_the_command_prints() {
    let house = House::new(&[
        ("OLLAMA_HOST", "http://me:pw-hunter2@127.0.0.1:9"),
        ("OPENAI_API_KEY", "sk-hunter2"),
    ]);
    std::fs::create_dir(house.data_dir()).unwrap();
    let file = house.data_dir().join("navi.toml");
    std::fs::write(&file, "[runs]\nsubagent_depth = 1\n").unwrap();
    let server = house.start();
    let told = server.get("/api/settings").await;
    let text = told.to_string();
    assert!(!text.contains("hunter2") && !text.contains(TOKEN), "{text}");
    assert_eq!(told["file"], json!(file));

    let printed = house.run(&["config", "--json"]).stdout;
    let printed: Value = serde_json::from_slice(&printed).unwrap();
    assert_eq!(told["settings"], printed);
    let rows = printed.as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["variable"] == name).unwrap();
    assert_eq!(row("NAVI_SUBAGENT_DEPTH")["origin"], json!(file));
    assert_eq!(row("OLLAMA_HOST")["value"], "http://[hidden]@127.0.0.1:9");
    assert_eq!(row("NAVI_API_TOKEN")["value"], "[hidden]");
    let description = &row("OPENAI_API_KEY")["description"];
    assert_eq!(description, "Its key, if it wants one.");
}

#[tokio::test]
async fn strangers_learn_nothing_of_it() {
    let server = House::new(&[]).start();
    let request = client().get(format!("{}/api/settings", server.url));
    let status = request.send().await.unwrap().status();
    assert_eq!(status, StatusCode::UNAUTHORIZED);
}
