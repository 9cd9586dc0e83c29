//! What a backend is asked for: calls and tokens, whoever asks (plans, titles and memory too).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use navi_actors::llm::{Backend, ChatStream, LlmError, Probe};
use navi_actors::protocol::chat::{ChatDelta, ChatRequest, Usage};
use navi_actors::protocol::status::BackendKind;
use tokio::sync::watch;

/// What was counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) calls: u64,
    /// 0 where the backend counts none.
    pub(crate) prompt_tokens: u64,
    pub(crate) completion_tokens: u64,
    under_way: u64,
}

impl Reading {
    /// What came since an earlier reading.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            calls: self.calls - earlier.calls,
            prompt_tokens: self.prompt_tokens - earlier.prompt_tokens,
            completion_tokens: self.completion_tokens - earlier.completion_tokens,
            under_way: self.under_way,
        }
    }
}

/// Counts for all backends together. Clones are one meter.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter(Arc<watch::Sender<Reading>>);

impl Meter {
    /// The same backend, counted.
    pub(crate) fn on(&self, backend: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(Metered {
            backend,
            meter: self.clone(),
        })
    }

    pub(crate) fn read(&self) -> Reading {
        *self.0.borrow()
    }

    /// Ends when the model has had nothing to do for so long.
    pub(crate) async fn idle_for(&self, quiet: Duration) {
        let mut reading = self.0.subscribe();
        loop {
            // The sender lives as long as this does.
            let _ = reading.wait_for(|now| now.under_way == 0).await;
            if tokio::time::timeout(quiet, reading.changed())
                .await
                .is_err()
            {
                return;
            }
        }
    }

    fn begin(&self) -> UnderWay {
        self.0.send_modify(|now| {
            now.calls += 1;
            now.under_way += 1;
        });
        UnderWay(self.clone())
    }

    fn add(&self, usage: Usage) {
        self.0.send_modify(|now| {
            now.prompt_tokens += u64::from(usage.prompt_tokens);
            now.completion_tokens += u64::from(usage.completion_tokens);
        });
    }
}

/// A call, until it is dropped.
#[derive(Debug)]
struct UnderWay(Meter);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.0.send_modify(|now| now.under_way -= 1);
    }
}

#[derive(Debug)]
struct Metered {
    backend: Arc<dyn Backend>,
    meter: Meter,
}

#[async_trait]
impl Backend for Metered {
    fn kind(&self) -> BackendKind {
        self.backend.kind()
    }

    fn address(&self) -> String {
        self.backend.address()
    }

    async fn probe(&self) -> Probe {
        self.backend.probe().await
    }

    async fn chat(&self, request: Arc<ChatRequest>) -> Result<ChatStream, LlmError> {
        let under_way = self.meter.begin();
        let stream = self.backend.chat(request).await?;
        Ok(Box::pin(stream.inspect(move |item| {
            if let Ok(ChatDelta::Done {
                usage: Some(usage), ..
            }) = item
            {
                under_way.0.add(*usage);
            }
        })))
    }
}

#[cfg(test)]
mod tests {
    use navi_actors::protocol::chat::FinishReason;
    use navi_actors::protocol::offered::OfferedTools;
    use navi_actors::protocol::status::BackendState;

    use super::*;

    #[derive(Debug)]
    struct Counted;

    #[async_trait]
    impl Backend for Counted {
        fn kind(&self) -> BackendKind {
            BackendKind::Openai
        }

        fn address(&self) -> String {
            String::new()
        }

        async fn probe(&self) -> Probe {
            Probe {
                state: BackendState::Ready,
                version: None,
                models: Vec::new(),
                default_model: None,
                capacity: None,
            }
        }

        async fn chat(&self, _: Arc<ChatRequest>) -> Result<ChatStream, LlmError> {
            let done = ChatDelta::Done {
                finish: FinishReason::Stop,
                usage: Some(Usage {
                    prompt_tokens: 30,
                    completion_tokens: 4,
                    cached_tokens: None,
                }),
            };
            Ok(Box::pin(futures_util::stream::iter([Ok(done)])))
        }
    }

    #[tokio::test]
    async fn calls_and_tokens_are_counted_until_their_stream_is_gone() {
        let meter = Meter::default();
        let backend = meter.on(Arc::new(Counted));
        let before = meter.read();
        let request = ChatRequest {
            model: String::new(),
            messages: Vec::new(),
            tools: OfferedTools::default(),
            temperature: 0.0,
            think: false,
            context_window: 512,
            max_output_tokens: None,
            streamed: true,
            form: None,
        };
        let mut stream = backend.chat(Arc::new(request)).await.unwrap();
        assert_eq!(meter.read().under_way, 1);
        while stream.next().await.is_some() {}
        drop(stream);
        meter.idle_for(Duration::ZERO).await;
        let spent = meter.read().since(before);
        assert_eq!((spent.calls, spent.under_way), (1, 0));
        assert_eq!((spent.prompt_tokens, spent.completion_tokens), (30, 4));
    }
}
