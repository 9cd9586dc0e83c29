//! Conversations as they were read last and went on since, so that the next turn reads nothing. A
//! message is never written anew, and each has a greater ordinal than those before it: what was
//! read stays true.

use std::mem;

use hashlink::LruCache;
use parking_lot::Mutex;

use crate::domain::context::ContextMessage;
use crate::domain::history::Segment;
use crate::protocol::ids::SessionId;
use crate::protocol::message::Message;

/// Messages with their ordinals, in order.
pub type Numbered = Vec<(u64, ContextMessage)>;

/// How much is kept where nothing else is set, in bytes.
const KEPT: usize = 32 * 1024 * 1024;

/// What a message takes beside its texts, about, with what prompts say of it.
const MESSAGE_BYTES: usize = mem::size_of::<Message>() + 384;
/// How often its text stands there: as it is, as a prompt says it, and as a request writes that.
const COPIES: usize = 3;

/// See the module.
#[derive(Debug)]
pub(super) struct Recent {
    limit: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    conversations: LruCache<SessionId, Conversation>,
    bytes: usize,
}

/// One path of a session, from an ordinal on.
#[derive(Debug)]
struct Conversation {
    path: Vec<Segment>,
    from: u64,
    messages: Numbered,
    bytes: usize,
}

impl Default for Recent {
    fn default() -> Self {
        Self::up_to(KEPT)
    }
}

impl Recent {
    /// Keeps so many bytes, of all sessions together.
    pub(super) fn up_to(limit: usize) -> Self {
        let kept = Kept {
            conversations: LruCache::new_unbounded(),
            bytes: 0,
        };
        Self {
            limit,
            kept: Mutex::new(kept),
        }
    }

    /// What is known of this path from this ordinal on, without a gap from there.
    pub(super) fn get(&self, id: SessionId, path: &[Segment], from: u64) -> Numbered {
        let mut kept = self.kept.lock();
        let known = kept.conversations.get(&id);
        let known = known.filter(|known| known.path == path && known.from <= from);
        known.map_or_else(Vec::new, |known| {
            let at = known.messages.partition_point(|(at, _)| *at < from);
            known.messages[at..].to_vec()
        })
    }

    /// All that there is of this path from this ordinal on, by now. What of it is known is not
    /// weighed again.
    pub(super) fn put(&self, id: SessionId, path: &[Segment], from: u64, messages: &Numbered) {
        let mut kept = self.kept.lock();
        let known = kept.remove(id);
        let known = known.filter(|known| known.path == path && known.from == from);
        let mut conversation = known.unwrap_or_else(|| Conversation {
            path: path.to_vec(),
            from,
            messages: Numbered::new(),
            bytes: 0,
        });
        let came = messages.get(conversation.messages.len()..);
        conversation.take(came.unwrap_or_default().iter().cloned());
        kept.insert(id, conversation, self.limit);
    }

    /// What was written at the end of a session's branch. Where something before it is not known,
    /// the next one who reads the conversation reads that, too.
    pub(super) fn append(&self, id: SessionId, branch: u32, first: u64, came: Vec<ContextMessage>) {
        let mut kept = self.kept.lock();
        let Some(mut conversation) = kept.remove(id) else {
            return;
        };
        if conversation.goes_on_with(branch, first) {
            conversation.take((first..).zip(came));
        }
        kept.insert(id, conversation, self.limit);
    }

    pub(super) fn forget(&self, id: SessionId) {
        self.kept.lock().remove(id);
    }
}

impl Conversation {
    /// Whether a message of this branch and with this ordinal follows the last that is known:
    /// ordinals count all of a session's messages, so that between them there is none.
    fn goes_on_with(&self, branch: u32, ordinal: u64) -> bool {
        let end = self.path.last();
        let is_shown = end.is_some_and(|end| end.branch == branch && end.below.is_none());
        is_shown
            && self
                .messages
                .last()
                .is_some_and(|(last, _)| last + 1 == ordinal)
    }

    fn take(&mut self, came: impl IntoIterator<Item = (u64, ContextMessage)>) {
        for (ordinal, message) in came {
            self.bytes += weight(&message);
            self.messages.push((ordinal, message));
        }
    }
}

impl Kept {
    /// Keeps it, unless it is half of all by itself, in the place of those not used for longest.
    fn insert(&mut self, id: SessionId, conversation: Conversation, limit: usize) {
        if conversation.bytes > limit / 2 {
            return;
        }
        self.bytes += conversation.bytes;
        self.conversations.insert(id, conversation);
        while self.bytes > limit
            && let Some((_, oldest)) = self.conversations.remove_lru()
        {
            self.bytes -= oldest.bytes;
        }
    }

    fn remove(&mut self, id: SessionId) -> Option<Conversation> {
        let gone = self.conversations.remove(&id)?;
        self.bytes -= gone.bytes;
        Some(gone)
    }
}

/// What a message takes in memory, about.
fn weight(message: &Message) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let images = message.images.iter();
    let calls = message.tool_calls.iter();
    let calls = calls.map(|call| call.name.len() + call.arguments.to_string().len());
    MESSAGE_BYTES
        + images.map(String::len).sum::<usize>()
        + text(&message.thinking)
        + COPIES * (text(&message.content) + calls.sum::<usize>())
        + message.files.len() * MESSAGE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::talk::user;

    fn talk(texts: &[&str]) -> Numbered {
        let said = texts.iter().map(|text| user(1, text).into());
        (0..).zip(said).collect()
    }

    const ROOT: [Segment; 1] = [Segment {
        branch: 0,
        below: None,
    }];

    #[test]
    fn what_was_read_of_the_same_path_is_known_from_any_later_message_on() {
        let recent = Recent::default();
        let id = SessionId::new();
        let all = talk(&["a", "b", "c"]);
        recent.put(id, &ROOT, 0, &all);
        assert_eq!(recent.get(id, &ROOT, 0), all);
        assert_eq!(recent.get(id, &ROOT, 2), all[2..]);
        // Of two that read at once, the one that saw less comes last.
        let weighed = recent.kept.lock().bytes;
        recent.put(id, &ROOT, 0, &all[..2].to_vec());
        recent.put(id, &ROOT, 0, &all);
        assert_eq!(recent.get(id, &ROOT, 0), all);
        assert_eq!(recent.kept.lock().bytes, weighed);
        let fork = Segment {
            branch: 1,
            below: None,
        };
        assert!(recent.get(id, &[fork], 0).is_empty());
        assert!(recent.get(SessionId::new(), &ROOT, 0).is_empty());

        // Read from the middle: what is before that is not known.
        recent.put(id, &ROOT, 2, &all[2..].to_vec());
        assert!(recent.get(id, &ROOT, 1).is_empty());
        recent.forget(id);
        assert!(recent.get(id, &ROOT, 2).is_empty());
        assert_eq!(recent.kept.lock().bytes, 0);
    }

    #[test]
    fn what_is_known_goes_on_only_where_nothing_is_missing() {
        let recent = Recent::default();
        let id = SessionId::new();
        let all = talk(&["a", "b", "c"]);
        recent.append(id, 0, 0, vec![all[0].1.clone()]);
        assert!(recent.get(id, &ROOT, 0).is_empty());
        recent.put(id, &ROOT, 0, &all[..1].to_vec());
        recent.append(id, 1, 1, vec![all[1].1.clone()]);
        recent.append(id, 0, 2, vec![all[2].1.clone()]);
        assert_eq!(recent.get(id, &ROOT, 0), all[..1]);
        recent.append(id, 0, 1, vec![all[1].1.clone(), all[2].1.clone()]);
        assert_eq!(recent.get(id, &ROOT, 0), all);
        // A stretch that ends in mid-branch gains nothing.
        let cut = [Segment {
            branch: 0,
            below: Some(3),
        }];
        recent.put(id, &cut, 0, &all);
        recent.append(id, 0, 3, vec![all[2].1.clone()]);
        assert_eq!(recent.get(id, &cut, 0), all);
    }

    #[test]
    fn the_one_that_was_used_longest_ago_goes_first_and_a_long_one_is_not_kept() {
        let long = "word ".repeat(2_000);
        let each = weight(&user(1, &long));
        let recent = Recent::up_to(each * 5 / 2);
        let ids: [SessionId; 3] = std::array::from_fn(|_| SessionId::new());
        let known = |id| !recent.get(id, &ROOT, 0).is_empty();
        recent.put(ids[0], &ROOT, 0, &talk(&[&long]));
        recent.put(ids[1], &ROOT, 0, &talk(&[&long]));
        assert!(known(ids[0]));
        recent.put(ids[2], &ROOT, 0, &talk(&[&long]));
        assert!(known(ids[0]) && known(ids[2]) && !known(ids[1]));
        recent.put(ids[2], &ROOT, 0, &talk(&[&long, &long]));
        assert!(known(ids[0]) && !known(ids[2]));
        assert_eq!(recent.kept.lock().bytes, each);

        let nothing = Recent::up_to(0);
        nothing.put(ids[0], &ROOT, 0, &talk(&["a"]));
        assert!(nothing.get(ids[0], &ROOT, 0).is_empty());
    }
}
