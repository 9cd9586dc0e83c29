//! The text of the servers' file, changed in one place: every other byte of it stays.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstObjectProp, CstRootNode};
use navi_actors::tools::mcp::plain;
use serde_json::Value;

use super::draft::Fields;

/// What a file that is not there yet begins with.
const EMPTY: &str = "{\n  \"mcpServers\": {}\n}\n";
const SERVERS: &str = "mcpServers";

/// See the module.
pub(super) struct ServersText {
    root: CstRootNode,
    servers: CstObject,
}

/// A server as it is written.
#[derive(Debug)]
pub(super) struct Entry {
    /// As it stands there.
    pub(super) name: String,
    pub(super) text: String,
    pub(super) value: Value,
}

impl ServersText {
    /// Reads what the file holds; without a file, what it would begin with.
    ///
    /// # Errors
    /// It is none that the reader takes either.
    pub(super) fn parse(text: Option<&str>) -> Result<Self, String> {
        let text = text.filter(|text| !text.trim().is_empty()).unwrap_or(EMPTY);
        // By the reader's own parser first: it bounds how deep a text is nested.
        let wrong = |error: String| format!("it is no valid JSON: {error}");
        serde_json::from_str::<Value>(text).map_err(|error| wrong(error.to_string()))?;
        let root = CstRootNode::parse(text, &strict()).map_err(|error| wrong(error.to_string()))?;
        let form = "it must be {\"mcpServers\": {\"a-name\": {\"command\": …}}}";
        let file = root.object_value().ok_or(form)?;
        let servers = match one(&file, |name| name == SERVERS)? {
            Some(servers) => servers.object_value().ok_or(form)?,
            None => file.object_value_or_set(SERVERS),
        };
        Ok(Self { root, servers })
    }

    /// The server of this name, as the service calls it.
    ///
    /// # Errors
    /// There are two.
    pub(super) fn entry(&self, name: &str) -> Result<Option<Entry>, String> {
        let Some(found) = self.property(name)? else {
            return Ok(None);
        };
        let (Some(name), Some(value)) = (found.decoded_name(), found.value()) else {
            return Ok(None);
        };
        let text = value.to_string();
        let value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        Ok(Some(Entry { name, text, value }))
    }

    /// The texts of all servers, by their names as the service calls them.
    pub(super) fn texts(&self) -> impl Iterator<Item = (String, String)> {
        let properties = self.servers.properties().into_iter();
        properties
            .filter_map(|found| Some((plain(&found.decoded_name()?), found.value()?.to_string())))
    }

    /// Has the server's fields be these, and none where there is no value. Its other ones stay.
    ///
    /// # Errors
    /// There are two servers of this name.
    pub(super) fn set(&self, name: &str, fields: Fields) -> Result<(), String> {
        let before = self.entry(name)?;
        let server = match self.property(name)? {
            Some(found) => found.object_value_or_set(),
            None => self.servers.object_value_or_set(name),
        };
        for (field, value) in fields {
            let known = before.as_ref().and_then(|entry| entry.value.get(field));
            if known == value.as_ref() {
                continue;
            }
            match (one(&server, |it| it == field)?, value) {
                (Some(found), Some(value)) => found.set_value(input(value)),
                (None, Some(value)) => drop(server.append(field, input(value))),
                (Some(found), None) => found.remove(),
                (None, None) => {}
            }
        }
        Ok(())
    }

    /// Puts a server back as it was.
    pub(super) fn put_back(&self, name: &str, value: Value) {
        self.servers.append(name, input(value));
    }

    /// Takes a server out.
    ///
    /// # Errors
    /// There are two of this name.
    pub(super) fn remove(&self, name: &str) -> Result<(), String> {
        if let Some(found) = self.property(name)? {
            found.remove();
        }
        Ok(())
    }

    pub(super) fn whole(&self) -> String {
        self.root.to_string()
    }

    fn property(&self, name: &str) -> Result<Option<CstObjectProp>, String> {
        one(&self.servers, |written| plain(written) == name)
    }
}

/// As the reader takes it: JSON, and no more.
fn strict() -> ParseOptions {
    ParseOptions {
        allow_comments: false,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// The property that is meant. Of two, readers take one or the other.
fn one(object: &CstObject, is_it: impl Fn(&str) -> bool) -> Result<Option<CstObjectProp>, String> {
    let properties = object.properties().into_iter();
    let mut found =
        properties.filter(|property| property.decoded_name().is_some_and(|name| is_it(&name)));
    let first = found.next();
    match found.next().and_then(|second| second.decoded_name()) {
        Some(name) => Err(format!("it has {name:?} twice")),
        None => Ok(first),
    }
}

fn input(value: Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(value) => CstInputValue::String(value),
        Value::Array(values) => CstInputValue::Array(values.into_iter().map(input).collect()),
        Value::Object(fields) => {
            let fields = fields.into_iter();
            CstInputValue::Object(fields.map(|(name, value)| (name, input(value))).collect())
        }
    }
}
