//! A server as a form has it: read without its secrets, and written with those that stay.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use navi_actors::domain::redact::{HIDDEN, names_key, redacted};
use navi_actors::tools::mcp;
use reqwest::Url;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use url::Origin;

use crate::settings::is_secret_variable;

/// As many arguments, variables, headers and wanted tools as a form may have, of each.
pub(crate) const MAX_ITEMS: usize = 100;
/// The longest of its texts, in bytes.
pub(crate) const MAX_BYTES: usize = 8 * 1024;
/// A server's fields as the file has them: without a value, those that it has not.
pub(super) type Fields = Vec<(&'static str, Option<Value>)>;
/// A longer part of an address may be a key.
const MAX_SEGMENT: usize = 20;

/// What an MCP server is to be: a program with `command`, or an address with `url`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct McpDraft {
    /// A program of this machine.
    pub(crate) command: Option<String>,
    /// One that was told with `[hidden]` in it stays what it is where it comes back so.
    #[serde(default)]
    pub(crate) args: Vec<String>,
    /// By name. Null: the value that stands there stays.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, Option<String>>,
    /// The directory that the program starts in.
    pub(crate) cwd: Option<String>,
    /// An address of a server over streamable HTTP; it stays what it is as `args` do.
    pub(crate) url: Option<String>,
    /// By name. Null: the value that stands there stays, as long as the address leads to the same host.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, Option<String>>,
    /// Those of its tools that are wanted, by its own names; all where absent.
    pub(crate) tools: Option<Vec<String>>,
    /// How long one call may take.
    pub(crate) timeout_seconds: Option<u64>,
    #[serde(default)]
    pub(crate) disabled: bool,
    /// The `version` that `GET /mcp/{name}` told; null for a new one.
    pub(crate) before: Option<String>,
    /// Of who asks in a browser, for a program or where an address or a header stands for a variable:
    /// needed by who has one, again after ten minutes.
    pub(crate) current_password: Option<String>,
}

/// A server as it stands in the file, without its secrets.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct McpEntry {
    name: String,
    /// Where it stands.
    file: PathBuf,
    /// Another one after each change, and after each start of the service.
    version: String,
    command: Option<String>,
    /// What looks like a secret is `[hidden]`.
    args: Vec<String>,
    /// By name; null where the value is not told. Only variables that stand in its place are.
    env: BTreeMap<String, Option<String>>,
    cwd: Option<String>,
    /// What may be a key in it is `[hidden]`.
    url: Option<String>,
    /// As `env`.
    headers: BTreeMap<String, Option<String>>,
    tools: Option<Vec<String>>,
    timeout_seconds: Option<u64>,
    disabled: bool,
}

impl McpEntry {
    pub(super) fn of(name: &str, file: &Path, version: String, entry: &Value) -> Self {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).map(str::to_owned);
        let args = texts(entry.get("args"));
        Self {
            name: name.to_owned(),
            file: file.to_owned(),
            version,
            command: text("command"),
            args: shown_args(&args),
            env: told(entry.get("env")),
            cwd: text("cwd"),
            url: url_of(entry).map(shown_url),
            headers: told(entry.get("headers")),
            tools: entry
                .get("tools")
                .is_some_and(Value::is_array)
                .then(|| texts(entry.get("tools"))),
            timeout_seconds: seconds_of(entry),
            disabled: entry
                .get("disabled")
                .and_then(Value::as_bool)
                .unwrap_or(false),
        }
    }
}

impl McpDraft {
    /// Whether it has a program run here, or variables of Navi's sent to the address.
    pub(crate) fn needs_leave_to_run(&self) -> bool {
        let sent = self.url.iter().chain(self.headers.values().flatten());
        self.command.is_some() || sent.into_iter().any(|text| text.contains("${"))
    }

    /// What it is in the file, where `old` is there now: none of a field that it has no more.
    ///
    /// # Errors
    /// What is wrong with it, as far as the reader would not say it.
    pub(super) fn fields(
        &self,
        old: Option<&Value>,
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Result<Fields, String> {
        self.check()?;
        let url = self.address(old)?;
        let stays = same_host(url.as_deref(), old.and_then(url_of), variable);
        let headers = kept("headers", &self.headers, old, stays)?;
        let kind = old.and_then(|old| old.get("type").or(old.get("transport")));
        let fits = kind
            .and_then(Value::as_str)
            .is_none_or(|kind| (kind == "stdio") == url.is_none() && kind != "sse");
        let mut fields = vec![
            ("command", self.command.clone().map(Value::from)),
            ("args", some(json!(self.arguments(old)?))),
            ("env", some(kept("env", &self.env, old, true)?)),
            (
                "cwd",
                self.cwd
                    .clone()
                    .filter(|cwd| !cwd.is_empty())
                    .map(Value::from),
            ),
            ("url", url.map(Value::from)),
            ("headers", some(headers)),
            ("tools", self.tools.as_ref().map(|tools| json!(tools))),
            ("timeoutSeconds", self.timeout_seconds.map(Value::from)),
            ("disabled", self.disabled.then_some(Value::Bool(true))),
            // Other programs' names of the same.
            ("serverUrl", None),
            ("httpUrl", None),
            ("timeout_seconds", None),
        ];
        if !fits {
            fields.extend([("type", None), ("transport", None)]);
        }
        Ok(fields)
    }

    fn check(&self) -> Result<(), String> {
        let sizes = [
            self.args.len(),
            self.env.len(),
            self.headers.len(),
            self.tools.as_ref().map_or(0, Vec::len),
        ];
        if sizes.iter().any(|size| *size > MAX_ITEMS) {
            return Err(format!(
                "fields `args`, `env`, `headers` and `tools`: at most {MAX_ITEMS} of each"
            ));
        }
        let pairs = self.env.iter().chain(&self.headers);
        let pairs = pairs.flat_map(|(name, value)| std::iter::once(name).chain(value));
        let texts = [&self.command, &self.cwd, &self.url].into_iter().flatten();
        let listed = self.args.iter().chain(self.tools.iter().flatten());
        for text in texts.chain(listed).chain(pairs) {
            if text.len() > MAX_BYTES {
                return Err(format!("a text is longer than {MAX_BYTES} bytes"));
            }
            if text.contains('\0') {
                return Err("no text may have a NUL character in it".to_owned());
            }
            // Whoever has a server changed from afar would read them there.
            if let Some(ours) = mcp::variables(text).find(|name| is_secret_variable(name)) {
                return Err(format!(
                    "{ours} is Navi's own; write it into the file by hand"
                ));
            }
        }
        if self
            .command
            .as_ref()
            .is_some_and(|command| command.trim().is_empty())
        {
            return Err("field `command`: name a program of this machine, as in npx".to_owned());
        }
        if self
            .env
            .keys()
            .chain(self.headers.keys())
            .any(|name| name.is_empty() || name.contains('='))
        {
            return Err(
                "fields `env` and `headers`: a name must have at least one character, and no ="
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// The arguments, with those in place that came back as they were told.
    fn arguments(&self, old: Option<&Value>) -> Result<Vec<String>, String> {
        let old = texts(old.and_then(|old| old.get("args")));
        let shown = shown_args(&old);
        let args = self.args.iter().enumerate().map(|(at, arg)| {
            if !arg.contains(HIDDEN) {
                return Ok(arg.clone());
            }
            let mut alike = (0..shown.len()).filter(|known| shown[*known] == *arg);
            let known = match (shown.get(at) == Some(arg), alike.next(), alike.next()) {
                (true, _, _) => Some(at),
                (false, only, None) => only,
                (false, _, Some(_)) => None,
            };
            known
                .and_then(|known| old.get(known).cloned())
                .ok_or_else(|| {
                    format!(
                        "field `args`: write number {} anew; what {HIDDEN} stands for is not known",
                        at + 1
                    )
                })
        });
        args.collect()
    }

    fn address(&self, old: Option<&Value>) -> Result<Option<String>, String> {
        let Some(url) = self.url.as_deref().filter(|url| url.contains(HIDDEN)) else {
            return Ok(self.url.clone());
        };
        let known = old.and_then(url_of).filter(|known| shown_url(known) == url);
        let known = known.ok_or_else(|| {
            format!("field `url`: write it whole; what {HIDDEN} stands for is not known")
        })?;
        Ok(Some(known.to_owned()))
    }
}

/// A server's fields that the reader knows, for it to look at them.
pub(super) fn as_written(fields: &[(&'static str, Option<Value>)]) -> Value {
    let there = fields
        .iter()
        .filter_map(|(name, value)| Some(((*name).to_owned(), value.clone()?)));
    Value::Object(there.collect::<Map<_, _>>())
}

fn some(value: Value) -> Option<Value> {
    let is_empty =
        value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty);
    (!is_empty).then_some(value)
}

/// Named values, with those that stay.
fn kept(
    field: &str,
    wanted: &BTreeMap<String, Option<String>>,
    old: Option<&Value>,
    stays: bool,
) -> Result<Value, String> {
    let old = old.and_then(|old| old.get(field));
    let values = wanted.iter().map(|(name, value)| {
        let known = || old.and_then(|old| old.get(name)).filter(|_| stays).cloned();
        let value = value.clone().map(Value::from).or_else(known);
        let value = value.ok_or_else(|| format!("field `{field}`: {name} needs a value"))?;
        Ok((name.clone(), value))
    });
    Ok(Value::Object(values.collect::<Result<_, String>>()?))
}

/// Whether what was given for one address may go to the other.
fn same_host(
    url: Option<&str>,
    old: Option<&str>,
    variable: &impl Fn(&str) -> Option<String>,
) -> bool {
    let origins = |url: &str| {
        let expanded = mcp::expanded(url, variable).ok()?;
        Some([origin(url)?, origin(&expanded)?])
    };
    let is_same = |url: &str, old: &str| origins(url).is_some_and(|new| origins(old) == Some(new));
    url == old || url.zip(old).is_some_and(|(url, old)| is_same(url, old))
}

/// Where an address leads to. None where somebody's name is in it: a variable could end the host
/// before it.
fn origin(url: &str) -> Option<Origin> {
    let url = Url::parse(url).ok()?;
    let is_nobodys = url.username().is_empty() && url.password().is_none();
    (is_nobodys && url.origin().is_tuple()).then(|| url.origin())
}

fn url_of(entry: &Value) -> Option<&str> {
    let names = ["url", "serverUrl", "httpUrl"];
    names.iter().find_map(|name| entry.get(name)?.as_str())
}

fn seconds_of(entry: &Value) -> Option<u64> {
    let names = ["timeoutSeconds", "timeout_seconds"];
    names.iter().find_map(|name| entry.get(name)?.as_u64())
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}

fn told(values: Option<&Value>) -> BTreeMap<String, Option<String>> {
    let values = values.and_then(Value::as_object).into_iter().flatten();
    let shown = values.map(|(name, value)| {
        let text = value.as_str().filter(|text| is_reference(text));
        (name.clone(), text.map(str::to_owned))
    });
    shown.collect()
}

/// Whether a value is a variable that stands for it, at most behind the word for its kind.
fn is_reference(text: &str) -> bool {
    let Some((kind, rest)) = text.split_once("${") else {
        return false;
    };
    let plain =
        ["", "bearer", "basic", "token"].contains(&kind.trim().to_ascii_lowercase().as_str());
    plain
        && rest
            .strip_suffix('}')
            .is_some_and(|name| !name.contains(['}', '$']) && !name.contains(":-"))
}

/// Arguments without what looks like a secret: what is named as one, by itself or by the option before it.
fn shown_args(args: &[String]) -> Vec<String> {
    let is_named = |name: &str| names_key(name.trim_start_matches('-').trim());
    let shown = args.iter().enumerate().map(|(at, arg)| {
        let before = at.checked_sub(1).and_then(|before| args.get(before));
        let is_value = before.is_some_and(|option| {
            option.starts_with('-') && !option.contains('=') && is_named(option)
        });
        if is_value && !is_reference(arg) {
            return HIDDEN.to_owned();
        }
        match arg.split_once(['=', ':']) {
            Some((name, value)) if is_named(name) && !is_reference(value.trim()) => {
                format!("{}{HIDDEN}", &arg[..=name.len()])
            }
            _ => redacted(arg).into_owned(),
        }
    });
    shown.collect()
}

/// An address without what may be a key: who reads it, its query, and long parts of its path.
fn shown_url(url: &str) -> String {
    let shown = redacted(url);
    let (path, query) = match shown.split_once('?') {
        Some((path, _)) => (path, format!("?{HIDDEN}")),
        None => (shown.as_ref(), String::new()),
    };
    let start = path.find("://").map_or(0, |at| at + 3);
    let authority = path[start..].find('/').map_or(path.len(), |at| start + at);
    let (host, path) = path.split_at(authority);
    let parts =
        path.split('/').map(
            |part| match part.len() > MAX_SEGMENT && !part.contains("${") {
                true => HIDDEN,
                false => part,
            },
        );
    format!("{host}{}{query}", parts.collect::<Vec<_>>().join("/"))
}
