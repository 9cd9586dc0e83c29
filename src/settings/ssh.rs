//! Which hosts the ssh tool may reach, and where their keys are known from.

use std::path::Path;

use navi_actors::tools::ssh::SshConfig;
use navi_actors::tools::ssh::hosts::Hosts;

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
    match Hosts::read(&file, home.as_ref().map(|home| home.home_dir())) {
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
