//! Requests for consent, as the client asks its user.

use std::collections::HashMap;

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use agent_client_protocol::{Client, Error, RequestCancellationHandle};
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use navi_actors::protocol::approval::ApprovalRequest;
use navi_actors::protocol::command::Decision;
use navi_actors::protocol::ids::{ApprovalId, CallId, SessionId};

use super::calls::Workspace;

/// Answers that stand for one call, and for all such calls from then on: a rule.
const OPTIONS: [(Decision, &str, PermissionOptionKind); 4] = [
    (Decision::Once, "once", PermissionOptionKind::AllowOnce),
    (
        Decision::Always,
        "always",
        PermissionOptionKind::AllowAlways,
    ),
    (Decision::Deny, "deny", PermissionOptionKind::RejectOnce),
    (Decision::Never, "never", PermissionOptionKind::RejectAlways),
];

/// What the client says of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Decided(Decision),
    /// Its user stopped the turn before they answered.
    TurnCancelled,
    /// It cannot ask.
    CannotAsk,
}

type Asked = BoxFuture<'static, (ApprovalId, Result<RequestPermissionResponse, Error>)>;

/// The requests that the client was asked and that nobody answered yet, here or elsewhere.
#[derive(Default)]
pub(super) struct Permissions {
    open: HashMap<ApprovalId, RequestCancellationHandle>,
    asked: FuturesUnordered<Asked>,
}

impl Permissions {
    pub(super) fn ask(
        &mut self,
        client: &ConnectionTo<Client>,
        id: ApprovalId,
        request: RequestPermissionRequest,
    ) {
        if self.open.contains_key(&id) {
            return;
        }
        let sent = client.send_request(request);
        self.open.insert(id, sent.cancellation_handle());
        let answer = sent.block_task().map(move |answer| (id, answer)).boxed();
        self.asked.push(answer);
    }

    /// It was answered elsewhere, or nobody can answer it any more.
    pub(super) fn withdraw(&mut self, id: ApprovalId) {
        if let Some(request) = self.open.remove(&id) {
            // A client that went away is asked nothing.
            let _ = request.cancel();
        }
    }

    /// Whatever the client answers does not count any more.
    pub(super) fn forget(&mut self) {
        self.open.clear();
    }

    pub(super) fn withdraw_all_but(&mut self, ids: &[ApprovalId]) {
        let gone: Vec<_> = self.open.keys().copied().collect();
        for id in gone.into_iter().filter(|id| !ids.contains(id)) {
            self.withdraw(id);
        }
    }

    /// The next answer that counts. Never, where nothing was asked.
    pub(super) async fn next(&mut self) -> (ApprovalId, Answer) {
        loop {
            let Some((id, answer)) = self.asked.next().await else {
                std::future::pending::<()>().await;
                continue;
            };
            if self.open.remove(&id).is_some() {
                return (id, read(answer));
            }
        }
    }
}

fn read(answer: Result<RequestPermissionResponse, Error>) -> Answer {
    let outcome = match answer {
        Ok(response) => response.outcome,
        Err(error) => {
            tracing::warn!(%error, "the client cannot ask for consent");
            return Answer::CannotAsk;
        }
    };
    match outcome {
        RequestPermissionOutcome::Cancelled => Answer::TurnCancelled,
        RequestPermissionOutcome::Selected(selected) => {
            let chosen = OPTIONS
                .iter()
                .find(|(_, id, _)| *id == &*selected.option_id.0);
            chosen.map_or(Answer::CannotAsk, |(decision, ..)| {
                Answer::Decided(*decision)
            })
        }
        _ => Answer::CannotAsk,
    }
}

/// The request for a call.
pub(super) fn request(
    session: SessionId,
    call: &CallId,
    asked: &ApprovalRequest,
    workspace: &Workspace,
) -> RequestPermissionRequest {
    let fields = ToolCallUpdateFields::new()
        .title(asked.summary.clone())
        .status(ToolCallStatus::Pending)
        .content(workspace.asked(asked));
    let options = OPTIONS.iter().filter_map(|(decision, id, kind)| {
        let name = match (decision, &asked.always) {
            (Decision::Once, _) => "Allow".to_owned(),
            (Decision::Deny, _) => "Deny".to_owned(),
            (Decision::Always, Some(what)) => format!("Always allow: {what}"),
            (Decision::Never, Some(what)) => format!("Never allow: {what}"),
            // What cannot be said cannot be a rule.
            (Decision::Always | Decision::Never, None) => return None,
        };
        Some(PermissionOption::new(*id, name, *kind))
    });
    RequestPermissionRequest::new(
        session.to_string(),
        ToolCallUpdate::new(call.to_string(), fields),
        options.collect(),
    )
}
