//! The same call three times running is refused (DESIGN section 5).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fingerprint;

/// So many equal calls running are one too many: this one is refused, and each after it.
const REFUSED_FROM: u32 = 3;

/// The calls of a run, as far as the last one goes back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepeatGuard {
    last: u64,
    /// How often the last call came running; 0 before the first.
    times: u32,
}

impl RepeatGuard {
    /// Counts a call. Gives the result that the model gets in its place, where it is refused.
    pub fn on_call(&mut self, name: &str, arguments: &Value) -> Option<String> {
        let call = fingerprint(name, arguments);
        if self.times == 0 || self.last != call {
            self.last = call;
            self.times = 0;
        }
        self.times = self.times.saturating_add(1);
        (self.times >= REFUSED_FROM).then(|| {
            format!(
                "refused: you have made this same call of `{name}` with the same arguments {} times running, and its result is above; use that result, change the arguments, or do something else",
                self.times
            )
        })
    }
}
