//! TLS of Navi's own: where its certificate is.

use std::path::{Path, PathBuf};

use super::keys;
use super::people::PublicUrl;
use super::read::{self, Reader};

/// A certificate with its chain, and its key, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// `None` where there is none, too. What is in the files is looked at where they are used.
pub(super) fn files(
    r: &mut Reader<'_>,
    base: &Path,
    public: Option<&PublicUrl>,
) -> Option<TlsFiles> {
    let certificate = r.optional(&keys::TLS_CERTIFICATE, read::path_in(base));
    let key = r.optional(&keys::TLS_KEY, read::path_in(base));
    let is_set = [&keys::TLS_CERTIFICATE, &keys::TLS_KEY].map(|key| r.text(key).is_some());
    if is_set[0] != is_set[1] {
        let (one, other) = if is_set[0] {
            (&keys::TLS_CERTIFICATE, &keys::TLS_KEY)
        } else {
            (&keys::TLS_KEY, &keys::TLS_CERTIFICATE)
        };
        r.problem(format!(
            "{} is set but {} is not: a certificate needs its key, and a key its certificate",
            one.variable, other.variable
        ));
    }
    if is_set[0] && public.is_some_and(|public| !public.is_secure()) {
        r.problem(
            "NAVI_PUBLIC_URL begins with http:// but Navi has TLS of its own (NAVI_TLS_CERTIFICATE): \
             browsers keep no cookie of it there; write https://"
                .to_owned(),
        );
    }
    Some(TlsFiles {
        certificate: certificate?,
        key: key?,
    })
}
