//! Commands against what holds them.

mod network;
mod others;

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

use navi_actors::tools::sandbox::{Fence, Limits, Order, Streams};

use super::ward::{SameUser, Ward};
use crate::processes::{is_root, marker, runs};
use crate::server::{House, program};

/// Whether commands have any here: these tests run a second time where they have none.
fn has_namespaces() -> bool {
    std::env::var_os("FAILPOINT_NO_NAMESPACES").is_none()
}

/// A file that any user may read and write.
fn open_file(path: &std::path::Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).unwrap();
}

#[tokio::test]
async fn ordinary_work_is_possible() {
    let inside = Ward::inside();
    for command in [
        "mkdir -p a/b && echo text > a/b/c && cat a/b/c && rm -r a",
        "python3 -c 'print(1 + 1)'",
        "printf '#!/bin/sh\\necho hi\\n' > x.sh && chmod +x x.sh && ./x.sh",
        "echo a | sort | uniq -c",
        "cat <(echo a) <(echo b)",
        "touch $HOME/here $TMPDIR/there && test -f here",
        "git init -q repo && cd repo && git status",
        "sleep 5 & kill $!",
    ] {
        let said = inside.run(command).await;
        assert!(
            said.as_ref().is_ok_and(|s| s.contains("exit code 0")),
            "{command}: {said:?}"
        );
    }
}

/// Where the kernel shares the processor between sessions, how nice a process is says nothing.
#[tokio::test]
async fn a_command_stands_behind_the_service_in_whatever_session() {
    let inside = Ward::inside();
    // Seen by the supervisor's next look. A kernel that shares otherwise has no such group.
    let script = "for try in $(seq 200); do\n\
        case $(cat /proc/self/autogroup 2>/dev/null) in ''|*'nice 10') exit 0; esac\n\
        sleep 0.1\ndone\nexit 1\n";
    open_file(&inside.workspace().join("behind.sh"), script);
    for command in [
        "test $(nice) -ge 10",
        "sh behind.sh",
        "setsid --wait sh behind.sh",
    ] {
        assert!(inside.works(command).await, "{command}");
    }
}

#[tokio::test]
async fn read_outside() {
    let (inside, outside) = (Ward::inside(), Ward::outside());
    for (ward, reads) in [(&inside, false), (&outside, true)] {
        let canary = ward.foreign().join("canary");
        open_file(&canary, "CANARY");
        std::os::unix::fs::symlink(&canary, ward.workspace().join("link")).unwrap();
        for command in [
            format!("cat {}", canary.display()),
            "cat link".to_owned(),
            format!("ls {}", canary.parent().unwrap().display()),
            format!("ln {} hard && cat hard", canary.display()),
        ] {
            assert_eq!(ward.works(&command).await, reads, "{command}");
        }
    }
    for command in [
        "cat /etc/shadow",
        "ls /root",
        "ls /home",
        "ls /",
        "ls /var",
        "ls /sys",
        "cat /dev/sda /dev/vda /dev/mem",
    ] {
        assert!(!inside.works(command).await, "{command}");
    }
    if has_namespaces() {
        // It has processes of its own.
        let own = inside.run("cat /proc/1/cmdline").await.unwrap();
        assert!(own.starts_with("navi-sandbox"), "{own}");
    }
    let me = std::process::id();
    assert!(!inside.works(&format!("cat /proc/{me}/environ")).await);
    assert!(
        outside
            .works(&format!("cat /proc/{me}/environ > /dev/null"))
            .await
    );
}

#[tokio::test]
async fn write_to_config_tools_database_and_env() {
    for (ward, writes) in [(Ward::inside(), false), (Ward::outside(), true)] {
        let data = ward.foreign();
        for name in ["navi.toml", "tool.sh", "navi.db", ".env"] {
            let file = data.join(name);
            open_file(&file, "before");
            assert_eq!(
                ward.works(&format!("echo after > {}", file.display()))
                    .await,
                writes
            );
            let after = std::fs::read_to_string(&file).unwrap();
            assert_eq!(after == "after\n", writes, "{name}");
            assert_eq!(
                ward.works(&format!("mv {0} {0}.old", file.display())).await,
                writes
            );
        }
        let new = data.join("new");
        assert_eq!(
            ward.works(&format!("touch {}", new.display())).await,
            writes
        );
        assert_eq!(
            ward.works(&format!("truncate -s 0 {}/navi.db.old", data.display()))
                .await,
            writes
        );
    }
}

#[tokio::test]
async fn no_secrets_in_the_environment() {
    let said = Ward::inside().run("env").await.unwrap();
    for word in ["TOKEN", "KEY", "CARGO", "OLLAMA", "DATABASE", "SSH_"] {
        assert!(!said.contains(word), "{word}: {said}");
    }
}

#[tokio::test]
async fn chmod_to_another_users_rights() {
    for (ward, changes) in [(Ward::inside(), false), (Ward::outside(), true)] {
        for mode in ["u+s", "g+s", "4755"] {
            let command =
                format!("cp /bin/true mine && chmod {mode} mine; r=$?; rm -f mine; exit $r");
            assert_eq!(ward.works(&command).await, changes, "{mode}");
        }
        assert!(ward.works("touch plain && chmod 755 plain").await);
        let open = "import os; os.close(os.open('made', os.O_CREAT | os.O_WRONLY, 0o4755))";
        assert_eq!(ward.python(open).await, changes);
    }
}

#[tokio::test]
async fn owners_and_attributes() {
    let own = "import os; open('own', 'w').close(); os.chown('own', os.getuid(), os.getgid())";
    assert!(!Ward::inside().python(own).await);
    assert!(Ward::outside().python(own).await);
    // Whether files have any depends on the disk: refused is another error than unknown.
    let attribute = "import os\n\
        open('own', 'w').close()\n\
        try: os.setxattr('own', 'user.a', b'b')\n\
        except PermissionError: raise SystemExit(0)\n\
        raise SystemExit(1)";
    assert!(Ward::inside().python(attribute).await);
    assert!(!Ward::outside().python(attribute).await);
}

/// What Landlock holds only on newer kernels is refused on others: here, by the policy of one.
#[tokio::test]
async fn what_an_older_kernel_leaves_open() {
    let ward = Ward::inside();
    let probe = "import fcntl, os, socket, struct\n\
        def refused(action):\n\
        \x20   try: action()\n\
        \x20   except PermissionError: return 1\n\
        \x20   return 0\n\
        open('own', 'w').close()\n\
        own = os.open('own', os.O_RDONLY)\n\
        pair = socket.socketpair()[0]\n\
        me = os.getpid()\n\
        tries = [\n\
        \x20   lambda: os.truncate('own', 0),\n\
        \x20   lambda: os.open('own', os.O_RDONLY | os.O_TRUNC),\n\
        \x20   lambda: os.open('own', 3 | os.O_TRUNC),\n\
        \x20   lambda: fcntl.fcntl(own, 8, me),\n\
        \x20   lambda: fcntl.fcntl(own, 15, struct.pack('ii', 1, me)),\n\
        \x20   lambda: fcntl.ioctl(pair, 0x8901, struct.pack('i', me)),\n\
        \x20   lambda: fcntl.ioctl(pair, 0x8902, struct.pack('i', me)),\n\
        ]\n\
        print(''.join(str(refused(action)) for action in tries))";
    std::fs::write(ward.workspace().join("probe.py"), probe).unwrap();
    let scratch = ward.workspace().join("scratch");
    std::fs::create_dir(&scratch).unwrap();
    let order = Order {
        program: "python3".to_owned(),
        args: vec!["probe.py".to_owned()],
        directory: ward.workspace(),
        workspace: ward.workspace(),
        scratch,
        read: Vec::new(),
        uid: None,
        environment: BTreeMap::new(),
        input: None,
        streams: Streams::Apart,
        fence: Fence::Inside,
        limits: Limits::default(),
    };
    let mut job = ward.sandbox().job(order, false);
    job.namespaces = false;
    // Nobody gives the workspace to the user of the command here.
    std::fs::set_permissions(ward.workspace(), std::fs::Permissions::from_mode(0o777)).unwrap();
    for (denied, told) in [(false, "0000000\n"), (true, "1111111\n")] {
        (job.deny_signals, job.deny_truncate) = (denied, denied);
        let said = Command::new(program())
            .args(["sandbox-exec", "confine"])
            .env_clear()
            .envs(&job.order.environment)
            .env("NAVI_SANDBOX_POLICY", serde_json::to_string(&job).unwrap())
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&said.stdout), told, "{said:?}");
    }
}

#[tokio::test]
async fn calls_that_change_the_kernels_view() {
    let inside = Ward::inside();
    for command in [
        "unshare -U true",
        "unshare -m true",
        "unshare -n true",
        "mount -t tmpfs x .",
        "chroot . true",
    ] {
        assert!(!inside.works(command).await, "{command}");
    }
    // io_uring_setup, memfd_create, keyctl, bpf, perf_event_open, userfaultfd, an x32 getpid, and
    // a call that does not exist yet.
    #[cfg(target_arch = "x86_64")]
    for number in [
        "425",
        "319",
        "250",
        "321",
        "298",
        "323",
        "0x40000027",
        "600",
    ] {
        let program = format!(
            "import ctypes, sys\n\
             libc = ctypes.CDLL(None, use_errno=True)\n\
             libc.syscall.restype = ctypes.c_long\n\
             done = libc.syscall(ctypes.c_long({number}), ctypes.c_long(0), ctypes.c_long(0), ctypes.c_long(0))\n\
             sys.exit(0 if done < 0 and ctypes.get_errno() in (1, 38) else 1)"
        );
        assert!(inside.python(&program).await, "{number}");
    }
}

#[tokio::test]
async fn a_link_of_a_command_gives_nobody_the_file_of_another() {
    let ward = Ward::inside();
    let canary = ward.foreign().join("canary");
    std::fs::write(&canary, "CANARY").unwrap();
    let owner = std::fs::metadata(&canary).unwrap().uid();
    let link = format!(
        "ln -s {} link; ln -s {} folder; true",
        canary.display(),
        ward.foreign().display()
    );
    assert!(ward.works(&link).await);
    assert!(ward.works("true").await);
    assert_eq!(std::fs::metadata(&canary).unwrap().uid(), owner);
    // The folder of long output as a link out of the workspace.
    assert!(
        ward.works("rm -rf tool_output; ln -s folder tool_output")
            .await
    );
    let said = ward.run("seq 20000").await.unwrap();
    assert!(said.contains("could not be kept"), "{said}");
    assert_eq!(std::fs::read_dir(ward.foreign()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_directory_that_lies() {
    let ward = Ward::inside();
    for command in [
        "trap 'echo /etc > \"$NAVI_DIRECTORY_FILE\"' EXIT",
        "rm -f $NAVI_DIRECTORY_FILE; ln -s /etc/passwd $NAVI_DIRECTORY_FILE; trap - EXIT",
        "mkfifo $NAVI_DIRECTORY_FILE; trap - EXIT",
    ] {
        let _ = ward.run(command).await;
        let said = ward.run("pwd").await.unwrap();
        assert!(said.contains("/workspace\n"), "{said}");
    }
}

#[tokio::test]
async fn any_command_by_hand() {
    let user = if is_root() { "nobody" } else { "" };
    let house = House::new(&[("NAVI_SANDBOX_USER", user)]);
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let at = dir.path().to_str().unwrap();
    let run = |command: &[&str]| {
        let mut all = vec!["sandbox", "--workspace", at, "--"];
        all.extend(command);
        house.run(&all)
    };
    let said = run(&["sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!(said.status.code(), Some(7));
    assert_eq!(said.stdout, b"out\n");
    assert_eq!(said.stderr, b"err\n");
    let said = run(&["cat", "/etc/shadow"]);
    assert_eq!(said.status.code(), Some(1));
    let said = run(&["no-such-program"]);
    assert_eq!(said.status.code(), Some(125));
    let said = run(&["sh", "-c", "kill -9 $$"]);
    assert_eq!(said.status.code(), Some(137));
    let mark = marker();
    let said = run(&[
        "sh",
        "-c",
        &format!("setsid sleep {mark} >/dev/null 2>&1 &"),
    ]);
    assert!(said.status.success());
    assert!(!runs(&mark));
}

/// A folder that commands may read is where the setting says, whatever links lead there.
#[tokio::test]
async fn a_folder_to_read_behind_links() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for folder in ["", "real", "real/tools", "workspace"] {
        std::fs::create_dir_all(at(folder)).unwrap();
        std::fs::set_permissions(at(folder), std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    open_file(&at("real/tools/one"), "one\n");
    open_file(&at("real/two"), "two\n");
    std::os::unix::fs::symlink("real", at("link")).unwrap();
    std::os::unix::fs::symlink(at("link/tools"), at("again")).unwrap();
    let [tools, again, two, workspace] = ["link/tools", "again", "link/two", "workspace"]
        .map(|name| at(name).to_str().unwrap().to_owned());
    let user = if is_root() { "nobody" } else { "" };
    let house = House::new(&[
        ("NAVI_SANDBOX_USER", user),
        ("NAVI_SANDBOX_READ_PATHS", &format!("{tools},{again}")),
    ]);
    let show = |path: &str| house.run(&["sandbox", "--workspace", &workspace, "--", "cat", path]);
    for path in [format!("{tools}/one"), format!("{again}/one")] {
        let said = show(&path);
        assert_eq!(said.stdout, b"one\n", "{path}: {said:?}");
    }
    assert!(
        !show(&two).status.success(),
        "what lies beside is no part of it"
    );
}

#[tokio::test]
async fn without_namespaces_the_same_user_is_asked_about_each_command() {
    let same = SameUser::new();
    let said = same.navi(&["doctor"], &[("FAILPOINT_NO_NAMESPACES", "1")]);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(
        said.contains("each command is asked about: the kernel gives no namespaces"),
        "{said}"
    );
    let said = same.navi(&["doctor"], &[]);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("commands are held by namespaces"), "{said}");
}
