//! How `navi chat -p` ends: for a script by its exit code, and with `--json` in full.

use std::process::ExitCode;

use navi_actors::protocol::approval::ConsentEntry;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::ids::{RunId, SessionId};
use serde::Serialize;

use super::files::FileError;
use super::style::shown_on_its_lines;
use crate::client::ClientError;
use crate::console::{complain, say};
use crate::http::error::status;

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    Answered,
    /// The run failed, or could not begin.
    Failed,
    /// The service went down, and the run did not go on.
    Interrupted,
    /// Somebody stopped the run elsewhere.
    StoppedElsewhere,
    /// What was asked for is wrong, or there is no service to ask.
    Refused,
    /// A limit of the run ended it.
    Limited,
    /// It was answered, and something of it was denied.
    Denied,
    /// By Ctrl-C.
    Stopped,
}

impl Outcome {
    pub(super) fn exit_code(self) -> u8 {
        match self {
            Self::Answered => 0,
            Self::Failed | Self::Interrupted | Self::StoppedElsewhere => 1,
            Self::Refused => 2,
            Self::Limited => 3,
            Self::Denied => 4,
            Self::Stopped => 130,
        }
    }
}

/// What went wrong, for programs and for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Problem {
    code: String,
    pub(super) message: String,
}

impl Problem {
    pub(super) fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
        }
    }
}

impl From<&NaviError> for Problem {
    fn from(error: &NaviError) -> Self {
        Self::new(&name(error.code), error.message.as_str())
    }
}

/// A call that was not made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Denied {
    tool: String,
    summary: String,
}

impl From<ConsentEntry> for Denied {
    fn from(entry: ConsentEntry) -> Self {
        Self {
            tool: entry.tool,
            summary: entry.summary,
        }
    }
}

/// What the run's model calls came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Usage {
    pub(super) prompt_tokens: u64,
    pub(super) completion_tokens: u64,
}

/// All that is told of it. Every field is always there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Report {
    pub(super) outcome: Outcome,
    pub(super) session_id: Option<SessionId>,
    pub(super) run_id: Option<RunId>,
    /// Where it is not whole, what was said of it.
    pub(super) answer: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) denied: Vec<Denied>,
    pub(super) usage: Option<Usage>,
    pub(super) error: Option<Problem>,
}

impl Report {
    pub(super) fn new(outcome: Outcome, error: Option<Problem>) -> Self {
        Self {
            outcome,
            session_id: None,
            run_id: None,
            answer: None,
            thinking: None,
            denied: Vec::new(),
            usage: None,
            error,
        }
    }

    /// Prints it: the answer alone on standard output, or all of it as one line of JSON.
    pub(super) fn print(&self, json: bool) -> ExitCode {
        if json {
            say(&serde_json::to_string(self).unwrap_or_default());
        } else {
            let is_whole = match self.outcome {
                Outcome::Answered | Outcome::Limited | Outcome::Denied => true,
                Outcome::Failed
                | Outcome::Interrupted
                | Outcome::StoppedElsewhere
                | Outcome::Refused
                | Outcome::Stopped => false,
            };
            if is_whole && let Some(answer) = &self.answer {
                say(shown_on_its_lines(answer).trim_end_matches('\n'));
            }
            if let Some(error) = &self.error {
                warn(&error.message);
            }
            for denied in &self.denied {
                warn(&format!("denied: {}", denied.summary));
            }
        }
        ExitCode::from(self.outcome.exit_code())
    }
}

/// A line on standard error.
pub(super) fn warn(message: &str) {
    complain(&format!("navi: {}", shown_on_its_lines(message)));
}

/// Why nothing was asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Client(#[from] ClientError),
}

impl From<Refusal> for Report {
    fn from(refusal: Refusal) -> Self {
        let client = match &refusal {
            Refusal::Client(error) | Refusal::File(FileError::Client(error)) => error,
            Refusal::Usage(message) => {
                return Self::new(
                    Outcome::Refused,
                    Some(Problem::new("usage", message.as_str())),
                );
            }
            Refusal::File(
                error @ (FileError::Unreadable { .. }
                | FileError::NoFile(_)
                | FileError::TooMany(_)),
            ) => {
                let problem = Problem::new("file", error.to_string());
                return Self::new(Outcome::Refused, Some(problem));
            }
        };
        Self::new(outcome_of(client), Some(problem_of(client)))
    }
}

/// What an error comes to, of a request that came before any run.
pub(super) fn outcome_of(error: &ClientError) -> Outcome {
    let ClientError::Refused(error) = error else {
        return Outcome::Refused;
    };
    // A session that is busy, or a service that is, may answer later.
    let status = status(error.code);
    if status.is_client_error() && !matches!(status.as_u16(), 408 | 409 | 422 | 429) {
        Outcome::Refused
    } else {
        Outcome::Failed
    }
}

pub(super) fn problem_of(error: &ClientError) -> Problem {
    let code = match error {
        ClientError::NotRunning { .. } => "not_running",
        ClientError::Unreachable { .. } => "unreachable",
        ClientError::NoLink { .. } => "no_link",
        ClientError::Unreadable(_) => "unreadable",
        ClientError::Refused(error) => return Problem::from(error),
    };
    Problem::new(code, error.to_string())
}

/// The name that a code has on the wire.
fn name(code: ErrorCode) -> String {
    let name = serde_json::to_value(code).ok();
    let name = name.and_then(|name| name.as_str().map(str::to_owned));
    name.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: ErrorCode) -> Report {
        Refusal::from(ClientError::from(NaviError::new(code, "why"))).into()
    }

    #[test]
    fn what_is_wrong_with_the_request_is_told_from_what_may_work_later() {
        assert_eq!(refused(ErrorCode::UnknownProfile).outcome, Outcome::Refused);
        assert_eq!(refused(ErrorCode::SessionBusy).outcome, Outcome::Failed);
        assert_eq!(
            refused(ErrorCode::StoreUnavailable).outcome,
            Outcome::Failed
        );
        let report = refused(ErrorCode::SessionBusy);
        assert_eq!(report.error, Some(Problem::new("session_busy", "why")));
    }

    #[test]
    fn a_report_has_every_field() {
        let report = Report::new(Outcome::Answered, None);
        let json = serde_json::to_value(&report).unwrap();
        let mut fields: Vec<&String> = json.as_object().unwrap().keys().collect();
        fields.sort();
        assert_eq!(
            fields,
            [
                "answer",
                "denied",
                "error",
                "outcome",
                "run_id",
                "session_id",
                "thinking",
                "usage"
            ]
        );
    }
}
