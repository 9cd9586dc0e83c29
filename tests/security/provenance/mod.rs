//! Text from outside, by every way that it can come in and out again through every reader
//! (DESIGN section 6). A result that holds it is marked for the model and for people, and the
//! session asks from then on before anything leaves the machine.

mod scene;

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use navi_actors::tools::home_assistant::HomeAssistant;
use navi_actors::tools::ssh::Ssh;
use navi_actors::tools::{Provenance, Tool as _};
use serde_json::{Value, json};

use self::scene::{Evening, Scene, WORDS, command, files};
use super::uploads::{PIXEL, upload};
use crate::fake_model::{Reply, Step};
use crate::server::{House, Told, text};
use crate::sshd::Sshd;

/// Every reader of the workspace, as a call that would show `path`.
fn readers(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("filesystem", files("read", json!({"path": path}))),
        (
            "filesystem",
            files("search_content", json!({"pattern": WORDS})),
        ),
        (
            "filesystem",
            files("write", json!({"path": path, "content": "new\n"})),
        ),
        ("terminal", command(&format!("cat {path}"))),
        // What failed says as much as what did not.
        (
            "filesystem",
            files(
                "edit",
                json!({"path": path, "old_text": "foreign wordz", "new_text": "x"}),
            ),
        ),
        ("terminal", command(&format!("cat {path} >&2; exit 3"))),
        (
            "filesystem",
            files(
                "edit",
                json!({"path": path, "old_text": WORDS, "new_text": "own words"}),
            ),
        ),
    ]
}

#[tokio::test]
async fn an_upload_stays_from_outside_through_every_reader() {
    let scene = Scene::new(&[]).await;
    for (tool, args) in readers("uploads/in.txt") {
        scene.sent().await.tells(tool, args).await;
    }
    let listed = files("list", json!({"path": "uploads", "depth": 3}));
    scene.sent().await.outside("filesystem", listed).await;
    let named = files("search_names", json!({"pattern": "in.txt"}));
    scene.sent().await.outside("filesystem", named).await;
    let image = scene.evening().await;
    let file = upload(&scene.server, &image.session, "a.png", PIXEL).await;
    image
        .outside("view_image", json!({"path": file["path"]}))
        .await;
}

#[tokio::test]
async fn a_copy_is_from_outside_as_much_as_what_it_is_of() {
    let scene = Scene::new(&[]).await;
    // A copy is a copy: the readers that differ most tell of each, all of them of one.
    let each = [usize::MAX, 2, 2, 2, 2];
    let copies = [
        "cp uploads/in.txt copy.txt",
        "mv uploads/in.txt copy.txt && rm -r uploads",
        "ln -s uploads/in.txt copy.txt",
        "tar cf a.tar uploads && tar xOf a.tar uploads/in.txt > copy.txt && rm -r uploads",
        "base64 uploads/in.txt | base64 -d > copy.txt",
    ];
    for (copies, some) in copies.into_iter().zip(each) {
        for (tool, args) in readers("copy.txt").into_iter().take(some) {
            let evening = scene.sent().await;
            let copied = evening.outside("terminal", command(copies)).await;
            let copy = fs::symlink_metadata(evening.path("copy.txt"));
            assert!(copy.is_ok(), "{copies}: {copied}");
            if copies.starts_with("ln") {
                // Not every reader follows a link.
                evening.outside(tool, args).await;
            } else {
                evening.tells(tool, args).await;
            }
        }
    }
    let evening = scene.sent().await;
    let moved = files("move", json!({"path": "uploads/in.txt", "to": "copy.txt"}));
    evening.outside("filesystem", moved).await;
    for (tool, args) in readers("copy.txt").into_iter().take(2) {
        evening.tells(tool, args).await;
    }
    // A command that was there before the file, and takes it when it comes.
    let evening = scene.evening().await;
    // One process: other tests may have as many as its user may have.
    let waits = "exec python3 -c 'import glob, shutil, time\nwhile not glob.glob(\"uploads/*.txt\"): time.sleep(0.1)\nshutil.copy(glob.glob(\"uploads/*.txt\")[0], \"copy.txt\")'";
    let mut waiting = command(waits);
    waiting["background"] = json!(true);
    evening.own("terminal", waiting).await;
    upload(&scene.server, &evening.session, "in.txt", WORDS.as_bytes()).await;
    let until = Instant::now() + Duration::from_secs(60);
    while fs::read(evening.path("copy.txt")).map_or(0, |it| it.len()) < WORDS.len() {
        assert!(Instant::now() < until, "it took nothing");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let read = files("read", json!({"path": "copy.txt"}));
    evening.tells("filesystem", read).await;
}

#[tokio::test]
async fn a_link_that_was_there_before_the_file() {
    let scene = Scene::new(&[]).await;
    let evening = scene.evening().await;
    evening
        .own("terminal", command("ln -s uploads notes"))
        .await;
    let file = upload(&scene.server, &evening.session, "in.txt", WORDS.as_bytes()).await;
    let path = file["path"].as_str().unwrap().replace("uploads", "notes");
    let read = files("read", json!({"path": path}));
    evening.tells("filesystem", read).await;
}

#[tokio::test]
async fn pages_searches_and_what_went_wrong_with_them() {
    let scene = Scene::new(&[]).await;
    let fetch = |path: &str| json!({"url": scene.site.url(path)});
    scene
        .evening()
        .await
        .tells("web_fetch", fetch("/page"))
        .await;
    scene
        .evening()
        .await
        .tells("web_search", json!({"query": "anything"}))
        .await;
    for path in ["/away", "/type", "/refused"] {
        scene
            .evening()
            .await
            .outside("web_fetch", fetch(path))
            .await;
    }
    // What was read may have been written down: notes are as foreign from then on.
    let evening = scene.evening().await;
    evening.tells("web_fetch", fetch("/page")).await;
    fs::create_dir_all(evening.path("")).unwrap();
    fs::write(evening.path("notes.md"), WORDS).unwrap();
    for (tool, args) in readers("notes.md").into_iter().take(2) {
        evening.tells(tool, args).await;
    }
    assert!(evening.asks().await);
}

/// What comes from outside may leave something in the workspace before it has ended: what is read
/// meanwhile is from outside as well.
#[tokio::test]
async fn what_is_read_beside_a_page_that_is_still_read() {
    let scene = Scene::new(&[]).await;
    let evening = scene.evening().await;
    fs::create_dir_all(evening.path("")).unwrap();
    fs::write(evening.path("mine.txt"), "own words").unwrap();
    let page = json!({"url": scene.site.url("/silent")});
    let read = files("read", json!({"path": "mine.txt"}));
    let both = [
        Step::tool_call("filesystem", read),
        Step::tool_call("web_fetch", page),
    ];
    scene.model.script(Reply::new(both).when("both at once"));
    let mut tab = scene.server.tab(&evening.session, None).await;
    let content = "read both at once";
    tab.send(&json!({"type": "message", "content": content}))
        .await;
    let ended = tab.next_of("tool_call").await;
    assert_eq!(ended["tool"], "filesystem", "{ended}");
    assert_eq!(ended["outside"], true, "{ended}");
    tab.send(&json!({"type": "stop"})).await;
    tab.next_of("stream_stopped").await;
}

#[tokio::test]
async fn a_message_with_a_file() {
    let scene = Scene::new(&[]).await;
    let evening = scene.evening().await;
    let file = upload(&scene.server, &evening.session, "a.txt", WORDS.as_bytes()).await;
    let mut tab = scene.server.tab(&evening.session, None).await;
    let files = json!([{"path": file["path"]}]);
    tab.send(&json!({"type": "message", "content": "look", "files": files}))
        .await;
    tab.until("stream_end").await;
    assert!(evening.snapshot().await["tainted_at"].is_string());
    assert!(evening.asks().await);
}

#[tokio::test]
async fn files_beside_the_workspace() {
    let scene = Scene::new(&[]).await;
    let note = text(&scene.beside.join("note.txt")).to_owned();
    for (tool, args) in readers(&note) {
        let elsewhere = ["search_content", "write"].map(|action| json!(action));
        if tool != "filesystem" || elsewhere.contains(&args["action"]) {
            continue;
        }
        scene.evening().await.tells(tool, args).await;
        fs::write(&note, WORDS).unwrap();
    }
    let evening = scene.evening().await;
    for content in ["new", "newer"] {
        let write = files("write", json!({"path": note, "content": content}));
        evening.own("filesystem", write).await;
    }
    fs::write(&note, WORDS).unwrap();
    let search = files(
        "search_content",
        json!({"pattern": WORDS, "path": scene.beside}),
    );
    scene.evening().await.tells("filesystem", search).await;
    let evening = scene.evening().await;
    let moved = files("move", json!({"path": note, "to": "mine.txt"}));
    evening.outside("filesystem", moved).await;
    let read = files("read", json!({"path": "mine.txt"}));
    evening.tells("filesystem", read).await;
}

#[tokio::test]
async fn programs_of_others() {
    let scene = Scene::new(&[]).await;
    scene.user_tool(
        "reads",
        "read",
        "cat \"$NAVI_WORKSPACE\"/* 2>/dev/null; echo foreign words",
    );
    scene.user_tool("fails", "read", "echo foreign words >&2; exit 4");
    scene.user_tool("writes", "write", "echo foreign words > made.txt");
    scene.mcp_servers(&["well", "die", "fail", "refuse"]);
    for tool in ["reads", "fails", "writes"] {
        scene.allow(tool).await;
    }
    scene.evening().await.tells("reads", json!({})).await;
    scene.evening().await.tells("fails", json!({})).await;
    let evening = scene.evening().await;
    evening.outside("writes", json!({})).await;
    let read = files("read", json!({"path": "made.txt"}));
    evening.tells("filesystem", read).await;
    for (tool, quotes) in [
        ("mcp__well__echo", true),
        ("mcp__die__echo", false),
        // A result that says of itself that it is an error, and an error of the protocol.
        ("mcp__fail__echo", true),
        ("mcp__refuse__echo", true),
    ] {
        scene.allow(tool).await;
        let evening = scene.evening().await;
        let told = evening.outside(tool, json!({"text": WORDS})).await;
        assert_eq!(told.contains(WORDS), quotes, "{tool}: {told}");
    }
}

/// The tools that tell nothing from outside. Each other one that comes with Navi is in [`walk`].
const OWN: [&str; 5] = [
    // It says the name again that it was given.
    "memory_forget",
    // What the model wrote there itself.
    "scratchpad",
    "todo",
    // What the user wrote to be followed.
    "skill",
    "switch_profile",
];

/// The others, each with a call that tells what others wrote.
fn walk(scene: &Scene) -> Vec<(&'static str, Value)> {
    let changed = json!({"category": "people", "key": "sister_name", "value": "Olena"});
    vec![
        (
            "filesystem",
            files("read", json!({"path": "uploads/in.txt"})),
        ),
        ("terminal", command("cat uploads/in.txt")),
        ("view_image", json!({"path": "uploads/foreign words.png"})),
        ("spawn_agent", json!({"task": "look into the file"})),
        ("memory_search", json!({"query": "sister"})),
        ("memory_save", changed),
        ("web_search", json!({"query": "anything"})),
        ("web_fetch", json!({"url": scene.site.url("/page")})),
        ("home_assistant", json!({"action": "states"})),
        (
            "ssh",
            json!({"action": "run", "host": "box", "command": "echo foreign words"}),
        ),
    ]
}

#[tokio::test]
async fn a_tool_that_nobody_thought_of() {
    let sshd = Sshd::start();
    let (hosts, known) = (sshd.path("hosts.json"), sshd.path("known_hosts"));
    let host = json!({"box": {
        "host": "127.0.0.1", "port": sshd.port, "user": sshd.user, "key": "user_key"
    }});
    fs::write(&hosts, host.to_string()).unwrap();
    fs::write(&known, sshd.known_hosts_line()).unwrap();
    let variables = [
        ("SSH_HOSTS_FILE", text(&hosts)),
        ("NAVI_SSH_KNOWN_HOSTS", text(&known)),
    ];
    let scene = Scene::new(&variables).await;
    let walked = walk(&scene);

    let skill = scene.server.house().data_dir().join("skills/own");
    fs::create_dir_all(&skill).unwrap();
    let text = "---\nname: own\ndescription: Mine.\n---\nText.\n";
    fs::write(skill.join("SKILL.md"), text).unwrap();
    scene.user_tool("reads", "read", "true");
    scene.mcp_servers(&["well"]);
    for tool in ["reads", "mcp__well__echo"] {
        scene.allow(tool).await;
    }
    let all = scene
        .tools_with(&["reads", "mcp__well__echo", "skill"])
        .await;
    let sources: BTreeSet<&str> = all
        .iter()
        .map(|it| it["source"].as_str().unwrap())
        .collect();
    // Those of the last two are walked through as what they are: `programs_of_others`.
    assert_eq!(sources, BTreeSet::from(["builtin", "mcp", "user"]));
    let come_with_navi = all.iter().filter(|it| it["source"] == "builtin");
    let come_with_navi: BTreeSet<&str> = come_with_navi
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    let known: BTreeSet<&str> = walked.iter().map(|(tool, _)| *tool).chain(OWN).collect();
    assert_eq!(come_with_navi, known);

    let evening = scene.sent().await;
    let read = files("read", json!({"path": "uploads/in.txt"}));
    evening.tells("filesystem", read.clone()).await;
    let fact = json!({"category": "people", "key": "sister_name", "value": WORDS});
    evening.call("memory_save", fact).await;
    scene
        .model
        .script(Reply::new([Step::tool_call("filesystem", read)]).system("for another assistant"));
    for (tool, args) in walked {
        let profile = match tool {
            "ssh" => "server_admin",
            "home_assistant" => "smart_home",
            _ => "secretary",
        };
        let evening = scene.sent_to(profile).await;
        fs::write(evening.path("uploads/foreign words.png"), PIXEL).unwrap();
        evening.tells(tool, args).await;
    }
}

#[tokio::test]
async fn a_command_with_a_network() {
    let scene = Scene::new(&[("TERMINAL_ALLOWED_COMMANDS", "*")]).await;
    let evening = scene.evening().await;
    evening
        .tells("terminal", command("echo foreign words; exit 1"))
        .await;
    assert!(evening.asks().await);
}

#[tokio::test]
async fn other_machines() {
    for (args, provenance) in [
        (json!({"action": "list_hosts"}), Provenance::Own),
        (json!({"action": "run"}), Provenance::Outside),
        (json!({"action": "upload"}), Provenance::Outside),
        (json!({"action": "download"}), Provenance::Outside),
    ] {
        assert_eq!(Ssh::new(Default::default()).provenance(&args), provenance);
    }
    let house = HomeAssistant::new(Default::default());
    assert_eq!(house.provenance(&json!({})), Provenance::Outside);
}

#[tokio::test]
async fn what_a_subagent_read() {
    let scene = Scene::new(&[]).await;
    let evening = scene.sent().await;
    let read = files("read", json!({"path": "uploads/in.txt"}));
    scene
        .model
        .script(Reply::new([Step::tool_call("filesystem", read)]).system("for another assistant"));
    let told = evening
        .outside("spawn_agent", json!({"task": "look into the file"}))
        .await;
    assert!(told.contains("completed_normally: true"), "{told}");
}

#[tokio::test]
async fn a_fact_that_nobody_confirmed() {
    let scene = Scene::new(&[]).await;
    let evening = scene.sent().await;
    let read = files("read", json!({"path": "uploads/in.txt"}));
    evening.tells("filesystem", read).await;
    let fact = json!({"category": "people", "key": "sister_name", "value": WORDS});
    evening.call("memory_save", fact.clone()).await;
    let later = scene.evening().await;
    later
        .tells("memory_search", json!({"query": "sister"}))
        .await;
    // Its name alone is in others' words, too.
    let later = scene.evening().await;
    later
        .outside("memory_search", json!({"query": "zebra"}))
        .await;
    // The value that is replaced is quoted.
    let later = scene.evening().await;
    let other = json!({"category": "people", "key": "sister_name", "value": "Olena"});
    later.tells("memory_save", other).await;
    let later = scene.evening().await;
    later.own("memory_search", json!({"query": "sister"})).await;
}

/// SPEC section 9: only on the user's explicit word.
#[tokio::test]
async fn nothing_of_the_user_is_forgotten_unasked() {
    let scene = Scene::new(&[]).await;
    let fact = json!({"category": "people", "key": "sister_name", "value": "Olena"});
    let name = json!({"category": "people", "key": "sister_name"});
    for tainted in [false, true] {
        let evening = scene.evening().await;
        evening.call("memory_save", fact.clone()).await;
        if tainted {
            let url = scene.site.url("/page");
            evening.call("web_fetch", json!({"url": url})).await;
        }
        let came = evening.call("memory_forget", name.clone()).await;
        assert_eq!((came.questions, &came.event["success"]), (1, &json!(true)));
    }
    assert_eq!(scene.server.get("/memory").await["facts"], json!([]));
}

/// An evening without anything from outside: nothing is marked, nothing is asked.
#[tokio::test]
async fn what_is_the_sessions_own_stays_so() {
    let scene = Scene::new(&[]).await;
    let evening = scene.evening().await;
    let write = |content: &str| files("write", json!({"path": "own.txt", "content": content}));
    evening.own("filesystem", write(WORDS)).await;
    for (tool, args) in readers("own.txt") {
        evening.own(tool, args).await;
        evening.own("filesystem", write(WORDS)).await;
    }
    for (tool, args) in [
        (
            "terminal",
            command("for i in 1 2 3; do echo $i > $i.txt; done; ls"),
        ),
        ("filesystem", files("list", json!({"depth": 2}))),
        (
            "filesystem",
            files("move", json!({"path": "1.txt", "to": "4.txt"})),
        ),
        ("filesystem", files("delete", json!({"path": "2.txt"}))),
        ("todo", json!({"action": "list"})),
        ("memory_search", json!({"query": "x"})),
    ] {
        evening.own(tool, args).await;
    }
    assert!(!evening.asks().await, "the first page, in the mode auto");
    assert!(evening.asks().await, "and the second one");
}
