use serde_json::{Value, json};

use super::*;

const RUN: &str = "0190a0b0-0000-7000-8000-000000000001";
const CHILD: &str = "0190a0b0-0000-7000-8000-000000000002";
const MESSAGE: &str = "0190a0b0-0000-7000-8000-000000000003";

fn view(shows: Shows) -> View {
    View::new(Workspace("/w".into()), shows, "acp:me:".to_owned())
}

/// What the client is told of these events, as it reads it.
fn told(view: &mut View, events: &[Value]) -> Vec<Value> {
    let mut updates = Vec::new();
    for event in events {
        let mut envelope = json!({"run_id": RUN, "at": "2026-01-01T00:00:00Z"});
        let fields = envelope.as_object_mut().unwrap();
        fields.extend(event.as_object().unwrap().clone());
        for told in view.take(serde_json::from_value(envelope).unwrap()) {
            if let Told::Update(update) = told {
                updates.push(serde_json::to_value(update).unwrap());
            }
        }
    }
    updates
}

fn delta(kind: &str, offset: u64, delta: &str) -> Value {
    let part = if kind == "stream_delta" {
        "text"
    } else {
        "thinking"
    };
    json!({"type": kind, "part_id": format!("{MESSAGE}.{part}"), "offset": offset, "delta": delta})
}

#[test]
fn what_is_told_again_after_a_lost_connection_is_told_once() {
    let mut view = view(Shows::default());
    let updates = told(
        &mut view,
        &[
            delta("thinking_delta", 0, "Hm."),
            delta("stream_delta", 0, "Grü"),
            // The connection is lost, and made again.
            delta("thinking_delta", 0, "Hm."),
            delta("stream_delta", 0, "Grüße"),
            delta("stream_delta", 5, "!"),
            json!({"type": "stream_end", "seq": 9, "content": "Grüße! Da", "message_id": MESSAGE,
                "context_tokens": 10, "max_context_tokens": 100, "completed": true}),
        ],
    );
    let texts: Vec<_> = updates
        .iter()
        .filter_map(|it| it["content"]["text"].as_str())
        .collect();
    assert_eq!(texts, ["Hm.", "Grü", "ße", "!", " Da"]);
    assert_eq!(updates[1]["messageId"], MESSAGE);
    let usage = json!({"sessionUpdate": "usage_update", "used": 10, "size": 100});
    assert_eq!(*updates.last().unwrap(), usage);
}

#[test]
fn what_others_say_is_told_when_it_becomes_part_of_the_conversation() {
    let said = |client_id: &str, message_id: &str, queued: bool| {
        json!({"type": "message_accepted", "seq": 1, "client_id": client_id, "message_id": message_id,
            "queued": queued, "content": client_id})
    };
    let mut view = view(Shows::default());
    assert_eq!(
        told(&mut view, &[said("acp:me:1", MESSAGE, false)]).len(),
        0
    );
    let now = told(&mut view, &[said("page", CHILD, false)]);
    assert_eq!(now[0]["content"]["text"], "page");
    assert_eq!(told(&mut view, &[said("later", CHILD, true)]).len(), 0);
    let began = json!({"type": "stream_start", "seq": 2, "message_id": CHILD, "model": "m", "profile_id": "p"});
    let began = told(&mut view, &[began]);
    assert_eq!(
        (&began[0]["sessionUpdate"], &began[0]["content"]["text"]),
        (&json!("user_message_chunk"), &json!("later"))
    );
}

#[test]
fn a_subagents_steps_stand_in_the_call_that_sent_it_out() {
    let of_child = |mut event: Value| {
        event["run_id"] = json!(CHILD);
        event["parent_run_id"] = json!(RUN);
        event
    };
    let mut view = view(Shows::default());
    let updates = told(
        &mut view,
        &[
            json!({"type": "tool_started", "seq": 1, "tool": "spawn_agent", "args": {"task": "look"},
                "is_subagent": false, "call_id": "call_1", "message_id": MESSAGE}),
            of_child(
                json!({"type": "subagent_started", "seq": 2, "call_id": "call_1",
                "profile_id": "secretary", "task": "look"}),
            ),
            of_child(delta("stream_delta", 0, "words of a child")),
            of_child(
                json!({"type": "tool_started", "seq": 3, "tool": "filesystem",
                "args": {"action": "read", "path": "a.md"}, "is_subagent": true,
                "call_id": "call_2", "message_id": MESSAGE}),
            ),
        ],
    );
    assert_eq!(updates.len(), 3);
    let steps = &updates[2];
    assert_eq!(steps["toolCallId"], "call_1");
    assert_eq!(
        steps["content"][0]["content"]["text"],
        "- a subagent (`secretary`) began\n- read a.md"
    );
}

#[test]
fn a_client_is_sent_only_what_it_says_that_it_shows() {
    let notice = json!({"type": "notice", "seq": 1, "code": "c", "message": "know this"});
    let compressed = json!({"type": "context_compressed", "seq": 2, "messages_before": 9,
        "messages_after": 2, "first_kept": null});
    let events = [notice, compressed];
    let kinds = |shows| {
        let updates = told(&mut view(shows), &events).into_iter();
        let kinds = updates.map(|it| it["sessionUpdate"].as_str().unwrap().to_owned());
        kinds.collect::<Vec<_>>()
    };
    assert_eq!(kinds(Shows::default()), ["agent_thought_chunk"]);
    let all = Shows {
        notices: true,
        compaction: true,
    };
    assert_eq!(kinds(all), ["notice", "compaction_update"]);
}

#[test]
fn output_of_a_running_call_is_told_at_a_pace_and_in_part() {
    let mut view = view(Shows::default());
    let output = |offset: u64, delta: String| {
        json!({"type": "tool_output", "call_id": "call_1", "part_id": "call_1.output",
            "offset": offset, "delta": delta})
    };
    let long = "x".repeat(OUTPUT_BYTES);
    assert_eq!(
        told(
            &mut view,
            &[output(0, long), output(16_384, "end".to_owned())]
        )
        .len(),
        0
    );
    let due = view.due().unwrap();
    assert_eq!(view.take_due(due - OUTPUT_PACE).len(), 0);
    let [update] = view.take_due(due).try_into().unwrap();
    let update = serde_json::to_value(update).unwrap();
    let text = update["content"][0]["content"]["text"].as_str().unwrap();
    assert!(text.ends_with("xend\n```"), "{}", text.len());
    assert!(text.len() <= OUTPUT_BYTES + 16);
    assert_eq!(view.due(), None);
}
