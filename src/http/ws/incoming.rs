//! What comes on a socket, bounded before the library collects it: that looks at how long a frame
//! says it is once the whole of it is there, and keeps what comes of it for as long as it comes.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_web::error::PayloadError;
use actix_web::web;
use bytes::Bytes;
use futures_util::Stream;
use navi_actors::people::Turn;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::ids::UserId;
use tokio::sync::oneshot;

use crate::http::App;
use crate::http::error::ApiError;
use crate::http::pace::{self, Paced};
use crate::http::turns;
use crate::http::values::LARGE_BYTES;

/// RFC 6455 §5.5.
const MAX_CONTROL_BYTES: usize = 125;

/// The bytes of a socket. A frame that announces more than its limit is refused at its header. A
/// large message takes a turn of its person's, as a large body does, and is held to the same pace.
pub(super) struct Incoming {
    app: App,
    user: UserId,
    payload: Paced<web::Payload>,
    frames: Frames,
    state: State,
    /// Whoever closes the socket hears there why nothing comes any more.
    refusal: Option<oneshot::Sender<NaviError>>,
}

enum State {
    Freely,
    /// A large message has begun, and its turn has not.
    Waits {
        turn: Pin<Box<dyn Future<Output = Result<Turn, ApiError>>>>,
        rest: Bytes,
    },
    Large {
        _turn: Turn,
    },
    /// What comes yet is read, so that the client hears why, and thrown away.
    Refused,
}

impl Incoming {
    pub(super) fn new(
        app: App,
        user: UserId,
        payload: web::Payload,
        max_bytes: usize,
    ) -> (Self, oneshot::Receiver<NaviError>) {
        let (refusal, refused) = oneshot::channel();
        let incoming = Self {
            payload: Paced::new(payload, app.loaded.settings.slow_body),
            app,
            user,
            frames: Frames::new(max_bytes),
            state: State::Freely,
            refusal: Some(refusal),
        };
        (incoming, refused)
    }

    fn refuse(&mut self, error: NaviError) {
        self.state = State::Refused;
        if let Some(refusal) = self.refusal.take() {
            // A socket that is gone needs no reason.
            let _ = refusal.send(error);
        }
    }

    /// What of these bytes may be collected.
    fn admit(&mut self, mut bytes: Bytes) -> Bytes {
        if let Err(error) = self.frames.follow(&bytes) {
            bytes.truncate(self.frames.began);
            self.refuse(error);
            return bytes;
        }
        match (&self.state, self.frames.are_large()) {
            (State::Freely, true) => {
                // Without its header, for which the library would make room at once.
                let rest = bytes.split_off(self.frames.began);
                let (app, user) = (self.app.clone(), self.user);
                let turn = Box::pin(async move { turns::take(&app, user).await });
                self.state = State::Waits { turn, rest };
            }
            (State::Large { .. }, false) => self.state = State::Freely,
            _ => {}
        }
        bytes
    }
}

impl Stream for Incoming {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            let piece = match &mut this.state {
                State::Waits { turn, rest } => match ready!(turn.as_mut().poll(cx)) {
                    Ok(turn) => {
                        let rest = std::mem::take(rest);
                        this.payload.begin();
                        this.state = State::Large { _turn: turn };
                        return Poll::Ready(Some(Ok(rest)));
                    }
                    Err(ApiError(error)) => {
                        this.refuse(error);
                        continue;
                    }
                },
                State::Large { .. } => ready!(Pin::new(&mut this.payload).poll_next(cx)),
                State::Freely | State::Refused => {
                    ready!(Pin::new(this.payload.at_any_pace()).poll_next(cx))
                }
            };
            match (&this.state, piece) {
                (State::Refused, Some(Ok(_))) => {}
                (State::Refused, _) | (_, None) => return Poll::Ready(None),
                (_, Some(Ok(bytes))) => return Poll::Ready(Some(Ok(this.admit(bytes)))),
                (_, Some(Err(error))) if pace::too_slow(&error).is_some() => {
                    this.refuse(NaviError::new(
                        ErrorCode::BodyTooSlow,
                        "the message came too slowly and was left; send it again over a faster connection",
                    ));
                }
                (_, Some(Err(error))) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}

/// The error of a frame, or of a message in parts, with more bytes than it may have.
pub(super) fn too_large(max_bytes: usize) -> NaviError {
    NaviError::new(
        ErrorCode::FrameTooLarge,
        format!("the frame has over {max_bytes} bytes, which is the limit"),
    )
}

/// Where in its frames a socket is (RFC 6455 §5.2). What else is wrong with them is the library's
/// to find.
struct Frames {
    max_bytes: usize,
    /// What came of the header that is under way.
    header: Vec<u8>,
    /// Where among the last bytes the last header begins; at their beginning, where it began before
    /// them.
    began: usize,
    /// What is to come of the frame, its key too.
    left: usize,
    /// The message ends with the frame.
    ends: bool,
    /// How much the frames of the message that is under way have announced.
    message: usize,
}

impl Frames {
    fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            header: Vec::new(),
            began: 0,
            left: 0,
            ends: false,
            message: 0,
        }
    }

    /// Whether a large message is under way.
    fn are_large(&self) -> bool {
        self.message >= LARGE_BYTES
    }

    /// # Errors
    /// `frame_too_large`, as soon as a header says so.
    fn follow(&mut self, bytes: &[u8]) -> Result<(), NaviError> {
        self.began = 0;
        let mut at = 0;
        loop {
            let here = self.left.min(bytes.len() - at);
            self.left -= here;
            at += here;
            if self.left > 0 {
                return Ok(());
            }
            if std::mem::take(&mut self.ends) {
                self.message = 0;
            }
            let Some(byte) = bytes.get(at) else {
                return Ok(());
            };
            if self.header.is_empty() {
                self.began = at;
            }
            self.header.push(*byte);
            at += 1;
            if let Some(header) = Header::read(&self.header) {
                self.header.clear();
                self.enter(&header)?;
            }
        }
    }

    fn enter(&mut self, header: &Header) -> Result<(), NaviError> {
        let most = if header.is_control {
            MAX_CONTROL_BYTES
        } else {
            self.max_bytes
        };
        if header.payload > most {
            return Err(too_large(most));
        }
        self.left = header.key + header.payload;
        if !header.is_control {
            self.ends = header.is_last;
            self.message = self.message.saturating_add(header.payload);
        }
        Ok(())
    }
}

/// A frame's, without the key.
struct Header {
    is_last: bool,
    is_control: bool,
    /// In bytes, as `payload`.
    key: usize,
    payload: usize,
}

impl Header {
    /// None where more of it is to come.
    fn read(bytes: &[u8]) -> Option<Self> {
        let [first, second, extended @ ..] = bytes else {
            return None;
        };
        let short = second & 0x7f;
        let extended_bytes = match short {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        if extended.len() < extended_bytes {
            return None;
        }
        let payload = if extended.is_empty() {
            u64::from(short)
        } else {
            let digits = extended.iter().map(|byte| u64::from(*byte));
            digits.fold(0_u64, |sum, byte| (sum << 8) | byte)
        };
        Some(Self {
            is_last: first & 0x80 != 0,
            is_control: first & 0x08 != 0,
            key: if second & 0x80 == 0 { 0 } else { 4 },
            payload: usize::try_from(payload).unwrap_or(usize::MAX),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: u8 = 0x01;
    const CONTINUED: u8 = 0x00;
    const PING: u8 = 0x89;
    const LAST: u8 = 0x80;

    fn header(first: u8, is_masked: bool, payload: usize) -> Vec<u8> {
        let mask = if is_masked { 0x80 } else { 0 };
        let mut bytes = vec![first];
        if let Ok(short @ 0..=125) = u8::try_from(payload) {
            bytes.push(mask | short);
        } else if let Ok(payload) = u16::try_from(payload) {
            bytes.push(mask | 126);
            bytes.extend(payload.to_be_bytes());
        } else {
            bytes.push(mask | 127);
            bytes.extend((payload as u64).to_be_bytes());
        }
        bytes
    }

    /// A frame whose payload looks like headers of large frames.
    fn frame(first: u8, is_masked: bool, payload: usize) -> Vec<u8> {
        let mut bytes = header(first, is_masked, payload);
        let key = if is_masked { 4 } else { 0 };
        bytes.resize(bytes.len() + key + payload, 0xff);
        bytes
    }

    /// How many bytes are taken in, where they come in these pieces.
    fn taken<'a>(max_bytes: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> usize {
        let mut frames = Frames::new(max_bytes);
        let mut taken = 0;
        for piece in pieces {
            if frames.follow(piece).is_err() {
                return taken + frames.began;
            }
            taken += piece.len();
        }
        taken
    }

    #[test]
    fn a_frame_beyond_the_limit_is_found_wherever_the_bytes_are_cut() {
        for is_masked in [false, true] {
            let mut bytes = Vec::new();
            for payload in [0, 1, 125, 126, 127, 300] {
                bytes.extend(frame(LAST | TEXT, is_masked, payload));
            }
            let good = bytes.len();
            bytes.extend(frame(LAST | TEXT, is_masked, 301));
            let end = bytes.len();
            for cut in 0..end {
                let (one, other) = bytes.split_at(cut);
                let found = taken(300, [one, other]);
                // What came of its header before may have been taken in.
                let split = (good..good + 4).contains(&cut);
                assert_eq!(found, if split { cut } else { good }, "cut at {cut}");
            }
            assert_eq!(taken(300, bytes.chunks(1)), good + 3);
            assert_eq!(taken(301, bytes.chunks(1)), end);
        }
    }

    #[test]
    fn the_longest_form_is_read_at_its_last_byte() {
        let most = 70_000;
        let bytes = frame(LAST | TEXT, true, most);
        for size in [1, 2, 3, 7, 1_000, bytes.len()] {
            assert_eq!(taken(most, bytes.chunks(size)), bytes.len());
            assert_eq!(taken(most - 1, bytes.chunks(size)), 9 / size * size);
        }
        for payload in [1 << 40, usize::MAX] {
            assert_eq!(taken(most, [&*header(LAST | TEXT, true, payload)]), 0);
        }
    }

    #[test]
    fn a_message_is_large_from_the_header_that_makes_it_so_to_its_end() {
        let mut frames = Frames::new(1 << 20);
        let mut is_large_after = |bytes: &[u8]| {
            frames.follow(bytes).unwrap();
            frames.are_large()
        };
        let half = LARGE_BYTES / 2;
        assert!(!is_large_after(&frame(TEXT, true, half)));
        assert!(!is_large_after(&frame(PING, true, 125)));
        assert!(!is_large_after(&frame(CONTINUED, true, half - 1)));
        assert!(is_large_after(&header(CONTINUED, true, 1)));
        assert!(is_large_after(&[0xff; 5]));
        assert!(is_large_after(&frame(PING, true, 0)));
        assert!(!is_large_after(&frame(LAST | CONTINUED, true, 0)));
        assert!(is_large_after(&header(LAST | TEXT, true, LARGE_BYTES)));
        assert!(is_large_after(&vec![0xff; LARGE_BYTES + 3]));
        assert!(!is_large_after(&[0xff]));
        for _ in 0..LARGE_BYTES / 125 + 1 {
            assert!(!is_large_after(&frame(PING, true, 125)));
        }
    }

    #[test]
    fn a_ping_is_short() {
        assert_eq!(taken(1_000, [&*frame(PING, true, 125)]), 131);
        assert_eq!(taken(1_000, [&*frame(PING, true, 126)]), 0);
    }
}
