//! What a command is given, as data: it crosses to the processes that carry it out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use itertools::Itertools as _;
use serde::{Deserialize, Serialize};

use super::groups::Group;
use super::uids::Uids;
use super::user::SandboxUser;
use super::{Fence, Order};

/// An order in the terms of the processes that carry it out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Job {
    /// With the whole environment, and with everything that may be read.
    pub order: Order,
    /// Where the kernel keeps it within its limits.
    pub group: Option<Group>,
    pub landlock: bool,
    /// In namespaces of its own, and with a file system of its own.
    pub namespaces: bool,
    pub user: Option<SandboxUser>,
    /// Whom commands may have run as before: what they left in the workspace is its user's now.
    pub former: Vec<Uids>,
    pub deny_signals: bool,
    /// Where the kernel's rules for writing do not hold it.
    pub deny_truncate: bool,
    /// Away from the terminal of whoever started us: what the command reads comes over the socket
    /// on standard input, and how it ended goes back there. Otherwise it has the terminal and the
    /// standard input that there are.
    pub over_socket: bool,
}

impl Job {
    /// As closed as it can be, for a process that starts no command.
    pub(super) fn closed() -> Self {
        Self {
            deny_signals: true,
            deny_truncate: true,
            ..Self::default()
        }
    }

    /// Whether it is held at all.
    pub(super) fn is_inside(&self) -> bool {
        self.order.fence == Fence::Inside
    }

    /// The folders that may be changed; none where nothing is started.
    pub(super) fn writable(&self) -> Vec<PathBuf> {
        let folders = [&self.order.workspace, &self.order.scratch];
        let folders = folders.into_iter().filter(|it| !it.as_os_str().is_empty());
        folders.cloned().collect()
    }
}

/// The variable in which a job goes from process to process; a command does not have it.
pub(super) const JOB: &str = "NAVI_SANDBOX_POLICY";

/// Programs, libraries, and what of the machine's configuration they need to work at all.
const SYSTEM: &str = "
    /usr /bin /sbin /lib /lib32 /lib64 /libx32 /nix/store /run/current-system/sw
    /etc/alternatives /etc/bash.bashrc /etc/bash_completion.d /etc/ca-certificates
    /etc/ca-certificates.conf /etc/debian_version /etc/environment /etc/file /etc/fonts
    /etc/gitconfig /etc/group /etc/host.conf /etc/hosts /etc/inputrc /etc/java-21-openjdk
    /etc/java-17-openjdk /etc/ld.so.cache /etc/ld.so.conf /etc/ld.so.conf.d /etc/ld.so.preload
    /etc/locale.alias /etc/locale.conf /etc/localtime /etc/login.defs /etc/lsb-release /etc/magic
    /etc/mime.types /etc/nsswitch.conf /etc/os-release /etc/passwd /etc/perl /etc/php
    /etc/pki/tls/certs /etc/profile /etc/protocols /etc/python3 /etc/services /etc/shells
    /etc/ssl/certs /etc/ssl/openssl.cnf /etc/terminfo /etc/timezone /etc/vimrc /etc/wgetrc
    /etc/xdg";

/// Where all of `/proc` is the machine's, no other file of it: other programs' command lines stand
/// there.
const OF_PROC: &str = "/proc/cpuinfo /proc/loadavg /proc/meminfo /proc/stat /proc/version";

/// Devices that may be read and written.
pub(super) const DEVICES: &str = "/dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty";

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What every command may read: the system's, and these.
pub(super) fn readable(read_paths: &[PathBuf]) -> Vec<PathBuf> {
    let names = SYSTEM.split_whitespace().chain(OF_PROC.split_whitespace());
    let system = names.map(PathBuf::from);
    system.chain(read_paths.iter().cloned()).collect()
}

/// The whole environment of a command: nothing of the service's own is in it.
pub(super) fn environment(
    order: &Order,
    read_paths: &[PathBuf],
    user: Option<&SandboxUser>,
) -> BTreeMap<String, String> {
    let text = |path: &Path| path.display().to_string();
    let folders = read_paths.iter().chain(&order.read);
    // A folder of programs, or a toolchain with one.
    let programs = folders.flat_map(|folder| [folder.join("bin"), folder.clone()]);
    let programs = programs.filter(|path| path.ends_with("bin") && path.is_dir());
    let programs = programs.map(|path| text(&path));
    let path = programs.chain([PATH.to_owned()]).join(":");
    let name = user.map_or("navi", |user| &user.name);
    let usual = [
        ("PATH", path.as_str()),
        ("HOME", &text(&order.workspace)),
        ("TMPDIR", &text(&order.scratch)),
        ("LANG", "C.UTF-8"),
        ("TERM", "xterm-256color"),
        ("USER", name),
        ("LOGNAME", name),
        ("SHELL", "/bin/sh"),
        // Nobody turns pages or types a password here.
        ("PAGER", "cat"),
        ("GIT_PAGER", "cat"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("DEBIAN_FRONTEND", "noninteractive"),
    ];
    let usual = usual.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut environment = BTreeMap::from(usual);
    environment.extend(order.environment.clone());
    environment
}
