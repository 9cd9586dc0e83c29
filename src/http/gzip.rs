//! Answers that are large and mostly words, compressed where the client takes that.

use std::io::Write as _;

use actix_web::http::header::{self, AcceptEncoding, ContentEncoding, Encoding, Header as _};
use actix_web::{HttpRequest, HttpResponse};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

/// Whether gzip is what the client likes best of what there is.
pub(super) fn is_taken(request: &HttpRequest) -> bool {
    let accepted = AcceptEncoding::parse(request).ok();
    let offered = [Encoding::gzip(), Encoding::identity()];
    accepted.and_then(|accepted| accepted.negotiate(offered.iter())) == Some(Encoding::gzip())
}

/// As JSON. For what holds no secret: how well one compresses tells something of it.
pub(super) fn json(request: &HttpRequest, body: &impl Serialize) -> HttpResponse {
    let mut response = HttpResponse::Ok();
    response.insert_header((header::VARY, "accept-encoding"));
    let compressed = is_taken(request).then(|| compressed(body).ok()).flatten();
    match compressed {
        Some(bytes) => response
            .insert_header(ContentEncoding::Gzip)
            .content_type("application/json")
            .body(bytes),
        None => response.json(body),
    }
}

fn compressed(body: &impl Serialize) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&serde_json::to_vec(body)?)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use actix_web::body::to_bytes;
    use actix_web::test::TestRequest;
    use flate2::read::GzDecoder;

    use super::*;

    #[actix_web::test]
    async fn what_is_large_is_compressed_for_who_takes_it() {
        let words = vec!["again and again"; 500];
        let plain = serde_json::to_vec(&words).unwrap();
        for (accepts, is_compressed) in [("gzip, br", true), ("br", false), ("gzip;q=0", false)] {
            let request = TestRequest::default().insert_header(("accept-encoding", accepts));
            let response = json(&request.to_http_request(), &words);
            assert_eq!(
                response.headers().contains_key(header::CONTENT_ENCODING),
                is_compressed
            );
            let body = to_bytes(response.into_body()).await.unwrap();
            let mut said = Vec::new();
            if is_compressed {
                assert!(body.len() * 10 < plain.len());
                GzDecoder::new(&body[..]).read_to_end(&mut said).unwrap();
            } else {
                said.extend_from_slice(&body);
            }
            assert_eq!(said, plain, "{accepts}");
        }
    }
}
