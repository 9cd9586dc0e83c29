//! Answers, read up to a limit that holds for what they unpack to.

use futures_util::StreamExt as _;
use itertools::Itertools as _;
use reqwest::Response;
use reqwest::header::CONTENT_ENCODING;

use super::send::failed;
use super::url::authority;
use crate::tools::ToolError;
use crate::tools::output::{human_size, shortened};

/// A body of no more than `limit` bytes. One that is longer, that breaks off, or that is packed in
/// a way nobody asked for is an error.
pub(crate) async fn read(response: Response, limit: usize) -> Result<Vec<u8>, ToolError> {
    let host = authority(response.url());
    // The client takes away what it undoes.
    let packings = response.headers().get_all(CONTENT_ENCODING).iter();
    let packings = packings
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
        .join(", ");
    if !matches!(packings.as_str(), "" | "identity") {
        refuse!(
            "the answer of {host} is encoded in {}, which was not asked for",
            shortened(&packings, 60)
        );
    }
    let broke_off = format!("the answer of {host} broke off");
    let too_large = || {
        ToolError(format!(
            "the answer of {host} is larger than {}, which is all that is read",
            human_size(limit as u64)
        ))
    };
    // A length that is told too small changes nothing: what comes is counted.
    let told = response.content_length().unwrap_or(0);
    if told > limit as u64 {
        return Err(too_large());
    }
    let mut body = Vec::with_capacity(usize::try_from(told).unwrap_or(0).min(64 * 1024));
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| failed(&error, &host, &broke_off))?;
        if body.len() + chunk.len() > limit {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
