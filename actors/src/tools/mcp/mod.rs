//! Tools of Model Context Protocol servers: the configuration, one connection to a server, and
//! its tools as the model calls them. Who starts servers and keeps them alive is `crate::mcp`.
//!
//! A server is somebody else's program: everything that it says is bounded, what it says of its
//! tools is pinned by hash, and what its tools give back is data from outside.

mod client;
mod config;
mod listing;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ResourceContents,
};
use rmcp::service::{Peer, RoleClient, ServiceError};
use serde_json::Value;
use tokio::sync::{Notify, watch};

pub(crate) use self::client::listing;
pub use self::client::{Connection, hide, set_up};
pub use self::config::{
    MAX_BYTES, MAX_NAME, MAX_TIME, McpConfig, ServerConfig, Transport, expanded, parse, plain,
    read, read_server, variables,
};
pub use self::listing::{Listed, Listing};
use crate::protocol::approval::Detail;
use crate::protocol::phrase::{Label, Phrase, PhraseCode};
use crate::protocol::powers::{PowerKind, Powers};
use crate::protocol::tool::ToolSpec;
use crate::tools::output::{bounded, human_size, shortened, visible};
use crate::tools::trust::Trust;
use crate::tools::{
    Proposal, RuleSubject, Tool, ToolContext, ToolError, ToolImage, ToolOutput, ToolResult,
    ToolSource, arguments_shown,
};

const SHOWN_BYTES: usize = 500;

/// The call's own limit ends it, and tells the server; that of the run comes a little later.
const MARGIN: Duration = Duration::from_secs(5);

const MAX_IMAGES: usize = 4;
const MAX_IMAGE_BYTES: usize = 5 * 1024 * 1024;
const NAME_BYTES: usize = 300;

/// The way to a server, for as long as it is there. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub struct ServerHandle {
    link: watch::Sender<Link>,
    /// Told when a call was not answered in time.
    pub(crate) doubt: Arc<Notify>,
    /// How many calls are under way.
    calls: watch::Sender<usize>,
}

#[derive(Debug, Default)]
enum Link {
    Up {
        peer: Peer<RoleClient>,
        tools: Arc<[Listed]>,
    },
    Down {
        why: String,
    },
    #[default]
    Starting,
}

impl ServerHandle {
    /// The server answers, and these are its tools.
    pub(crate) fn up(&self, peer: Peer<RoleClient>, tools: Arc<[Listed]>) {
        self.link.send_replace(Link::Up { peer, tools });
    }

    /// It does not.
    pub(crate) fn down(&self, why: String) {
        self.link.send_replace(Link::Down { why });
    }

    /// Whether the server answers within `limit`, or has a reason not to: one that is at a call may
    /// come to nothing else, and each call has its own limit. `overtaken`: as over HTTP, a call that
    /// is made later may come before the question.
    pub(crate) async fn answers(
        &self,
        peer: &Peer<RoleClient>,
        limit: Duration,
        overtaken: bool,
    ) -> bool {
        let mut calls = self.calls.subscribe();
        let at_a_call = *calls.borrow_and_update() > 0;
        at_a_call
            || client::answers(peer, limit).await
            || (overtaken && calls.has_changed().unwrap_or(true))
    }

    fn peer(&self, tool: &Listed, server: &str) -> ToolResult<Peer<RoleClient>> {
        let name = &tool.spec.name;
        let problem = match &*self.link.borrow() {
            Link::Up { peer, tools } => {
                match tools.iter().find(|now| now.own_name == tool.own_name) {
                    Some(now) if now.sha256 == tool.sha256 => return Ok(peer.clone()),
                    Some(_) => format!(
                        "describes {name} in another way than when this run began; it was not called"
                    ),
                    None => format!("has no {name} any more; do this in another way"),
                }
            }
            Link::Starting => "is just starting; try again in a moment".to_owned(),
            Link::Down { why } => {
                format!("is not running ({why}); do this in another way, or tell the user")
            }
        };
        refuse!("the MCP server {server} {problem}")
    }
}

/// A call, until it is dropped.
#[derive(Debug)]
struct UnderWay(watch::Sender<usize>);

impl UnderWay {
    fn begin(calls: watch::Sender<usize>) -> Self {
        calls.send_modify(|calls| *calls += 1);
        Self(calls)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.send_modify(|calls| *calls -= 1);
    }
}

/// A server's tool as the model calls it.
#[derive(Debug)]
pub struct McpTool {
    /// As its server described it.
    pub listed: Listed,
    pub server: String,
    pub time_limit: Duration,
    pub link: ServerHandle,
    pub trust: Trust,
}

impl McpTool {
    fn refuse_untrusted(&self) -> ToolResult<()> {
        let (name, sha256) = (&self.listed.spec.name, &self.listed.sha256);
        refuse_if!(
            !self.trust.holds(name, sha256),
            "{name} was not called: what its server says of it has changed, and the user has to look at it and allow it (in the page under tools)"
        );
        Ok(())
    }
}

#[async_trait]
impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.listed.spec
    }

    fn for_powers(self: Arc<Self>, powers: &Powers) -> Option<Arc<dyn Tool>> {
        let is_granted = powers.has_named(PowerKind::Mcp, &self.server);
        is_granted.then_some(self)
    }

    fn source(&self) -> ToolSource {
        ToolSource::Mcp
    }

    async fn proposal(&self, args: &Value, _: &ToolContext) -> ToolResult<Proposal> {
        self.refuse_untrusted()?;
        let tool = visible(&shortened(&self.listed.own_name, SHOWN_BYTES));
        let of_server = [("tool", tool), ("server", self.server.clone())];
        let any = Phrase::new(PhraseCode::AnyMcpCall, of_server.clone());
        Ok(Proposal {
            summary: Phrase::new(PhraseCode::CallMcp, of_server),
            details: vec![
                Detail::text(Label::Server, &self.server),
                arguments_shown(args),
            ],
            // The key holds the hash: "always" covers the tool as it is described now.
            rule: Some(RuleSubject::new(&self.listed.sha256, any)),
            binding: self.listed.sha256.clone(),
        })
    }

    fn margin(&self) -> Duration {
        MARGIN
    }

    async fn call(&self, args: Value, context: ToolContext) -> ToolResult {
        self.refuse_untrusted()?;
        let peer = self.link.peer(&self.listed, &self.server)?;
        let Value::Object(args) = args else {
            refuse!("the arguments must be one JSON object");
        };
        let params = CallToolRequestParams::new(self.listed.own_name.clone()).with_arguments(args);
        let under_way = UnderWay::begin(self.link.calls.clone());
        // Dropping the call, as a stop or the limit does, tells the server to leave it.
        let answer = tokio::time::timeout(self.time_limit, peer.call_tool_once(params)).await;
        drop(under_way);
        let name = &self.listed.spec.name;
        let problem = match answer {
            Ok(Ok(CallToolResponse::Complete(answer))) => {
                let reading = tokio::task::spawn_blocking(move || output_of(answer, &context));
                match reading.await {
                    Ok(Ok(output)) => return Ok(output),
                    Ok(Err(error)) => format!("failed: {error}"),
                    Err(_) => "failed: the answer could not be read".to_owned(),
                }
            }
            Ok(Ok(_)) => {
                "wants to ask something first, which cannot be done here; call it with everything that it needs".to_owned()
            }
            Ok(Err(error)) => format!("failed: {}", told(&error)),
            Err(_) => {
                self.link.doubt.notify_one();
                format!(
                    "did not answer within {} s and was told to stop; it may have taken effect in part",
                    self.time_limit.as_secs()
                )
            }
        };
        refuse!("{name} {problem}")
    }
}

fn told(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => shortened(&error.message, SHOWN_BYTES),
        ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
            "the server went away in the middle of it; it may have taken effect".to_owned()
        }
        other => shortened(&other.to_string(), SHOWN_BYTES),
    }
}

/// The answer's text and images, within bounds. Blocks.
fn output_of(answer: CallToolResult, context: &ToolContext) -> ToolResult {
    let mut output = ToolOutput::default();
    let untold = answer
        .structured_content
        .filter(|data| !data.is_null() && !says(&answer.content, data));
    for block in answer.content {
        add(block, &mut output);
    }
    if let Some(data) = untold {
        line(&mut output, &format!("{data:#}"));
    }
    let text = &mut output.text;
    text.truncate(text.trim_end().len());
    *text = bounded(std::mem::take(text), &context.workspace, &context.call_id);
    if answer.is_error == Some(true) {
        if text.is_empty() {
            text.push_str("the server says no more than that");
        }
        return Err(ToolError(output.text));
    }
    if text.is_empty() && output.images.is_empty() {
        text.push_str("(it gave back nothing)");
    }
    Ok(output)
}

/// Whether the texts of an answer say its structured content: a block that is its JSON, as the
/// specification has it for older clients, or what stands alone under `result`, where servers put
/// what is no object, a list in as many blocks.
fn says(content: &[ContentBlock], data: &Value) -> bool {
    let texts = content.iter().filter_map(ContentBlock::as_text);
    let texts: Vec<&str> = texts.map(|block| block.text.trim()).collect();
    let is = |text: &str, data: &Value| {
        data.as_str().is_some_and(|said| said.trim() == text)
            || serde_json::from_str::<Value>(text).is_ok_and(|said| said == *data)
    };
    let is_said = |data: &Value| texts.iter().any(|text| is(text, data));
    let alone = data.as_object().filter(|fields| fields.len() == 1);
    let result = alone.and_then(|fields| fields.get("result"));
    let is_in_pieces = || {
        let items = result.and_then(Value::as_array);
        items.is_some_and(|items| {
            !items.is_empty()
                && items.len() == texts.len()
                && texts.iter().zip(items).all(|(text, item)| is(text, item))
        })
    };
    is_said(data) || result.is_some_and(is_said) || is_in_pieces()
}

fn add(block: ContentBlock, to: &mut ToolOutput) {
    match block {
        ContentBlock::Text(block) => line(to, &block.text),
        ContentBlock::Image(image) => add_image(&image.data, &image.mime_type, to),
        ContentBlock::Audio(audio) => note(to, &audio.mime_type, audio.data.len()),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                line(to, &format!("[{}]", shortened(&uri, NAME_BYTES)));
                line(to, &text);
            }
            ResourceContents::BlobResourceContents {
                mime_type, blob, ..
            } => add_image(&blob, &mime_type.unwrap_or_default(), to),
            _ => line(to, "[a resource of a kind that is not known here]"),
        },
        ContentBlock::ResourceLink(link) => {
            let name = link.title.as_deref().unwrap_or(&link.name);
            let uri = shortened(&link.uri, NAME_BYTES);
            line(to, &format!("[{}: {uri}]", shortened(name, NAME_BYTES)));
        }
        _ => line(to, "[content of a kind that is not known here]"),
    }
}

/// Takes in an image; what is none, or too much, is noted.
fn add_image(data: &str, kind: &str, to: &mut ToolOutput) {
    let fits = data.len() <= MAX_IMAGE_BYTES / 3 * 4 + 4 && kind.starts_with("image/");
    if to.images.len() < MAX_IMAGES
        && fits
        && let Ok(bytes) = STANDARD.decode(data)
    {
        let media_type = kind.to_owned();
        to.images.push(ToolImage { media_type, bytes });
        line(to, "[1 image here]");
    } else {
        note(to, kind, data.len());
    }
}

/// What the model cannot be shown.
fn note(to: &mut ToolOutput, kind: &str, base64_bytes: usize) {
    let kind = if kind.is_empty() { "data" } else { kind };
    let (kind, size) = (
        shortened(kind, NAME_BYTES),
        human_size((base64_bytes / 4 * 3) as u64),
    );
    line(to, &format!("[{kind}, {size}, not shown]"));
}

fn line(to: &mut ToolOutput, more: &str) {
    if !to.text.is_empty() && !to.text.ends_with('\n') {
        to.text.push('\n');
    }
    to.text.push_str(more);
}

#[cfg(test)]
mod tests;
