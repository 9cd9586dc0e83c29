//! What a person types: a message, or a command with a slash before it.

use std::str::FromStr;

use navi_actors::protocol::approval::ConsentMode;

use super::style::{Line, Look, Tint};

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    New,
    /// The newest sessions, or those that hold these words.
    Sessions(String),
    /// By its number in the list that was shown, or its id.
    Open(String),
    File(String),
    Stop,
    Continue,
    Mode(Option<ConsentMode>),
    /// None asks which there are; `-` is the profile's own.
    Model(Option<String>),
    Profile(Option<String>),
    Title(String),
    Thinking,
    Allow,
    Always,
    Deny(Option<String>),
    Help,
    Quit,
}

/// A line that was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Typed {
    Nothing,
    Message(String),
    Command(Command),
    /// What is wrong with it.
    Wrong(String),
}

/// Each command, what it is given, and what it does.
pub(super) const COMMANDS: [(&str, &str, &str); 16] = [
    ("/new", "", "begin another conversation"),
    (
        "/sessions",
        "[WORDS]",
        "the newest conversations, or those that hold these words",
    ),
    (
        "/open",
        "N|ID",
        "open one of the list by its number, or any by its id",
    ),
    ("/file", "PATH", "attach a file to the next message"),
    ("/stop", "", "stop the run, as Ctrl-C does"),
    ("/continue", "", "go on from a run that was cut off"),
    (
        "/mode",
        "[ask|edits|auto]",
        "how much is done without asking",
    ),
    (
        "/model",
        "[NAME|-]",
        "which model answers; - is the profile's own",
    ),
    ("/profile", "[ID]", "which profile answers"),
    ("/title", "TEXT", "name the conversation"),
    ("/thinking", "", "show what the model thought last"),
    ("/allow", "", "allow what is asked, as the key a does"),
    ("/always", "", "allow it from now on, as the key A does"),
    ("/deny", "[WHY]", "deny what is asked, and say why"),
    ("/help", "", "this list"),
    (
        "/quit",
        "",
        "leave, as Ctrl-D does; a run goes on without you",
    ),
];

/// Reads a line. What begins with a slash and is no command is a message where it has another
/// slash, as a path does.
pub(super) fn typed(line: &str) -> Typed {
    let line = line.trim();
    if line.is_empty() {
        return Typed::Nothing;
    }
    if !line.starts_with('/') || line.contains('\n') {
        return Typed::Message(line.to_owned());
    }
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let given = || (!rest.is_empty()).then(|| rest.to_owned());
    let command = match name {
        "/new" => Command::New,
        "/sessions" => Command::Sessions(rest.to_owned()),
        "/stop" => Command::Stop,
        "/continue" => Command::Continue,
        "/model" => Command::Model(given()),
        "/profile" => Command::Profile(given()),
        "/thinking" => Command::Thinking,
        "/allow" => Command::Allow,
        "/always" => Command::Always,
        "/deny" => Command::Deny(given()),
        "/help" => Command::Help,
        "/quit" | "/exit" => Command::Quit,
        "/mode" => match given().map(|word| mode(&word)) {
            None => Command::Mode(None),
            Some(Some(mode)) => Command::Mode(Some(mode)),
            Some(None) => {
                return Typed::Wrong(format!("there is no mode {rest}: ask, edits or auto"));
            }
        },
        "/open" | "/file" | "/title" => match (name, given()) {
            ("/open", Some(which)) => Command::Open(which),
            ("/file", Some(path)) => Command::File(path),
            ("/title", Some(title)) => Command::Title(title),
            _ => return Typed::Wrong(format!("{name} wants something behind it; /help says what")),
        },
        other if other[1..].contains('/') => return Typed::Message(line.to_owned()),
        other => return Typed::Wrong(format!("there is no command {other}; /help has them all")),
    };
    Typed::Command(command)
}

/// A mode by its name.
pub(super) fn mode(word: &str) -> Option<ConsentMode> {
    match word {
        "ask" => Some(ConsentMode::Ask),
        "edits" => Some(ConsentMode::Edits),
        "auto" => Some(ConsentMode::Auto),
        _ => None,
    }
}

/// Which of a list is meant.
pub(super) fn pick<T: Copy + FromStr>(which: &str, listed: &[T]) -> Result<T, String> {
    if let Ok(number) = which.parse::<usize>() {
        let found = number.checked_sub(1).and_then(|at| listed.get(at));
        return found.copied().ok_or_else(|| {
            format!("there is no {number} in the list; /sessions shows what there is")
        });
    }
    let wrong = || format!("{which} is neither a number of the list nor an id");
    which.parse().map_err(|_| wrong())
}

pub(super) fn help() -> Vec<Line> {
    let mut lines: Vec<Line> = COMMANDS
        .iter()
        .map(|(name, given, does)| {
            let call = format!("{name} {given}");
            Line::of(Look::BOLD, &format!("  {call:<26}")).and(Tint::Dim, does)
        })
        .collect();
    for keys in [
        "Enter sends, also while a run goes: the message waits for its end. Alt-Enter is a new line.",
        "Ctrl-C stops the run; twice at rest it leaves. Up and Ctrl-R look through what you typed.",
    ] {
        lines.push(Line::of(Tint::Dim, &format!("  {keys}")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use navi_actors::protocol::ids::SessionId;

    use super::*;

    #[test]
    fn a_line_is_a_message_a_command_or_wrong() {
        let message = |text: &str| Typed::Message(text.to_owned());
        assert_eq!(typed("  \n"), Typed::Nothing);
        assert_eq!(typed(" hello /new "), message("hello /new"));
        assert_eq!(typed("/etc/fstab is odd"), message("/etc/fstab is odd"));
        assert_eq!(typed("/quit\nand more"), message("/quit\nand more"));
        let command = |command| Typed::Command(command);
        assert_eq!(typed("/new"), command(Command::New));
        assert_eq!(
            typed("/sessions two  words "),
            command(Command::Sessions("two  words".to_owned()))
        );
        assert_eq!(typed("/mode"), command(Command::Mode(None)));
        assert_eq!(
            typed("/mode auto"),
            command(Command::Mode(Some(ConsentMode::Auto)))
        );
        assert_eq!(
            typed("/deny not there"),
            command(Command::Deny(Some("not there".to_owned())))
        );
        for wrong in ["/mode loud", "/open", "/file ", "/dance"] {
            assert!(matches!(typed(wrong), Typed::Wrong(_)), "{wrong}");
        }
    }

    #[test]
    fn every_command_of_the_list_is_one() {
        for (name, ..) in COMMANDS {
            let line = match name {
                "/open" | "/file" | "/title" => format!("{name} x"),
                other => other.to_owned(),
            };
            assert!(matches!(typed(&line), Typed::Command(_)), "{name}");
        }
    }

    #[test]
    fn a_session_is_picked_by_its_number_or_its_id() {
        let listed = [SessionId::new(), SessionId::new()];
        assert_eq!(pick("2", &listed), Ok(listed[1]));
        assert_eq!(pick(&listed[0].to_string(), &[]), Ok(listed[0]));
        for wrong in ["0", "3", "two"] {
            assert!(pick(wrong, &listed).is_err(), "{wrong}");
        }
    }
}
