//! A conversation at a terminal: what is typed and what is told, in turn.

mod questions;
mod sessions;
mod wishes;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use navi_actors::protocol::command::{ClientFrame, Decision, FileRef, UserInput};
use navi_actors::protocol::event::Envelope;
use navi_actors::protocol::ids::{ApprovalId, MessageId, SessionId};
use navi_actors::protocol::session::SessionSnapshot;
use reqwest::Method;
use rustyline::completion::unescape;
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, interval, sleep_until};

use self::wishes::names;
use super::commands::{self, Command, Typed, typed};
use super::report::{Outcome, problem_of, warn};
use super::screen::Screen;
use super::screen::shown::keys;
use super::style::{Colours, Line, Tint};
use super::terminal::{Input, Key, Terminal, width};
use super::{Wish, change, files, leave, make};
use crate::cli::ChatArgs;
use crate::client::{Client, ClientError, Events};
use crate::settings::Settings;

/// What was typed before, in the data directory.
const HISTORY: &str = "chat_history";
/// How often it is looked whether the service is away: for longer than an upgrade takes.
const AWAY: Duration = Duration::from_secs(2);
/// How much of a session is shown when it is opened.
const MESSAGES: u32 = 50;

/// The session that is shown.
struct Open {
    id: SessionId,
    events: Events,
    /// Nothing more is told: the service was away for too long, or refused.
    lost: bool,
    /// It was said that the service is away.
    away: bool,
}

/// See the module.
struct Talk<'a> {
    settings: &'a Settings,
    client: Client,
    terminal: Terminal,
    screen: Screen,
    open: Option<Open>,
    /// What the next session is made with.
    wish: Wish,
    /// Files for the next message.
    files: Vec<FileRef>,
    /// Sessions that were listed, by their numbers.
    listed: Vec<SessionId>,
    /// A number alone opens one of them now.
    picks: bool,
    asked: Option<ApprovalId>,
    /// When keys answer what is asked.
    keys_at: Option<Instant>,
    /// Ctrl-C was the last key, at rest.
    interrupted: bool,
    ends: Signal,
}

/// What comes next.
enum Comes {
    Input(Input),
    Told(Result<Box<Envelope>, ClientError>),
    Keys,
    /// The process is asked to end.
    End,
    /// It is looked whether the service is there.
    Look,
}

/// Whether it goes on.
#[derive(PartialEq, Eq)]
enum Goes {
    On,
    Home,
}

/// Talks until the person leaves.
///
/// # Errors
/// Those of the terminal.
pub(super) async fn run(settings: &Settings, args: &ChatArgs) -> anyhow::Result<ExitCode> {
    let refused = |message: &str| {
        warn(message);
        Ok(ExitCode::from(Outcome::Refused.exit_code()))
    };
    if let Err(error) = files::look(&args.file).await {
        return refused(&error.to_string());
    }
    let client = match Client::log_in(settings).await {
        Ok(client) => client,
        Err(error) => return refused(&error.to_string()),
    };
    let wish = Wish::of(args);
    let session = match args.session.map(SessionId) {
        Some(session) => {
            let read = read(&client, session, &wish).await;
            match read {
                Ok(snapshot) => Some(snapshot),
                Err(error) => {
                    leave(client).await;
                    return refused(&error.to_string());
                }
            }
        }
        None => None,
    };
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colours = if no_colour { Colours::Off } else { Colours::On };
    let names = names(&client).await;
    // Killed outright, it would leave the terminal as the editor has it.
    let ends = signal(SignalKind::terminate())?;
    let history = settings.data_dir.join(HISTORY);
    let terminal = match Terminal::open(history, colours, names) {
        Ok(terminal) => terminal,
        Err(error) => {
            leave(client).await;
            return refused(&format!(
                "this terminal cannot have a line edited ({error}); `navi chat -p` asks once"
            ));
        }
    };
    let mut talk = Talk {
        settings,
        client,
        terminal,
        screen: Screen::new(width()),
        open: None,
        wish,
        files: Vec::new(),
        listed: Vec::new(),
        picks: false,
        asked: None,
        keys_at: None,
        interrupted: false,
        ends,
    };
    match session {
        Some(snapshot) => talk.show(&snapshot),
        None => talk.say(Tint::Dim, "Navi listens. /help says what there is."),
    }
    if !args.file.is_empty() {
        let attached = talk.attach(&args.file).await;
        talk.tell_error(attached);
    }
    talk.go_on().await;
    talk.end().await;
    Ok(ExitCode::SUCCESS)
}

async fn read(
    client: &Client,
    session: SessionId,
    wish: &Wish,
) -> Result<SessionSnapshot, ClientError> {
    change(client, session, wish).await?;
    let path = format!("/sessions/{session}?messages={MESSAGES}");
    client.get(&path).await
}

impl Talk<'_> {
    async fn go_on(&mut self) {
        let mut looks = interval(AWAY);
        loop {
            let keys_at = self.keys_at;
            let comes = {
                let (terminal, open) = (&mut self.terminal, &mut self.open);
                tokio::select! {
                    input = terminal.next() => Comes::Input(input),
                    told = told(open) => Comes::Told(told.map(Box::new)),
                    _ = self.ends.recv() => Comes::End,
                    _ = looks.tick() => Comes::Look,
                    () = sleep_until(keys_at.unwrap_or_else(Instant::now)), if keys_at.is_some() => Comes::Keys,
                }
            };
            self.screen.set_width(width());
            match comes {
                Comes::Input(input) => {
                    if self.input(input).await == Goes::Home {
                        return;
                    }
                }
                Comes::End => return,
                Comes::Look => self.look_for_service(),
                Comes::Told(Ok(envelope)) => {
                    self.look_for_service();
                    self.take(*envelope);
                }
                Comes::Told(Err(error)) => self.lose(&error),
                Comes::Keys => {
                    self.keys_at = None;
                    if let Some(question) = self.screen.question() {
                        self.terminal.set_asks(Some(question.id));
                        self.terminal.print(&[keys(&question.request)]);
                    }
                }
            }
            self.look_at_question();
        }
    }

    async fn end(self) {
        let mut last = Vec::from_iter(self.left_behind());
        if let Some(open) = &self.open {
            let goes = if self.screen.is_running() {
                "the run goes on; "
            } else {
                ""
            };
            let words = format!("{goes}`navi chat --session {}` opens this again", open.id);
            last.push(Line::of(Tint::Dim, &words));
        }
        self.terminal.close(&last);
        leave(self.client).await;
    }

    async fn input(&mut self, input: Input) -> Goes {
        let was_interrupted = std::mem::take(&mut self.interrupted);
        let done = match input {
            Input::End => return Goes::Home,
            Input::Interrupt if self.screen.is_running() => self.stop().await,
            Input::Interrupt if was_interrupted => return Goes::Home,
            Input::Interrupt => {
                self.interrupted = true;
                self.say(Tint::Dim, "Ctrl-C again leaves, and so does Ctrl-D");
                Ok(())
            }
            Input::Key(key, asked) => {
                let decision = match key {
                    Key::Allow => Decision::Once,
                    Key::Always => Decision::Always,
                    Key::Deny => Decision::Deny,
                };
                self.answer_to(asked, decision, None).await
            }
            Input::Line(line) => self.line(&line).await,
        };
        self.tell_error(done);
        Goes::On
    }

    async fn line(&mut self, line: &str) -> Result<(), String> {
        let picks = std::mem::take(&mut self.picks);
        match typed(line) {
            Typed::Nothing => Ok(()),
            Typed::Wrong(why) => Err(why),
            Typed::Message(text) if picks && text.parse::<usize>().is_ok() => {
                self.pick(&text).await
            }
            Typed::Message(text) => self.send(text).await,
            Typed::Command(command) => self.command(command).await,
        }
    }

    async fn command(&mut self, command: Command) -> Result<(), String> {
        match command {
            Command::New => {
                self.terminal.print(self.left_behind().as_slice());
                self.open = None;
                self.files.clear();
                self.screen = Screen::new(width());
                self.say(
                    Tint::Dim,
                    "another conversation begins with your next message",
                );
                Ok(())
            }
            Command::Sessions(words) => self.sessions(&words).await,
            Command::Open(which) => self.pick(&which).await,
            Command::File(path) => {
                let path = unescape(path.trim_matches(['"', '\'']), Some('\\')).into_owned();
                self.attach(&[from_home(path)]).await
            }
            Command::Stop => self.stop().await,
            Command::Continue => self.post("continue", &()).await,
            Command::Mode(given) => self.mode(given).await,
            Command::Model(given) => self.model(given).await,
            Command::Profile(given) => self.profile(given).await,
            Command::Title(title) => {
                let session = self.session()?;
                let titled = self.change(session, &json!({"title": title})).await;
                titled.map(|()| self.say(Tint::Dim, "it is called that now"))
            }
            Command::Thinking => {
                self.terminal.print(&self.screen.reasoning());
                Ok(())
            }
            Command::Allow => self.answer(Decision::Once, None).await,
            Command::Always => self.answer(Decision::Always, None).await,
            Command::Deny(why) => self.answer(Decision::Deny, why).await,
            Command::Help => {
                self.terminal.print(&commands::help());
                Ok(())
            }
            // The keyboard says so by itself.
            Command::Quit => Ok(()),
        }
    }

    /// What the session tells.
    fn take(&mut self, envelope: Envelope) {
        let lines = self.screen.take(envelope);
        self.terminal.print(&lines);
    }

    /// Nothing more is told.
    fn lose(&mut self, error: &ClientError) {
        if let Some(open) = &mut self.open {
            open.lost = true;
        }
        let message = problem_message(error);
        self.say(Tint::Bad, &message);
        let words = match self.waiting_messages() {
            0 => "your next message looks for her again",
            _ => "your next message looks for her again, and goes behind what waits",
        };
        self.say(Tint::Dim, words);
    }

    /// How many messages are not known to have arrived.
    fn waiting_messages(&self) -> usize {
        let open = self.open.as_ref();
        open.map_or(0, |open| open.events.waiting_messages())
    }

    /// What is told of these where their conversation is left.
    fn left_behind(&self) -> Option<Line> {
        let words = match self.waiting_messages() {
            0 => return None,
            1 => "your last message may not have reached Navi".to_owned(),
            n => format!("your last {n} messages may not have reached Navi"),
        };
        Some(Line::of(Tint::Bad, &words))
    }

    /// Says where the service went, and when it is there again.
    fn look_for_service(&mut self) {
        let Some(open) = self.open.as_mut().filter(|open| !open.lost) else {
            return;
        };
        let away = open.events.is_away();
        if away != std::mem::replace(&mut open.away, away) {
            let words = if away {
                "Navi does not answer; what you say waits for her"
            } else {
                "Navi is there again"
            };
            self.say(Tint::Asks, words);
        }
    }

    async fn send(&mut self, text: String) -> Result<(), String> {
        self.found().await?;
        let client_id = format!("chat-{}", MessageId::new());
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        let input = UserInput {
            content: text,
            files: std::mem::take(&mut self.files),
            client_id: Some(client_id.clone()),
            ..UserInput::default()
        };
        self.screen.sends(&client_id);
        open.events
            .say(ClientFrame::Message(input))
            .map_err(|error| problem_message(&error))
    }

    /// The session that is open, made where there is none, and listened to again where it was
    /// lost.
    async fn found(&mut self) -> Result<SessionId, String> {
        if self.open.as_ref().is_some_and(|open| open.lost) {
            let client = Client::log_in(self.settings).await;
            self.client = client.map_err(|error| problem_message(&error))?;
        }
        match &mut self.open {
            Some(open) => {
                if std::mem::take(&mut open.lost) {
                    open.events.again(self.client.clone());
                }
                Ok(open.id)
            }
            None => {
                let made = make(&self.client, &self.wish).await;
                let id = made.map_err(|error| problem_message(&error))?;
                self.listen(id, 0);
                Ok(id)
            }
        }
    }

    fn listen(&mut self, id: SessionId, after: u64) {
        self.terminal.print(self.left_behind().as_slice());
        self.open = Some(Open {
            id,
            events: self.client.events(id, Some(after)),
            lost: false,
            away: false,
        });
    }

    /// Shows a session from its newest messages on.
    fn show(&mut self, snapshot: &SessionSnapshot) {
        self.listen(snapshot.summary.id, snapshot.last_seq);
        let lines = self.screen.open(snapshot);
        self.terminal.print(&lines);
    }

    async fn attach(&mut self, paths: &[PathBuf]) -> Result<(), String> {
        files::look(paths)
            .await
            .map_err(|error| error.to_string())?;
        let session = self.found().await?;
        let sent = files::send(&self.client, session, paths).await;
        let sent = sent.map_err(|error| error.to_string())?;
        for file in sent {
            let words = format!("{} goes with your next message", file.name);
            self.say(Tint::Dim, &words);
            self.files.push(file);
        }
        Ok(())
    }

    async fn stop(&mut self) -> Result<(), String> {
        self.post("stop", &()).await
    }

    async fn change(&self, session: SessionId, change: &Value) -> Result<(), String> {
        let path = format!("/sessions/{session}");
        let changed: Result<Value, _> = self.client.send(Method::PATCH, &path, change).await;
        changed.map(drop).map_err(|error| problem_message(&error))
    }

    /// Asks something of the session that is open.
    async fn post(&self, what: &str, body: &impl serde::Serialize) -> Result<(), String> {
        let path = format!("/sessions/{}/{what}", self.session()?);
        let posted: Result<Value, _> = self.client.send(Method::POST, &path, body).await;
        posted.map(drop).map_err(|error| problem_message(&error))
    }

    fn session(&self) -> Result<SessionId, String> {
        let open = self.open.as_ref().map(|open| open.id);
        open.ok_or_else(|| "no conversation is open; it begins with your first message".to_owned())
    }

    fn say(&self, tint: Tint, text: &str) {
        self.terminal.print(&[Line::of(tint, text)]);
    }

    fn tell_error(&self, done: Result<(), String>) {
        if let Err(error) = done {
            self.say(Tint::Bad, &error);
        }
    }
}

/// What is told next of the session that is open.
async fn told(open: &mut Option<Open>) -> Result<Envelope, ClientError> {
    match open {
        Some(open) if !open.lost => open.events.next().await,
        _ => std::future::pending().await,
    }
}

fn problem_message(error: &ClientError) -> String {
    problem_of(error).message
}

/// A path that begins at home.
fn from_home(path: String) -> PathBuf {
    let home = directories::BaseDirs::new();
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.home_dir().join(rest),
        _ => PathBuf::from(path),
    }
}
