//! The certificate of Navi's own TLS: whether it can be used, how long, and for which name.

use chrono::{DateTime, TimeDelta, Utc};
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;
use url::Url;
use x509_parser::parse_x509_certificate;

use super::Check;
use crate::settings::TlsFiles;
use crate::tls;

const NAME: &str = "certificate";
/// Programs that renew certificates do so before.
const SOON: TimeDelta = TimeDelta::days(14);

/// What is in the files.
pub(super) fn check(files: &TlsFiles, public: Option<&Url>) -> Check {
    match tls::leaf(files) {
        Ok(certificate) => look(&certificate, files, public, Utc::now()),
        Err(why) => Check::broken(
            NAME,
            why,
            "NAVI_TLS_CERTIFICATE and NAVI_TLS_KEY name the files, in PEM",
        ),
    }
}

fn look(
    certificate: &CertificateDer<'_>,
    files: &TlsFiles,
    public: Option<&Url>,
    now: DateTime<Utc>,
) -> Check {
    let place = files.certificate.display();
    let renew = format!("have it renewed: Navi reads {place} again by itself");
    let time = |seconds| DateTime::from_timestamp(seconds, 0);
    let lasts = parse_x509_certificate(certificate)
        .ok()
        .and_then(|(_, parsed)| {
            let lasts = parsed.validity();
            time(lasts.not_before.timestamp()).zip(time(lasts.not_after.timestamp()))
        });
    let Some((begins, ends)) = lasts else {
        return Check::broken(
            NAME,
            format!("{place} says no time until which it is good"),
            renew,
        );
    };
    let until = format!(
        "{place} is good until {}",
        ends.format("%Y-%m-%d %H:%M UTC")
    );
    if now > ends {
        let detail = format!("{place} ended on {}", ends.format("%Y-%m-%d %H:%M UTC"));
        return Check::broken(NAME, detail, renew);
    }
    if now < begins {
        let detail = format!(
            "{place} is good from {} on",
            begins.format("%Y-%m-%d %H:%M UTC")
        );
        return Check::broken(
            NAME,
            detail,
            "set the machine's clock, or wait for that day",
        );
    }
    if let Some(name) = public.and_then(Url::host_str)
        && !is_for(certificate, name)
    {
        return Check::broken(
            NAME,
            format!("{until}, and not for {name}, which NAVI_PUBLIC_URL names"),
            format!("get one for {name}, or name in NAVI_PUBLIC_URL what it is for"),
        );
    }
    if ends - now < SOON {
        return Check::warning(NAME, until, renew);
    }
    Check::fine(NAME, until)
}

fn is_for(certificate: &CertificateDer<'_>, name: &str) -> bool {
    let name = ServerName::try_from(name.trim_start_matches('[').trim_end_matches(']'));
    let parsed = ParsedCertificate::try_from(certificate);
    matches!((name, parsed), (Ok(name), Ok(parsed)) if verify_server_name(&parsed, &name).is_ok())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use rustls::pki_types::pem::PemObject as _;

    use super::*;
    use crate::checks::Level;

    /// For `home.example` and names under it, good for the year from 2026-11-27 on.
    const PEM: &str = include_str!("fixtures/home.example.pem");

    #[test]
    fn a_certificate_is_told_with_its_end_and_its_name() {
        let certificate = CertificateDer::from_pem_slice(PEM.as_bytes()).unwrap();
        let files = TlsFiles {
            certificate: "live.pem".into(),
            key: "live.key".into(),
        };
        let at = |public: Option<&str>, now: &str| {
            let public = public.map(|url| url.parse::<Url>().unwrap());
            look(&certificate, &files, public.as_ref(), now.parse().unwrap())
        };
        let home = Some("https://home.example/navi");
        let good = at(home, "2027-01-01T00:00:00Z");
        assert_eq!(good.level, Level::Fine, "{good:?}");
        assert!(good.detail.starts_with("live.pem is good until 2027-11-27"));
        assert_eq!(at(None, "2027-01-01T00:00:00Z").level, Level::Fine);
        let inner = Some("https://navi.home.example/");
        assert_eq!(at(inner, "2027-01-01T00:00:00Z").level, Level::Fine);
        assert_eq!(at(home, "2027-11-20T00:00:00Z").level, Level::Warning);
        for (public, now, why) in [
            (home, "2027-12-01T00:00:00Z", "ended on 2027-11-27"),
            (home, "2026-11-01T00:00:00Z", "good from 2026-11-27"),
            (
                Some("https://other.example"),
                "2027-01-01T00:00:00Z",
                "not for other.example",
            ),
            (
                Some("https://[::1]:8443"),
                "2027-01-01T00:00:00Z",
                "not for [::1]",
            ),
        ] {
            let check = at(public, now);
            assert_eq!(check.level, Level::Broken, "{check:?}");
            assert!(check.detail.contains(why), "{check:?}");
        }
    }
}
