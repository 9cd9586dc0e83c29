//! `filesystem`: the files of the session's workspace, of what `FS_ALLOWED_PATHS` adds to it,
//! and nothing else; how they are reached is the work of [`super::workspace`].
//!
//! What changes something is written down first, with what it takes to undo it (`changes`).

mod arrange;
mod changes;
mod diff;
mod edit;
mod list;
mod proposal;
mod read;
mod search_content;
mod search_names;
mod text;
mod write;

pub use self::changes::{ChangeError, changes, changes_dir, undo};

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use self::changes::{ChangeLog, Origin};
use self::edit::Edit;
use super::actions::{ActionFields, actions, effect_of};
use super::schema::spec_of;
use super::workspace::{FileAccess, Reach};
use super::{
    Proposal, Provenance, Tool, ToolContext, ToolError, ToolOutput, ToolResult, arguments, blocking,
};
use crate::protocol::ids::{CallId, RunId};
use crate::protocol::tool::{Effect, ToolSpec};

/// The tool's name.
const NAME: &str = "filesystem";

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
    /// search_content: find lines in files. move: move or rename `path` to `to`. delete: remove
    /// a file or directory.
    action: Action,
    /// The file or directory. list and the searches take the whole workspace without it.
    path: Option<String>,
    /// move: the new path.
    to: Option<String>,
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

actions! {
    "list" List Read [] ["path", "depth"];
    "read" Read Read ["path"] ["start_line", "line_count", "line_numbers"];
    "write" Write Write ["path", "content"] [];
    "edit" Edit Write ["path", "old_text", "new_text"] ["replace_all"];
    "search_names" SearchNames Read ["pattern"] ["path"];
    "search_content" SearchContent Read ["pattern"] ["path", "literal"];
    "move" Move Write ["path", "to"] [];
    "delete" Delete Write ["path"] [];
}

/// The tool.
#[derive(Debug)]
pub struct Filesystem {
    spec: ToolSpec,
    access: Arc<FileAccess>,
}

impl Filesystem {
    /// With what may be reached beside the workspace.
    #[must_use]
    pub fn new(access: Arc<FileAccess>) -> Self {
        let (description, effect) = match access.words() {
            None => (DESCRIPTION.to_owned(), Effect::Write),
            Some(beside) => (
                format!("{DESCRIPTION} By its absolute path you may also use: {beside}."),
                Effect::Host,
            ),
        };
        Self {
            spec: spec_of::<FilesystemArgs>(NAME, &description, effect, 30_000),
            access,
        }
    }

    /// Whether a call may reach beyond the workspace.
    fn leads_outside(&self, args: &Value) -> bool {
        ["path", "to"]
            .iter()
            .filter_map(|field| args[*field].as_str())
            .any(|path| self.access.leads_outside(path))
    }

    /// Runs work that blocks. A caller that gives up drops this future; the guard tells the
    /// blocking thread, which looks at the token between files and before each change.
    async fn run<T: Send + 'static>(
        &self,
        context: &ToolContext,
        work: impl FnOnce(&Reach) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let stop = context.stop.child_token();
        let _guard = stop.clone().drop_guard();
        let reach = Reach::new(&self.access, &context.workspace, stop);
        blocking(NAME, move || work(&reach)).await
    }
}

#[async_trait]
impl Tool for Filesystem {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn actions(&self) -> &[ActionFields] {
        ACTIONS
    }

    fn effect(&self, args: &Value) -> Effect {
        match effect_of(ACTIONS, args) {
            Some(Effect::Read) => Effect::Read,
            _ if self.leads_outside(args) => Effect::Host,
            _ => Effect::Write,
        }
    }

    fn provenance(&self, args: &Value) -> Provenance {
        let tells_nothing = matches!(args["action"].as_str(), Some("write" | "delete"));
        match (self.leads_outside(args), tells_nothing) {
            (true, true) => Provenance::Own,
            (true, false) => Provenance::Outside,
            (false, _) => Provenance::Workspace,
        }
    }

    async fn proposal(&self, args: &Value, context: &ToolContext) -> Result<Proposal, ToolError> {
        let args: FilesystemArgs = arguments::read(args.clone())?;
        self.run(context, move |reach| proposal::proposal(reach, args))
            .await
    }

    async fn call(&self, args: Value, context: ToolContext) -> ToolResult {
        let args: FilesystemArgs = arguments::read(args)?;
        let (run_id, call_id) = (context.run_id, context.call_id.clone());
        let work = self.run(&context, move |reach| act(reach, args, run_id, &call_id));
        work.await.map(ToolOutput::from)
    }
}

/// What an action gives back.
type FileResult = Result<String, ToolError>;

fn act(reach: &Reach, args: FilesystemArgs, run_id: RunId, call_id: &CallId) -> FileResult {
    let path = args.path.as_deref();
    let origin = Origin {
        run_id: Some(run_id),
        call_id: Some(call_id),
        undoes: None,
    };
    let log = || ChangeLog::open(&reach.workspace, &reach.stop);
    match args.action {
        Action::List => list::list(&reach.spot(directory(path))?, args.depth),
        Action::Read => read::read(&reach.spot(file(path, "read")?)?, &args),
        Action::Write => {
            let path = file(path, "write")?;
            let content = needed(args.content, "content", WRITE_EXAMPLE)?;
            let log = log()?;
            write::write(&reach.spot(path)?, &content, &log, &origin)
        }
        Action::Edit => {
            let path = file(path, "edit")?;
            let edit = edit_of(args.old_text, args.new_text, args.replace_all)?;
            let log = log()?;
            edit::edit(&reach.spot(path)?, edit, &log, &origin)
        }
        Action::SearchNames => {
            let pattern = pattern(args.pattern, "search_names", "*.md")?;
            search_names::search_names(&reach.spot(directory(path))?, &pattern)
        }
        Action::SearchContent => {
            let pattern = pattern(args.pattern, "search_content", "total: [0-9]+")?;
            let spot = reach.spot(directory(path))?;
            search_content::search_content(&spot, &pattern, args.literal)
        }
        Action::Move => {
            let path = file(path, "move")?;
            let to = needed(args.to, "to", MOVE_EXAMPLE)?;
            let log = log()?;
            arrange::relocate(reach, &reach.spot(path)?, &to, &log, &origin)
        }
        Action::Delete => {
            let path = file(path, "delete")?;
            let log = log()?;
            arrange::delete(&reach.spot(path)?, &log, &origin)
        }
    }
}

const WRITE_EXAMPLE: &str = r##"{"action":"write","path":"plan.md","content":"# Plan\n"}"##;
const EDIT_EXAMPLE: &str =
    r#"{"action":"edit","path":"plan.md","old_text":"draft","new_text":"final"}"#;

const MOVE_EXAMPLE: &str = r#"{"action":"move","path":"draft.md","to":"notes/plan.md"}"#;

fn edit_of(
    old_text: Option<String>,
    new_text: Option<String>,
    replace_all: bool,
) -> Result<Edit, ToolError> {
    Ok(Edit {
        old_text: needed(old_text, "old_text", EDIT_EXAMPLE)?,
        new_text: needed(new_text, "new_text", EDIT_EXAMPLE)?,
        replace_all,
    })
}

fn file<'a>(path: Option<&'a str>, action: &str) -> Result<&'a str, ToolError> {
    match path {
        Some(path) if !path.is_empty() => Ok(path),
        _ => Err(ToolError(format!(
            "{action} needs `path`, for example {{\"action\":\"{action}\",\"path\":\"plan.md\"}}; list shows which files there are"
        ))),
    }
}

fn directory(path: Option<&str>) -> &str {
    path.filter(|path| !path.is_empty()).unwrap_or(".")
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
mod outside_tests;
#[cfg(test)]
mod search_tests;
#[cfg(test)]
mod tests;
