//! A real OpenSSH server for tests: on a loopback port, with keys of its own in a directory that
//! goes with it. Its user is the one that runs the test.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "a test that cannot go on should say so by failing; not every test uses all of it"
)]

use std::fmt::Display;
use std::fs;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// See the module. Dropping it ends the server and all that it started.
#[derive(Debug)]
pub(crate) struct Sshd {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) port: u16,
    pub(crate) user: String,
    server: Child,
}

impl Sshd {
    pub(crate) fn start() -> Self {
        Self::with("ed25519", "ed25519")
    }

    /// With a host's key of one kind, and a user's of another.
    pub(crate) fn with(host: &str, user: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        key(&path("host_key"), host, &[]);
        key(&path("user_key"), user, &[]);
        fs::copy(path("user_key.pub"), path("authorized_keys")).unwrap();
        let user = output(Command::new("id").arg("-un"));
        if output(Command::new("id").arg("-u")) == "0" {
            // Where sshd as root parts with its rights; the package's service makes it otherwise.
            fs::create_dir_all("/run/sshd").unwrap();
        }
        for _ in 0..5 {
            let port = free_port();
            if let Some(server) = serve(dir.path(), port) {
                return Self {
                    dir,
                    port,
                    user,
                    server,
                };
            }
        }
        panic!("sshd did not start: {}", log(dir.path()));
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// What the server has written.
    pub(crate) fn log(&self) -> String {
        log(self.dir.path())
    }

    /// How often somebody has logged in.
    pub(crate) fn log_ins(&self) -> usize {
        self.log().matches("Accepted publickey").count()
    }

    /// Ends the server and its connections, and starts one with another host key on the same
    /// port.
    pub(crate) fn start_with_another_key(&mut self) {
        self.stop();
        for name in ["host_key", "host_key.pub"] {
            fs::remove_file(self.path(name)).unwrap();
        }
        key(&self.path("host_key"), "ed25519", &[]);
        self.start_again();
    }

    /// Ends the server and its connections.
    pub(crate) fn stop(&mut self) {
        // Its connections are processes in sessions of their own.
        let _ = Command::new("kill")
            .arg("-KILL")
            .args(descendants(self.server.id()))
            .stderr(Stdio::null())
            .status();
        let _ = self.server.kill();
        let _ = self.server.wait();
    }

    pub(crate) fn start_again(&mut self) {
        // Another test's program may have the port for a moment.
        wait_until("sshd starts again", || {
            let started = serve(self.dir.path(), self.port);
            let is_there = started.is_some();
            if let Some(server) = started {
                self.server = server;
            }
            is_there
        });
    }

    /// The host key's fingerprint, as ssh-keygen tells it.
    pub(crate) fn fingerprint(&self) -> String {
        let file = self.path("host_key.pub");
        let line = output(Command::new("ssh-keygen").arg("-lf").arg(file));
        line.split_whitespace().nth(1).unwrap().to_owned()
    }

    /// The host key as a line of a known_hosts file.
    pub(crate) fn known_hosts_line(&self) -> String {
        let key = fs::read_to_string(self.path("host_key.pub")).unwrap();
        let key: Vec<&str> = key.split_whitespace().take(2).collect();
        format!("[127.0.0.1]:{} {}\n", self.port, key.join(" "))
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.stop();
    }
}

/// An ssh agent of a test's own.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) socket: PathBuf,
    server: Child,
}

impl Agent {
    pub(crate) fn start(dir: &Path) -> Self {
        let socket = dir.join("agent");
        let server = Command::new("ssh-agent")
            .args(["-D", "-a"])
            .arg(&socket)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // The file is there a moment before anyone listens.
        wait_until("the agent listens", || UnixStream::connect(&socket).is_ok());
        Self { socket, server }
    }

    pub(crate) fn add(&self, key: &Path) {
        let mut add = Command::new("ssh-add");
        output(add.arg(key).env("SSH_AUTH_SOCK", &self.socket));
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Makes a key with ssh-keygen.
pub(crate) fn key(path: &Path, kind: &str, more: &[&str]) {
    let mut make = Command::new("ssh-keygen");
    make.args(["-q", "-t", kind, "-N", "", "-f"]).arg(path);
    // A passphrase among them wins.
    output(make.args(more));
}

/// Waits for something that another process does.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "not so: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn serve(dir: &Path, port: u16) -> Option<Child> {
    let config = dir.join("sshd_config");
    // A shell of the second level leaves the start files alone of whoever runs the tests.
    let here = dir.display();
    let settings = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {here}/host_key\n\
             AuthorizedKeysFile {here}/authorized_keys\nPidFile none\nStrictModes no\nUsePAM no\n\
             PermitRootLogin yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
             MaxStartups 100\nSetEnv SHLVL=2\nLogLevel VERBOSE\nPrintMotd no\nSubsystem sftp internal-sftp\n"
    );
    fs::write(&config, settings).unwrap();
    let sshd = ["/usr/sbin/sshd", "/usr/bin/sshd", "/usr/local/sbin/sshd"]
        .into_iter()
        .find(|path| Path::new(path).exists())
        .unwrap_or_else(|| panic!("there is no sshd: install openssh-server"));
    // By its own word: at the port another program may listen.
    let listens = || log(dir).matches("Server listening on 127.0.0.1").count();
    let listened = listens();
    let mut server = Command::new(sshd)
        .args(["-D", "-f"])
        .arg(&config)
        .arg("-E")
        .arg(dir.join("log"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut ended = false;
    wait_until("sshd listens, or cannot", || {
        ended = server.try_wait().unwrap().is_some();
        ended || listens() > listened
    });
    (!ended).then_some(server)
}

/// Every process that this one started, and those that they started.
fn descendants(of: impl Display) -> Vec<String> {
    let children = fs::read_to_string(format!("/proc/{of}/task/{of}/children"));
    let children = children.unwrap_or_default();
    let children = children.split_whitespace();
    children
        .flat_map(|child| [vec![child.to_owned()], descendants(child)].concat())
        .collect()
}

fn log(dir: &Path) -> String {
    fs::read_to_string(dir.join("log")).unwrap_or_default()
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
