//! Navi's engine. Imports point one way:
//! `protocol ← domain ← {store, llm, tools} ← the actors`.

pub mod completion;
pub mod compression;
pub mod documents;
pub mod domain;
pub mod engine;
pub mod extensions;
pub mod faults;
pub mod feed;
pub mod files;
pub mod https;
pub mod hub;
pub mod inspect;
pub mod journal;
pub mod llm;
pub mod llm_actor;
pub mod mcp;
pub mod memory;
pub mod metrics;
pub mod models;
mod observing;
pub mod onlookers;
pub mod prices;
pub mod profiles;
pub mod programs;
pub mod protocol;
mod pulls;
pub mod replaying;
pub mod root;
pub mod run;
pub mod services;
pub mod session;
pub mod store;
pub mod supervision;
pub mod tools;
pub mod traces;
pub mod watchdog;
