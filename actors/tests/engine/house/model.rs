//! The model that says what a test wants.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use navi_actors::domain::slots::Capacity;
use navi_actors::llm::{Backend, ChatStream, LlmError, Probe};
use navi_actors::protocol::chat::{
    ChatDelta, ChatMessage, ChatRequest, FinishReason, RequestedCall, Usage,
};
use navi_actors::protocol::prompt::PromptMessage;
use navi_actors::protocol::status::{BackendKind, BackendState, ModelInfo};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{House, PATIENCE};

/// One step of a scripted reply.
#[derive(Clone, Debug)]
pub(crate) enum Say {
    Text(String),
    Thinking(String),
    Call(&'static str, Value),
    /// Goes on when the test says so, with [`House::release`].
    Hold,
    Fail(LlmError),
    /// Silence without end.
    Silence,
}

/// A model that says what the test wants.
#[derive(Debug)]
pub(crate) struct Scripted {
    replies: Mutex<VecDeque<Vec<Say>>>,
    /// To questions of Navi's own that want a whole answer, titles aside.
    whole: Mutex<VecDeque<Vec<Say>>>,
    /// For requests that hold a word: a child's task, or what a whole answer is asked for.
    answers: Mutex<Vec<(&'static str, Vec<Say>)>>,
    requests: Mutex<Vec<ChatRequest>>,
    release: tokio::sync::Semaphore,
    /// Streams that were dropped before their end.
    dropped: tokio::sync::watch::Sender<u32>,
}

struct OnDrop(Arc<Scripted>, bool);

impl Drop for OnDrop {
    fn drop(&mut self) {
        if !self.1 {
            self.0.dropped.send_modify(|count| *count += 1);
        }
    }
}

#[derive(Debug)]
pub(super) struct ScriptedBackend(pub(super) Arc<Scripted>);

#[async_trait]
impl Backend for ScriptedBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Ollama
    }

    fn address(&self) -> String {
        "scripted".into()
    }

    async fn probe(&self) -> Probe {
        Probe {
            state: BackendState::Ready,
            version: None,
            models: vec![ModelInfo {
                name: "scripted".into(),
                ..ModelInfo::default()
            }],
            default_model: Some("scripted".into()),
            capacity: Some(Capacity::Told(1)),
        }
    }

    async fn chat(&self, request: Arc<ChatRequest>) -> Result<ChatStream, LlmError> {
        let script = Arc::clone(&self.0);
        let steps = script.steps(&request);
        script.requests.lock().unwrap().push((*request).clone());
        check_history(&request.messages);
        // Of a long prompt no less than it has words: a server that read less has cut it.
        let prompt_tokens = match words(&request) {
            0..500 => 10,
            words => words,
        };
        let (tx, mut rx) = mpsc::channel(1);
        tokio::spawn(async move {
            let mut whole = OnDrop(Arc::clone(&script), false);
            for step in steps {
                let delta = match step {
                    Say::Text(text) => Ok(ChatDelta::Text(text)),
                    Say::Thinking(text) => Ok(ChatDelta::Thinking(text)),
                    Say::Call(name, arguments) => Ok(ChatDelta::ToolCall(RequestedCall {
                        name: name.into(),
                        arguments,
                    })),
                    Say::Fail(error) => Err(error),
                    Say::Hold => {
                        tokio::select! {
                            permit = script.release.acquire() => permit.unwrap().forget(),
                            () = tx.closed() => return,
                        }
                        continue;
                    }
                    Say::Silence => {
                        tx.closed().await;
                        return;
                    }
                };
                let failed = delta.is_err();
                if tx.send(delta).await.is_err() {
                    return;
                }
                if failed {
                    whole.1 = true;
                    return;
                }
            }
            let done = ChatDelta::Done {
                finish: FinishReason::Stop,
                usage: Some(Usage {
                    prompt_tokens,
                    completion_tokens: 5,
                    cached_tokens: None,
                }),
            };
            whole.1 = tx.send(Ok(done)).await.is_ok();
        });
        Ok(Box::pin(futures_util::stream::poll_fn(move |cx| {
            rx.poll_recv(cx)
        })))
    }
}

impl Scripted {
    pub(super) fn new() -> Self {
        Self {
            replies: Mutex::default(),
            answers: Mutex::default(),
            whole: Mutex::default(),
            requests: Mutex::default(),
            release: tokio::sync::Semaphore::new(0),
            dropped: tokio::sync::watch::Sender::new(0),
        }
    }

    /// What is said to a request: what was scripted for a word in it; else what is next in line
    /// for its kind. Titles are asked for whenever; they get nothing.
    fn steps(&self, request: &ChatRequest) -> Vec<Say> {
        let mut answers = self.answers.lock().unwrap();
        let found = answers
            .iter()
            .position(|(word, _)| request.messages.iter().any(|m| asks(m, word)));
        match found {
            Some(at) => answers.remove(at).1,
            None if request.streamed => {
                let next = self.replies.lock().unwrap().pop_front();
                next.unwrap_or_else(|| vec![Say::Text("fine".into())])
            }
            None if is_title(request) => Vec::new(),
            None => self.whole.lock().unwrap().pop_front().unwrap_or_default(),
        }
    }
}

impl House {
    /// What the model says next.
    pub(crate) fn script(&self, reply: impl IntoIterator<Item = Say>) {
        self.model
            .replies
            .lock()
            .unwrap()
            .push_back(reply.into_iter().collect());
    }

    /// What the model says to the next request in which this word stands.
    pub(crate) fn answer(&self, word: &'static str, reply: impl IntoIterator<Item = Say>) {
        let reply = reply.into_iter().collect();
        self.model.answers.lock().unwrap().push((word, reply));
    }

    /// Lets one [`Say::Hold`] go on.
    pub(crate) fn release(&self) {
        self.model.release.add_permits(1);
    }

    /// What the model says to the next question of Navi's own, titles aside.
    pub(crate) fn whole(&self, reply: impl IntoIterator<Item = Say>) {
        let reply = reply.into_iter().collect();
        self.model.whole.lock().unwrap().push_back(reply);
    }

    /// What the model was sent so far, titles aside.
    pub(crate) fn requests(&self) -> Vec<ChatRequest> {
        let mut requests = self.model.requests.lock().unwrap().clone();
        requests.retain(|request| !is_title(request));
        requests
    }

    /// What the model was sent by runs; the rest are questions of Navi's own.
    pub(crate) fn asked(&self) -> Vec<ChatRequest> {
        let mut requests = self.requests();
        requests.retain(|request| request.streamed);
        requests
    }

    /// Waits until the model was sent this many requests.
    pub(crate) async fn requests_reach(&self, count: usize) {
        let reached = async {
            while self.requests().len() < count {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, reached)
            .await
            .expect("the model was not asked");
    }

    /// Waits until this many streams were closed before their end.
    pub(crate) async fn streams_dropped(&self, count: u32) {
        let mut dropped = self.model.dropped.subscribe();
        tokio::time::timeout(PATIENCE, dropped.wait_for(|n| *n >= count))
            .await
            .expect("the stream was not closed")
            .unwrap();
    }
}

pub(crate) fn write_call(path: &str, content: &str) -> Say {
    Say::Call(
        "filesystem",
        json!({"action": "write", "path": path, "content": content}),
    )
}

fn words(request: &ChatRequest) -> u32 {
    let text = serde_json::to_string(&request.messages).unwrap();
    u32::try_from(text.split_whitespace().count()).unwrap()
}

/// Whether this asks for a session's title.
fn is_title(request: &ChatRequest) -> bool {
    !request.streamed && request.messages.iter().any(|m| asks(m, "a title"))
}

/// Whether the word stands in an instruction or in what a person or a parent said.
fn asks(message: &ChatMessage, word: &str) -> bool {
    match message {
        ChatMessage::System { content } | ChatMessage::User { content, .. } => {
            content.contains(word)
        }
        ChatMessage::Assistant { .. } | ChatMessage::Tool { .. } => false,
    }
}

/// What every provider demands: each call has exactly one result, right after it, in order.
fn check_history(messages: &[PromptMessage]) {
    let mut open: VecDeque<String> = VecDeque::new();
    for message in messages {
        match &**message {
            ChatMessage::Tool { call_id, .. } => {
                assert_eq!(open.pop_front().as_ref(), Some(&call_id.0), "{messages:#?}");
            }
            other => {
                assert!(open.is_empty(), "calls without results: {messages:#?}");
                if let ChatMessage::Assistant { tool_calls, .. } = other {
                    open.extend(tool_calls.iter().map(|call| call.id.0.clone()));
                }
            }
        }
    }
    assert!(open.is_empty(), "calls without results: {messages:#?}");
}
