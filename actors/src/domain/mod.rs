//! Decisions as pure functions: no runtime, no I/O, no clock in sight.

pub mod context;
pub mod input;
pub mod model_choice;
pub mod recovery;
pub mod run_loop;
pub mod scratchpad;
pub mod title;
pub mod todo;

#[cfg(test)]
mod recovery_tests;
#[cfg(test)]
mod run_loop_tests;
