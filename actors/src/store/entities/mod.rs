//! The tables as the query builder sees them. They never leave the store.
#![allow(
    unreachable_pub,
    reason = "the derives make their items pub; this module is private"
)]

/// No table has relations for the query builder: a join says itself what it goes by.
macro_rules! unrelated {
    () => {
        #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
        pub enum Relation {}

        impl ActiveModelBehavior for ActiveModel {}
    };
}

pub(super) mod api_token;
pub(super) mod approval;
pub(super) mod branch;
pub(super) mod chunk;
pub(super) mod consent_entry;
pub(super) mod consent_rule;
pub(super) mod event;
pub(super) mod identity;
pub(super) mod invitation;
pub(super) mod memory_fact;
pub(super) mod memory_forgotten;
pub(super) mod memory_former;
pub(super) mod memory_summary;
pub(super) mod message;
pub(super) mod model_call;
pub(super) mod passkey;
pub(super) mod person_limit;
pub(super) mod power;
pub(super) mod prompt_part;
pub(super) mod queued_message;
pub(super) mod record_line;
pub(super) mod recovery_code;
pub(super) mod run;
pub(super) mod sandbox_uid;
pub(super) mod session;
pub(super) mod session_file;
pub(super) mod session_link;
pub(super) mod session_memory;
pub(super) mod session_person;
pub(super) mod tool_pin;
pub(super) mod used_token;
pub(super) mod user;
pub(super) mod web_login;
