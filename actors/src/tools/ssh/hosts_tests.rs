use super::*;

fn read(text: &str) -> Result<Vec<Host>, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hosts.json");
    std::fs::write(&path, text).unwrap();
    let place = format!("{}/", dir.path().display());
    super::read(&path, Some(Path::new("/home/me")))
        .map_err(|error| error.replace(&place, ""))
        .map(|mut hosts| {
            for host in &mut hosts {
                host.key = host.key.take().map(|key| {
                    key.strip_prefix(dir.path())
                        .map_or(key.clone(), Path::to_owned)
                });
            }
            hosts
        })
}

#[test]
fn hosts_are_read_in_their_order() {
    let hosts = read(
        r#"{
            "web1": {"host": "192.0.2.10", "port": 2222, "user": "deploy", "key": "~/.ssh/id"},
            "db": {"host": "DB.example", "user": "root", "description": "the database"},
            "nas": {"host": "2001:db8::1", "user": "me", "key": "nas_key", "agent": true}
        }"#,
    )
    .unwrap();
    let names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names, ["web1", "db", "nas"]);
    let (web, db, nas) = (&hosts[0], &hosts[1], &hosts[2]);
    assert_eq!(web.known_as(), "[192.0.2.10]:2222");
    assert_eq!(web.key.as_deref(), Some(Path::new("/home/me/.ssh/id")));
    assert!(!web.agent);
    assert_eq!(db.login(), "root@db.example");
    assert!(db.agent && db.key.is_none());
    assert_eq!(nas.key.as_deref(), Some(Path::new("nas_key")));
    assert!(nas.agent);
}

#[test]
fn fields_have_the_names_of_other_programs_too() {
    let one = read(r#"{"a": {"hostname": "h", "username": "u", "identity_file": "k"}}"#);
    let other = read(r#"{"a": {"host": "h", "user": "u", "key_file": "k"}}"#);
    assert_eq!(one.unwrap(), other.unwrap());
}

#[test]
fn what_is_wrong_is_told_with_file_and_line() {
    let errors: Vec<String> = [
        "",
        "[]",
        "{\n\"a\": {\"host\": \"h\"}\n}",
        "{\n\"a\": {\"host\": \"h\",\n\"user\": \"u\",\n\"port\": 70000}}",
        "{\n\"a\": {\"host\": \"u@h\", \"user\": \"u\"}}",
        "{\n\n\"a b\": {\"host\": \"h\", \"user\": \"u\"}}",
        "{\n\"a\": {\"host\": \"h\", \"user\": \"u\"},\n\"a\": {\"host\": \"h\", \"user\": \"u\"}}",
        "{\"a\": {\"host\": \"h\", \"user\": \"u\",\n\"password\": \"hunter2\"}}",
        "{\"a\": {\"host\": \"-oProxyCommand=x\", \"user\": \"u\"}}",
        "{\"a\": {\"host\": \"h\", \"user\": \"u\", \"key\": \"-----BEGIN OPENSSH PRIVATE KEY-----\\nsecret of the key that is much longer than that\"}}",
        "{\"a\": {\"host\": \"h\", \"user\": \"u\", \"description\": \"x\\ny\"}}",
    ]
    .into_iter()
    .map(|text| read(text).unwrap_err())
    .collect();
    insta::assert_snapshot!(errors.join("\n"));
}
