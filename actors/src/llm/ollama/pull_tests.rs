use super::super::OllamaConfig;
use super::*;
use crate::llm::fake_model::{FakeModel, Reply, Step};

fn backend(url: &str) -> OllamaBackend {
    OllamaBackend::new(OllamaConfig::new(url, "fake")).unwrap()
}

fn line(said: &Value) -> Step {
    Step::Raw(format!("{said}\n"))
}

async fn pull(fake: &FakeModel, steps: Vec<Step>) -> (Vec<PullProgress>, Result<(), PullError>) {
    fake.script(Reply::new(steps).pull("new:1b"));
    let mut told = Vec::new();
    let name = ModelName::parse("new:1b").unwrap();
    let backend = backend(&fake.url());
    let pulled = backend.pull(&name, |progress| told.push(progress.clone()));
    let pulled = pulled.await;
    (told, pulled)
}

#[tokio::test]
async fn a_pull_tells_how_far_all_parts_are() {
    let fake = FakeModel::start();
    let part = |digest, total, completed: Option<u64>| {
        line(
            &json!({"status": format!("pulling {digest}"), "digest": digest, "total": total, "completed": completed}),
        )
    };
    let (told, pulled) = pull(
        &fake,
        vec![
            line(&json!({"status": "pulling manifest"})),
            part("a", 1000, None),
            part("a", 1000, Some(600)),
            part("b", 10, Some(11)),
            part("a", 1000, Some(1000)),
            line(&json!({"status": "verifying sha256 digest"})),
            line(&json!({"status": "success"})),
            Step::End,
        ],
    )
    .await;
    assert_eq!(pulled, Ok(()));
    let told: Vec<(&str, u64, u64)> = told
        .iter()
        .map(|it| (it.step.as_str(), it.received, it.total))
        .collect();
    assert_eq!(
        told,
        [
            ("pulling manifest", 0, 0),
            ("pulling a", 0, 1000),
            ("pulling a", 600, 1000),
            ("pulling b", 610, 1010),
            ("pulling a", 1010, 1010),
            ("verifying sha256 digest", 1010, 1010),
        ]
    );
    let asked = fake.requests().pop().unwrap();
    assert_eq!(asked.body, json!({"model": "new:1b", "stream": true}));
}

#[tokio::test]
async fn what_keeps_a_model_away_is_told_with_what_to_do() {
    let fake = FakeModel::start();
    let error = |message: &str| vec![Step::Error(message.to_owned())];
    for (steps, said) in [
        (
            error("pull model manifest: file does not exist"),
            "ollama.com/library",
        ),
        (
            vec![Step::status(400, r#"{"error":"invalid model name"}"#)],
            "ollama.com/library",
        ),
        (
            error("write /models/blobs/sha256-1: no space left on device"),
            "make room",
        ),
        (error("max retries exceeded: EOF"), "max retries exceeded"),
        (vec![Step::Begin, Step::Close], "start Ollama"),
        (
            vec![line(&json!({"status": "pulling manifest"})), Step::End],
            "start Ollama",
        ),
        (vec![Step::status(500, "")], "could not pull new:1b"),
        (
            vec![Step::Raw(format!("{{{}", "x".repeat(2 * MAX_LINE_BYTES)))],
            "could not pull new:1b",
        ),
    ] {
        let (_, pulled) = pull(&fake, steps).await;
        let told = pulled.unwrap_err().to_string();
        assert!(told.contains(said), "{told}");
    }
    fake.assert_clean();
    let gone = fake.url();
    drop(fake);
    let name = ModelName::parse("new:1b").unwrap();
    let pulled = backend(&gone).pull(&name, |_| {}).await;
    assert!(matches!(pulled, Err(PullError::Gone { .. })), "{pulled:?}");
}

#[test]
fn names_are_those_of_registries() {
    for name in [
        "qwen3",
        "qwen3:8b",
        "hf.co/bartowski/Llama-3.2-3B-Instruct-GGUF:Q4_K_M",
        "localhost:5000/me/model:latest",
    ] {
        assert!(ModelName::parse(name).is_some(), "{name}");
    }
    let long = "a".repeat(MAX_NAME_CHARS + 1);
    for name in [
        "",
        " ",
        "a b",
        ":",
        "a:",
        "/a",
        "a//b",
        "../a",
        "-a",
        "http://a/b",
        "a/b/c/d",
        "a:b:c",
        "ü",
        "a\n",
        &long,
    ] {
        assert!(ModelName::parse(name).is_none(), "{name}");
    }
    let latest = ModelName::parse("qwen3:latest").unwrap();
    assert!(latest.means("qwen3") && !latest.means("qwen3:8b"));
}
