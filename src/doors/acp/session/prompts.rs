//! The prompts of a session that were not answered yet.

use std::path::PathBuf;

use agent_client_protocol::Error;
use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{ContentBlock, PromptResponse, StopReason};
use navi_actors::protocol::command::{ClientFrame, UserInput};
use navi_actors::protocol::ids::{MessageId, RunId};
use navi_actors::protocol::session::SessionSnapshot;
use uuid::Uuid;

use super::respond;
use crate::client::ClientError;
use crate::doors::acp::updates::{CONTINUE, Ending};
use crate::doors::acp::{prompt, refusal};

/// See the module.
pub(super) struct Prompts {
    /// Client ids begin so.
    own: String,
    /// The editor's project, for the first message.
    project: Option<PathBuf>,
    open: Vec<Prompt>,
    /// The client id of the newest message.
    newest: Option<String>,
}

struct Prompt {
    client_id: String,
    responder: Responder<PromptResponse>,
    /// What is said, until it is accepted.
    unaccepted: Option<ClientFrame>,
    /// The run that answers it.
    run_id: Option<RunId>,
    /// The message, while it waits for the run before.
    waits: Option<MessageId>,
    cancelled: bool,
}

impl Prompts {
    pub(super) fn new(own: String) -> Self {
        Self {
            own,
            project: None,
            open: Vec::new(),
            newest: None,
        }
    }

    pub(super) fn tell_project(&mut self, project: Option<PathBuf>) {
        self.project = project;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn next_id(&self) -> String {
        format!("{}{}", self.own, Uuid::now_v7().simple())
    }

    /// The message of a prompt.
    ///
    /// # Errors
    /// What of it cannot be taken.
    pub(super) fn message(
        &mut self,
        blocks: Vec<ContentBlock>,
        client_id: String,
    ) -> Result<UserInput, Error> {
        let mut input = prompt::message(blocks, client_id)?;
        if let Some(project) = self.project.take() {
            let project = project.display();
            input.content = format!("{}\n\n(The project is {project}.)", input.content);
        }
        Ok(input)
    }

    pub(super) fn push(
        &mut self,
        client_id: String,
        said: ClientFrame,
        responder: Responder<PromptResponse>,
    ) {
        self.newest = Some(client_id.clone());
        self.open.push(Prompt {
            client_id,
            responder,
            unaccepted: Some(said),
            run_id: None,
            waits: None,
            cancelled: false,
        });
    }

    /// Waits for the end of a run that goes on already.
    pub(super) fn follow(&mut self, run_id: RunId, responder: Responder<PromptResponse>) {
        let client_id = self.next_id();
        self.open.push(Prompt {
            client_id,
            responder,
            unaccepted: None,
            run_id: Some(run_id),
            waits: None,
            cancelled: false,
        });
    }

    /// What has to be said again where the session is opened anew.
    pub(super) fn unaccepted(&self) -> Vec<ClientFrame> {
        let open = self.open.iter();
        open.filter_map(|prompt| prompt.unaccepted.clone())
            .collect()
    }

    /// What stops it where it was cancelled before.
    pub(super) fn accept(
        &mut self,
        client_id: &str,
        message_id: MessageId,
        run_id: RunId,
        queued: bool,
    ) -> Option<ClientFrame> {
        let mut open = self.open.iter_mut();
        let prompt = open.find(|it| it.client_id == client_id)?;
        prompt.unaccepted = None;
        prompt.run_id = Some(run_id);
        prompt.waits = queued.then_some(message_id);
        let stop = match prompt.waits {
            Some(message_id) => ClientFrame::Withdraw { message_id },
            None => ClientFrame::Stop {
                hold: false,
                run_id: None,
            },
        };
        prompt.cancelled.then_some(stop)
    }

    /// What a session says of prompts whose acceptance was not told.
    pub(super) fn remember(&mut self, session: &SessionSnapshot) {
        for prompt in &mut self.open {
            let id = Some(&prompt.client_id);
            let waits = session.queue.iter().find(|it| it.client_id.as_ref() == id);
            let said = session
                .messages
                .iter()
                .find(|it| it.client_id.as_ref() == id);
            let run_id = waits.map(|it| it.run_id).or(said.map(|it| it.run_id));
            if run_id.is_some() {
                prompt.unaccepted = None;
                prompt.run_id = run_id;
            }
            if let Some(waits) = waits {
                prompt.waits = Some(waits.message_id);
            }
        }
    }

    pub(super) fn newest(&self) -> Option<&str> {
        self.newest.as_deref()
    }

    /// Whether this run answers one of them.
    pub(super) fn have(&self, run_id: RunId) -> bool {
        self.open.iter().any(|it| it.run_id == Some(run_id))
    }

    pub(super) fn runs(&self) -> Vec<RunId> {
        self.open
            .iter()
            .filter_map(|prompt| prompt.run_id)
            .collect()
    }

    pub(super) fn refused(&mut self, client_id: &str, error: &Error) {
        for prompt in self.open.extract_if(.., |it| it.client_id == client_id) {
            respond(prompt.responder, Err(error.clone()));
        }
    }

    pub(super) fn withdrawn(&mut self, message_id: MessageId) {
        for prompt in self.open.extract_if(.., |it| it.waits == Some(message_id)) {
            respond(
                prompt.responder,
                Ok(PromptResponse::new(StopReason::Cancelled)),
            );
        }
    }

    pub(super) fn steered(&mut self, message_id: MessageId, run_id: RunId) {
        let waiting = self.open.iter_mut();
        for prompt in waiting.filter(|it| it.waits == Some(message_id)) {
            prompt.run_id = Some(run_id);
            prompt.waits = None;
        }
    }

    pub(super) fn over(&mut self, run_id: RunId, ending: &Ending) {
        for prompt in self.open.extract_if(.., |it| it.run_id == Some(run_id)) {
            let stopped = match ending {
                _ if prompt.cancelled => Ok(StopReason::Cancelled),
                Ending::Whole => Ok(StopReason::EndTurn),
                Ending::Limited => Ok(StopReason::MaxTurnRequests),
                Ending::TooLong => Ok(StopReason::MaxTokens),
                Ending::Stopped => Ok(StopReason::Cancelled),
                Ending::Failed(error) => Err(refusal(&ClientError::Refused(error.clone()))),
            };
            respond(prompt.responder, stopped.map(PromptResponse::new));
        }
    }

    /// Notes that the client wants none of them any more. Gives the messages that wait.
    pub(super) fn cancel(&mut self) -> Vec<MessageId> {
        for prompt in &mut self.open {
            prompt.cancelled = true;
        }
        self.open.iter().filter_map(|prompt| prompt.waits).collect()
    }

    pub(super) fn cancel_all(&mut self) {
        for prompt in self.open.drain(..) {
            respond(
                prompt.responder,
                Ok(PromptResponse::new(StopReason::Cancelled)),
            );
        }
    }

    pub(super) fn fail_all(&mut self, error: &Error) {
        for prompt in self.open.drain(..) {
            let answer = if prompt.cancelled {
                Ok(PromptResponse::new(StopReason::Cancelled))
            } else {
                Err(error.clone())
            };
            respond(prompt.responder, answer);
        }
    }
}

/// Whether a prompt is the command that goes on with a run.
pub(super) fn is_continue(blocks: &[ContentBlock]) -> bool {
    match blocks {
        [ContentBlock::Text(block)] => block.text.trim().strip_prefix('/') == Some(CONTINUE),
        _ => false,
    }
}
