//! Reads a constrained reply while it is written: text for the user streams on at once, a call
//! of a real tool waits until it is whole.

use serde_json::Value;

use super::tool_schema::REPLY;
use crate::protocol::chat::{ChatDelta, RequestedCall};

/// What stands between a call's name and its arguments, and before a reply's text.
const NAME: &str = "{\"name\": ";
const ARGUMENTS: &str = ", \"arguments\": ";
const REPLY_TEXT: &str = "{\"text\": \"";

/// A reply as far as it has come.
#[derive(Debug)]
pub(super) enum Reply {
    /// Which tool is not known yet.
    Head(String),
    /// The user's text, after its opening quote.
    Text(JsonText),
    /// A real tool's call, all of it.
    Call { name: String, arguments: String },
}

impl Default for Reply {
    fn default() -> Self {
        Self::Head(String::new())
    }
}

impl Reply {
    /// Adds what was written and gives back the text that the user can read by now.
    pub(super) fn push(&mut self, written: &str) -> String {
        match self {
            Self::Head(head) => {
                head.push_str(written);
                let head = std::mem::take(head);
                let (next, text) = Self::after_head(head);
                *self = next;
                text
            }
            Self::Text(text) => text.push(written),
            Self::Call { arguments, .. } => {
                arguments.push_str(written);
                String::new()
            }
        }
    }

    /// The call that the reply was; none where it was text for the user.
    pub(super) fn finish(self) -> Option<ChatDelta> {
        let (name, mut arguments) = match self {
            Self::Text(_) => return None,
            // Cut off before it said anything.
            Self::Head(_) => return None,
            Self::Call { name, arguments } => (name, arguments),
        };
        let whole = arguments
            .strip_suffix('}')
            .and_then(|object| serde_json::from_str::<Value>(object).ok())
            .filter(Value::is_object);
        let arguments = match whole {
            Some(object) => object,
            // Cut off by a limit: the run answers the model with what is wrong.
            None => Value::String(std::mem::take(&mut arguments)),
        };
        Some(ChatDelta::ToolCall(RequestedCall { name, arguments }))
    }

    fn after_head(head: String) -> (Self, String) {
        let parted = head
            .strip_prefix(NAME)
            .and_then(|rest| rest.split_once(ARGUMENTS));
        let Some((name, arguments)) = parted else {
            return (Self::Head(head), String::new());
        };
        let name: String = serde_json::from_str(name).unwrap_or_default();
        if name != REPLY {
            let arguments = arguments.to_owned();
            return (Self::Call { name, arguments }, String::new());
        }
        match arguments.strip_prefix(REPLY_TEXT) {
            Some(written) => {
                let mut text = JsonText::default();
                let read = text.push(written);
                (Self::Text(text), read)
            }
            None => (Self::Head(head), String::new()),
        }
    }
}

/// Decodes the inside of a JSON string that comes in pieces.
#[derive(Debug, Default)]
pub(super) struct JsonText {
    /// An escape that has begun: `\`, or `\u` with up to three digits.
    escape: String,
    /// The first half of a character that takes two `\u` escapes.
    high: Option<u16>,
    closed: bool,
}

impl JsonText {
    fn push(&mut self, written: &str) -> String {
        let mut text = String::new();
        for letter in written.chars() {
            if self.closed {
                break;
            }
            if self.escape.is_empty() {
                match letter {
                    '\\' => self.escape.push(letter),
                    '"' => {
                        self.closed = true;
                        self.drop_high(&mut text);
                    }
                    plain => {
                        self.drop_high(&mut text);
                        text.push(plain);
                    }
                }
            } else {
                self.escape.push(letter);
                self.try_escape(&mut text);
            }
        }
        text
    }

    /// Decodes the escape if it is whole.
    fn try_escape(&mut self, text: &mut String) {
        let Some(code) = self.escape.strip_prefix("\\u") else {
            let letter = match self.escape.as_str() {
                "\\n" => '\n',
                "\\r" => '\r',
                "\\t" => '\t',
                "\\b" => '\u{8}',
                "\\f" => '\u{c}',
                other => other.chars().next_back().unwrap_or_default(),
            };
            self.escape.clear();
            self.drop_high(text);
            text.push(letter);
            return;
        };
        if code.len() < 4 {
            return;
        }
        let unit = u16::from_str_radix(code, 16).unwrap_or(0xFFFD);
        self.escape.clear();
        if let (Some(high), 0xDC00..=0xDFFF) = (self.high, unit) {
            self.high = None;
            text.extend(char::decode_utf16([high, unit]).flatten());
            return;
        }
        self.drop_high(text);
        if (0xD800..0xDC00).contains(&unit) {
            self.high = Some(unit);
        } else {
            text.push(char::from_u32(unit.into()).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
    }

    /// A first half whose second never came.
    fn drop_high(&mut self, text: &mut String) {
        if self.high.take().is_some() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::llm::starter::tool_schema::{written_call, written_reply};

    fn read(written: &str, cuts: &[usize]) -> (String, Option<ChatDelta>) {
        let letters: Vec<char> = written.chars().collect();
        let mut reply = Reply::default();
        let mut text = String::new();
        let mut from = 0;
        for to in cuts
            .iter()
            .map(|cut| cut % (letters.len() + 1))
            .chain([letters.len()])
        {
            let to = to.max(from);
            let piece: String = letters[from..to].iter().collect();
            text.push_str(&reply.push(&piece));
            from = to;
        }
        (text, reply.finish())
    }

    proptest! {
        #[test]
        fn any_text_arrives_whole_however_it_is_split(text in any::<String>(), cuts in prop::collection::vec(0_usize..300, 0..10)) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            prop_assert_eq!(read(&written_reply(&text), &cuts), (text, None));
        }

        #[test]
        fn a_call_arrives_once_and_whole_however_it_is_split(path in any::<String>(), cuts in prop::collection::vec(0_usize..300, 0..10)) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            let arguments = json!({"path": path, "lines": [1, 2]});
            let call = RequestedCall { name: "filesystem".to_owned(), arguments: arguments.clone() };
            prop_assert_eq!(
                read(&written_call("filesystem", &arguments), &cuts),
                (String::new(), Some(ChatDelta::ToolCall(call)))
            );
        }
    }

    #[test]
    fn escapes_are_decoded_at_any_split() {
        let written = r#"{"name": "reply", "arguments": {"text": "\u00e9\ud83e\udd8a\/\\\ud83e!\ud83e\u0041\udd8a"}}"#;
        for cut in 0..written.len() {
            assert_eq!(read(written, &[cut]).0, "é🦊/\\\u{FFFD}!\u{FFFD}A\u{FFFD}");
        }
    }

    #[test]
    fn text_streams_before_the_reply_is_whole() {
        let mut reply = Reply::default();
        assert_eq!(
            reply.push(r#"{"name": "reply", "arguments": {"text": "Hel"#),
            "Hel"
        );
        assert_eq!(reply.push("lo"), "lo");
        assert_eq!(reply.push("\"}}"), "");
        assert_eq!(reply.finish(), None);
    }

    #[test]
    fn a_call_that_was_cut_off_keeps_its_raw_text() {
        let (_, call) = read(r#"{"name": "todo", "arguments": {"a": "b"#, &[]);
        let call = match call {
            Some(ChatDelta::ToolCall(call)) => Some(call),
            _ => None,
        };
        assert_eq!(
            call.map(|call| call.arguments),
            Some(Value::String(r#"{"a": "b"#.to_owned()))
        );
    }
}
