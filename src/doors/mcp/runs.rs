//! Runs: begun with a message, waited for, stopped.

use std::time::Duration;

use navi_actors::domain::input::MAX_CONTENT_BYTES;
use navi_actors::protocol::command::{NewSessionRequest, UserInput};
use navi_actors::protocol::error::{NaviError, invalid};
use navi_actors::protocol::ids::{MessageId, RunId, SessionId};
use rmcp::model::CallToolResponse;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::server::{Call, told};
use super::watch::{self, Cursor, Report, Wish};

/// The longest that a call may ask to wait.
const MAX_WAIT_SECONDS: u32 = 60;
/// The longest that one waits: clients give a request up after 60 s.
const LONGEST_WAIT: Duration = Duration::from_secs(50);
const USUAL_WAIT_SECONDS: u32 = 30;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SendArgs {
    /// What to tell Navi, at most 256 KB.
    #[schemars(length(min = 1, max = 262144))]
    text: String,
    /// The session to say it in; a new one where it is left out.
    session_id: Option<SessionId>,
    /// Which of Navi's profiles a new session has, as in `secretary`; the default one where it is
    /// left out.
    profile: Option<String>,
    /// A word of the caller's own for this message in this session: the same one twice is one
    /// message, and begins one run.
    #[schemars(length(min = 1, max = 128))]
    client_id: Option<String>,
    /// How long to wait for the answer, of which 50 s count at the most; not at all where it is
    /// left out.
    #[schemars(range(min = 0, max = 60))]
    wait_seconds: Option<u32>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Sent {
    session_id: SessionId,
    /// The run that answers it.
    run_id: RunId,
    message_id: MessageId,
    /// Whether it waits for the run before it.
    queued: bool,
    /// Whether it was sent before, under the same client_id.
    duplicate: bool,
    /// For run_wait: what the session tells from this message on.
    cursor: String,
    /// What was told within wait_seconds; go on from its cursor.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Report>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitArgs {
    /// The session whose run it is.
    session_id: SessionId,
    /// As message_send, session_read or run_wait gave it.
    cursor: String,
    /// The run to wait for; whichever goes where it is left out.
    run_id: Option<RunId>,
    /// How long to wait, of which 50 s count at the most; 30 where it is left out, 0 to only look.
    #[schemars(range(min = 0, max = 60))]
    timeout_seconds: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StopArgs {
    /// The session whose run is to stop.
    session_id: SessionId,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Stopped {
    /// Whether there was a run to stop.
    stopped: bool,
}

pub(super) async fn send(call: &Call<'_>) -> Result<CallToolResponse, NaviError> {
    let args: SendArgs = call.read()?;
    let limit = seconds("wait_seconds", args.wait_seconds.unwrap_or(0))?;
    // Before a session is made for it.
    if args.text.trim().is_empty() || args.text.len() > MAX_CONTENT_BYTES {
        return Err(invalid(format!(
            "text must have 1 to {MAX_CONTENT_BYTES} bytes, and not only spaces"
        )));
    }
    let (engine, user) = (&call.app.engine, call.who.user);
    let (session, before) = match args.session_id {
        Some(_) if args.profile.is_some() => {
            let message = "profile is for a new session; leave it out, or session_id";
            return Err(invalid(message));
        }
        None if args.client_id.is_some() => {
            let message = "client_id counts within a session; name its session_id too";
            return Err(invalid(message));
        }
        Some(session) => {
            let stands = engine.standing(user, session).await?;
            (session, stands.last_seq)
        }
        None => {
            let wish = NewSessionRequest {
                profile_id: args.profile,
                ..NewSessionRequest::default()
            };
            (engine.create_session(user, wish).await?.id, 0)
        }
    };
    let input = UserInput {
        content: args.text,
        client_id: args.client_id,
        ..UserInput::default()
    };
    let accepted = engine.send(user, session, input).await?;
    // What answers a message that was sent before may have begun anywhere.
    let from = Cursor::at(if accepted.duplicate { 0 } else { before });
    let cursor = from.to_string();
    let answer = if limit.is_zero() {
        None
    } else {
        let wish = Wish {
            session,
            run_id: Some(accepted.run_id),
            after: from,
            limit,
        };
        Some(watch::wait(call, wish).await?)
    };
    told(&Sent {
        session_id: session,
        run_id: accepted.run_id,
        message_id: accepted.message_id,
        queued: accepted.queued,
        duplicate: accepted.duplicate,
        cursor,
        answer,
    })
}

pub(super) async fn wait(call: &Call<'_>) -> Result<CallToolResponse, NaviError> {
    let args: WaitArgs = call.read()?;
    let asked = args.timeout_seconds.unwrap_or(USUAL_WAIT_SECONDS);
    let wrong = |()| invalid("cursor must be one that message_send, session_read or run_wait gave");
    let wish = Wish {
        session: args.session_id,
        run_id: args.run_id,
        after: args.cursor.parse().map_err(wrong)?,
        limit: seconds("timeout_seconds", asked)?,
    };
    told(&watch::wait(call, wish).await?)
}

pub(super) async fn stop(call: &Call<'_>) -> Result<CallToolResponse, NaviError> {
    let args: StopArgs = call.read()?;
    let engine = &call.app.engine;
    let stopped = engine.stop(call.who.user, args.session_id).await?;
    told(&Stopped { stopped })
}

fn seconds(name: &str, asked: u32) -> Result<Duration, NaviError> {
    if asked > MAX_WAIT_SECONDS {
        return Err(invalid(format!(
            "{name} must be 0 to {MAX_WAIT_SECONDS}; this is {asked}"
        )));
    }
    Ok(Duration::from_secs(asked.into()).min(LONGEST_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_before_clients_give_it_up() {
        let wait = |asked| seconds("timeout_seconds", asked).map_err(|error| error.message);
        assert_eq!(wait(0), Ok(Duration::ZERO));
        assert_eq!(wait(30), Ok(Duration::from_secs(30)));
        assert_eq!(wait(60), Ok(LONGEST_WAIT));
        assert!(wait(61).is_err());
    }
}
