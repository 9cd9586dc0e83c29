use serde_json::json;

use super::*;
use crate::llm::ollama::tests::request;
use crate::protocol::ids::CallId;
use crate::protocol::message::ToolCall;

fn system(content: &str) -> PromptMessage {
    let said = ChatMessage::System {
        content: content.to_owned(),
    };
    said.into()
}

fn says(content: &str) -> PromptMessage {
    user(content.to_owned()).into()
}

fn assistant(content: &str, calls: &[&str]) -> PromptMessage {
    let call = |id: &&str| ToolCall {
        id: CallId((*id).to_owned()),
        name: "t".to_owned(),
        arguments: json!({}),
    };
    let said = ChatMessage::Assistant {
        content: content.to_owned(),
        tool_calls: calls.iter().map(call).collect(),
    };
    said.into()
}

fn result(id: &str, content: &str) -> PromptMessage {
    let said = ChatMessage::Tool {
        call_id: CallId(id.to_owned()),
        name: "t".to_owned(),
        content: content.to_owned(),
    };
    said.into()
}

fn of(messages: &[PromptMessage]) -> ChatRequest {
    ChatRequest {
        messages: messages.to_vec(),
        ..request("")
    }
}

fn arranged(roles: Roles, messages: &[PromptMessage]) -> Vec<PromptMessage> {
    roles.arranged(&of(messages)).messages.clone()
}

const REFUSED: Result<(), LlmError> = Err(LlmError::RolesRefused {
    status: 500,
    message: String::new(),
});

#[test]
fn there_is_one_system_message_and_turns_are_strict() {
    let given = [
        system("Be kind."),
        system("## What I remember"),
        // A summary and the turn behind it; a plan and the calls behind it.
        says("Summary"),
        says("Hi"),
        assistant("1. Look", &[]),
        assistant("", &["1", "2"]),
        result("1", "a"),
        result("2", "b"),
    ];
    let wanted = [
        system("Be kind.\n\n## What I remember"),
        says("Summary\n\nHi"),
        assistant("1. Look", &["1", "2"]),
        result("1", "a"),
        result("2", "b"),
    ];
    assert_eq!(arranged(Roles::SystemFirst, &given), wanted);
    assert_eq!(arranged(Roles::Any, &given), given);
}

#[test]
fn images_survive_a_merge() {
    let picture = |content: &str, image: &str| ChatMessage::User {
        content: content.to_owned(),
        images: vec![image.to_owned()],
    };
    let both = ChatMessage::User {
        content: "a\n\nb".to_owned(),
        images: vec!["1".to_owned(), "2".to_owned()],
    };
    let given = [picture("a", "1"), picture("b", "2")];
    let given = given.map(PromptMessage::from);
    assert_eq!(arranged(Roles::SystemFirst, &given), [both.into()]);
}

#[test]
fn nobody_but_the_assistant_speaks_right_after_a_result() {
    let seen = says("an image that the call gave back");
    let given = [
        says("Look"),
        assistant("", &["1"]),
        result("1", "below"),
        seen.clone(),
    ];
    let [asked, call, told, _] = given.clone();
    let wanted = [asked, call, told, assistant(SEEN, &[]), seen];
    assert_eq!(arranged(Roles::SystemFirst, &given), wanted);
    assert_eq!(arranged(Roles::Any, &given), given);
}

#[test]
fn a_template_without_system_finds_it_in_the_first_user_message() {
    assert_eq!(
        arranged(Roles::NoSystem, &[system("Be kind."), says("Hi")]),
        [says("Be kind.\n\nHi")]
    );
    assert_eq!(
        arranged(
            Roles::NoSystem,
            &[system("Be kind."), assistant("", &["1"]), result("1", "ok")]
        ),
        [says("Be kind."), assistant("", &["1"]), result("1", "ok")]
    );
    assert_eq!(arranged(Roles::NoSystem, &[says("Hi")]), [says("Hi")]);
}

/// What the backend has read of one call it finds again in the next.
#[test]
fn the_prefix_stays_as_it_was() {
    let mut conversation = vec![system("S"), system("M"), says("Hi")];
    let first = arranged(Roles::SystemFirst, &conversation);
    conversation.extend([assistant("", &["1"]), result("1", "ok")]);
    let second = arranged(Roles::SystemFirst, &conversation);
    assert_eq!(second[..first.len()], first);
}

#[test]
fn an_order_is_tried_once_and_only_where_it_differs() {
    let remembers = of(&[system("S"), system("M"), says("Hi")]);
    assert_eq!(
        Roles::Any.after(&remembers, &REFUSED),
        Some(Roles::SystemFirst)
    );
    assert_eq!(
        Roles::SystemFirst.after(&remembers, &REFUSED),
        Some(Roles::NoSystem)
    );
    assert_eq!(Roles::NoSystem.after(&remembers, &REFUSED), None);
    let plain = of(&[system("S"), says("Hi")]);
    assert_eq!(Roles::Any.after(&plain, &REFUSED), Some(Roles::NoSystem));
    let bare = of(&[says("Hi")]);
    assert_eq!(Roles::Any.after(&bare, &REFUSED), None);
    let other = Err::<(), _>(LlmError::EndedEarly);
    assert_eq!(Roles::Any.after(&remembers, &other), None);
    assert_eq!(Roles::Any.after(&remembers, &Ok(())), None);
}

#[test]
fn refusals_of_templates_are_known() {
    for message in [
        "Error: Jinja Exception: System message must be at the beginning.",
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "After the optional system message, conversation roles must alternate user and assistant roles except for tool calls and results.",
        "Only user and assistant roles are supported!",
        "System role not supported",
        "Expected last role User or Tool (or Assistant with prefix True) for serving but got system",
        "Unexpected role 'system' after role 'tool'",
        "Unexpected role 'user' after role 'tool'",
        "Developer instruction is not enabled for models/gemma-3-4b-it",
    ] {
        assert!(refuses_roles(message), "{message}");
    }
    for message in [
        "temperature must be positive",
        "this operating system is not supported",
        "image input is not supported",
        "model 'x' not found",
        "tool call ids must be unique",
    ] {
        assert!(!refuses_roles(message), "{message}");
    }
}

#[test]
fn what_a_model_takes_is_remembered_by_its_name() {
    let memory = RoleMemory::default();
    memory.learn("strict", Roles::SystemFirst);
    assert_eq!(memory.of("strict"), Roles::SystemFirst);
    assert_eq!(memory.of("other"), Roles::Any);
}
