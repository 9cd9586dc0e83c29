use super::*;

#[test]
fn paths_that_lead_out_are_refused() {
    for text in [
        "",
        ".",
        "..",
        "/",
        "/etc/passwd",
        "~/x",
        "~",
        "a/../../b",
        "a/..",
        "a\0b",
        "a\nb",
        "dir/",
    ] {
        assert!(InnerPath::file(text).is_err(), "{text:?}");
    }
    assert!(InnerPath::file(&"x/".repeat(40)).is_err());
    assert!(InnerPath::file(&"x".repeat(2000)).is_err());
    assert_eq!(
        InnerPath::file("./a//b.txt").unwrap().to_string(),
        "a/b.txt"
    );
}

#[tokio::test]
async fn a_file_that_is_not_finished_is_never_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = InnerPath::file("a/b.txt").unwrap();
    let sink = create(dir.path(), &path).unwrap();
    assert!(sink.put(Bytes::from_static(b"half")).await);
    let Sink { sender, writer, .. } = sink;
    drop(sender);
    assert!(writer.await.unwrap().is_err());
    let left: Vec<_> = std::fs::read_dir(dir.path().join("a")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn links_that_lead_out_are_refused() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "secret").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let link =
        |from: &str, to: &Path| std::os::unix::fs::symlink(to, dir.path().join(from)).unwrap();
    link("out", outside.path());
    link("file", &outside.path().join("secret"));
    link("dangling", &outside.path().join("new"));
    for text in ["out/secret", "file", "dangling"] {
        let path = InnerPath::file(text).unwrap();
        assert!(open(dir.path(), &path, 1000).is_err(), "read {text}");
    }
    for text in ["out/new", "out/secret", "file", "dangling"] {
        let path = InnerPath::file(text).unwrap();
        assert!(create(dir.path(), &path).is_err(), "write {text}");
    }
    assert!(!outside.path().join("new").exists());
    assert_eq!(
        std::fs::read(outside.path().join("secret")).unwrap(),
        b"secret"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_that_is_put_in_the_way_is_replaced_and_not_followed() {
    let outside = tempfile::tempdir().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = InnerPath::file("report.txt").unwrap();
    let sink = create(dir.path(), &path).unwrap();
    let target = outside.path().join("target");
    std::os::unix::fs::symlink(&target, dir.path().join("report.txt")).unwrap();
    assert!(sink.put(Bytes::from_static(b"text")).await);
    sink.finish().await.unwrap();
    assert!(!target.exists());
    assert_eq!(
        std::fs::read(dir.path().join("report.txt")).unwrap(),
        b"text"
    );
    assert!(!dir.path().join("report.txt").is_symlink());
}
