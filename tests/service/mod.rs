//! The service from outside: its commands, its doors, its sockets.

mod branches;
mod changes;
mod commands;
mod consent;
mod doors;
mod extensions;
mod files;
mod imports;
mod login;
mod memory;
mod metrics;
mod mind;
mod pages;
mod profiles;
mod reloads;
mod runs;
mod search;
mod session_model;
mod setup;
mod slots;
mod small_models;
mod sockets;
mod spending;
mod traces;
mod windows;
mod workspace;
