//! Which hosts the ssh tool may reach, and where their keys are known from.

use std::path::{Path, PathBuf};

use navi_actors::tools::ssh::SshConfig;
use navi_actors::tools::ssh::hosts;

use super::keys;
use super::read::{self, Reader};

/// None where there is no hosts file, and together with problems. The agent's socket is not a
/// setting.
pub(super) fn ssh(r: &mut Reader<'_>, base: &Path) -> Option<SshConfig> {
    let known_hosts = r.required(&keys::SSH_KNOWN_HOSTS, read::path_in(base));
    let more_known_hosts = r.optional(&keys::SSH_MORE_KNOWN_HOSTS, read::path_in(base));
    let file = r.required(&keys::SSH_HOSTS, read::path_in(base))?;
    // The file that nobody named need not be there.
    if !r.is_set(&keys::SSH_HOSTS) && !file.exists() {
        return None;
    }
    let home = directories::BaseDirs::new();
    match hosts::read(&file, home.as_ref().map(|home| home.home_dir())) {
        Ok(hosts) if hosts.is_empty() => None,
        Ok(hosts) => Some(SshConfig {
            hosts,
            known_hosts: known_hosts?,
            more_known_hosts,
            agent_socket: None,
        }),
        Err(problem) => {
            r.problem(format!("SSH_HOSTS_FILE (tools.ssh_hosts_file): {problem}"));
            None
        }
    }
}

/// What Navi logs in with: the keys that the hosts file names, those that ssh itself would use
/// and has in its agent, and the way to that.
pub(super) fn private_keys(r: &mut Reader<'_>, base: &Path) -> Vec<PathBuf> {
    let home = directories::BaseDirs::new().map(|dirs| dirs.home_dir().to_owned());
    // What is wrong with the file is told where the hosts are read.
    let hosts = r
        .optional(&keys::SSH_HOSTS, read::path_in(base))
        .and_then(|file| hosts::read(&file, home.as_deref()).ok())
        .unwrap_or_default();
    let named = hosts.iter().filter_map(|host| host.key.clone());
    let folder = home.iter().map(|home| home.join(".ssh"));
    let agent = std::env::var_os("SSH_AUTH_SOCK").map(PathBuf::from);
    named.chain(folder).chain(agent).collect()
}
