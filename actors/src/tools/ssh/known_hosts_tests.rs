use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;

fn host(address: &str, port: u16) -> Host {
    Host {
        name: "web1".to_owned(),
        address: address.to_owned(),
        port,
        user: "me".to_owned(),
        key: None,
        agent: true,
        description: String::new(),
    }
}

fn key(of: &str) -> KeyData {
    let key: PublicKey = format!("ssh-ed25519 {of}").parse().unwrap();
    key.key_data().clone()
}

/// Two keys of the first kind, and one of each of two others.
const A: &str = "AAAAC3NzaC1lZDI1NTE5AAAAINSH3QhZEnfoZbfLpkPh8GzAMtBI36racQHAtXT+tJwz";
const B: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIMjhQ1tdiy/rxuLjDd6hj9DTyQc7G7oc983YFwUkvXql";
const ECDSA: &str = "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBPSOrzLmCYnaQlkc1fqfATLp/u41QVxK61m4mMmmEAzzKmo/2WmEiuy6eIa63xTf6BeNKeKlR/Cu2xXbKiNGUQc=";
const RSA: &str = "AAAAB3NzaC1yc2EAAAADAQABAAABgQDKNqm87rDqPh5DaqdrcY2F1pDiCwm82itMegtDs+lDJd7q0vAzuhXMoJSWRPCdnELbTYAweF06172lXhWikbQIlj+5CDCb9fQLgWWfbS1mFP8sFB9PVskXGwU/DCyg9MNOLjgcefgKiyQCs29EYNvK0rixnoKaItg5ERJ2BX6CCczeorBRmsD81cN2Sb00V76Z92YS2DCigoNRL0KTSTz6DCi0GbZoGmfvwQitJiD6WzbBOJ0mLrMbFtUTDCSec47SRE3jC3YvzKt1gFxsj1Yd+1f+/I/3zs3kWh5R/Ux+W7HNQjWqJYemhtfUGl3NiI7fSHXpswhw4mdDPGvK/vCXoBKp2bhSEGNg2b0SaXMB4hezPa8LOEr194P7ZIm4B1e4nvHC2R0k0HXZ03qxU7BeUUxbBgDp9429F+EERTxlRCPUu6wPqTC8Iawk4X6IPNeCXhqY0aw+B//bveEf+eHx4n4YoAJm9GsJrluHyO4pfAbtZNtqMyDg6xZhYTBP4js=";

fn known_hosts_in(own: PathBuf, more: Option<PathBuf>) -> KnownHosts {
    let adding = Mutex::default();
    KnownHosts { own, more, adding }
}

fn status(text: &str, host: &Host, key: &KeyData) -> KeyStatus {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("known_hosts");
    fs::write(&path, text).unwrap();
    let known = known_hosts_in(path, None);
    let here = format!("{}/", dir.path().display());
    match known.of(host, None).unwrap().status(key) {
        KeyStatus::Changed(place) => KeyStatus::Changed(place.replace(&here, "")),
        KeyStatus::Revoked(place) => KeyStatus::Revoked(place.replace(&here, "")),
        other => other,
    }
}

fn place(line: usize) -> String {
    format!("known_hosts, line {line}")
}

#[test]
fn a_key_is_held_against_the_lines_of_its_host() {
    let ed = key(A);
    let web = host("web.example", 22);
    let text =
        format!("# a comment\n\nother ssh-ed25519 {B}\nweb.example,10.0.0.1 ssh-ed25519 {A} me\n");
    assert_eq!(status(&text, &web, &ed), KeyStatus::Known);
    assert_eq!(status("", &web, &ed), KeyStatus::Unknown);
    // The port is a part of the name.
    assert_eq!(
        status(&text, &host("web.example", 2222), &ed),
        KeyStatus::Unknown
    );
    let text = format!("[web.example]:2222 ssh-ed25519 {A}\n");
    assert_eq!(
        status(&text, &host("WEB.example", 2222), &ed),
        KeyStatus::Known
    );
    let text = format!("\nweb.example ssh-ed25519 {B}\n");
    assert_eq!(status(&text, &web, &ed), KeyStatus::Changed(place(2)));
    // A key of another kind than the known one is no reason to trust it.
    let text = format!("web.example ecdsa-sha2-nistp256 {ECDSA}\n");
    assert_eq!(status(&text, &web, &ed), KeyStatus::Changed(place(1)));
    // RSA keys cannot be compared, so that they say nothing.
    let text = format!("web.example ssh-rsa {RSA}\n");
    assert_eq!(status(&text, &web, &ed), KeyStatus::Unknown);
    let text = format!("@revoked * ssh-ed25519 {A}\nweb.example ssh-ed25519 {A}\n");
    assert_eq!(status(&text, &web, &ed), KeyStatus::Revoked(place(1)));
    for other in ["@cert-authority *", "# *", "#x,web.example"] {
        let text = format!("{other} ssh-ed25519 {A}\n");
        assert_eq!(status(&text, &web, &ed), KeyStatus::Unknown, "{other}");
    }
    let text = format!("web.example\tssh-ed25519   {A}\r\n");
    assert_eq!(status(&text, &web, &ed), KeyStatus::Known);
}

#[test]
fn names_may_be_patterns() {
    let ed = key(A);
    let text = format!("*.example,!secret.example,10.0.?.1 ssh-ed25519 {A}\n");
    for (name, expected) in [
        ("web.example", KeyStatus::Known),
        ("a.b.EXAMPLE", KeyStatus::Known),
        ("secret.example", KeyStatus::Unknown),
        ("example", KeyStatus::Unknown),
        ("10.0.7.1", KeyStatus::Known),
        ("10.0.77.1", KeyStatus::Unknown),
    ] {
        assert_eq!(status(&text, &host(name, 22), &ed), expected, "{name}");
    }
}

#[test]
fn hashed_names_are_found() {
    let ed = key(A);
    let salt = [7_u8; 20];
    let hash_key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &salt);
    let hash = hmac::sign(&hash_key, b"[web.example]:2222");
    let text = format!(
        "|1|{}|{} ssh-ed25519 {A}\n|1|broken ssh-ed25519 {B}\n",
        STANDARD.encode(salt),
        STANDARD.encode(hash)
    );
    assert_eq!(
        status(&text, &host("web.example", 2222), &ed),
        KeyStatus::Known
    );
    assert_eq!(
        status(&text, &host("web.example", 22), &ed),
        KeyStatus::Unknown
    );
}

#[test]
fn a_new_key_is_added_once_on_a_line_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join("ssh/known_hosts");
    fs::create_dir(dir.path().join("ssh")).unwrap();
    fs::write(&own, "no end of line").unwrap();
    let known = known_hosts_in(own.clone(), None);
    let web = host("web.example", 2222);
    let ed = key(A);
    known.add(&web, &ed, None).unwrap();
    known.add(&web, &ed, None).unwrap();
    assert_eq!(
        fs::read_to_string(&own).unwrap(),
        format!("no end of line\n[web.example]:2222 ssh-ed25519 {A}\n")
    );
    assert_eq!(known.of(&web, None).unwrap().status(&ed), KeyStatus::Known);
}

#[test]
fn another_file_is_read_and_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let (own, more) = (dir.path().join("own"), dir.path().join("more"));
    fs::write(&more, format!("web.example ssh-ed25519 {A}\n")).unwrap();
    let known = known_hosts_in(own.clone(), Some(more));
    let web = host("web.example", 22);
    let ed = key(A);
    assert_eq!(known.of(&web, None).unwrap().status(&ed), KeyStatus::Known);
    known.add(&web, &ed, None).unwrap();
    assert!(!own.exists());
}

#[test]
fn what_one_person_approves_counts_for_them_alone_until_they_go() {
    let dir = tempfile::tempdir().unwrap();
    let trust = Trust::new(dir.path().join("known_hosts"), None);
    let known = Arc::clone(&trust.known);
    let (web, ed) = (host("web.example", 22), key(A));
    let (anna, borys) = (UserId::new(), UserId::new());
    known.add(&web, &ed, Some(anna)).unwrap();
    let status = |person| known.of(&web, person).unwrap().status(&ed);
    assert_eq!(status(Some(anna)), KeyStatus::Known);
    assert_eq!(status(Some(borys)), KeyStatus::Unknown);
    assert_eq!(status(None), KeyStatus::Unknown);
    trust.forget(anna);
    trust.forget(anna);
    assert_eq!(status(Some(anna)), KeyStatus::Unknown);
    // What holds for all holds for each.
    known.add(&web, &ed, None).unwrap();
    assert_eq!(status(Some(borys)), KeyStatus::Known);
}
