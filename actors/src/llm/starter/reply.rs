//! Reads a reply while it is written: text streams on at once, until the model begins a call by
//! the mark that it was taught; the call waits until it is whole.

use serde_json::Value;

use super::tool_schema::CALL_BEGINS;
use crate::protocol::chat::{ChatDelta, RequestedCall};

/// What stands before a call's name, and between that and its arguments.
const NAME: &str = "{\"name\": ";
const ARGUMENTS: &str = ", \"arguments\": ";

/// A reply as far as it has come.
#[derive(Debug)]
pub(super) enum ReplyParser {
    /// The end of the text that may still be the beginning of the mark.
    Text(String),
    /// What was written after the mark.
    Call(String),
}

impl Default for ReplyParser {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl ReplyParser {
    /// Adds what was written and gives back the text that the user can read by now.
    pub(super) fn push(&mut self, written: &str) -> String {
        let held = match self {
            Self::Call(call) => {
                call.push_str(written);
                return String::new();
            }
            Self::Text(held) => held,
        };
        held.push_str(written);
        if let Some((text, call)) = held.split_once(CALL_BEGINS) {
            let text = text.trim_end().to_owned();
            *self = Self::Call(call.to_owned());
            return text;
        }
        let certain = certain(held);
        held.drain(..certain).collect()
    }

    /// What was written of a call; none where the reply is text.
    pub(super) fn call(&self) -> Option<&str> {
        match self {
            Self::Text(_) => None,
            Self::Call(call) => Some(call),
        }
    }

    /// What stands behind the mark is no call: it was text all along, and can be read as such.
    pub(super) fn read_as_text(&mut self) -> String {
        match std::mem::take(self) {
            Self::Text(held) => held,
            Self::Call(call) => format!("{CALL_BEGINS}{call}"),
        }
    }

    /// The reply has ended: the text that was held back, or the call. Neither where a call was cut
    /// off before it said of what.
    pub(super) fn finish(self) -> Option<ChatDelta> {
        let call = match self {
            Self::Text(held) => {
                let held = held.trim_end();
                return (!held.is_empty()).then(|| ChatDelta::Text(held.to_owned()));
            }
            Self::Call(call) => call,
        };
        let (name, arguments) = call
            .trim_start()
            .strip_prefix(NAME)?
            .split_once(ARGUMENTS)?;
        let name: String = serde_json::from_str(name).ok()?;
        let whole = arguments
            .strip_suffix('}')
            .and_then(|object| serde_json::from_str::<Value>(object).ok())
            .filter(Value::is_object);
        // Cut off by a limit: the run answers the model with what is wrong.
        let arguments = whole.unwrap_or_else(|| Value::from(arguments));
        Some(ChatDelta::ToolCall(RequestedCall { name, arguments }))
    }
}

/// How much of a text can be no part of the mark, nor of the space before it.
fn certain(text: &str) -> usize {
    let begun = (1..CALL_BEGINS.len())
        .rev()
        .find(|length| text.ends_with(&CALL_BEGINS[..*length]))
        .unwrap_or(0);
    text[..text.len() - begun].trim_end().len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::llm::starter::tool_schema::written_call;

    fn read(written: &str, cuts: &[usize]) -> (String, Option<ChatDelta>) {
        let letters: Vec<char> = written.chars().collect();
        let mut reply = ReplyParser::default();
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
        match reply.finish() {
            Some(ChatDelta::Text(rest)) => (text + &rest, None),
            call => (text, call),
        }
    }

    proptest! {
        #[test]
        fn any_text_arrives_whole_however_it_is_split(
            parts in prop::collection::vec(prop_oneof![
                prop::sample::select(vec!["<", "<tool", "<tool_call", "_call>", "</tool_call>", " \n", "{\"name\": "])
                    .prop_map(str::to_owned),
                ".{0,6}",
            ], 0..12),
            cuts in prop::collection::vec(0_usize..300, 0..10),
        ) {
            let text = parts.concat();
            prop_assume!(!text.contains(CALL_BEGINS));
            let mut cuts = cuts;
            cuts.sort_unstable();
            prop_assert_eq!(read(&text, &cuts), (text.trim_end().to_owned(), None));
        }

        #[test]
        fn a_call_arrives_once_and_whole_however_it_is_split(path in any::<String>(), cuts in prop::collection::vec(0_usize..300, 0..10)) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            let arguments = json!({"path": path, "lines": [1, 2]});
            let call = RequestedCall { name: "filesystem".to_owned(), arguments: arguments.clone() };
            let written = format!("Let me look.\n<tool_call>\n{}", written_call("filesystem", &arguments));
            prop_assert_eq!(
                read(&written, &cuts),
                ("Let me look.".to_owned(), Some(ChatDelta::ToolCall(call)))
            );
        }
    }

    #[test]
    fn text_streams_before_the_reply_is_whole() {
        let mut reply = ReplyParser::default();
        assert_eq!(reply.push("Paris is "), "Paris is");
        assert_eq!(reply.push("a <b"), " a <b");
        assert_eq!(reply.push(" <tool"), "");
        assert_eq!(reply.push("box>"), " <toolbox>");
        assert_eq!(reply.finish(), None);
    }

    #[test]
    fn what_proves_to_be_no_call_is_read_as_text() {
        let mut reply = ReplyParser::default();
        assert_eq!(reply.push("Say <tool_call>["), "Say");
        assert_eq!(reply.call(), Some("["));
        assert_eq!(reply.read_as_text(), "<tool_call>[");
        assert_eq!(reply.push("it"), "it");
    }

    #[test]
    fn a_call_that_was_cut_off_keeps_its_raw_text() {
        let (_, call) = read(
            "<tool_call>\n{\"name\": \"todo\", \"arguments\": {\"a\": \"b",
            &[],
        );
        let call = match call {
            Some(ChatDelta::ToolCall(call)) => Some(call),
            _ => None,
        };
        assert_eq!(
            call.map(|call| call.arguments),
            Some(Value::String(r#"{"a": "b"#.to_owned()))
        );
        assert_eq!(
            read("<tool_call>\n{\"name\": \"to", &[]),
            (String::new(), None)
        );
    }
}
