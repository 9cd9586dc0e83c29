//! Where traces are sent.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::read::Reader;
use super::{addresses, keys};

/// A collector that takes OTLP over HTTP.
#[derive(Clone, Debug)]
pub(crate) struct CollectorSettings {
    /// Where it takes traces.
    pub(crate) url: Url,
    /// Sent with each request; their values are shown by nothing.
    pub(crate) headers: HeaderMap,
}

/// None where traces are off, and together with problems.
pub(super) fn collector(r: &mut Reader<'_>) -> Option<CollectorSettings> {
    let url = r.optional(&keys::OTLP_ENDPOINT, endpoint);
    let headers = r.optional(&keys::OTLP_HEADERS, headers);
    Some(CollectorSettings {
        url: url?,
        headers: headers.unwrap_or_default(),
    })
}

/// The collector's base URL, as OpenTelemetry's own variable has it.
fn endpoint(text: &str) -> Result<Url, String> {
    const TRACES: &str = "/v1/traces";
    let base = addresses::service(text, "http://localhost:4318")?;
    let base = base.as_str().trim_end_matches('/');
    if base.ends_with(TRACES) {
        return Err(format!("a URL without {TRACES}, which is added to it"));
    }
    Url::parse(&format!("{base}{TRACES}")).map_err(|error| error.to_string())
}

/// `name=value,name=value`.
fn headers(text: &str) -> Result<HeaderMap, String> {
    let expected = || "headers, as in name=value,name=value".to_owned();
    let mut headers = HeaderMap::new();
    for header in text.split(',') {
        let (name, value) = header.split_once('=').ok_or_else(expected)?;
        let name = HeaderName::try_from(name.trim()).map_err(|_| expected())?;
        let mut value = HeaderValue::try_from(value.trim()).map_err(|_| expected())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}
