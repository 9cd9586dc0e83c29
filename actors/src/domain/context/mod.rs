//! What the model is sent (SPEC section 7), and what it is sent where that is too much.
//!
//! In this order: one system message; what is remembered about the user; the summary of what
//! was compressed; the plan, where its own message was compressed; the messages that stand word
//! for word, and in the last of them the run's transient notes. All but the notes is the same,
//! byte for byte, in every call of a conversation that only grows at its end: a local backend
//! keeps what it has read.

mod assembly;
mod fit;
mod message;
mod notes;
pub mod overflow;
pub mod prompt;
mod tokens;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::protocol::chat::{ChatRequest, ReplyForm};
use crate::protocol::context::ContextParts;
use crate::protocol::message::{Message, MessageState, Role};
use crate::protocol::offered::{Lead, OfferedTools};
use crate::protocol::plan::Plan;
use crate::protocol::profile::Profile;
use crate::protocol::prompt::PromptMessage;
use crate::protocol::status::ModelInfo;

use super::demands::Demands;
use super::files::FileViews;
use super::guards::budget;
use super::history::ContextState;
use super::run_loop::ToolUse;

pub use assembly::{Assembled, assemble, hide_images};
pub use fit::{Fitted, fit};
pub use message::ContextMessage;
pub use notes::Notes;
pub use tokens::{estimate_tokens, prompt_was_cut, request_tokens, text_tokens, tool_tokens};

/// A tool's result may be this long in any window, in bytes.
const MIN_RESULT_BYTES: usize = 4 * 1024;

/// What the model is to see of a conversation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conversation<'a> {
    /// What is remembered about the user, as it stood when this context was first built.
    pub memory: Option<&'a str>,
    /// What stands for the messages that were compressed.
    pub summary: Option<&'a Message>,
    /// Sent after the summary where its message is not among `messages`. To keep the prefix
    /// this is the plan of the [`ContextState`], not a newer one.
    pub plan: Option<&'a Plan>,
    /// The messages that stand word for word.
    pub messages: &'a [ContextMessage],
    /// What the model reads of the messages' files; none where nothing is known of any.
    pub files: Option<&'a FileViews>,
}

impl<'a> Conversation<'a> {
    /// A context with the messages from its start on.
    #[must_use]
    pub fn of(state: &'a ContextState, messages: &'a [ContextMessage]) -> Self {
        Self {
            memory: state.memory.as_deref(),
            summary: state.summary.as_ref(),
            plan: state.plan.as_ref(),
            messages,
            files: None,
        }
    }

    /// The same with what is known of its files.
    #[must_use]
    pub fn with_files(self, files: &'a FileViews) -> Self {
        Self {
            files: Some(files),
            ..self
        }
    }
}

/// Whose work a call belongs to: which prompt of the profile leads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunKind {
    /// A run of the session itself.
    #[default]
    Session,
    /// A child run (SPEC section 6).
    Subagent,
}

/// What a call offers beside the conversation.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// All that the run has: the system message speaks of them, and of no others.
    pub tools: OfferedTools,
    /// Whether they may be called in this very call.
    pub tool_use: ToolUse,
    /// What tools add to the system message, which is the same in every call of a run.
    pub prompts: String,
    /// The run's transient notes; they stand at the end of the last message, and are not stored.
    pub notes: Vec<String>,
    /// The window to ask for, in tokens.
    pub context_window: u32,
    /// See [`CallOptions::room`].
    pub room: Option<u32>,
    pub think: bool,
    pub kind: RunKind,
    /// Of the program that asks.
    pub demands: Demands,
}

/// A request, and what had to be done to it so that it fits its window.
#[derive(Clone, Debug, PartialEq)]
pub struct Built {
    pub request: ChatRequest,
    /// Turns that this call goes without; the user is told.
    pub left_out_turns: usize,
    /// Results of the newest turn that are shorter in this call than in others.
    pub shortened_results: usize,
}

/// Everything of a call but its conversation: with the same conversation it makes the same
/// request, whenever that is.
#[derive(Clone, Debug, PartialEq)]
pub struct CallSetup {
    /// The system message.
    pub system: PromptMessage,
    /// Those that the model may call.
    pub tools: OfferedTools,
    /// The run's transient notes.
    pub notes: Vec<String>,
    pub options: CallOptions,
}

/// What a call asks for beside its messages and tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallOptions {
    pub model: String,
    pub temperature: f32,
    pub think: bool,
    /// The model's window, in tokens.
    pub window: u32,
    /// Whether the model is shown images.
    pub sees_images: bool,
    /// Where a server found our guesses low: what prompt and answer may come to by them, in
    /// place of the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<u32>,
    /// What the reply has to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<ReplyForm>,
}

/// What a call of this profile's and this model's stands in.
#[must_use]
pub fn call_setup(profile: &Profile, persona: &str, model: &ModelInfo, offer: Offer) -> CallSetup {
    let offered = if model.tools == Some(false) {
        OfferedTools::default()
    } else {
        offer.tools
    };
    let demands = offer.demands;
    let prompts = [offer.prompts].into_iter().chain(demands.prompt());
    let prompts: Vec<String> = prompts.filter(|it| !it.is_empty()).collect();
    let names = profile.enabled_tools.iter().chain(&profile.subagent_tools);
    let lead = Lead {
        persona: persona.to_owned(),
        prompt: prompt_of(profile, offer.kind).to_owned(),
        names: names.cloned().collect(),
        added: added(profile, &prompts.join("\n\n")),
    };
    let system = leading(&offered, lead);
    let tools = match offer.tool_use {
        ToolUse::Offered => offered,
        ToolUse::Withheld | ToolUse::Formed => OfferedTools::default(),
        ToolUse::Demanded => {
            let demanded = offered.iter().filter(|it| demands.calls.contains(&it.name));
            demanded.cloned().collect::<Vec<_>>().into()
        }
    };
    CallSetup {
        system,
        notes: offer.notes,
        options: CallOptions {
            model: model.name.clone(),
            temperature: profile.temperature,
            think: offer.tool_use != ToolUse::Formed
                && offer.think
                && profile.flags.think_enabled
                && model.thinking != Some(false),
            window: window(model, offer.context_window),
            sees_images: model.vision != Some(false),
            room: offer.room,
            form: match offer.tool_use {
                // Beside tools a form would forbid their calls.
                ToolUse::Offered => demands.form.filter(|_| tools.is_empty()),
                ToolUse::Formed => demands.form,
                ToolUse::Demanded => Some(ReplyForm::Call),
                ToolUse::Withheld => None,
            },
        },
        tools,
    }
}

impl CallSetup {
    /// The request of one model call.
    #[must_use]
    pub fn request(&self, conversation: &Conversation<'_>) -> Built {
        let options = &self.options;
        let assembled = self.assembled(conversation);
        let reserve = tool_tokens(&self.tools).saturating_add(answer_room(options.window));
        let room = options.room.unwrap_or(options.window);
        let fitted = fit(assembled, room, reserve);
        Built {
            request: ChatRequest {
                messages: fitted.messages,
                model: options.model.clone(),
                tools: self.tools.clone(),
                temperature: options.temperature,
                think: options.think,
                context_window: options.window,
                max_output_tokens: None,
                streamed: true,
                form: options.form.clone(),
            },
            left_out_turns: fitted.left_out_turns,
            shortened_results: fitted.shortened_results,
        }
    }

    /// What the prompt of such a request is made of. Nothing is counted yet.
    #[must_use]
    pub fn parts(&self, conversation: &Conversation<'_>) -> ContextParts {
        let built = self.request(conversation);
        let head = self.assembled(conversation).head_tokens();
        let messages = estimate_tokens(&built.request.messages);
        ContextParts {
            turns: messages.saturating_sub(head.system + head.memory + head.summary),
            tools: tool_tokens(&built.request.tools),
            answer: answer_room(self.options.window),
            window: self.options.window,
            left_out_turns: u32::try_from(built.left_out_turns).unwrap_or(u32::MAX),
            ..head
        }
    }

    fn assembled(&self, conversation: &Conversation<'_>) -> Assembled {
        let limit = result_limit(self.options.window);
        let mut assembled =
            assembly::assemble_behind(&self.system, conversation, limit, &self.notes);
        if !self.options.sees_images {
            assembled.without_images();
        }
        assembled
    }
}

/// The system message of a call with these tools: long, and mostly the same as the last one's.
fn leading(tools: &OfferedTools, lead: Lead) -> PromptMessage {
    let mut last = tools.made().led.lock();
    if let Some((known, message)) = &*last
        && *known == lead
    {
        return message.clone();
    }
    let prompt = {
        let names: HashSet<&str> = lead.names.iter().map(String::as_str).collect();
        prompt::for_tools(
            &lead.prompt,
            |name| names.contains(name),
            |name| tools.iter().any(|tool| tool.name == name),
        )
    };
    let message = PromptMessage::system(system_message(&lead.persona, &prompt, &lead.added));
    *last = Some((lead, message.clone()));
    message
}

/// What stands in the system message after the profile's prompt. The same in every call of a
/// session, as long as its profile is.
fn added(profile: &Profile, prompts: &str) -> String {
    let budget = profile
        .flags
        .iteration_budget_enabled
        .then(|| budget::whole(profile.max_iterations));
    let prompts = (!prompts.is_empty()).then(|| prompts.to_owned());
    let parts: Vec<String> = budget.into_iter().chain(prompts).collect();
    parts.join("\n\n")
}

/// The system message: persona, a line `---`, the profile's prompt, what is added to it.
#[must_use]
pub fn system_message(persona: &str, prompt: &str, added: &str) -> String {
    let (persona, prompt) = (persona.trim(), prompt.trim());
    let mut message = match (persona.is_empty(), prompt.is_empty()) {
        (true, _) => prompt.to_owned(),
        (false, true) => persona.to_owned(),
        (false, false) => format!("{persona}\n---\n{prompt}"),
    };
    if !added.is_empty() {
        message.push_str("\n\n");
        message.push_str(added);
    }
    message
}

/// The profile's prompt for a run. A profile without one for subagents gives them its own.
#[must_use]
pub fn prompt_of(profile: &Profile, kind: RunKind) -> &str {
    match kind {
        RunKind::Subagent if !profile.subagent_system_prompt.trim().is_empty() => {
            &profile.subagent_system_prompt
        }
        RunKind::Session | RunKind::Subagent => &profile.system_prompt,
    }
}

/// The run's transient notes, as far as the conversation calls for them.
#[must_use]
pub fn notes(conversation: &[ContextMessage]) -> Vec<String> {
    let cut_off = conversation
        .last()
        .is_some_and(|last| last.role == Role::Assistant && last.state != MessageState::Complete);
    if cut_off {
        vec!["Your last answer was cut off. Go on from where it stopped.".to_owned()]
    } else {
        Vec::new()
    }
}

/// The window that a call gets: what is asked for, within what the model was made for.
#[must_use]
pub fn window(model: &ModelInfo, asked: u32) -> u32 {
    model.context_window.map_or(asked, |most| most.min(asked))
}

/// A guess at the tokens of messages in a call with this window.
#[must_use]
pub fn messages_tokens(messages: &[ContextMessage], window: u32) -> u32 {
    let conversation = Conversation {
        messages,
        ..Conversation::default()
    };
    let assembled = assemble("", &conversation, result_limit(window), &[]);
    let turns = assembled.turns.iter().map(|turn| estimate_tokens(turn));
    turns.fold(0, u32::saturating_add)
}

/// The most bytes of one tool result that the model is sent: a quarter of its window, at four
/// bytes a token. It depends on nothing else, so a result looks the same in every call.
#[must_use]
pub fn result_limit(window: u32) -> usize {
    // A quarter of the tokens at four bytes each: as many bytes as the window has tokens.
    usize::try_from(window)
        .unwrap_or(usize::MAX)
        .max(MIN_RESULT_BYTES)
}

/// The tokens of a window that are kept for the answer.
#[must_use]
pub fn answer_room(window: u32) -> u32 {
    (window / 8).clamp(256, 4096)
}

#[cfg(test)]
mod fit_tests;
#[cfg(test)]
mod tests;
