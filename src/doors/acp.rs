//! `navi acp`: the Agent Client Protocol, version 1, on standard input and output, for editors and
//! whatever else starts an agent as a program of its own.
//!
//! It is a bridge to the service that runs: no engine of its own, no database, no token but the
//! user's login. Nothing but the protocol is written to standard output.

mod agent;
mod calls;
mod editor;
mod options;
mod permissions;
mod prompt;
mod replay;
mod session;
mod shapes;
mod updates;
mod wire;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::schema::{self, CancelNotification, ClientRequest};
use agent_client_protocol::{Agent as AgentRole, ConnectTo, Error, ErrorCode as Code};
use anyhow::{Context as _, anyhow, bail};
use navi_actors::protocol::error::ErrorCode;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio::time::timeout;

use self::agent::Agent;
use crate::client::{Client, ClientError};
use crate::settings::{Door, Settings};

/// How long the client has to ask, so that it can be told why nothing can be done.
const TOLD_WITHIN: Duration = Duration::from_secs(10);
/// How long a login may take to be given back.
const LOGOUT_LIMIT: Duration = Duration::from_secs(2);

/// Serves the client on standard input and output until it goes.
///
/// # Errors
/// The door is closed, no service runs, or it does not let this program in. A client that waits
/// was told so too.
pub(crate) async fn serve(settings: &Settings) -> anyhow::Result<ExitCode> {
    let (lines, room) = wire::stdio().context("standard input or output is closed")?;
    if !settings.doors.contains(Door::Acp) {
        return refuse(
            lines,
            "the door acp is closed; NAVI_DOORS names those that are open",
        )
        .await;
    }
    let client = match Client::log_in(settings).await {
        Ok(client) => client,
        Err(error) => return refuse(lines, &error.to_string()).await,
    };
    let agent = Arc::new(Agent::new(client.clone(), room, settings));
    let served = {
        let (asked, cancelled) = (agent.clone(), agent.clone());
        AgentRole
            .v1()
            .name("navi")
            .on_receive_request(
                async move |request: ClientRequest, responder, cx| {
                    asked.take(request, responder, cx);
                    Ok(())
                },
                agent_client_protocol::on_receive_request!(),
            )
            .on_receive_notification(
                async move |cancel: CancelNotification, _cx| {
                    cancelled.cancel(&cancel.session_id);
                    Ok(())
                },
                agent_client_protocol::on_receive_notification!(),
            )
            .connect_to(lines)
    };
    let mut end = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let served = tokio::select! {
        served = served => served,
        _ = end.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    };
    drop(agent);
    // A service that is gone is asked for nothing.
    let _ = timeout(LOGOUT_LIMIT, client.log_out()).await;
    served.map_err(|error| anyhow!("the connection to the client failed: {error}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Tells the client in its own protocol, and the log, why nothing can be done.
async fn refuse(lines: impl ConnectTo<AgentRole> + 'static, why: &str) -> anyhow::Result<ExitCode> {
    if !io::stdin().is_terminal() {
        let told = Arc::new(Notify::new());
        let (tell, error) = (told.clone(), Error::new(Code::INTERNAL_ERROR.value(), why));
        let refused = AgentRole
            .v1()
            .on_receive_request(
                async move |_: ClientRequest,
                            responder: agent_client_protocol::v1::Responder,
                            _cx| {
                    let answered = responder.respond_with_error(error.clone());
                    tell.notify_one();
                    answered
                },
                agent_client_protocol::on_receive_request!(),
            )
            .connect_with(lines, async move |cx| {
                tokio::select! {
                    () = told.notified() => {}
                    () = cx.incoming_closed() => {}
                }
                Ok(())
            });
        if !matches!(timeout(TOLD_WITHIN, refused).await, Ok(Ok(()))) {
            tracing::debug!("the client did not ask");
        }
    }
    bail!("{why}")
}

/// What the service says, as the client shows it.
fn refusal(error: &ClientError) -> Error {
    let code = match error {
        ClientError::Refused(refused) => match refused.code {
            ErrorCode::NotFound
            | ErrorCode::SessionNotFound
            | ErrorCode::MessageNotFound
            | ErrorCode::FileNotFound => Code::RESOURCE_NOT_FOUND,
            ErrorCode::InvalidField
            | ErrorCode::EmptyMessage
            | ErrorCode::MessageTooLarge
            | ErrorCode::FrameTooLarge
            | ErrorCode::TooManyImages
            | ErrorCode::ImageTooLarge
            | ErrorCode::InvalidImage
            | ErrorCode::InvalidId
            | ErrorCode::UnknownProfile
            | ErrorCode::ModelUnknown => Code::INVALID_PARAMS,
            _ => Code::INTERNAL_ERROR,
        },
        ClientError::NotRunning { .. }
        | ClientError::Unreachable { .. }
        | ClientError::NoLink { .. }
        | ClientError::Unreadable(_) => Code::INTERNAL_ERROR,
    };
    Error::new(code.value(), error.to_string())
}

/// What is wrong with a request.
fn invalid(why: impl Into<String>) -> Error {
    schema::Error::new(Code::INVALID_PARAMS.value(), why).into()
}
