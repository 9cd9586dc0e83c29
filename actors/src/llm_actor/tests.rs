use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use actix::System;
use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use tokio::task::yield_now;

use super::*;
use crate::completion::{Question, ask};
use crate::domain::model_choice::Choice;
use crate::domain::slots::Capacity;
use crate::llm::guard::StreamLimits;
use crate::llm::{ChatStream, LlmError, Probe};
use crate::models::{GuardedBackend, Models};
use crate::protocol::chat::{ChatDelta, ChatRequest, FinishReason, Usage};
use crate::protocol::offered::OfferedTools;
use crate::protocol::status::{BackendKind, ModelInfo};
use crate::supervision::{RestartPolicy, keep_alive};

const KIND: BackendKind = BackendKind::Ollama;

const LIMITS: StreamLimits = StreamLimits {
    first_chunk: Duration::from_secs(120),
    chunk: Duration::from_secs(60),
};

/// Runs a test on one arbiter whose clock stands still until everything waits for it.
fn on_paused_arbiter<F: Future>(test: F) -> F::Output {
    System::with_tokio_rt(|| {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime")
    })
    .block_on(test)
}

/// What comes of a call: a refusal, or each delta after a wait of so many seconds.
type Scene = Result<Vec<(u64, ChatDelta)>, LlmError>;

/// A backend that does what its script says, call by call, and then never answers.
#[derive(Debug)]
struct Scripted {
    capacity: Capacity,
    script: Mutex<VecDeque<Scene>>,
    state: Mutex<BackendState>,
    asked: AtomicU64,
}

impl Scripted {
    /// How many calls there were.
    fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Backend for Scripted {
    fn kind(&self) -> BackendKind {
        KIND
    }

    fn address(&self) -> String {
        "nowhere".to_owned()
    }

    async fn probe(&self) -> Probe {
        Probe {
            state: self.state.lock().unwrap().clone(),
            version: None,
            models: Vec::new(),
            default_model: None,
            capacity: Some(self.capacity),
        }
    }

    async fn chat(&self, _: Arc<ChatRequest>) -> Result<ChatStream, LlmError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let next = self.script.lock().unwrap().pop_front();
        let Some(outcome) = next else {
            std::future::pending::<()>().await;
            unreachable!()
        };
        let items = stream::iter(outcome?).then(|(seconds, delta)| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok(delta)
        });
        Ok(Box::pin(items))
    }
}

#[path = "share_tests.rs"]
mod shares;

/// The guard of a scripted backend.
struct House {
    models: Models,
    backend: Arc<Scripted>,
    _closed: tokio_util::sync::DropGuard,
}

impl House {
    fn new(slots: usize) -> Self {
        Self::with(Parallel::Fixed(slots), Capacity::Unknown)
    }

    fn with(parallel: Parallel, capacity: Capacity) -> Self {
        let backend = Arc::new(Scripted {
            capacity,
            script: Mutex::default(),
            state: Mutex::new(BackendState::Ready),
            asked: AtomicU64::new(0),
        });
        let closed = CancellationToken::new();
        let (tx, status) = watch::channel(LlmActor::unknown(backend.as_ref()));
        let guarded: Arc<dyn Backend> = Arc::clone(&backend) as Arc<dyn Backend>;
        let guard = keep_alive(
            "test",
            RestartPolicy::default(),
            closed.clone(),
            move |guard| LlmActor::new(Arc::clone(&guarded), parallel, tx.clone(), guard).start(),
            || {},
        );
        Self {
            models: Models::new(vec![GuardedBackend {
                kind: KIND,
                looked_for: false,
                guard,
                status,
                retired: CancellationToken::new(),
            }]),
            backend,
            _closed: closed.drop_guard(),
        }
    }

    fn script(&self, outcome: Scene) {
        self.backend.script.lock().unwrap().push_back(outcome);
    }

    async fn take(&self, priority: Priority) -> Lease {
        self.models
            .acquire(KIND, Acquire::new(priority))
            .await
            .unwrap()
    }

    /// Stands in line, and tells `order` when its turn came; gives the slot back at once.
    async fn line_up(&self, priority: Priority, name: &'static str, order: &Order) -> Ticket {
        let ticket = Ticket::new();
        let (models, told) = (self.models.clone(), Arc::clone(order));
        actix::spawn(async move {
            let lease = models
                .acquire(
                    KIND,
                    Acquire {
                        ticket,
                        ..Acquire::new(priority)
                    },
                )
                .await;
            told.lock().unwrap().push(name);
            drop(lease);
        });
        while self.models.queue(KIND, ticket).await.is_none() {
            yield_now().await;
        }
        ticket
    }
}

type Order = Arc<Mutex<Vec<&'static str>>>;

fn request(prompt_tokens: usize, streamed: bool) -> ChatRequest {
    let Question {
        choice, messages, ..
    } = question(Priority::Interactive, &"abcd".repeat(prompt_tokens));
    ChatRequest {
        model: choice.model.name,
        messages: messages.into_iter().map(Into::into).collect(),
        tools: OfferedTools::default(),
        temperature: 0.7,
        think: false,
        context_window: 8192,
        max_output_tokens: None,
        streamed,
        form: None,
    }
}

fn question(priority: Priority, text: &str) -> Question {
    Question {
        choice: Choice {
            kind: KIND,
            model: ModelInfo {
                name: "m".to_owned(),
                ..ModelInfo::default()
            },
            instead_of: None,
            instead_of_chosen: None,
            fell_back_from: None,
        },
        messages: vec![crate::protocol::chat::ChatMessage::User {
            content: text.to_owned(),
            images: Vec::new(),
        }],
        temperature: 0.3,
        context_window: 8192,
        max_output_tokens: 100,
        form: None,
        priority,
        person: None,
        run: None,
    }
}

fn done() -> ChatDelta {
    ChatDelta::Done {
        finish: FinishReason::Stop,
        usage: Some(Usage {
            prompt_tokens: 1,
            completion_tokens: 100,
            cached_tokens: None,
        }),
    }
}

fn text() -> ChatDelta {
    ChatDelta::Text("x".to_owned())
}

fn unreachable_error() -> LlmError {
    LlmError::Unreachable {
        address: "nowhere".to_owned(),
        reason: PhraseCode::ConnectionRefused.into(),
    }
}

/// Calls once and gives back the last thing that came.
async fn call(house: &House, request: ChatRequest) -> Result<ChatDelta, LlmError> {
    let lease = house.take(Priority::Interactive).await;
    let stream = lease.call(request, LIMITS, None);
    let all: Vec<_> = stream.collect().await;
    all.last().cloned().expect("an end")
}

#[test]
fn lanes_go_in_order_and_each_in_the_order_of_arrival() {
    on_paused_arbiter(async {
        let house = House::new(1);
        let order = Order::default();
        let held = house.take(Priority::Interactive).await;
        house.line_up(Priority::Background, "title", &order).await;
        house.line_up(Priority::Planning, "plan", &order).await;
        let second = house.line_up(Priority::Interactive, "one", &order).await;
        house.line_up(Priority::Subagent, "child", &order).await;
        let last = house.line_up(Priority::Interactive, "two", &order).await;
        let view = |ahead| QueueView {
            running: vec![Priority::Interactive],
            ahead,
            most: 1,
        };
        assert_eq!(house.models.queue(KIND, second).await, Some(view(0)));
        assert_eq!(house.models.queue(KIND, last).await, Some(view(1)));
        assert_eq!(house.models.queue(KIND, Ticket::new()).await, None);
        drop(held);
        while order.lock().unwrap().len() < 5 {
            yield_now().await;
        }
        let order = order.lock().unwrap();
        assert_eq!(*order, ["one", "two", "child", "plan", "title"]);
    });
}

#[test]
fn who_waits_for_minutes_goes_before_those_who_came_later() {
    on_paused_arbiter(async {
        let house = House::new(1);
        let order = Order::default();
        let held = house.take(Priority::Interactive).await;
        house.line_up(Priority::Background, "title", &order).await;
        tokio::time::sleep(Duration::from_secs(241)).await;
        house.line_up(Priority::Interactive, "late", &order).await;
        drop(held);
        while order.lock().unwrap().len() < 2 {
            yield_now().await;
        }
        assert_eq!(*order.lock().unwrap(), ["title", "late"]);
    });
}

#[test]
fn background_work_makes_way_for_a_person() {
    on_paused_arbiter(async {
        let house = House::new(1);
        let models = house.models.clone();
        let asked = actix::spawn(async move {
            let question = question(Priority::Background, "A title, please.");
            ask(&models, LIMITS, question, CancellationToken::new()).await
        });
        let order = Order::default();
        while house.backend.asked() == 0 {
            yield_now().await;
        }
        // Work that nobody waits for takes nothing away.
        house.line_up(Priority::Background, "title", &order).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!asked.is_finished());
        let lease = house.take(Priority::Interactive).await;
        let error = asked.await.unwrap().unwrap_err();
        assert_eq!(error.code, ErrorCode::BackendBusy, "{error}");
        assert!(error.message.contains("try again later"), "{error}");
        assert!(order.lock().unwrap().is_empty());
        drop(lease);
    });
}

#[test]
fn only_as_much_background_work_makes_way_as_there_are_people() {
    on_paused_arbiter(async {
        let house = House::new(2);
        let older = house.take(Priority::Background).await;
        let newer = house.take(Priority::Background).await;
        let order = Order::default();
        house.line_up(Priority::Planning, "plan", &order).await;
        newer.asked_back().await;
        let limit = Duration::from_secs(1);
        assert!(
            tokio::time::timeout(limit, older.asked_back())
                .await
                .is_err()
        );
        house.line_up(Priority::Interactive, "one", &order).await;
        older.asked_back().await;
        drop((older, newer));
    });
}

#[test]
fn work_that_waited_its_time_is_not_asked_back() {
    on_paused_arbiter(async {
        let house = House::new(1);
        let held = house.take(Priority::Interactive).await;
        let models = house.models.clone();
        let waiting = actix::spawn(async move {
            models
                .acquire(KIND, Acquire::new(Priority::Background))
                .await
        });
        tokio::time::sleep(Duration::from_secs(241)).await;
        drop(held);
        let lease = waiting.await.unwrap().unwrap();
        let order = Order::default();
        house.line_up(Priority::Interactive, "one", &order).await;
        let limit = Duration::from_secs(1);
        assert!(
            tokio::time::timeout(limit, lease.asked_back())
                .await
                .is_err()
        );
    });
}

#[test]
fn whoever_is_stopped_and_keeps_a_slot_loses_it_though_they_never_called() {
    on_paused_arbiter(async {
        let house = House::new(1);
        let stop = CancellationToken::new();
        let asked = || Acquire {
            stop: stop.clone(),
            ..Acquire::new(Priority::Interactive)
        };
        // As from a thread that hangs: one has the slot, another waits for it.
        let has = house.models.acquire(KIND, asked()).await.unwrap();
        let models = house.models.clone();
        let next = Order::default();
        let hung = asked();
        let ticket = hung.ticket;
        let given = actix::spawn(async move { models.acquire(KIND, hung).await });
        while house.models.queue(KIND, ticket).await.is_none() {
            yield_now().await;
        }
        house.line_up(Priority::Interactive, "next", &next).await;
        let begun = Instant::now();
        stop.cancel();
        while next.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(begun.elapsed().as_secs(), RECLAIM.as_secs());
        assert!(given.await.unwrap().is_err());
        drop(has);
        // What comes back late takes nothing from whoever has the slot by now.
        let _now = house.take(Priority::Interactive).await;
        let limit = Duration::from_secs(60);
        let more = tokio::time::timeout(limit, house.take(Priority::Interactive)).await;
        assert!(more.is_err());
    });
}

#[test]
fn a_backend_that_keeps_failing_is_left_alone_and_tried_again() {
    on_paused_arbiter(async {
        let house = House::new(1);
        for _ in 0..6 {
            house.script(Err(unreachable_error()));
        }
        for _ in 0..5 {
            assert!(call(&house, request(1, true)).await.is_err());
        }
        let refused = house
            .models
            .acquire(KIND, Acquire::new(Priority::Interactive))
            .await;
        let error = refused.unwrap_err();
        assert_eq!(error.code, ErrorCode::BackendUnavailable);
        assert!(
            error.message.contains("failed 5 times in a row")
                && error.message.contains("connection refused")
                && error.message.contains("asked again in 2 s"),
            "{error}"
        );
        tokio::time::sleep(Duration::from_secs(2)).await;
        // One may try; the others are told while it does.
        let trial = house.take(Priority::Background).await;
        let refused = house
            .models
            .acquire(KIND, Acquire::new(Priority::Interactive))
            .await;
        assert!(refused.unwrap_err().message.contains("right now"));
        let stream = trial.call(request(1, true), LIMITS, None);
        stream.collect::<Vec<_>>().await;
        drop(trial);
        let refused = house
            .models
            .acquire(KIND, Acquire::new(Priority::Interactive))
            .await;
        assert!(refused.unwrap_err().message.contains("in 4 s"));
        tokio::time::sleep(Duration::from_secs(4)).await;
        // One that shows nothing makes room for another.
        drop(house.take(Priority::Interactive).await);
        house.script(Ok(vec![(0, text()), (0, done())]));
        assert!(call(&house, request(1, true)).await.is_ok());
        assert!(
            house
                .models
                .acquire(KIND, Acquire::new(Priority::Interactive))
                .await
                .is_ok()
        );
    });
}

#[test]
fn those_who_wait_are_told_when_the_backend_is_left_alone() {
    on_paused_arbiter(async {
        let house = House::new(1);
        for _ in 0..5 {
            house.script(Err(unreachable_error()));
        }
        for _ in 0..4 {
            assert!(call(&house, request(1, true)).await.is_err());
        }
        let lease = house.take(Priority::Interactive).await;
        let models = house.models.clone();
        let waiting =
            actix::spawn(
                async move { models.acquire(KIND, Acquire::new(Priority::Planning)).await },
            );
        let stream = lease.call(request(1, true), LIMITS, None);
        stream.collect::<Vec<_>>().await;
        let error = waiting.await.unwrap().unwrap_err();
        assert_eq!(error.code, ErrorCode::BackendUnavailable);
        drop(lease);
    });
}

#[test]
fn a_probe_that_finds_the_backend_back_ends_the_pause() {
    on_paused_arbiter(async {
        let house = House::new(1);
        for _ in 0..5 {
            house.script(Err(unreachable_error()));
        }
        *house.backend.state.lock().unwrap() = BackendState::down(Trouble::new(
            Phrase::plain("gone"),
            Phrase::plain("start it"),
        ));
        house.models.probe().await;
        // That it is down by its probe alone keeps no call away.
        for _ in 0..5 {
            assert!(call(&house, request(1, true)).await.is_err());
        }
        assert!(
            house
                .models
                .acquire(KIND, Acquire::new(Priority::Interactive))
                .await
                .is_err()
        );
        *house.backend.state.lock().unwrap() = BackendState::Ready;
        house.models.probe().await;
        assert!(
            house
                .models
                .acquire(KIND, Acquire::new(Priority::Interactive))
                .await
                .is_ok()
        );
    });
}

#[test]
fn a_slow_model_is_given_the_time_that_it_has_shown_to_need() {
    on_paused_arbiter(async {
        let house = House::new(1);
        // 1000 tokens in 100 s, and 100 more said in 50 s.
        house.script(Ok(vec![(100, text()), (50, done())]));
        assert!(call(&house, request(1_000, true)).await.is_ok());
        let waited = |request: ChatRequest| async {
            let begun = Instant::now();
            let end = call(&house, request).await;
            assert!(
                matches!(end, Err(LlmError::FirstChunkTimeout { .. })),
                "{end:?}"
            );
            // To ten seconds: sizes in tokens are estimates.
            (begun.elapsed().as_secs() + 5) / 10 * 10
        };
        assert_eq!(waited(request(3_000, true)).await, 600);
        assert_eq!(waited(request(10, true)).await, 120);
        let whole = ChatRequest {
            max_output_tokens: Some(200),
            ..request(3_000, false)
        };
        assert_eq!(waited(whole).await, 800);
        let other = ChatRequest {
            model: "other".to_owned(),
            ..request(3_000, true)
        };
        assert_eq!(waited(other).await, 120);
    });
}

#[test]
fn a_backend_that_says_nothing_of_itself_is_tried_and_believed() {
    on_paused_arbiter(async {
        let house = House::with(Parallel::Auto, Capacity::Unknown);
        for _ in 0..3 {
            house.script(Ok(vec![(1, text()), (30, done())]));
        }
        let stream = async || {
            let lease = house.take(Priority::Interactive).await;
            let tried = lease.is_tried();
            let stream = lease.call(request(1, true), LIMITS, None);
            stream.collect::<Vec<_>>().await;
            tried
        };
        let begun = Instant::now();
        // The second goes while the first does; once they have done so for a while, a third.
        let tried = tokio::join!(stream(), stream(), stream());
        assert_eq!(tried, (false, true, true));
        assert_eq!(begun.elapsed().as_secs(), 34);
        let two = (
            house.take(Priority::Background).await,
            house.take(Priority::Background).await,
        );
        assert!(!two.0.is_tried() && !two.1.is_tried());
    });
}

#[test]
fn a_call_that_a_backend_keeps_waiting_is_not_given_up_while_others_are_told_something() {
    on_paused_arbiter(async {
        let house = House::with(Parallel::Auto, Capacity::Unknown);
        // Longer than a first chunk may take.
        house.script(Ok((0..10)
            .map(|_| (50, text()))
            .chain([(50, done())])
            .collect()));
        house.script(Ok(vec![(550, text()), (1, done())]));
        let first = house.take(Priority::Interactive).await;
        let second = actix::spawn({
            let models = house.models.clone();
            async move {
                models
                    .acquire(KIND, Acquire::new(Priority::Interactive))
                    .await
                    .unwrap()
            }
        });
        let others = first.call(request(1, true), LIMITS, None);
        let waits = async {
            let lease = second.await.unwrap();
            assert!(lease.is_tried());
            let stream = lease.call(request(1, true), LIMITS, None);
            stream.collect::<Vec<_>>().await
        };
        let (_, waited) = tokio::join!(others.collect::<Vec<_>>(), waits);
        assert_eq!(waited, [Ok(text()), Ok(done())]);
    });
}
