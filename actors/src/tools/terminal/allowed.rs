//! `TERMINAL_ALLOWED_COMMANDS`: which commands there are at all.
//!
//! With a list, no shell is in it: the command is split into words as a shell would, runs as
//! those words, and anything that a shell would do more with is refused. So are programs that
//! run other programs, listed or not: a list that names them would be no list.

use std::collections::BTreeSet;

use super::run::by_shell;
use crate::tools::ToolResult;
use crate::tools::output::shortened;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Allowed {
    /// Any command, inside the sandbox.
    #[default]
    Any,
    /// These alone, inside the sandbox and without a shell.
    Only(BTreeSet<String>),
    /// Any command, with the rights of the service.
    Everything,
}

/// Whatever means more to a shell than itself, quoted or not.
const SHELL_MEANS_MORE: &str = ";&|<>$`\\\n\r(){}*?[]~#!";

/// Programs whose arguments are programs, or that run what is typed or written in a file.
const WRAPPERS: [&str; 49] = [
    "ash", "awk", "bash", "busybox", "chroot", "command", "dash", "doas", "env", "eval", "exec",
    "expect", "fish", "flock", "gawk", "ionice", "ksh", "less", "make", "man", "mawk", "nice",
    "nohup", "nsenter", "parallel", "perl", "pkexec", "rbash", "runuser", "screen", "script",
    "sed", "setpriv", "setsid", "sh", "stdbuf", "strace", "su", "sudo", "taskset", "time",
    "timeout", "tmux", "unshare", "vi", "vim", "watch", "xargs", "zsh",
];

/// Arguments by which a program that is none of those runs others all the same, or takes its
/// settings from the caller: a program and such arguments, of `find` their beginnings.
const RUNNING_ARGUMENTS: [(&str, &str); 5] = [
    ("find", "-exec -execdir -ok -okdir -delete -fprint -fls"),
    (
        "git",
        "-c --config-env --exec-path --upload-pack --receive-pack -p --paginate",
    ),
    (
        "tar",
        "--checkpoint-action --to-command -I --use-compress-program -F --info-script \
         --new-volume-script --rmt-command --rsh-command",
    ),
    ("rsync", "-e --rsh --rsync-path"),
    ("sort", "--compress-program"),
];

impl Allowed {
    /// As a setting has it: empty for any, `*` to lift the fence, or names with commas between.
    ///
    /// # Errors
    /// What the setting should look like.
    pub fn parse(setting: &str) -> Result<Self, String> {
        let names = setting.split(',').map(str::trim);
        let names = names.filter(|name| !name.is_empty());
        let names: BTreeSet<String> = names.map(str::to_owned).collect();
        if names.is_empty() {
            return Ok(Self::Any);
        }
        if names.contains("*") {
            refuse_if!(
                names.len() > 1,
                "names of commands with commas between, or * alone"
            );
            return Ok(Self::Everything);
        }
        let means_more = |c: char| c.is_whitespace() || SHELL_MEANS_MORE.contains(c);
        refuse_if!(
            names.iter().any(|name| name.contains(means_more)),
            "names of commands alone, with commas between, such as ls,cat,git"
        );
        Ok(Self::Only(names))
    }

    /// The names in the list that it leaves out all the same: they run any other command.
    pub fn left_out(&self) -> Vec<&str> {
        match self {
            Self::Only(names) => parted(names).0,
            Self::Any | Self::Everything => Vec::new(),
        }
    }

    /// The words that this command is run as, where it may be: a shell's, or its own.
    pub(super) fn words(&self, command: &str) -> ToolResult<Vec<String>> {
        let Self::Only(names) = self else {
            return Ok(by_shell(command));
        };
        let listed = || parted(names).1.join(", ");
        if let Some(found) = command.chars().find(|c| SHELL_MEANS_MORE.contains(*c)) {
            refuse!(
                "the command has `{}`, and only plain commands may be run here, one at a time and without a shell; the commands are {}",
                found.escape_default(),
                listed()
            );
        }
        let words = shlex::split(command)
            .ok_or_else(|| refusal!("a quote in the command has no end; close it"))?;
        let Some(program) = words.first() else {
            refuse!("`command` is empty");
        };
        refuse_if!(
            !names.contains(program.as_str()) || is_wrapper(program),
            "the command `{}` is not among those that may be run here: {}",
            shortened(program, 60),
            listed()
        );
        if let Some(argument) = runs_others(&words) {
            refuse!(
                "`{program}` may not be run with `{}`, by which it would run or change something else; do it without",
                shortened(argument, 60)
            );
        }
        Ok(words)
    }
}

/// The names of a list that are wrappers, and those that are none.
fn parted(names: &BTreeSet<String>) -> (Vec<&str>, Vec<&str>) {
    let names = names.iter().map(String::as_str);
    names.partition(|name| is_wrapper(name))
}

fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

fn is_wrapper(program: &str) -> bool {
    WRAPPERS.contains(&base_name(program))
}

/// The argument by which these words run another program.
fn runs_others(words: &[String]) -> Option<&str> {
    let (program, arguments) = words.split_first()?;
    let name = base_name(program);
    let (_, refused) = RUNNING_ARGUMENTS.iter().find(|(known, _)| *known == name)?;
    let mut arguments = arguments.iter().map(String::as_str).enumerate();
    let found = arguments.find(|(at, argument)| {
        // `tar xf a`
        let is_bare = name == "tar" && *at == 0 && !argument.starts_with('-');
        let written = format!("{}{argument}", if is_bare { "-" } else { "" });
        let mut refused = refused.split(' ');
        refused.any(|one| stands_for(name, &written, one))
    });
    found.map(|(_, argument)| argument)
}

/// Whether an argument is this refused one, in any of the ways to write it.
fn stands_for(program: &str, argument: &str, refused: &str) -> bool {
    let has_clusters = !matches!(program, "find" | "git");
    if argument.starts_with("--") {
        // `--rsh=x`, and `--rs=x`: a beginning stands for the whole.
        let name = argument.split('=').next().unwrap_or(argument);
        return name.len() > 2 && refused.starts_with(name);
    }
    match (refused.strip_prefix('-'), argument.strip_prefix('-')) {
        // `-xIf`
        (Some(letter), Some(cluster)) if has_clusters && letter.len() == 1 => {
            cluster.contains(letter)
        }
        // `-fprintf`, `-ccore.pager=x`
        _ => argument.starts_with(refused),
    }
}

#[cfg(test)]
#[path = "allowed_tests.rs"]
mod tests;
