//! Events as whoever came by a link is told them.

use bytestring::ByteString;

use crate::domain::sharing::{ByLink, for_link};
use crate::protocol::event::{Envelope, Event};
use crate::services::now;
use crate::session::sequencer::encode;

/// The event, as far as it is for them: the same bytes where that is all of it. What cannot be
/// read is not.
pub(super) fn shown(seq: Option<u64>, json: ByteString) -> ByteString {
    let Ok(mut envelope) = serde_json::from_str::<Envelope>(&json) else {
        return number(seq);
    };
    match for_link(&mut envelope.event) {
        ByLink::Whole => json,
        ByLink::Partly => encode(&envelope),
        ByLink::Number => number(seq),
    }
}

/// What stands in the place of an event: without it, its number would be missed.
fn number(seq: Option<u64>) -> ByteString {
    encode(&Envelope {
        seq,
        run_id: None,
        parent_run_id: None,
        at: now(),
        event: Event::Pong {},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_whole_keeps_its_bytes_and_what_cannot_be_read_its_number_alone() {
        let whole = r#"{"seq":3,  "at":"2026-01-01T00:00:00Z","type":"stream_stopped"}"#;
        assert_eq!(shown(Some(3), whole.into()), whole);
        let unknown =
            r#"{"seq":4,"at":"2026-01-01T00:00:00Z","type":"of_tomorrow","secret":"plum"}"#;
        let told = shown(Some(4), unknown.into());
        assert!(told.contains(r#""seq":4"#) && told.contains(r#""type":"pong""#));
        assert!(!told.contains("plum"));
    }
}
