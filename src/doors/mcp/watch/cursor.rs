//! Where a client has read up to.

use std::fmt;
use std::str::FromStr;

use navi_actors::protocol::ids::PartId;

/// How far a client has read: the number of an event, and how much of a text that was still open.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::doors::mcp) struct Cursor {
    pub(super) seq: u64,
    pub(super) heard: Option<(PartId, u64)>,
}

impl Cursor {
    pub(in crate::doors::mcp) fn at(seq: u64) -> Self {
        Self { seq, heard: None }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.heard {
            None => write!(f, "{}", self.seq),
            Some((part, place)) => write!(f, "{}:{place}:{part}", self.seq),
        }
    }
}

impl FromStr for Cursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.splitn(3, ':');
        let mut number = || parts.next().map(str::parse::<u64>);
        let seq = number().ok_or(())?.map_err(|_| ())?;
        let heard = match number() {
            None => None,
            Some(place) => {
                let part = parts.next().filter(|part| !part.is_empty()).ok_or(())?;
                Some((PartId(part.to_owned()), place.map_err(|_| ())?))
            }
        };
        Ok(Self { seq, heard })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let part = PartId("0190a0b0-0000-7000-8000-000000000001.text".to_owned());
        for cursor in [
            Cursor::at(12),
            Cursor {
                seq: 3,
                heard: Some((part, 7)),
            },
        ] {
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for wrong in ["", "x", "-1", "1:", "1:2", "1:2:", "1:x:y"] {
            assert_eq!(wrong.parse::<Cursor>(), Err(()), "{wrong}");
        }
    }
}
