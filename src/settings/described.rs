//! What each setting is for, in the words that stand above its value in `config/default.toml`.

use super::layers::DEFAULTS;

/// What a variable sets; empty where nothing is said of it.
pub(super) fn description(variable: &str) -> String {
    let name = format!("# [{variable}] ");
    let mut lines = DEFAULTS
        .lines()
        .skip_while(|line| !line.starts_with(&name))
        .map_while(|line| line.strip_prefix("# "));
    let first = lines.next().unwrap_or_default();
    let first = first.trim_start_matches(&name["# ".len()..]);
    std::iter::once(first)
        .chain(lines)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::keys;
    use super::*;

    #[test]
    fn every_setting_says_what_it_is_for() {
        for key in keys::ALL {
            let said = description(key.variable);
            assert!(!said.is_empty() && !said.contains('['), "{}", key.variable);
        }
        assert_eq!(
            description("NAVI_SEARXNG_URL"),
            "A SearXNG, as in http://localhost:8888. Its settings.yml must list json under \
             search.formats."
        );
    }
}
