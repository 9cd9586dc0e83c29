//! `navi chat -p`: one message, one answer, and an exit code.

use std::io::{self, IsTerminal as _, Read as _};
use std::process::ExitCode;
use std::time::Duration;

use navi_actors::domain::input::MAX_CONTENT_BYTES;
use navi_actors::protocol::approval::{ConsentEntry, Permission};
use navi_actors::protocol::command::{PlainConsent, PlainInput, UserInput};
use navi_actors::protocol::error::ErrorCode;
use navi_actors::protocol::ids::{RunId, SessionId};
use navi_actors::protocol::inspect::RunDetails;
use navi_actors::protocol::session::SessionSnapshot;
use reqwest::Method;
use serde::Deserialize;
use serde_json::Value;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::heard_run::{Came, End, HeardRun};
use super::report::{Outcome, Problem, Refusal, Report, Usage, outcome_of, problem_of, warn};
use super::{Wish, change, files, leave, make};
use crate::cli::{ChatArgs, ChatConsent};
use crate::client::{Client, ClientError, Events};
use crate::settings::Settings;

/// How long it is looked whether a run goes on that a restart interrupted.
const RESUME_LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(300);
/// How often the message is sent where the service goes away before it is accepted.
const TRIES: u32 = 100;
/// How many of the newest messages an answer may be in that was cut off and gone on with.
const PIECES: u32 = 50;
/// How many of the newest decisions are looked through for those of this run.
const DECISIONS: usize = 200;

/// Asks, and tells what came of it.
pub(super) async fn run(settings: &Settings, args: &ChatArgs) -> ExitCode {
    let report = match begin(settings, args).await {
        Ok(asked) => asked.answer().await,
        Err(refusal) => Some(refusal.into()),
    };
    match report {
        Some(report) => report.print(args.json),
        None => ExitCode::from(Outcome::Stopped.exit_code()),
    }
}

/// A message that is on its way.
struct Asked {
    client: Client,
    session: SessionId,
    events: Events,
    input: PlainInput,
    heard: HeardRun,
    posted: JoinHandle<Result<(), ClientError>>,
    tries: u32,
    interrupts: Signal,
    stops: bool,
}

/// How the watch ended.
enum Ended {
    Run(End),
    /// Nothing began.
    Refused(ClientError),
    /// The service is gone.
    Lost(ClientError),
    /// A second Ctrl-C.
    Left,
}

async fn begin(settings: &Settings, args: &ChatArgs) -> Result<Asked, Refusal> {
    let content = content(args)?;
    files::look(&args.file).await?;
    let client = Client::log_in(settings).await?;
    match send(client.clone(), args, content).await {
        Ok(asked) => Ok(asked),
        Err(refusal) => {
            leave(client).await;
            Err(refusal)
        }
    }
}

async fn send(client: Client, args: &ChatArgs, content: String) -> Result<Asked, Refusal> {
    let wish = Wish::of(args);
    let (session, after) = match args.session {
        Some(id) => {
            let session = SessionId(id);
            let path = format!("/sessions/{session}?messages=1");
            let stands: SessionSnapshot = client.get(&path).await?;
            change(&client, session, &wish).await?;
            (session, stands.last_seq)
        }
        None => (make(&client, &wish).await?, 0),
    };
    let files = files::send(&client, session, &args.file).await?;
    let client_id = format!("chat-{}", RunId::new());
    let input = PlainInput {
        message: UserInput {
            content,
            files,
            client_id: Some(client_id.clone()),
            ..UserInput::default()
        },
        consent: match args.consent {
            ChatConsent::Deny => PlainConsent::Deny,
            ChatConsent::Wait => PlainConsent::Ask,
            ChatConsent::Allow => PlainConsent::Allow,
        },
    };
    // From here on a Ctrl-C has something to stop.
    let interrupts = signal(SignalKind::interrupt());
    let interrupts = interrupts.map_err(|error| Refusal::Usage(error.to_string()))?;
    Ok(Asked {
        events: client.events(session, Some(after)),
        posted: post(client.clone(), session, input.clone()),
        client,
        session,
        heard: HeardRun::new(&client_id),
        input,
        tries: 1,
        interrupts,
        stops: false,
    })
}

/// The prompt, with what stands on standard input behind it.
fn content(args: &ChatArgs) -> Result<String, Refusal> {
    let prompt = args.prompt.as_deref().unwrap_or_default().trim();
    let mut piped = Vec::new();
    if !io::stdin().is_terminal() {
        let most = MAX_CONTENT_BYTES as u64 + 1;
        let read = io::stdin().lock().take(most).read_to_end(&mut piped);
        read.map_err(|error| Refusal::Usage(format!("standard input cannot be read: {error}")))?;
    }
    let piped = String::from_utf8(piped).map_err(|_| {
        Refusal::Usage("standard input is no UTF-8 text; attach it with --file".to_owned())
    });
    let content = match (prompt, piped?.trim_end()) {
        ("", "") => {
            let nothing = "there is nothing to ask; give -p a text, or standard input";
            return Err(Refusal::Usage(nothing.to_owned()));
        }
        (prompt, "") => prompt.to_owned(),
        ("", piped) => piped.to_owned(),
        (prompt, piped) => format!("{prompt}\n\n{piped}"),
    };
    if content.len() > MAX_CONTENT_BYTES {
        return Err(Refusal::Usage(format!(
            "the prompt and standard input have over {MAX_CONTENT_BYTES} bytes, which is the limit; attach what is long with --file"
        )));
    }
    Ok(content)
}

/// Sends the message. What comes of it is told as events; this tells why it was not taken.
fn post(
    client: Client,
    session: SessionId,
    input: PlainInput,
) -> JoinHandle<Result<(), ClientError>> {
    tokio::spawn(async move {
        let request = client.request(Method::POST, &format!("/sessions/{session}/messages"))?;
        client.response(request.json(&input)).await.map(drop)
    })
}

impl Asked {
    /// Waits for the end. None where nobody waits for it any more.
    async fn answer(mut self) -> Option<Report> {
        let report = match self.watch().await {
            Ended::Left => return None,
            Ended::Run(end) => self.report(end).await,
            Ended::Refused(error) => {
                let report = Report::new(outcome_of(&error), Some(problem_of(&error)));
                self.described(report)
            }
            Ended::Lost(error) => {
                let problem = Problem::new(
                    "unreachable",
                    format!(
                        "{error}; what navi does with the message is in session {}",
                        self.session
                    ),
                );
                let report = Report::new(Outcome::Failed, Some(problem));
                self.described(report)
            }
        };
        self.posted.abort();
        leave(self.client).await;
        Some(report)
    }

    async fn watch(&mut self) -> Ended {
        let mut is_posted = false;
        // Why the run was interrupted, and how long it is looked whether another one goes on.
        let mut interrupted: Option<(String, Instant)> = None;
        loop {
            let came = tokio::select! {
                // A Ctrl-C counts before whatever else has come.
                biased;
                Some(()) = self.interrupts.recv() => {
                    if self.stops {
                        return Ended::Left;
                    }
                    if let Some((reason, _)) = interrupted {
                        return Ended::Run(End::Interrupted(reason));
                    }
                    self.stops = true;
                    warn("stopping; another Ctrl-C leaves at once");
                    self.stop();
                    continue;
                }
                told = self.events.next() => match told {
                    Ok(envelope) => self.heard.take(envelope),
                    Err(error) => return Ended::Lost(error),
                },
                () = sleep(PAUSE), if interrupted.is_some() => {
                    if let Some((reason, until)) = &interrupted
                        && (Instant::now() > *until || self.is_over().await)
                    {
                        return Ended::Run(End::Interrupted(reason.clone()));
                    }
                    continue;
                }
                posted = &mut self.posted, if !is_posted => {
                    is_posted = true;
                    let failed = posted.ok().and_then(Result::err);
                    if let Some(error) = failed.filter(|_| self.heard.message.is_none()) {
                        if !comes_again(&error) || self.tries >= TRIES {
                            return Ended::Refused(error);
                        }
                        // Under its `client_id` it is one message, however often it is sent.
                        self.tries += 1;
                        sleep(PAUSE).await;
                        let again = post(self.client.clone(), self.session, self.input.clone());
                        (self.posted, is_posted) = (again, false);
                    }
                    continue;
                }
            };
            match came {
                Came::Nothing => {}
                Came::Accepted => {
                    if self.stops {
                        self.stop();
                    }
                }
                Came::Word(word) => warn(&word),
                Came::GoesOn => interrupted = None,
                Came::End(End::Interrupted(reason)) => {
                    interrupted = Some((reason, Instant::now() + RESUME_LIMIT));
                }
                Came::End(end) => return Ended::Run(end),
            }
        }
    }

    /// Asks for the stop of the run; its event tells that it stopped.
    fn stop(&self) {
        let (client, session) = (self.client.clone(), self.session);
        tokio::spawn(async move {
            let path = format!("/sessions/{session}/stop");
            let stopped: Result<Value, _> = client.send(Method::POST, &path, &()).await;
            if let Err(error) = stopped {
                warn(&format!("the run cannot be stopped: {error}"));
            }
        });
    }

    /// Whether it is plain that no run goes on by itself from one that a restart interrupted
    /// (`NAVI_RESUME_RUNS`): it would have begun with the first word of the session.
    async fn is_over(&self) -> bool {
        let path = format!("/sessions/{}?messages=1", self.session);
        let stands: Result<SessionSnapshot, _> = self.client.get(&path).await;
        // One that is shutting down says nothing of what comes after.
        stands.is_ok_and(|stands| stands.run.is_none() && stands.can_continue)
    }

    async fn report(&self, end: End) -> Report {
        let so_far = Some(self.heard.so_far()).filter(|said| !said.is_empty());
        let (outcome, answer, error) = match end {
            End::Answered { content, completed } => {
                let outcome = if completed {
                    Outcome::Answered
                } else {
                    Outcome::Limited
                };
                let whole = if self.heard.was_cut() {
                    self.whole().await
                } else {
                    None
                };
                (outcome, Some(whole.unwrap_or(content)), None)
            }
            End::Stopped if self.stops => (Outcome::Stopped, so_far, None),
            End::Stopped => {
                let problem = Problem::new("stopped", "the run was stopped elsewhere");
                (Outcome::StoppedElsewhere, so_far, Some(problem))
            }
            End::Interrupted(reason) => {
                let message = format!(
                    "interrupted: {reason}; what was said is kept, and `navi chat --session {}` goes on with /continue",
                    self.session
                );
                let problem = Problem::new("run_interrupted", message);
                (Outcome::Interrupted, so_far, Some(problem))
            }
            End::Failed(error) => (Outcome::Failed, so_far, Some(Problem::from(&error))),
        };
        let mut report = Report::new(outcome, error);
        report.answer = answer;
        report.denied = self.denied().await;
        report.usage = self.usage().await;
        if report.outcome == Outcome::Answered && !report.denied.is_empty() {
            report.outcome = Outcome::Denied;
        }
        self.described(report)
    }

    /// An answer that was cut off and gone on with.
    async fn whole(&self) -> Option<String> {
        let path = format!("/sessions/{}?messages={PIECES}", self.session);
        let stands: SessionSnapshot = self.client.get(&path).await.ok()?;
        self.heard.whole(&stands.messages)
    }

    fn described(&self, mut report: Report) -> Report {
        report.session_id = Some(self.session);
        report.run_id = self.heard.own.last().copied();
        let reasoning = &self.heard.reasoning;
        report.thinking = Some(reasoning.clone()).filter(|told| !told.is_empty());
        report
    }

    /// Calls of the run and its subagents that were denied, by whomever.
    async fn denied(&self) -> Vec<super::report::Denied> {
        #[derive(Deserialize)]
        struct Log {
            entries: Vec<ConsentEntry>,
        }
        let path = format!("/consent/log?limit={DECISIONS}");
        let Ok(log) = self.client.get::<Log>(&path).await else {
            return Vec::new();
        };
        let ours = log.entries.into_iter().rev().filter(|entry| {
            entry.decision == Permission::Deny && self.heard.all.contains(&entry.run_id)
        });
        ours.map(Into::into).collect()
    }

    async fn usage(&self) -> Option<Usage> {
        let mut usage = Usage::default();
        for run in &self.heard.own {
            let details: RunDetails = self.client.get(&format!("/runs/{run}")).await.ok()?;
            usage.prompt_tokens += details.run.prompt_tokens;
            usage.completion_tokens += details.run.completion_tokens;
        }
        Some(usage)
    }
}

/// Whether the service was going away, or was away, and may take the message when it is back.
fn comes_again(error: &ClientError) -> bool {
    match error {
        ClientError::NotRunning { .. } | ClientError::Unreachable { .. } => true,
        ClientError::Refused(error) => error.code == ErrorCode::ShuttingDown,
        ClientError::NoLink { .. } | ClientError::Unreadable(_) => false,
    }
}
