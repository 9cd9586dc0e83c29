//! User tools as they are found, allowed and run: with real programs.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::protocol::tool::Effect;
use crate::tools::fake_session::{FakeSession, context};
use crate::tools::registry::{Registry, USER_TOOLS};
use crate::tools::trust::Trust;
use crate::tools::{Tool, ToolError, ToolOutput};

/// A folder of tools, and what runs them.
struct House {
    dir: TempDir,
    workshop: Workshop,
}

impl House {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["tools", "workspace"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let workshop = Workshop {
            trust: Trust::default(),
            copies: Copies::new(dir.path().join("copies")),
            runner: Runner::new(None),
        };
        Self { dir, workshop }
    }

    fn tools(&self) -> std::path::PathBuf {
        self.dir.path().join("tools")
    }

    fn workspace(&self) -> std::path::PathBuf {
        self.dir.path().join("workspace")
    }

    /// A tool that is this shell script.
    fn shell(&self, name: &str, script: &str) {
        self.write(&format!("{name}/tool.toml"), &manifest(name, ""));
        self.write(&format!("{name}/run.sh"), &format!("#!/bin/sh\n{script}\n"));
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.tools().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        if path.extension().is_some_and(|it| it == "sh") {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    fn scan(&self) -> Vec<ScannedTool> {
        Scanner::new(self.tools()).scan().tools
    }

    fn sha256(&self, name: &str) -> String {
        let tools = self.scan();
        let tool = tools.iter().find(|tool| tool.name == name).unwrap();
        tool.found.as_ref().unwrap().1.clone()
    }

    fn problem(&self, name: &str) -> String {
        let tools = self.scan();
        let tool = tools.iter().find(|tool| tool.name == name).unwrap();
        tool.found.as_ref().map(|_| ()).unwrap_err().clone()
    }

    /// Everything that is there and good, allowed as it is.
    fn registry(&self) -> Registry {
        let tools = self.scan().into_iter().filter_map(|tool| {
            let (manifest, sha256) = tool.found.ok()?;
            let workshop = self.workshop.clone();
            workshop.trust.allow(tool.name, sha256.clone());
            let tool: Arc<dyn Tool> =
                Arc::new(UserTool::new(manifest, tool.folder, sha256, workshop));
            Some(tool)
        });
        Registry::new(tools)
    }

    async fn call(
        &self,
        registry: &Registry,
        name: &str,
        args: Value,
    ) -> Result<ToolOutput, ToolError> {
        let prepared = registry.prepare(name, &args, &[name.to_owned()])?;
        let context = context(&Arc::new(FakeSession::default()), &self.workspace());
        prepared.tool.call(prepared.args, context).await
    }

    async fn answer(&self, name: &str, args: Value) -> Result<String, String> {
        let answer = self.call(&self.registry(), name, args).await;
        answer.map(|output| output.text).map_err(|error| error.0)
    }
}

fn manifest(name: &str, more: &str) -> String {
    format!(
        "name = \"{name}\"\ndescription = \"Does it.\"\neffect = \"read\"\nexecutable = \"run.sh\"\n{more}\n"
    )
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[tokio::test]
async fn the_examples_do_what_their_page_says() {
    let house = House::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/tools");
    for name in ["disk_space", "csv_summary", "prime_factors"] {
        copy(&examples.join(name), &house.tools().join(name));
    }
    // The line that its source and the page name.
    let built = Command::new("cc")
        .args(["-O2", "-o", "prime_factors", "prime_factors.c"])
        .current_dir(house.tools().join("prime_factors"))
        .status();
    assert!(
        built.unwrap().success(),
        "a C compiler is part of the set-up"
    );
    fs::write(
        house.workspace().join("sales.csv"),
        "day,price\n1,2\n2,4\n3,none\n",
    )
    .unwrap();

    let room = house.answer("disk_space", json!({})).await.unwrap();
    assert!(room.starts_with("Filesystem"), "{room}");
    let summary = json!({"file": "sales.csv", "column": "price"});
    assert_eq!(
        house.answer("csv_summary", summary).await.unwrap(),
        "2 numbers, 1 other values\nleast 2, mean 3, greatest 4\n"
    );
    let wrong = json!({"file": "sales.csv", "column": "cost"});
    let wrong = house.answer("csv_summary", wrong).await.unwrap_err();
    assert_eq!(
        wrong,
        "the tool csv_summary failed with exit code 1. It said: there is no column 'cost'; there are day, price"
    );
    let factors = house
        .answer("prime_factors", json!({"number": "360"}))
        .await;
    assert_eq!(factors.unwrap(), "360 = 2 * 2 * 2 * 3 * 3 * 5\n");
}

#[tokio::test]
async fn arguments_that_miss_the_schema_never_reach_the_program() {
    let house = House::new();
    let schema = "[parameters]\nrequired = [\"code\"]\nadditionalProperties = false\n\
        [parameters.properties.code]\ntype = \"string\"\npattern = \"^[a-z]{2,4}$\"\n\
        [parameters.properties.count]\nanyOf = [{ type = \"integer\", multipleOf = 5 }, { type = \"null\" }]";
    house.write("strict/tool.toml", &manifest("strict", schema));
    house.write("strict/run.sh", "#!/bin/sh\ntouch ran; cat");
    let registry = house.registry();
    for (args, told) in [
        (json!({}), "missing: `code`"),
        (json!({"code": "toolong"}), "does not match"),
        (json!({"code": "ab", "count": 7}), "`count`: 7 is not valid"),
        (
            json!({"code": "ab", "other": 1}),
            "there is no field `other`",
        ),
        (json!("{\"code\": \"ab"), "break off"),
    ] {
        let error = house.call(&registry, "strict", args).await.unwrap_err().0;
        assert!(error.contains(told), "{error}");
    }
    assert!(!house.workspace().join("ran").exists());
    let args = json!({"code": "ab", "count": 10});
    assert_eq!(
        house.answer("strict", args.clone()).await.unwrap(),
        args.to_string()
    );
}

#[tokio::test]
async fn a_program_gets_its_folder_and_nothing_of_navis() {
    let house = House::new();
    house.shell("env_of", "pwd; env | sort");
    let told = house.answer("env_of", json!({})).await.unwrap();
    let workspace = fs::canonicalize(house.workspace()).unwrap();
    assert!(
        told.starts_with(&format!("{}\n", workspace.display())),
        "{told}"
    );
    let names = told
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name);
    let names: Vec<&str> = names
        .filter(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name))
        .collect();
    assert_eq!(
        names,
        [
            "HOME",
            "LANG",
            "NAVI_TOOL_DIR",
            "NAVI_WORKSPACE",
            "PATH",
            "PYTHONDONTWRITEBYTECODE"
        ]
    );
}

#[test]
fn a_tools_limit_is_told_as_its_manifest_has_it_and_is_waited_for_a_little_longer() {
    let house = House::new();
    let limit = manifest("slow", "time_limit_seconds = 7");
    house.write("slow/tool.toml", &limit);
    house.write("slow/run.sh", "#!/bin/sh\n");
    let registry = house.registry();
    let called = registry.prepare("slow", &json!({}), &["slow".to_owned()]);
    let tool = called.unwrap().tool;
    assert_eq!(tool.spec().time_limit_ms, 7_000);
    assert!(tool.margin() > Duration::ZERO);
}

#[tokio::test]
async fn a_tool_that_hangs_floods_or_fails_ends_with_everything_that_it_started() {
    let house = House::new();
    house.write(
        "slow/tool.toml",
        // Its child has to begin within it, on any machine.
        &manifest("slow", "time_limit_seconds = 5"),
    );
    house.write(
        "slow/run.sh",
        "#!/bin/sh\nsleep 300 & echo $! > child; wait",
    );
    let began = Instant::now();
    let error = house.answer("slow", json!({})).await.unwrap_err();
    assert!(
        error.contains("did not end within its limit of 5 s"),
        "{error}"
    );
    assert!(began.elapsed() < Duration::from_secs(60));
    let child = fs::read_to_string(house.workspace().join("child")).unwrap();
    assert!(is_gone(child.trim()).await, "{child} lives");

    house.shell("flood", "yes flood");
    let error = house.answer("flood", json!({})).await.unwrap_err();
    assert!(
        error.contains("wrote more than 1.0 MiB"),
        "{}",
        &error[..200]
    );

    house.shell("leaves", "sleep 300 & echo $! > left; echo done");
    let began = Instant::now();
    assert_eq!(house.answer("leaves", json!({})).await.unwrap(), "done\n");
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "what is left behind holds nobody up"
    );
    let left = fs::read_to_string(house.workspace().join("left")).unwrap();
    assert!(is_gone(left.trim()).await);

    house.shell(
        "loud",
        "i=0; while [ $i -lt 3000 ]; do echo \"line $i of many\" >&2; i=$((i+1)); done; exit 7",
    );
    let error = house.answer("loud", json!({})).await.unwrap_err();
    assert!(
        error.contains("exit code 7") && error.ends_with("line 2999 of many"),
        "{error}"
    );
    assert!(error.len() < 3000);
}

#[tokio::test]
async fn a_call_that_is_dropped_ends_its_program() {
    let house = House::new();
    house.shell("waits", "echo $$ > own.new; mv own.new own; sleep 300");
    let registry = house.registry();
    let calling = house.call(&registry, "waits", json!({}));
    let began = async {
        while !house.workspace().join("own").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        ended = calling => panic!("{ended:?}"),
        () = began => {}
    }
    let own = fs::read_to_string(house.workspace().join("own")).unwrap();
    assert!(is_gone(own.trim()).await);
}

async fn is_gone(pid: &str) -> bool {
    let stat = format!("/proc/{pid}/stat");
    for _ in 0..3_000 {
        match fs::read_to_string(&stat) {
            Err(_) => return true,
            // Dead, and nobody's any more: init has yet to take note.
            Ok(stat) if stat.contains(") Z ") => return true,
            Ok(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
    false
}

#[tokio::test]
async fn a_long_result_is_cut_and_kept_whole() {
    let house = House::new();
    house.shell("long", "yes 0123456789 | head -n 10000");
    let told = house.answer("long", json!({})).await.unwrap();
    assert!(told.len() <= 32 * 1024, "{}", told.len());
    let (_, file) = told
        .rsplit_once("the whole output is in the file ")
        .unwrap();
    let whole = fs::read_to_string(house.workspace().join(file.trim_end_matches(']'))).unwrap();
    assert_eq!(whole.lines().count(), 10_000);
}

#[tokio::test]
async fn what_was_allowed_is_what_runs() {
    let house = House::new();
    house.shell("own", "echo one");
    let registry = house.registry();
    let own = house.call(&registry, "own", json!({})).await.unwrap();
    assert_eq!(own.text, "one\n");

    // Each of these is another tool.
    let before = house.sha256("own");
    house.write("own/data.txt", "");
    assert_ne!(house.sha256("own"), before);
    let error = house.call(&registry, "own", json!({})).await.unwrap_err().0;
    assert!(
        error.contains("was changed since it was allowed"),
        "{error}"
    );
    fs::remove_file(house.tools().join("own/data.txt")).unwrap();
    assert_eq!(house.sha256("own"), before);
    let script = house.tools().join("own/run.sh");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(house.problem("own").contains("chmod +x"));
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(
        house.call(&registry, "own", json!({})).await.unwrap().text,
        "one\n"
    );
    house.shell("own", "echo two");
    assert!(house.call(&registry, "own", json!({})).await.is_err());

    // One that is allowed no more does not run, whoever holds it.
    let registry = house.registry();
    house.workshop.trust.forbid("own");
    let error = house.call(&registry, "own", json!({})).await.unwrap_err().0;
    assert!(error.contains("not allowed as it is now"), "{error}");
}

#[test]
fn what_is_wrong_with_a_folder_is_said() {
    let house = House::new();
    house.shell("good", "true");
    house.shell("linked", "true");
    symlink("/etc/passwd", house.tools().join("linked/data")).unwrap();
    symlink(house.tools().join("good"), house.tools().join("link")).unwrap();
    fs::create_dir(house.tools().join("empty")).unwrap();
    house.write("other/tool.toml", &manifest("name", ""));
    house.write("Big/tool.toml", &manifest("Big", ""));
    house.write("unknown/tool.toml", &manifest("unknown", "network = true"));
    house.write(
        "away/tool.toml",
        &manifest("away", "").replace("run.sh", "../good/run.sh"),
    );
    house.write("unbuilt/tool.toml", &manifest("unbuilt", ""));
    house.write(
        "far/tool.toml",
        &manifest(
            "far",
            "[parameters.properties.a]\n\"$ref\" = \"https://example.com/a\"",
        ),
    );
    house.write("bad/tool.json", "{\"name\": ");
    for (name, told) in [
        ("Big", "must begin with a small letter"),
        ("away", "must be a file of this folder"),
        ("bad", "tool.json: EOF"),
        ("empty", "it has no manifest; add a tool.toml"),
        ("far", "field `parameters`: no good JSON Schema"),
        ("link", "it is a link; put the folder itself here"),
        ("linked", "data is a link"),
        (
            "other",
            "it is \"name\", but the folder is called \"other\"",
        ),
        (
            "unbuilt",
            "there is no file \"run.sh\" in the folder (is it built?)",
        ),
        ("unknown", "unknown field `network`"),
    ] {
        let problem = house.problem(name);
        assert!(problem.contains(told), "{name}: {problem}");
    }
    assert_eq!(house.sha256("good").len(), 64);
}

#[test]
fn a_good_tool_asks_as_nothing_holds_it() {
    let house = House::new();
    house.shell("quiet", "true");
    let registry = house.registry();
    let names = registry.names(&[USER_TOOLS.to_owned(), "todo".to_owned()]);
    assert_eq!(names, ["quiet", "todo"]);
    let ready = registry.prepare("quiet", &json!({}), &names).unwrap();
    assert_eq!((ready.effect, ready.side_by_side), (Effect::Host, false));
}

#[test]
fn what_did_not_change_is_not_read_again() {
    let house = House::new();
    house.shell("own", "true");
    let mut scanner = Scanner::new(house.tools());
    let first = scanner.scan();
    let second = scanner.scan();
    let manifest = |scan: &Scan| Arc::clone(&scan.tools[0].found.as_ref().unwrap().0);
    assert!(Arc::ptr_eq(&manifest(&first), &manifest(&second)));
    house.shell("own", "false");
    assert!(!Arc::ptr_eq(&manifest(&first), &manifest(&scanner.scan())));
}

#[test]
fn folders_whose_long_names_begin_alike_are_told_apart() {
    let house = House::new();
    let long = "x".repeat(100);
    for end in ["a", "b"] {
        house.shell(&format!("{long}{end}"), "true");
    }
    let found = house.scan();
    assert_eq!(found.len(), 2);
    for tool in found {
        assert!(tool.name.len() < long.len(), "{}", tool.name);
        let problem = tool.found.unwrap_err();
        assert!(problem.contains("at most 48"), "{problem}");
    }
}
