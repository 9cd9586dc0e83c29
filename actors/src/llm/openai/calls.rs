//! Puts tool calls together from their fragments.
//!
//! The specification gives each call an `index` and an `id`, a name once and arguments in
//! pieces. Servers leave out or repeat any of these, so a fragment finds its call by what
//! it has.

use serde_json::Value;

use crate::llm::LlmError;
use crate::llm::reply::{DeltaQueue, MAX_CALLS, call_arguments, too_many_calls};
use crate::protocol::chat::RequestedCall;

#[derive(Debug, Default)]
pub(super) struct CallAssembler {
    calls: Vec<PartialCall>,
}

#[derive(Debug, Default)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

struct Fragment<'a> {
    index: Option<u64>,
    id: &'a str,
    name: &'a str,
    arguments: String,
}

impl CallAssembler {
    /// Takes a `tool_calls` list of a delta or of a whole message.
    pub(super) fn push(
        &mut self,
        fragments: &[Value],
        reply: &mut DeltaQueue,
    ) -> Result<(), LlmError> {
        for fragment in fragments.iter().filter(|fragment| fragment.is_object()) {
            let fragment = Fragment::read(fragment);
            reply.count(fragment.name.len() + fragment.arguments.len())?;
            self.add(fragment)?;
        }
        Ok(())
    }

    /// The calls, now that they are whole. What never got a name or arguments is none.
    pub(super) fn finish(&mut self, reply: &mut DeltaQueue) -> Result<(), LlmError> {
        for call in std::mem::take(&mut self.calls) {
            if call.name.is_empty() && call.arguments.trim().is_empty() {
                continue;
            }
            reply.call(RequestedCall {
                arguments: call_arguments(&call.arguments),
                name: call.name,
            })?;
        }
        Ok(())
    }

    fn add(&mut self, fragment: Fragment<'_>) -> Result<(), LlmError> {
        if let Some(at) = self.place_of(&fragment) {
            self.calls[at].extend(&fragment);
            return Ok(());
        }
        if self.calls.len() == MAX_CALLS {
            return Err(too_many_calls());
        }
        self.calls.push(PartialCall {
            index: fragment.index,
            id: fragment.id.to_owned(),
            name: fragment.name.to_owned(),
            arguments: fragment.arguments,
        });
        Ok(())
    }

    /// The call that a fragment belongs to; none where it begins one.
    fn place_of(&self, fragment: &Fragment<'_>) -> Option<usize> {
        let newest = self.calls.len().checked_sub(1)?;
        let at = if fragment.index.is_some() {
            // The newest of that index: some servers number every call 0.
            self.calls
                .iter()
                .rposition(|call| call.index == fragment.index)?
        } else if fragment.id.is_empty() {
            newest
        } else {
            let known = self.calls.iter().rposition(|call| call.id == fragment.id);
            match known {
                Some(at) => at,
                None if fragment.name.is_empty() => newest,
                None => return None,
            }
        };
        (!self.calls[at].is_followed_by(fragment)).then_some(at)
    }
}

impl PartialCall {
    /// Whether a fragment that seems to belong here begins the next call: it names a
    /// function while this call is whole already, or under another id.
    fn is_followed_by(&self, fragment: &Fragment<'_>) -> bool {
        if fragment.name.is_empty() || self.name.is_empty() {
            return false;
        }
        let same_id = self.id == fragment.id;
        let both_have_ids = !self.id.is_empty() && !fragment.id.is_empty();
        if both_have_ids {
            return !same_id;
        }
        if fragment.index.is_none() {
            // With neither number nor id a name is all that begins a call, unless it only
            // repeats the name of one whose arguments still come.
            return self.name != fragment.name || self.is_whole();
        }
        self.is_whole() && self.arguments != fragment.arguments
    }

    fn is_whole(&self) -> bool {
        call_arguments(&self.arguments).is_object() && !self.arguments.trim().is_empty()
    }

    fn extend(&mut self, fragment: &Fragment<'_>) {
        if self.id.is_empty() {
            fragment.id.clone_into(&mut self.id);
        }
        // A name may itself come in pieces, or be repeated with every piece of arguments.
        if self.name != fragment.name && self.arguments.is_empty() {
            self.name.push_str(fragment.name);
        }
        // Some servers tell a whole call once more at the end.
        if !(self.is_whole() && self.arguments == fragment.arguments) {
            self.arguments.push_str(&fragment.arguments);
        }
    }
}

impl<'a> Fragment<'a> {
    fn read(value: &'a Value) -> Self {
        let function = value.get("function");
        let text = |value: Option<&'a Value>| value.and_then(Value::as_str).unwrap_or_default();
        Self {
            index: value.get("index").and_then(Value::as_u64),
            id: text(value.get("id")),
            name: text(function.and_then(|function| function.get("name"))),
            arguments: match function.and_then(|function| function.get("arguments")) {
                None | Some(Value::Null) => String::new(),
                Some(Value::String(piece)) => piece.clone(),
                Some(whole) => whole.to_string(),
            },
        }
    }
}

#[cfg(test)]
#[path = "calls_tests.rs"]
mod tests;
