//! `NAVI_DOORS`: which ways in are open beside the page and its API.

/// A way in that may be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// Server-sent events.
    Events,
    /// OpenAI's Chat Completions and Responses.
    Openai,
    /// Ollama's API.
    Ollama,
    /// The Agent Client Protocol, which `navi acp` speaks with editors.
    Acp,
    /// Navi as a server of the Model Context Protocol, over HTTP and as `navi mcp`.
    Mcp,
}

const NAMES: [(&str, Door); 5] = [
    ("events", Door::Events),
    ("openai", Door::Openai),
    ("ollama", Door::Ollama),
    ("acp", Door::Acp),
    ("mcp", Door::Mcp),
];

/// Those that are open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenDoors(Vec<Door>);

impl OpenDoors {
    /// Every one.
    pub(crate) fn all() -> Self {
        Self(NAMES.iter().map(|(_, door)| *door).collect())
    }

    pub(crate) fn contains(&self, door: Door) -> bool {
        self.0.contains(&door)
    }
}

pub(super) fn open(text: &str) -> Result<OpenDoors, String> {
    let named = |word: &str| {
        let mut names = NAMES.iter();
        names.find(|(name, _)| name.eq_ignore_ascii_case(word.trim()))
    };
    let doors: Option<OpenDoors> = match text.to_ascii_lowercase().as_str() {
        "all" => Some(OpenDoors::all()),
        "none" => Some(OpenDoors(Vec::new())),
        words => {
            let doors: Option<Vec<Door>> =
                words.split(',').map(|word| Some(named(word)?.1)).collect();
            doors.map(OpenDoors)
        }
    };
    doors.ok_or_else(|| {
        let names = NAMES.map(|(name, _)| name).join(", ");
        format!("all, none, or of {names}, with commas between them")
    })
}
