//! Answers that are wanted whole: waited for, while the watchers are told what the wait is for.

use std::time::Duration;

use tokio::time::Instant;

use super::driver::Driver;
use crate::domain::lanes::waiting_phrase;

use crate::llm_actor::Ticket;
use crate::protocol::event::WaitReason;
use crate::protocol::phrase::PhraseCode;
use crate::protocol::status::BackendKind;
use crate::session::messages::RunGone;

/// A wait that takes longer than this is told, and what it is for is looked at again as often.
pub(super) const QUIET: Duration = Duration::from_millis(700);

/// What is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) kind: BackendKind,
    /// The question's place in the backend's queue.
    pub(super) ticket: Ticket,
    /// What the model does once it has the question.
    pub(super) doing: PhraseCode,
}

impl Driver {
    /// Waits for an answer. None where the run was cut off or its time was up first: dropping
    /// `asked` must end the question.
    pub(super) async fn wait_for<T>(
        &mut self,
        asked: impl Future<Output = T>,
        wait: Wait,
    ) -> Result<Option<T>, RunGone> {
        tokio::pin!(asked);
        let mut told = None;
        let mut quiet = tokio::time::interval_at(Instant::now() + QUIET, QUIET);
        let ends = self.ends.clone();
        let models = self.services.models.clone();
        let deadline = self.deadline;
        loop {
            tokio::select! {
                biased;
                () = ends.stop.cancelled() => return Ok(None),
                () = ends.interrupt.cancelled() => return Ok(None),
                answer = &mut asked => return Ok(Some(answer)),
                () = tokio::time::sleep_until(deadline) => return Ok(None),
                queue = async {
                    quiet.tick().await;
                    models.queue(wait.kind, wait.ticket).await
                } => {
                    let (reason, phrase) = match queue {
                        Some(view) => (WaitReason::Lane, waiting_phrase(&view)),
                        None => (WaitReason::Prefill, wait.doing.into()),
                    };
                    if told.replace(reason) != Some(reason) {
                        self.waiting(reason, phrase).await?;
                    }
                }
            }
        }
    }
}
