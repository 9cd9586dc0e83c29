//! What a server says of its tools, within bounds.

use std::collections::BTreeSet;
use std::sync::Arc;

use itertools::Itertools as _;
use rmcp::model::Tool;
use serde_json::{Value, json};

use super::config::{ServerConfig, plain};
use crate::domain::shorten;
use crate::protocol::tool::{Effect, ToolSpec};
use crate::tools::output::shown;
use crate::tools::schema::{MAX_BYTES, as_told};
use crate::tools::trust::sha256;

/// As many tools of one server as are taken in.
pub(super) const MAX_TOOLS: usize = 128;

/// As much of a description as the model is told.
const DESCRIPTION_CHARS: usize = 2000;

/// The longest name that every model API takes.
const MAX_NAME: usize = 64;

/// A tool of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// As the model is told it. Its name is `mcp__server__tool`.
    pub spec: ToolSpec,
    /// As the server calls it.
    pub own_name: String,
    /// Of everything that the server says of it: another description is another tool.
    pub sha256: String,
}

/// All that are taken in, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    pub tools: Arc<[Listed]>,
    /// What was left out, and why.
    pub problems: Vec<String>,
}

impl Listing {
    /// Takes in what a server lists. `is_cut`: there is more that was not asked for.
    pub(super) fn of(config: &ServerConfig, tools: Vec<Tool>, is_cut: bool) -> Self {
        let mut problems = Vec::new();
        let wanted = |tool: &Tool| {
            let names = config.tools.as_ref();
            names.is_none_or(|names| names.iter().any(|name| *name == tool.name))
        };
        let mut names = BTreeSet::new();
        let mut listed = Vec::new();
        let mut too_many = is_cut;
        for tool in tools.into_iter().filter(wanted) {
            if listed.len() >= MAX_TOOLS {
                too_many = true;
                break;
            }
            match take(config, tool) {
                Ok(tool) if names.insert(tool.spec.name.clone()) => listed.push(tool),
                Ok(tool) => problems.push(format!(
                    "its tool `{}` is left out: it lists two of that name",
                    shown(&tool.own_name)
                )),
                Err(problem) => problems.push(problem),
            }
        }
        if too_many {
            problems.push(format!(
                "it lists more tools than the {MAX_TOOLS} that are taken in; name those that you want in its `tools`"
            ));
        }
        if let Some(names) = &config.tools {
            let missing = |name: &&String| !listed.iter().any(|tool| tool.own_name == **name);
            let missing = names.iter().filter(missing).join(", ");
            if !missing.is_empty() && problems.is_empty() {
                let missing = shown(&missing);
                problems.push(format!("it has no tools {missing}"));
            }
        }
        problems.truncate(8);
        listed.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
        Self {
            tools: listed.into(),
            problems,
        }
    }
}

fn take(config: &ServerConfig, tool: Tool) -> Result<Listed, String> {
    let own_name = tool.name.into_owned();
    let schema = tool.input_schema.as_ref().clone();
    let hints = tool.annotations.unwrap_or_default();
    let description = tool.description.as_deref().or(tool.title.as_deref());
    let description = description.unwrap_or_default().trim().to_owned();
    let said = json!([own_name, description, schema, hints]).to_string();
    let parameters = Value::Object(as_told(schema));
    let size = parameters.to_string().len();
    refuse_if!(
        size > MAX_BYTES,
        "its tool `{}` is left out: the schema of its arguments has {size} bytes, the most is {MAX_BYTES}",
        shown(&own_name)
    );
    Ok(Listed {
        spec: ToolSpec {
            name: full_name(&config.name, &own_name),
            description: shorten::cut(&description, DESCRIPTION_CHARS),
            parameters,
            // What a server says of its own harmlessness is a hint: it lowers what is asked for
            // to sending something out, and no further.
            effect: match hints.read_only_hint == Some(true) || !config.transport.is_here() {
                true => Effect::Egress,
                false => Effect::Host,
            },
            time_limit_ms: u64::try_from(config.time_limit.as_millis()).unwrap_or(u64::MAX),
        },
        sha256: sha256(&said),
        own_name,
    })
}

/// `mcp__server__tool`, in the signs and the length that every model API takes. A name that had
/// to be changed for that ends in a part of its hash, so that no two become one.
fn full_name(server: &str, tool: &str) -> String {
    let wanted = format!("mcp__{server}__{}", plain(tool));
    if wanted.len() <= MAX_NAME && plain(tool) == tool {
        return wanted;
    }
    let mark = format!("_{}", &sha256(&format!("{server}\n{tool}"))[..8]);
    let end = wanted.len().min(MAX_NAME - mark.len());
    // Plain signs are of one byte each.
    format!("{}{mark}", &wanted[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_every_api_and_stay_apart() {
        assert_eq!(full_name("time", "get_time"), "mcp__time__get_time");
        let names = [
            full_name("s", "a.b"),
            full_name("s", "a/b"),
            full_name("s", &"x".repeat(100)),
            full_name("s", &format!("{}y", "x".repeat(100))),
            full_name("s", "час"),
        ];
        for (index, name) in names.iter().enumerate() {
            assert!(name.len() <= MAX_NAME && plain(name) == *name, "{name}");
            assert!(!names[..index].contains(name), "{name}");
        }
    }
}
