//! Attacks on the doors: the process, its logins, its bodies and what it says.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use super::ward::SameUser;

/// Ends a program that a failed test leaves.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_program_of_the_same_user_reads_the_environment_of_the_service() {
    const CANARY: &str = "a-canary-of-the-environment";
    let same = SameUser::new();
    let mut service = same.command(&same.path("navi"), &[]);
    service
        .env("NAVI_API_TOKEN", CANARY)
        .env("NAVI_BIND", "127.0.0.1:0")
        .env("STARTER_MODEL", "off")
        .env("OLLAMA_HOST", "http://127.0.0.1:9")
        .stdout(Stdio::piped());
    let mut service = Ended(service.spawn().unwrap());
    let said = BufReader::new(service.0.stdout.take().unwrap()).lines();
    let mut said = said.map_while(Result::ok);
    assert!(said.any(|line| line.starts_with("Navi ")), "it started");
    let proc = format!("/proc/{}", service.0.id());
    let run = |file: &str| {
        let file = format!("{proc}/{file}");
        same.command(Path::new("cat"), &[&file]).output().unwrap()
    };
    let read = run("environ");
    let shown = String::from_utf8_lossy(&read.stdout).into_owned();
    assert!(
        !read.status.success() && !shown.contains(CANARY),
        "{read:?}"
    );
    // What tells nothing is read as ever: nobody else was asked.
    assert!(run("stat").status.success());
    drop(said);
}
