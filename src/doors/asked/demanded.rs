//! What a program demands of the answer: calls of its own tools, the form of the text, and where it
//! ends.

use navi_actors::domain::demands::Demands;
use navi_actors::protocol::chat::{AnswerSchema, ReplyForm};
use navi_actors::protocol::error::NaviError;
use navi_actors::tools::lent::OfferedByProgram;
use serde_json::Value;

use super::{Terms, invalid, is_tool_name};
use crate::doors::answer::StopWords;

/// The largest schema of an answer, as JSON: it stands in every prompt of its run.
const MAX_SCHEMA_BYTES: usize = 64 * 1024;
/// How many words an answer may end at, in OpenAI's protocol and in Ollama's, and how long they are.
pub(crate) const MAX_STOPS: usize = 4;
pub(crate) const MAX_OLLAMA_STOPS: usize = 64;
pub(crate) const MAX_STOP_CHARS: usize = 1_024;
/// The name of a schema that has none.
const UNNAMED: &str = "answer";

/// How a protocol writes what belongs to a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::doors) enum Written {
    /// In a field of the type's name: Chat Completions.
    Nested,
    /// Beside the type: Responses.
    Flat,
}

impl Written {
    fn of<'a>(self, value: &'a Value, kind: &str) -> &'a Value {
        match self {
            Self::Nested => &value[kind],
            Self::Flat => value,
        }
    }
}

/// The tools with what OpenAI's `tool_choice` says of them.
///
/// # Errors
/// `invalid_field`: it is none, or there is no such tool.
pub(in crate::doors) fn chosen(
    choice: Option<&Value>,
    tools: Vec<OfferedByProgram>,
    written: Written,
) -> Result<Terms, NaviError> {
    let mut terms = Terms {
        tools,
        demands: Demands::default(),
    };
    let Some(choice) = choice else {
        return Ok(terms);
    };
    match (choice.as_str(), choice["type"].as_str()) {
        (Some("auto"), _) => {}
        (Some("none"), _) => {
            terms.tools.clear();
            terms.demands.without_tools = true;
        }
        (Some("required"), _) => terms.demand_any()?,
        (_, Some("function")) => {
            terms.keep(&[named(written.of(choice, "function"))?])?;
            terms.demand_any()?;
        }
        (_, Some("allowed_tools")) => {
            let allowed = written.of(choice, "allowed_tools");
            let listed = allowed["tools"].as_array().filter(|it| !it.is_empty());
            let listed = listed.ok_or_else(|| invalid("tool_choice must list its tools"))?;
            let names = listed
                .iter()
                .map(|tool| named(written.of(tool, "function")));
            terms.keep(&names.collect::<Result<Vec<_>, _>>()?)?;
            match allowed["mode"].as_str() {
                Some("auto") => {}
                Some("required") => terms.demand_any()?,
                _ => return Err(invalid("the mode of tool_choice must be auto or required")),
            }
        }
        (word, kind) => {
            let other = word.or(kind).unwrap_or_default();
            let other: String = other.chars().take(40).collect();
            return Err(invalid(format!(
                "tool_choice {other:?} cannot be taken; none, auto, required, a function of tools and allowed_tools can"
            )));
        }
    }
    Ok(terms)
}

impl Terms {
    /// A call of one of the tools has to be made.
    fn demand_any(&mut self) -> Result<(), NaviError> {
        if self.tools.is_empty() {
            return Err(invalid(
                "tool_choice wants a call, and there is no function in tools: send it there, or leave tool_choice out",
            ));
        }
        let names = self.tools.iter().map(|tool| tool.name.clone());
        self.demands.calls = names.collect();
        Ok(())
    }

    /// No others may be called.
    fn keep(&mut self, names: &[&str]) -> Result<(), NaviError> {
        let is_there = |name: &&&str| self.tools.iter().any(|tool| tool.name == **name);
        if let Some(unknown) = names.iter().find(|name| !is_there(name)) {
            let unknown: String = unknown.chars().take(64).collect();
            return Err(invalid(format!(
                "tool_choice names {unknown:?}, and no function in tools has this name"
            )));
        }
        self.tools
            .retain(|tool| names.contains(&tool.name.as_str()));
        Ok(())
    }
}

fn named(function: &Value) -> Result<&str, NaviError> {
    let name = function["name"].as_str();
    name.ok_or_else(|| invalid("tool_choice must name its function"))
}

/// The form of the text, as `response_format` of Chat Completions and `text.format` of Responses
/// have it.
///
/// # Errors
/// `invalid_field`.
pub(in crate::doors) fn form(
    format: Option<&Value>,
    written: Written,
) -> Result<Option<ReplyForm>, NaviError> {
    let Some(format) = format else {
        return Ok(None);
    };
    let kind = format["type"].as_str().unwrap_or_default();
    match kind {
        "text" => Ok(None),
        "json_object" => Ok(Some(ReplyForm::Json)),
        "json_schema" => {
            let wanted = written.of(format, "json_schema");
            let name = wanted.get("name").filter(|it| !it.is_null());
            let name = name.map_or(Some(UNNAMED), Value::as_str);
            let name = name.filter(|name| is_tool_name(name)).ok_or_else(|| {
                invalid("the name of a format's schema must have 1 to 64 letters, digits, _ or -")
            })?;
            let strict = match &wanted["strict"] {
                Value::Null => None,
                Value::Bool(strict) => Some(*strict),
                _ => return Err(invalid("strict of a format must be true or false")),
            };
            let schema = schema(name, &wanted["schema"])?;
            Ok(Some(ReplyForm::Schema(AnswerSchema { strict, ..schema })))
        }
        other => {
            let other: String = other.chars().take(40).collect();
            Err(invalid(format!(
                "a format of the type {other:?} cannot be taken; text, json_object and json_schema can"
            )))
        }
    }
}

/// The same, as `format` of Ollama has it.
///
/// # Errors
/// `invalid_field`.
pub(in crate::doors) fn ollama_form(
    format: Option<&Value>,
) -> Result<Option<ReplyForm>, NaviError> {
    match format {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) if text == "json" => Ok(Some(ReplyForm::Json)),
        Some(wanted @ Value::Object(_)) => Ok(Some(ReplyForm::Schema(schema(UNNAMED, wanted)?))),
        Some(_) => Err(invalid("format must be json, or a JSON Schema")),
    }
}

/// The words at which the answer ends, as `stop` of Chat Completions and of Ollama's `options` have
/// them.
///
/// # Errors
/// `invalid_field`.
pub(in crate::doors) fn stops(stop: Option<&Value>, most: usize) -> Result<StopWords, NaviError> {
    let words: &[Value] = match stop {
        None | Some(Value::Null) => &[],
        Some(Value::Array(words)) => words,
        Some(word) => std::slice::from_ref(word),
    };
    if words.len() > most {
        return Err(invalid(format!("stop may have {most} texts at most")));
    }
    let fits = |word: &&str| (1..=MAX_STOP_CHARS).contains(&word.chars().count());
    let words = words.iter().map(|word| {
        let word = word.as_str().filter(fits).map(str::to_owned);
        word.ok_or_else(|| {
            invalid(format!(
                "stop must be a text of 1 to {MAX_STOP_CHARS} characters, or a list of such texts"
            ))
        })
    });
    Ok(StopWords::of(words.collect::<Result<_, _>>()?))
}

fn schema(name: &str, schema: &Value) -> Result<AnswerSchema, NaviError> {
    if !schema.is_object() {
        return Err(invalid("the schema of a format must be a JSON Schema"));
    }
    if schema.to_string().len() > MAX_SCHEMA_BYTES {
        return Err(invalid(format!(
            "the schema of a format may have {MAX_SCHEMA_BYTES} bytes at most"
        )));
    }
    Ok(AnswerSchema {
        name: name.to_owned(),
        schema: schema.clone(),
        strict: None,
    })
}

#[cfg(test)]
mod tests {
    use navi_actors::protocol::tool::Effect;
    use serde_json::json;

    use super::*;

    fn tools() -> Vec<OfferedByProgram> {
        let tool = |name: &str| OfferedByProgram {
            name: name.to_owned(),
            description: String::new(),
            parameters: json!({"type": "object"}),
            effect: Effect::Read,
        };
        ["a", "b", "c"].map(tool).to_vec()
    }

    fn of(choice: &Value, written: Written) -> (Vec<String>, Vec<String>, bool) {
        let Terms { tools, demands } = chosen(Some(choice), tools(), written).unwrap();
        let names = tools.into_iter().map(|tool| tool.name).collect();
        (names, demands.calls, demands.without_tools)
    }

    #[test]
    fn what_is_chosen_of_a_programs_tools_counts_in_either_protocol() {
        use Written::{Flat, Nested};
        let all = || ["a", "b", "c"].map(str::to_owned).to_vec();
        let one = || vec!["b".to_owned()];
        let free = chosen(None, tools(), Flat).unwrap();
        assert!(free.tools.len() == 3 && free.demands == Demands::default());
        assert_eq!(of(&json!("auto"), Nested), (all(), vec![], false));
        assert_eq!(of(&json!("none"), Nested), (vec![], vec![], true));
        assert_eq!(of(&json!("required"), Flat), (all(), all(), false));
        let chat = json!({"type": "function", "function": {"name": "b"}});
        assert_eq!(of(&chat, Nested), (one(), one(), false));
        let responses = json!({"type": "function", "name": "b"});
        assert_eq!(of(&responses, Flat), (one(), one(), false));
        let chat = json!({"mode": "auto", "tools": [chat]});
        let chat = json!({"type": "allowed_tools", "allowed_tools": chat});
        assert_eq!(of(&chat, Nested), (one(), vec![], false));
        let responses = json!([responses]);
        let responses = json!({"type": "allowed_tools", "mode": "required", "tools": responses});
        assert_eq!(of(&responses, Flat), (one(), one(), false));
    }

    #[test]
    fn what_cannot_be_chosen_is_refused() {
        for choice in [
            json!("any"),
            json!(3),
            json!({"type": "auto"}),
            json!({"type": "function"}),
            json!({"type": "function", "name": "unknown"}),
            json!({"type": "web_search"}),
            json!({"type": "allowed_tools", "mode": "auto"}),
            json!({"type": "allowed_tools", "mode": "auto", "tools": []}),
            json!({"type": "allowed_tools", "mode": "all", "tools": [{"name": "a"}]}),
        ] {
            let refused = chosen(Some(&choice), tools(), Written::Flat);
            assert!(refused.is_err(), "{choice}");
        }
        assert!(chosen(Some(&json!("required")), Vec::new(), Written::Flat).is_err());
    }

    #[test]
    fn the_form_of_an_answer_is_read_in_each_protocol() {
        let schema = json!({"type": "object"});
        let flat = |format: Value| form(Some(&format), Written::Flat);
        assert_eq!(flat(json!({"type": "text"})), Ok(None));
        assert_eq!(
            flat(json!({"type": "json_object"})),
            Ok(Some(ReplyForm::Json))
        );
        let wanted = |name: &str, strict| {
            Some(ReplyForm::Schema(AnswerSchema {
                name: name.to_owned(),
                schema: schema.clone(),
                strict,
            }))
        };
        let inner = json!({"name": "city", "schema": schema, "strict": true});
        let chat = json!({"type": "json_schema", "json_schema": inner});
        assert_eq!(
            form(Some(&chat), Written::Nested),
            Ok(wanted("city", Some(true)))
        );
        let responses = json!({"type": "json_schema", "schema": schema});
        assert_eq!(flat(responses), Ok(wanted(UNNAMED, None)));
        for wrong in [
            json!({"type": "grammar"}),
            json!("json"),
            json!({"type": "json_schema"}),
            json!({"type": "json_schema", "schema": schema, "name": "two words"}),
            json!({"type": "json_schema", "schema": schema, "strict": 1}),
            json!({"type": "json_schema", "schema": {"description": "x".repeat(70_000)}}),
        ] {
            assert!(flat(wrong).is_err());
        }
        assert_eq!(ollama_form(Some(&json!(""))), Ok(None));
        assert_eq!(ollama_form(Some(&json!("json"))), Ok(Some(ReplyForm::Json)));
        assert_eq!(ollama_form(Some(&schema)), Ok(wanted(UNNAMED, None)));
        assert!(ollama_form(Some(&json!("xml"))).is_err());
    }
}
