//! One connection to a server, from its greeting to its end; and a server's program on this machine.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anstream::adapter::strip_str;
use itertools::Itertools as _;
use parking_lot::Mutex;
use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientRequest, Implementation, PaginatedRequestParams,
    PingRequest,
};
use rmcp::service::{
    NotificationContext, Peer, RoleClient, RunningService, ServiceError, serve_client,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::config::{ServerConfig, Transport};
use super::listing::{Listing, MAX_TOOLS};
use crate::domain::redact::{names_key, redacted, without};
use crate::https;
use crate::programs::{self, Tail};
use crate::tools::output::{shortened, visible};
use crate::tools::sandbox::SUBCOMMAND;

/// Greeting and list together; a package runner may fetch the server first.
const START_LIMIT: Duration = Duration::from_secs(90);

/// The list alone.
const LIST_LIMIT: Duration = Duration::from_secs(30);

/// How long a server that is let go may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);

const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// As many pages of tools as are asked for.
const MAX_PAGES: usize = 20;

/// The largest piece of a stream over HTTP.
const MAX_EVENT: usize = 8 * 1024 * 1024;

/// As many secrets of Navi's own as are hidden. There are some ten at a time.
const MAX_HIDDEN: usize = 512;

/// The longest message of a server. More is thrown away as it comes.
const MAX_MESSAGE: usize = 8 * 1024 * 1024;

/// What a program gets of Navi's environment. The rest may hold secrets: what it needs of that
/// is for its configuration to name.
const INHERITED: [&str; 9] = [
    "HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER",
];

/// How much of an error is shown, and of what a program wrote to standard error last.
const SHOWN_BYTES: usize = 600;

/// See the module. The server's program ends when this is dropped.
#[derive(Debug)]
pub struct Connection {
    service: RunningService<RoleClient, Client>,
    program: Option<Program>,
}

/// Our side: it offers a server nothing, neither files nor the model nor the user's attention.
#[derive(Clone, Debug)]
struct Client {
    changed: Arc<Notify>,
}

impl ClientHandler for Client {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        // However often it is told, it is looked at once.
        self.changed.notify_one();
    }

    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new("navi", env!("CARGO_PKG_VERSION")),
        )
    }
}

impl Connection {
    /// Starts a server, greets it and asks for its tools. `changed` is told when the server
    /// says that these are others now.
    ///
    /// # Errors
    /// What went wrong, with what the server's program said of it.
    pub async fn open(
        config: &ServerConfig,
        changed: Arc<Notify>,
    ) -> Result<(Self, Listing), String> {
        let client = Client { changed };
        let mut program = None;
        let opening = async {
            let service = match &config.transport {
                Transport::Stdio {
                    command,
                    args,
                    env,
                    cwd,
                } => {
                    let (started, pipes) = Program::start(command, args, env, cwd.as_ref()).await?;
                    program = Some(started);
                    serve_client(client, pipes).await
                }
                Transport::Http { url, headers } => {
                    let transport = http(&config.transport, url, headers)?;
                    serve_client(client, transport).await
                }
            };
            // A program that is no server ends, or talks of other things.
            let told = |error| told(&error, &config.transport);
            service.map_err(|error| format!("it could not be greeted: {}", told(error)))
        };
        let opened = async {
            let service = within(START_LIMIT, "answer", opening).await?;
            let listing = listing(service.peer(), config).await?;
            Ok((service, listing))
        };
        match Box::pin(opened).await {
            Ok((service, listing)) => Ok((Self { service, program }, listing)),
            Err(reason) => Err(with_words(reason, program.as_ref()).await),
        }
    }

    /// Who calls are sent through.
    pub(crate) fn peer(&self) -> Peer<RoleClient> {
        self.service.peer().clone()
    }

    /// Ends when the server does, and says why, as far as that is known. With `closing` it is
    /// let go in order: it may end by itself within a moment.
    pub async fn ended(self, closing: CancellationToken) -> String {
        let Self { service, program } = self;
        let cancel = service.cancellation_token();
        let waiting = service.waiting();
        tokio::pin!(waiting);
        tokio::select! {
            how = &mut waiting => tracing::debug!(?how, "a connection to an MCP server ended"),
            () = closing.cancelled() => {
                cancel.cancel();
                // What does not end in order is dropped, and its program killed.
                let _ = tokio::time::timeout(GRACE, waiting).await;
                if let Some(program) = program {
                    program.end(GRACE).await;
                }
                return "it was ended".to_owned();
            }
        }
        with_words("it ended".to_owned(), program.as_ref()).await
    }
}

/// What the server's tools are now.
///
/// # Errors
/// It does not say.
pub(crate) async fn listing(
    peer: &Peer<RoleClient>,
    config: &ServerConfig,
) -> Result<Listing, String> {
    within(LIST_LIMIT, "list its tools", list(peer, config)).await
}

async fn list(peer: &Peer<RoleClient>, config: &ServerConfig) -> Result<Listing, String> {
    if let Some(info) = peer.peer_info()
        && info.capabilities.tools.is_none()
    {
        return Ok(Listing {
            problems: vec!["it offers no tools".to_owned()],
            ..Listing::default()
        });
    }
    let mut tools = Vec::new();
    let mut cursor = None;
    // With a list of wanted ones more is looked through than is taken in.
    let most = if config.tools.is_some() {
        MAX_TOOLS * 20
    } else {
        MAX_TOOLS + 1
    };
    for _ in 0..MAX_PAGES {
        let asked = PaginatedRequestParams::default().with_cursor(cursor.take());
        let page = peer.list_tools(Some(asked)).await;
        let page = page.map_err(|error| told(&error, &config.transport))?;
        tools.extend(page.tools);
        cursor = page.next_cursor;
        if cursor.is_none() || tools.len() >= most {
            break;
        }
    }
    let is_cut = cursor.is_some() || tools.len() > most;
    tools.truncate(most);
    Ok(Listing::of(config, tools, is_cut))
}

async fn within<T>(
    limit: Duration,
    what: &str,
    asked: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    let answered = tokio::time::timeout(limit, asked).await;
    answered.unwrap_or_else(|_| Err(format!("it did not {what} within {} s", limit.as_secs())))
}

fn http(
    transport: &Transport,
    url: &Url,
    headers: &BTreeMap<String, String>,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
    let mut own = HashMap::new();
    for (name, value) in headers {
        let wrong = || format!("the header {} cannot be sent", shortened(name, SHOWN_BYTES));
        let name_read = HeaderName::try_from(name.as_str()).map_err(|_| wrong())?;
        let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| wrong())?;
        value.set_sensitive(true);
        own.insert(name_read, value);
    }
    let mut builder = https::client()
        .connect_timeout(CONNECT_LIMIT)
        .pool_max_idle_per_host(0)
        // Headers with secrets go to the place that they were given for, and to no other.
        .redirect(reqwest::redirect::Policy::none());
    if transport.is_here() {
        builder = builder.no_proxy();
    }
    let client = builder.build().map_err(|error| error.to_string())?;
    let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
        .custom_headers(own)
        .max_sse_event_size(MAX_EVENT);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// Whether the server answers at all.
pub(super) async fn answers(peer: &Peer<RoleClient>, limit: Duration) -> bool {
    let ping = peer.send_request(ClientRequest::PingRequest(PingRequest::default()));
    // An error that a server tells is an answer too: not every one knows this question.
    let answer = tokio::time::timeout(limit, ping).await;
    matches!(answer, Ok(Ok(_) | Err(ServiceError::McpError(_))))
}

/// An error without what of the server's address and its headers may be a key.
fn told(error: &dyn std::error::Error, transport: &Transport) -> String {
    let ours = AROUND.get().map(|around| around.secrets.lock().clone());
    hidden_in(error.to_string(), transport, &ours.unwrap_or_default())
}

fn hidden_in(mut text: String, transport: &Transport, ours: &[String]) -> String {
    let mut secrets: Vec<&str> = ours.iter().map(String::as_str).collect();
    if let Transport::Http { url, headers } = transport {
        text = text.replace(url.as_str(), &url.origin().ascii_serialization());
        let parts = [Some(url.path()), url.query(), url.password()];
        secrets.extend(parts.into_iter().flatten());
        // Behind the word for its kind, too, as in `Bearer …`.
        secrets.extend(headers.values().flat_map(|value| {
            let (_, word) = value.rsplit_once(' ').unwrap_or_default();
            [value.as_str(), word]
        }));
    }
    // The longest first: another may be a part of it.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    shortened(&redacted(&without(&text, secrets)), SHOWN_BYTES)
}

/// With the last words of the server's program.
async fn with_words(reason: String, program: Option<&Program>) -> String {
    let Some(program) = program else {
        return reason;
    };
    // What it said may still be on its way.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let said = program.said();
    if said.is_empty() {
        reason
    } else {
        // Whoever reads this must see where the program's words end.
        format!(
            "{reason}; in its program's own words: “{}”",
            said.replace('”', "\"")
        )
    }
}

/// What all servers of this process have in common.
static AROUND: OnceLock<Around> = OnceLock::new();

struct Around {
    /// Navi's own program, which keeps servers' programs; none where nothing keeps them.
    keeper: Option<PathBuf>,
    /// What no server's words may repeat.
    secrets: Mutex<Vec<String>>,
}

/// Has the programs of servers started by `keeper`'s
/// [`carry_out`](crate::tools::sandbox::carry_out), which ends them when this process is killed.
/// Hides Navi's own secrets in whatever they write to standard error: one may have been given
/// them, or have read them in a file.
pub fn set_up(keeper: Option<PathBuf>, secrets: Vec<String>) {
    // The first word holds: there is one service in a process.
    let secrets = Mutex::new(secrets);
    let _ = AROUND.set(Around { keeper, secrets });
}

/// Has these hidden too: a program that was given those of before still has them.
pub fn hide<'a>(secrets: impl Iterator<Item = &'a str>) {
    if let Some(around) = AROUND.get() {
        also(&mut around.secrets.lock(), secrets);
    }
}

/// Puts these at the end of what is hidden, and lets go of what was named longest ago beyond
/// [`MAX_HIDDEN`].
fn also<'a>(hidden: &mut Vec<String>, secrets: impl Iterator<Item = &'a str>) {
    for secret in secrets {
        hidden.retain(|it| it != secret);
        hidden.push(secret.to_owned());
    }
    let over = hidden.len().saturating_sub(MAX_HIDDEN);
    hidden.drain(..over);
}

/// A server's program on this machine. Goes with everything that it started when this is dropped.
#[derive(Debug)]
struct Program {
    program: programs::Program,
    said: Arc<Mutex<Tail>>,
    /// Its own secrets, as far as the names of its variables tell.
    secrets: Vec<String>,
    _reading: AbortOnDropHandle<()>,
}

/// What a server is talked to by.
type Pipes = AsyncRwTransport<RoleClient, ChildStdout, ChildStdin>;

impl Program {
    /// Starts it.
    async fn start(
        command: &str,
        args: &[String],
        env: &BTreeMap<String, String>,
        cwd: Option<&PathBuf>,
    ) -> Result<(Self, Pipes), String> {
        let inherited = INHERITED
            .iter()
            .filter_map(|name| Some((*name, std::env::var_os(name)?)));
        let mut building = match AROUND.get().and_then(|around| around.keeper.as_ref()) {
            Some(keeper) => {
                let mut kept = Command::new(keeper);
                kept.args([SUBCOMMAND, "keep", command]);
                kept
            }
            None => Command::new(command),
        };
        building.args(args).env_clear().envs(inherited).envs(env);
        if let Some(cwd) = cwd {
            building.current_dir(cwd);
        }
        let mut program = programs::Program::start(&mut building)
            .await
            .map_err(|error| format!("`{command}` could not be started: {error}"))?;
        let child = &mut program.child;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            refuse!("`{command}` could not be talked to");
        };
        let said = Arc::<Mutex<Tail>>::default();
        let (stderr, kept) = (child.stderr.take(), Arc::clone(&said));
        let reading = tokio::spawn(async move {
            let keep = |bytes: &[u8]| kept.lock().push(bytes);
            let _ = programs::read(stderr, usize::MAX, keep).await;
        });
        let pipes = AsyncRwTransport::new(stdout, stdin).with_max_line_length(MAX_MESSAGE);
        let secrets = env.iter().filter(|(name, _)| names_key(name));
        let program = Self {
            program,
            said,
            secrets: secrets.map(|(_, value)| value.clone()).collect(),
            _reading: AbortOnDropHandle::new(reading),
        };
        Ok((program, pipes))
    }

    /// Gives it a moment to end by itself: what talked to it has let go of its input.
    async fn end(mut self, grace: Duration) {
        // It is killed with the group where it does not.
        let _ = tokio::time::timeout(grace, self.program.child.wait()).await;
    }

    /// The last that it wrote to standard error, for a sentence: on one line, without control
    /// characters and without secrets. Empty where it wrote nothing.
    fn said(&self) -> String {
        let said = self.said.lock();
        let ours = AROUND.get().map(|around| around.secrets.lock().clone());
        let all = self.secrets.iter().chain(ours.iter().flatten());
        shown(&said, all.map(String::as_str))
    }
}

fn shown<'a>(said: &Tail, secrets: impl Iterator<Item = &'a str>) -> String {
    let text = String::from_utf8_lossy(&said.bytes);
    // The first word may be the end of a secret.
    let whole = match text.split_once(char::is_whitespace) {
        Some((_, rest)) if said.is_cut => rest,
        None if said.is_cut => "",
        _ => &text,
    };
    let plain = strip_str(whole).to_string();
    let line = plain.split_whitespace().join(" ");
    let hidden = without(&redacted(&line), secrets);
    let from = hidden.ceil_char_boundary(hidden.len().saturating_sub(SHOWN_BYTES));
    visible(&hidden[from..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::TAIL_BYTES;

    fn shown(text: &[u8]) -> String {
        let mut said = Tail::default();
        said.push(text);
        super::shown(&said, ["hunter2!"].into_iter())
    }

    #[test]
    fn an_error_tells_of_an_address_and_its_headers_nothing_but_the_host() {
        let url = "https://me:pass-word@far.example/mcp/k3y-in-path?k=k3y-in-query";
        let url = Url::parse(url).unwrap();
        let transport = Transport::Http {
            url: url.clone(),
            headers: BTreeMap::from([("X".to_owned(), "Bearer k3y-in-header".to_owned())]),
        };
        let error = format!(
            "no answer from {url}, at {}?{}: \"k3y-in-header\" is wrong, and so is our-own",
            url.path(),
            url.query().unwrap()
        );
        assert_eq!(
            hidden_in(error, &transport, &["our-own".to_owned()]),
            "no answer from https://far.example, at [hidden]?[hidden]: \"[hidden]\" is wrong, and so is [hidden]"
        );
    }

    #[test]
    fn a_key_that_another_took_the_place_of_stays_hidden() {
        let mut hidden = vec!["key-of-the-start".to_owned()];
        also(&mut hidden, ["key-2"].into_iter());
        also(&mut hidden, ["key-3", "key-2"].into_iter());
        assert_eq!(hidden, ["key-of-the-start", "key-3", "key-2"]);
        let many: Vec<String> = (0..MAX_HIDDEN).map(|n| format!("many-{n}")).collect();
        also(&mut hidden, many.iter().map(String::as_str));
        assert_eq!(hidden, many);
    }

    #[test]
    fn words_of_a_program_are_cleaned_hidden_and_bounded() {
        assert_eq!(
            shown("\x1b[31mno\x1b[0m\r\n\tkey: hunter2! \u{202e}at http://a:b@c\x07".as_bytes()),
            "no key: [hidden] \\u{202e}at http://[hidden]@c"
        );
        let long = shown(format!("{}hunter2! end", "x ".repeat(TAIL_BYTES)).as_bytes());
        assert!(long.ends_with("x [hidden] end"), "{long}");
        assert!(long.len() <= SHOWN_BYTES);
        // Nothing is left of one that is cut at its beginning.
        let cut = format!("hunter2!{} end", "y".repeat(TAIL_BYTES - 11));
        assert_eq!(shown(cut.as_bytes()), "end");
    }
}
