//! Whom commands run as, and a workspace as that user's property.
//!
//! The service is root there and reads and writes everything anyway. What it made, a command
//! has to be able to change: it becomes the user's before each command.

use std::io;
use std::path::Path;

use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, MetadataExt as _};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, chownat, fchown, openat};
use rustix::process::{Gid, Uid};
use rustix::thread::CapabilitySet;
use serde::{Deserialize, Serialize};

use super::uids::Uids;
use crate::protocol::phrase::{Phrase, PhraseCode, Trouble};

/// Whom commands of a root run as that names nobody, where the machine has that account.
const USUAL: &str = "nobody";

/// The setting of a root that wants no such account: each command asks then.
const NO_USER: &str = "none";

/// As many entries as are looked at, and levels.
const MAX_ENTRIES: usize = 200_000;
const MAX_LEVELS: usize = 128;

/// An account that commands run as instead of root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxUser {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
}

impl SandboxUser {
    /// Whom the commands of one person run as, where each has an id of their own.
    pub(super) fn of_person(id: u32) -> Self {
        Self {
            name: format!("navi-{id}"),
            uid: id,
            gid: id,
        }
    }
}

/// Whether this process is root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The account that a setting names, and the usual one where it names none. None where there is
/// nothing to drop from: a service that is no root runs commands as itself.
pub(super) fn wanted(setting: Option<&str>) -> Result<Option<SandboxUser>, Trouble> {
    if !is_root() {
        return Ok(None);
    }
    match setting {
        None if may_mount() => Ok(find(USUAL).ok()),
        None | Some(NO_USER) => Ok(None),
        Some(name) => find(name).map(Some),
    }
}

/// Whether this process may put a workspace where another user reaches it: the folders above it
/// are root's alone as a rule.
fn may_mount() -> bool {
    rustix::thread::capabilities(None)
        .is_ok_and(|own| own.effective.contains(CapabilitySet::SYS_ADMIN))
}

/// The account by its name or number.
///
/// # Errors
/// Where there is none, or it is root.
pub fn find(name: &str) -> Result<SandboxUser, Trouble> {
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = |code| Phrase::new(code, [("name", name.to_owned())]);
    match find_in(&accounts, name) {
        None => Err(Trouble::new(
            named(PhraseCode::NoSuchUser),
            PhraseCode::NameUser,
        )),
        Some(user) if user.uid == 0 || user.gid == 0 => Err(Trouble::new(
            named(PhraseCode::UserIsRoot),
            PhraseCode::NameOtherUser,
        )),
        Some(user) => Ok(user),
    }
}

fn find_in(accounts: &str, wanted: &str) -> Option<SandboxUser> {
    let number: Option<u32> = wanted.parse().ok();
    let user = |name: &str, uid, gid| SandboxUser {
        name: name.to_owned(),
        uid,
        gid,
    };
    let known = accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let uid: u32 = fields.nth(1)?.parse().ok()?;
        let gid: u32 = fields.next()?.parse().ok()?;
        (name == wanted || Some(uid) == number).then(|| user(name, uid, gid))
    });
    // A number needs no entry: containers often have none.
    let unlisted = number.filter(|uid| *uid < u32::MAX);
    known.or_else(|| unlisted.map(|uid| user(&uid.to_string(), uid, uid)))
}

/// Gives a folder and what is in it to the user, as far as it belongs to root, or to a user whom
/// commands ran as before (`former`). No link is followed: a command that runs already may swap a
/// folder for one. A file with another name elsewhere is left alone, since it would change its
/// owner there too.
pub(super) fn give(folder: &Path, user: &SandboxUser, former: &[Uids]) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root = openat(CWD, folder, flags, Mode::empty())?;
    let (uid, gid) = (Some(Uid::from_raw(user.uid)), Some(Gid::from_raw(user.gid)));
    fchown(&root, uid, gid)?;
    let mut seen = 0;
    let mut open = vec![(Dir::from_std_file(root.into()), 0)];
    while let Some((directory, level)) = open.pop() {
        for entry in directory.entries().into_iter().flatten().flatten() {
            let name = entry.file_name();
            seen += 1;
            if seen > MAX_ENTRIES {
                return Ok(());
            }
            // What vanished meanwhile needs no owner.
            let Ok(metadata) = directory.symlink_metadata(&name) else {
                continue;
            };
            let owner = metadata.uid();
            let is_ours = owner == 0 || former.iter().any(|ids| ids.has(owner));
            if is_ours && owner != user.uid && (metadata.is_dir() || metadata.nlink() == 1) {
                let _ = chownat(&directory, &name, uid, gid, AtFlags::SYMLINK_NOFOLLOW);
            }
            if metadata.is_dir()
                && level < MAX_LEVELS
                && let Ok(inner) = directory.open_dir_nofollow(&name)
            {
                open.push((inner, level + 1));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_found_by_name_and_number() {
        let accounts = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65533:n:/:/bin/false\n";
        let nobody = SandboxUser {
            name: "nobody".to_owned(),
            uid: 65534,
            gid: 65533,
        };
        assert_eq!(find_in(accounts, "nobody"), Some(nobody.clone()));
        assert_eq!(find_in(accounts, "65534"), Some(nobody));
        assert_eq!(find_in(accounts, "1234").map(|user| user.gid), Some(1234));
        assert_eq!(find_in(accounts, "somebody"), None);
        assert!(find("root").is_err());
        assert!(find("0").is_err());
        assert!(find("no such user").is_err());
    }

    #[test]
    fn a_root_that_names_nobody_drops_to_nobody() {
        let dropped = |setting| wanted(setting).map(|user| user.map(|user| user.name));
        assert_eq!(dropped(Some(NO_USER)), Ok(None));
        let usual = (is_root() && may_mount()).then(|| find(USUAL).ok());
        assert_eq!(dropped(None), Ok(usual.flatten().map(|_| USUAL.to_owned())));
        assert_eq!(dropped(Some("no such user")).is_err(), is_root());
    }
}
