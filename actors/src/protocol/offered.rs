//! The tools of a call, shared by all calls that have the same.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use bytestring::ByteString;
use parking_lot::Mutex;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use super::prompt::PromptMessage;
use super::tool::ToolSpec;

/// See the module. Cheap to clone; what is made of them once is there for each further call. In
/// JSON a list of [`ToolSpec`].
#[derive(Clone, Debug, Default)]
pub struct OfferedTools(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    specs: Vec<ToolSpec>,
    made: Made,
}

/// What is made of the tools, as soon as somebody wants it.
#[derive(Debug, Default)]
pub struct Made {
    /// They in JSON.
    json: OnceLock<Box<RawValue>>,
    /// The SHA-256 of that, in hex, and that as it is kept of calls.
    pub kept: OnceLock<(String, ByteString)>,
    /// A guess at their tokens.
    pub tokens: OnceLock<u32>,
    /// As a request to a model server describes them.
    pub described: OnceLock<Box<RawValue>>,
    /// A hash and a size of each.
    pub parts: OnceLock<Vec<(u64, u32)>>,
    /// The system message that led them last, and what it was made of.
    pub led: Mutex<Option<(Lead, PromptMessage)>>,
}

/// What a system message is made of beside the tools of its call.
#[derive(Debug, PartialEq, Eq)]
pub struct Lead {
    pub persona: String,
    /// The profile's prompt, as it speaks of all of the profile's tools.
    pub prompt: String,
    /// Those tools' names.
    pub names: Vec<String>,
    pub added: String,
}

impl OfferedTools {
    #[must_use]
    pub fn made(&self) -> &Made {
        &self.0.made
    }

    /// They in JSON, written once.
    #[must_use]
    pub fn json(&self) -> &RawValue {
        let json = &self.0.made.json;
        // A tool always has a JSON text.
        json.get_or_init(|| to_raw_value(&self.0.specs).unwrap_or_default())
    }
}

impl From<Vec<ToolSpec>> for OfferedTools {
    fn from(specs: Vec<ToolSpec>) -> Self {
        Self(Arc::new(Shared {
            specs,
            made: Made::default(),
        }))
    }
}

impl Deref for OfferedTools {
    type Target = [ToolSpec];

    fn deref(&self) -> &[ToolSpec] {
        &self.0.specs
    }
}

impl PartialEq for OfferedTools {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

impl Serialize for OfferedTools {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for OfferedTools {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}

impl JsonSchema for OfferedTools {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Vec::<ToolSpec>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<ToolSpec>::json_schema(generator)
    }
}
