//! What a tool says that a call would do, what consent to that is bound to, and how a person is shown it.

use std::time::Duration;

use tokio_util::task::AbortOnDropHandle;

use crate::domain::{consent, unseen};
use crate::homes::ensure_workspace;
use crate::protocol::approval::Detail;
use crate::tools::output::shortened;
use crate::tools::registry::PreparedCall;
use crate::tools::{Proposal, ToolContext, ToolError};

/// A tool says what it would do within this.
const PROPOSAL_LIMIT: Duration = Duration::from_secs(10);

/// As many bytes as a line of a request has. Its details say the whole.
const SUMMARY_BYTES: usize = 300;

/// What the tool says that a call would do: in a task of its own, and within a limit.
pub(super) async fn propose(
    prepared: &PreparedCall,
    context: &ToolContext,
) -> Result<Proposal, ToolError> {
    let (prepared, context) = (prepared.clone(), context.clone());
    let name = prepared.tool.spec().name.clone();
    let task = AbortOnDropHandle::new(tokio::spawn(async move {
        ensure_workspace(&context.workspace)
            .await
            .map_err(|error| {
                ToolError(format!("the session's workspace cannot be made: {error}"))
            })?;
        prepared.tool.proposal(&prepared.args, &context).await
    }));
    match tokio::time::timeout(PROPOSAL_LIMIT, task).await {
        Ok(Ok(proposal)) => proposal,
        Ok(Err(error)) => {
            tracing::error!(tool = name, %error, "tool panicked before its call");
            Err(ToolError(format!(
                "the tool {name} failed because of a mistake in Navi; do this in another way"
            )))
        }
        Err(_) => Err(ToolError(format!(
            "the tool {name} could not say within {} s what this call would do, so it was not made",
            PROPOSAL_LIMIT.as_secs()
        ))),
    }
}

/// What an approval of this call is bound to.
pub(super) fn bound_to(prepared: &PreparedCall, proposal: &Proposal) -> String {
    let tool = &prepared.tool.spec().name;
    consent::digest(tool, &prepared.args, &proposal.binding)
}

/// What rules for such calls are compared by; none where there can be none.
pub(super) fn rule_key(prepared: &PreparedCall, proposal: &Proposal) -> Option<String> {
    let subject = proposal.rule.as_ref()?;
    Some(consent::rule_key(&prepared.tool.spec().name, &subject.key))
}

/// Details as a person is shown them: nothing in them can pass for something else. An error is
/// how many bytes there would be to show, where that is more than a request may have.
pub(super) fn shown(details: Vec<Detail>) -> Result<Vec<Detail>, usize> {
    let shown = details.into_iter().map(|detail| Detail {
        label: unseen::named_on_a_line(&detail.label),
        text: unseen::named(&detail.text),
        phrase: detail.phrase.map(|phrase| phrase.shown(unseen::named)),
        ..detail
    });
    let shown: Vec<Detail> = shown.collect();
    let bytes = shown
        .iter()
        .map(|detail| detail.label.len() + detail.text.len());
    match bytes.sum() {
        bytes if bytes > consent::MAX_SHOWN_BYTES => Err(bytes),
        _ => Ok(shown),
    }
}

/// A line of a request.
pub(super) fn line(text: &str) -> String {
    shortened(&unseen::named_on_a_line(text), SUMMARY_BYTES)
}
