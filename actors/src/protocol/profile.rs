//! Profiles: a domain's prompt, tools, model and behaviour flags (SPEC section 10).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A profile as its file gives it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    pub id: String,
    pub name: String,
    pub description: String,
    pub system_prompt: String,
    #[serde(default)]
    pub subagent_system_prompt: String,
    pub enabled_tools: Vec<String>,
    /// `enabled_tools` where empty.
    #[serde(default)]
    pub subagent_tools: Vec<String>,
    /// The backend that answers, where it can. Where absent, the first that can in the order of
    /// `LLM_BACKEND`, which begins with Ollama.
    #[serde(default)]
    pub llm_backend: Option<String>,
    /// As its backend calls it; Ollama where the profile names none. The default model where
    /// absent.
    #[serde(default)]
    pub model: Option<String>,
    pub temperature: f32,
    #[serde(default = "default_max_iterations")]
    pub max_iterations: u32,
    #[serde(default)]
    pub scratchpad_sections: Vec<String>,
    #[serde(default, flatten)]
    pub flags: ProfileFlags,
}

/// The behaviour flags of SPEC section 5.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProfileFlags {
    pub think_enabled: bool,
    pub iteration_budget_enabled: bool,
    pub planning_enabled: bool,
    pub planning_phase2_enabled: bool,
    pub goal_anchoring_enabled: bool,
    pub goal_anchoring_interval: u32,
    pub anti_stall_enabled: bool,
    pub anti_stall_threshold: u32,
    pub step_validation_enabled: bool,
    pub adaptive_replan_enabled: bool,
    pub subagent_planning_enabled: bool,
}

impl Default for ProfileFlags {
    fn default() -> Self {
        Self {
            think_enabled: true,
            iteration_budget_enabled: true,
            planning_enabled: false,
            planning_phase2_enabled: false,
            goal_anchoring_enabled: true,
            goal_anchoring_interval: 5,
            anti_stall_enabled: true,
            anti_stall_threshold: 8,
            step_validation_enabled: false,
            adaptive_replan_enabled: false,
            subagent_planning_enabled: false,
        }
    }
}

fn default_max_iterations() -> u32 {
    50
}
