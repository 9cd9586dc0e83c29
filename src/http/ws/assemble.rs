//! Joins the continuations of a text message, within a bound: the library hands over
//! fragments as they come, and limits each one alone.

use actix_http::ws::Item;
use bytestring::ByteString;

/// A message in parts.
#[derive(Debug)]
pub(crate) struct Assembly {
    max_bytes: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    Nothing,
    Text(Vec<u8>),
    /// Counted to its end and never kept.
    Binary,
}

/// What a fragment came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Assembled {
    /// More is to come.
    Partly,
    Text(ByteString),
    /// A binary message came to its end.
    Binary,
    TooLarge,
    /// A text message that is not UTF-8.
    NotText,
    /// A fragment that continues nothing, or starts inside another message.
    OutOfOrder,
}

impl Assembly {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            state: State::Nothing,
        }
    }

    pub(crate) fn add(&mut self, item: Item) -> Assembled {
        let state = std::mem::replace(&mut self.state, State::Nothing);
        match (state, item) {
            (State::Nothing, Item::FirstText(bytes)) => self.grow(Vec::new(), &bytes),
            (State::Text(text), Item::Continue(bytes)) => self.grow(text, &bytes),
            (State::Text(mut text), Item::Last(bytes)) => {
                if text.len() + bytes.len() > self.max_bytes {
                    return Assembled::TooLarge;
                }
                text.extend_from_slice(&bytes);
                match String::from_utf8(text) {
                    Ok(text) => Assembled::Text(text.into()),
                    Err(_) => Assembled::NotText,
                }
            }
            (State::Nothing, Item::FirstBinary(_)) | (State::Binary, Item::Continue(_)) => {
                self.state = State::Binary;
                Assembled::Partly
            }
            (State::Binary, Item::Last(_)) => Assembled::Binary,
            (State::Nothing, Item::Continue(_) | Item::Last(_))
            | (State::Text(_) | State::Binary, Item::FirstText(_) | Item::FirstBinary(_)) => {
                Assembled::OutOfOrder
            }
        }
    }

    fn grow(&mut self, mut text: Vec<u8>, bytes: &[u8]) -> Assembled {
        if text.len() + bytes.len() > self.max_bytes {
            return Assembled::TooLarge;
        }
        text.extend_from_slice(bytes);
        self.state = State::Text(text);
        Assembled::Partly
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn bytes(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[test]
    fn fragments_become_one_text_even_inside_a_character() {
        let mut assembly = Assembly::new(10);
        let (first, last) = "é".as_bytes().split_at(1);
        assert_eq!(
            assembly.add(Item::FirstText(Bytes::copy_from_slice(first))),
            Assembled::Partly
        );
        assert_eq!(assembly.add(Item::Continue(bytes(""))), Assembled::Partly);
        assert_eq!(
            assembly.add(Item::Last(Bytes::copy_from_slice(last))),
            Assembled::Text("é".into())
        );
    }

    #[test]
    fn the_bound_holds_for_the_whole() {
        let mut assembly = Assembly::new(5);
        assert_eq!(
            assembly.add(Item::FirstText(bytes("abc"))),
            Assembled::Partly
        );
        assert_eq!(assembly.add(Item::Last(bytes("def"))), Assembled::TooLarge);
        assert_eq!(
            assembly.add(Item::FirstText(bytes("abc"))),
            Assembled::Partly
        );
        assert_eq!(
            assembly.add(Item::Continue(bytes("def"))),
            Assembled::TooLarge
        );
    }

    #[test]
    fn binary_is_counted_out_and_disorder_is_told() {
        let mut assembly = Assembly::new(5);
        assert_eq!(
            assembly.add(Item::FirstBinary(bytes("abcdefgh"))),
            Assembled::Partly
        );
        assert_eq!(assembly.add(Item::Last(bytes("x"))), Assembled::Binary);
        assert_eq!(
            assembly.add(Item::Continue(bytes("x"))),
            Assembled::OutOfOrder
        );
        assert_eq!(assembly.add(Item::FirstText(bytes("x"))), Assembled::Partly);
        assert_eq!(
            assembly.add(Item::FirstText(bytes("x"))),
            Assembled::OutOfOrder
        );
        assert_eq!(
            assembly.add(Item::FirstText(Bytes::from_static(b"\xff"))),
            Assembled::Partly
        );
        assert_eq!(assembly.add(Item::Last(bytes(""))), Assembled::NotText);
    }
}
