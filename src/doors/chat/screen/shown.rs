//! How single things look: a call, a question, a step, a session that was opened.

use navi_actors::domain::unseen;
use navi_actors::protocol::approval::{ApprovalRequest, ConsentMode, DetailKind};
use navi_actors::protocol::message::{Message, Role, ToolOutcome};
use navi_actors::protocol::plan::PlanStep;
use navi_actors::protocol::session::SessionSnapshot;
use navi_actors::protocol::todo::{TodoItem, TodoStatus};
use serde_json::Value;

use crate::doors::chat::markdown::Markdown;
use crate::doors::chat::style::{Line, Look, Tint, brief};

/// How many messages of a session that is opened are shown.
const NEWEST: usize = 12;

/// A call that ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tool<'a> {
    pub(super) name: &'a str,
    pub(super) outcome: ToolOutcome,
    pub(super) took: u64,
    pub(super) result: &'a str,
    pub(super) is_child: bool,
}

impl Tool<'_> {
    /// A call that begins.
    pub(super) fn begins(name: &str, args: &Value, is_child: bool, room: usize) -> Line {
        let lead = if is_child { "    ● " } else { "● " };
        let args = arguments(args);
        Line::of(Tint::Dim, lead)
            .and(Tint::Plain, &brief(name, room))
            .and(Tint::Dim, &format!(" {}", brief(&args, room)))
    }

    pub(super) fn ends(self, room: usize) -> Line {
        let lead = if self.is_child { "      " } else { "  " };
        let (tint, mark, words) = match self.outcome {
            ToolOutcome::Success => (Tint::Good, "✓", None),
            ToolOutcome::Failed => (Tint::Bad, "✗", Some(brief(self.result, room))),
            ToolOutcome::Stopped => (Tint::Asks, "■", Some("stopped".to_owned())),
            ToolOutcome::OutcomeUnknown => {
                let unknown = "nobody knows whether it took effect";
                (Tint::Bad, "?", Some(unknown.to_owned()))
            }
            ToolOutcome::Interrupted => (Tint::Asks, "■", Some("cut off".to_owned())),
        };
        let line = Line::of(Tint::Dim, lead).and(tint, mark);
        let name = brief(self.name, room);
        let line = line.and(Tint::Dim, &format!(" {name} {}", seconds(self.took)));
        match words {
            Some(words) => line.and(tint, &format!(" {words}")),
            None => line,
        }
    }
}

/// What a call is made with, in short.
fn arguments(args: &Value) -> String {
    let value = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let Value::Object(fields) = args else {
        return value(args);
    };
    if let (1, Some(only)) = (fields.len(), fields.values().next()) {
        return value(only);
    }
    let fields = fields
        .iter()
        .map(|(name, it)| format!("{name}: {}", value(it)));
    fields.collect::<Vec<_>>().join(", ")
}

fn seconds(millis: u64) -> String {
    let tenths = millis / 100;
    format!("{}.{} s", tenths / 10, tenths % 10)
}

/// A step of a plan that was just made.
pub(super) fn item(step: PlanStep) -> TodoItem {
    TodoItem {
        id: step.number,
        text: step.text,
        status: TodoStatus::Pending,
        note: None,
        held: false,
        edited: None,
    }
}

pub(super) fn step(item: &TodoItem) -> Line {
    let (tint, mark) = match item.status {
        TodoStatus::Pending if item.held => (Tint::Asks, "‖"),
        TodoStatus::Pending => (Tint::Dim, "☐"),
        TodoStatus::InProgress => (Tint::Asks, "▶"),
        TodoStatus::Done => (Tint::Good, "☑"),
        TodoStatus::Failed => (Tint::Bad, "☒"),
        TodoStatus::Skipped => (Tint::Dim, "–"),
    };
    let line = Line::of(tint, &format!("  {mark} "));
    let line = line.and(Tint::Plain, &format!("{}. {}", item.id, item.text));
    match &item.note {
        Some(note) => line.and(Tint::Dim, &format!(" ({note})")),
        None => line,
    }
}

pub(in crate::doors::chat) fn mode(mode: ConsentMode) -> &'static str {
    match mode {
        ConsentMode::Ask => "ask",
        ConsentMode::Edits => "edits",
        ConsentMode::Auto => "auto",
    }
}

/// What somebody said elsewhere.
pub(super) fn said(content: &str, files: usize) -> Vec<Line> {
    let lines = content.lines().enumerate();
    let mut out: Vec<Line> = lines
        .map(|(at, line)| {
            let lead = if at == 0 { "› " } else { "  " };
            Line::of(Tint::Own, lead).and(Tint::Own, line)
        })
        .collect();
    match files {
        0 => {}
        1 => out.push(Line::of(Tint::Dim, "  with a file")),
        n => out.push(Line::of(Tint::Dim, &format!("  with {n} files"))),
    }
    out
}

/// All of what a person is asked about, each character that hides by its name.
pub(super) fn question(request: &ApprovalRequest) -> Vec<Line> {
    let asks = Look {
        bold: true,
        ..Tint::Asks.into()
    };
    let summary = unseen::named_on_a_line(&request.summary);
    let mut out = vec![
        Line::of(Tint::Asks, "? ").and(asks, &summary),
        Line::of(Tint::Dim, &format!("  {}", request.reason)),
    ];
    for detail in &request.details {
        let text = unseen::named(&detail.text);
        let label = Line::of(Tint::Dim, &format!("  {}: ", detail.label));
        match detail.kind {
            DetailKind::Text => {
                let mut lines = text.lines();
                out.push(label.and(Tint::Plain, lines.next().unwrap_or_default()));
                out.extend(lines.map(|line| Line::of(Tint::Plain, &format!("    {line}"))));
            }
            DetailKind::Code => {
                out.push(label);
                let lines = text.lines();
                out.extend(lines.map(|line| Line::of(Tint::Code, &format!("    {line}"))));
            }
            DetailKind::Diff => {
                out.push(label);
                out.extend(text.lines().map(|line| {
                    let tint = match line.chars().next() {
                        Some('+') => Tint::Good,
                        Some('-') => Tint::Bad,
                        Some('@') => Tint::Code,
                        _ => Tint::Plain,
                    };
                    Line::of(tint, &format!("    {line}"))
                }));
            }
        }
    }
    out
}

/// Which keys answer a question.
pub(in crate::doors::chat) fn keys(request: &ApprovalRequest) -> Line {
    let key = Look {
        bold: true,
        ..Tint::Asks.into()
    };
    let mut line = Line::of(Tint::Dim, "  ")
        .and(key, "a")
        .and(Tint::Dim, " allow · ");
    if let Some(always) = &request.always {
        let always = unseen::named_on_a_line(always);
        line = line
            .and(key, "A")
            .and(Tint::Dim, &format!(" allow always: {always} · "));
    }
    line.and(key, "d")
        .and(Tint::Dim, " deny · /deny WHY tells why")
}

/// A session as it stands: its newest messages, its steps, and what may be done.
pub(super) fn opened(session: &SessionSnapshot, width: usize) -> Vec<Line> {
    let summary = &session.summary;
    let title = if summary.title.is_empty() {
        "(no title)"
    } else {
        &summary.title
    };
    let mut out = vec![Line::of(Look::BOLD, title).and(
        Tint::Dim,
        &format!(
            " · {} · mode {} · {}",
            summary.profile_id,
            mode(session.mode),
            summary.id
        ),
    )];
    let messages: Vec<&Message> = session.messages.iter().collect();
    let from = messages.len().saturating_sub(NEWEST);
    // It begins with what somebody said, where that is near.
    let begins = messages[from..]
        .iter()
        .position(|message| message.role == Role::User);
    let from = from + begins.unwrap_or(0);
    let before = session.earlier + u64::try_from(from).unwrap_or_default();
    if before > 0 {
        out.push(Line::of(Tint::Dim, &format!("… {before} earlier messages")));
    }
    for shown in &messages[from..] {
        message(shown, width, &mut out);
    }
    out.extend(session.todo.iter().map(step));
    for queued in &session.queue {
        out.extend(said(&queued.content, queued.files.len()));
        out.push(Line::of(Tint::Dim, "  it waits for the run that goes"));
    }
    for call in &session.unknown_calls {
        let what = format!("nobody knows whether {} took effect", call.tool);
        out.push(Line::of(Tint::Bad, &what).and(Tint::Dim, "; Navi's page takes your word"));
    }
    if let Some(run) = &session.run {
        let waits = run.waiting.as_ref().map_or("", |wait| &wait.detail);
        let waits = if waits.is_empty() {
            "a run goes"
        } else {
            waits
        };
        out.push(Line::of(Tint::Dim, waits));
    } else if session.can_continue {
        let reason = session
            .reason
            .as_deref()
            .unwrap_or("the last run was cut off");
        let line = Line::of(Tint::Asks, reason);
        out.push(line.and(Tint::Dim, "; /continue goes on"));
    }
    out
}

fn message(message: &Message, width: usize, out: &mut Vec<Line>) {
    let content = message.content.as_deref().unwrap_or_default();
    match message.role {
        Role::System => {}
        Role::User => out.extend(said(content, message.files.len() + message.images.len())),
        Role::Assistant => {
            let mut markdown = Markdown::new(width);
            markdown.push(content, out);
            markdown.finish(out);
            if !content.is_empty() {
                out.push(Line::new());
            }
        }
        Role::Tool => {
            let call = Tool {
                name: message.name.as_deref().unwrap_or_default(),
                outcome: message.outcome.unwrap_or(ToolOutcome::Success),
                took: message.duration_ms.unwrap_or_default(),
                result: content,
                is_child: false,
            };
            out.push(call.ends(width.saturating_sub(24).max(20)));
        }
    }
}
