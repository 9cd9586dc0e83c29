//! What `/models` tells: the names, and for some servers what each model can do.

use serde_json::Value;

use crate::llm::reply::count_of;
use crate::protocol::status::ModelInfo;

const MAX_MODELS: usize = 1000;

/// Which server it is, as far as it matters for what can be asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Flavour {
    /// Nothing beyond the specification.
    Plain,
    /// Takes template arguments and reports how far it has read the prompt.
    LlamaCpp,
    /// Takes template arguments, and as many calls as come. SGLang is of its kind.
    Vllm,
}

impl Flavour {
    pub(super) fn from_u8(number: u8) -> Self {
        [Self::LlamaCpp, Self::Vllm]
            .into_iter()
            .find(|flavour| *flavour as u8 == number)
            .unwrap_or(Self::Plain)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ModelList {
    pub(super) models: Vec<ModelInfo>,
    pub(super) flavour: Flavour,
}

/// None where the answer is no list of models.
pub(super) fn read(answer: &Value) -> Option<ModelList> {
    let data = match answer {
        Value::Array(list) => list,
        _ => match answer.get("data")? {
            Value::Array(list) => list,
            // An empty list of Ollama.
            Value::Null => return Some(empty()),
            _ => return None,
        },
    };
    let owner = data
        .iter()
        .find_map(|model| model.get("owned_by").and_then(Value::as_str));
    let flavour = match owner {
        Some("llamacpp") => Flavour::LlamaCpp,
        Some("vllm" | "sglang") => Flavour::Vllm,
        _ => Flavour::Plain,
    };
    // llama.cpp tells what a model can do in a second list, made for Ollama's clients.
    let details = answer.get("models").and_then(Value::as_array);
    let models = data
        .iter()
        .take(MAX_MODELS)
        .filter_map(|model| {
            let name = model.get("id").or_else(|| model.get("name"))?.as_str()?;
            if cannot_chat(name, model) {
                return None;
            }
            let detail = details
                .into_iter()
                .flatten()
                .find(|detail| detail.get("name").and_then(Value::as_str) == Some(name));
            Some(model_info(name, model, detail))
        })
        .collect();
    Some(ModelList { models, flavour })
}

/// Whether a model says itself that it is for something else, in the words of LM Studio, Together,
/// Mistral and OpenAI.
fn cannot_chat(name: &str, model: &Value) -> bool {
    let kind = model.get("type").and_then(Value::as_str);
    let is_other = matches!(
        kind,
        Some("embedding" | "embeddings" | "image" | "audio" | "rerank" | "reranker")
    );
    is_other
        || model.pointer("/capabilities/completion_chat") == Some(&Value::Bool(false))
        || name.starts_with("text-embedding-")
}

fn empty() -> ModelList {
    ModelList {
        models: Vec::new(),
        flavour: Flavour::Plain,
    }
}

fn model_info(name: &str, model: &Value, detail: Option<&Value>) -> ModelInfo {
    let meta = model.get("meta");
    let context_window = count_of(meta.and_then(|meta| meta.get("n_ctx")))
        .or_else(|| {
            [
                "max_model_len",
                "loaded_context_length",
                "context_length",
                "max_context_length",
                "context_window",
            ]
            .iter()
            .find_map(|key| count_of(model.get(*key)))
        })
        .filter(|window| *window > 0);
    let lists = [
        list(detail.and_then(|detail| detail.get("capabilities"))),
        list(model.get("capabilities")),
    ];
    // OpenRouter's.
    let parameters = list(model.get("supported_parameters"));
    let inputs = list(model.pointer("/architecture/input_modalities"));
    let has = |words: &[&str], whole: &[&str]| {
        let named = |list: &[&str]| list.iter().any(|item| words.contains(item));
        let flag = words
            .iter()
            .find_map(|word| model.get("capabilities")?.get(*word)?.as_bool());
        // That a list lacks a word says nothing, where it is not known to be whole: no two servers
        // list the same things.
        flag.or(lists.iter().any(|list| named(list)).then_some(true))
            .or((!whole.is_empty()).then(|| named(whole)))
    };
    ModelInfo {
        name: name.to_owned(),
        tools: has(&["tools", "tool_use", "function_calling"], &parameters),
        vision: has(&["vision", "multimodal", "image"], &inputs),
        thinking: has(&["thinking", "reasoning"], &parameters),
        context_window,
        bytes: meta
            .and_then(|meta| meta.get("size"))
            .and_then(Value::as_u64),
        demo: false,
        stands_for: None,
    }
}

fn list(value: Option<&Value>) -> Vec<&str> {
    let items = value.and_then(Value::as_array);
    items
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_window_is_found_under_each_servers_name() {
        for (model, expected) in [
            (
                json!({"id": "m", "meta": {"n_ctx": 8192, "n_ctx_train": 32768}}),
                Some(8192),
            ),
            (
                json!({"id": "m", "meta": null, "max_model_len": 4096}),
                Some(4096),
            ),
            (
                json!({"id": "m", "context_length": 131072.0}),
                Some(131_072),
            ),
            (json!({"id": "m", "meta": {"n_ctx": 0}}), None),
            (json!({"id": "m"}), None),
        ] {
            let list = read(&json!({ "data": [model] }));
            let window = list.and_then(|list| list.models.first()?.context_window);
            assert_eq!(window, expected, "{model}");
        }
    }

    #[test]
    fn a_list_is_read_through_what_is_missing() {
        let list = read(&json!({"data": [null, {"id": null}, {"id": "a"}, 7]}));
        let names = list.map(|list| {
            list.models
                .into_iter()
                .map(|model| model.name)
                .collect::<Vec<_>>()
        });
        assert_eq!(names, Some(vec!["a".to_owned()]));
        assert_eq!(read(&json!({"data": null})), Some(empty()));
        assert_eq!(read(&json!({"hello": "world"})), None);
    }

    #[test]
    fn what_cannot_chat_is_left_out() {
        let list = read(&json!({"data": [
            {"id": "text-embedding-3-small"},
            {"id": "a", "type": "embeddings"},
            {"id": "b", "capabilities": {"completion_chat": false}},
            {"id": "c", "type": "llm", "capabilities": {"completion_chat": true}},
            {"id": "d", "type": "chat", "capabilities": ["tool_use"]},
        ]}));
        let names = list.map(|list| {
            let names = list.models.into_iter().map(|model| model.name);
            names.collect::<Vec<_>>()
        });
        assert_eq!(names, Some(vec!["c".to_owned(), "d".to_owned()]));
    }

    #[test]
    fn abilities_are_found_in_each_servers_words() {
        let list = read(&json!({"data": [
            {"id": "a", "supported_parameters": ["tools", "reasoning"], "architecture": {"input_modalities": ["text", "image"]}},
            {"id": "b", "capabilities": {"function_calling": false, "vision": true}},
            {"id": "c", "supported_parameters": ["temperature"], "architecture": {"input_modalities": ["text"]}},
            {"id": "d", "supported_parameters": [], "capabilities": ["completion"]},
        ]}));
        let abilities = list.map(|list| {
            let of = |model: &ModelInfo| (model.tools, model.vision, model.thinking);
            list.models.iter().map(of).collect::<Vec<_>>()
        });
        let expected = vec![
            (Some(true), Some(true), Some(true)),
            (Some(false), Some(true), None),
            (Some(false), Some(false), Some(false)),
            (None, None, None),
        ];
        assert_eq!(abilities, Some(expected));
    }
}
