//! `filesystem`: the files of the session's workspace, and nothing outside of it.
//!
//! Every path is opened relative to a directory handle that cannot be left: not by `..`, not by
//! an absolute path, not by a link, and not by swapping one for the other in the middle.

mod edit;
mod fault;
mod list;
mod path;
mod read;
mod search_content;
mod search_names;
mod walk;
mod workspace;
mod write;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use self::edit::Edit;
use self::path::WorkspacePath;
use self::read::Range;
use self::search_content::Query;
use self::workspace::{Limits, Workspace};
use super::schema::schema_of;
use super::{Tool, ToolContext, ToolError, ToolResult, arguments};
use crate::protocol::tool::{Effect, ToolSpec};

const DESCRIPTION: &str = "Work with the files of this conversation's workspace. \
    Use exactly the path that the user gave; paths are relative to the workspace. \
    Read a file before you change it, and change a part of it with edit: write replaces all of it.";

/// What to do with which file. One flat object, since small models fill that in best; what
/// an action needs of it is checked by hand.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = json!({"action": "read", "path": "plan.md"}))]
struct FilesystemArgs {
    /// list: what a directory has. read: show a file. write: create or replace a whole file.
    /// edit: replace `old_text` by `new_text`. search_names: find files by name.
    /// search_content: find lines in files.
    action: Action,
    /// The file or directory. list and the searches take the whole workspace without it.
    path: Option<String>,
    /// write: the whole content; what stood there before is gone.
    content: Option<String>,
    /// edit: the text as it stands in the file, with enough around it to stand there only once.
    old_text: Option<String>,
    /// edit: the text to put in its place.
    new_text: Option<String>,
    /// edit: replace every occurrence.
    #[serde(default)]
    replace_all: bool,
    /// search_names: a glob such as *.md, or a part of the name. search_content: a regular
    /// expression.
    pattern: Option<String>,
    /// search_content: take `pattern` as plain text, not as a regular expression.
    #[serde(default)]
    literal: bool,
    /// read: the first line to show, counted from 1.
    start_line: Option<u64>,
    /// read: how many lines to show.
    line_count: Option<u64>,
    /// read: put its number before each line.
    #[serde(default)]
    line_numbers: bool,
    /// list: how many levels of directories to show; 1 without it.
    depth: Option<u64>,
}

// No comments on the variants: schemars turns those into a union that is harder to read for a
// small model than a plain list of words.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    List,
    Read,
    Write,
    Edit,
    SearchNames,
    SearchContent,
}

/// The tool.
#[derive(Debug)]
pub struct Filesystem {
    spec: ToolSpec,
    limits: Limits,
}

impl Filesystem {
    #[must_use]
    #[expect(
        clippy::new_without_default,
        reason = "a tool is never a default value"
    )]
    pub fn new() -> Self {
        Self {
            spec: ToolSpec {
                name: "filesystem".to_owned(),
                description: DESCRIPTION.to_owned(),
                parameters: schema_of::<FilesystemArgs>(),
                effect: Effect::Write,
                time_limit_ms: 30_000,
            },
            limits: Limits::default(),
        }
    }
}

#[async_trait]
impl Tool for Filesystem {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self, args: &Value) -> Effect {
        match args["action"].as_str() {
            Some("list" | "read" | "search_names" | "search_content") => Effect::Read,
            _ => Effect::Write,
        }
    }

    async fn call(&self, args: Value, context: ToolContext) -> ToolResult {
        let args: FilesystemArgs = arguments::read(args)?;
        // A caller that gives up drops this future; the guard tells the blocking thread, which
        // looks at the token between files and before each change.
        let stop = context.stop.child_token();
        let _guard = stop.clone().drop_guard();
        let limits = self.limits;
        let work = tokio::task::spawn_blocking(move || {
            let workspace = Workspace::open(&context.workspace, limits, stop)?;
            run(&workspace, args)
        });
        work.await.unwrap_or_else(|error| {
            tracing::error!(%error, session_id = %context.session_id, "the filesystem tool failed");
            Err(ToolError(
                "the filesystem tool failed inside; look at the file before trying again"
                    .to_owned(),
            ))
        })
    }
}

fn run(workspace: &Workspace, args: FilesystemArgs) -> ToolResult {
    let path = args.path.as_deref();
    match args.action {
        Action::List => list::list(workspace, &directory(path)?, args.depth),
        Action::Read => {
            let range = Range {
                start_line: args.start_line,
                line_count: args.line_count,
                numbered: args.line_numbers,
            };
            read::read(workspace, &file(path, "read")?, range)
        }
        Action::Write => {
            let path = file(path, "write")?;
            let content = needed(args.content, "content", WRITE_EXAMPLE)?;
            write::write(workspace, &path, &content)
        }
        Action::Edit => {
            let path = file(path, "edit")?;
            let edit = Edit {
                old_text: needed(args.old_text, "old_text", EDIT_EXAMPLE)?,
                new_text: needed(args.new_text, "new_text", EDIT_EXAMPLE)?,
                replace_all: args.replace_all,
            };
            edit::edit(workspace, &path, edit)
        }
        Action::SearchNames => {
            let pattern = pattern(args.pattern, "search_names", "*.md")?;
            search_names::search_names(workspace, &directory(path)?, &pattern)
        }
        Action::SearchContent => {
            let query = Query {
                pattern: pattern(args.pattern, "search_content", "total: [0-9]+")?,
                literal: args.literal,
            };
            search_content::search_content(workspace, &directory(path)?, &query)
        }
    }
}

const WRITE_EXAMPLE: &str = r##"{"action":"write","path":"plan.md","content":"# Plan\n"}"##;
const EDIT_EXAMPLE: &str =
    r#"{"action":"edit","path":"plan.md","old_text":"draft","new_text":"final"}"#;

fn file(path: Option<&str>, action: &str) -> Result<WorkspacePath, ToolError> {
    match path {
        Some(path) if !path.is_empty() => WorkspacePath::parse(path),
        _ => Err(ToolError(format!(
            "{action} needs `path`, for example {{\"action\":\"{action}\",\"path\":\"plan.md\"}}; list shows which files there are"
        ))),
    }
}

fn directory(path: Option<&str>) -> Result<WorkspacePath, ToolError> {
    match path {
        Some(path) if !path.is_empty() => WorkspacePath::parse(path),
        _ => Ok(WorkspacePath::root()),
    }
}

fn needed(value: Option<String>, field: &str, example: &str) -> Result<String, ToolError> {
    value.ok_or_else(|| ToolError(format!("`{field}` is missing; for example {example}")))
}

fn pattern(value: Option<String>, action: &str, example: &str) -> Result<String, ToolError> {
    value.filter(|pattern| !pattern.is_empty()).ok_or_else(|| {
        ToolError(format!(
            "{action} needs `pattern`, for example {{\"action\":\"{action}\",\"pattern\":\"{example}\"}}"
        ))
    })
}

#[cfg(test)]
mod attack_tests;
#[cfg(test)]
mod search_tests;
#[cfg(test)]
mod tests;
