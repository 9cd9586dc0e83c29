//! Who answers model calls.

use std::sync::Arc;

use futures_util::future::join_all;
use navi_actors::llm::Backend;
use navi_actors::protocol::phrase::{CheckName, Phrase, PhraseCode};
use navi_actors::protocol::status::{BackendKind, BackendState, BackendStatus};

use super::{Check, Level};

const NAME: CheckName = CheckName::Model;

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
    if let Some(coming) = backends.iter().find_map(coming) {
        return Check::fine(NAME, coming);
    }
    let mut problems: Vec<Phrase> = backends.iter().filter_map(problem).collect();
    let mut troubles = backends
        .iter()
        .filter_map(|backend| backend.state.trouble());
    let remedy = troubles.next().map(|trouble| trouble.remedy);
    let remedy = remedy.unwrap_or_else(|| PhraseCode::SetBackend.into());
    if problems.is_empty() {
        problems.push(PhraseCode::NoBackend.into());
    }
    Check::new(NAME, Level::Warning, problems, Some(remedy))
}

/// What is on its way in a backend.
fn coming(backend: &BackendStatus) -> Option<Phrase> {
    match &backend.state {
        BackendState::Fetching {
            model,
            received,
            total,
        } => {
            let megabytes = |bytes: &u64| (bytes / 1_000_000).to_string();
            let params = [
                ("model", model.clone()),
                ("received", megabytes(received)),
                ("total", megabytes(total)),
            ];
            Some(Phrase::new(PhraseCode::ModelComing, params))
        }
        BackendState::Loading { detail } => Some(Phrase::plain(detail)),
        BackendState::Unknown | BackendState::Ready | BackendState::Down { .. } => None,
    }
}

fn answering(ready: &BackendStatus, all: &[BackendStatus]) -> Check {
    let model = match &ready.default_model {
        Some(name) => Phrase::plain(name),
        None => PhraseCode::UndefinedModel.into(),
    };
    let answers = |code| {
        let params = [
            ("backend", ready.kind.as_str().to_owned()),
            ("address", ready.address.clone()),
        ];
        Phrase::new(code, params).with("model", model)
    };
    let is_demo = ready
        .models
        .iter()
        .any(|info| Some(info.name.as_str()) == ready.default_model.as_deref() && info.demo);
    if !is_demo {
        return Check::fine(NAME, answers(PhraseCode::AnswersModel));
    }
    let better = all
        .iter()
        .filter(|backend| backend.kind != BackendKind::Starter)
        .filter_map(problem);
    let detail = std::iter::once(answers(PhraseCode::AnswersDemo)).chain(better);
    Check::new(
        NAME,
        Level::Warning,
        detail.collect(),
        Some(PhraseCode::BetterModel.into()),
    )
}

fn problem(backend: &BackendStatus) -> Option<Phrase> {
    match &backend.state {
        BackendState::Down { .. } => backend.state.trouble().map(|trouble| trouble.problem),
        BackendState::Unknown => {
            let name = [("backend", backend.kind.as_str().to_owned())];
            Some(Phrase::new(PhraseCode::BackendUnasked, name))
        }
        BackendState::Ready | BackendState::Loading { .. } | BackendState::Fetching { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use navi_actors::protocol::phrase::Trouble;
    use navi_actors::protocol::status::ModelInfo;

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
        BackendState::down(Trouble::new(
            Phrase::plain("it does not answer"),
            Phrase::plain("start it"),
        ))
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
        let codes: Vec<PhraseCode> = found.phrases.detail.iter().map(|it| it.code).collect();
        assert_eq!(codes, [PhraseCode::AnswersDemo, PhraseCode::Plain]);
        let found = check(&[backend(BackendKind::Ollama, down(), false)]);
        assert_eq!(found.level, Level::Warning);
        assert_eq!(found.remedy.as_deref(), Some("start it"));
        assert_eq!(check(&[]).level, Level::Warning);
    }
}
