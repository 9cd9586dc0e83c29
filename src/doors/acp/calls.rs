//! Calls of tools as a client shows them: of which kind, by which words, with which files.

use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema::{
    ContentBlock, Diff, ResourceLink, ToolCallContent, ToolCallLocation, ToolKind,
};
use navi_actors::domain::unseen;
use navi_actors::protocol::approval::{ApprovalRequest, DetailKind};
use navi_actors::protocol::file::AttachedFile;
use navi_actors::protocol::phrase::{Label, PhraseCode};
use navi_actors::tools::output::shortened;
use serde_json::Value;
use url::Url;

use super::editor;

/// A title is one line of so many bytes.
const MAX_TITLE_BYTES: usize = 160;
/// What Markdown may take for more than itself.
const SIGNS: &str = "\\`*_~<>[]&#|!";

/// Where a session's own files are, to which the paths of its calls are relative.
#[derive(Clone, Debug)]
pub(super) struct Workspace(pub(super) PathBuf);

impl Workspace {
    /// The absolute path that the protocol asks for.
    fn absolute(&self, path: &str) -> PathBuf {
        self.0.join(Path::new(path))
    }

    /// The files that a call is about.
    pub(super) fn locations(&self, tool: &str, args: &Value) -> Vec<ToolCallLocation> {
        let fields: &[&str] = match tool {
            "filesystem" => &["path", "to"],
            "view_image" | editor::READ | editor::WRITE => &["path"],
            _ => &[],
        };
        let paths = fields.iter().filter_map(|field| text(args, field));
        let places = paths.map(|path| ToolCallLocation::new(self.absolute(path)));
        let line = args["start_line"].as_u64().or(args["line"].as_u64());
        let line = line.and_then(|line| u32::try_from(line).ok());
        places.map(|place| place.line(line)).collect()
    }

    /// What came of a call, for a person.
    pub(super) fn result(
        &self,
        tool: &str,
        args: &Value,
        success: bool,
        result: &str,
        files: &[AttachedFile],
    ) -> Vec<ToolCallContent> {
        let changed = success.then(|| self.changed(tool, args, result)).flatten();
        let mut content = changed.unwrap_or_else(|| match kind(tool, args) {
            _ if result.is_empty() => Vec::new(),
            ToolKind::Execute | ToolKind::Read | ToolKind::Search => vec![as_it_stands(result)],
            _ => vec![words(result)],
        });
        content.extend(files.iter().filter_map(|file| {
            let uri = Url::from_file_path(self.absolute(&file.path)).ok()?;
            let link = ResourceLink::new(file.name.clone(), uri.to_string());
            let link = link.mime_type(file.media_type.clone());
            Some(ContentBlock::ResourceLink(link).into())
        }));
        content
    }

    /// What became of a file that was written or edited.
    fn changed(&self, tool: &str, args: &Value, result: &str) -> Option<Vec<ToolCallContent>> {
        let path = self.absolute(text(args, "path")?);
        if tool == editor::WRITE {
            let content = text(args, "content").unwrap_or_default();
            return Some(vec![Diff::new(path, content).into()]);
        }
        match (tool, text(args, "action")?) {
            ("filesystem", "edit") => {
                let diff = Diff::new(path, text(args, "new_text").unwrap_or_default());
                let diff = diff.old_text(text(args, "old_text")?.to_owned());
                Some(vec![diff.into()])
            }
            ("filesystem", "write") if result.starts_with("created ") => {
                Some(vec![Diff::new(path, text(args, "content")?).into()])
            }
            ("filesystem", "write") => diffs(&path, result.split_once(":\n")?.1),
            _ => None,
        }
    }

    /// What a person is asked, with all its details.
    pub(super) fn asked(&self, request: &ApprovalRequest) -> Vec<ToolCallContent> {
        let mut details = request.details.iter();
        let path = details.find(|detail| detail.code == Some(Label::Path));
        let path = path.map(|detail| {
            let phrase = detail.phrase.as_ref();
            let inside = phrase.and_then(|phrase| phrase.params.get("path"));
            self.absolute(inside.unwrap_or(&detail.text))
        });
        let (mut text, mut changed) = (request.reason.clone(), Vec::new());
        for detail in &request.details {
            let label = &detail.label;
            let diffs = match (&path, detail.kind) {
                (Some(path), DetailKind::Diff) => diffs(path, &detail.text),
                _ => None,
            };
            match (diffs, &detail.phrase) {
                (Some(diffs), _) => changed.extend(diffs),
                // What stands in the words is somebody else's.
                (None, Some(phrase)) => {
                    text.push_str(&format!("\n\n{label}: {}", phrase.clone().shown(literal)));
                }
                (None, None) if detail.kind == DetailKind::Text && !detail.text.contains('\n') => {
                    text.push_str(&format!("\n\n{label}: {}", in_line(&detail.text)));
                }
                (None, None) => {
                    text.push_str(&format!("\n\n{label}:\n{}", fenced(&detail.text)));
                }
            }
        }
        [words(&text)].into_iter().chain(changed).collect()
    }
}

/// What a person is asked in a line. Navi's own words have names as code: where a name has signs of
/// its own, all of it is.
pub(super) fn title_asked(request: &ApprovalRequest) -> String {
    let summary = &request.summary;
    let is_odd = !summary.matches('`').count().is_multiple_of(2) || summary.contains("``");
    // Every second part stands between two backticks.
    let mut words = summary.split('`').step_by(2);
    if is_odd || words.any(is_marked) {
        in_line(summary)
    } else {
        summary.clone()
    }
}

/// The kind of a call of which nothing is known yet but what a person is asked.
pub(super) fn kind_asked(tool: &str, request: &ApprovalRequest) -> ToolKind {
    let summary = request.phrases.as_ref().map(|phrases| phrases.summary.code);
    match (tool, summary) {
        ("filesystem", Some(PhraseCode::Delete)) => ToolKind::Delete,
        ("filesystem", Some(PhraseCode::Move)) => ToolKind::Move,
        ("filesystem", Some(PhraseCode::Look | PhraseCode::LookAtWorkspace)) => ToolKind::Read,
        _ => kind(tool, &Value::Null),
    }
}

/// The kind of a call.
pub(super) fn kind(tool: &str, args: &Value) -> ToolKind {
    match (tool, text(args, "action").unwrap_or_default()) {
        ("filesystem", "list" | "read") | ("view_image" | "skill" | editor::READ, _) => {
            ToolKind::Read
        }
        ("filesystem", "search_names" | "search_content") => ToolKind::Search,
        ("filesystem", "delete") => ToolKind::Delete,
        ("filesystem", "move") => ToolKind::Move,
        ("filesystem", _) | (editor::WRITE, _) => ToolKind::Edit,
        ("terminal" | "ssh" | editor::TERMINAL, _) => ToolKind::Execute,
        ("web_search" | "memory_search", _) => ToolKind::Search,
        ("web_fetch", _) => ToolKind::Fetch,
        ("todo" | "scratchpad" | "spawn_agent", _) => ToolKind::Think,
        ("switch_profile", _) => ToolKind::SwitchMode,
        _ => ToolKind::Other,
    }
}

/// A call in a line.
pub(super) fn title(tool: &str, args: &Value) -> String {
    let of = |field: &str| text(args, field).unwrap_or_default();
    let words = match tool {
        "filesystem" => [of("action"), of("pattern"), of("path"), of("to")].join(" "),
        "terminal" if !of("command").is_empty() => of("command").to_owned(),
        editor::READ => ["read", of("path")].join(" "),
        editor::WRITE => ["write", of("path")].join(" "),
        editor::TERMINAL => {
            let rest = args["args"].as_array().into_iter().flatten();
            let rest = rest.filter_map(Value::as_str);
            [of("command")]
                .into_iter()
                .chain(rest)
                .collect::<Vec<_>>()
                .join(" ")
        }
        "ssh" => ["ssh", of("host"), of("command")].join(" "),
        "web_search" | "memory_search" => [tool, of("query")].join(" "),
        "web_fetch" => ["fetch", of("url")].join(" "),
        "spawn_agent" => ["subagent:", of("task")].join(" "),
        _ => [tool, of("action"), of("name"), of("path")].join(" "),
    };
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    shortened(&words, MAX_TITLE_BYTES)
}

/// Text as Markdown has it.
pub(super) fn words(text: &str) -> ToolCallContent {
    ToolCallContent::from(text)
}

/// Text of which no character is Markdown.
pub(super) fn as_it_stands(text: &str) -> ToolCallContent {
    words(&fenced(text))
}

fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}\n{text}{end}{fence}")
}

fn in_line(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    format!("{fence} {text} {fence}")
}

/// The same, where Markdown would read more into it; on one line, as a line that is empty ends code.
fn literal(text: &str) -> String {
    let text = unseen::named_on_a_line(text);
    if is_marked(&text) {
        in_line(&text)
    } else {
        text
    }
}

fn is_marked(text: &str) -> bool {
    text.contains(|c| SIGNS.contains(c))
}

fn text<'a>(args: &'a Value, field: &str) -> Option<&'a str> {
    args[field].as_str().filter(|text| !text.is_empty())
}

/// A unified diff, a piece for each of its stretches; none where it is not whole.
fn diffs(path: &Path, unified: &str) -> Option<Vec<ToolCallContent>> {
    struct Stretch {
        begins_nothing: bool,
        old: String,
        new: String,
    }
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut lines = unified.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("@@ ") {
            stretches.push(Stretch {
                begins_nothing: line.starts_with("@@ -0,0 "),
                old: String::new(),
                new: String::new(),
            });
            continue;
        }
        let stretch = stretches.last_mut()?;
        let (side, rest) = line.split_at_checked(1).unwrap_or((" ", ""));
        let is_last = lines.peek().is_some_and(|next| next.starts_with('\\'));
        let end = if is_last { "" } else { "\n" };
        for (sides, text) in [(" -", &mut stretch.old), (" +", &mut stretch.new)] {
            if sides.contains(side) {
                text.push_str(rest);
                text.push_str(end);
            }
        }
        if !matches!(side, " " | "-" | "+" | "\\") {
            return None;
        }
    }
    let pieces = stretches.into_iter().map(|stretch| {
        let old = (!stretch.begins_nothing).then_some(stretch.old);
        Diff::new(path, stretch.new).old_text(old).into()
    });
    Some(pieces.collect::<Vec<_>>()).filter(|pieces| !pieces.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn workspace() -> Workspace {
        Workspace(PathBuf::from("/w"))
    }

    fn shown(content: &[ToolCallContent]) -> Value {
        serde_json::to_value(content).unwrap()
    }

    #[test]
    fn a_file_that_was_changed_is_a_diff() {
        let edit = json!({"action": "edit", "path": "a.md", "old_text": "x", "new_text": "y"});
        let told = workspace().result("filesystem", &edit, true, "edited `a.md`", &[]);
        assert_eq!(
            shown(&told),
            json!([{"type": "diff", "path": "/w/a.md", "oldText": "x", "newText": "y"}])
        );
        let write = json!({"action": "write", "path": "/p/b.md", "content": "all\n"});
        let told = workspace().result(
            "filesystem",
            &write,
            true,
            "created `/p/b.md` (1 line)",
            &[],
        );
        assert_eq!(
            shown(&told),
            json!([{"type": "diff", "path": "/p/b.md", "newText": "all\n"}])
        );
        let result = "replaced all of `b.md`:\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n@@ -9 +9 @@\n-x\n\\ No newline at end of file\n+y";
        let told = workspace().result("filesystem", &write, true, result, &[]);
        assert_eq!(
            shown(&told),
            json!([
                {"type": "diff", "path": "/p/b.md", "oldText": "one\ntwo\n", "newText": "one\nthree\n"},
                {"type": "diff", "path": "/p/b.md", "oldText": "x", "newText": "y\n"},
            ])
        );
    }

    #[test]
    fn what_is_no_whole_diff_is_shown_as_it_stands() {
        let write = json!({"action": "write", "path": "b.md", "content": "all"});
        let result = "replaced all of `b.md`:\n@@ -1 +1 @@\n-a\n[12 KB left out]";
        let told = workspace().result("filesystem", &write, true, result, &[]);
        assert_eq!(shown(&told)[0]["content"]["text"], json!(result));
        let run = json!({"action": "run", "command": "ls"});
        let told = workspace().result("terminal", &run, false, "a ``` b", &[]);
        assert_eq!(
            shown(&told)[0]["content"]["text"],
            json!("````\na ``` b\n````")
        );
    }

    #[test]
    fn what_is_asked_is_shown_with_the_file_that_it_is_about() {
        let request = serde_json::from_value(json!({
            "summary": "replace `a.md`",
            "effect": "write",
            "reason": "this session asks",
            "details": [
                {"label": "path", "code": "path", "kind": "text", "text": "a.md (here)",
                    "phrase": {"code": "here", "params": {"path": "a.md"}}},
                {"label": "changes", "kind": "diff", "text": "@@ -1 +1 @@\n-x\n+y"},
                {"label": "command", "kind": "code", "text": "make `x`"},
            ],
        }));
        let told = shown(&workspace().asked(&request.unwrap()));
        assert_eq!(
            told[0]["content"]["text"],
            "this session asks\n\npath: a.md (in this conversation's folder)\n\ncommand:\n```\nmake `x`\n```"
        );
        assert_eq!(
            told[1],
            json!({"type": "diff", "path": "/w/a.md", "oldText": "x\n", "newText": "y\n"})
        );
    }

    #[test]
    fn what_is_asked_is_shown_with_the_signs_that_names_have() {
        let asked = |summary: &str| -> ApprovalRequest {
            let asked = json!({
                "summary": summary,
                "effect": "write",
                "reason": "this session asks",
                "details": [
                    {"label": "path", "code": "path", "kind": "text", "text": "as it is",
                        "phrase": {"code": "here", "params": {"path": "a<!--b-->.md"}}},
                    {"label": "held", "code": "held", "kind": "text", "text": "as it is",
                        "phrase": {"code": "held", "params": {"files": "**x**\n\ny"}}},
                ],
            });
            serde_json::from_value(asked).unwrap()
        };
        let told = shown(&workspace().asked(&asked("edit `a<!--b-->.md`")));
        let told = told[0]["content"]["text"].as_str().unwrap();
        for part in [
            "path: ` a<!--b-->.md ` (in ",
            "held: ` **x**\\n\\ny `: if any",
        ] {
            assert!(told.contains(part), "{told}");
        }
        let plain = "edit `a<!--b-->.md`";
        assert_eq!(title_asked(&asked(plain)), plain);
        for (summary, shown) in [
            (
                "download <!--b--> from home",
                "` download <!--b--> from home `",
            ),
            ("edit `a`<!--b-->`c`", "`` edit `a`<!--b-->`c` ``"),
            ("edit `` <b> `", "``` edit `` <b> ` ```"),
        ] {
            assert_eq!(title_asked(&asked(summary)), shown);
        }
    }

    #[test]
    fn a_title_is_one_short_line() {
        let run = json!({"action": "run", "command": "make\n  all"});
        assert_eq!(title("terminal", &run), "make all");
        let read = json!({"action": "read", "path": "a.md", "start_line": 4});
        assert_eq!(title("filesystem", &read), "read a.md");
        assert_eq!(kind("filesystem", &read), ToolKind::Read);
        assert_eq!(workspace().locations("filesystem", &read)[0].line, Some(4));
        let long = json!({"task": "x".repeat(900)});
        assert!(title("spawn_agent", &long).len() <= MAX_TITLE_BYTES + 8);
    }
}
