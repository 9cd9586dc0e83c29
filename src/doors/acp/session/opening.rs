//! A session is read: all of it, or what it is without what was said.

use agent_client_protocol::JsonRpcResponse;
use agent_client_protocol::v1::Responder;
use navi_actors::protocol::session::SessionSnapshot;

use super::{Next, Session, respond};
use crate::client::{ClientError, Events};
use crate::doors::acp::agent::Door;
use crate::doors::acp::options::Options;
use crate::doors::acp::updates::View;
use crate::doors::acp::{refusal, replay};

/// What there is once the session was read.
pub(in crate::doors::acp) struct Open {
    pub(super) events: Events,
    pub(super) view: View,
    pub(super) options: Options,
    pub(super) title: String,
}

impl Open {
    /// As the session stands.
    ///
    /// # Errors
    /// What the service says, or that it says nothing.
    pub(in crate::doors::acp) async fn at(
        door: &Door,
        snapshot: &SessionSnapshot,
    ) -> Result<Self, ClientError> {
        let id = snapshot.summary.id;
        let mut view = View::new(
            door.workspace(&snapshot.summary),
            door.shows(),
            door.own.clone(),
        );
        for call in replay::open_calls(snapshot) {
            view.know(call);
        }
        Ok(Self {
            events: (door.client)
                .events(id, Some(snapshot.last_seq))
                .lending(door.own.clone()),
            view,
            options: Options::of(&door.client, snapshot).await?,
            title: snapshot.summary.title.clone(),
        })
    }

    pub(in crate::doors::acp) fn options(&self) -> &Options {
        &self.options
    }
}

impl Session {
    /// Reads the session, and tells all of it.
    pub(super) async fn load(&mut self) -> Result<Options, ClientError> {
        let path = format!("/sessions/{}", self.id);
        let snapshot: SessionSnapshot = self.door.client.get(&path).await?;
        let open = Open::at(&self.door, &snapshot).await?;
        for update in replay::conversation(&snapshot, open.view.workspace()) {
            self.tell(update).await;
        }
        self.become_open(open, &snapshot)
    }

    /// Reads what it is without what was said.
    pub(super) async fn resume(&mut self) -> Result<Options, ClientError> {
        let snapshot = self.door.newest(self.id).await?;
        let open = Open::at(&self.door, &snapshot).await?;
        for update in replay::state(&snapshot) {
            self.tell(update).await;
        }
        self.become_open(open, &snapshot)
    }

    /// Prompts that wait go on with what is read now.
    fn become_open(
        &mut self,
        open: Open,
        snapshot: &SessionSnapshot,
    ) -> Result<Options, ClientError> {
        let options = open.options.clone();
        let mut open = open;
        for frame in self.prompts.unaccepted() {
            open.events.say(frame)?;
        }
        self.permissions.withdraw_all_but(&[]);
        self.prompts.remember(snapshot);
        self.open = Some(open);
        Ok(options)
    }

    /// Opens the session where the client forgot to. Says so where that failed.
    pub(super) async fn opened_for<T: JsonRpcResponse>(
        &mut self,
        responder: Responder<T>,
    ) -> Option<Responder<T>> {
        if self.open.is_none()
            && let Err(error) = self.resume().await
        {
            respond(responder, Err(refusal(&error)));
            return None;
        }
        Some(responder)
    }

    pub(super) fn unless_open(&self) -> Next {
        match self.open {
            Some(_) => Next::GoOn,
            None => Next::End,
        }
    }

    /// What a person is asked just now, and whether there is something to go on with.
    pub(super) async fn ask_what_waits(&mut self) {
        let Ok(snapshot) = self.door.newest(self.id).await else {
            return;
        };
        let Some(open) = &mut self.open else {
            return;
        };
        let mut updates: Vec<_> = open
            .view
            .may_continue(snapshot.can_continue)
            .into_iter()
            .collect();
        updates.extend(
            snapshot
                .approvals
                .iter()
                .filter_map(|it| open.view.ask_again(it)),
        );
        for update in updates {
            self.tell(update).await;
        }
        for asked in snapshot.approvals {
            self.ask(asked.approval_id, &asked.call_id, &asked.request)
                .await;
        }
    }
}
