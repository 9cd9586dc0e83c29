use std::sync::mpsc::{Receiver as Events, Sender as EventSender, channel};

use super::*;
use crate::protocol::chat::FinishReason;
use crate::protocol::offered::OfferedTools;

const LONG: Duration = Duration::from_secs(600);

/// What a scripted model does, by the request's model name; each step is told.
struct Scripted {
    events: EventSender<&'static str>,
}

impl Model for Scripted {
    fn answer(
        &mut self,
        request: &ChatRequest,
        emit: Emit<'_>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), ModelError> {
        match request.model.as_str() {
            "panic" => panic!("scripted"),
            "fail" => return Err(ModelError::Compute("scripted".to_owned())),
            "endless" => {
                while emit(ChatDelta::Text("x".to_owned())) && !cancelled() {}
                self.events.send("stopped").unwrap();
                return Err(ModelError::Cancelled);
            }
            _ => {}
        }
        emit(done());
        Ok(())
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        // The test may be over.
        let _ = self.events.send("dropped");
    }
}

fn done() -> ChatDelta {
    ChatDelta::Done {
        finish: FinishReason::Stop,
        usage: None,
    }
}

fn engine(idle: Duration) -> (Engine, Events<&'static str>) {
    let (sender, events) = channel();
    let sender = Mutex::new(sender);
    let load: Load = Arc::new(move |path| {
        let events = sender.lock().clone();
        if path.ends_with("missing") {
            return Err(ModelError::Unreadable {
                path: "missing".to_owned(),
                reason: "scripted".to_owned(),
            });
        }
        events.send("loaded").unwrap();
        Ok(Box::new(Scripted { events }))
    });
    (Engine::new(load, idle), events)
}

fn request(model: &str) -> ChatRequest {
    ChatRequest {
        model: model.to_owned(),
        messages: Vec::new(),
        tools: OfferedTools::default(),
        temperature: 0.0,
        think: false,
        context_window: 0,
        max_output_tokens: None,
        streamed: true,
        form: None,
    }
}

fn ask(engine: &Engine, path: &str, model: &str) -> Option<Result<ChatDelta, LlmError>> {
    let mut answer = engine.ask(PathBuf::from(path), request(model)).unwrap();
    answer.blocking_recv()
}

#[test]
fn a_model_is_loaded_once_and_changed_for_another() {
    let (engine, events) = engine(LONG);
    assert_eq!(ask(&engine, "a", ""), Some(Ok(done())));
    assert_eq!(ask(&engine, "a", ""), Some(Ok(done())));
    assert_eq!(ask(&engine, "b", ""), Some(Ok(done())));
    assert_eq!(
        events.try_iter().collect::<Vec<_>>(),
        ["loaded", "dropped", "loaded"]
    );
}

#[test]
fn a_model_that_nobody_asks_goes_and_comes_back() {
    let (engine, events) = engine(Duration::from_millis(1));
    assert_eq!(ask(&engine, "a", ""), Some(Ok(done())));
    assert_eq!(events.recv(), Ok("loaded"));
    assert_eq!(events.recv(), Ok("dropped"));
    assert_eq!(ask(&engine, "a", ""), Some(Ok(done())));
    assert_eq!(events.recv(), Ok("loaded"));
}

#[test]
fn a_dropped_answer_stops_the_model_and_the_next_is_answered() {
    let (engine, events) = engine(LONG);
    let mut answer = engine.ask(PathBuf::from("a"), request("endless")).unwrap();
    assert!(answer.blocking_recv().is_some());
    drop(answer);
    assert_eq!(ask(&engine, "a", ""), Some(Ok(done())));
    assert_eq!(events.try_iter().collect::<Vec<_>>(), ["loaded", "stopped"]);
}

#[test]
fn a_panic_is_a_clear_error_and_the_next_request_is_answered() {
    let (engine, _events) = engine(LONG);
    match ask(&engine, "a", "panic") {
        Some(Err(LlmError::NotReady(trouble))) => {
            assert_eq!(trouble.problem, PhraseCode::ModelCrashed.into());
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(ask(&engine, "a", ""), Some(Ok(done())));
}

#[test]
fn an_error_is_told_and_the_model_stays() {
    let (engine, events) = engine(LONG);
    assert!(matches!(
        ask(&engine, "a", "fail"),
        Some(Err(LlmError::MidStream { .. }))
    ));
    assert!(matches!(
        ask(&engine, "missing", ""),
        Some(Err(LlmError::NotReady { .. }))
    ));
    assert_eq!(events.try_iter().collect::<Vec<_>>(), ["loaded", "dropped"]);
}

#[test]
fn the_queue_is_bounded() {
    let (engine, _events) = engine(LONG);
    let mut first = engine.ask(PathBuf::from("a"), request("endless")).unwrap();
    assert!(first.blocking_recv().is_some());
    let waiting: Vec<_> = (0..WAITING)
        .map(|_| engine.ask(PathBuf::from("a"), request("")).unwrap())
        .collect();
    let refused = engine.ask(PathBuf::from("a"), request(""));
    assert!(matches!(refused, Err(LlmError::Busy { .. })));
    drop(first);
    for mut answer in waiting {
        assert_eq!(answer.blocking_recv(), Some(Ok(done())));
    }
}
