//! Reads a reply while it is written: text streams on at once, until the model begins a call; the
//! call waits until it is whole. A call begins with the mark that the prompt asks for, with the
//! one that many models were taught, or, at the very beginning of a reply, without any.

use serde_json::Value;

use super::tool_schema::{CALL_BEGINS, TAUGHT_CALL_BEGINS};
use crate::protocol::chat::{ChatDelta, RequestedCall};

const MARKS: [&str; 2] = [CALL_BEGINS, TAUGHT_CALL_BEGINS];

/// What stands before a call's name, and between that and its arguments.
const NAME: &str = "{\"name\": ";
const ARGUMENTS: &str = ", \"arguments\": ";

/// A reply as far as it has come.
#[derive(Debug)]
pub(super) struct ReplyParser {
    /// The tools' names as JSON writes them.
    names: Vec<String>,
    /// Whether the user was given any of it.
    begun: bool,
    written: Written,
}

#[derive(Debug)]
enum Written {
    /// The end of the text that may still be the beginning of a call.
    Text(String),
    /// The call's JSON without what led to it, and all of it as it came when that was seen.
    Call { json: String, beginning: String },
}

impl ReplyParser {
    /// Reads a reply that may call tools of these names.
    pub(super) fn new<'a>(tools: impl Iterator<Item = &'a str>) -> Self {
        Self {
            names: tools.map(|name| Value::from(name).to_string()).collect(),
            begun: false,
            written: Written::Text(String::new()),
        }
    }

    /// Adds what was written and gives back the text that the user can read by now.
    pub(super) fn push(&mut self, written: &str) -> String {
        let held = match &mut self.written {
            Written::Call { json, .. } => {
                json.push_str(written);
                return String::new();
            }
            Written::Text(held) => held,
        };
        held.push_str(written);
        let marked = MARKS.iter().find_map(|mark| held.split_once(mark));
        if let Some((text, json)) = marked {
            let text = text.trim_end().to_owned();
            let json = json.trim_start().to_owned();
            let beginning = held[text.len()..].trim_start().to_owned();
            self.written = Written::Call { json, beginning };
            return text;
        }
        if !self.begun {
            match bare_call(held, &self.names) {
                Bare::Call(json) => {
                    let beginning = std::mem::take(held);
                    self.written = Written::Call { json, beginning };
                    return String::new();
                }
                Bare::Perhaps => return String::new(),
                Bare::No => {}
            }
        }
        let certain = certain(held);
        self.begun |= certain > 0;
        held.drain(..certain).collect()
    }

    /// What was written of a call; none where the reply is text.
    pub(super) fn call(&self) -> Option<&str> {
        match &self.written {
            Written::Text(_) => None,
            Written::Call { json, .. } => Some(json),
        }
    }

    /// What looked like the beginning of a call is none: it was text all along, and can be read
    /// as such.
    pub(super) fn read_as_text(&mut self) -> String {
        self.begun = true;
        match std::mem::replace(&mut self.written, Written::Text(String::new())) {
            Written::Text(text)
            | Written::Call {
                beginning: text, ..
            } => text,
        }
    }

    /// The reply has ended: the text that was held back, or the call. Neither where a call was cut
    /// off before it said of what.
    pub(super) fn finish(self) -> Option<ChatDelta> {
        let json = match self.written {
            Written::Text(held) => {
                let held = held.trim_end();
                return (!held.is_empty()).then(|| ChatDelta::Text(held.to_owned()));
            }
            Written::Call { json, .. } => json,
        };
        let (name, arguments) = json.strip_prefix(NAME)?.split_once(ARGUMENTS)?;
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

/// Whether a reply is a call whose mark was left out.
enum Bare {
    /// As the grammar writes it, as far as it has come.
    Call(String),
    Perhaps,
    No,
}

/// Looks for a call at the very beginning of a reply, bare or as a block of code, as models write
/// it that were never taught a mark. A run takes such a reply as a call anyway
/// (`domain/leaked_calls`), but only here it can be held to the tools' schemas. It must name a
/// tool: a user may ask for JSON with a name.
fn bare_call(reply: &str, names: &[String]) -> Bare {
    let reply = reply.trim_start();
    let Some(mut rest) = without_fence(reply) else {
        return Bare::Perhaps;
    };
    for piece in ["{", "\"name\"", ":"] {
        rest = match rest.trim_start().strip_prefix(piece) {
            Some(after) => after,
            None if piece.starts_with(rest.trim_start()) => return Bare::Perhaps,
            None => return Bare::No,
        };
    }
    let rest = rest.trim();
    if names.iter().any(|name| rest.starts_with(name)) {
        Bare::Call(format!("{NAME}{rest}"))
    } else if names.iter().any(|name| name.starts_with(rest)) {
        Bare::Perhaps
    } else {
        Bare::No
    }
}

/// What stands in a block of code; none where its first line is not over yet.
fn without_fence(reply: &str) -> Option<&str> {
    let Some(block) = reply.strip_prefix("```") else {
        return (!"```".starts_with(reply)).then_some(reply);
    };
    match block.split_once('\n') {
        Some((_, code)) => Some(code),
        None => block
            .contains(|letter: char| !letter.is_alphanumeric())
            .then_some(reply),
    }
}

/// How much of a text can be no part of a mark, nor of the space before it.
fn certain(text: &str) -> usize {
    let begun = |mark: &str| {
        (1..mark.len())
            .rev()
            .find(|length| text.ends_with(&mark[..*length]))
            .unwrap_or(0)
    };
    let begun = MARKS.iter().map(|mark| begun(mark)).max().unwrap_or(0);
    text[..text.len() - begun].trim_end().len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::llm::starter::tool_schema::written_call;

    fn parser() -> ReplyParser {
        ReplyParser::new(["filesystem", "todo"].into_iter())
    }

    fn read(written: &str, cuts: &[usize]) -> (String, Option<ChatDelta>) {
        let letters: Vec<char> = written.chars().collect();
        let mut reply = parser();
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
                prop::sample::select(vec![
                    "<", "<tool", "<tool_call", "_call>", "</tool_call>", " \n", "[", "[TOOL_", "CALL]", "```", "json\n",
                    "{", "\"name\"", ": ", "\"todo",
                ])
                    .prop_map(str::to_owned),
                ".{0,6}",
            ], 0..12),
            cuts in prop::collection::vec(0_usize..300, 0..10),
        ) {
            let text = parts.concat();
            prop_assume!(!MARKS.iter().any(|mark| text.contains(mark)));
            let mut cuts = cuts;
            cuts.sort_unstable();
            prop_assert_eq!(read(&text, &cuts), (text.trim_end().to_owned(), None));
        }

        #[test]
        fn a_call_arrives_once_and_whole_however_it_is_split(
            path in any::<String>(), mark in prop::sample::select(MARKS.to_vec()), cuts in prop::collection::vec(0_usize..300, 0..10),
        ) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            let arguments = json!({"path": path, "lines": [1, 2]});
            let call = RequestedCall { name: "filesystem".to_owned(), arguments: arguments.clone() };
            let written = format!("Let me look.\n{mark}{}", written_call("filesystem", &arguments));
            prop_assert_eq!(
                read(&written, &cuts),
                ("Let me look.".to_owned(), Some(ChatDelta::ToolCall(call)))
            );
        }
    }

    #[test]
    fn text_streams_before_the_reply_is_whole() {
        let mut reply = parser();
        assert_eq!(reply.push("Paris is "), "Paris is");
        assert_eq!(reply.push("a <b"), " a <b");
        assert_eq!(reply.push(" <tool"), "");
        assert_eq!(reply.push("box>"), " <toolbox>");
        assert_eq!(reply.finish(), None);
    }

    #[test]
    fn what_proves_to_be_no_call_is_read_as_text() {
        let mut reply = parser();
        assert_eq!(reply.push("Say <tool_call>["), "Say");
        assert_eq!(reply.call(), Some("["));
        assert_eq!(reply.read_as_text(), "<tool_call>[");
        assert_eq!(reply.push("it"), "it");
    }

    #[test]
    fn a_call_that_was_cut_off_keeps_its_raw_text() {
        let (_, call) = read(
            "[TOOL_CALL]{\"name\": \"todo\", \"arguments\": {\"a\": \"b",
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
            read("[TOOL_CALL]{\"name\": \"to", &[]),
            (String::new(), None)
        );
    }

    #[test]
    fn a_reply_that_is_a_call_without_its_mark_is_taken_as_one() {
        for beginning in [
            "{\"name\": \"todo\"",
            "{\"name\":\"todo\"",
            "```json\n{\n  \"name\": \"todo\"",
            "\n```\n{ \"name\" : \"todo\"",
        ] {
            let written = format!("{beginning}, \"arguments\": {{}}}}");
            let call = RequestedCall {
                name: "todo".to_owned(),
                arguments: json!({}),
            };
            let cuts: Vec<usize> = (0..=written.len()).collect();
            assert_eq!(
                read(&written, &cuts),
                (String::new(), Some(ChatDelta::ToolCall(call))),
                "{written}"
            );
        }
    }

    #[test]
    fn json_that_names_no_tool_or_comes_later_is_text() {
        for text in [
            "{\"name\": \"Olha\", \"city\": \"Kyiv\"}",
            "```json\n{\"name\": \"todos\"}\n```",
            "```` is four",
            "A call looks like this:\n{\"name\": \"todo\", \"arguments\": {}}",
        ] {
            assert_eq!(read(text, &[]), (text.to_owned(), None));
            let cuts: Vec<usize> = (0..=text.len()).collect();
            assert_eq!(read(text, &cuts), (text.to_owned(), None));
        }
    }
}
