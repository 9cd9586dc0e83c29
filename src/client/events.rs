//! A session's events, over whatever happens to the connection, and what is said there.

use navi_actors::domain::input::MAX_MESSAGE_JSON_BYTES;
use navi_actors::protocol::command::ClientFrame;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::event::{Envelope, Event};
use navi_actors::protocol::ids::SessionId;
use url::form_urlencoded::byte_serialize;

use super::line::{Line, Told};
use super::{Client, ClientError};

/// The newest messages that a `resync` has.
const MESSAGES: u32 = 50;
/// How many frames wait to be told of at the most.
const OUTBOX: usize = 256;

/// See the module. What is told of parts that are open is told again after a connection was lost:
/// a delta's offset says how much of it is known.
pub(crate) struct Events {
    line: Line,
    session: SessionId,
    /// What this program calls itself, where it lends tools there.
    lender: Option<String>,
    after: Option<u64>,
    epoch: Option<i64>,
    /// Oldest first.
    said: Vec<Said>,
    /// Something was fed, and may not be on its way yet.
    unflushed: bool,
}

/// A frame, as long as it is not known to have arrived.
struct Said {
    frame: ClientFrame,
    json: String,
    /// Over the connection of now.
    fed: bool,
}

impl Events {
    pub(super) fn new(client: Client, session: SessionId, after: Option<u64>) -> Self {
        Self {
            line: Line::new(client),
            session,
            lender: None,
            after,
            epoch: None,
            said: Vec::new(),
            unflushed: false,
        }
    }

    /// The same for a program that lends tools to the session's runs, as long as this is there.
    pub(crate) fn lending(self, lender: String) -> Self {
        Self {
            lender: Some(lender),
            ..self
        }
    }

    /// Says something in the session, in order; it is on its way with the next [`Self::next`].
    /// A message with a `client_id` and an answer to a request for approval are said again where
    /// the connection is lost before the service told what became of them: twice is once.
    ///
    /// # Errors
    /// Too many wait already, or it is larger than what the service takes.
    pub(crate) fn say(&mut self, frame: ClientFrame) -> Result<(), ClientError> {
        if self.said.len() >= OUTBOX {
            let full = "too much waits for navi already; wait until she answers";
            return Err(NaviError::new(ErrorCode::QueueFull, full).into());
        }
        let json = serde_json::to_string(&frame);
        let json = json.map_err(|error| ClientError::Unreadable(error.to_string()))?;
        if json.len() > MAX_MESSAGE_JSON_BYTES {
            // The service would close the connection, and it would be said over the next one.
            let large = format!(
                "the message has {} bytes and the limit is {MAX_MESSAGE_JSON_BYTES}; send less of it",
                json.len()
            );
            return Err(NaviError::new(ErrorCode::FrameTooLarge, large).into());
        }
        self.said.push(Said {
            frame,
            json,
            fed: false,
        });
        Ok(())
    }

    /// Says messages no more that are not known to have arrived: whoever waits for what comes of
    /// them was told that they failed.
    pub(crate) fn give_up_messages(&mut self) {
        self.said
            .retain(|said| !matches!(said.frame, ClientFrame::Message(_)));
    }

    /// How many messages are not known to have arrived.
    pub(crate) fn waiting_messages(&self) -> usize {
        let messages = self
            .said
            .iter()
            .filter(|said| matches!(said.frame, ClientFrame::Message(_)));
        messages.count()
    }

    /// Goes on as another client, from where this left off: it says what is not known to have
    /// arrived.
    pub(crate) fn again(&mut self, client: Client) {
        self.line = Line::new(client);
    }

    /// Whether the service could not be reached when it was tried last.
    pub(crate) fn is_away(&self) -> bool {
        self.line.is_away()
    }

    /// What is told next. May be dropped at any time, and asked again.
    ///
    /// # Errors
    /// The service refuses, or has been away for a minute.
    pub(crate) async fn next(&mut self) -> Result<Envelope, ClientError> {
        loop {
            if !self.line.is_open() {
                let path = self.path();
                self.line.open(&path).await?;
                self.said.iter_mut().for_each(|said| said.fed = false);
                continue;
            }
            for said in self.said.iter_mut().filter(|said| !said.fed) {
                self.line.feed(&said.json).await;
                said.fed = self.line.is_open();
                self.unflushed = true;
            }
            if self.unflushed {
                self.line.flush().await;
                self.unflushed = false;
                if self.line.is_open() {
                    self.said.retain(|said| said.is_kept());
                }
            }
            let envelope = match self.line.next::<Envelope, Event>().await? {
                Some(Told::Known(envelope)) => envelope,
                Some(Told::Unknown { seq }) => {
                    self.after = seq.or(self.after);
                    continue;
                }
                None => continue,
            };
            self.after = envelope.seq.or(self.after);
            if let Event::Resync { session, .. } = &envelope.event {
                self.epoch = Some(session.epoch);
                self.after = Some(session.last_seq);
            }
            self.said
                .retain(|said| !said.is_answered_by(&envelope.event));
            return Ok(envelope);
        }
    }

    fn path(&self) -> String {
        let mut path = format!("/ws/sessions/{}?messages={MESSAGES}", self.session);
        if let Some(after) = self.after {
            path.push_str(&format!("&after={after}"));
        }
        if let Some(epoch) = self.epoch {
            path.push_str(&format!("&epoch={epoch}"));
        }
        if let Some(lender) = &self.lender {
            let lender: String = byte_serialize(lender.as_bytes()).collect();
            path.push_str(&format!("&lender={lender}"));
        }
        path
    }
}

impl Said {
    /// Whether it is said again after a connection was lost.
    fn is_kept(&self) -> bool {
        match &self.frame {
            ClientFrame::Message(input) => input.client_id.is_some(),
            ClientFrame::Approve { .. } => true,
            ClientFrame::Stop { .. }
            | ClientFrame::Continue { .. }
            | ClientFrame::Withdraw { .. }
            | ClientFrame::EditQueued { .. }
            | ClientFrame::ResolveCall { .. }
            | ClientFrame::EditPlan(_)
            | ClientFrame::Ping {} => false,
        }
    }

    fn is_answered_by(&self, event: &Event) -> bool {
        match (&self.frame, event) {
            (
                ClientFrame::Message(input),
                Event::MessageAccepted { client_id, .. } | Event::Error { client_id, .. },
            ) => input.client_id.is_some() && input.client_id == *client_id,
            (
                ClientFrame::Approve { approval_id, .. },
                Event::ApprovalResolved {
                    approval_id: resolved,
                    ..
                },
            ) => approval_id == resolved,
            // Whoever asked has an end; nobody waits for the answer any more.
            (ClientFrame::Approve { .. }, Event::StreamEnd { .. } | Event::StreamStopped {}) => {
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use futures_util::{SinkExt as _, StreamExt as _};
    use navi_actors::https;
    use navi_actors::protocol::command::{Decision, UserInput};
    use navi_actors::protocol::ids::ApprovalId;
    use serde_json::{Value, json};
    use tempfile::TempDir;
    use tokio::net::{TcpListener, TcpStream};
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::Message;

    use super::*;
    use crate::client::{WayIn, trust};
    use crate::instance::{Instance, Reach};

    fn client(data_dir: PathBuf) -> Client {
        Client {
            http: https::client().build().unwrap(),
            tls: Arc::new(trust::config(data_dir.clone()).unwrap()),
            data_dir,
            way_in: WayIn::Login {
                cookie: String::new(),
                key: String::new(),
            },
        }
    }

    /// Those of a service that does not run.
    fn away() -> Events {
        Events::new(client(PathBuf::from("/nowhere")), SessionId::new(), None)
    }

    /// Nothing of a service but its socket.
    struct Service {
        dir: TempDir,
        _instance: Instance,
        listener: TcpListener,
    }

    impl Service {
        async fn start() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let instance = Instance::claim(dir.path()).unwrap();
            let address = listener.local_addr().unwrap();
            instance
                .announce(address, Vec::new(), Reach::default())
                .unwrap();
            Self {
                dir,
                _instance: instance,
                listener,
            }
        }

        fn client(&self) -> Client {
            client(self.dir.path().to_owned())
        }

        async fn socket(&self) -> WebSocketStream<TcpStream> {
            let (stream, _) = self.listener.accept().await.unwrap();
            tokio_tungstenite::accept_async(stream).await.unwrap()
        }

        /// What so many messages say that come over one connection, which is lost then.
        async fn hears(&self, count: usize) -> Vec<String> {
            let mut socket = self.socket().await;
            let mut heard = Vec::new();
            while heard.len() < count {
                let frame = socket.next().await.unwrap().unwrap();
                let frame: Value = serde_json::from_str(frame.to_text().unwrap()).unwrap();
                heard.push(frame["content"].as_str().unwrap().to_owned());
            }
            heard
        }
    }

    async fn heard(service: &Service, count: usize, events: &mut Events) -> Vec<String> {
        tokio::select! {
            heard = service.hears(count) => heard,
            told = events.next() => panic!("{told:?}"),
        }
    }

    fn message(content: String) -> ClientFrame {
        ClientFrame::Message(UserInput {
            content,
            client_id: Some("one".to_owned()),
            ..UserInput::default()
        })
    }

    #[tokio::test(start_paused = true)]
    async fn messages_wait_for_the_service_until_they_are_given_up() {
        let mut events = away();
        let approve = ClientFrame::Approve {
            approval_id: ApprovalId::new(),
            decision: Decision::Once,
            note: None,
        };
        events.say(message("Hello.".to_owned())).unwrap();
        events.say(approve).unwrap();
        assert!(events.next().await.is_err());
        assert_eq!(events.said.len(), 2);
        events.give_up_messages();
        let [kept] = events.said.as_slice() else {
            panic!("{} are kept", events.said.len());
        };
        assert!(matches!(kept.frame, ClientFrame::Approve { .. }));
    }

    #[tokio::test]
    async fn messages_that_wait_are_said_in_order_as_another_client() {
        let (first, second) = (Service::start().await, Service::start().await);
        let mut events = Events::new(first.client(), SessionId::new(), None);
        events.say(message("one".to_owned())).unwrap();
        events.say(message("two".to_owned())).unwrap();
        assert_eq!(heard(&first, 2, &mut events).await, ["one", "two"]);
        // Nobody said that they arrived.
        events.again(second.client());
        events.say(message("three".to_owned())).unwrap();
        assert_eq!(events.waiting_messages(), 3);
        let all = ["one", "two", "three"];
        assert_eq!(heard(&second, 3, &mut events).await, all);
    }

    #[tokio::test]
    async fn what_a_newer_service_tells_moves_the_cursor_alone() {
        let service = Service::start().await;
        let mut events = Events::new(service.client(), SessionId::new(), Some(3));
        let tells = async {
            let mut socket = service.socket().await;
            let at = "2026-01-01T00:00:00Z";
            for frame in [
                json!({"type": "weather_changed", "seq": 4, "at": at, "sky": "clear"}),
                json!({"type": "weather_comes", "at": at}),
                json!({"type": "pong", "at": at}),
            ] {
                let frame = Message::text(frame.to_string());
                socket.send(frame).await.unwrap();
            }
            socket
        };
        let (_socket, told) = tokio::join!(tells, events.next());
        assert_eq!(told.unwrap().event, Event::Pong {});
        assert_eq!(events.after, Some(4));
    }

    #[test]
    fn what_the_service_would_not_take_is_refused() {
        let mut events = away();
        let refused = events.say(message("x".repeat(MAX_MESSAGE_JSON_BYTES)));
        let Err(ClientError::Refused(error)) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(error.code, ErrorCode::FrameTooLarge);
        assert!(events.said.is_empty());
    }
}
