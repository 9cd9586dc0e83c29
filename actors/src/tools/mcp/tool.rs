//! [`McpTool`]: a server's tool as the model calls it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jsonschema::Validator;
use rmcp::model::{CallToolRequestParams, CallToolResponse};
use rmcp::service::{Peer, RoleClient, ServiceError};
use serde_json::Value;
use tokio::sync::{Notify, watch};

use super::listing::Listed;
use super::result;
use crate::protocol::approval::Detail;
use crate::protocol::tool::ToolSpec;
use crate::tools::extension_schema;
use crate::tools::output::{shortened, visible};
use crate::tools::trust::Trust;
use crate::tools::{
    Proposal, Provenance, RuleSubject, Tool, ToolContext, ToolError, ToolResult, ToolSource,
    arguments_shown,
};

const SHOWN_BYTES: usize = 500;

/// The way to a server, for as long as it is there. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub struct ServerHandle {
    link: watch::Sender<Link>,
    /// Told when a call was not answered in time.
    pub(crate) doubt: Arc<Notify>,
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

    fn peer(&self, tool: &Listed, server: &str) -> Result<Peer<RoleClient>, ToolError> {
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
        Err(ToolError(format!("the MCP server {server} {problem}")))
    }
}

/// See the module.
#[derive(Debug)]
pub struct McpTool {
    listed: Listed,
    server: String,
    time_limit: Duration,
    link: ServerHandle,
    trust: Trust,
    /// None where the server's schema is one that we cannot read: then the server checks alone.
    validator: Option<Validator>,
}

impl McpTool {
    /// A tool as its server described it.
    pub fn new(
        listed: Listed,
        server: String,
        time_limit: Duration,
        link: ServerHandle,
        trust: Trust,
    ) -> Self {
        let validator = extension_schema::validator(&listed.spec.parameters);
        let unchecked = |problem| {
            let tool = &listed.spec.name;
            tracing::info!(tool, problem, "arguments are not checked here");
        };
        let validator = validator.map_err(unchecked).ok();
        Self {
            listed,
            server,
            time_limit,
            link,
            trust,
            validator,
        }
    }

    fn refuse_untrusted(&self) -> Result<(), ToolError> {
        refuse_if!(
            !self
                .trust
                .holds(&self.listed.spec.name, &self.listed.sha256),
            "{} was not called: what its server says of it has changed, and the user has to look at it and allow it (in the page under tools)",
            self.listed.spec.name
        );
        Ok(())
    }
}

#[async_trait]
impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.listed.spec
    }

    fn source(&self) -> ToolSource {
        ToolSource::Mcp
    }

    fn validator(&self) -> Option<&Validator> {
        self.validator.as_ref()
    }

    async fn proposal(&self, args: &Value, _: &ToolContext) -> Result<Proposal, ToolError> {
        self.refuse_untrusted()?;
        let tool = visible(&shortened(&self.listed.own_name, SHOWN_BYTES));
        Ok(Proposal {
            summary: format!("call {tool} of the MCP server {}", self.server),
            details: vec![Detail::text("server", &self.server), arguments_shown(args)],
            // The key holds the hash: "always" covers the tool as it is described now.
            rule: Some(RuleSubject::new(
                &self.listed.sha256,
                format!("any call of {tool} of the MCP server {}", self.server),
            )),
            binding: self.listed.sha256.clone(),
        })
    }

    fn provenance(&self, _: &Value) -> Provenance {
        Provenance::Outside
    }

    async fn call(&self, args: Value, context: ToolContext) -> ToolResult {
        self.refuse_untrusted()?;
        let peer = self.link.peer(&self.listed, &self.server)?;
        let Value::Object(args) = args else {
            refuse!("the arguments must be one JSON object");
        };
        let params = CallToolRequestParams::new(self.listed.own_name.clone()).with_arguments(args);
        // Dropping the call, as a stop or the limit does, tells the server to leave it.
        let answer = tokio::time::timeout(self.time_limit, peer.call_tool_once(params)).await;
        let name = &self.listed.spec.name;
        let problem = match answer {
            Ok(Ok(CallToolResponse::Complete(answer))) => {
                let reading = tokio::task::spawn_blocking(move || result::read(answer, &context));
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
        Err(ToolError(format!("{name} {problem}")))
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
