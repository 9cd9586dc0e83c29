//! The executors that a plan names in so many words. The engine makes `SELF` of a step whose
//! tool or profile is not there; this is what the model wrote before that.

use std::fmt;

/// An executor as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Tool(String),
    Agent(String),
    Itself,
}

impl Named {
    /// Whether it is one of these.
    pub(crate) fn is_in(&self, tools: &[String], profiles: &[String]) -> bool {
        match self {
            Self::Tool(name) => tools.contains(name),
            Self::Agent(id) => profiles.contains(id),
            Self::Itself => true,
        }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(name) => write!(f, "the tool {name}"),
            Self::Agent(id) => write!(f, "the profile {id}"),
            Self::Itself => f.write_str("itself"),
        }
    }
}

/// `TOOL: name`, `AGENT: id` and `SELF` in a plan, in order.
pub(crate) fn executors(plan: &str) -> Vec<Named> {
    let is_mark = |c: char| c.is_whitespace() || matches!(c, '`' | '*' | '[' | '"' | '(');
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name_after = |rest: &str| -> String {
        let rest = rest.trim_start_matches(is_mark);
        rest.chars().take_while(|c| is_name(*c)).collect()
    };
    let mut found = Vec::new();
    for (at, _) in plan.char_indices() {
        let starts_a_word = !plan[..at].chars().next_back().is_some_and(is_name);
        let rest = &plan[at..];
        if !starts_a_word {
            continue;
        }
        if let Some(rest) = rest.strip_prefix("TOOL:") {
            found.push(Named::Tool(name_after(rest)));
        } else if let Some(rest) = rest.strip_prefix("AGENT:") {
            found.push(Named::Agent(name_after(rest)));
        } else if rest
            .strip_prefix("SELF")
            .is_some_and(|rest| !rest.starts_with(is_name))
        {
            found.push(Named::Itself);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executors_are_found_however_they_are_set() {
        let plan = "1. Read it (TOOL: filesystem)\n2. Look around [AGENT: `secretary`]\n\
                    3. Sum up — **SELF**\n4. MYSELF, SELFISH, TOOL: teleport";
        let found = executors(plan);
        let expected = [
            Named::Tool("filesystem".to_owned()),
            Named::Agent("secretary".to_owned()),
            Named::Itself,
            Named::Tool("teleport".to_owned()),
        ];
        assert_eq!(found, expected);
        let (tools, profiles) = (["filesystem".to_owned()], ["secretary".to_owned()]);
        let known: Vec<bool> = found
            .iter()
            .map(|named| named.is_in(&tools, &profiles))
            .collect();
        assert_eq!(known, [true, true, true, false]);
    }
}
