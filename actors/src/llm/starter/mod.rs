//! The starter: a model in this very process, so that a fresh machine answers without any
//! server. Pure Rust, on the processor alone.
//!
//! A request goes from [`Backend::chat`](super::Backend::chat) to the engine's thread (`engine`), where a
//! `ChatModel` lays it out as a prompt (`prompt`, `template`, `tokenizer`), reads what its cache
//! does not hold yet (`decoder`, `cache`), and chooses token by token (`sampler`). Where tools are
//! offered a reply is text until it begins a call (`reply`), and from there on is held to the
//! tools' schemas (`grammar`, `tool_schema`); where a form is demanded, all of it is held to that. Files come from
//! `fetch` and are read with distrust (`gguf`, `architecture`, `weights`). How many threads
//! compute is for `main` to say, through the crate `navi-threads`.

mod architecture;
mod backend;
mod cache;
mod chat_model;
mod choice;
mod decoder;
mod detokenizer;
mod engine;
mod error;
mod fetch;
mod gguf;
mod grammar;
mod inspect;
mod models;
mod ops;
mod prompt;
mod reply;
mod resources;
mod sampler;
mod shield;
mod template;
mod tokenizer;
mod tool_schema;
mod weights;

#[cfg(test)]
mod decoder_tests;
#[cfg(test)]
mod reference_decoder;
#[cfg(test)]
mod tiny_model;

use std::path::PathBuf;
use std::time::Duration;

pub use self::backend::StarterBackend;
pub use self::choice::{StarterChoice, UnknownChoice};
pub use self::fetch::{FetchError, FetchState};
pub use self::models::{STARTER_MODELS, StarterModel};

/// How the starter is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StarterConfig {
    /// `STARTER_MODEL`.
    pub model: StarterChoice,
    /// Where fetched models lie. Made when the first one is fetched.
    pub models_dir: PathBuf,
    /// How long a model stays in memory after its last request.
    pub idle: Duration,
}
