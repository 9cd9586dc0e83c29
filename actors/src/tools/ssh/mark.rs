//! The process of a command, for where the host does not pass signals on.
//!
//! OpenSSH sends no signals to the commands of root (its `session_signal_req` wants the privilege
//! separation that root's sessions go without), and closing a channel ends nothing by itself. So
//! root's shell first tells its own process, in a line of standard error that is taken out again.

use uuid::Uuid;

/// Who gets no signals.
const ROOT: &str = "root";
/// `navi-`, a tag, `-`, and a number.
const MAX_LINE_BYTES: usize = 40;

/// What is known of the process.
#[derive(Debug)]
pub(super) struct Mark {
    /// What the line begins with; none where no line comes.
    begins: Option<String>,
    /// What may still become the line.
    held: Vec<u8>,
    process: Option<u32>,
}

impl Mark {
    /// The mark of a user's command, and the command with what tells it.
    pub(super) fn of(user: &str, command: &str) -> (Self, String) {
        if user != ROOT {
            return (Self::new(None), command.to_owned());
        }
        let tag = Uuid::new_v4().simple().to_string();
        let begins = format!("navi-{}-", &tag[..12]);
        let command = format!("printf '{begins}%s\\n' \"$$\" >&2\n{command}");
        (Self::new(Some(begins)), command)
    }

    fn new(begins: Option<String>) -> Self {
        Self {
            begins,
            held: Vec::new(),
            process: None,
        }
    }

    /// The next of standard error, without the line.
    pub(super) fn without_line(&mut self, bytes: &[u8]) -> Vec<u8> {
        let Some(begins) = &self.begins else {
            return bytes.to_vec();
        };
        self.held.extend_from_slice(bytes);
        if let Some(end) = self.held.iter().position(|&byte| byte == b'\n') {
            let line = String::from_utf8_lossy(&self.held[..end]).into_owned();
            // A shell of another kind may say something else: that is output like any other.
            if let Some(number) = line.strip_prefix(begins.as_str()) {
                self.process = number.parse().ok().filter(|process| *process > 1);
                self.held.drain(..=end);
            }
        } else if self.held.len() < MAX_LINE_BYTES {
            return Vec::new();
        }
        self.begins = None;
        std::mem::take(&mut self.held)
    }

    /// What was held back, where no line came.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        self.begins = None;
        std::mem::take(&mut self.held)
    }

    /// What ends the process and all that it has started, run on the same host.
    pub(super) fn killer(&self) -> Option<String> {
        let process = self.process?;
        Some(format!(
            "kill -TERM -- -{process} 2>/dev/null && sleep 1; kill -KILL -- -{process} 2>/dev/null"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_taken_out_however_it_comes() {
        let (mut mark, command) = Mark::of("root", "uptime");
        assert!(command.ends_with("\nuptime"), "{command}");
        let begins = mark.begins.clone().unwrap_or_default();
        let mut shown = Vec::new();
        for byte in format!("{begins}4711\nfirst\nsecond\n").bytes() {
            shown.extend(mark.without_line(&[byte]));
        }
        assert_eq!(shown, b"first\nsecond\n");
        assert!(
            mark.killer()
                .is_some_and(|killer| killer.contains("-KILL -- -4711"))
        );
    }

    #[test]
    fn other_output_stays_as_it_is() {
        let (mut mark, command) = Mark::of("me", "uptime");
        assert_eq!(command, "uptime");
        assert_eq!(mark.without_line(b"navi-1\n"), b"navi-1\n");
        for text in ["other\nmore\n", "navi-forged-1\n", "navi-000000000000-1\n"] {
            let (mut mark, _) = Mark::of("root", "uptime");
            assert_eq!(mark.without_line(text.as_bytes()), text.as_bytes());
            assert_eq!(mark.killer(), None);
        }
        mark = Mark::of("root", "uptime").0;
        let begins = mark.begins.clone().unwrap_or_default();
        // Every process, and the first one, are nothing to end.
        for number in ["1", "0", "-1", "4294967296", ""] {
            mark.begins = Some(begins.clone());
            assert!(
                mark.without_line(format!("{begins}{number}\n").as_bytes())
                    .is_empty()
            );
            assert_eq!(mark.killer(), None, "{number}");
        }
        let (mut mark, _) = Mark::of("root", "uptime");
        assert!(mark.without_line(b"half").is_empty());
        assert_eq!(mark.rest(), b"half");
    }
}
