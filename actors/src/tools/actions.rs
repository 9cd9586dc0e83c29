//! What each action of a tool with several takes, and the action that a call left out.
//!
//! Models write `{"command": "ls"}` to a tool that runs commands, by habit. Where what they gave
//! can only mean one action, it is that one. Who gave less, or something else, is asked: a
//! guess between reading a file and deleting it is none that may be made.

use serde_json::{Map, Value};

/// What an action takes beside `action` itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionFields {
    pub action: &'static str,
    pub required: &'static [&'static str],
    pub optional: &'static [&'static str],
}

impl ActionFields {
    /// An action that cannot do without `required`.
    #[must_use]
    pub const fn new(
        action: &'static str,
        required: &'static [&'static str],
        optional: &'static [&'static str],
    ) -> Self {
        Self {
            action,
            required,
            optional,
        }
    }

    /// Whether these are its fields: all that it needs, and none that it does not know.
    fn fits(&self, fields: &Map<String, Value>) -> bool {
        let has_needed = self.required.iter().all(|name| fields.contains_key(*name));
        has_needed
            && fields.keys().all(|name| {
                let name = name.as_str();
                self.required.contains(&name) || self.optional.contains(&name)
            })
    }
}

/// Puts the action into a call that named none, where its fields fit one action and no other. A
/// call without any field says nothing, and stays as it is.
pub(super) fn name_action(actions: &[ActionFields], arguments: &mut Value) {
    let Value::Object(fields) = arguments else {
        return;
    };
    let is_named = fields
        .get("action")
        .is_some_and(|action| !action.is_null() && *action != "");
    if is_named {
        return;
    }
    let mut given = fields.clone();
    given.remove("action");
    if given.is_empty() {
        return;
    }
    let mut fitting = actions.iter().filter(|action| action.fits(&given));
    if let (Some(only), None) = (fitting.next(), fitting.next()) {
        fields.insert("action".to_owned(), Value::from(only.action));
    }
}
