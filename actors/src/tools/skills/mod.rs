//! Skills: folders with a `SKILL.md` (the Agent Skills format). Their names and descriptions
//! stand in the system prompt; the text itself is read when the model asks for it.

mod scan;
mod tool;

pub use self::scan::{Skill, SkillScan, scan};
pub use self::tool::{NAME, SkillTool};

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
mod tests;
