//! What an editor can do for an agent, as tools.

use std::path::Path;

use agent_client_protocol::v1::schema::ClientCapabilities;
use navi_actors::protocol::tool::Effect;
use navi_actors::tools::lent::OfferedByProgram;
use serde_json::{Value, json};

pub(in crate::doors::acp) const READ: &str = "editor_read_file";
pub(in crate::doors::acp) const WRITE: &str = "editor_write_file";
pub(in crate::doors::acp) const TERMINAL: &str = "editor_terminal";

/// The longest that a command may run, in seconds.
pub(super) const MAX_RUN_SECONDS: u64 = 540;

/// What the editor says that it can do for an agent.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::doors::acp) struct Lends {
    read: bool,
    write: bool,
    terminal: bool,
}

impl Lends {
    pub(in crate::doors::acp) fn of(can: &ClientCapabilities) -> Self {
        Self {
            read: can.fs.read_text_file,
            write: can.fs.write_text_file,
            terminal: can.terminal,
        }
    }

    /// Those as tools, for a project.
    pub(super) fn tools(self, project: &Path, to_read: Effect) -> Vec<OfferedByProgram> {
        let project = project.display();
        let path =
            json!({"type": "string", "description": format!("Absolute path, inside {project}.")});
        let read = OfferedByProgram {
            name: READ.to_owned(),
            description: format!(
                "Reads a text file of the project {project} as it stands in the user's editor, with what is not saved yet."
            ),
            parameters: object(
                &json!({
                    "path": path,
                    "line": {"type": "integer", "minimum": 1, "description": "The first line to read."},
                    "limit": {"type": "integer", "minimum": 1, "description": "How many lines."},
                }),
                &["path"],
            ),
            effect: to_read,
        };
        let write = OfferedByProgram {
            name: WRITE.to_owned(),
            description: format!(
                "Writes a text file of the project {project} whole, through the user's editor."
            ),
            parameters: object(
                &json!({"path": path, "content": {"type": "string"}}),
                &["path", "content"],
            ),
            effect: Effect::Host,
        };
        let terminal = OfferedByProgram {
            name: TERMINAL.to_owned(),
            description: format!(
                "Runs a program in a terminal of the user's editor, in {project}, and waits for its end. There is no shell: give the program and its arguments."
            ),
            parameters: object(
                &json!({
                    "command": {"type": "string", "minLength": 1, "description": "The program."},
                    "args": {"type": "array", "items": {"type": "string"}},
                    "timeout_seconds": {"type": "integer", "minimum": 1, "maximum": MAX_RUN_SECONDS},
                }),
                &["command"],
            ),
            effect: Effect::Host,
        };
        let all = [
            (self.read, read),
            (self.write, write),
            (self.terminal, terminal),
        ];
        all.into_iter()
            .filter_map(|(can, tool)| can.then_some(tool))
            .collect()
    }
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Whether a tool of this name is one that an editor lends.
pub(in crate::doors::acp) fn is_its(tool: &str) -> bool {
    matches!(tool, READ | WRITE | TERMINAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_editor_lends_what_it_says_that_it_can() {
        let lends = Lends {
            read: true,
            write: false,
            terminal: true,
        };
        let tools = lends.tools(Path::new("/p"), Effect::Read);
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, [READ, TERMINAL]);
        assert!(tools.iter().all(|tool| tool.parameters.is_object()));
        assert_eq!(
            [tools[0].effect, tools[1].effect],
            [Effect::Read, Effect::Host]
        );
        let none = Lends::default().tools(Path::new("/p"), Effect::Read);
        assert!(none.is_empty());
    }
}
