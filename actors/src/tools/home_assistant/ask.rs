//! Arguments, checked before anybody is asked or anything is sent.

use std::fmt;

use itertools::Itertools as _;
use serde_json::Value;

use super::HomeAssistantArgs;
use crate::protocol::phrase::{Phrase, PhraseCode};
use crate::tools::ToolError;
use crate::tools::output::shortened;

/// As far back as a history goes, in hours.
const MAX_HOURS: u8 = 168;
const DEFAULT_HOURS: u8 = 24;
/// As many entities as one call is for.
const MAX_ENTITIES: usize = 50;

/// Kinds of services that "always" may be said of: they switch and set things in the house. A
/// person is asked about all others each time: they may open it, run what somebody wrote, stop
/// the system, or speak to others.
pub(super) const REPEATABLE: [&str; 9] = [
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

/// `domain.name`, as Home Assistant writes the ids of entities and of services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Id {
    pub(super) domain: String,
    pub(super) name: String,
}

/// A service call that may be sent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub(super) service: Id,
    /// The request's body.
    pub(super) body: Value,
}

impl Id {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        let (domain, name) = text.split_once('.')?;
        (is_slug(domain) && is_slug(name)).then(|| Self {
            domain: domain.to_owned(),
            name: name.to_owned(),
        })
    }

    pub(super) fn of_entity(text: &str) -> Result<Self, ToolError> {
        Self::parse(text).ok_or_else(|| {
            ToolError(format!(
                "`{}` is no entity id; one looks like light.kitchen, and states shows them",
                shortened(text, 60)
            ))
        })
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.domain, self.name)
    }
}

impl Call {
    pub(super) fn of(args: HomeAssistantArgs) -> Result<Self, ToolError> {
        // Models also write the two halves apart.
        let service = Id::parse(&args.service)
            .or_else(|| Id::parse(&format!("{}.{}", args.domain, args.service)));
        let Some(service) = service else {
            refuse!(
                "`{}` is no service; one looks like light.turn_on, and services shows them",
                shortened(&args.service, 60)
            );
        };
        let mut body = args.data.unwrap_or_default();
        if !args.entity_id.is_empty() {
            body.insert("entity_id".to_owned(), entities(&args.entity_id)?);
        }
        Ok(Self {
            service,
            body: Value::Object(body),
        })
    }

    /// What a person is asked.
    pub(super) fn summary(&self) -> Phrase {
        let service = ("service", self.service.to_string());
        let entities = match &self.body["entity_id"] {
            Value::String(id) => id.clone(),
            Value::Array(ids) => {
                let ids = ids.iter().filter_map(Value::as_str).join(", ");
                shortened(&ids, 120)
            }
            _ => return Phrase::new(PhraseCode::CallHome, [service]),
        };
        Phrase::new(PhraseCode::CallHomeFor, [service, ("entities", entities)])
    }
}

/// One id, or several with commas between, as the API takes them.
fn entities(text: &str) -> Result<Value, ToolError> {
    let ids = text
        .split(',')
        .map(Id::of_entity)
        .collect::<Result<Vec<_>, _>>()?;
    match ids.as_slice() {
        [one] => Ok(one.to_string().into()),
        many if many.len() <= MAX_ENTITIES => Ok(many.iter().map(Id::to_string).collect()),
        _ => Err(ToolError(format!(
            "more than {MAX_ENTITIES} entities in one call; name an area or a group instead"
        ))),
    }
}

pub(super) fn history_hours(hours: Option<u64>) -> Result<u8, ToolError> {
    match hours.map_or(Ok(DEFAULT_HOURS), u8::try_from) {
        Ok(hours @ 1..=MAX_HOURS) => Ok(hours),
        _ => Err(ToolError(format!("hours must be from 1 to {MAX_HOURS}"))),
    }
}

/// The name of a domain, or nothing; what stands in no name of Home Assistant's is refused.
pub(super) fn domain(text: &str) -> Result<String, ToolError> {
    let name = text.trim().trim_end_matches('.').to_ascii_lowercase();
    refuse_if!(
        !name.is_empty() && !is_slug(&name),
        "`{}` is no domain; domains are light, switch, climate, sensor and the like",
        shortened(text, 60)
    );
    Ok(name)
}

fn is_slug(text: &str) -> bool {
    (1..=255).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}
