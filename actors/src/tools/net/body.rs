//! Answers, read up to a limit that holds for what they unpack to as well.

use std::io::{self, Read as _};

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use futures_util::StreamExt as _;
use itertools::Itertools as _;
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, HeaderMap};

use super::send::failed;
use super::url::authority;
use crate::tools::ToolError;
use crate::tools::output::{human_size, shortened};

/// The `Accept-Encoding` that [`read`] can undo.
pub(crate) const ACCEPTED: &str = "gzip, deflate";

/// How a body was packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Plain,
    Gzip,
    Deflate,
}

/// A body of no more than `limit` bytes, packed and unpacked. One that is longer, that breaks off,
/// or that is packed in a way nobody asked for is an error.
pub(crate) async fn read(response: Response, limit: usize) -> Result<Vec<u8>, ToolError> {
    let host = authority(response.url());
    let packing = packing(response.headers(), &host)?;
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
    if packing == Packing::Plain {
        return Ok(body);
    }
    match tokio::task::spawn_blocking(move || unpack(&body, packing, limit)).await {
        Ok(Ok(Some(body))) => Ok(body),
        Ok(Ok(None)) => Err(too_large()),
        Ok(Err(error)) => refuse!("{broke_off}: it does not unpack: {error}"),
        Err(error) => Err(ToolError(format!("{broke_off}: {error}"))),
    }
}

fn packing(headers: &HeaderMap, host: &str) -> Result<Packing, ToolError> {
    let told = headers.get_all(CONTENT_ENCODING).iter();
    let told = told
        .map(|value| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase())
        .join(", ");
    let names = told.split(',').map(str::trim);
    let names = names.filter(|name| !matches!(*name, "" | "identity"));
    match names.collect::<Vec<_>>().as_slice() {
        [] => Ok(Packing::Plain),
        ["gzip" | "x-gzip"] => Ok(Packing::Gzip),
        ["deflate"] => Ok(Packing::Deflate),
        // Packed twice is a way to make a bomb of a bomb; nobody does it in good faith.
        _ => refuse!(
            "the answer of {host} is encoded in {}, which was not asked for",
            shortened(&told, 60)
        ),
    }
}

/// None where it comes to more than `limit`.
fn unpack(body: &[u8], packing: Packing, limit: usize) -> io::Result<Option<Vec<u8>>> {
    let read = |packed: &mut dyn io::Read| {
        let mut unpacked = Vec::new();
        packed.take(limit as u64 + 1).read_to_end(&mut unpacked)?;
        Ok((unpacked.len() <= limit).then_some(unpacked))
    };
    match packing {
        Packing::Plain => read(&mut &*body),
        Packing::Gzip => read(&mut MultiGzDecoder::new(body)),
        // The standard means zlib's form; some servers send the bare one.
        Packing::Deflate => read(&mut ZlibDecoder::new(body))
            .or_else(|_: io::Error| read(&mut DeflateDecoder::new(body))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says so by failing")]
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    fn packed(packing: Packing, text: &[u8]) -> Vec<u8> {
        match packing {
            Packing::Plain => text.to_vec(),
            Packing::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            Packing::Deflate => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
        }
    }

    #[test]
    fn what_was_packed_comes_back() {
        for packing in [Packing::Plain, Packing::Gzip, Packing::Deflate] {
            let body = packed(packing, b"hello");
            assert_eq!(unpack(&body, packing, 5).unwrap().unwrap(), b"hello");
            assert_eq!(unpack(&body, packing, 4).unwrap(), None);
        }
        let mut bare = DeflateEncoder::new(Vec::new(), Compression::best());
        bare.write_all(b"hello").unwrap();
        let bare = bare.finish().unwrap();
        assert_eq!(
            unpack(&bare, Packing::Deflate, 9).unwrap().unwrap(),
            b"hello"
        );
        assert!(unpack(b"no gzip at all", Packing::Gzip, 9).is_err());
    }

    #[test]
    fn what_nobody_asked_for_is_refused() {
        for (encodings, expected) in [
            (vec![], Ok(Packing::Plain)),
            (vec!["identity"], Ok(Packing::Plain)),
            (vec!["GZIP"], Ok(Packing::Gzip)),
            (vec!["br"], Err("br")),
            (vec!["gzip, gzip"], Err("gzip, gzip")),
            (vec!["gzip", "deflate"], Err("gzip, deflate")),
        ] {
            let mut headers = HeaderMap::new();
            for encoding in &encodings {
                headers.append(CONTENT_ENCODING, encoding.parse().unwrap());
            }
            let expected = expected.map_err(|encoding| {
                let text = "the answer of host is encoded in";
                ToolError(format!("{text} {encoding}, which was not asked for"))
            });
            assert_eq!(packing(&headers, "host"), expected, "{encodings:?}");
        }
    }
}
