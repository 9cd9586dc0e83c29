//! What is said of somebody who comes in, and what comes of it here.

use navi_actors::domain::names;
use navi_actors::protocol::people::UserRole;
use serde_json::{Map, Value};

use crate::settings::{ProviderSettings, SignOnSettings};

/// What is said of somebody, as far as Navi goes by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    /// Fit to be a name here.
    pub(super) name: String,
    /// Of mail, where the provider verified it.
    pub(super) address: Option<String>,
    pub(super) groups: Vec<String>,
}

/// What is read of somebody's groups.
const MOST_GROUPS: usize = 1_000;
/// The longest address of mail (RFC 5321, 4.5.3.1.3).
const MAX_ADDRESS: usize = 254;

impl Said {
    pub(super) fn by_provider(claims: &Map<String, Value>, settings: &ProviderSettings) -> Self {
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let address = text("email").and_then(address);
        let is_verified = match claims.get("email_verified") {
            Some(Value::Bool(it)) => *it,
            // As some say it.
            Some(Value::String(it)) => it == "true",
            _ => false,
        };
        let names = ["preferred_username", "name", "nickname", "email"];
        let name = names.into_iter().find_map(|it| name(text(it)?));
        let groups = settings.groups_claims.iter();
        Self {
            name: name.unwrap_or_else(nameless),
            address: address.filter(|_| is_verified),
            groups: groups
                .filter_map(|path| at(claims, path))
                .flat_map(words)
                .take(MOST_GROUPS)
                .collect(),
        }
    }

    pub(super) fn by_proxy(person: &str, groups: &str) -> Self {
        let groups = groups.split(',').map(str::trim).map(str::to_owned);
        Self {
            name: name(person).unwrap_or_else(nameless),
            address: None,
            groups: groups
                .filter(|group| !group.is_empty())
                .take(MOST_GROUPS)
                .collect(),
        }
    }

    /// Whether they may come in, and as what, where somebody says that.
    ///
    /// # Errors
    /// Why they may not.
    pub(super) fn admitted(
        &self,
        settings: &SignOnSettings,
        domains: &[String],
    ) -> Result<Option<UserRole>, &'static str> {
        let is_in = |group: &String| self.groups.contains(group);
        if !settings.groups.is_empty() && !settings.groups.iter().any(is_in) {
            return Err("they are in no group that is let in here");
        }
        let domain = self
            .address
            .as_deref()
            .and_then(|address| Some(address.rsplit_once('@')?.1));
        let is_let_in = |domain: &str| domains.iter().any(|it| it == domain);
        if !domains.is_empty() && !domain.is_some_and(is_let_in) {
            return Err("they have no verified address in a domain that is let in here");
        }
        let roles = settings.roles.iter().filter(|(_, group)| is_in(group));
        let role = roles.map(|(role, _)| *role).max();
        if role.is_none() && !settings.roles.is_empty() {
            return Err("none of their groups gives them a role here");
        }
        Ok(role)
    }
}

/// An address in one form; none where it is no plain one.
fn address(text: &str) -> Option<String> {
    let (_, domain) = text.split_once('@')?;
    let is_plain = text.len() <= MAX_ADDRESS
        && !domain.is_empty()
        && !domain.contains('@')
        && text.chars().all(|c| !c.is_control() && !c.is_whitespace());
    is_plain.then(|| text.to_lowercase())
}

/// What somebody may be called here: of an address what stands in front.
fn name(text: &str) -> Option<String> {
    let text = text.split('@').next().unwrap_or_default().trim();
    let short: String = text.chars().take(names::MAX_CHARS).collect();
    names::checked(&short).ok()
}

fn nameless() -> String {
    "somebody".to_owned()
}

/// A claim by its name, or by a path into objects.
fn at<'a>(claims: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    if let Some(found) = claims.get(path) {
        return Some(found);
    }
    let (first, rest) = path.split_once('.')?;
    at(claims.get(first)?.as_object()?, rest)
}

/// A text, a list of texts, or an object by the names in it.
fn words(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => {
            let texts = items.iter().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        }
        Value::Object(fields) => fields.keys().cloned().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn provider(claims: &[&str]) -> ProviderSettings {
        ProviderSettings {
            issuer: "https://login.example".to_owned(),
            client_id: "navi".to_owned(),
            client_secret: None,
            name: "Login".to_owned(),
            scopes: Vec::new(),
            groups_claims: claims.iter().map(|it| (*it).to_owned()).collect(),
            domains: Vec::new(),
            link_by_email: false,
            page: String::new(),
            callback: String::new(),
        }
    }

    fn said(claims: &Value, paths: &[&str]) -> Said {
        Said::by_provider(claims.as_object().unwrap(), &provider(paths))
    }

    #[test]
    fn groups_stand_in_many_ways() {
        let claims = json!({
            "groups": ["a", "b", 3], "role": "c", "realm_access": {"roles": ["d"]},
            "urn:x": {"e": {"1": "x"}}, "https://x.example/y": ["f"],
        });
        let paths = [
            "groups",
            "role",
            "realm_access.roles",
            "urn:x",
            "https://x.example/y",
            "none",
        ];
        assert_eq!(said(&claims, &paths).groups, ["a", "b", "c", "d", "e", "f"]);
    }

    #[test]
    fn an_address_counts_where_it_was_verified() {
        let of = |email: &str, verified: Value| {
            said(&json!({"email": email, "email_verified": verified}), &[]).address
        };
        assert_eq!(
            of("Anna@Example.org", json!(true)).as_deref(),
            Some("anna@example.org")
        );
        assert!(of("anna@example.org", json!("true")).is_some());
        for no in [json!(false), json!("false"), json!(1), Value::Null] {
            assert_eq!(of("anna@example.org", no), None);
        }
        assert_eq!(of("anna", json!(true)), None);
        assert_eq!(of("a b@example.org", json!(true)), None);
    }

    #[test]
    fn a_name_is_fit_to_be_one() {
        let of = |claims: Value| said(&claims, &[]).name;
        assert_eq!(of(json!({"preferred_username": "anna"})), "anna");
        assert_eq!(of(json!({"email": "anna@example.org"})), "anna");
        assert_eq!(
            of(json!({"preferred_username": "\u{202e}x", "name": "Anna K."})),
            "Anna K."
        );
        assert_eq!(of(json!({})), "somebody");
    }

    #[test]
    fn roles_groups_and_domains_say_who_comes_in() {
        let mut settings = SignOnSettings::default();
        let groups = |groups: &str| Said::by_proxy("anna", groups);
        assert_eq!(groups("").admitted(&settings, &[]), Ok(None));
        settings.roles = vec![
            (UserRole::Admin, "navi-admins".to_owned()),
            (UserRole::User, "family".to_owned()),
        ];
        let admitted = |said: &str, settings: &SignOnSettings| groups(said).admitted(settings, &[]);
        assert_eq!(
            admitted("family, navi-admins", &settings),
            Ok(Some(UserRole::Admin))
        );
        assert_eq!(admitted("family", &settings), Ok(Some(UserRole::User)));
        assert!(admitted("Family", &settings).is_err());
        settings.groups = vec!["here".to_owned()];
        assert!(admitted("family", &settings).is_err());
        assert!(admitted("family,here", &settings).is_ok());

        let settings = SignOnSettings::default();
        let domains = ["example.org".to_owned()];
        let with = |email: &str| {
            let claims = json!({"email": email, "email_verified": true});
            said(&claims, &[]).admitted(&settings, &domains)
        };
        assert!(with("a@example.org").is_ok());
        for no in [
            "a@evil.example",
            "a@sub.example.org",
            "a@example.org@evil.example",
        ] {
            assert!(with(no).is_err(), "{no}");
        }
    }
}
