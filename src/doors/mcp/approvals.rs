//! Requests for consent: shown, and answered by a person whom the client asks. A client is often a
//! model itself: there is no argument by which it could answer, only the protocol's elicitation,
//! and only for a token that may.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use navi_actors::domain::session::command::ApprovalAnswer;
use navi_actors::domain::unseen;
use navi_actors::protocol::approval::PendingApproval;
use navi_actors::protocol::command::Decision;
use navi_actors::protocol::error::{ErrorCode, NaviError, invalid};
use navi_actors::protocol::ids::{ApprovalId, SessionId};
use navi_actors::protocol::tool::Effect;
use navi_actors::store::Listed;
use rmcp::model::{
    CallToolResponse, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, InputRequest, InputRequiredResult, ProtocolVersion,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::server::{Call, told};
use super::sessions::shortened;

/// As much of each detail stands in a list; a person who is asked is shown all of it.
const DETAIL_BYTES: usize = 4 * 1024;
/// The most that a list has.
const MOST: usize = 50;
/// How long a person has, where a client of an older revision holds its request open.
const ASKED_LIMIT: Duration = Duration::from_secs(5 * 60);
/// What the question is called in a result that needs an answer.
const QUESTION: &str = "consent";
const MAX_NOTE_CHARS: usize = 500;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListArgs {
    /// Those of this session alone.
    session_id: Option<SessionId>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Waiting {
    /// The fifty oldest of each session.
    approvals: Vec<Shown>,
    /// Whether this program may pass the user's answer on, with approval_answer.
    may_answer: bool,
    how: String,
}

/// What the user is asked.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Approval")]
pub(super) struct Shown {
    approval_id: ApprovalId,
    session_id: SessionId,
    tool: String,
    /// What would be done, on one line.
    summary: String,
    effect: Effect,
    /// Why it is asked about.
    reason: String,
    details: Vec<ShownDetail>,
    /// When it counts as denied.
    expires_at: DateTime<Utc>,
}

/// A part of what would be done.
#[derive(Debug, Serialize, JsonSchema)]
struct ShownDetail {
    label: String,
    text: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerArgs {
    /// The session that asks.
    session_id: SessionId,
    /// As approvals_list, run_wait or message_send gave it.
    approval_id: ApprovalId,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Answered {
    /// Whether the user's answer was passed on.
    answered: bool,
    /// What the user said.
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<Decision>,
    /// What to do where it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    how: Option<String>,
    /// What is asked.
    approval: Shown,
}

/// What a person fills in.
#[derive(Debug, Deserialize)]
struct Form {
    decision: Decision,
    note: Option<String>,
}

impl Shown {
    pub(super) fn of(session_id: SessionId, pending: &PendingApproval) -> Self {
        let request = &pending.request;
        let details = request.details.iter().map(|detail| {
            let (text, left_out) = shortened(&detail.text, DETAIL_BYTES);
            let mut text = unseen::named(text);
            if left_out > 0 {
                text.push_str(&format!("\n… {left_out} bytes more"));
            }
            ShownDetail {
                label: detail.label.clone(),
                text,
            }
        });
        Self {
            approval_id: pending.approval_id,
            session_id,
            tool: pending.tool.clone(),
            summary: unseen::named_on_a_line(&request.summary),
            effect: request.effect,
            reason: unseen::named_on_a_line(&request.reason),
            details: details.collect(),
            expires_at: pending.expires_at,
        }
    }
}

pub(super) async fn list(call: &Call<'_>) -> Result<CallToolResponse, NaviError> {
    let args: ListArgs = call.read()?;
    let (engine, user) = (&call.app.engine, call.who.user);
    let sessions = match args.session_id {
        Some(session) => vec![session],
        None => {
            let mut asking = Vec::new();
            for listed in [Listed::Current, Listed::Archived] {
                let sessions = engine.sessions(user, listed).await?;
                asking.extend(sessions.iter().filter(|it| it.asks > 0).map(|it| it.id));
            }
            asking
        }
    };
    let mut approvals = Vec::new();
    for session in sessions {
        let pending = engine.approvals(user, session).await?;
        approvals.extend(pending.iter().map(|it| Shown::of(session, it)));
        if approvals.len() >= MOST {
            approvals.truncate(MOST);
            break;
        }
    }
    let how = obstacle(call).await?;
    told(&Waiting {
        approvals,
        may_answer: how.is_none(),
        how: how.unwrap_or_else(|| "approval_answer asks the user".to_owned()),
    })
}

pub(super) async fn answer(call: &Call<'_>) -> Result<CallToolResponse, NaviError> {
    let args: AnswerArgs = call.read()?;
    let (engine, user) = (&call.app.engine, call.who.user);
    let pending = engine.approvals(user, args.session_id).await?;
    let asked = pending.iter().find(|it| it.approval_id == args.approval_id);
    let Some(asked) = asked else {
        return Err(NaviError::new(
            ErrorCode::ApprovalNotFound,
            "nothing waits for consent under this id in this session; it may be answered already",
        ));
    };
    let unanswered = |how: String| {
        told(&Answered {
            answered: false,
            decision: None,
            how: Some(how),
            approval: Shown::of(args.session_id, asked),
        })
    };
    if let Some(how) = obstacle(call).await? {
        return unanswered(how);
    }
    let params = question(asked)?;
    let filled_in = if is_current(call) {
        let answer = call.answers.as_ref().and_then(|all| all.get(QUESTION));
        let Some(answer) = answer else {
            let asks = InputRequest::Elicitation(ElicitRequest::new(params));
            let questions = BTreeMap::from([(QUESTION.to_owned(), asks)]);
            return Ok(InputRequiredResult::from_input_requests(questions).into());
        };
        serde_json::from_value(answer.clone())
            .map_err(|error| invalid(format!("inputResponses: {error}")))?
    } else {
        match ask(call, params).await {
            Ok(filled_in) => filled_in,
            Err(how) => return unanswered(how),
        }
    };
    let Some(given) = decided(filled_in)? else {
        return unanswered("the user put the question off; it still waits".to_owned());
    };
    // The person took their time: the token may be gone.
    if !call.may_consent().await? {
        return unanswered(on_the_page(call));
    }
    let decision = given.decision;
    engine
        .approve(user, args.session_id, args.approval_id, given)
        .await?;
    told(&Answered {
        answered: true,
        decision: Some(decision),
        how: None,
        approval: Shown::of(args.session_id, asked),
    })
}

/// Why the user cannot be asked through this client, and how they can answer then.
async fn obstacle(call: &Call<'_>) -> Result<Option<String>, NaviError> {
    if !call.may_consent().await? {
        return Ok(Some(on_the_page(call)));
    }
    let capabilities = call.context.client_capabilities();
    let asks = capabilities.and_then(|it| it.elicitation);
    // One that names no form means forms.
    if asks.is_some_and(|asks| asks.form.is_some() || asks.url.is_none()) {
        return Ok(None);
    }
    Ok(Some(format!(
        "this program cannot ask its user; {}",
        allow_there(call)
    )))
}

fn on_the_page(call: &Call<'_>) -> String {
    format!(
        "this program's token may not pass on the user's answer (navi token add NAME --consent makes one that may); {}",
        allow_there(call)
    )
}

fn allow_there(call: &Call<'_>) -> String {
    format!(
        "the user can allow or deny it on Navi's page, {}",
        call.app.places.page()
    )
}

/// From 2026-07-28 on a server asks by its result, and not by a request.
fn is_current(call: &Call<'_>) -> bool {
    let version = call.context.protocol_version();
    version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// Asks a client of an older revision, which answers within the same request.
async fn ask(call: &Call<'_>, params: ElicitRequestParams) -> Result<ElicitResult, String> {
    let peer = &call.context.peer;
    let asking = peer.create_elicitation_with_timeout(params, Some(ASKED_LIMIT));
    tokio::select! {
        biased;
        () = call.context.ct.cancelled() => Err("the call was cancelled; it still waits".to_owned()),
        answer = asking => answer.map_err(|error| {
            format!("the user was not asked ({error}); {}", allow_there(call))
        }),
    }
}

/// All of what would be done, as a person reads it: each character is seen, or named.
fn question(asked: &PendingApproval) -> Result<ElicitRequestParams, NaviError> {
    let request = &asked.request;
    let mut message = format!(
        "Navi asks for consent: {}\n\n{}\nTool: {}",
        unseen::named_on_a_line(&request.summary),
        unseen::named_on_a_line(&request.reason),
        unseen::named_on_a_line(&asked.tool),
    );
    for detail in &request.details {
        let label = unseen::named_on_a_line(&detail.label);
        message.push_str(&format!("\n\n{label}:\n{}", unseen::named(&detail.text)));
    }
    let mut words = vec!["once", "deny"];
    let mut means = "once: allow this call. deny: do not make it.".to_owned();
    if let Some(always) = &request.always {
        words.extend(["always", "never"]);
        let always = unseen::named_on_a_line(always);
        means.push_str(&format!(
            " always, never: the same for all such calls from now on ({always})."
        ));
    }
    let schema = json!({
        "type": "object",
        "properties": {
            "decision": {"type": "string", "title": "Decision", "description": means, "enum": words},
            "note": {
                "type": "string",
                "title": "Note",
                "description": "Why not, for Navi, on one line.",
                "maxLength": MAX_NOTE_CHARS,
            },
        },
        "required": ["decision"],
    });
    let schema: Result<ElicitationSchema, _> = serde_json::from_value(schema);
    let requested_schema = schema.map_err(|error| {
        tracing::error!(%error, "the form for consent cannot be read");
        NaviError::new(
            ErrorCode::Internal,
            "something failed here; Navi's log says what",
        )
    })?;
    Ok(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema,
    })
}

/// What the person decided; nothing where they closed the question.
fn decided(filled_in: ElicitResult) -> Result<Option<ApprovalAnswer>, NaviError> {
    match filled_in.action {
        ElicitationAction::Accept => {
            let form: Form = serde_json::from_value(filled_in.content.unwrap_or_default())
                .map_err(|error| invalid(format!("the form that was filled in: {error}")))?;
            let denies = matches!(form.decision, Decision::Deny | Decision::Never);
            Ok(Some(ApprovalAnswer {
                decision: form.decision,
                // Forms are sent whole, with fields that nobody touched.
                note: form.note.filter(|note| denies && !note.trim().is_empty()),
            }))
        }
        ElicitationAction::Decline => Ok(Some(ApprovalAnswer {
            decision: Decision::Deny,
            note: None,
        })),
        // Whatever else the protocol comes to know is no decision.
        ElicitationAction::Cancel | _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_filled_in_is_what_they_decided() {
        let decided = |text: &str| decided(serde_json::from_str(text).unwrap());
        let accepted =
            |content: &str| decided(&format!(r#"{{"action":"accept","content":{content}}}"#));
        let once = accepted(r#"{"decision":"once","note":""}"#)
            .unwrap()
            .unwrap();
        assert_eq!((once.decision, once.note), (Decision::Once, None));
        let denied = accepted(r#"{"decision":"deny","note":"not today"}"#)
            .unwrap()
            .unwrap();
        assert_eq!(denied.note.as_deref(), Some("not today"));
        let declined = decided(r#"{"action":"decline"}"#).unwrap().unwrap();
        assert_eq!(declined.decision, Decision::Deny);
        assert!(decided(r#"{"action":"cancel"}"#).unwrap().is_none());
        // A form that is not filled in allows nothing.
        for content in ["{}", r#"{"decision":"yes"}"#, r#"{"decision":null}"#] {
            assert!(accepted(content).is_err(), "{content}");
        }
    }
}
