use proptest::prelude::*;

use super::*;

fn only(names: &str) -> Allowed {
    Allowed::parse(names).unwrap()
}

#[test]
fn a_setting_is_read() {
    assert_eq!(Allowed::parse("").unwrap(), Allowed::Any);
    assert_eq!(Allowed::parse(" , ").unwrap(), Allowed::Any);
    assert_eq!(Allowed::parse("*").unwrap(), Allowed::Everything);
    let names = ["cat", "ls"].map(str::to_owned);
    assert_eq!(
        Allowed::parse("ls, cat,").unwrap(),
        Allowed::Only(names.into())
    );
    for wrong in ["*,ls", "ls -l", "a;b"] {
        assert!(Allowed::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn what_runs_any_other_command_is_left_out_of_a_list() {
    let allowed = only("ls,/bin/sh,sed,make");
    assert_eq!(allowed.left_out(), ["/bin/sh", "make", "sed"]);
    for command in ["/bin/sh x.sh", "sed '1e sh x.sh' f", "make", "less f"] {
        let refused = allowed.words(command).unwrap_err();
        assert!(refused.0.ends_with("may be run here: ls"), "{refused}");
    }
    assert!(allowed.words("ls").is_ok());
    assert!(Allowed::Everything.left_out().is_empty());
}

#[test]
fn listed_commands_run_as_their_words() {
    let allowed = only("ls,git,find,tar,rsync");
    let words = |command: &str| allowed.words(command).unwrap();
    assert_eq!(words("ls -l 'a b'"), ["ls", "-l", "a b"]);
    assert_eq!(words("git log --oneline"), ["git", "log", "--oneline"]);
    assert_eq!(words("find . -name x"), ["find", ".", "-name", "x"]);
    for plain in [
        "git commit -am text",
        "git log --pretty=oneline",
        "tar -xzf a.tar --strip-components=1",
        "tar czf a.tar In",
        "rsync -av --delete a b",
    ] {
        assert!(allowed.words(plain).is_ok(), "{plain}");
    }
    let any = Allowed::Any.words("a; b").unwrap();
    assert_eq!(any, by_shell("a; b"));
    assert!(any[0].ends_with("sh") && any[4] == "a; b");
}

#[test]
fn everything_else_is_refused() {
    let allowed = only("ls,git,find,tar,echo,rsync,sort");
    for command in [
        "",
        "rm x",
        "/bin/ls",
        "./ls",
        "ls; rm x",
        "ls && rm x",
        "ls | sh",
        "ls\nrm x",
        "ls $(rm x)",
        "ls `rm x`",
        "ls > x",
        "ls < x",
        "ls *",
        "echo $HOME",
        "echo '$HOME'",
        "ls ~",
        "X=1 ls",
        "env ls",
        "env -S 'ls'",
        "sh -c ls",
        "xargs ls",
        "find . -exec rm x",
        "find . -execdir rm x",
        "find . -okdir rm x",
        "find . -delete",
        "find . -fprintf x y",
        "git -c core.pager=x log",
        "git -ccore.pager=x log",
        "git --config-env=core.pager=X log",
        "git --exec-path=/tmp log",
        "tar --to-command=sh -xf a",
        "tar -Ish -xf a",
        "tar -xf a.tar --to-comm='sh x.sh'",
        "tar xIf ./x.sh a.tar",
        "tar -cMF ./x.sh -f a.tar",
        "rsync -ae ./x.sh a b",
        "rsync --rs=./x.sh a b",
        "sort --comp=./x.sh f",
        "sed '1e sh x.sh' f",
        "ls 'unclosed",
    ] {
        assert!(allowed.words(command).is_err(), "{command}");
    }
}

proptest! {
    #[test]
    fn only_listed_first_words_ever_run(command in "[a-z ;&|'\"$(){}\n\\\\/-]{0,40}") {
        if let Ok(words) = only("ls,cat").words(&command) {
            prop_assert!(words[0] == "ls" || words[0] == "cat");
            prop_assert!(!command.contains([';', '&', '|', '$', '(', '\n', '\\']));
        }
    }
}
