use std::time::Duration;

use futures_util::StreamExt;

use super::*;
use crate::llm::starter::tiny_model::TinyModel;
use crate::protocol::chat::{ChatMessage, FinishReason};
use crate::protocol::offered::OfferedTools;

fn backend(model: &str, models_dir: &Path) -> StarterBackend {
    StarterBackend::new(StarterConfig {
        model: StarterChoice::parse(model).unwrap(),
        models_dir: models_dir.to_owned(),
        idle: Duration::from_secs(600),
    })
}

fn request(model: &str) -> ChatRequest {
    ChatRequest {
        model: model.to_owned(),
        messages: vec![
            ChatMessage::User {
                content: "Hello".to_owned(),
                images: Vec::new(),
            }
            .into(),
        ],
        tools: OfferedTools::default(),
        temperature: 0.0,
        think: false,
        context_window: 0,
        max_output_tokens: Some(4),
        streamed: true,
        form: None,
    }
}

/// A file of the right length, where only that is looked at.
fn pretend(model: &StarterModel, models_dir: &Path) {
    let file = std::fs::File::create(model.path(models_dir)).unwrap();
    file.set_len(model.size).unwrap();
}

#[tokio::test]
async fn a_model_that_is_not_here_is_down_with_its_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let backend = backend("smollm2-135m", directory.path());
    let probe = backend.probe().await;
    match probe.state {
        BackendState::Down {
            problem, remedy, ..
        } => {
            assert!(problem.contains("98 MB"), "{problem}");
            assert!(remedy.contains("navi model fetch smollm2-135m"), "{remedy}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(probe.models, []);
    assert_eq!(probe.default_model.as_deref(), Some("smollm2-135m"));
    let refused = backend
        .chat(request("").into())
        .await
        .map(|_| ())
        .unwrap_err();
    assert!(matches!(refused, LlmError::NotReady { .. }), "{refused}");
    assert!(backend.fetchable().iter().all(|model| !model.present));
}

#[tokio::test]
async fn what_is_here_is_offered_and_can_be_chosen() {
    let directory = tempfile::tempdir().unwrap();
    pretend(&STARTER_MODELS[0], directory.path());
    let backend = backend("smollm2-135m", directory.path());
    let probe = backend.probe().await;
    assert_eq!(probe.state, BackendState::Ready);
    assert!(probe.models[0].demo);
    assert_eq!(probe.models[0].tools, Some(false));
    let unknown = backend
        .chat(request("gemma4").into())
        .await
        .map(|_| ())
        .unwrap_err();
    assert!(
        matches!(unknown, LlmError::ModelNotFound { .. }),
        "{unknown}"
    );

    backend.use_model("qwen2.5-1.5b").unwrap();
    assert!(matches!(
        backend.probe().await.state,
        BackendState::Down { .. }
    ));
    assert!(backend.use_model("gemma4").is_err());
    backend.use_model("off").unwrap();
    assert!(matches!(
        backend.probe().await.state,
        BackendState::Down { .. }
    ));
}

#[tokio::test]
async fn a_real_model_that_another_program_fetched_takes_the_demo_s_place() {
    let directory = tempfile::tempdir().unwrap();
    let backend = backend("smollm2-135m", directory.path());
    assert!(matches!(
        backend.probe().await.state,
        BackendState::Down { .. }
    ));
    let real = STARTER_MODELS.iter().find(|model| !model.demo).unwrap();
    pretend(real, directory.path());
    let probe = backend.probe().await;
    assert_eq!(probe.state, BackendState::Ready);
    assert_eq!(probe.default_model.as_deref(), Some(real.name));
    let (path, tools) = backend.file_for("").unwrap();
    assert_eq!((path, tools), (real.path(directory.path()), Tools::Held));
    // Who chooses the demo means it.
    backend.use_model("smollm2-135m").unwrap();
    let probe = backend.probe().await;
    assert_eq!(probe.default_model.as_deref(), Some("smollm2-135m"));
}

#[tokio::test]
async fn any_file_of_a_known_architecture_answers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tiny.gguf");
    let name = path.display().to_string();
    let backend = backend(&name, directory.path());
    assert!(matches!(
        backend.probe().await.state,
        BackendState::Down { .. }
    ));

    TinyModel::new("llama").write(&path);
    let probe = backend.probe().await;
    assert_eq!(probe.state, BackendState::Ready);
    assert_eq!(probe.models[0].context_window, Some(2048));
    for model in ["", name.as_str()] {
        let answer = backend.chat(request(model).into()).await.unwrap();
        let deltas: Vec<_> = answer.collect().await;
        assert!(matches!(
            deltas.last(),
            Some(Ok(ChatDelta::Done {
                finish: FinishReason::Length | FinishReason::Stop,
                ..
            }))
        ));
    }

    TinyModel::new("gemma3").write(&path);
    std::fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap()
        .set_len(9000)
        .unwrap();
    match backend.probe().await.state {
        BackendState::Down { problem, .. } => assert!(problem.contains("gemma3"), "{problem}"),
        other => panic!("{other:?}"),
    }
}
