use super::*;

#[test]
fn odd_ways_of_writing_an_address_come_to_the_same() {
    for text in [
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://0x7f.1/",
        "http://127.0.0.1./",
        "http://１２７.0.0.1/",
        "HTTP://127.0.0.1#there",
    ] {
        assert_eq!(parse(text).unwrap().as_str(), "http://127.0.0.1/", "{text}");
    }
}

#[test]
fn what_is_no_web_address_is_refused() {
    for (text, said) in [
        ("file:///etc/passwd", "file: addresses are not fetched"),
        ("ftp://example.com/", "ftp: addresses"),
        ("gopher://example.com/", "gopher: addresses"),
        ("data:text/html,x", "data: addresses"),
        ("javascript:alert(1)", "javascript: addresses"),
        ("localhost:8000/x", "localhost: addresses"),
        ("example.com", "write it whole"),
        ("", "write it whole"),
        ("http://", "write it whole"),
        ("http://me:secret@example.com/", "a user name or a password"),
        ("http://example.com@10.0.0.1/", "a user name or a password"),
        ("http://exa mple.com/", "spaces or control"),
        ("http://example.com/\r\nHost: evil", "spaces or control"),
        ("http://ex\tample.com/", "spaces or control"),
        ("http:\\\\example.com\\x", "backslash"),
        ("http://[::1", "write it whole"),
        ("http://256.256.256.256/", "write it whole"),
        ("http://example.com:99999/", "write it whole"),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(said), "{text}: {error}");
        assert!(!error.contains("secret"), "{error}");
    }
    let long = format!("http://example.com/{}", "a".repeat(MAX_URL_BYTES));
    assert!(parse(&long).unwrap_err().0.contains("longer than 4096"));
}
