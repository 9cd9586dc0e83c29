//! What each action of a tool with several takes, and the action that a call left out.
//!
//! Models write `{"command": "ls"}` to a tool that runs commands, by habit. Where what they gave
//! can only mean one action, it is that one. Who gave less, or something else, is asked: a
//! guess between reading a file and deleting it is none that may be made.

use serde_json::{Map, Value};

use crate::protocol::tool::Effect;

/// What an action takes beside `action` itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionFields {
    pub action: &'static str,
    /// What a call of it does, as far as the action alone tells.
    pub effect: Effect,
    pub required: &'static [&'static str],
    pub optional: &'static [&'static str],
}

/// A tool's actions, a row to each: its name, its effect, the fields that it cannot do without,
/// and those that it takes beside them. Makes `Action`, the type of the argument, and `ACTIONS`.
macro_rules! actions {
    ($($name:literal $variant:ident $effect:ident $required:tt $optional:tt;)+) => {
        // No comments on the variants: schemars turns those into a union that is harder to read
        // for a small model than a plain list of words.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
        pub(super) enum Action {
            $(#[serde(rename = $name)] $variant,)+
        }

        pub(super) const ACTIONS: &[$crate::tools::actions::ActionFields] = &[
            $($crate::tools::actions::ActionFields {
                action: $name,
                effect: $crate::protocol::tool::Effect::$effect,
                required: &$required,
                optional: &$optional,
            },)+
        ];
    };
}
pub(super) use actions;

impl ActionFields {
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

/// What a call does by its action; none where it names none of these.
pub(super) fn effect_of(actions: &[ActionFields], args: &Value) -> Option<Effect> {
    let mut actions = actions.iter();
    let named = actions.find(|known| args["action"] == known.action);
    named.map(|known| known.effect)
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
