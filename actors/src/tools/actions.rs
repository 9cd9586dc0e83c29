//! What each action of a tool with several takes, and the action that a call left out.
//!
//! Models write `{"command": "ls"}` to a tool that runs commands, by habit. Where what they gave
//! can only mean one action, it is that one. Who gave less, or something else, is asked: a
//! guess between reading a file and deleting it is none that may be made.

use itertools::Itertools as _;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::ToolResult;
use super::arguments::read;
use crate::protocol::tool::Effect;

/// What an action takes beside `action` itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionFields {
    pub action: &'static str,
    /// What a call of it does, as far as the action alone tells.
    pub effect: Effect,
    pub required: &'static [&'static str],
    pub optional: &'static [&'static str],
    /// A call of it, for who left out what it cannot do without.
    pub example: &'static str,
}

/// A tool's actions, a row to each: its name, its effect, the fields that it cannot do without,
/// those that it takes beside them, and an example where it cannot do without any. Makes `Action`,
/// the type of the argument, and `ACTIONS`.
macro_rules! actions {
    ($($name:literal $variant:ident $effect:ident $required:tt $optional:tt $($example:literal)?;)+) => {
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
                example: concat!($($example)?),
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

fn named<'a>(actions: &'a [ActionFields], args: &Value) -> Option<&'a ActionFields> {
    actions.iter().find(|known| args["action"] == known.action)
}

/// What a call does by its action; none where it names none of these.
pub(super) fn effect_of(actions: &[ActionFields], args: &Value) -> Option<Effect> {
    named(actions, args).map(|known| known.effect)
}

/// Arguments that fit the schema, as the type that it was made from, where nothing is left out that
/// the action cannot do without.
pub(super) fn read_action<T: DeserializeOwned>(
    actions: &[ActionFields],
    args: Value,
) -> ToolResult<T> {
    let is_left_out = |name: &&str| match &args[*name] {
        Value::String(text) => match *name {
            // A text may be empty, and blanks may be looked for. A blank name is none.
            "content" | "new_text" | "old_text" | "text" => false,
            "pattern" => text.is_empty(),
            _ => text.trim().is_empty(),
        },
        Value::Array(items) => items.is_empty(),
        value => value.is_null(),
    };
    if let Some(known) = named(actions, &args)
        && known.required.iter().any(is_left_out)
    {
        let mut required = known.required.iter().map(|name| format!("`{name}`"));
        let (action, required) = (known.action, required.join(" and "));
        refuse!("{action} needs {required}, for example {}", known.example);
    }
    read(args)
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
