//! Conversations that are shared: attacks by who takes part, who did, and who has a link.

mod links;
mod people;
mod said;
mod together;
