//! The command line: clear lines, right exit codes, no panic.

use std::fs::File;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::server::{House, text};

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Failed, with a word of why and without a panic.
fn failed_because(output: &Output, reason: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains(reason), "{said}");
    assert!(said.starts_with("navi: "), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn every_broken_setting_is_told_at_once() {
    let house = House::new(&[("OLLAMA_NUM_CTX", "many"), ("LOG_LEVEL", "loud")]);
    let output = house.run(&[]);
    failed_because(&output, "OLLAMA_NUM_CTX");
    failed_because(&output, "LOG_LEVEL");
}

#[test]
fn a_busy_port_an_outside_address_and_a_directory_that_cannot_be_are_one_line_each() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let busy = House::new(&[("NAVI_BIND", &address)]).run(&[]);
    failed_because(&busy, "is in use by another program");
    assert_eq!(String::from_utf8_lossy(&busy.stderr).lines().count(), 1);

    let outside = House::new(&[("NAVI_BIND", "0.0.0.0:0")]).run(&[]);
    failed_because(&outside, "a loopback address");

    let house = House::new(&[]);
    let file = house.data_dir();
    std::fs::write(&file, "in the way").unwrap();
    failed_because(&house.run(&[]), "data directory");
    failed_because(
        &house.run(&["--data-dir", text(&file.join("below"))]),
        "data directory",
    );
}

#[test]
fn one_service_a_data_directory() {
    let house = House::new(&[]);
    let server = house.start();
    let second = house.run(&[]);
    failed_because(&second, "already runs");
    failed_because(&second, server.authority());
}

#[test]
fn config_prints_where_each_value_came_from_and_hides_secrets() {
    let house = House::new(&[("OLLAMA_NUM_CTX", "8192"), ("OPENAI_API_KEY", "sk-hunter2")]);
    let output = house.run(&["config", "--json"]);
    assert!(output.status.success());
    let text = stdout(&output);
    assert!(!text.contains("hunter2") && !text.contains(crate::server::TOKEN));
    let rows: Vec<Value> = serde_json::from_str(&text).unwrap();
    let row = |name: &str| rows.iter().find(|row| row["variable"] == name).unwrap();
    assert_eq!(row("OLLAMA_NUM_CTX")["value"], "8192");
    assert_eq!(row("OLLAMA_NUM_CTX")["origin"], "environment");
    assert_eq!(row("LOG_LEVEL")["origin"], "default");
    assert_eq!(row("OPENAI_API_KEY")["value"], "[hidden]");
    assert!(stdout(&house.run(&["config"])).contains("OLLAMA_NUM_CTX"));
}

#[test]
fn what_a_full_disk_takes_of_the_output_is_told_and_a_reader_that_goes_is_no_fault() {
    let house = House::new(&[]);
    let run = |output: Stdio| {
        let mut command = house.command(&["config", "--json"]);
        command.stdout(output).stderr(Stdio::piped());
        command.spawn().unwrap().wait_with_output().unwrap()
    };
    let full = File::options().write(true).open("/dev/full").unwrap();
    let cut = run(full.into());
    failed_because(&cut, "standard output could not be written");
    assert_eq!(cut.status.code(), Some(1));

    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let left = run(writer.into());
    assert!(left.status.success());
    let said = String::from_utf8_lossy(&left.stderr);
    assert!(!said.contains("standard output"), "{said}");
}

#[test]
fn a_service_whose_greeting_is_lost_serves_and_ends_well() {
    let house = House::new(&[]);
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = house.command(&[]);
    let mut service = command.stdout(full).stderr(Stdio::null()).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while !house.run(&["link"]).status.success() {
        assert!(Instant::now() < until, "it does not serve");
    }
    kill_process(Pid::from_child(&service), Signal::TERM).unwrap();
    assert!(service.wait().unwrap().success());
}

#[test]
fn a_fetch_before_the_first_start_leaves_the_data_directory_to_its_user() {
    let house = House::new(&[("STARTER_MODEL", "smollm2-135m")]);
    failed_because(&house.run(&["model", "fetch", "nothing"]), "nothing");
    let mode = std::fs::metadata(house.data_dir()).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);
}

#[test]
fn doctor_says_by_its_exit_code_how_it_is() {
    let house = House::new(&[]);
    let output = house.run(&["doctor", "--json"]);
    // No model server answers here.
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(report["level"], "warning");
    let model = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["name"] == "model")
        .unwrap();
    assert!(model["remedy"].is_string(), "{model}");
    assert!(!house.data_dir().exists(), "doctor changes nothing");

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let broken = House::new(&[("NAVI_BIND", &address)]).run(&["doctor"]);
    assert_eq!(broken.status.code(), Some(2), "{}", stdout(&broken));
}

#[test]
fn doctor_reports_settings_that_are_wrong() {
    let house = House::new(&[("OLLAMA_NUM_CTX", "many"), ("LOG_LEVEL", "loud")]);
    let told = house.run(&["doctor"]);
    assert_eq!(told.status.code(), Some(2), "{}", stdout(&told));
    let line = stdout(&told);
    assert!(line.starts_with("✗ settings"), "{line}");
    assert!(line.contains("OLLAMA_NUM_CTX") && line.contains("LOG_LEVEL"));

    // One that shows where it is used first.
    let unknown = House::new(&[("STARTER_MODEL", "parrot")]);
    for (house, word, checks) in [(house, "LOG_LEVEL", 1), (unknown, "STARTER_MODEL", 9)] {
        let told = house.run(&["doctor", "--json"]);
        assert_eq!(told.status.code(), Some(2), "{}", stdout(&told));
        let report: Value = serde_json::from_str(&stdout(&told)).unwrap();
        assert_eq!(report["level"], "broken");
        let found = report["checks"].as_array().unwrap();
        assert_eq!(found.len(), checks, "{report}");
        assert_eq!(
            (&found[0]["name"], &found[0]["level"]),
            (&Value::from("settings"), &Value::from("broken"))
        );
        let detail = found[0]["detail"].as_str().unwrap();
        assert!(detail.contains(word), "{detail}");
        assert!(!house.data_dir().exists(), "doctor changes nothing");
    }
}

#[test]
fn migrations_go_up_down_and_up() {
    let house = House::new(&[]);
    std::fs::create_dir(house.data_dir()).unwrap();
    let states = |arguments: &[&str]| {
        let output = house.run(arguments);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = stdout(&output);
        assert!(text.contains("m0001_initial"), "{text}");
        (text.contains("pending"), text.contains("applied"))
    };
    if house.is_on_postgres() {
        states(&["migrate", "down", "--yes"]);
    }
    assert_eq!(states(&["migrate", "status"]), (true, false));
    assert_eq!(states(&["migrate", "up"]), (false, true));
    failed_because(&house.run(&["migrate", "down"]), "--yes");
    assert_eq!(states(&["migrate", "down", "--yes"]), (true, false));
    assert_eq!(states(&["migrate", "up"]), (false, true));
    let server = house.start();
    failed_because(&house.run(&["migrate", "down", "--yes"]), "stop it first");
    drop(server);
}

#[test]
fn a_profile_that_is_wrong_is_told_and_does_not_stop_the_start() {
    let house = House::new(&[]);
    let profiles = house.data_dir().join("profiles");
    std::fs::create_dir_all(&profiles).unwrap();
    std::fs::write(profiles.join("bad.toml"), "id = \"bad\"\ntemperatur = 1\n").unwrap();
    let server = house.start();
    let line = server.banner.iter().find(|line| line.contains("profiles"));
    let line = line.unwrap();
    assert!(line.starts_with('!'), "{line}");
    assert!(line.contains("`temperature`"), "{line}");
}

#[test]
fn a_default_profile_that_is_not_there_stops_the_start() {
    let output = House::new(&[("NAVI_DEFAULT_PROFILE", "butler")]).run(&[]);
    failed_because(&output, "secretary");
}
