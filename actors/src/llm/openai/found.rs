//! An OpenAI-compatible server that nobody configured: looked for where such servers listen
//! on one's own machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures_util::future::join_all;

use super::{OpenAiBackend, OpenAiConfig};
use crate::llm::{Backend, ChatStream, LlmError, Probe};
use crate::protocol::chat::ChatRequest;
use crate::protocol::phrase::{PhraseCode, Trouble};
use crate::protocol::status::{BackendKind, BackendState};

/// llama.cpp's server, and LM Studio.
const USUAL_PLACES: [&str; 2] = ["http://127.0.0.1:8080/v1", "http://127.0.0.1:1234/v1"];

/// The first server that answers at one of the usual places. Each probe looks again.
#[derive(Debug)]
pub struct FoundOpenAi {
    places: Vec<OpenAiBackend>,
    /// The place that answered last.
    found: AtomicUsize,
}

impl FoundOpenAi {
    /// Sends nothing yet.
    ///
    /// # Errors
    /// As [`OpenAiBackend::new`].
    pub fn new() -> Result<Self, LlmError> {
        Self::at(&USUAL_PLACES)
    }

    fn at(places: &[&str]) -> Result<Self, LlmError> {
        let places = places.iter().map(|place| {
            OpenAiBackend::new(OpenAiConfig {
                base_url: (*place).to_owned(),
                api_key: None,
                default_model: None,
            })
        });
        Ok(Self {
            places: places.collect::<Result<_, _>>()?,
            found: AtomicUsize::new(0),
        })
    }

    fn place(&self) -> Option<&OpenAiBackend> {
        self.places.get(self.found.load(Ordering::Relaxed))
    }
}

#[async_trait]
impl Backend for FoundOpenAi {
    fn kind(&self) -> BackendKind {
        BackendKind::Openai
    }

    fn address(&self) -> String {
        self.place().map_or_else(String::new, Backend::address)
    }

    fn is_looked_for(&self) -> bool {
        true
    }

    async fn probe(&self) -> Probe {
        let probes = join_all(self.places.iter().map(Backend::probe)).await;
        let ready = |probe: &Probe| probe.state == BackendState::Ready && !probe.models.is_empty();
        if let Some((place, probe)) = probes
            .into_iter()
            .enumerate()
            .find(|(_, probe)| ready(probe))
        {
            self.found.store(place, Ordering::Relaxed);
            return probe;
        }
        Probe {
            state: BackendState::down(not_found()),
            version: None,
            models: Vec::new(),
            default_model: None,
            capacity: None,
        }
    }

    async fn chat(&self, request: Arc<ChatRequest>) -> Result<ChatStream, LlmError> {
        match self.place() {
            Some(place) => place.chat(request).await,
            None => Err(LlmError::NotReady(not_found())),
        }
    }
}

fn not_found() -> Trouble {
    Trouble::new(PhraseCode::NoModelServer, PhraseCode::SetOpenaiPlace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::fake_model::FakeModel;

    #[tokio::test]
    async fn the_first_that_answers_is_used_and_looked_for_again() {
        let first = FakeModel::start();
        let second = FakeModel::start();
        let gone = first.url();
        drop(first);
        let places = [gone.as_str(), &second.url()];
        let found = FoundOpenAi::at(&places).unwrap();
        assert_eq!(found.probe().await.state, BackendState::Ready);
        assert!(
            found.address().starts_with(&second.url()),
            "{}",
            found.address()
        );
        drop(second);
        assert!(matches!(
            found.probe().await.state,
            BackendState::Down { .. }
        ));
    }
}
