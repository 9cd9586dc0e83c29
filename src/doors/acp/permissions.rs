//! Requests for consent, as the client asks its user.

use std::collections::HashMap;

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use agent_client_protocol::{
    Client, Error, RequestCancellationHandle, is_connection_terminated,
    is_incoming_transport_closed,
};
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use navi_actors::protocol::approval::ApprovalRequest;
use navi_actors::protocol::command::Decision;
use navi_actors::protocol::ids::{ApprovalId, CallId, SessionId};

use super::calls::{Workspace, title_asked};

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

    /// The next answer that counts. Never, where nothing was asked, or the client has ended.
    pub(super) async fn next(&mut self) -> (ApprovalId, Answer) {
        loop {
            let Some((id, answer)) = self.asked.next().await else {
                std::future::pending::<()>().await;
                continue;
            };
            if self.open.remove(&id).is_some()
                && let Some(answer) = read(answer)
            {
                return (id, answer);
            }
        }
    }
}

/// What the client says. Nothing where it has ended, or this program does: the library answers in
/// its place with an error, and the call waits for who answers it elsewhere.
fn read(answer: Result<RequestPermissionResponse, Error>) -> Option<Answer> {
    let outcome = match answer {
        Ok(response) => response.outcome,
        Err(error) if is_incoming_transport_closed(&error) || is_connection_terminated(&error) => {
            return None;
        }
        Err(error) => {
            tracing::warn!(%error, "the client cannot ask for consent");
            return Some(Answer::CannotAsk);
        }
    };
    Some(match outcome {
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
    })
}

/// The request for a call.
pub(super) fn request(
    session: SessionId,
    call: &CallId,
    asked: &ApprovalRequest,
    workspace: &Workspace,
) -> RequestPermissionRequest {
    let fields = ToolCallUpdateFields::new()
        .title(title_asked(asked))
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

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::io;
    use std::sync::Arc;

    use agent_client_protocol::schema::ProtocolVersion;
    use agent_client_protocol::v1::Responder;
    use agent_client_protocol::v1::schema::{ClientRequest, InitializeResponse};
    use agent_client_protocol::{Agent as AgentRole, Lines};
    use futures_util::{sink, stream};
    use tokio::sync::{Notify, oneshot};

    use super::*;
    use crate::doors::acp::session::respond;

    const BEGINS: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}"#;

    /// Does this while an editor is connected that begins, answers nothing, and ends with `ended`.
    async fn connected<R>(
        ended: oneshot::Receiver<()>,
        work: impl AsyncFnOnce(ConnectionTo<Client>) -> R,
    ) -> R {
        let begins = stream::once(ready(Ok::<_, io::Error>(BEGINS.to_owned())));
        let silent = stream::once(ended).filter_map(|_| ready(None));
        let read = sink::unfold((), |(), _: String| ready(Ok::<_, io::Error>(())));
        let begun = Arc::new(Notify::new());
        let tell = begun.clone();
        let done = AgentRole
            .v1()
            .on_receive_request(
                async move |_: ClientRequest, responder: Responder, _cx| {
                    let agent = InitializeResponse::new(ProtocolVersion::V1);
                    respond(responder.cast(), Ok(agent));
                    tell.notify_one();
                    Ok(())
                },
                agent_client_protocol::on_receive_request!(),
            )
            .connect_with(Lines::new(read, begins.chain(silent)), async move |cx| {
                begun.notified().await;
                Ok(work(cx).await)
            });
        Box::pin(done).await.unwrap()
    }

    fn question() -> RequestPermissionRequest {
        let call = ToolCallUpdate::new("call".to_owned(), ToolCallUpdateFields::new());
        RequestPermissionRequest::new("session".to_owned(), call, Vec::new())
    }

    #[tokio::test]
    async fn an_editor_that_ends_answers_nothing() {
        let (end, ended) = oneshot::channel();
        let said = connected(ended, async move |cx: ConnectionTo<Client>| {
            let mut permissions = Permissions::default();
            permissions.ask(&cx, ApprovalId::new(), question());
            drop(end);
            cx.incoming_closed().await;
            // Nor is it asked anything from here on.
            permissions.ask(&cx, ApprovalId::new(), question());
            permissions.next().now_or_never()
        });
        assert_eq!(said.await, None);
    }

    #[tokio::test]
    async fn a_connection_that_is_given_up_answers_nothing() {
        let (_end, ended) = oneshot::channel();
        let (tell, told) = oneshot::channel();
        let mut going = Box::pin(connected(ended, async move |cx: ConnectionTo<Client>| {
            let _ = tell.send(cx);
            pending::<()>().await;
        }));
        let cx = tokio::select! {
            () = &mut going => unreachable!("it goes on"),
            cx = told => cx.unwrap(),
        };
        let mut permissions = Permissions::default();
        permissions.ask(&cx, ApprovalId::new(), question());
        // As a signal ends this program.
        drop(going);
        assert_eq!(permissions.next().now_or_never(), None);
    }
}
