//! A conversation as the chat template gets it: system, user and assistant messages that take
//! turns, which every template can render, with tools explained in our own words.

use super::error::ModelError;
use super::shield::{shielded, unused_char};
use super::template::{ChatTemplate, TemplateMessage};
use super::tokenizer::Tokenizer;
use super::tool_schema::{explain, marked_call, marked_result, written_call};
use crate::protocol::chat::{ChatMessage, ChatRequest};

/// The tokens of a whole request, up to where the answer begins.
pub(super) fn tokens(
    request: &ChatRequest,
    template: &ChatTemplate,
    tokenizer: &Tokenizer,
) -> Result<Vec<u32>, ModelError> {
    let texts = messages(request, &|text: &str| text.to_owned());
    let texts: Vec<&str> = texts
        .iter()
        .map(|message| message.content.as_str())
        .collect();
    let shield = unused_char(&texts)
        .ok_or_else(|| ModelError::Prompt("it uses every private character".to_owned()))?;
    let messages = messages(request, &|text: &str| {
        shielded(text, tokenizer.special(), shield)
    });
    let rendered = template.render(&messages)?;
    tokenizer.encode_prompt(&rendered, shield)
}

/// Lays the request out for the template. With tools on offer past calls and results stand
/// between marks. Everybody's words go through `quote`, the marks
/// do not.
fn messages(request: &ChatRequest, quote: &dyn Fn(&str) -> String) -> Vec<TemplateMessage> {
    let with_tools = !request.tools.is_empty();
    let mut laid_out: Vec<TemplateMessage> = Vec::new();
    let mut add = |role: &'static str, content: String| match laid_out.last_mut() {
        Some(last) if last.role == role => {
            last.content.push_str("\n\n");
            last.content.push_str(&content);
        }
        _ => laid_out.push(TemplateMessage { role, content }),
    };
    let leading = request
        .messages
        .iter()
        .take_while(|message| matches!(***message, ChatMessage::System { .. }))
        .count();
    let (system, conversation) = request.messages.split_at(leading);
    for message in system {
        if let ChatMessage::System { content } = &**message {
            add("system", quote(content));
        }
    }
    if with_tools {
        add("system", explain(&request.tools, quote));
    }
    for message in conversation {
        match &**message {
            // Templates know a system message at the start alone.
            ChatMessage::System { content } => {
                add("user", format!("(Note: {})", quote(content)));
            }
            ChatMessage::User { content, images } if images.is_empty() => {
                add("user", quote(content));
            }
            ChatMessage::User { content, .. } => {
                add(
                    "user",
                    format!(
                        "{}\n(Images came along that you cannot see.)",
                        quote(content)
                    ),
                );
            }
            ChatMessage::Assistant {
                content,
                tool_calls,
            } => {
                let mut said: Vec<String> = Vec::new();
                if !content.is_empty() {
                    said.push(quote(content));
                }
                said.extend(tool_calls.iter().map(|call| {
                    let call = quote(&written_call(&call.name, &call.arguments));
                    if with_tools { marked_call(&call) } else { call }
                }));
                if !said.is_empty() {
                    add("assistant", said.join("\n"));
                }
            }
            ChatMessage::Tool { name, content, .. } => {
                let content = quote(content);
                add(
                    "user",
                    if with_tools {
                        marked_result(&content)
                    } else {
                        format!("Result of {}:\n{content}", quote(name))
                    },
                );
            }
        }
    }
    laid_out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::ids::CallId;
    use crate::protocol::message::ToolCall;
    use crate::protocol::tool::{Effect, ToolSpec};

    fn request(with_tools: bool) -> ChatRequest {
        let tool = ToolSpec {
            name: "todo".to_owned(),
            description: String::new(),
            parameters: json!({"type": "object"}),
            effect: Effect::Write,
            time_limit_ms: 1,
        };
        let call = ToolCall {
            id: CallId("1".to_owned()),
            name: "todo".to_owned(),
            arguments: json!({"list": true}),
        };
        let system = |content: &str| ChatMessage::System {
            content: content.to_owned(),
        };
        ChatRequest {
            model: String::new(),
            messages: [
                system("Persona"),
                system("Memory"),
                ChatMessage::User {
                    content: "Steps?".to_owned(),
                    images: vec![String::new()],
                },
                ChatMessage::Assistant {
                    content: "Let me look.".to_owned(),
                    tool_calls: vec![call],
                },
                ChatMessage::Tool {
                    call_id: CallId("1".to_owned()),
                    name: "todo".to_owned(),
                    content: "none".to_owned(),
                },
                system("3 iterations left"),
            ]
            .map(Into::into)
            .into(),
            tools: if with_tools { vec![tool] } else { Vec::new() }.into(),
            temperature: 0.0,
            think: false,
            context_window: 1000,
            max_output_tokens: None,
            streamed: true,
            form: None,
        }
    }

    #[test]
    fn messages_take_turns_and_notes_stand_last() {
        let laid_out = messages(&request(false), &str::to_owned);
        let shown: Vec<(&str, &str)> = laid_out
            .iter()
            .map(|message| (message.role, message.content.as_str()))
            .collect();
        assert_eq!(
            shown,
            [
                ("system", "Persona\n\nMemory"),
                ("user", "Steps?\n(Images came along that you cannot see.)"),
                (
                    "assistant",
                    "Let me look.\n{\"name\": \"todo\", \"arguments\": {\"list\": true}}"
                ),
                ("user", "Result of todo:\nnone\n\n(Note: 3 iterations left)"),
            ]
        );
    }

    #[test]
    fn with_tools_past_calls_and_results_stand_between_their_marks() {
        let laid_out = messages(&request(true), &|text| text.replace('o', "0"));
        assert!(
            laid_out[0]
                .content
                .starts_with("Pers0na\n\nMem0ry\n\n# Tools\n")
        );
        assert_eq!(
            laid_out[2].content,
            "Let me l00k.\n[TOOL_CALL]{\"name\": \"t0d0\", \"arguments\": {\"list\": true}}[/TOOL_CALL]"
        );
        assert!(
            laid_out[3]
                .content
                .starts_with("<tool_response>\nn0ne\n</tool_response>\n\n(Note: ")
        );
    }
}
