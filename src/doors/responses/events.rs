//! The events of a response, as they are written.
//!
//! They are numbered so that one who comes back says how far it got, however its text was cut when
//! it was told: what opens or closes something counts one, a delta as much as it has UTF-16 code
//! units, and bears the number of its last.

use navi_actors::protocol::event::{behind_utf16, utf16_len};
use serde::Serialize;
use serde_json::Value;

/// See the module.
#[derive(Debug)]
pub(super) struct Events {
    /// The number of the next one.
    next: u64,
    /// What was told before: up to this number.
    known: Option<u64>,
    /// Told, and not sent yet.
    written: Vec<u8>,
}

#[derive(Serialize)]
struct Event<'a, B> {
    #[serde(flatten)]
    body: &'a B,
    r#type: &'a str,
    sequence_number: u64,
}

/// What a delta says.
#[derive(Serialize)]
struct Delta<'a, P> {
    #[serde(flatten)]
    piece: &'a P,
    item_id: &'a Value,
    output_index: usize,
    delta: &'a str,
}

impl Events {
    /// For one who knows what was told up to this number.
    pub(super) fn after(known: Option<u64>) -> Self {
        Self {
            next: 0,
            known,
            written: Vec::new(),
        }
    }

    /// Those that are to be sent.
    pub(super) fn ready(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.written)
    }

    pub(super) fn silence(&mut self) {
        self.written.extend_from_slice(b": still here\n\n");
    }

    pub(super) fn tell(&mut self, name: &str, body: &impl Serialize) {
        let number = self.next;
        self.next += 1;
        if self.known.is_none_or(|known| known < number) {
            self.write(name, number, body);
        }
    }

    /// A piece of text of this item.
    pub(super) fn delta(
        &mut self,
        name: &str,
        (item_id, output_index): (&Value, usize),
        piece: &impl Serialize,
        text: &str,
    ) {
        let begin = self.next;
        self.next += utf16_len(text).max(1);
        let number = self.next - 1;
        let delta = match self.known {
            Some(known) if known >= number => return,
            Some(known) => behind_utf16(text, (known + 1).saturating_sub(begin)),
            None => text,
        };
        let body = Delta {
            piece,
            item_id,
            output_index,
            delta,
        };
        self.write(name, number, &body);
    }

    fn write(&mut self, name: &str, number: u64, body: &impl Serialize) {
        for part in ["event: ", name, "\ndata: "] {
            self.written.extend_from_slice(part.as_bytes());
        }
        let event = Event {
            body,
            r#type: name,
            sequence_number: number,
        };
        // Ours always can be written.
        let _ = serde_json::to_writer(&mut self.written, &event);
        self.written.extend_from_slice(b"\n\n");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_an_event_says_stands_before_its_type_and_number() {
        let mut events = Events::after(None);
        events.tell("response.created", &json!({"response": {"id": "a"}}));
        let piece = json!({"content_index": 0, "logprobs": []});
        events.delta(
            "response.output_text.delta",
            (&json!("msg"), 1),
            &piece,
            "ab",
        );
        let written = String::from_utf8(events.ready()).unwrap();
        let created = r#"event: response.created
data: {"response":{"id":"a"},"type":"response.created","sequence_number":0}"#;
        let delta = r#"event: response.output_text.delta
data: {"content_index":0,"logprobs":[],"item_id":"msg","output_index":1,"delta":"ab","type":"response.output_text.delta","sequence_number":2}"#;
        assert_eq!(written, format!("{created}\n\n{delta}\n\n"));
        assert!(events.ready().is_empty());
    }
}
