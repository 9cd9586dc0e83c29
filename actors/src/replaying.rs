//! Has a replay's calls made: the only thing that it does to the world.

use futures_util::StreamExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::domain::model_choice::{Choice, Wanted, active};
use crate::domain::replay::Said;
use crate::llm::guard::StreamLimits;
use crate::llm_actor::{Acquire, Priority};
use crate::models::Models;
use crate::protocol::chat::{ChatDelta, ChatRequest};
use crate::protocol::error::{ErrorCode, NaviError};

/// What a call of a replay said, and how long it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    pub said: Said,
    /// None where nothing came.
    pub first_chunk_ms: Option<u64>,
    pub duration_ms: u64,
}

/// The model of this name on the backend that answers calls now. No other takes its place.
///
/// # Errors
/// `backend_unavailable`; `model_not_found` with the names of those that there are.
pub async fn find_model(models: &Models, name: &str) -> Result<Choice, NaviError> {
    models.probe().await;
    let statuses = models.statuses();
    let wanted = Wanted {
        backend: active(&statuses).map(|backend| backend.kind),
        model: Some(name),
        ..Wanted::default()
    };
    let choice = models.choose(wanted).await?;
    let offered: Vec<&str> = active(&statuses)
        .map(|backend| &backend.models)
        .into_iter()
        .flatten()
        .map(|model| model.name.as_str())
        .collect();
    if choice.instead_of.is_none() && offered.contains(&choice.model.name.as_str()) {
        return Ok(choice);
    }
    Err(NaviError::new(
        ErrorCode::ModelNotFound,
        format!(
            "the {} server has no model {name}; it has {}",
            choice.kind.as_str(),
            offered.join(", ")
        ),
    ))
}

/// Asks once. None where `stop` was cancelled first.
///
/// # Errors
/// What the backend said.
pub async fn ask(
    models: &Models,
    limits: StreamLimits,
    choice: &Choice,
    request: ChatRequest,
    stop: &CancellationToken,
) -> Result<Option<Answered>, NaviError> {
    let began = Instant::now();
    // Behind whoever waits for an answer of this process; beside the service's own queue.
    let asked = Acquire {
        stop: stop.clone(),
        ..Acquire::new(Priority::Background)
    };
    let acquire = models.acquire(choice.kind, asked);
    let lease = tokio::select! {
        biased;
        () = stop.cancelled() => return Ok(None),
        lease = acquire => lease?,
    };
    let mut stream = lease.call(request, limits, None);
    let mut said = Said::default();
    let mut first = None;
    let millis = || u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    while let Some(delta) = stream.next().await {
        let delta = delta.map_err(|error| error.told())?;
        if !matches!(delta, ChatDelta::Prefill { .. } | ChatDelta::Done { .. }) {
            first.get_or_insert_with(millis);
        }
        match delta {
            ChatDelta::Text(text) => said.content.push_str(&text),
            ChatDelta::Thinking(text) => said.thinking.push_str(&text),
            ChatDelta::ToolCall(call) => said.tool_calls.push(call),
            ChatDelta::Prefill { .. } | ChatDelta::Calling => {}
            ChatDelta::Done { usage, .. } => {
                said.usage = usage;
                return Ok(Some(Answered {
                    said,
                    first_chunk_ms: first,
                    duration_ms: millis(),
                }));
            }
        }
    }
    Ok(None)
}
