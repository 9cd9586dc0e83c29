//! How much of a run's text was heard already: what is open is told again to who comes back.

use navi_actors::protocol::event::{Delta, behind_utf16, utf16_len};
use navi_actors::protocol::ids::PartId;

/// What parts a reply of the model from the one before.
pub(crate) const BETWEEN: &str = "\n\n";

/// The part that was told last, and how much of it.
#[derive(Debug, Default)]
pub(crate) struct Heard(Option<(PartId, u64)>);

impl Heard {
    /// As it stood before, where it is known.
    pub(crate) fn at(place: Option<(PartId, u64)>) -> Self {
        Self(place)
    }

    pub(crate) fn place(&self) -> Option<&(PartId, u64)> {
        self.0.as_ref()
    }

    fn of(&self, part: &PartId) -> u64 {
        match &self.0 {
            Some((known, place)) if known == part => *place,
            _ => 0,
        }
    }

    /// What of a piece is new. Where it begins a part behind another one, as a reply of the model
    /// behind the one before, that is seen in it.
    pub(crate) fn take(&mut self, piece: Delta) -> Option<String> {
        let have = self.of(&piece.part_id);
        let end = piece.offset + utf16_len(&piece.delta);
        if end <= have {
            return None;
        }
        let begins = matches!(&self.0, Some((known, _)) if *known != piece.part_id);
        let new = behind_utf16(&piece.delta, have.saturating_sub(piece.offset));
        let new = if begins {
            format!("{BETWEEN}{new}")
        } else {
            new.to_owned()
        };
        self.0 = Some((piece.part_id, end));
        Some(new)
    }

    /// The same of a part that is known whole.
    pub(crate) fn take_whole(&mut self, part_id: PartId, content: &str) -> Option<String> {
        self.take(Delta {
            part_id,
            offset: 0,
            delta: content.to_owned(),
            is_subagent: false,
        })
    }
}
