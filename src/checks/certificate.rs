//! The certificate of Navi's own TLS: whether it can be used, how long, and for which name.

use chrono::{DateTime, TimeDelta, Utc};
use navi_actors::protocol::phrase::{CheckName, Phrase, PhraseCode};
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;
use url::Url;
use x509_parser::parse_x509_certificate;

use super::Check;
use crate::settings::TlsFiles;
use crate::tls;

const NAME: CheckName = CheckName::Certificate;
/// Programs that renew certificates do so before.
const SOON: TimeDelta = TimeDelta::days(14);

/// What is in the files.
pub(super) fn check(files: &TlsFiles, public: Option<&Url>) -> Check {
    match tls::leaf(files) {
        Ok(certificate) => look(&certificate, files, public, Utc::now()),
        Err(why) => Check::broken(NAME, Phrase::plain(why), PhraseCode::NameCertificate),
    }
}

fn look(
    certificate: &CertificateDer<'_>,
    files: &TlsFiles,
    public: Option<&Url>,
    now: DateTime<Utc>,
) -> Check {
    let place = ("place", files.certificate.display().to_string());
    let renew = Phrase::new(PhraseCode::RenewCertificate, [place.clone()]);
    let time = |seconds| DateTime::from_timestamp(seconds, 0);
    let lasts = parse_x509_certificate(certificate)
        .ok()
        .and_then(|(_, parsed)| {
            let lasts = parsed.validity();
            time(lasts.not_before.timestamp()).zip(time(lasts.not_after.timestamp()))
        });
    let Some((begins, ends)) = lasts else {
        let untold = Phrase::new(PhraseCode::CertificateUntold, [place]);
        return Check::broken(NAME, untold, renew);
    };
    let at = |code, time: DateTime<Utc>| {
        let time = time.format("%Y-%m-%d %H:%M UTC").to_string();
        Phrase::new(code, [place.clone(), ("at", time)])
    };
    if now > ends {
        return Check::broken(NAME, at(PhraseCode::CertificateEnded, ends), renew);
    }
    if now < begins {
        let detail = at(PhraseCode::CertificateBegins, begins);
        return Check::broken(NAME, detail, PhraseCode::SetClockOrWait);
    }
    if let Some(name) = public.and_then(Url::host_str)
        && !is_for(certificate, name)
    {
        let name = Phrase::plain(name);
        return Check::broken(
            NAME,
            at(PhraseCode::CertificateOther, ends).with("name", name.clone()),
            Phrase::from(PhraseCode::GetCertificate).with("name", name),
        );
    }
    let until = at(PhraseCode::CertificateGood, ends);
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
