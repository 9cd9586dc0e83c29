//! The `mcpServers` file that people already have from other programs.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Url;
use rustix::fs::OFlags;
use serde::Deserialize;
use serde_json::Value;

use crate::domain::loopback::is_loopback;
use crate::tools::output::shown;
use crate::tools::trust::{open_regular, read_all};
use crate::tools::workspace::if_there;

/// As much of the file as is read.
pub const MAX_BYTES: u64 = 1024 * 1024;
const MAX_SERVERS: usize = 32;
/// The longest name of a server.
pub const MAX_NAME: usize = 32;
const DEFAULT_TIME: u64 = 60;
/// How many seconds one call may take at the most.
pub const MAX_TIME: u64 = 3600;

/// What is said of a server whose fields are of other forms: the parser would repeat their
/// values, which may be secrets.
const FORMS: &str = "`type`, `command`, `cwd` and `url` must be texts, `args` and `tools` lists of texts, `env` and `headers` objects with texts, `disabled` true or false, and `timeoutSeconds` a whole number";

/// The file, read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct McpConfig {
    /// By name, those that are switched off left out.
    pub servers: Vec<ServerConfig>,
    /// What is wrong, one sentence each.
    pub problems: Vec<String>,
    /// Which servers are wanted is not known: those that run go on.
    pub unreadable: bool,
}

/// One server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    pub name: String,
    pub transport: Transport,
    /// The tools that are wanted, by the server's own names; all where absent.
    pub tools: Option<Vec<String>>,
    /// How long one call may take.
    pub time_limit: Duration,
}

/// How it is reached. Its `Debug` shows no value of a variable or a header.
#[derive(Clone, PartialEq)]
pub enum Transport {
    /// A program of this machine, over its standard input and output.
    Stdio {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
        cwd: Option<PathBuf>,
    },
    /// Streamable HTTP.
    Http {
        url: Url,
        headers: BTreeMap<String, String>,
    },
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

impl Transport {
    /// `stdio` or `http`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Http { .. } => "http",
        }
    }

    /// Whether the server runs on this machine, as far as one can tell.
    pub fn is_here(&self) -> bool {
        match self {
            Self::Stdio { .. } => true,
            Self::Http { url, .. } => is_loopback(url),
        }
    }
}

/// A server as it is written. Other programs' own fields are passed over: what they allow, in
/// particular, is not allowed here.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    #[serde(rename = "type", alias = "transport")]
    kind: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, Value>,
    cwd: Option<PathBuf>,
    #[serde(alias = "serverUrl", alias = "httpUrl")]
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, Value>,
    #[serde(default)]
    disabled: bool,
    tools: Option<Vec<String>>,
    #[serde(alias = "timeout_seconds")]
    timeout_seconds: Option<u64>,
}

/// Reads the file, which need not exist. Blocks.
pub fn read(path: &Path, variable: impl Fn(&str) -> Option<String>) -> McpConfig {
    let text = open_regular(path, OFlags::empty())
        .and_then(|(file, _)| read_all(file, MAX_BYTES))
        .and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other));
    let mut config = match if_there(text) {
        Ok(None) => return McpConfig::default(),
        Ok(Some(text)) => parse(&text, variable),
        Err(error) => unreadable(&error.to_string()),
    };
    for problem in &mut config.problems {
        *problem = format!("NAVI_MCP_CONFIG {}: {problem}", path.display());
    }
    config
}

fn unreadable(reason: &str) -> McpConfig {
    McpConfig {
        problems: vec![format!("{reason}; its servers go on as they were")],
        unreadable: true,
        ..McpConfig::default()
    }
}

/// Reads the file's text: `{"mcpServers": {NAME: {…}}}`. `${NAME}`, `${env:NAME}` and
/// `${NAME:-default}` in values stand for variables of Navi's own environment.
pub fn parse(text: &str, variable: impl Fn(&str) -> Option<String>) -> McpConfig {
    let mut file: Value = match serde_json::from_str(text) {
        Ok(file) => file,
        Err(error) => return unreadable(&format!("no valid JSON: {error}")),
    };
    let Some(Value::Object(written)) = file.get_mut("mcpServers").map(Value::take) else {
        return unreadable("it must be {\"mcpServers\": {\"a-name\": {\"command\": …}}}");
    };
    let mut config = McpConfig::default();
    for (name, value) in written {
        let shown = shown(&name);
        let known = |server: &ServerConfig| server.name == plain(&name);
        let server = if config.servers.iter().any(known) {
            Err(
                "another server has the same name, but for signs that names of tools cannot have"
                    .to_owned(),
            )
        } else if config.servers.len() >= MAX_SERVERS {
            Err(format!("there are more than {MAX_SERVERS} servers"))
        } else {
            read_server(&name, value, &variable)
        };
        match server {
            Ok(server) => config.servers.extend(server),
            Err(reason) => config
                .problems
                .push(format!("server `{shown}` is left out: {reason}")),
        }
    }
    config.servers.sort_by(|a, b| a.name.cmp(&b.name));
    config
}

/// One server as it is written; none where it is switched off.
///
/// # Errors
/// What is wrong with it.
pub fn read_server(
    name: &str,
    value: Value,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Option<ServerConfig>, String> {
    let written: Written = serde_json::from_value(value).map_err(|_| FORMS.to_owned())?;
    if written.disabled {
        return Ok(None);
    }
    let name = plain(name);
    refuse_if!(
        name.is_empty() || name.len() > MAX_NAME,
        "its name must have 1 to {MAX_NAME} letters, digits, - or _"
    );
    let expand = |text: &String| expanded(text, variable);
    let texts = |field: &str, values: BTreeMap<String, Value>| {
        let texts = values.into_iter().map(|(name, value)| match &value {
            Value::String(text) => Ok((name, expand(text)?)),
            Value::Number(_) | Value::Bool(_) => Ok((name, value.to_string())),
            _ => Err(format!("field `{field}`: {name} must be a text")),
        });
        texts.collect::<Result<BTreeMap<_, _>, String>>()
    };
    let transport = match (written.kind.as_deref(), &written.command, &written.url) {
        (Some("sse"), _, _) => {
            refuse!(
                "the transport `sse` is not spoken any more; give the server's streamable HTTP address (it often ends in /mcp) with \"type\": \"http\""
            );
        }
        (None | Some("stdio"), Some(command), None) => Transport::Stdio {
            command: expand(command)?,
            args: written.args.iter().map(expand).collect::<Result<_, _>>()?,
            env: texts("env", written.env)?,
            cwd: written.cwd,
        },
        (None | Some("http" | "streamable-http" | "streamableHttp"), None, Some(url)) => {
            let url = Url::parse(&expand(url)?)
                .ok()
                .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
                .ok_or("field `url`: it must be an address as in https://example.com/mcp")?;
            Transport::Http {
                url,
                headers: texts("headers", written.headers)?,
            }
        }
        _ => {
            refuse!(
                "give either `command` (and `args`, `env`) for a program, or `url` for streamable HTTP"
            );
        }
    };
    let seconds = written.timeout_seconds.unwrap_or(DEFAULT_TIME);
    refuse_if!(
        !(1..=MAX_TIME).contains(&seconds),
        "field `timeoutSeconds`: {seconds} must be from 1 to {MAX_TIME}"
    );
    Ok(Some(ServerConfig {
        name,
        transport,
        tools: written.tools,
        time_limit: Duration::from_secs(seconds),
    }))
}

/// A name in the signs that names of tools may have.
pub fn plain(name: &str) -> String {
    let is_strange = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_');
    name.trim().replace(is_strange, "_")
}

/// With variables put in. What has none of that form is left as it is.
///
/// # Errors
/// One is not set.
pub fn expanded(text: &str, variable: &impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, reference, after)) = next_reference(rest) {
        let Reference { name, default } = reference;
        let value = variable(name).filter(|value| !value.is_empty());
        let Some(value) = value.or(default.map(str::to_owned)) else {
            let name = shown(name);
            refuse!("it needs the environment variable {name}, which is not set");
        };
        out.push_str(before);
        out.push_str(&value);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// The names of the variables that are put into a text.
pub fn variables(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (_, reference, after) = next_reference(rest)?;
        rest = after;
        Some(reference.name)
    })
}

/// `${NAME}`, `${env:NAME}` or `${NAME:-default}`.
struct Reference<'a> {
    name: &'a str,
    default: Option<&'a str>,
}

/// The first one, with what stands before and after it.
fn next_reference(text: &str) -> Option<(&str, Reference<'_>, &str)> {
    let (before, after) = text.split_once("${")?;
    let (inner, after) = after.split_once('}')?;
    let inner = inner.strip_prefix("env:").unwrap_or(inner);
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    Some((before, Reference { name, default }, after))
}
