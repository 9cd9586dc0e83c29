//! What is put down of a request makes the same request again.
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::domain::context::{CallOptions, CallSetup, Conversation};
use crate::domain::files::{FileView, FileViews};
use crate::domain::history::ContextState;
use crate::domain::talk::{anything, asked, planned, result, said, user};
use crate::protocol::chat::{ChatMessage, ChatRequest};
use crate::protocol::file::AttachedFile;
use crate::protocol::ids::FileId;
use crate::protocol::message::Message;
use crate::protocol::offered::OfferedTools;
use crate::protocol::prompt::PromptMessage;
use crate::protocol::tool::{Effect, ToolSpec};

fn frame(window: u32, sees_images: bool) -> CallSetup {
    CallSetup {
        system: PromptMessage::system("You are Navi.\n---\nYou help with letters."),
        tools: vec![ToolSpec {
            name: "filesystem".to_owned(),
            description: "files".to_owned(),
            parameters: json!({"type": "object", "properties": {"z": {}, "a": {"enum": [1, 2.5]}}}),
            effect: Effect::Read,
            time_limit_ms: 1,
        }]
        .into(),
        notes: vec!["[budget] 3 of 50".to_owned(), "[goal] letters".to_owned()],
        options: CallOptions {
            model: "gemma4:e2b-it-q8_0".to_owned(),
            temperature: 0.7,
            think: true,
            window,
            sees_images,
            room: None,
            form: None,
        },
    }
}

fn ingredients(prompt: &Prompt, messages: &[ContextMessage], files: &FileViews) -> Ingredients {
    let parts = prompt.parts.iter();
    Ingredients {
        parts: parts
            .map(|part| (part.sha256.clone(), part.body.to_string()))
            .collect(),
        // As the store gives them back.
        messages: messages.iter().map(through_json).collect(),
        files: files.clone(),
    }
}

fn through_json(message: &ContextMessage) -> ContextMessage {
    let json = serde_json::to_string(&**message).unwrap();
    serde_json::from_str::<Message>(&json).unwrap().into()
}

fn recipe(prompt: &Prompt) -> Recipe {
    serde_json::from_str(&prompt.recipe).unwrap()
}

fn with_image(number: u128) -> (Message, FileViews) {
    let mut message = user(1, "what is this?");
    message.files = vec![AttachedFile {
        file_id: FileId(uuid::Uuid::from_u128(number)),
        name: "a.png".to_owned(),
        path: "uploads/a.png".to_owned(),
        media_type: "image/png".to_owned(),
        bytes: 9,
        image: true,
    }];
    let view = FileView {
        image: Some("QQ==".into()),
        ..FileView::default()
    };
    let views = [(message.files[0].file_id, view)];
    (message, views.into_iter().collect())
}

fn state() -> ContextState {
    let mut summary = user(1, "- they spoke of letters");
    summary.is_summary = true;
    let (plan, _) = planned(1, "1. write");
    ContextState {
        start: 7,
        summary: Some(summary),
        plan: Some(plan),
        memory: Some("Olha lives in Львів\u{0}".to_owned()),
        ..ContextState::default()
    }
}

#[test]
fn a_conversation_with_all_that_there_is_comes_out_the_same() {
    let (shown, files) = with_image(3);
    let messages = [
        shown,
        asked(1, &["a", "b"]),
        result(1, "a", &"long ".repeat(4_000)),
        result(1, "b", "short"),
        said(1, "So it is."),
        user(2, "and now?"),
    ]
    .map(ContextMessage::from);
    let state = state();
    for (window, sees) in [(65_536, true), (4_096, false), (0, true)] {
        let frame = frame(window, sees);
        let conversation = Conversation::of(&state, &messages).with_files(&files);
        let sent = frame.request(&conversation).request;
        let last = messages.last().map(|message| message.id);
        let prompt = Recipe::of_conversation(frame, &state, last, &sent).unwrap();
        let with = ingredients(&prompt, &messages, &files);
        let recipe = recipe(&prompt);
        assert_eq!(recipe.context(&with.parts), Some(state.clone()));
        let again = recipe.request(&with).unwrap();
        assert_eq!(again, sent);
        assert_eq!(seal(&again).unwrap(), prompt.sha256);

        // A file that went is seen.
        let gone = Ingredients {
            files: FileViews::new(),
            ..with.clone()
        };
        let other = recipe.request(&gone).unwrap();
        assert_ne!(seal(&other).unwrap(), prompt.sha256);
        // A part that is missing makes no request at all.
        for name in recipe.names() {
            let mut without = with.clone();
            without.parts.remove(name);
            assert_eq!(recipe.request(&without), None);
        }
    }
}

#[test]
fn what_is_kept_of_a_call_does_not_grow_with_the_conversation() {
    let kept = |turns: u128| {
        let messages: Vec<ContextMessage> = (1..=turns)
            .flat_map(|turn| [user(turn, &"word ".repeat(200)), said(turn, "yes")])
            .map(ContextMessage::from)
            .collect();
        let frame = frame(1 << 20, true);
        let sent = frame.request(&Conversation {
            messages: &messages,
            ..Conversation::default()
        });
        let last = messages.last().map(|message| message.id);
        let context = ContextState::default();
        let prompt = Recipe::of_conversation(frame, &context, last, &sent.request).unwrap();
        let parts = prompt.parts.iter().map(|part| part.body.len());
        prompt.recipe.len() + parts.sum::<usize>()
    };
    assert_eq!(kept(1), kept(100));
}

#[test]
fn a_question_comes_out_message_by_message() {
    let user = |content: &str| ChatMessage::User {
        content: content.to_owned(),
        images: Vec::new(),
    };
    let sent = ChatRequest {
        model: "m".to_owned(),
        messages: [
            ChatMessage::System {
                content: "Plan.".to_owned(),
            },
            user("the same"),
            user("the same"),
            user("other"),
        ]
        .map(Into::into)
        .into(),
        tools: OfferedTools::default(),
        temperature: 0.3,
        think: false,
        context_window: 4096,
        max_output_tokens: Some(600),
        streamed: false,
        form: None,
    };
    let prompt = Recipe::of_question(&sent).unwrap();
    assert_eq!(prompt.parts.len(), 3);
    let with = ingredients(&prompt, &[], &FileViews::new());
    assert_eq!(recipe(&prompt).request(&with), Some(sent));
}

proptest! {
    #[test]
    fn any_conversation_comes_out_the_same(
        messages in anything(),
        window in prop::sample::select(vec![0u32, 600, 4_096, 65_536]),
        own in any::<bool>(),
    ) {
        let messages: Vec<ContextMessage> = messages.into_iter().map(ContextMessage::from).collect();
        let state = if own { ContextState::default() } else { state() };
        let frame = frame(window, window != 600);
        let sent = frame.request(&Conversation::of(&state, &messages)).request;
        let prompt = if own {
            Recipe::of_own(frame, &sent)
        } else {
            Recipe::of_conversation(frame, &state, None, &sent)
        };
        let prompt = prompt.unwrap();
        let with = ingredients(&prompt, &messages, &FileViews::new());
        let again = recipe(&prompt).request(&with).unwrap();
        prop_assert_eq!(&again, &sent);
        prop_assert_eq!(seal(&again).unwrap(), prompt.sha256);
    }
}
