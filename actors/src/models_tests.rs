use std::sync::atomic::{AtomicU64, Ordering};

use actix::System;
use async_trait::async_trait;
use tokio::time::advance;

use super::*;
use crate::llm::{ChatStream, LlmError, Probe};
use crate::llm_actor::Priority;
use crate::protocol::chat::ChatRequest;

/// A server without any model, which counts how often it is asked for them.
#[derive(Debug, Default)]
struct Counting(AtomicU64);

impl Counting {
    fn asked(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Backend for Counting {
    fn kind(&self) -> BackendKind {
        BackendKind::Ollama
    }

    fn address(&self) -> String {
        "nowhere".to_owned()
    }

    fn is_looked_for(&self) -> bool {
        true
    }

    async fn probe(&self) -> Probe {
        self.0.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(100)).await;
        Probe {
            state: BackendState::Ready,
            version: None,
            models: Vec::new(),
            default_model: None,
            capacity: None,
        }
    }

    async fn chat(&self, _: Arc<ChatRequest>) -> Result<ChatStream, LlmError> {
        Err(LlmError::EndedEarly)
    }
}

#[test]
fn models_that_nobody_has_cost_the_servers_one_look() {
    let paused = || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().start_paused(true).build().unwrap()
    };
    System::with_tokio_rt(paused).block_on(async {
        let server = Arc::new(Counting::default());
        let closed = CancellationToken::new();
        let backends: Vec<Arc<dyn Backend>> = vec![server.clone()];
        let models = Models::start(backends, Parallel::Auto, &closed);
        // The guard's own look at its start is none of theirs.
        models.probe().await;
        let before = server.asked();

        let names: Vec<String> = (0..50).map(|n| format!("none-{n}")).collect();
        let all = names.iter().map(|name| models.check_chosen(name));
        let refused = futures_util::future::join_all(all).await;
        assert!(refused.iter().all(Result::is_err));
        assert!(models.check_chosen("one more").await.is_err());
        assert_eq!(server.asked(), before + 1);

        // It may be there now.
        advance(LOOKED).await;
        assert!(models.check_chosen("one more").await.is_err());
        assert_eq!(server.asked(), before + 2);
        closed.cancel();
    });
}

#[test]
fn a_server_that_was_replaced_teaches_no_window_of_the_new_one() {
    System::new().block_on(async {
        let closed = CancellationToken::new();
        let models = Models::start(vec![Arc::new(Counting::default())], Parallel::Auto, &closed);
        let kind = BackendKind::Ollama;
        let take = || models.acquire(kind, Acquire::new(Priority::Interactive));
        let window = || {
            models
                .windows
                .0
                .lock()
                .get(&(kind, "m".to_owned()))
                .copied()
        };
        let old = take().await.unwrap();
        models.learn_window(kind, &old.retired, "m", 512);
        assert_eq!(window(), Some(512));
        assert!(models.replace(Arc::new(Counting::default())));
        assert_eq!(window(), None);
        models.learn_window(kind, &old.retired, "m", 512);
        assert_eq!(window(), None);
        let new = take().await.unwrap();
        models.learn_window(kind, &new.retired, "m", 1024);
        assert_eq!(window(), Some(1024));
        closed.cancel();
    });
}
