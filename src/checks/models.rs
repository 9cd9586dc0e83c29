//! Who answers model calls.

use std::sync::Arc;

use futures_util::future::join_all;
use navi_actors::llm::Backend;
use navi_actors::protocol::status::{BackendKind, BackendState, BackendStatus};

use super::Check;

const NAME: &str = "model";

/// Asks every backend at once how it is.
pub(crate) async fn probe(backends: &[Arc<dyn Backend>]) -> Vec<BackendStatus> {
    join_all(backends.iter().map(|backend| async {
        let probe = backend.probe().await;
        BackendStatus {
            kind: backend.kind(),
            address: backend.address(),
            state: probe.state,
            down_since: None,
            version: probe.version,
            models: probe.models,
            default_model: probe.default_model,
        }
    }))
    .await
}

/// What the next call would meet, in the backends' order of preference.
pub(crate) fn check(backends: &[BackendStatus]) -> Check {
    let ready = backends
        .iter()
        .find(|backend| backend.state == BackendState::Ready);
    if let Some(ready) = ready {
        return answering(ready, backends);
    }
    let coming = backends.iter().find_map(|backend| match &backend.state {
        BackendState::Fetching {
            model,
            received,
            total,
        } => Some(format!(
            "{model} is being fetched ({} of {} MB)",
            received / 1_000_000,
            total / 1_000_000
        )),
        BackendState::Loading { detail } => Some(detail.clone()),
        BackendState::Unknown | BackendState::Ready | BackendState::Down { .. } => None,
    });
    if let Some(coming) = coming {
        return Check::fine(NAME, coming);
    }
    let problems: Vec<String> = backends.iter().filter_map(problem).collect();
    let remedy = backends
        .iter()
        .find_map(|backend| match &backend.state {
            BackendState::Down { remedy, .. } => Some(remedy.clone()),
            _ => None,
        })
        .unwrap_or_else(|| "set LLM_BACKEND to auto, or STARTER_MODEL to a model".to_owned());
    let detail = if problems.is_empty() {
        "no backend is set up".to_owned()
    } else {
        problems.join("; ")
    };
    Check::warning(NAME, detail, remedy)
}

fn answering(ready: &BackendStatus, all: &[BackendStatus]) -> Check {
    let model = ready.default_model.as_deref().unwrap_or("no default model");
    let detail = format!("{model} on {} ({})", ready.kind.as_str(), ready.address);
    let is_demo = ready
        .models
        .iter()
        .any(|info| Some(info.name.as_str()) == ready.default_model.as_deref() && info.demo);
    if is_demo {
        let better: Vec<String> = all
            .iter()
            .filter(|backend| backend.kind != BackendKind::Starter)
            .filter_map(problem)
            .collect();
        let detail = format!("{detail}: a demo that only chats");
        return Check::warning(
            NAME,
            [vec![detail], better].concat().join("; "),
            "start Ollama, or run `navi model fetch qwen2.5-1.5b`",
        );
    }
    Check::fine(NAME, detail)
}

fn problem(backend: &BackendStatus) -> Option<String> {
    match &backend.state {
        BackendState::Down { problem, .. } => Some(problem.clone()),
        BackendState::Unknown => Some(format!("{} was not asked yet", backend.kind.as_str())),
        BackendState::Ready | BackendState::Loading { .. } | BackendState::Fetching { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use navi_actors::protocol::status::ModelInfo;

    use super::super::Level;
    use super::*;

    fn backend(kind: BackendKind, state: BackendState, demo: bool) -> BackendStatus {
        BackendStatus {
            kind,
            address: "somewhere".to_owned(),
            state,
            down_since: None,
            version: None,
            models: vec![ModelInfo {
                name: "m".to_owned(),
                demo,
                ..ModelInfo::default()
            }],
            default_model: Some("m".to_owned()),
        }
    }

    fn down() -> BackendState {
        BackendState::Down {
            problem: "it does not answer".to_owned(),
            remedy: "start it".to_owned(),
        }
    }

    #[test]
    fn the_first_that_is_ready_counts() {
        let found = check(&[
            backend(BackendKind::Ollama, down(), false),
            backend(BackendKind::Openai, BackendState::Ready, false),
        ]);
        assert_eq!(found.level, Level::Fine);
        assert_eq!(found.detail, "m on openai (somewhere)");
    }

    #[test]
    fn a_demo_and_a_down_server_are_told_with_a_remedy() {
        let found = check(&[
            backend(BackendKind::Ollama, down(), false),
            backend(BackendKind::Starter, BackendState::Ready, true),
        ]);
        assert_eq!(found.level, Level::Warning);
        assert!(
            found.detail.contains("it does not answer"),
            "{}",
            found.detail
        );
        let found = check(&[backend(BackendKind::Ollama, down(), false)]);
        assert_eq!(found.level, Level::Warning);
        assert_eq!(found.remedy.as_deref(), Some("start it"));
        assert_eq!(check(&[]).level, Level::Warning);
    }
}
