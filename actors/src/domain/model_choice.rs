//! Which backend and which model a call goes to (SPEC sections 10 and 15).

use std::sync::Arc;

use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::event::Event;
use crate::protocol::phrase::{Phrase, PhraseCode, Trouble};
use crate::protocol::profile::Profile;
use crate::protocol::status::{BackendKind, BackendState, BackendStatus, ModelInfo, ProfileModel};

/// How many models an error names.
const TOLD_MODELS: usize = 20;

/// A choice that can be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub kind: BackendKind,
    pub model: ModelInfo,
    /// The profile's own model, where the backend lacks it.
    pub instead_of: Option<String>,
    /// The model that was chosen for the session, where no backend that can answer has it.
    pub instead_of_chosen: Option<String>,
    /// The profile's own backend, where it cannot take a call.
    pub fell_back_from: Option<BackendKind>,
}

/// What a run's next model call goes by. Looked up anew where the profile changes.
#[derive(Clone, Debug, PartialEq)]
pub struct RunConfig {
    pub profile: Arc<Profile>,
    /// What its watchers are to know of it.
    pub notice: Option<Event>,
    pub choice: Choice,
    /// The model's window, in tokens.
    pub window: u32,
}

/// The first backend, in order of preference, that can take a call now.
#[must_use]
pub fn active(backends: &[BackendStatus]) -> Option<&BackendStatus> {
    backends
        .iter()
        .find(|backend| backend.state == BackendState::Ready)
}

/// What a session and its profile ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// The model that was chosen for the session, on whichever backend has it: before what the
    /// profile asks for.
    pub chosen: Option<&'a str>,
    pub backend: Option<BackendKind>,
    /// Without a backend it is called as Ollama calls it.
    pub model: Option<&'a str>,
}

/// What a session with this profile asks for; `chosen` is the model that was chosen for it.
#[must_use]
pub fn wanted<'a>(profile: &'a Profile, chosen: Option<&'a str>) -> Wanted<'a> {
    Wanted {
        chosen,
        backend: profile.llm_backend.as_deref().and_then(BackendKind::named),
        model: profile.model.as_deref(),
    }
}

/// Who would answer for a profile now.
#[must_use]
pub fn expected(
    backends: &[BackendStatus],
    profile: &Profile,
    default_profile: &str,
) -> ProfileModel {
    let choice = choose(backends, wanted(profile, None)).ok();
    let model = choice.as_ref().map(|choice| &choice.model);
    ProfileModel {
        profile_id: profile.id.clone(),
        name: profile.name.clone(),
        description: profile.description.clone(),
        has_tools: !profile.enabled_tools.is_empty(),
        is_default: profile.id == default_profile,
        backend: choice.as_ref().map(|choice| choice.kind),
        model: model.map(|model| model.name.clone()),
        instead_of: choice
            .as_ref()
            .and_then(|choice| choice.instead_of.clone())
            .or_else(|| model.and_then(|model| model.stands_for.clone())),
        fell_back_from: choice.and_then(|choice| choice.fell_back_from),
    }
}

/// Chooses the model that was chosen for the session, on the first backend that has it and can
/// take a call. Else a backend, and of its models the one that is `wanted` there: where the
/// wanted backend cannot take a call the first that can does; on a backend that the profile does
/// not mean, its default model is what is meant.
///
/// # Errors
/// `backend_unavailable` where no backend is ready, naming each one's trouble and remedy.
pub fn choose(backends: &[BackendStatus], wanted: Wanted<'_>) -> Result<Choice, NaviError> {
    let mut ready = backends
        .iter()
        .filter(|backend| backend.state == BackendState::Ready);
    let chosen = wanted.chosen.and_then(|name| {
        let mut having = ready.clone();
        having.find_map(|backend| listed(backend, name).map(|model| (backend.kind, model)))
    });
    if let Some((kind, model)) = chosen {
        return Ok(Choice {
            kind,
            model: as_asked_for(model),
            instead_of: None,
            instead_of_chosen: None,
            fell_back_from: None,
        });
    }
    let instead_of_chosen = wanted.chosen.map(ToOwned::to_owned);
    let own = ready.find(|backend| Some(backend.kind) == wanted.backend);
    let Some(backend) = own.or_else(|| active(backends)) else {
        return Err(none_ready(backends));
    };
    let fell_back_from = wanted.backend.filter(|kind| *kind != backend.kind);
    let named_by = wanted.backend.unwrap_or(BackendKind::Ollama);
    let wanted = wanted.model.filter(|_| named_by == backend.kind);
    let find = |name: &str| listed(backend, name);
    let default = backend
        .default_model
        .as_deref()
        .or_else(|| backend.models.first().map(|model| model.name.as_str()));
    let (model, instead_of) = match (wanted.and_then(find), wanted, default) {
        (Some(model), _, _) => (as_asked_for(model), None),
        (None, wanted, Some(default)) => {
            // A default that the backend does not list is tried all the same: its own
            // error says best what is missing.
            let model = find(default).cloned().unwrap_or_else(|| ModelInfo {
                name: default.to_owned(),
                ..ModelInfo::default()
            });
            let other = wanted.filter(|wanted| *wanted != model.name);
            (model, other.map(ToOwned::to_owned))
        }
        (None, Some(wanted), None) => (
            ModelInfo {
                name: wanted.to_owned(),
                ..ModelInfo::default()
            },
            None,
        ),
        (None, None, None) => {
            let params = [
                ("backend", backend.kind.as_str().to_owned()),
                ("address", backend.address.clone()),
            ];
            return Err(NaviError::said(
                ErrorCode::ModelNotFound,
                Phrase::new(PhraseCode::NoneOffered, params),
            ));
        }
    };
    Ok(Choice {
        kind: backend.kind,
        model,
        instead_of,
        instead_of_chosen,
        fell_back_from,
    })
}

/// Whether a person may choose the model of this name: one that a backend has, or may have where it
/// cannot say now. Those of the kinds `looked_for` have what they list, and where they are away
/// nobody misses them.
///
/// # Errors
/// `model_unknown`, with what there is.
pub fn check_chosen(
    backends: &[BackendStatus],
    looked_for: &[BackendKind],
    name: &str,
) -> Result<(), NaviError> {
    let tells_all = |backend: &BackendStatus| {
        let is_told = backend.state == BackendState::Ready && !backend.models.is_empty();
        is_told || looked_for.contains(&backend.kind)
    };
    let may_have = |backend: &BackendStatus| !tells_all(backend) || listed(backend, name).is_some();
    if backends.is_empty() || backends.iter().any(may_have) {
        return Ok(());
    }
    let all = backends.iter().flat_map(|backend| &backend.models);
    let mut names: Vec<&str> = all.map(|model| model.name.as_str()).collect();
    if names.len() > TOLD_MODELS {
        names.truncate(TOLD_MODELS);
        names.push("…");
    }
    let found = [("model", name.to_owned()), ("known", names.join(", "))];
    Err(NaviError::said(
        ErrorCode::ModelUnknown,
        Phrase::new(PhraseCode::NoServerHas, found),
    ))
}

/// The model of this name, where the backend lists it.
fn listed<'a>(backend: &'a BackendStatus, name: &str) -> Option<&'a ModelInfo> {
    let mut models = backend.models.iter();
    models.find(|model| same_model(&model.name, name))
}

/// One that was named stands for no other.
fn as_asked_for(model: &ModelInfo) -> ModelInfo {
    ModelInfo {
        stands_for: None,
        ..model.clone()
    }
}

/// Ollama lists `name:latest` for what everybody calls `name`.
fn same_model(listed: &str, wanted: &str) -> bool {
    listed == wanted || listed.strip_suffix(":latest") == Some(wanted)
}

fn none_ready(backends: &[BackendStatus]) -> NaviError {
    let troubles = backends.iter().rev().map(standing);
    let troubles = troubles.reduce(|next, first| {
        Phrase::from(PhraseCode::Also)
            .with("first", first)
            .with("next", next)
    });
    NaviError::said(
        ErrorCode::BackendUnavailable,
        match troubles {
            None => PhraseCode::NoneSetUp.into(),
            Some(troubles) => Phrase::from(PhraseCode::NoneAnswers).with("troubles", troubles),
        },
    )
}

/// How a backend that takes no call is.
fn standing(backend: &BackendStatus) -> Phrase {
    let of = |code| Phrase::new(code, [("backend", backend.kind.as_str().to_owned())]);
    match &backend.state {
        BackendState::Unknown => of(PhraseCode::IsUnchecked),
        BackendState::Ready => of(PhraseCode::IsReady),
        BackendState::Loading { detail } => {
            of(PhraseCode::IsLoading).with("detail", Phrase::plain(detail))
        }
        BackendState::Fetching {
            model,
            received,
            total,
        } => {
            let percent = received.saturating_mul(100) / (*total).max(1);
            of(PhraseCode::IsFetching)
                .with("model", Phrase::plain(model))
                .with("percent", Phrase::plain(percent.to_string()))
        }
        BackendState::Down { .. } => match backend.state.trouble() {
            Some(Trouble { problem, remedy }) => of(PhraseCode::IsDown)
                .with("problem", problem)
                .with("remedy", remedy),
            None => of(PhraseCode::IsUnchecked),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backend(kind: BackendKind, state: BackendState, models: &[&str]) -> BackendStatus {
        BackendStatus {
            kind,
            down_since: None,
            address: "http://localhost".into(),
            state,
            version: None,
            models: models
                .iter()
                .map(|name| ModelInfo {
                    name: (*name).into(),
                    ..ModelInfo::default()
                })
                .collect(),
            default_model: Some("small".into()),
        }
    }

    fn ollama(model: &str) -> Wanted<'_> {
        Wanted {
            model: Some(model),
            ..Wanted::default()
        }
    }

    #[test]
    fn the_model_that_was_chosen_answers_wherever_it_is() {
        let backends = |openai: BackendState| {
            [
                backend(BackendKind::Ollama, BackendState::Ready, &["small", "big"]),
                backend(BackendKind::Openai, openai, &["small", "huge"]),
            ]
        };
        let wanted = Wanted {
            chosen: Some("huge"),
            ..ollama("big")
        };
        let choice = choose(&backends(BackendState::Ready), wanted).unwrap();
        assert_eq!(
            (choice.kind, choice.model.name.as_str()),
            (BackendKind::Openai, "huge")
        );
        assert_eq!(choice.fell_back_from, None);
        // Of several that have it the first one does.
        let both = Wanted {
            chosen: Some("small"),
            ..wanted
        };
        let choice = choose(&backends(BackendState::Ready), both).unwrap();
        assert_eq!(choice.kind, BackendKind::Ollama);
        // Where nobody has it the profile's does.
        let choice = choose(&backends(down()), wanted).unwrap();
        assert_eq!(choice.model.name, "big");
        assert_eq!(choice.instead_of_chosen.as_deref(), Some("huge"));
        assert_eq!(choice.instead_of, None);
    }

    #[test]
    fn the_wanted_backend_answers_where_it_can_and_another_one_is_told() {
        let backends = |openai: BackendState| {
            [
                backend(BackendKind::Ollama, BackendState::Ready, &["small", "big"]),
                backend(BackendKind::Openai, openai, &["small", "big"]),
            ]
        };
        let wanted = Wanted {
            backend: Some(BackendKind::Openai),
            ..ollama("big")
        };
        let choice = choose(&backends(BackendState::Ready), wanted).unwrap();
        assert_eq!(choice.kind, BackendKind::Openai);
        assert_eq!(choice.model.name, "big");
        assert_eq!(choice.fell_back_from, None);
        let choice = choose(&backends(down()), wanted).unwrap();
        assert_eq!(choice.kind, BackendKind::Ollama);
        // The name is the other one's.
        assert_eq!(choice.model.name, "small");
        assert_eq!(choice.instead_of, None);
        assert_eq!(choice.fell_back_from, Some(BackendKind::Openai));
    }

    #[test]
    fn a_model_of_another_backend_is_not_missed() {
        let backends = [backend(
            BackendKind::Openai,
            BackendState::Ready,
            &["small"],
        )];
        let choice = choose(&backends, ollama("huge")).unwrap();
        assert_eq!(choice.model.name, "small");
        assert_eq!(choice.instead_of, None);
    }

    fn down() -> BackendState {
        BackendState::down(Trouble::new(
            PhraseCode::ConnectionRefused,
            Phrase::plain("start it"),
        ))
    }

    #[test]
    fn first_ready_backend_wins() {
        let backends = [
            backend(BackendKind::Ollama, down(), &[]),
            backend(BackendKind::Openai, BackendState::Ready, &["small"]),
            backend(BackendKind::Starter, BackendState::Ready, &["tiny"]),
        ];
        let choice = choose(&backends, Wanted::default()).unwrap();
        assert_eq!(choice.kind, BackendKind::Openai);
        assert_eq!(choice.model.name, "small");
        assert_eq!(choice.instead_of, None);
    }

    #[test]
    fn a_model_that_is_missing_falls_back_to_the_default_and_says_so() {
        let backends = [backend(
            BackendKind::Ollama,
            BackendState::Ready,
            &["small"],
        )];
        let choice = choose(&backends, ollama("huge")).unwrap();
        assert_eq!(choice.model.name, "small");
        assert_eq!(choice.instead_of.as_deref(), Some("huge"));
    }

    #[test]
    fn a_default_that_is_missing_is_known_where_another_stands_in_for_it() {
        let mut backend = backend(BackendKind::Ollama, BackendState::Ready, &["small"]);
        backend.models[0].stands_for = Some("gone".to_owned());
        let backends = [backend];
        for wanted in [Wanted::default(), ollama("huge")] {
            let choice = choose(&backends, wanted).unwrap();
            assert_eq!(choice.model.stands_for.as_deref(), Some("gone"));
        }
        // A profile that names it has what it wants.
        let choice = choose(&backends, ollama("small")).unwrap();
        assert_eq!(choice.model.stands_for, None);
    }

    #[test]
    fn a_default_that_is_not_listed_is_still_asked_for() {
        let backends = [backend(
            BackendKind::Ollama,
            BackendState::Ready,
            &["other"],
        )];
        assert_eq!(
            choose(&backends, Wanted::default()).unwrap().model.name,
            "small"
        );
    }

    #[test]
    fn a_model_that_nobody_has_cannot_be_chosen_and_one_that_somebody_may_have_can() {
        let here = backend(BackendKind::Ollama, BackendState::Ready, &["small", "big"]);
        let starter = backend(BackendKind::Starter, down(), &["tiny"]);
        let all = [here.clone(), starter];
        let looked_for = [BackendKind::Starter];
        for name in ["small", "big", "tiny"] {
            assert_eq!(check_chosen(&all, &looked_for, name), Ok(()));
        }
        let error = check_chosen(&all, &looked_for, "gone").unwrap_err();
        assert_eq!(error.code, ErrorCode::ModelUnknown);
        assert!(error.message.contains("small, big"), "{}", error.message);
        // It may have it, and is away, or tells of none.
        for away in [down(), BackendState::Unknown, BackendState::Ready] {
            let other = backend(BackendKind::Openai, away, &[]);
            let all = [here.clone(), other];
            assert_eq!(check_chosen(&all, &looked_for, "gone"), Ok(()));
        }
        assert_eq!(check_chosen(&[], &[], "gone"), Ok(()));
    }

    #[test]
    fn latest_tag_is_implied() {
        let backends = [backend(
            BackendKind::Ollama,
            BackendState::Ready,
            &["llama:latest"],
        )];
        let choice = choose(&backends, ollama("llama")).unwrap();
        assert_eq!(choice.model.name, "llama:latest");
        assert_eq!(choice.instead_of, None);
    }

    #[test]
    fn nothing_ready_names_each_trouble_and_its_remedy() {
        let error = choose(
            &[backend(BackendKind::Ollama, down(), &[])],
            Wanted::default(),
        )
        .unwrap_err();
        assert_eq!(error.code, ErrorCode::BackendUnavailable);
        assert!(error.message.contains("connection refused (start it)"));
    }
}
