//! Other ways that the conversation could go: an edited message, an answer made anew.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::Session;
use super::command::BranchStart;
use super::transition::{Branched, Refused, Reply, ReplyTo};
use super::turns::NewRun;
use super::write::Write;
use crate::domain::history::{self, ContextState};
use crate::protocol::command::{CallDecision, SendMode};
use crate::protocol::error::ErrorCode;
use crate::protocol::event::Event;
use crate::protocol::ids::{CallId, MessageId, Origin, RunId};
use crate::protocol::message::{Message, Role};

impl Session {
    pub(super) fn start_branch(
        &mut self,
        start: BranchStart,
        to: ReplyTo,
        now: DateTime<Utc>,
    ) -> Result<(), Refused> {
        if !self.is_idle() {
            return Err(Self::busy("then edit"));
        }
        let shown = start.path.iter().any(|segment| {
            segment.branch == start.branch_id
                && segment.below.is_none_or(|below| start.ordinal < below)
        });
        if !shown || start.path != self.ahead.path() || start.message.role != Role::User {
            return Err(Refused::error(
                ErrorCode::MessageNotFound,
                "only a message of the user's own that is shown can be edited or answered anew",
            ));
        }
        let forked = history::fork(
            &self.ahead.branches,
            self.ahead.branch_id,
            start.before,
            start.ordinal,
        );
        let branch = forked.ok_or_else(|| {
            Refused::error(
                ErrorCode::QueueFull,
                "this conversation has as many branches as it may have; go on in a new one",
            )
        })?;
        let branch_id = branch.id;
        let run_id = RunId::new();
        let mut message_id = start.message.id;
        let mut events = vec![Event::BranchChanged { branch_id }];
        self.write(Write::Fork(branch));
        self.write(Write::ContextTokens(0));
        self.write(Write::Active(now));
        self.bring_back();
        if let Some(content) = start.content {
            let mut message = Message::user(MessageId::new(), run_id, content, now);
            message.images = start.message.images;
            message.files = start.message.files;
            let message = self.written_by(message, start.author);
            message_id = message.id;
            events.push(Event::MessageAccepted {
                client_id: None,
                message_id,
                queued: false,
                mode: SendMode::Queue,
                content: message.content.clone().unwrap_or_default(),
                images: message.images.clone(),
                files: message.files.clone(),
                author: message.author.clone(),
            });
            self.write(Write::Message(Arc::new(message)));
        }
        let branched = Branched {
            branch_id,
            run_id,
            message_id,
        };
        self.reply(to, Reply::Branched(branched));
        self.begin(NewRun::turn(run_id, message_id), now);
        for event in events {
            self.tell(Some(Origin::foreground(run_id)), event);
        }
        Ok(())
    }

    pub(super) fn show_branch(&mut self, branch_id: u32, to: ReplyTo) -> Result<(), Refused> {
        if !self.is_idle() {
            return Err(Self::busy("then show another branch"));
        }
        let mut branches = self.ahead.branches.iter();
        if !branches.any(|branch| branch.id == branch_id) {
            return Err(Refused::error(
                ErrorCode::NotFound,
                format!("this session has no branch {branch_id}"),
            ));
        }
        // The one under way is of the branch that was shown.
        self.drop_summary();
        self.write(Write::ShowBranch(branch_id));
        // How large the other branch's context is will be known with its next run.
        self.write(Write::ContextTokens(0));
        self.tell(None, Event::BranchChanged { branch_id });
        self.reply(to, Reply::Done(()));
        Ok(())
    }

    /// What a person says became of a call. It is the context's: from then on the model reads
    /// the call's result so, and `messages` stays.
    pub(super) fn resolve_call(
        &mut self,
        call_id: CallId,
        decision: CallDecision,
        to: ReplyTo,
    ) -> Result<(), Refused> {
        let mut unknown = self.ahead.unknown_calls().into_iter();
        if !self.is_idle() || !unknown.any(|call| call.call_id == call_id) {
            return Err(Refused::error(
                ErrorCode::NotFound,
                "no such call waits for a word on its outcome; it may have been given already",
            ));
        }
        // The one under way was made of the context as it was.
        self.drop_summary();
        let branch_id = self.ahead.branch_id;
        let mut context = self.ahead.context().clone();
        context.decisions.insert(call_id.clone(), decision);
        self.write(Write::Context { branch_id, context });
        self.tell(None, Event::CallResolved { call_id, decision });
        self.reply(to, Reply::Done(()));
        Ok(())
    }

    /// What is remembered of the owner leaves the contexts of all branches. The next run takes it
    /// anew, where it may.
    pub(super) fn drop_memory(&mut self) {
        let branches = self.ahead.branches.clone().into_iter();
        for branch in branches.filter(|branch| branch.context.memory.is_some()) {
            self.write(Write::Context {
                branch_id: branch.id,
                context: ContextState {
                    memory: None,
                    ..branch.context
                },
            });
        }
    }
}
