//! What a model says, with the text joined that has arrived already: a model that is faster than
//! its reader is read in few pieces.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use futures_util::{Stream, StreamExt as _};
use tokio::task::yield_now;

use crate::llm::LlmError;
use crate::protocol::chat::ChatDelta;

/// About as long as joined text gets.
const JOINED_BYTES: usize = 4096;

type Item = Result<ChatDelta, LlmError>;

/// See the module.
#[derive(Debug)]
pub(super) struct Joined<S> {
    stream: S,
    /// What came behind joined text; the stream's end, too.
    next: Option<Option<Item>>,
    /// As much was joined as may be.
    was_full: bool,
}

impl<S: Stream<Item = Item> + Unpin> Joined<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            next: None,
            was_full: false,
        }
    }

    /// The next of it. Nothing is lost where this is dropped.
    pub(super) async fn next(&mut self) -> Option<Item> {
        if std::mem::take(&mut self.was_full) {
            // Where more is there at any time, others on this thread would wait for long.
            yield_now().await;
        }
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        let mut item = match self.next.take() {
            Some(next) => next,
            None => ready!(self.stream.poll_next_unpin(cx)),
        };
        while let Some(Ok(ChatDelta::Text(text) | ChatDelta::Thinking(text))) = &item
            && text.len() < JOINED_BYTES
            && let Poll::Ready(next) = self.stream.poll_next_unpin(cx)
        {
            match (&mut item, next) {
                (Some(Ok(ChatDelta::Text(text))), Some(Ok(ChatDelta::Text(more))))
                | (Some(Ok(ChatDelta::Thinking(text))), Some(Ok(ChatDelta::Thinking(more)))) => {
                    text.push_str(&more);
                }
                (_, next) => {
                    self.next = Some(next);
                    break;
                }
            }
        }
        self.was_full = matches!(
            &item,
            Some(Ok(ChatDelta::Text(text) | ChatDelta::Thinking(text)))
                if text.len() >= JOINED_BYTES
        );
        Poll::Ready(item)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    #[tokio::test]
    async fn text_of_one_kind_is_joined_and_nothing_is_lost() {
        let text = |text: &str| Ok(ChatDelta::Text(text.to_owned()));
        let thinking = |text: &str| Ok(ChatDelta::Thinking(text.to_owned()));
        let said = vec![
            thinking("a"),
            thinking("b"),
            text("c"),
            text("d"),
            Err(LlmError::EndedEarly),
        ];
        let mut joined = Joined::new(stream::iter(said));
        assert_eq!(joined.next().await, Some(thinking("ab")));
        assert_eq!(joined.next().await, Some(text("cd")));
        assert_eq!(joined.next().await, Some(Err(LlmError::EndedEarly)));
        assert_eq!(joined.next().await, None);
    }
}
