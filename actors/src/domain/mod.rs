//! Decisions as pure functions: no runtime, no I/O, no clock in sight.

pub mod breaker;
pub mod compression;
pub mod consent;
pub mod context;
pub mod cut;
pub mod demands;
pub mod files;
pub mod first_chunk;
pub mod guards;
pub mod hangs;
pub mod history;
pub mod import;
pub mod input;
pub mod lanes;
pub mod leaked_calls;
pub mod loopback;
pub mod memory;
pub mod model_calls;
pub mod model_choice;
pub mod names;
pub mod outside;
pub mod permissions;
pub mod plan_edit;
pub mod planning;
pub mod prices;
pub mod reasoning;
pub mod recovery;
pub mod redact;
pub mod replay;
pub mod run_loop;
pub mod scratchpad;
pub mod search;
pub mod session;
pub mod sharing;
pub mod shorten;
pub mod slots;
pub mod tags;
pub mod title;
pub mod todo;
pub mod turns;
pub mod unseen;

#[cfg(test)]
mod demands_tests;
#[cfg(test)]
mod recovery_tests;
#[cfg(test)]
mod run_loop_tests;
#[cfg(test)]
pub(crate) mod talk;
