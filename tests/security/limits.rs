//! Commands against what bounds them: processes, memory, disk, output and time.

use std::process::Command;
use std::time::{Duration, Instant};

use navi_actors::tools::Tool as _;
use navi_actors::tools::sandbox::{Limits, Sum};
use navi_actors::tools::workspace::WorkspaceLimits;
use serde_json::{Value, json};

use super::talking;
use super::ward::{Ward, own_group};
use crate::processes::{begun, gone, is_root, marker, processes_with, runs};
use crate::server::Socket;

#[tokio::test]
async fn fork_bomb() {
    let ward = Ward::within(Limits {
        processes: 60,
        ..Limits::default()
    });
    let bomb = format!("bomb() {{ bomb | bomb & }}; bomb; exec sleep {}", marker());
    let began = Instant::now();
    let args = json!({"action": "run", "command": bomb, "timeout_seconds": 10});
    let said = ward.call(args).await;
    println!("{said:?}");
    // Ten seconds, and what a machine adds whose processors the bomb has.
    assert!(began.elapsed() < Duration::from_secs(120));
    gone(&bomb).await;
    let next = ward.works("true").await;
    assert!(next, "the next command has its processes again");
}

#[tokio::test]
async fn more_processes_than_it_may_have() {
    let ward = Ward::within(Limits {
        processes: 30,
        ..Limits::default()
    });
    let mark = marker();
    let said = ward
        .run(&format!(
            "for i in $(seq 100); do sleep {mark} & done; wait"
        ))
        .await;
    assert!(
        !said.as_ref().is_ok_and(|text| text.contains("exit code 0")),
        "{said:?}"
    );
    gone(&mark).await;
}

/// What else its user runs would let it have more, and keep others from having theirs.
#[tokio::test]
async fn in_a_user_namespace_its_own_processes_alone_count() {
    let ward = Ward::within(Limits {
        processes: 60,
        ..Limits::default()
    });
    assert!(is_root() || ward.works("test $(ulimit -u) = 60").await);
}

#[tokio::test]
async fn memory_bomb() {
    let limits = Limits {
        memory_bytes: 256 << 20,
        ..Limits::default()
    };
    let take = "data = bytearray(400 << 20)\nfor at in range(0, len(data), 4096): data[at] = 1\n";
    assert!(!Ward::within(limits).python(take).await);
    assert!(Ward::outside().python(take).await);
    assert!(Ward::within(limits).python("print(1)").await);
    let least = Limits {
        memory_bytes: 128 << 20,
        ..Limits::default()
    };
    assert!(Ward::within(least).works("echo little").await);
    // Spread over many: each is within its own limit.
    let many = "import os, time\n\
        for _ in range(6):\n\
        \x20   if os.fork() == 0: break\n\
        data = bytearray(90 << 20)\n\
        for at in range(0, len(data), 4096): data[at] = 1\n\
        time.sleep(20)\n";
    let ward = Ward::within(limits);
    std::fs::write(ward.workspace().join("many.py"), many).unwrap();
    let said = ward.run("python3 many.py").await.unwrap_err();
    assert!(said.contains("more than its 256 MB of memory"), "{said}");
}

#[tokio::test]
async fn files_that_fill_the_disk() {
    let ward = Ward::within(Limits {
        workspace: WorkspaceLimits {
            bytes: 64 << 20,
            entries: 500,
        },
        ..Limits::default()
    });
    for (fills, told) in [
        // Quicker than anyone looks.
        (
            "for i in $(seq 20); do head -c 16000000 /dev/zero > $i; done",
            "64 MB",
        ),
        // Each is within its own limit.
        (
            "for i in $(seq 1000); do head -c 16000000 /dev/zero > $i; done",
            "64 MB",
        ),
        (
            "for i in $(seq 1000); do head -c 16000000 /dev/zero > $TMPDIR/$i; done",
            "64 MB",
        ),
        // No name shows them.
        (
            "python3 -c 'import os, time\nfiles = []\nfor i in range(1000):\n    f = open(str(i), \"wb\"); os.unlink(str(i)); f.write(bytes(16000000)); f.flush(); files.append(f)'",
            "64 MB",
        ),
        (
            "mkdir many; for i in $(seq 2000); do : > many/$i; done; sleep 60",
            "500 files",
        ),
    ] {
        let said = ward.run(fills).await.unwrap_err();
        assert!(said.contains(told), "{fills}: {said}");
        // Nothing is added to what is too much, and nobody is kept from making room again.
        let is_left = !fills.contains("unlink");
        let adds = ward.works("head -c 16000000 /dev/zero > more").await;
        assert_eq!(adds, !is_left, "{fills}");
        assert!(
            ward.works("rm -rf ./* $TMPDIR/*; sleep 1.5").await,
            "{fills}"
        );
    }
}

/// What is taken without being written fills a disk before anybody looks.
#[tokio::test]
async fn space_that_is_taken_at_once() {
    for (ward, takes) in [(Ward::inside(), false), (Ward::outside(), true)] {
        assert_eq!(ward.works("fallocate -l 1000000 big").await, takes);
    }
    // Who knows a way around goes it.
    let reserves = "import os; os.posix_fallocate(os.open('big', os.O_CREAT | os.O_RDWR), 0, 9999)";
    assert!(Ward::inside().python(reserves).await);
}

/// A program that takes so much memory and stays.
fn takes_memory(megabytes: u32) -> String {
    format!(
        "import time\ndata = bytearray({megabytes} << 20)\nfor at in range(0, len(data), 4096): data[at] = 1\ntime.sleep(60)\n"
    )
}

/// A command that starts so many processes that stay.
fn takes_processes(count: u32) -> String {
    let mark = marker();
    format!("for i in $(seq {count}); do sleep {mark} & done; wait")
}

fn in_background(command: &str) -> Value {
    json!({"action": "run", "command": command, "background": true})
}

/// Waits until so many of the session's commands have ended for this reason: as many as fit stay.
async fn ended(ward: &Ward, count: usize, why: &str) {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let said = ward.call(json!({"action": "list"})).await.unwrap();
        if said.matches(why).count() >= count {
            assert!(said.contains("[running for"), "{said}");
            return;
        }
        assert!(Instant::now() < until, "{said}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn many_commands_of_one_session() {
    let ward = Ward::together(Sum {
        memory_bytes: 300 << 20,
        processes: 1000,
    });
    std::fs::write(ward.workspace().join("takes.py"), takes_memory(90)).unwrap();
    for _ in 0..5 {
        ward.call(in_background("python3 takes.py")).await.unwrap();
    }
    ended(&ward, 2, "used more than their 300 MB of memory together").await;
}

/// Each within its own limit, and two of them within the session's.
#[tokio::test]
async fn many_processes_of_one_session() {
    let ward = Ward::together(Sum {
        memory_bytes: 4 << 30,
        processes: 40,
    });
    for _ in 0..3 {
        ward.call(in_background(&takes_processes(12)))
            .await
            .unwrap();
    }
    ended(&ward, 1, "used more than their 40 processes together").await;
}

/// No session knows of the other: the service adds them up.
#[tokio::test]
async fn commands_of_two_sessions() {
    let memory = format!("exec python3 -c '{}'", takes_memory(150));
    for (setting, most, command, what) in [
        (
            "NAVI_SANDBOX_ALL_PROCESSES",
            "40",
            takes_processes(25),
            "40 processes",
        ),
        (
            "NAVI_SANDBOX_ALL_MEMORY_MB",
            "250",
            memory,
            "250 MB of memory",
        ),
    ] {
        let (_model, server) = talking(&[(setting, most), ("NAVI_CONSENT_MODE", "auto")]);
        let mut tabs = Vec::new();
        for _ in 0..2 {
            let session = server.new_session().await;
            tabs.push(server.tab(&session, None).await);
        }
        for tab in &mut tabs {
            let said = terminal(tab, in_background(&command)).await;
            assert!(said.starts_with("started in the background"), "{said}");
        }
        let why = format!("of all conversations used more than their {what} together");
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let mut lists = Vec::new();
            for tab in &mut tabs {
                lists.push(terminal(tab, json!({"action": "list"})).await);
            }
            let ended = lists.iter().filter(|said| said.contains(&why)).count();
            let run = lists.iter().filter(|it| it.contains("[running for"));
            if ended > 0 {
                assert_eq!((ended, run.count()), (1, 1), "{lists:#?}");
                break;
            }
            assert!(Instant::now() < until, "{lists:#?}");
        }
    }
}

/// What a call of the terminal says in a session of a real service.
async fn terminal(tab: &mut Socket, args: Value) -> String {
    let content = format!("use the tool: terminal {args}");
    tab.send(&json!({"type": "message", "content": content}))
        .await;
    let called = tab.next_of("tool_call").await;
    tab.next_of("stream_end").await;
    called["result"].as_str().unwrap().to_owned()
}

/// Between two looks nobody measures: the kernel is to hold them all the same.
#[tokio::test]
async fn memory_that_is_taken_at_once() {
    let Some(group) = own_group() else { return };
    let ward = Ward::within(Limits {
        memory_bytes: 256 << 20,
        ..Limits::default()
    });
    let takes =
        "import os\nfor _ in range(4):\n    if os.fork() == 0: break\ndata = b'x' * (160 << 20)\n";
    std::fs::write(ward.workspace().join("takes.py"), takes).unwrap();
    let said = ward.run("python3 takes.py; sleep 5").await.unwrap_err();
    assert!(said.contains("more than its 256 MB of memory"), "{said}");
    let left = group.join("commands").join(ward.session.to_string());
    assert!(!left.exists(), "its groups go with it");
}

#[tokio::test]
async fn endless_output() {
    let ward = Ward::inside();
    let mark = marker();
    let said = ward.run(&format!("yes {mark}")).await.unwrap_err();
    assert!(
        said.contains("it wrote more than 8.0 MiB and was ended"),
        "{said}"
    );
    assert!(said.len() < 64 * 1024);
    gone(&mark).await;
    let kept = std::fs::read_dir(ward.workspace().join("tool_output"))
        .unwrap()
        .count();
    assert_eq!(kept, 1, "the whole output is in a file");
}

/// A byte that is no text becomes three.
#[tokio::test]
async fn endless_output_that_is_no_text() {
    let ward = Ward::inside();
    let flood = "tr '\\0' '\\377' </dev/zero";
    let said = ward.run(flood).await.unwrap_err();
    assert!(
        said.contains("it wrote more than 8.0 MiB and was ended"),
        "{said}"
    );
    let kept = std::fs::read_dir(ward.workspace().join("tool_output")).unwrap();
    let bytes: u64 = kept
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    assert!(bytes < 9 << 20, "{bytes}");
}

#[tokio::test]
async fn endless_file() {
    let ward = Ward::within(Limits {
        file_bytes: 1 << 20,
        ..Limits::default()
    });
    assert!(!ward.works("head -c 3000000 /dev/zero > big").await);
    let size = std::fs::metadata(ward.workspace().join("big"))
        .unwrap()
        .len();
    assert!(size <= 1 << 20, "{size}");
}

#[tokio::test]
async fn children_that_outlive_it() {
    let ward = Ward::inside();
    for command in [
        "sleep MARK & disown",
        "nohup sleep MARK >/dev/null 2>&1 &",
        "setsid sleep MARK >/dev/null 2>&1 &",
        "(setsid sh -c 'sleep MARK & sleep MARK' >/dev/null 2>&1 &)",
        "python3 -c \"import os,time\nif os.fork()==0:\n  os.setsid()\n  if os.fork()==0: os.execvp('sleep',['sleep','MARK'])\n  os._exit(0)\ntime.sleep(0.3)\"",
    ] {
        let mark = marker();
        let command = command.replace("MARK", &mark);
        let began = Instant::now();
        let said = ward.run(&command).await.unwrap();
        assert!(said.contains("exit code 0"), "{command}: {said}");
        assert!(began.elapsed() < Duration::from_secs(20), "{command}");
        assert!(!runs(&mark), "{command}");
    }
    // A shell that nobody watches over leaves them.
    let mark = marker();
    let command = format!("setsid sleep {mark} >/dev/null 2>&1 &");
    let plain = Command::new("sh").args(["-c", &command]).status();
    assert!(plain.unwrap().success());
    begun(&mark).await;
    for pid in processes_with(&mark) {
        let ended = Command::new("kill").arg(pid.to_string()).status();
        assert!(ended.unwrap().success());
    }
}

#[tokio::test]
async fn children_of_a_call_that_is_dropped() {
    let ward = Ward::inside();
    let mark = marker();
    let command = format!("setsid sleep {mark} & sleep {mark}");
    let args = json!({"action": "run", "command": command});
    let (terminal, context) = (ward.terminal.clone(), ward.context());
    let call = tokio::spawn(async move { terminal.call(args, context).await });
    begun(&mark).await;
    call.abort();
    gone(&mark).await;
}

#[tokio::test]
async fn children_after_the_time_limit() {
    let ward = Ward::inside();
    // On a machine that is too busy to begin it in time, it gets more.
    for seconds in [3, 10, 30, 90] {
        let mark = marker();
        let command = format!("echo said; setsid sleep {mark} & trap '' TERM INT; sleep {mark}");
        let args = json!({"action": "run", "command": command, "timeout_seconds": seconds});
        let said = ward.call(args).await.unwrap_err();
        assert!(
            said.contains(&format!("[it did not end within {seconds} s and was ended")),
            "{said}"
        );
        assert!(!runs(&mark), "they are gone before the result is told");
        if said.starts_with("said\n") {
            return;
        }
    }
    panic!("it never began");
}
