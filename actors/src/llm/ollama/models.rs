//! The models that an Ollama server has, and what each can do.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use reqwest::{Client, Url};
use serde_json::{Value, json};

use crate::llm::LlmError;
use crate::llm::http::{self, Ask};
use crate::llm::reply::count_of;
use crate::protocol::status::ModelInfo;

const TAGS_TIMEOUT: Duration = Duration::from_secs(2);
/// For all the models that are new together; the rest are asked for the next time.
const SHOW_TIMEOUT: Duration = Duration::from_secs(2);
const SHOWS_AT_ONCE: usize = 4;
const MAX_MODELS: usize = 500;

/// What `/api/show` said, kept by the model's digest: it changes only with it.
#[derive(Debug, Default)]
pub(super) struct ModelCatalog {
    state: Mutex<Catalog>,
}

#[derive(Debug, Default)]
struct Catalog {
    by_digest: HashMap<String, Shown>,
    /// In the server's order, the most recently changed first.
    tags: Vec<Tag>,
    /// Models that refused to think in spite of what is known of them.
    not_thinking: Vec<String>,
}

/// A line of `/api/tags`.
#[derive(Clone, Debug)]
struct Tag {
    name: String,
    digest: String,
    /// May lack some that `/api/show` has.
    capabilities: Vec<String>,
    context_window: Option<u32>,
    bytes: Option<u64>,
}

#[derive(Clone, Debug)]
struct Shown {
    /// None where the server is too old to say.
    capabilities: Option<Vec<String>>,
    context_window: Option<u32>,
}

impl ModelCatalog {
    /// Asks which models there are, and what those can do that are new.
    pub(super) async fn refresh(&self, client: &Client, base: &Url) -> Result<(), LlmError> {
        let url = http::under(base, "api/tags");
        let ask = Ask {
            request: client.get(url.clone()),
            url: &url,
            model: "",
        };
        let tags = read_tags(&ask.json(TAGS_TIMEOUT).await?)?;
        let unknown: Vec<Tag> = {
            let mut catalog = self.state.lock();
            catalog
                .by_digest
                .retain(|digest, _| tags.iter().any(|tag| tag.digest == *digest));
            catalog
                .not_thinking
                .retain(|name| tags.iter().any(|tag| same_model(&tag.name, name)));
            let known = &catalog.by_digest;
            let unknown = tags.iter().filter(|tag| !known.contains_key(&tag.digest));
            let unknown = unknown.cloned().collect();
            catalog.tags = tags;
            unknown
        };
        let shows = stream::iter(unknown)
            .map(|tag| self.show(client, base, tag))
            .buffer_unordered(SHOWS_AT_ONCE)
            .for_each(|()| async {});
        // What is not known in time is taken from the tags for now.
        let _ = tokio::time::timeout(SHOW_TIMEOUT, shows).await;
        Ok(())
    }

    /// The models that can chat.
    pub(super) fn models(&self) -> Vec<ModelInfo> {
        let catalog = self.state.lock();
        catalog
            .tags
            .iter()
            .filter_map(|tag| catalog.model(tag))
            .collect()
    }

    /// Whether a model can think; None where nobody said.
    pub(super) fn thinking(&self, name: &str) -> Option<bool> {
        let catalog = self.state.lock();
        if catalog
            .not_thinking
            .iter()
            .any(|model| same_model(model, name))
        {
            return Some(false);
        }
        let tag = catalog
            .tags
            .iter()
            .find(|tag| same_model(&tag.name, name))?;
        catalog.model(tag)?.thinking
    }

    /// Remembers that a model refused to think.
    pub(super) fn deny_thinking(&self, name: &str) {
        let mut catalog = self.state.lock();
        if catalog.not_thinking.len() < MAX_MODELS {
            catalog.not_thinking.push(name.to_owned());
        }
    }

    async fn show(&self, client: &Client, base: &Url, tag: Tag) {
        let url = http::under(base, "api/show");
        let ask = Ask {
            request: client.post(url.clone()).json(&json!({ "model": tag.name })),
            url: &url,
            model: &tag.name,
        };
        match ask.json(SHOW_TIMEOUT).await {
            Ok(answer) => {
                self.state
                    .lock()
                    .by_digest
                    .insert(tag.digest, read_show(&answer));
            }
            Err(error) => {
                tracing::debug!(model = tag.name, %error, "Ollama does not describe a model");
            }
        }
    }
}

impl Catalog {
    /// None for a model that cannot chat (one for embeddings).
    fn model(&self, tag: &Tag) -> Option<ModelInfo> {
        let shown = self.by_digest.get(&tag.digest);
        let known = shown.and_then(|shown| shown.capabilities.as_ref());
        let can = |capability: &str| {
            let has = |list: &[String]| list.iter().any(|item| item == capability);
            match known {
                Some(list) => Some(has(list)),
                None => has(&tag.capabilities).then_some(true),
            }
        };
        let chats = match known {
            Some(list) => list.is_empty() || can("completion") == Some(true),
            None => can("embedding") != Some(true) || can("completion") == Some(true),
        };
        chats.then(|| ModelInfo {
            name: tag.name.clone(),
            tools: can("tools"),
            vision: can("vision"),
            thinking: can("thinking"),
            context_window: shown
                .and_then(|shown| shown.context_window)
                .or(tag.context_window),
            bytes: tag.bytes,
            demo: false,
            stands_for: None,
        })
    }
}

/// Whether two names mean one model: `:latest` may be left out.
pub(super) fn same_model(left: &str, right: &str) -> bool {
    let bare = |name: &str| name.strip_suffix(":latest").unwrap_or(name).to_lowercase();
    bare(left) == bare(right)
}

/// The configured model where the server has it, or else its newest one, with tools if any has.
pub(super) fn default_model(models: &mut [ModelInfo], configured: &str) -> Option<String> {
    let listed = models
        .iter()
        .find(|model| same_model(&model.name, configured));
    if let Some(listed) = listed {
        return Some(listed.name.clone());
    }
    let other = models.iter().position(|model| model.tools == Some(true));
    let other = models.get_mut(other.unwrap_or(0))?;
    other.stands_for = Some(configured.to_owned());
    Some(other.name.clone())
}

fn read_tags(answer: &Value) -> Result<Vec<Tag>, LlmError> {
    let models = match answer.get("models") {
        Some(Value::Array(models)) => models.as_slice(),
        // Go writes an empty list as null.
        Some(Value::Null) => &[],
        _ => {
            return Err(LlmError::Malformed {
                message: "a list of models without `models`".to_owned(),
            });
        }
    };
    Ok(models
        .iter()
        .take(MAX_MODELS)
        .filter_map(read_tag)
        .collect())
}

fn read_tag(model: &Value) -> Option<Tag> {
    let text = |key: &str| {
        model
            .get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let name = text("name").or_else(|| text("model"))?;
    Some(Tag {
        name: name.to_owned(),
        digest: text("digest").unwrap_or(name).to_owned(),
        capabilities: strings(model.get("capabilities")).unwrap_or_default(),
        context_window: model
            .get("details")
            .and_then(|details| count_of(details.get("context_length"))),
        bytes: model.get("size").and_then(Value::as_u64),
    })
}

fn read_show(answer: &Value) -> Shown {
    let info = answer.get("model_info").and_then(Value::as_object);
    let context_window = info.and_then(|info| {
        let architecture = info.get("general.architecture").and_then(Value::as_str);
        architecture
            .and_then(|name| count_of(info.get(&format!("{name}.context_length"))))
            .or_else(|| {
                let named = info
                    .iter()
                    .find(|(key, _)| key.ends_with(".context_length"));
                count_of(named.map(|(_, value)| value))
            })
    });
    Shown {
        capabilities: strings(answer.get("capabilities")),
        context_window,
    }
}

fn strings(list: Option<&Value>) -> Option<Vec<String>> {
    let items = list?.as_array()?.iter();
    Some(items.filter_map(Value::as_str).map(str::to_owned).collect())
}
