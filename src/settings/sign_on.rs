//! Sign-on: by a provider of OpenID Connect, and by a proxy in front that says who somebody is.

use std::net::IpAddr;

use actix_web::http::header::{self, HeaderName};
use navi_actors::protocol::people::UserRole;
use navi_actors::protocol::phrase::{Phrase, PhraseCode};
use url::{Host, Url};

use super::keys::{self, Key};
use super::people::{PeopleSettings, PublicUrl};
use super::read::{self, Reader};
use super::{Secret, header_text};

/// Where a provider sends a browser back to, under the public address.
const CALLBACK: &str = "api/sign-on/callback";
/// The longest issuer, in bytes.
const MAX_ISSUER: usize = 500;
/// The longest name of a provider, in characters.
const MAX_NAME: usize = 40;

/// Who else says who somebody is, and what comes of that.
#[derive(Clone, Debug, Default)]
pub(crate) struct SignOnSettings {
    pub(crate) provider: Option<ProviderSettings>,
    pub(crate) proxy: Option<ProxySettings>,
    /// What becomes of somebody unknown. None: they are refused.
    pub(crate) join: Option<UserRole>,
    /// Which group makes whom what. Empty: they stay what they are.
    pub(crate) roles: Vec<(UserRole, String)>,
    /// Only who is in one of these comes in. Empty: everybody.
    pub(crate) groups: Vec<String>,
}

/// A provider of OpenID Connect.
#[derive(Clone, Debug)]
pub(crate) struct ProviderSettings {
    /// As it names itself, letter by letter.
    pub(crate) issuer: String,
    pub(crate) client_id: String,
    /// None: a public client, which has only PKCE.
    pub(crate) client_secret: Option<Secret>,
    /// What the page calls it.
    pub(crate) name: String,
    pub(crate) scopes: Vec<String>,
    /// Which claims hold groups; a dot leads into an object.
    pub(crate) groups_claims: Vec<String>,
    /// Of verified addresses of mail. Empty: of whatever address.
    pub(crate) domains: Vec<String>,
    pub(crate) link_by_email: bool,
    /// Where Navi is, and where a browser is sent back to.
    pub(crate) page: String,
    pub(crate) callback: String,
}

/// A proxy in front that says who somebody is.
#[derive(Clone, Debug)]
pub(crate) struct ProxySettings {
    pub(crate) user_header: HeaderName,
    pub(crate) groups_header: Option<HeaderName>,
}

impl SignOnSettings {
    fn exists(&self) -> bool {
        self.provider.is_some() || self.proxy.is_some()
    }
}

pub(super) fn sign_on(r: &mut Reader<'_>, people: &PeopleSettings) -> Option<SignOnSettings> {
    let settings = SignOnSettings {
        provider: provider(r, people),
        proxy: proxy(r, people),
        join: r.required(&keys::SIGN_ON_JOIN, read::choice(&JOIN))?,
        roles: r.optional(&keys::SIGN_ON_ROLES, roles).unwrap_or_default(),
        groups: r
            .optional(&keys::SIGN_ON_GROUPS, |text| list(text, ';'))
            .unwrap_or_default(),
    };
    let wanted = r.text(&keys::OIDC_ISSUER).is_some() || r.text(&keys::PROXY_USER).is_some();
    if !settings.exists() && !wanted {
        for key in [
            &keys::SIGN_ON_JOIN,
            &keys::SIGN_ON_ROLES,
            &keys::SIGN_ON_GROUPS,
        ] {
            refuse_alone(
                r,
                key,
                "there is neither NAVI_OIDC_ISSUER nor NAVI_PROXY_USER_HEADER",
            );
        }
    }
    let by_groups = !settings.roles.is_empty() || !settings.groups.is_empty();
    let nameless = |proxy: &ProxySettings| proxy.groups_header.is_none();
    if by_groups && settings.proxy.as_ref().is_some_and(nameless) {
        r.problem(
            "NAVI_SIGN_ON_ROLES and NAVI_SIGN_ON_GROUPS go by groups: set NAVI_PROXY_GROUPS_HEADER, in which the proxy names them"
                .to_owned(),
        );
    }
    Some(settings)
}

const JOIN: [(&str, Option<UserRole>); 4] = [
    ("no", None),
    ("off", None),
    ("guest", Some(UserRole::Guest)),
    ("user", Some(UserRole::User)),
];

/// What holds for a thing that is not there is a mistake.
fn refuse_alone(r: &mut Reader<'_>, key: &Key, why: &str) {
    if r.is_set(key) && r.text(key).is_some() {
        r.problem(format!("{} is set, but {why}", key.variable));
    }
}

fn provider(r: &mut Reader<'_>, people: &PeopleSettings) -> Option<ProviderSettings> {
    let Some(issuer) = r.text(&keys::OIDC_ISSUER) else {
        for key in [
            &keys::OIDC_CLIENT_ID,
            &keys::OIDC_CLIENT_SECRET,
            &keys::OIDC_NAME,
            &keys::OIDC_SCOPES,
            &keys::OIDC_GROUPS_CLAIM,
            &keys::OIDC_DOMAINS,
            &keys::OIDC_LINK_BY_EMAIL,
        ] {
            refuse_alone(r, key, "NAVI_OIDC_ISSUER, whose it is, is not");
        }
        return None;
    };
    if !people.accounts {
        r.problem(
            "NAVI_OIDC_ISSUER is set, but there are no accounts: set NAVI_ACCOUNTS=on, so that people sign in"
                .to_owned(),
        );
    }
    if people.accounts && people.public.is_none() && r.text(&keys::PUBLIC_URL).is_none() {
        r.problem(
            "NAVI_OIDC_ISSUER is set, but NAVI_PUBLIC_URL is not: the provider has to know where to send a browser back to"
                .to_owned(),
        );
    }
    if r.text(&keys::OIDC_CLIENT_ID).is_none() {
        r.problem(
            "NAVI_OIDC_ISSUER is set, but NAVI_OIDC_CLIENT_ID is not: the provider gives it out"
                .to_owned(),
        );
    }
    let url = r.optional(&keys::OIDC_ISSUER, issuer_url);
    let client_id = r.optional(&keys::OIDC_CLIENT_ID, short);
    let client_secret = r
        .optional(&keys::OIDC_CLIENT_SECRET, short)
        .map(Secret::new);
    let name = r.optional(&keys::OIDC_NAME, name);
    let scopes = r.required(&keys::OIDC_SCOPES, scopes);
    let groups_claims = r.required(&keys::OIDC_GROUPS_CLAIM, |text| list(text, ','));
    let domains = r.optional(&keys::OIDC_DOMAINS, domains);
    let link_by_email = r.required(&keys::OIDC_LINK_BY_EMAIL, read::boolean);
    let page = people.public.as_ref().map(page);
    let (url, page) = (url?, page?);
    Some(ProviderSettings {
        name: name.unwrap_or_else(|| url.host_str().unwrap_or_default().to_owned()),
        issuer,
        client_id: client_id?,
        client_secret,
        scopes: scopes?,
        groups_claims: groups_claims?,
        domains: domains.unwrap_or_default(),
        link_by_email: link_by_email?,
        callback: format!("{page}{CALLBACK}"),
        page,
    })
}

fn proxy(r: &mut Reader<'_>, people: &PeopleSettings) -> Option<ProxySettings> {
    if r.text(&keys::PROXY_USER).is_none() {
        refuse_alone(r, &keys::PROXY_GROUPS, "NAVI_PROXY_USER_HEADER is not");
        return None;
    }
    if !people.accounts {
        r.problem(
            "NAVI_PROXY_USER_HEADER is set, but there are no accounts: set NAVI_ACCOUNTS=on, so that people sign in"
                .to_owned(),
        );
    }
    if people.proxies.is_empty() {
        r.problem(
            "NAVI_PROXY_USER_HEADER is set, but NAVI_TRUSTED_PROXIES is not: whoever reaches Navi could say that they are anybody"
                .to_owned(),
        );
    }
    if people.proxies.iter().any(|net| net.prefix_len() == 0) {
        r.problem(
            "NAVI_TRUSTED_PROXIES holds everybody: with NAVI_PROXY_USER_HEADER, whoever reaches Navi could say that they are anybody"
                .to_owned(),
        );
    }
    let user_header = r.optional(&keys::PROXY_USER, header_name);
    let groups_header = r.optional(&keys::PROXY_GROUPS, header_name);
    Some(ProxySettings {
        user_header: user_header?,
        groups_header,
    })
}

/// What is not wrong enough to stop for.
pub(super) fn warnings(settings: &SignOnSettings) -> Option<Phrase> {
    let issuer = Url::parse(&settings.provider.as_ref()?.issuer).ok()?;
    let is_near = match issuer.host()? {
        Host::Domain(name) => name == "localhost",
        Host::Ipv4(address) => IpAddr::from(address).is_loopback(),
        Host::Ipv6(address) => IpAddr::from(address).is_loopback(),
    };
    (issuer.scheme() == "http" && !is_near).then(|| PhraseCode::OidcPlain.into())
}

/// The page's address, with a slash at its end.
fn page(public: &PublicUrl) -> String {
    let url = public.url.as_str();
    if url.ends_with('/') {
        url.to_owned()
    } else {
        format!("{url}/")
    }
}

fn issuer_url(text: &str) -> Result<Url, String> {
    let expected = || "the provider's issuer, as in https://login.example.org".to_owned();
    let url = Url::parse(text).map_err(|_| expected())?;
    let plain = matches!(url.scheme(), "http" | "https")
        && url.host_str().is_some()
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    if plain && text.len() <= MAX_ISSUER {
        Ok(url)
    } else {
        Err(expected())
    }
}

fn short(text: &str) -> Result<String, String> {
    if text.len() <= 2_000 && !text.chars().any(char::is_control) {
        Ok(text.to_owned())
    } else {
        Err("up to 2000 characters, none of them a control character".to_owned())
    }
}

fn name(text: &str) -> Result<String, String> {
    if text.chars().count() <= MAX_NAME && !text.chars().any(char::is_control) {
        Ok(text.to_owned())
    } else {
        Err(format!("a name of up to {MAX_NAME} characters"))
    }
}

fn scopes(text: &str) -> Result<Vec<String>, String> {
    let words = text.split([' ', ',']).filter(|word| !word.is_empty());
    let mut scopes: Vec<String> = words.map(header_text).collect::<Result<_, _>>()?;
    // Without it there is nothing that says who somebody is. It is asked for first.
    scopes.retain(|scope| scope != "openid");
    Ok(scopes)
}

fn domains(text: &str) -> Result<Vec<String>, String> {
    let domains = list(text, ',')?.into_iter().map(|domain| {
        let domain = domain.to_ascii_lowercase();
        let is_one = !domain.contains(['@', ' ', '/', '*']) && domain.contains('.');
        is_one.then_some(domain)
    });
    domains
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| "domains of addresses, as in example.org, example.com".to_owned())
}

/// Groups may have commas and equals signs in them, as a directory's names have.
fn roles(text: &str) -> Result<Vec<(UserRole, String)>, String> {
    let expected =
        || "roles and groups, as in admin=navi-admins; user=family; user=friends".to_owned();
    let roles = list(text, ';')?.into_iter().map(|one| {
        let (role, group) = one.split_once('=')?;
        let role = match role.trim() {
            "guest" => UserRole::Guest,
            "user" => UserRole::User,
            "admin" => UserRole::Admin,
            _ => return None,
        };
        let group = group.trim();
        (!group.is_empty()).then(|| (role, group.to_owned()))
    });
    roles.collect::<Option<Vec<_>>>().ok_or_else(expected)
}

fn list(text: &str, separator: char) -> Result<Vec<String>, String> {
    let words = text.split(separator).map(str::trim);
    let words: Vec<String> = words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    if words.is_empty() {
        return Err(format!("names, separated by \"{separator}\""));
    }
    Ok(words)
}

/// None that means something else.
fn header_name(text: &str) -> Result<HeaderName, String> {
    let name = text.parse::<HeaderName>();
    let name = name.map_err(|_| "the name of a header, as in Remote-User".to_owned())?;
    let others = [
        header::AUTHORIZATION,
        header::COOKIE,
        header::HOST,
        header::ORIGIN,
        header::USER_AGENT,
    ];
    if others.contains(&name) || name.as_str().starts_with("sec-") {
        return Err("a header of its own, as in Remote-User".to_owned());
    }
    Ok(name)
}
