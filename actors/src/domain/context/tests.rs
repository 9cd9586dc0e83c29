//! SPEC section 7, row by row, and what holds for any history.
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::domain::files::FileView;
use crate::domain::talk::{anything, asked, planned, result, said, user};
use crate::protocol::chat::ChatMessage;
use crate::protocol::file::AttachedFile;
use crate::protocol::ids::{CallId, FileId, MessageId};
use crate::protocol::message::Message;
use crate::protocol::profile::ProfileFlags;
use crate::protocol::prompt::PromptMessage;
use crate::protocol::tool::Effect;
use crate::protocol::tool::ToolSpec;

/// The request of a call in its frame.
pub(super) fn request(
    profile: &Profile,
    persona: &str,
    conversation: &Conversation<'_>,
    model: &ModelInfo,
    offer: &Offer,
) -> Built {
    call_setup(profile, persona, model, offer.clone()).request(conversation)
}

pub(super) fn arcs(messages: impl IntoIterator<Item = Message>) -> Vec<ContextMessage> {
    messages.into_iter().map(ContextMessage::from).collect()
}

pub(super) fn plain(messages: &[ContextMessage]) -> Conversation<'_> {
    Conversation {
        messages,
        ..Conversation::default()
    }
}

fn list(conversation: &Conversation<'_>, notes: &[String]) -> Vec<PromptMessage> {
    assemble("You are Navi.", conversation, 4096, notes).into_messages()
}

pub(super) fn summary_of(text: &str) -> Message {
    let mut summary = user(1, text);
    summary.is_summary = true;
    summary
}

pub(super) fn profile() -> Profile {
    Profile {
        id: "secretary".to_owned(),
        name: "Personal Secretary".to_owned(),
        description: String::new(),
        system_prompt: "You help with letters.\n".to_owned(),
        subagent_system_prompt: String::new(),
        enabled_tools: Vec::new(),
        subagent_tools: Vec::new(),
        llm_backend: None,
        model: None,
        temperature: 0.7,
        max_iterations: 50,
        scratchpad_sections: Vec::new(),
        flags: ProfileFlags {
            iteration_budget_enabled: false,
            ..ProfileFlags::default()
        },
    }
}

pub(super) fn offer(kind: RunKind) -> Offer {
    Offer {
        tools: vec![ToolSpec {
            name: "filesystem".to_owned(),
            description: "Files.".to_owned(),
            parameters: json!({"type": "object"}),
            effect: Effect::Write,
            time_limit_ms: 1,
        }]
        .into(),
        tool_use: ToolUse::Offered,
        prompts: String::new(),
        notes: vec!["2 of 50 iterations are left.".to_owned()],
        context_window: 8192,
        room: None,
        think: true,
        kind,
        demands: Demands::default(),
    }
}

pub(super) fn contents(messages: &[PromptMessage]) -> Vec<&str> {
    messages
        .iter()
        .map(|message| match &**message {
            ChatMessage::System { content }
            | ChatMessage::User { content, .. }
            | ChatMessage::Assistant { content, .. }
            | ChatMessage::Tool { content, .. } => content.as_str(),
        })
        .collect()
}

/// What all providers demand of a list of messages; an error that says which rule it breaks.
pub(super) fn acceptable(messages: &[PromptMessage]) -> Result<(), String> {
    let is_system = |message: &&PromptMessage| matches!(***message, ChatMessage::System { .. });
    let leading = messages.iter().take_while(is_system).count();
    let talk = &messages[leading..];
    if matches!(talk.first(), Some(first) if !matches!(**first, ChatMessage::User { .. })) {
        return Err("it doesn't begin with the user".to_owned());
    }
    if matches!(messages.last(), Some(last) if matches!(**last, ChatMessage::Assistant { .. })) {
        return Err("it ends with the assistant".to_owned());
    }
    let mut due: Vec<&CallId> = Vec::new();
    for (index, message) in talk.iter().enumerate() {
        if let ChatMessage::Tool { call_id, name, .. } = &**message {
            if due.is_empty() || due.remove(0) != call_id || name.is_empty() {
                return Err(format!(
                    "message {index} is no result of the call before it"
                ));
            }
            continue;
        }
        if !due.is_empty() {
            return Err(format!("{due:?} have no result before message {index}"));
        }
        match &**message {
            ChatMessage::System { .. } => return Err(format!("message {index} is of the system")),
            ChatMessage::User { content, images } if content.is_empty() && images.is_empty() => {
                return Err(format!("message {index} is empty"));
            }
            ChatMessage::Assistant {
                content,
                tool_calls,
            } => {
                if content.is_empty() && tool_calls.is_empty() {
                    return Err(format!("message {index} is empty"));
                }
                due = tool_calls.iter().map(|call| &call.id).collect();
            }
            ChatMessage::User { .. } | ChatMessage::Tool { .. } => {}
        }
    }
    if due.is_empty() {
        Ok(())
    } else {
        Err(format!("{due:?} have no result"))
    }
}

/// All of a call but its notes.
fn prefix(conversation: &Conversation<'_>) -> Vec<String> {
    let mut assembled = assemble("You are Navi.", conversation, 4096, &[]);
    assembled.notes = None;
    let messages = assembled.into_messages().into_iter();
    messages
        .map(|message| serde_json::to_string(&message).expect("it is plain data"))
        .collect()
}

#[test]
fn row_1_to_4_stand_in_their_order() {
    let (plan, _) = planned(1, "1. Read the notes. SELF");
    let summary = summary_of("- the user wants a letter");
    let mut picture = user(2, "and this?");
    picture.images = vec!["iVBORw0KGgo=".to_owned()];
    let mut stray = said(2, "never stored, never sent");
    stray.role = Role::System;
    let mut thanks = user(3, "thanks");
    thanks.id = MessageId(uuid::Uuid::from_u128(9));
    let messages = arcs([
        picture,
        stray,
        asked(2, &["a", "b"]),
        result(2, "a", "one"),
        result(2, "b", "two"),
        said(2, "here it is"),
        thanks,
    ]);
    let conversation = Conversation {
        memory: Some("Her name is Olha.\n"),
        summary: Some(&summary),
        plan: Some(&plan),
        messages: &messages,
        files: None,
    };
    let built = request(
        &profile(),
        "You are Navi.",
        &conversation,
        &ModelInfo {
            name: "gemma".to_owned(),
            ..ModelInfo::default()
        },
        &offer(RunKind::Session),
    );
    assert_eq!(acceptable(&built.request.messages), Ok(()));
    assert_eq!((built.left_out_turns, built.shortened_results), (0, 0));
    insta::assert_json_snapshot!(serde_json::to_value(&built.request).unwrap());
}

#[test]
fn row_1_a_subagent_gets_its_own_prompt() {
    let messages = arcs([user(1, "do it")]);
    let system = |profile: &Profile, kind| {
        let model = ModelInfo::default();
        let built = request(
            profile,
            "You are Navi.",
            &plain(&messages),
            &model,
            &offer(kind),
        );
        contents(&built.request.messages)[0].to_owned()
    };
    let mut profile = profile();
    let own = "You are Navi.\n---\nYou help with letters.";
    assert_eq!(system(&profile, RunKind::Session), own);
    assert_eq!(system(&profile, RunKind::Subagent), own);
    profile.subagent_system_prompt = "Do one thing.".to_owned();
    assert_eq!(system(&profile, RunKind::Session), own);
    assert_eq!(
        system(&profile, RunKind::Subagent),
        "You are Navi.\n---\nDo one thing."
    );
}

#[test]
fn row_1_the_whole_budget_stands_before_what_tools_add() {
    let messages = arcs([user(1, "do it")]);
    let mut profile = profile();
    profile.flags.iteration_budget_enabled = true;
    let offer = Offer {
        prompts: "## Skills".to_owned(),
        ..offer(RunKind::Session)
    };
    let model = ModelInfo::default();
    let built = request(&profile, "", &plain(&messages), &model, &offer);
    assert_eq!(
        contents(&built.request.messages)[0],
        "You help with letters.\n\nYou have at most 50 iterations for a task; every answer that calls tools is one.\n\n## Skills"
    );
}

#[test]
fn row_2_without_a_memory_there_is_no_message_of_it() {
    let messages = arcs([user(1, "hello")]);
    let conversation = Conversation {
        memory: Some(" \n"),
        ..plain(&messages)
    };
    assert_eq!(
        contents(&list(&conversation, &[])),
        ["You are Navi.", "hello"]
    );
    assert_eq!(
        contents(&assemble("", &conversation, 4096, &[]).into_messages()),
        ["hello"]
    );
}

#[test]
fn row_3_a_plan_is_sent_once_and_reads_the_same_wherever_it_stands() {
    let (plan, message) = planned(1, "1. Read the notes. SELF\n");
    let messages = arcs([user(1, "help"), message]);
    let summary = summary_of("- help was asked for");
    let standing = Conversation {
        plan: Some(&plan),
        ..plain(&messages)
    };
    let gone = Conversation {
        summary: Some(&summary),
        plan: Some(&plan),
        ..plain(&[])
    };
    let said = ChatMessage::Assistant {
        content: plan.text.clone(),
        tool_calls: Vec::new(),
    };
    let said = PromptMessage::from(said);
    for conversation in [standing, gone] {
        let sent = list(&conversation, &[]);
        assert_eq!(sent[2], said);
        assert_eq!(sent.iter().filter(|message| *message == &said).count(), 1);
        // It ends with a note, or else servers would take the plan for a begun answer.
        assert_eq!(acceptable(&sent), Ok(()));
        assert_eq!(sent.len(), 4);
    }
}

#[test]
fn row_3_a_reply_that_was_cut_off_says_so_and_reasoning_alone_is_not_sent() {
    let mut cut = said(1, "The capital is");
    cut.state = MessageState::Stopped;
    let mut silent = said(2, "");
    silent.thinking = Some("hm".to_owned());
    silent.state = MessageState::Interrupted;
    let mut called = asked(3, &["a"]);
    called.state = MessageState::Interrupted;
    let messages = arcs([
        user(1, "?"),
        cut,
        user(2, "well?"),
        silent,
        user(3, "go"),
        called,
    ]);
    let sent = list(&plain(&messages), &[]);
    assert_eq!(
        contents(&sent[1..6]),
        ["?", "The capital is [cut off here]", "well?", "go", ""]
    );
    assert_eq!(acceptable(&sent), Ok(()));
}

#[test]
fn a_long_result_is_cut_for_the_model_with_a_note_and_kept_whole() {
    let long = "ї".repeat(5_000);
    let messages = arcs([user(1, "read"), asked(1, &["a"]), result(1, "a", &long)]);
    let sent = list(&plain(&messages), &[]);
    let seen = contents(&sent)[3];
    assert!(
        seen.len() <= 4096 && seen.contains("bytes cut here …]"),
        "{seen}"
    );
    assert_eq!(messages[2].content.as_deref(), Some(long.as_str()));
    // A quarter of the window at four bytes a token, and never less than 4 KB.
    assert_eq!(
        [0, 2_048, 8_192, 65_536].map(result_limit),
        [4_096, 4_096, 8_192, 65_536]
    );
}

#[test]
fn a_result_that_is_missing_is_made_up_and_one_without_its_call_is_dropped() {
    let messages = arcs([
        user(1, "go"),
        result(1, "x", "nobody asked"),
        asked(1, &["a", "b"]),
        result(1, "b", "two"),
        // Came in while the tools ran.
        user(1, "be quick"),
        result(1, "a", "one"),
        result(1, "a", "again"),
        asked(1, &["c"]),
        said(1, "done"),
        user(2, "thanks"),
    ]);
    let sent = list(&plain(&messages), &[]);
    assert_eq!(acceptable(&sent), Ok(()));
    insta::assert_snapshot!(contents(&sent).join("\n"), @r"
    You are Navi.
    go

    one
    two
    be quick

    failed: no result of this call was kept; check what it did before you repeat it
    done
    thanks
    ");
}

#[test]
fn a_cut_off_answer_has_its_note() {
    let mut cut = said(1, "half");
    cut.state = MessageState::Failed;
    let messages = arcs([user(1, "?"), cut]);
    assert_eq!(notes(&messages).len(), 1);
    assert_eq!(notes(&messages[..1]), Vec::<String>::new());
}

fn conversation_of<'a>(
    memory: Option<&'a str>,
    summary: Option<&'a Message>,
    plan: Option<&'a Plan>,
    messages: &'a [ContextMessage],
) -> Conversation<'a> {
    Conversation {
        memory,
        summary,
        plan,
        messages,
        files: None,
    }
}

/// Two files of the user's, and one that a tool gave back.
fn with_files() -> (Vec<ContextMessage>, FileViews) {
    let file = |number: u128, name: &str, image| AttachedFile {
        file_id: FileId(uuid::Uuid::from_u128(number)),
        name: name.to_owned(),
        path: format!("uploads/{number:08x}.bin"),
        media_type: "image/png".to_owned(),
        bytes: 9,
        image,
    };
    let mut attached = user(1, "compare these");
    attached.files = vec![file(1, "a.txt", false), file(2, "b.png", true)];
    let mut shown = result(1, "a", "it is shown below");
    shown.files = vec![file(3, "view_image 1.png", true)];
    let messages = arcs([
        attached,
        asked(1, &["a", "b"]),
        shown,
        result(1, "b", "nothing"),
    ]);
    let image = |base64: &str| FileView {
        image: Some(base64.into()),
        ..FileView::default()
    };
    let text = FileView {
        text: Some("the text".into()),
        text_bytes: 8,
        ..FileView::default()
    };
    let ids = [1, 2, 3].map(|number| FileId(uuid::Uuid::from_u128(number)));
    let views = [text, image("QQ=="), image("Qg==")];
    (messages, ids.into_iter().zip(views).collect())
}

#[test]
fn files_stand_in_the_message_and_images_of_tools_after_the_results() {
    let (messages, views) = with_files();
    let conversation = plain(&messages).with_files(&views);
    let built = |vision| {
        let model = ModelInfo {
            vision,
            ..ModelInfo::default()
        };
        let offer = offer(RunKind::Session);
        request(&profile(), "", &conversation, &model, &offer)
            .request
            .messages
    };
    for vision in [None, Some(true)] {
        let messages = built(vision);
        assert_eq!(acceptable(&messages), Ok(()));
        let ChatMessage::User { content, images } = &*messages[1] else {
            panic!("{messages:#?}");
        };
        assert!(
            content.contains("<file_text>\nthe text\n</file_text>"),
            "{content}"
        );
        assert_eq!(images, &["QQ=="]);
        assert!(
            matches!(*messages[4], ChatMessage::Tool { .. }),
            "{messages:#?}"
        );
        let ChatMessage::User { content, images } = &*messages[5] else {
            panic!("{messages:#?}");
        };
        assert!(
            content.contains("not from the user: view_image 1.png"),
            "{content}"
        );
        assert_eq!(images, &["Qg=="]);
    }
    for message in built(Some(false)) {
        if let ChatMessage::User { content, images } = &*message {
            assert!(
                images.is_empty() && content.contains("you cannot see"),
                "{content}"
            );
        }
    }
}

proptest! {
    /// However a conversation goes on, what was sent stays as it was: at every point where the
    /// model is asked, so wherever the last calls have all the results that will ever come.
    #[test]
    fn what_was_sent_is_never_changed(
        messages in anything(),
        with_memory: bool,
        with_summary: bool,
        with_plan: bool,
    ) {
        let messages = arcs(messages);
        let summary = summary_of("- before");
        let (plan, _) = planned(9, "1. A step. SELF");
        let of = |messages| conversation_of(
            with_memory.then_some("likes tea"),
            with_summary.then_some(&summary),
            with_plan.then_some(&plan),
            messages,
        );
        let whole = prefix(&of(&messages));
        for length in 0..=messages.len() {
            let results_follow = messages[length..]
                .iter()
                .take_while(|message| message.role != Role::Assistant)
                .any(|message| message.role == Role::Tool);
            if !results_follow {
                let shorter = prefix(&of(&messages[..length]));
                prop_assert_eq!(&shorter[..], &whole[..shorter.len()]);
            }
        }
    }

    /// What a call leaves with its messages, no other call is told: whatever its window and notes.
    #[test]
    fn what_was_made_for_one_call_is_what_another_would_make(
        messages in anything(),
        limits in prop::array::uniform2(prop::sample::select(vec![0usize, 60, 4_096])),
        sees_images: bool,
    ) {
        let sent = |messages: &[ContextMessage], limit| {
            let mut sent = assemble("S", &plain(messages), limit, &[]);
            if !sees_images {
                sent.without_images();
            }
            sent.into_messages()
        };
        let kept = arcs(messages.clone());
        let noted = assemble("S", &plain(&kept), limits[0], &["[budget] 1".to_owned()]);
        let noted = noted.into_messages();
        prop_assert!(estimate_tokens(&noted) > 0);
        prop_assert_eq!(sent(&kept, limits[1]), sent(&arcs(messages.clone()), limits[1]));
        prop_assert_eq!(sent(&kept, limits[0]), sent(&arcs(messages), limits[0]));
    }

    /// Whatever is stored, and however little room there is, providers take what comes out.
    #[test]
    fn any_history_becomes_one_that_every_provider_takes(
        messages in anything(),
        with_summary: bool,
        with_plan: bool,
        with_note: bool,
        window in prop_oneof![Just(0u32), 1u32..20_000],
    ) {
        let messages = arcs(messages);
        let summary = summary_of("- before");
        let (plan, _) = planned(9, "1. A step. SELF");
        let conversation = conversation_of(
            None,
            with_summary.then_some(&summary),
            with_plan.then_some(&plan),
            &messages,
        );
        let notes = if with_note { vec!["a note".to_owned()] } else { Vec::new() };
        let assembled = assemble("sys", &conversation, 4096, &notes);
        let turns = assembled.turns.len();
        let fitted = fit(assembled, window, 10);
        prop_assert_eq!(acceptable(&fitted.messages), Ok(()));
        prop_assert!(fitted.left_out_turns < turns.max(1));
        // The newest user message always goes out.
        let newest = messages.iter().rev().find(|message| {
            message.role == Role::User
                && (message.content.as_deref() != Some("") || !message.images.is_empty())
        });
        if let Some(newest) = newest {
            let text = newest.content.as_deref().unwrap_or_default();
            let texts = contents(&fitted.messages);
            prop_assert!(texts.iter().any(|sent| sent.starts_with(text)));
        }
    }
}
