//! What crosses a boundary: ids, commands, events, messages.
//!
//! Everything here is plain data with one JSON form. No I/O and no actix: the
//! page's types, the events' schema and the store's rows all come from these.

pub mod approval;
pub mod change;
pub mod chat;
pub mod command;
pub mod context;
pub mod error;
pub mod event;
pub mod extension;
pub mod file;
pub mod ids;
pub mod import;
pub mod inspect;
pub mod limits;
pub mod memory;
pub mod message;
pub mod offered;
pub mod people;
pub mod phrase;
pub mod plan;
pub mod powers;
pub mod profile;
pub mod prompt;
pub mod search;
pub mod session;
pub mod status;
pub mod todo;
pub mod tool;
pub mod workspace;
