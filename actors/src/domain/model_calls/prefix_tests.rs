use std::collections::BTreeMap;

use super::*;
use crate::domain::context::{CallSetup, Conversation};
use crate::domain::model_calls::{Prompt, Recipe};
use crate::protocol::ids::{MessageId, RunId};
use crate::protocol::message::Message;
use crate::protocol::offered::OfferedTools;
use crate::protocol::prompt::PromptMessage;
use crate::protocol::tool::{Effect, ToolSpec};

const NONE: Came = Came {
    elsewhere: false,
    new: 0,
    older: 0,
    reply: 0,
};

fn setup() -> CallSetup {
    CallSetup {
        system: PromptMessage::system("You are Navi. ".repeat(20)),
        tools: OfferedTools::default(),
        notes: Vec::new(),
        options: CallOptions {
            model: "m".to_owned(),
            temperature: 0.7,
            think: false,
            window: 8_192,
            sees_images: true,
            room: None,
            form: None,
        },
    }
}

fn tools() -> OfferedTools {
    let tool = ToolSpec {
        name: "todo".to_owned(),
        description: "Keeps a list.".to_owned(),
        parameters: serde_json::json!({"type": "object"}),
        effect: Effect::Read,
        time_limit_ms: 1,
    };
    vec![tool].into()
}

fn remembering(memory: &str) -> ContextState {
    ContextState {
        memory: Some(memory.to_owned()),
        ..ContextState::default()
    }
}

/// A call as it is stored, and read again.
fn sent(setup: CallSetup, context: &ContextState, prompt_tokens: u32) -> Sent {
    let request = setup.request(&Conversation::of(context, &[])).request;
    let Prompt { recipe, parts, .. } =
        Recipe::of_conversation(setup, context, None, &request).unwrap();
    let recipe: Recipe = serde_json::from_str(&recipe).unwrap();
    let parts: BTreeMap<_, _> = parts
        .into_iter()
        .map(|part| (part.sha256, part.body.to_string()))
        .collect();
    Sent {
        backend: "openai".to_owned(),
        model: "m".to_owned(),
        usage: Usage {
            prompt_tokens,
            ..Usage::default()
        },
        head: recipe.head(&parts).unwrap(),
    }
}

fn plain(prompt_tokens: u32) -> Sent {
    sent(setup(), &ContextState::default(), prompt_tokens)
}

fn found(broken_by: Option<PrefixBreak>, kept: u32, again: u32) -> Found {
    Found {
        broken_by,
        kept,
        again,
        counted: false,
    }
}

#[test]
fn what_only_grows_is_kept_whole() {
    assert_eq!(
        compare(&plain(3_000), &plain(3_200), NONE),
        found(None, 3_000, 0)
    );
    // No memory and an empty one are sent alike.
    let empty = sent(setup(), &remembering(""), 3_200);
    assert_eq!(compare(&plain(3_000), &empty, NONE), found(None, 3_000, 0));
}

#[test]
fn the_first_piece_that_differs_is_named_and_all_after_it_is_read_again() {
    let before = plain(3_000);
    let system = before.head.tokens.system;
    let mut other_model = plain(3_200);
    other_model.model = "another".to_owned();
    let others = [
        (other_model, PrefixBreak::Model, 0, 3_000),
        (
            sent(
                CallSetup {
                    system: PromptMessage::system("You are a secretary."),
                    tools: tools(),
                    ..setup()
                },
                &remembering("They ride."),
                3_200,
            ),
            PrefixBreak::System,
            0,
            3_000 - system,
        ),
        (
            sent(
                CallSetup {
                    tools: tools(),
                    ..setup()
                },
                &remembering("They ride."),
                3_200,
            ),
            PrefixBreak::Tools,
            system,
            3_000 - system,
        ),
        (
            sent(setup(), &remembering("They ride."), 3_200),
            PrefixBreak::Memory,
            system,
            3_000 - system,
        ),
        (
            sent(
                CallSetup {
                    options: CallOptions {
                        window: 4_096,
                        ..setup().options
                    },
                    ..setup()
                },
                &ContextState::default(),
                3_200,
            ),
            PrefixBreak::Window,
            system,
            3_000 - system,
        ),
    ];
    for (now, piece, kept, again) in others {
        assert_eq!(
            compare(&before, &now, NONE),
            found(Some(piece), kept, again)
        );
    }
}

#[test]
fn a_compression_has_what_stays_word_for_word_read_again() {
    let before = plain(6_000);
    let summary = Message::user(
        MessageId::new(),
        RunId::new(),
        "- they ride".to_owned(),
        chrono::Utc::now(),
    );
    let state = ContextState {
        start: 12,
        summary: Some(summary),
        ..ContextState::default()
    };
    let now = sent(setup(), &state, 2_000);
    assert!(before.head.asks_what_came(&now.head));
    let (system, piece) = (before.head.tokens.system, now.head.tokens.summary);
    assert!(piece > 0);
    let came = Came { new: 300, ..NONE };
    assert_eq!(
        compare(&before, &now, came),
        found(
            Some(PrefixBreak::Summary),
            system,
            2_000 - system - piece - 300
        )
    );
}

#[test]
fn an_edit_has_nothing_read_again_and_another_branch_what_stood_on_it() {
    let elsewhere = Came {
        elsewhere: true,
        new: 400,
        ..NONE
    };
    let (before, now) = (plain(3_000), plain(2_500));
    let edited = found(Some(PrefixBreak::Message), 2_100, 0);
    assert_eq!(compare(&before, &now, elsewhere), edited);
    let back = Came {
        older: 350,
        ..elsewhere
    };
    let again = found(Some(PrefixBreak::Message), 2_100, 350);
    assert_eq!(compare(&before, &now, back), again);
}

#[test]
fn a_note_that_went_has_the_reply_after_it_read_again() {
    let noted = CallSetup {
        notes: vec!["You have two iterations left.".to_owned()],
        ..setup()
    };
    let before = sent(noted, &ContextState::default(), 3_000);
    let notes = before.head.tokens.turns;
    assert!(notes > 0);
    let came = Came {
        new: 200,
        reply: 40,
        ..NONE
    };
    assert_eq!(
        compare(&before, &plain(3_200), came),
        found(Some(PrefixBreak::Note), 3_000 - notes, 40)
    );
}

#[test]
fn what_a_server_counted_stands_in_place_of_guesses() {
    let told = |mut sent: Sent, cached| {
        sent.usage.cached_tokens = Some(cached);
        sent
    };
    let counted = |broken_by, kept, again| Found {
        counted: true,
        ..found(broken_by, kept, again)
    };
    let before = plain(3_000);
    // Blocks are not kept to the last token.
    let kept = compare(&before, &told(plain(3_200), 2_944), NONE);
    assert_eq!(kept, counted(None, 2_944, 0));
    let lost = compare(&before, &told(plain(3_200), 0), NONE);
    assert_eq!(lost, counted(Some(PrefixBreak::Server), 0, 3_000));
    let memory = sent(setup(), &remembering("They ride."), 3_200);
    let broken = compare(&before, &told(memory, 100), NONE);
    assert_eq!(broken, counted(Some(PrefixBreak::Memory), 100, 2_900));
}
