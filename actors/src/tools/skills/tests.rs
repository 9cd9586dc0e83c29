//! Skills as they are found and read.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::tools::Tool;
use crate::tools::fake_session::{FakeSession, context};

fn write(dir: &TempDir, path: &str, text: &str) {
    let path = dir.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn skill(name: &str, description: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: {description}\nlicense: MIT\nmetadata:\n  version: \"1\"\n---\n\n# Do this\n\nRead `references/style.md`.\n"
    )
}

fn house() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    write(
        &dir,
        "release-notes/SKILL.md",
        &skill(
            "release-notes",
            "Writes release notes.\n  Use it when a release is due.",
        ),
    );
    write(&dir, "release-notes/references/style.md", "Short lines.");
    write(&dir, "release-notes/scripts/run.sh", "true");
    write(
        &dir,
        "brief/SKILL.md",
        &skill("brief", "\"Says: it in one sentence.\""),
    );
    dir
}

async fn call(dir: &TempDir, args: serde_json::Value) -> Result<String, String> {
    let tool = SkillTool::new(&scan(dir.path()).skills);
    let context = context(&Arc::new(FakeSession::default()), dir.path());
    let answer = tool.call(args, context).await;
    answer.map(|output| output.text).map_err(|error| error.0)
}

#[test]
fn names_and_descriptions_stand_in_the_prompt() {
    let dir = house();
    let tool = SkillTool::new(&scan(dir.path()).skills);
    let prompt = tool.prompt().unwrap();
    assert!(prompt.starts_with("## Skills\n"), "{prompt}");
    assert!(
        prompt.ends_with(
            "\n- brief: Says: it in one sentence.\n- release-notes: Writes release notes. Use it when a release is due."
        ),
        "{prompt}"
    );
    for n in 0..60 {
        write(
            &dir,
            &format!("s{n:02}/SKILL.md"),
            &skill(&format!("s{n:02}"), &"long ".repeat(200)),
        );
    }
    let many = SkillTool::new(&scan(dir.path()).skills);
    let prompt = many.prompt().unwrap();
    assert!(prompt.len() < 11 * 1024, "{}", prompt.len());
    assert!(prompt.contains("s59"), "none is left unnamed");
}

#[tokio::test]
async fn the_text_and_the_files_are_read_on_demand() {
    let dir = house();
    let text = call(&dir, json!({"name": "release-notes"})).await.unwrap();
    assert!(text.starts_with("# Do this\n"), "{text}");
    assert!(
        text.ends_with("- references/style.md\n- scripts/run.sh"),
        "{text}"
    );
    let file = json!({"name": "release-notes", "file": "references/style.md"});
    assert_eq!(call(&dir, file).await.unwrap(), "Short lines.");
    let wrong = call(&dir, json!({"name": "release-note"}))
        .await
        .unwrap_err();
    assert_eq!(
        wrong,
        "there is no skill `release-note`; did you mean `release-notes`?"
    );
}

#[tokio::test]
async fn nothing_outside_of_the_folder_is_read() {
    let dir = house();
    write(&dir, "secret.txt", "secret");
    let folder = dir.path().join("brief");
    symlink("/etc/hostname", folder.join("absolute")).unwrap();
    symlink("../secret.txt", folder.join("relative")).unwrap();
    for file in [
        "../secret.txt",
        "/etc/hostname",
        "absolute",
        "relative",
        "a/../../secret.txt",
        "",
        ".",
    ] {
        let told = call(&dir, json!({"name": "brief", "file": file})).await;
        assert!(told.is_err(), "{file}: {told:?}");
    }
}

#[test]
fn what_is_wrong_with_a_skill_is_said() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir, "good/SKILL.md", &skill("good", "It is."));
    write(&dir, "other/SKILL.md", &skill("name", "It is."));
    write(&dir, "bare/SKILL.md", "# Nothing before");
    write(&dir, "open/SKILL.md", "---\nname: open\n");
    write(&dir, "broken/SKILL.md", "---\nname: [broken\n---\n");
    write(&dir, "silent/SKILL.md", "---\nname: silent\n---\n");
    write(&dir, "bomb/SKILL.md", &bomb());
    fs::create_dir(dir.path().join("empty")).unwrap();
    let found = scan(dir.path());
    assert_eq!(found.skills.len(), 1);
    let told = found.problems.join("\n");
    for problem in [
        "bare is left out: SKILL.md must begin with a line `---`",
        "bomb is left out: SKILL.md",
        "broken is left out: SKILL.md",
        "empty is left out: there is no SKILL.md",
        "open is left out: SKILL.md must begin with a line `---`",
        "other is left out: SKILL.md: field `name`: it is \"name\", but the folder is called \"other\"",
        "silent is left out: SKILL.md",
    ] {
        assert!(told.contains(problem), "{problem}: {told}");
    }
    assert_eq!(found.problems.len(), 7, "{told}");
}

/// A text that names itself over and over.
fn bomb() -> String {
    let mut text =
        "---\nname: bomb\na: &a [\"x\",\"x\",\"x\",\"x\",\"x\",\"x\",\"x\",\"x\",\"x\"]\n"
            .to_owned();
    for (from, to) in "abcdefgh".chars().zip("bcdefghi".chars()) {
        text.push_str(&format!(
            "{to}: &{to} [{}]\n",
            vec![format!("*{from}"); 9].join(",")
        ));
    }
    text + "description: *i\n---\n"
}
