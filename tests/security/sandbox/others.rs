//! Processes, memory and objects of others.

use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

use super::{has_namespaces, open_file};
use crate::processes::{is_root, marker};
use crate::security::ward::{SameUser, Ward};

#[tokio::test]
async fn ptrace_and_the_memory_of_others() {
    let trace = "import ctypes, sys\n\
        libc = ctypes.CDLL(None, use_errno=True)\n\
        sys.exit(0 if libc.ptrace(0, 0, 0, 0) == 0 else 1)";
    assert!(!Ward::inside().python(trace).await);
    assert!(Ward::outside().python(trace).await);
    let me = std::process::id();
    assert!(
        !Ward::inside()
            .works(&format!("head -c1 /proc/{me}/mem"))
            .await
    );
}

/// A process of the user that commands run as, which none of them started.
fn bystander(seconds: &str) -> Child {
    let mut command = Command::new("sleep");
    command.arg(seconds);
    if is_root() {
        command.uid(65534).gid(65534);
    }
    command.spawn().unwrap()
}

#[tokio::test]
async fn signals_outside() {
    let mut bystander = bystander(&marker());
    let pid = bystander.id();
    let inside = Ward::inside();
    assert!(!inside.works(&format!("kill -9 {pid}")).await);
    assert!(!inside.works(&format!("kill -STOP {pid}")).await);
    assert!(
        !inside
            .works(&format!("kill -9 {}", std::process::id()))
            .await
    );
    // To everyone that it may: nobody but itself.
    let _ = inside.run("kill -9 -1").await;
    assert!(bystander.try_wait().unwrap().is_none(), "it lives");
    assert!(Ward::outside().works(&format!("kill -9 {pid}")).await);
    bystander.wait().unwrap();
}

/// What a command may do beside reading and writing, where it runs as the service's own user.
#[tokio::test]
async fn modes_paces_watches_and_objects_of_the_same_user() {
    let same = SameUser::new();
    let kept = same.path("kept");
    std::fs::write(&kept, "the service's").unwrap();
    same.own(&kept);
    let mode = || std::fs::metadata(&kept).unwrap().mode() & 0o777;
    let before = mode();
    let tried = same.run(&format!(
        "chmod 000 {0}; touch -d 2001-01-01 {0}",
        kept.display()
    ));
    assert_eq!(mode(), before, "{tried:?}");
    assert!(std::fs::metadata(&kept).unwrap().mtime() > 1_000_000_000);
    let watch = "import ctypes, sys\n\
        libc = ctypes.CDLL(None)\n\
        watch = libc.inotify_add_watch(libc.inotify_init(), sys.argv[1].encode(), 0x100)\n\
        sys.exit(0 if watch >= 0 else 1)";
    let watched = kept.display().to_string();
    assert!(!same.python(watch, &watched).status.success());
    let mut bystander = bystander(&marker());
    let pid = bystander.id().to_string();
    let slower = "import os, sys; os.setpriority(os.PRIO_PROCESS, int(sys.argv[1]), 19)";
    assert!(!same.python(slower, &pid).status.success());
    let pinned = "import os, sys; os.sched_setaffinity(int(sys.argv[1]), {0})";
    assert!(!same.python(pinned, &pid).status.success());
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    let objects = Objects::make();
    let reached = same.python(REACH, &objects.numbers);
    let reached = String::from_utf8_lossy(&reached.stdout).into_owned();
    assert_eq!(reached, NONE_REACHED);
}

/// Tells of each call whether it reached an object: by its number, or by its key.
const REACH: &str = "import ctypes, struct, sys\n\
    libc = ctypes.CDLL(None)\n\
    libc.shmat.restype = ctypes.c_long\n\
    queue, semaphores, memory, key = map(int, sys.argv[1:])\n\
    message = ctypes.create_string_buffer(struct.pack('l', 1) + b'y', 64)\n\
    up, state = struct.pack('HhH', 0, 1, 0), ctypes.create_string_buffer(256)\n\
    tries = [\n\
    \x20   lambda: libc.msgget(key, 0),\n\
    \x20   lambda: libc.msgrcv(queue, message, 1, 0, 0o4000),\n\
    \x20   lambda: libc.msgsnd(queue, message, 1, 0o4000),\n\
    \x20   lambda: libc.msgctl(queue, 2, state),\n\
    \x20   lambda: libc.semget(key, 0, 0),\n\
    \x20   lambda: libc.semop(semaphores, up, 1),\n\
    \x20   lambda: libc.semctl(semaphores, 0, 12),\n\
    \x20   lambda: libc.shmget(key, 0, 0),\n\
    \x20   lambda: libc.shmat(memory, None, 0o10000),\n\
    \x20   lambda: libc.shmctl(memory, 2, state),\n\
    ]\n\
    print(''.join('01'[reach() >= 0] for reach in tries))";
const NONE_REACHED: &str = "0000000000\n";

/// A queue with a message in it, a semaphore and memory of System V, made outside and open to
/// everybody. They go with this.
struct Objects {
    /// Theirs, and the key of each.
    numbers: String,
}

impl Objects {
    fn make() -> Self {
        let key = marker();
        let numbers = Self::python(&format!(
            "queue = libc.msgget({key}, 0o1666)\n\
             libc.msgsnd(queue, struct.pack('l', 1) + b'x', 1, 0)\n\
             print(queue, libc.semget({key}, 1, 0o1666), libc.shmget({key}, 4096, 0o1666), {key})"
        ));
        Self { numbers }
    }

    fn python(program: &str) -> String {
        let program = format!("import ctypes, struct\nlibc = ctypes.CDLL(None)\n{program}");
        let ran = Command::new("python3").args(["-c", &program]).output();
        let ran = ran.unwrap();
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8_lossy(&ran.stdout).trim().to_owned()
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        let numbers = self.numbers.replace(' ', ", ");
        Self::python(&format!(
            "queue, semaphores, memory, _ = {numbers}\n\
             libc.msgctl(queue, 0, 0), libc.semctl(semaphores, 0, 0), libc.shmctl(memory, 0, 0)"
        ));
    }
}

#[tokio::test]
async fn queues_semaphores_and_memory_of_others_by_their_numbers() {
    for (ward, reached) in [
        (Ward::inside(), NONE_REACHED),
        (Ward::outside(), "1111111111\n"),
    ] {
        let objects = Objects::make();
        std::fs::write(ward.workspace().join("reach.py"), REACH).unwrap();
        let reach = format!("python3 reach.py {}", objects.numbers);
        let said = ward.run(&reach).await.unwrap();
        assert!(said.starts_with(reached), "{said}");
    }
}

#[tokio::test]
async fn memory_by_name_is_its_own() {
    let pool = "from multiprocessing import Pool\n\
        if __name__ == '__main__': print(Pool(2).map(abs, [-1, -2]))";
    assert_eq!(Ward::inside().python(pool).await, has_namespaces());
    let name = marker();
    let shared = std::path::PathBuf::from(format!("/dev/shm/{name}"));
    open_file(&shared, "of others");
    let reached = Ward::inside().works(&format!("cat /dev/shm/{name}")).await;
    std::fs::remove_file(&shared).unwrap();
    assert!(!reached);
}
