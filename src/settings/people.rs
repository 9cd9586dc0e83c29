//! Accounts, and from where Navi may be reached.

use std::net::SocketAddr;

use actix_web::http::uri::Authority;
use ipnet::IpNet;
use navi_actors::protocol::limits::{
    FILES_MB, PersonLimits, RUNS, SESSIONS, TABS, TOKENS_A_DAY, UPLOADS,
};
use url::Url;

use super::read::{self, Reader};
use super::{addresses, keys};

/// Who comes in, and from where.
#[derive(Clone, Debug)]
pub(crate) struct PeopleSettings {
    /// Whether people sign in; otherwise there is one user, whose machine this is.
    pub(crate) accounts: bool,
    pub(crate) public: Option<PublicUrl>,
    /// Whose `X-Forwarded-For` counts.
    pub(crate) proxies: Vec<IpNet>,
    /// What each person has at the most, where there are several.
    pub(crate) limits: PersonLimits,
}

impl PeopleSettings {
    /// Looks at where a socket listens that Navi did not open herself.
    ///
    /// # Errors
    /// It could be reached by people who do not sign in: where it has to listen instead.
    pub(crate) fn check_socket(&self, address: SocketAddr) -> Result<(), String> {
        check_reach(self.accounts, address)
    }
}

/// Where Navi is for those who come from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PublicUrl {
    /// With a slash at its end.
    pub(crate) url: Url,
    /// Host, and port where it is no usual one, as browsers send them.
    pub(crate) authority: String,
}

impl PublicUrl {
    pub(crate) fn is_secure(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// As a browser says it.
    pub(crate) fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// What stands before each path outside; empty where nothing does.
    pub(crate) fn prefix(&self) -> &str {
        self.url.path().trim_end_matches('/')
    }

    /// What opens the page and signs in.
    pub(crate) fn link(&self, secret: &str) -> String {
        format!("{}login/{secret}", self.url)
    }
}

/// `None` only together with problems.
pub(super) fn people(r: &mut Reader<'_>) -> Option<PeopleSettings> {
    let choices = [("local", false), ("off", false), ("on", true)];
    let accounts = r.required(&keys::ACCOUNTS, read::choice(&choices));
    let public = r.optional(&keys::PUBLIC_URL, |text| {
        if accounts == Some(false) {
            let lacking =
                "none, as there are no accounts: set NAVI_ACCOUNTS=on, so that people sign in";
            return Err(lacking.to_owned());
        }
        public_url(text)
    });
    let proxies = r.optional(&keys::TRUSTED_PROXIES, networks);
    let limits = limits(r);
    Some(PeopleSettings {
        accounts: accounts?,
        public,
        proxies: proxies.unwrap_or_default(),
        limits: limits?,
    })
}

/// `None` only together with problems.
fn limits(r: &mut Reader<'_>) -> Option<PersonLimits> {
    let runs = r.required(&keys::PERSON_RUNS, read::number(RUNS));
    let uploads = r.required(&keys::PERSON_UPLOADS, read::number(UPLOADS));
    let sessions = r.required(&keys::PERSON_SESSIONS, read::number(SESSIONS));
    let files_mb = r.required(&keys::PERSON_FILES, read::number(FILES_MB));
    let tokens_a_day = r.required(&keys::PERSON_TOKENS, read::number(TOKENS_A_DAY));
    let tabs = r.required(&keys::PERSON_TABS, read::number(TABS));
    Some(PersonLimits {
        runs: runs?,
        uploads: uploads?,
        sessions: sessions?,
        files_mb: files_mb?,
        tokens_a_day: tokens_a_day?,
        tabs: tabs?,
    })
}

/// Where Navi listens: elsewhere than on loopback only where people sign in.
pub(super) fn bind(accounts: bool) -> impl FnOnce(&str) -> Result<SocketAddr, String> {
    move |text| {
        let address = addresses::bind(text)?;
        check_reach(accounts, address)?;
        Ok(address)
    }
}

fn check_reach(accounts: bool, address: SocketAddr) -> Result<(), String> {
    if accounts || address.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    Err(
        "a loopback address (127.0.0.1, ::1 or localhost), as there are no accounts, so that \
         anyone who could reach another address could use Navi. Set NAVI_ACCOUNTS=on, so that \
         people sign in, or forward the port with ssh"
            .to_owned(),
    )
}

fn public_url(text: &str) -> Result<PublicUrl, String> {
    let expected =
        || "a URL, as in https://navi.example.org or https://example.org/navi".to_owned();
    let mut url = Url::parse(text).map_err(|_| expected())?;
    let plain = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    let Some(host) = url.host_str().filter(|_| plain) else {
        return Err(expected());
    };
    if !matches!(url.scheme(), "http" | "https") {
        return Err(expected());
    }
    let authority = match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    if authority.parse::<Authority>().is_err() {
        return Err(expected());
    }
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    Ok(PublicUrl { url, authority })
}

fn networks(text: &str) -> Result<Vec<IpNet>, String> {
    let words = text.split(',').map(str::trim);
    let networks = words.map(|word| {
        word.parse::<IpNet>()
            .or_else(|_| word.parse::<std::net::IpAddr>().map(IpNet::from))
    });
    let networks: Result<Vec<IpNet>, _> = networks.collect();
    networks.map_err(|_| "addresses or networks, as in 127.0.0.1, 10.0.0.0/8".to_owned())
}
