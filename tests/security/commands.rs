//! Commands that carry others past a list of allowed ones.

use super::ward::Ward;

/// The list refuses the command, and nothing of it happens; without a list it does what it is
/// meant to do, so that the refusal means something.
async fn only_a_list_refuses(command: &str) {
    let listed = Ward::only("ls,echo,cat,git,find,true");
    let refused = listed.run(command).await.unwrap_err();
    assert!(
        refused.contains("may be run here") || refused.contains("may not be run with"),
        "{refused}"
    );
    assert!(!listed.workspace().join("pwned").exists(), "{command}");

    let free = Ward::inside();
    let said = free.run(command).await;
    assert!(
        free.workspace().join("pwned").exists(),
        "{command}: {said:?}"
    );
}

macro_rules! refused {
    ($($name:ident: $command:expr;)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                only_a_list_refuses($command).await;
            }
        )*
    };
}

refused! {
    semicolon: "true; touch pwned";
    and_and: "true && touch pwned";
    or_or: "false || touch pwned";
    pipe: "echo pwned | xargs touch";
    ampersand: "true & touch pwned";
    dollar_brackets: "echo $(touch pwned)";
    back_ticks: "echo `touch pwned`";
    process_substitution: "cat <(touch pwned)";
    newline: "true\ntouch pwned";
    carriage_return_and_newline: "true\r\ntouch pwned";
    redirection: "echo x > pwned";
    redirection_without_space: "echo x>pwned";
    glob: "echo x > pwne[d]; touch pwned *";
    home: "touch $HOME/pwned";
    assignment: "X=1 touch pwned";
    env_split: "env -S 'touch pwned'";
    env_program: "env touch pwned";
    sh_c: "sh -c 'touch pwned'";
    bash_c: "bash -c 'touch pwned'";
    shell_by_path: "/bin/sh -c 'touch pwned'";
    xargs: "xargs touch pwned";
    find_exec: "find . -maxdepth 0 -exec touch pwned ';'";
    find_execdir: "find . -maxdepth 0 -fprint pwned";
    git_config: "git -c alias.x='!touch pwned' x";
    nohup: "nohup touch pwned";
    timeout_program: "timeout 5 touch pwned";
    by_another_path: "/usr/bin/touch pwned";
    quoted_name: "'touch' pwned";
    escaped_name: "t\\ouch pwned";
    brace: "{ touch pwned; }";
    function: "ls() { touch pwned; }; ls";
    eval_words: "eval touch pwned";
    command_words: "command touch pwned";
}

#[tokio::test]
async fn git_core_pager() {
    let listed = Ward::only("git");
    let command = "git -c core.pager='touch pwned' -p log";
    let refused = listed.run(command).await.unwrap_err();
    assert!(refused.contains("may not be run with `-c`"), "{refused}");
}

#[tokio::test]
async fn two_hundred_subcommands() {
    let mut command = "true; ".repeat(200);
    command.push_str("touch pwned");
    only_a_list_refuses(&command).await;
}

#[tokio::test]
async fn what_is_listed_runs() {
    let listed = Ward::only("ls,echo,cat");
    std::fs::write(listed.workspace().join("a b.txt"), "content").unwrap();
    let said = listed.run("cat 'a b.txt'").await.unwrap();
    assert!(said.starts_with("content\n[exit code 0"), "{said}");
    let said = listed.run("echo hello").await.unwrap();
    assert!(said.starts_with("hello\n"), "{said}");
}
