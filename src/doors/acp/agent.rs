//! The agent's methods: which session each request is for, and what is asked of none.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, AuthenticateResponse, ClientRequest, DeleteSessionRequest,
    DeleteSessionResponse, Implementation, InitializeRequest, InitializeResponse,
    ListSessionsRequest, ListSessionsResponse, NewSessionRequest, NewSessionResponse,
    PromptCapabilities, SessionCapabilities, SessionCloseCapabilities, SessionDeleteCapabilities,
    SessionInfo, SessionListCapabilities, SessionResumeCapabilities,
};
use agent_client_protocol::v1::{ConnectionTo, Responder, schema};
use agent_client_protocol::{Client as Editor, Error};
use navi_actors::homes::Homes;
use navi_actors::hub::HubFrame;
use navi_actors::protocol::ids::{RunId, SessionId};
use navi_actors::protocol::session::{SessionSnapshot, SessionSummary};
use parking_lot::Mutex;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::calls::Workspace;
use super::editor::Lends;
use super::session::{Ask, Open, Session, respond};
use super::updates::Shows;
use super::wire::Room;
use super::{invalid, refusal};
use crate::client::{Client, ClientError};
use crate::settings::Settings;

/// As many requests wait for a session.
const ASKS: usize = 256;
/// As many sessions as a page of the list has.
const PAGE: usize = 50;

/// What all sessions of a connection share.
pub(super) struct Door {
    pub(super) client: Client,
    pub(super) cx: ConnectionTo<Editor>,
    pub(super) room: Room,
    /// How the client ids of this process's messages begin.
    pub(super) own: String,
    homes: Homes,
    shows: Mutex<Shows>,
    lends: Mutex<Lends>,
    /// The sessions that the client has open. Who sends to one holds this.
    open: Mutex<HashMap<SessionId, mpsc::Sender<Ask>>>,
}

impl Door {
    /// Lets a session end, if nothing was asked of it in the last instant.
    pub(super) fn leave(&self, session: SessionId, asks: &mpsc::Receiver<Ask>) -> bool {
        let mut open = self.open.lock();
        let is_unasked = asks.is_empty();
        if is_unasked {
            open.remove(&session);
        }
        is_unasked
    }

    pub(super) fn workspace(&self, session: &SessionSummary) -> Workspace {
        Workspace(self.homes.workspace(session.user_id, session.id))
    }

    pub(super) fn shows(&self) -> Shows {
        *self.shows.lock()
    }

    pub(super) fn lends(&self) -> Lends {
        *self.lends.lock()
    }

    /// A session with the newest of what was said.
    pub(super) async fn newest(&self, session: SessionId) -> Result<SessionSnapshot, ClientError> {
        let path = format!("/sessions/{session}?messages=1");
        self.client.get(&path).await
    }

    /// Has an interrupted run go on.
    pub(super) async fn go_on(&self, session: SessionId) -> Result<RunId, ClientError> {
        #[derive(Deserialize)]
        struct Continued {
            run_id: RunId,
        }
        let path = format!("/sessions/{session}/continue");
        let continued: Continued = self.client.send(Method::POST, &path, &()).await?;
        Ok(continued.run_id)
    }
}

/// See the module. It lives as long as the connection, and so do its sessions.
pub(super) struct Agent {
    client: Client,
    room: Room,
    homes: Homes,
    /// `FS_ALLOWED_PATHS`.
    allowed: Vec<PathBuf>,
    door: OnceLock<Arc<Door>>,
    work: Mutex<Work>,
}

/// What is under way; it ends with this.
#[derive(Default)]
struct Work {
    tasks: JoinSet<()>,
    watches: bool,
}

impl Work {
    fn spawn(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        // What is done is forgotten.
        while self.tasks.try_join_next().is_some() {}
        self.tasks.spawn(work);
    }
}

impl Agent {
    pub(super) fn new(client: Client, room: Room, settings: &Settings) -> Self {
        Self {
            client,
            room,
            homes: settings.homes(),
            allowed: settings.file_access.allowed.clone(),
            door: OnceLock::new(),
            work: Mutex::default(),
        }
    }

    /// Takes a request. It never waits: the library reads nothing more meanwhile.
    pub(super) fn take(
        self: &Arc<Self>,
        request: ClientRequest,
        responder: Responder<Value>,
        cx: ConnectionTo<Editor>,
    ) {
        let door = self.door(cx);
        match request {
            ClientRequest::InitializeRequest(asked) => {
                *door.shows.lock() = shows(&asked);
                *door.lends.lock() = Lends::of(&asked.client_capabilities);
                respond(responder.cast(), Ok(capabilities()));
            }
            ClientRequest::AuthenticateRequest(_) => {
                respond(responder.cast(), Ok(AuthenticateResponse::new()));
            }
            ClientRequest::NewSessionRequest(asked) => {
                let (agent, responder) = (self.clone(), responder.cast());
                self.work.lock().spawn(async move {
                    respond(responder, agent.begin(&door, &asked).await);
                });
            }
            ClientRequest::LoadSessionRequest(asked) => {
                self.route(&door, &asked.session_id, responder, |it| {
                    Ask::Load(asked.cwd, it.cast())
                });
            }
            ClientRequest::ResumeSessionRequest(asked) => {
                self.route(&door, &asked.session_id, responder, |it| {
                    Ask::Resume(asked.cwd, it.cast())
                });
            }
            ClientRequest::PromptRequest(asked) => {
                self.route(&door, &asked.session_id, responder, |it| {
                    Ask::Prompt(asked.prompt, it.cast())
                });
            }
            ClientRequest::SetSessionModeRequest(asked) => {
                self.route(&door, &asked.session_id.clone(), responder, |it| {
                    Ask::SetMode(asked, it.cast())
                });
            }
            ClientRequest::SetSessionConfigOptionRequest(asked) => {
                self.route(&door, &asked.session_id.clone(), responder, |it| {
                    Ask::SetOption(asked, it.cast())
                });
            }
            ClientRequest::CloseSessionRequest(asked) => {
                self.route(&door, &asked.session_id, responder, |it| {
                    Ask::Close(it.cast())
                });
            }
            ClientRequest::ListSessionsRequest(asked) => {
                let responder = responder.cast();
                self.work.lock().spawn(async move {
                    respond(responder, list(&door, &asked).await);
                });
            }
            ClientRequest::DeleteSessionRequest(asked) => {
                let responder = responder.cast();
                self.work.lock().spawn(async move {
                    respond(responder, delete(&door, &asked).await);
                });
            }
            other => {
                let method = other.method().to_owned();
                tracing::debug!(method, "there is no such method");
                respond(responder, Err(Error::method_not_found()));
            }
        }
    }

    /// Stops what the client's prompts are doing.
    pub(super) fn cancel(&self, session: &schema::SessionId) {
        let (Some(door), Ok(id)) = (self.door.get(), read_id(session)) else {
            return;
        };
        let open = door.open.lock();
        let asks = open.get(&id);
        if asks.is_none_or(|asks| asks.try_send(Ask::Cancel).is_err()) {
            tracing::debug!("there is nothing to cancel");
        }
    }

    fn door(&self, cx: ConnectionTo<Editor>) -> Arc<Door> {
        let made = self.door.get_or_init(|| {
            Arc::new(Door {
                client: self.client.clone(),
                cx,
                room: self.room.clone(),
                own: format!("acp:{}:", Uuid::now_v7().simple()),
                homes: self.homes.clone(),
                shows: Mutex::default(),
                lends: Mutex::default(),
                open: Mutex::default(),
            })
        });
        made.clone()
    }

    /// Hands a request to its session, in order, and opens that where it is not.
    fn route(
        self: &Arc<Self>,
        door: &Arc<Door>,
        session: &schema::SessionId,
        responder: Responder<Value>,
        ask: impl FnOnce(Responder<Value>) -> Ask,
    ) {
        let id = match read_id(session) {
            Ok(id) => id,
            Err(error) => return respond(responder, Err(error)),
        };
        let mut open = door.open.lock();
        let asks = open.entry(id).or_insert_with(|| {
            let (asks, taken) = mpsc::channel(ASKS);
            self.start(door, Session::new(door.clone(), id, taken));
            asks
        });
        match asks.try_reserve() {
            Ok(place) => place.send(ask(responder)),
            Err(_) => respond(
                responder,
                Err(invalid(format!(
                    "{ASKS} requests wait for this session already"
                ))),
            ),
        }
    }

    fn start(self: &Arc<Self>, door: &Arc<Door>, session: Session) {
        let mut work = self.work.lock();
        work.spawn(session.run());
        if !std::mem::replace(&mut work.watches, true) {
            work.spawn(watch(Arc::downgrade(self), door.clone()));
        }
    }

    /// Makes a session.
    async fn begin(
        self: &Arc<Self>,
        door: &Arc<Door>,
        asked: &NewSessionRequest,
    ) -> Result<NewSessionResponse, Error> {
        #[derive(Deserialize)]
        struct Created {
            session_id: SessionId,
        }
        let cwd = absolute(&asked.cwd)?;
        let made = async {
            let created: Created = door
                .client
                .send(Method::POST, "/sessions", &json!({}))
                .await?;
            let snapshot = door.newest(created.session_id).await?;
            let open = Open::at(door, &snapshot).await?;
            Ok::<_, ClientError>((created.session_id, open))
        };
        let (id, open) = made.await.map_err(|error| refusal(&error))?;
        let options = open.options();
        let response = NewSessionResponse::new(id.to_string())
            .modes(options.modes())
            .config_options(options.list());
        let reaches = self.allowed.iter().any(|dir| cwd.starts_with(dir));
        let told = reaches.then(|| cwd.to_owned());
        let (asks, taken) = mpsc::channel(ASKS);
        let session = Session::new(door.clone(), id, taken).begun(open, cwd.to_owned(), told);
        door.open.lock().insert(id, asks);
        self.start(door, session);
        Ok(response)
    }
}

/// Tells the sessions that are open how their rows in the list change: titles come there alone.
async fn watch(agent: Weak<Agent>, door: Arc<Door>) {
    let mut watch = door.client.watch();
    loop {
        let rows = match watch.next().await {
            Ok(HubFrame::Sessions { sessions, .. }) => sessions,
            Ok(HubFrame::SessionChanged { session }) => vec![session],
            Ok(HubFrame::SessionRemoved { .. } | HubFrame::Status { .. } | HubFrame::Pong {}) => {
                continue;
            }
            Err(error @ ClientError::Refused(_)) => {
                tracing::warn!(%error, "titles are not told any more");
                // The next session tries again.
                if let Some(agent) = agent.upgrade() {
                    agent.work.lock().watches = false;
                }
                return;
            }
            // The sessions say so themselves.
            Err(error) => {
                tracing::debug!(%error, "the list of sessions is away");
                continue;
            }
        };
        for row in rows {
            let asks = door.open.lock().get(&row.id).cloned();
            if let Some(asks) = asks {
                // One that is closed wants none.
                let _ = asks.send(Ask::Row(Box::new(row))).await;
            }
        }
    }
}

fn capabilities() -> InitializeResponse {
    let prompts = PromptCapabilities::new().image(true).embedded_context(true);
    let sessions = SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .delete(SessionDeleteCapabilities::new())
        .resume(SessionResumeCapabilities::new())
        .close(SessionCloseCapabilities::new());
    let can = AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(prompts)
        .session_capabilities(sessions);
    let navi = Implementation::new("navi", env!("CARGO_PKG_VERSION")).title("Navi".to_owned());
    // The one version that this is; a client of another one goes away.
    InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(can)
        .agent_info(navi)
}

fn shows(asked: &InitializeRequest) -> Shows {
    let session = asked.client_capabilities.session.as_ref();
    Shows {
        notices: session.is_some_and(|it| it.notices.is_some()),
        compaction: session.is_some_and(|it| it.compaction.is_some()),
    }
}

/// A page of the sessions. They are no project's, and so any project's: who asks for those of a
/// directory gets them all, as being there.
async fn list(door: &Door, asked: &ListSessionsRequest) -> Result<ListSessionsResponse, Error> {
    let sessions: Result<Vec<SessionSummary>, _> = door.client.get("/sessions").await;
    let sessions = sessions.map_err(|error| refusal(&error))?;
    let begin = match &asked.cursor {
        None => 0,
        Some(cursor) => {
            let at = sessions.iter().position(|it| it.id.to_string() == *cursor);
            at.ok_or_else(|| invalid("the cursor is of a session that is not there any more"))? + 1
        }
    };
    let page = &sessions[begin..sessions.len().min(begin + PAGE)];
    let infos = page.iter().map(|session| {
        let cwd = asked.cwd.clone().unwrap_or(door.workspace(session).0);
        SessionInfo::new(session.id.to_string(), cwd)
            .title((!session.title.is_empty()).then(|| session.title.clone()))
            .updated_at(session.last_active.to_rfc3339())
    });
    let next = (begin + PAGE < sessions.len()).then(|| page.last().map(|it| it.id.to_string()));
    Ok(ListSessionsResponse::new(infos.collect()).next_cursor(next.flatten()))
}

async fn delete(door: &Door, asked: &DeleteSessionRequest) -> Result<DeleteSessionResponse, Error> {
    let path = format!("/sessions/{}", read_id(&asked.session_id)?);
    let deleted: Result<Value, _> = door.client.send(Method::DELETE, &path, &()).await;
    deleted.map_err(|error| refusal(&error))?;
    Ok(DeleteSessionResponse::new())
}

fn read_id(session: &schema::SessionId) -> Result<SessionId, Error> {
    let read = session.0.parse();
    read.map_err(|_| schema::Error::session_not_found(session.clone()).into())
}

fn absolute(cwd: &Path) -> Result<&Path, Error> {
    if cwd.is_absolute() {
        return Ok(cwd);
    }
    let cwd = cwd.display();
    Err(invalid(format!(
        "cwd must be an absolute path; this is `{cwd}`"
    )))
}
