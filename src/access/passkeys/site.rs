//! Where passkeys work: one origin, and the host that they are bound to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tracing::warn;
use url::{Host, Url};
use webauthn_rs::prelude::{Webauthn, WebauthnBuilder};

use super::ceremonies::PATIENCE;
use crate::tls::Wire;

/// See the module.
#[derive(Debug)]
pub(super) struct Site {
    /// The page's address, under which alone they work.
    pub(super) page: Url,
    pub(super) host: String,
    pub(super) webauthn: Webauthn,
}

impl Site {
    pub(super) fn new(page: Url) -> Option<Self> {
        let host = page.domain()?.to_owned();
        let built = WebauthnBuilder::new(&host, &page)
            .and_then(|builder| builder.rp_name("Navi").timeout(PATIENCE).build());
        match built {
            Ok(webauthn) => Some(Self {
                page,
                host,
                webauthn,
            }),
            Err(error) => {
                warn!(%error, %page, "there are no passkeys here");
                None
            }
        }
    }
}

/// The page's address where browsers offer passkeys: its public one where that is a name with
/// TLS, and else `localhost`, if that leads here. Browsers know none at an address of numbers. The
/// port is ours alone: other programs have pages on this machine, too.
pub(crate) fn page(public: Option<&Url>, address: SocketAddr, wire: Wire) -> Option<Url> {
    let offers = |url: &&Url| match url.host() {
        Some(Host::Domain(name)) => url.scheme() == "https" || name == "localhost",
        _ => false,
    };
    if let Some(public) = public.filter(offers) {
        return Some(public.clone());
    }
    let ip = address.ip();
    let leads_here = ip.is_unspecified()
        || [
            IpAddr::from(Ipv4Addr::LOCALHOST),
            Ipv6Addr::LOCALHOST.into(),
        ]
        .contains(&ip);
    let local = wire.url_of(&format!("localhost:{}", address.port()));
    local.parse().ok().filter(|_| leads_here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passkeys_work_where_browsers_offer_them() {
        let at = |public: Option<&str>, address: &str| {
            let public = public.map(|url| url.parse::<Url>().unwrap());
            let page = page(public.as_ref(), address.parse().unwrap(), Wire::Plain);
            page.map(|url| url.to_string())
        };
        let local = Some("http://localhost:8000/".to_owned());
        assert_eq!(at(None, "127.0.0.1:8000"), local);
        assert_eq!(at(None, "[::1]:8000"), local);
        assert_eq!(at(None, "0.0.0.0:8000"), local);
        assert_eq!(at(None, "192.168.1.2:8000"), None);
        assert_eq!(at(None, "127.0.0.2:8000"), None);
        let public = "https://home.example/navi";
        assert_eq!(at(Some(public), "127.0.0.1:8000").as_deref(), Some(public));
        for no in [
            "http://home.example/",
            "https://192.168.1.2/",
            "https://[fe80::1]/",
        ] {
            assert_eq!(at(Some(no), "127.0.0.1:8000"), local, "{no}");
        }
        let tls = page(None, "127.0.0.1:8000".parse().unwrap(), Wire::Tls);
        assert_eq!(tls.unwrap().as_str(), "https://localhost:8000/");
    }

    #[test]
    fn a_site_is_bound_to_its_host_and_not_to_its_path() {
        let site = Site::new("https://home.example:8443/navi/".parse().unwrap()).unwrap();
        assert_eq!(site.host, "home.example");
        let origins = site.webauthn.get_allowed_origins();
        assert_eq!(
            origins[0].origin().ascii_serialization(),
            "https://home.example:8443"
        );
        assert!(Site::new("https://192.168.1.2/".parse().unwrap()).is_none());
    }
}
