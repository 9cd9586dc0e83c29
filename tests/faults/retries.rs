//! 429 and 503 with every form of `Retry-After`: the pause that was asked for, within bounds, and
//! Stop within a second all the while.

use std::time::{Duration, Instant};

use chrono::{TimeDelta, Utc};
use futures_util::future::join_all;
use serde_json::json;

use crate::backend::{Protocol, calls, end_of, over, say};
use crate::fake_model::{FakeModel, Reply, Step};
use crate::server::Server;

/// The longest pause that is kept, in seconds.
const CAP: f64 = 30.0;

/// What a server says of when to come again, and what is made of it.
#[derive(Clone, Debug)]
struct Form {
    name: &'static str,
    header: &'static str,
    value: Option<String>,
    /// From and to, in seconds.
    pause: (f64, f64),
}

fn forms() -> Vec<Form> {
    // Before the second try the pause of our own is half a second and a random part of it again.
    let own = (0.5, 1.1);
    let in_a_while = |format: &str| {
        let at = Utc::now() + TimeDelta::seconds(25);
        Some(at.format(format).to_string())
    };
    let text = |text: &str| Some(text.to_owned());
    // A machine that is busy takes its time to come to it.
    let date = (5.0, 25.0);
    let form = |name, value, pause| Form {
        name,
        header: "Retry-After",
        value,
        pause,
    };
    let mut forms = vec![
        form("missing", None, own),
        form("seconds", text("2"), (2.0, 2.0)),
        form("none", text("0"), own),
        form("a fraction", text("1.5"), (1.5, 1.5)),
        form("an IMF date", in_a_while("%a, %d %b %Y %H:%M:%S GMT"), date),
        form(
            "an RFC 850 date",
            in_a_while("%A, %d-%b-%y %H:%M:%S GMT"),
            date,
        ),
        form("an asctime date", in_a_while("%a %b %e %H:%M:%S %Y"), date),
        form(
            "a date long past",
            text("Sun, 06 Nov 1994 08:49:37 GMT"),
            own,
        ),
        form(
            "a date far ahead",
            text("Fri, 31 Dec 9999 23:59:59 GMT"),
            (CAP, CAP),
        ),
        form("garbage", text("soon"), own),
        form("an empty one", text(""), own),
        form("less than none", text("-5"), own),
        form("no number", text("NaN"), own),
        form("a day", text("86400"), (CAP, CAP)),
        form(
            "more than a number holds",
            text("99999999999999999999"),
            (CAP, CAP),
        ),
    ];
    forms.push(Form {
        header: "Retry-After-Ms",
        ..form("milliseconds", text("1700"), (1.7, 1.7))
    });
    forms
}

/// The pause that was told, in seconds.
fn told_pause(detail: &str) -> f64 {
    let told = detail.rsplit_once("trying again in ").expect("a pause").1;
    told.trim_end_matches(" s").parse().expect("a number")
}

async fn busy(model: &FakeModel, server: &Server, status: u16, form: Form) {
    let message = format!("{status}, {}.", form.name);
    let headers = form.value.iter();
    let refusal = Step::Respond {
        status,
        headers: headers
            .map(|value| (form.header.to_owned(), value.clone()))
            .collect(),
        body: r#"{"error": "come back later"}"#.to_owned(),
    };
    model.script(Reply::new([refusal]).when(&message));
    let (_, mut tab) = say(server, &message).await;
    let waits = loop {
        let waits = tab.next_of("run_waiting").await;
        if waits["reason"] == "retry" {
            break waits;
        }
    };
    let pause = told_pause(waits["detail"].as_str().unwrap());
    // What is told is rounded.
    let (from, to) = form.pause;
    assert!(
        pause > from - 0.06 && pause < to + 0.06,
        "{form:?}: {waits}"
    );
    if pause > 4.0 {
        let asked = Instant::now();
        tab.send(&json!({"type": "stop"})).await;
        assert_eq!(end_of(&mut tab).await["type"], "stream_stopped");
        let took = asked.elapsed();
        // Stop waits for no pause; how fast it is, its own test says.
        assert!(took.as_secs_f64() < pause, "{form:?}: {took:?}");
        assert_eq!(calls(model, &message).len(), 1, "{form:?}");
        return;
    }
    let end = end_of(&mut tab).await;
    assert_eq!(end["content"], format!("You said: {message}"), "{form:?}");
    let calls = calls(model, &message);
    assert_eq!(calls.len(), 2, "{form:?}");
    let between = calls[1].at_ms - calls[0].at_ms;
    assert!(
        between as f64 >= pause * 1000.0 - 60.0,
        "{form:?}: {between} ms"
    );
}

async fn every_form(protocol: Protocol) {
    let (model, server) = protocol.talking(&[]).await;
    for status in [429, 503] {
        let forms = forms().into_iter();
        join_all(forms.map(|form| busy(&model, &server, status, form))).await;
    }
    model.assert_clean();
}

#[tokio::test]
async fn a_busy_backend_is_asked_again_when_it_says_so_over_ollamas_protocol() {
    every_form(Protocol::Ollama).await;
}

#[tokio::test]
async fn a_busy_backend_is_asked_again_when_it_says_so_over_openais_protocol() {
    every_form(Protocol::OpenAi).await;
}

#[tokio::test]
async fn a_backend_that_stays_busy_is_asked_four_times_and_told() {
    let (model, server) = Protocol::OpenAi.talking(&[]).await;
    model.script(
        Reply::new([Step::status(503, "busy")])
            .when("stays busy")
            .always(),
    );
    let (session, mut tab) = say(&server, "stays busy").await;
    let end = end_of(&mut tab).await;
    assert_eq!(
        (&end["code"], &end["recoverable"]),
        (&json!("backend_busy"), &json!(false))
    );
    assert_eq!(calls(&model, "stays busy").len(), 4);
    // No credit left is told in the same way, and is no reason to ask again.
    let body = r#"{"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}"#;
    model.script(Reply::new([Step::status(429, body)]).when("no credit"));
    tab.send(&json!({"type": "message", "content": "no credit"}))
        .await;
    let end = end_of(&mut tab).await;
    assert_eq!(end["code"], "backend_error", "{end}");
    assert_eq!(calls(&model, "no credit").len(), 1);
    tab.send(&json!({"type": "message", "content": "again"}))
        .await;
    assert_eq!(end_of(&mut tab).await["content"], "You said: again");
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(snapshot["messages"].as_array().unwrap().len(), 4);
    model.assert_clean();
}

/// What a backend does while Stop comes.
fn stalls(protocol: Protocol) -> Vec<(&'static str, Vec<Step>)> {
    let signs = match protocol {
        Protocol::Ollama => "\n",
        Protocol::OpenAi => ": still here\n\n",
    };
    let endless = |piece: &str, every_ms| Step::EndlessRaw {
        piece: piece.to_owned(),
        every_ms,
    };
    vec![
        ("silent", vec![Step::Silence]),
        ("silent after the head", vec![Step::Begin, Step::Silence]),
        (
            "silent in mid-stream",
            vec![Step::text("half"), Step::Silence],
        ),
        ("signs of life", vec![Step::Begin, endless(signs, 10)]),
        (
            "signs of life without a pause",
            vec![Step::text("half"), endless(signs, 0)],
        ),
        (
            "half a head",
            vec![Step::Bytes(b"HTTP/1.1 200".to_vec()), Step::Silence],
        ),
    ]
}

async fn stop_in_each(protocol: Protocol) {
    let (model, server) = protocol.talking(&[]).await;
    let mut quickest = Duration::MAX;
    for (name, steps) in stalls(protocol) {
        let says = steps.iter().any(|step| matches!(step, Step::Text(_)));
        model.script(Reply::new(steps).when(name));
        let (_, mut tab) = say(&server, name).await;
        if says {
            tab.next_of("stream_delta").await;
        } else {
            let asked = |chats: &[crate::fake_model::Recorded]| {
                let mut chats = chats.iter();
                chats.any(|it| it.last_user_text() == name && it.body["stream"] != false)
            };
            model.wait_for(asked).await;
        }
        let asked = Instant::now();
        tab.send(&json!({"type": "stop"})).await;
        assert_eq!(end_of(&mut tab).await["type"], "stream_stopped", "{name}");
        model.wait_for(over).await;
        // On a machine that is busy a second is no measure of each; no time-out is as short as this.
        let took = asked.elapsed();
        quickest = quickest.min(took);
        assert!(
            took < Duration::from_secs(30),
            "{protocol:?}, {name}: {took:?}"
        );
        tab.send(&json!({"type": "message", "content": "again"}))
            .await;
        assert_eq!(
            end_of(&mut tab).await["content"],
            "You said: again",
            "{name}"
        );
    }
    // And what a machine adds on which a plain request, with its commit, takes its time, too.
    let asked = Instant::now();
    server.new_session().await;
    let limit = Duration::from_secs(1) + 10 * asked.elapsed();
    assert!(quickest < limit, "{quickest:?}");
    model.assert_clean();
}

#[tokio::test]
async fn stop_within_a_second_whatever_the_backend_does_over_ollamas_protocol() {
    stop_in_each(Protocol::Ollama).await;
}

#[tokio::test]
async fn stop_within_a_second_whatever_the_backend_does_over_openais_protocol() {
    stop_in_each(Protocol::OpenAi).await;
}
