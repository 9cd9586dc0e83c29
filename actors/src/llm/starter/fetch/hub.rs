//! The model hub: one file over HTTP, taken up again where it broke off.

use std::time::Duration;

use futures_util::StreamExt;
use reqwest::header::{CONTENT_RANGE, RANGE};
use reqwest::{Client, Response, StatusCode};
use tokio::fs::{File, OpenOptions};
use tokio::io::AsyncWriteExt;

use super::Fetch;
use crate::https;

const SOURCE: &str = "the model hub";

/// A network that has no way out often says so by silence; the packages wait behind this.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// For the hub's answer, redirects and all.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// For each gap in the file itself.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// How often a transfer that breaks off is taken up again. Only a try that brought something
/// is followed by another.
const TRIES: usize = 8;

pub(super) async fn fetch(fetch: &Fetch, hub: &str) -> Result<(), String> {
    let [repository, revision, file] = fetch.model.hub;
    let url = format!("{hub}/{repository}/resolve/{revision}/{file}");
    let client = https::client()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .build()
        .map_err(|error| reason(&error))?;
    let mut have = received(fetch).await;
    for _ in 0..TRIES {
        let broken = match receive(fetch, &client, &url, have).await {
            Ok(()) => return fetch.accept(fetch.beside("part")).await,
            Err(broken) => broken,
        };
        let now = received(fetch).await;
        if now <= have {
            return Err(broken);
        }
        have = now;
    }
    Err("it broke off too often; fetch again to go on".to_owned())
}

/// Bytes that an earlier try left.
async fn received(fetch: &Fetch) -> u64 {
    tokio::fs::metadata(fetch.beside("part"))
        .await
        .map_or(0, |part| part.len())
}

/// Receives what is missing of the file.
async fn receive(fetch: &Fetch, client: &Client, url: &str, have: u64) -> Result<(), String> {
    let size = fetch.model.size;
    if have == size {
        return Ok(());
    }
    fetch.show(SOURCE, have);
    let mut request = client.get(url);
    if (1..size).contains(&have) {
        request = request.header(RANGE, format!("bytes={have}-"));
    }
    let response = tokio::time::timeout(ANSWER_TIMEOUT, request.send())
        .await
        .map_err(|_| format!("no answer within {} s", ANSWER_TIMEOUT.as_secs()))?
        .map_err(|error| reason(&error))?;
    let (mut file, mut have) = match response.status() {
        StatusCode::PARTIAL_CONTENT if starts_at(&response, have) => {
            (open(fetch, OpenOptions::new().append(true)).await?, have)
        }
        // The whole file, from its start.
        StatusCode::OK => {
            let mut options = OpenOptions::new();
            let options = options.write(true).create(true).truncate(true);
            (open(fetch, options).await?, 0)
        }
        status => return Err(format!("HTTP {status}")),
    };
    let mut body = response.bytes_stream();
    while let Some(piece) = body.next().await {
        let piece = match piece {
            Ok(piece) => piece,
            Err(error) => {
                // What came is kept for the next try.
                file.flush().await.map_err(|error| error.to_string())?;
                return Err(reason(&error));
            }
        };
        have += piece.len() as u64;
        if have > size {
            drop(file);
            let _ = tokio::fs::remove_file(fetch.beside("part")).await;
            return Err("the file there is larger than the model".to_owned());
        }
        file.write_all(&piece)
            .await
            .map_err(|error| error.to_string())?;
        fetch.show(SOURCE, have);
    }
    file.sync_all().await.map_err(|error| error.to_string())?;
    if have == size {
        Ok(())
    } else {
        Err(format!("it ended after {have} of {size} bytes"))
    }
}

async fn open(fetch: &Fetch, options: &OpenOptions) -> Result<File, String> {
    options
        .open(fetch.beside("part"))
        .await
        .map_err(|error| error.to_string())
}

fn starts_at(response: &Response, have: u64) -> bool {
    response
        .headers()
        .get(CONTENT_RANGE)
        .and_then(|range| range.to_str().ok())
        .is_some_and(|range| range.starts_with(&format!("bytes {have}-")))
}

fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        "it does not answer in time".to_owned()
    } else {
        https::innermost(error).to_string()
    }
}
