//! Arguments, checked before anybody is asked or anything is sent.

use serde_json::{Value, json};

use super::HomeAssistantArgs;
use crate::tools::ToolError;
use crate::tools::output::shortened;

/// As far back as a history goes, in hours.
const MAX_HOURS: u64 = 168;
const DEFAULT_HOURS: u64 = 24;
/// As many entities as one call is for.
const MAX_ENTITIES: usize = 50;

/// Kinds of services that "always" may be said of: they switch and set things in the house. A
/// person is asked about all others each time: they may open it, run what somebody wrote, stop
/// the system, or speak to others.
const REPEATABLE: [&str; 9] = [
    "climate",
    "fan",
    "humidifier",
    "input_boolean",
    "input_number",
    "light",
    "media_player",
    "switch",
    "vacuum",
];

/// `domain.name`, as Home Assistant writes its ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EntityId(String);

/// A service call that may be sent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub(super) domain: String,
    pub(super) name: String,
    /// The request's body.
    pub(super) body: Value,
}

impl EntityId {
    pub(super) fn parse(text: &str) -> Result<Self, ToolError> {
        match pair(text) {
            Some((domain, name)) => Ok(Self(format!("{domain}.{name}"))),
            None => Err(ToolError(format!(
                "`{}` is no entity id; one looks like light.kitchen, and states shows them",
                shortened(text, 60)
            ))),
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn domain(&self) -> &str {
        self.0.split('.').next().unwrap_or_default()
    }
}

impl Call {
    pub(super) fn of(args: HomeAssistantArgs) -> Result<Self, ToolError> {
        let wrong = || {
            ToolError(
                r#"call_service needs a service, for example {"action":"call_service","service":"light.turn_on","entity_id":"light.kitchen"}"#
                    .to_owned(),
            )
        };
        let service = args.service.ok_or_else(wrong)?;
        // Models also write the two halves apart.
        let whole = match (&args.domain, service.contains('.')) {
            (Some(domain), false) => format!("{domain}.{service}"),
            _ => service,
        };
        let (domain, name) = pair(&whole).ok_or_else(wrong)?;
        let mut body = args.data.unwrap_or_default();
        if let Some(ids) = args.entity_id {
            body.insert("entity_id".to_owned(), entities(&ids)?);
        }
        Ok(Self {
            domain,
            name,
            body: Value::Object(body),
        })
    }

    /// `domain.name`.
    pub(super) fn service(&self) -> String {
        format!("{}.{}", self.domain, self.name)
    }

    /// What a person is asked.
    pub(super) fn summary(&self) -> String {
        let of = match &self.body["entity_id"] {
            Value::String(id) => format!(" for {id}"),
            Value::Array(ids) => {
                let ids: Vec<&str> = ids.iter().filter_map(Value::as_str).collect();
                format!(" for {}", shortened(&ids.join(", "), 120))
            }
            _ => String::new(),
        };
        format!("call {}{of} in the smart home", self.service())
    }

    /// Whether "always" may be said of it.
    pub(super) fn is_repeatable(&self) -> bool {
        REPEATABLE.contains(&self.domain.as_str())
    }
}

/// One id, or several with commas between, as the API takes them.
fn entities(text: &str) -> Result<Value, ToolError> {
    let ids = text
        .split(',')
        .map(EntityId::parse)
        .collect::<Result<Vec<_>, _>>()?;
    match ids.as_slice() {
        [one] => Ok(json!(one.as_str())),
        many if many.len() <= MAX_ENTITIES => {
            Ok(json!(many.iter().map(EntityId::as_str).collect::<Vec<_>>()))
        }
        _ => Err(ToolError(format!(
            "more than {MAX_ENTITIES} entities in one call; name an area or a group instead"
        ))),
    }
}

pub(super) fn history_hours(hours: Option<u64>) -> Result<u64, ToolError> {
    let hours = hours.unwrap_or(DEFAULT_HOURS);
    if (1..=MAX_HOURS).contains(&hours) {
        Ok(hours)
    } else {
        Err(ToolError(format!("hours must be from 1 to {MAX_HOURS}")))
    }
}

/// The name of a domain; what stands in no name of Home Assistant's is refused.
pub(super) fn domain(text: &str) -> Result<String, ToolError> {
    let name = text.trim().trim_end_matches('.').to_ascii_lowercase();
    if is_slug(&name) {
        Ok(name)
    } else {
        Err(ToolError(format!(
            "`{}` is no domain; domains are light, switch, climate, sensor and the like",
            shortened(text, 60)
        )))
    }
}

fn pair(text: &str) -> Option<(String, String)> {
    let text = text.trim().to_ascii_lowercase();
    let (domain, name) = text.split_once('.')?;
    (is_slug(domain) && is_slug(name)).then(|| (domain.to_owned(), name.to_owned()))
}

fn is_slug(text: &str) -> bool {
    (1..=255).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}
