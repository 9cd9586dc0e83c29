//! The keyboard and the screen themselves: a line editor that is always there, and lines that are
//! written above it.
//!
//! Two threads: one reads (`rustyline`), one writes. What is written while a line is edited goes
//! to the editor, which puts it above; what comes while none is, waits for the next one. Otherwise
//! what was given to the editor in a line's last instant would stand behind what came later.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc as blocking};
use std::thread;
use std::time::Duration;

use navi_actors::domain::unseen;
use navi_actors::protocol::ids::ApprovalId;
use parking_lot::{Condvar, Mutex};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{
    Cmd, ColorMode, CompletionType, ConditionalEventHandler, Config, Context, Editor, Event,
    EventContext, EventHandler, ExternalPrinter, Helper, KeyCode, KeyEvent, Modifiers, RepeatCount,
};
use tokio::sync::mpsc;

use super::commands::{COMMANDS, Command, Typed, typed};
use super::style::{Colours, Line, Look, Tint};

const PROMPT: &str = "› ";
/// How many lines are remembered for the next time.
const HISTORY: usize = 1_000;
/// How many prints wait for the screen.
const PRINTS: usize = 1_024;
/// How long what is written waits for the editor. It is there again at once, unless it hangs.
const EDITOR_LIMIT: Duration = Duration::from_secs(1);
/// How long a line's end waits for what is just being written.
const WRITE_LIMIT: Duration = Duration::from_millis(50);
/// How long the end waits for what was written.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Where the terminal does not say.
const WIDTH: usize = 80;

/// A key that answers a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Allow,
    Always,
    Deny,
}

/// What a person does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Input {
    Line(String),
    /// Answers this question.
    Key(Key, ApprovalId),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, `/quit`, or a terminal that is gone.
    End,
}

/// What the words of a command may be.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pub(super) profiles: Vec<String>,
    pub(super) models: Vec<String>,
}

/// See the module. The terminal is as it was when this is dropped.
#[derive(Debug)]
pub(super) struct Terminal {
    inputs: mpsc::UnboundedReceiver<Input>,
    prints: Option<blocking::SyncSender<String>>,
    /// Closed when all was written.
    written: blocking::Receiver<()>,
    shared: Arc<Shared>,
    colours: Colours,
    before: Option<Termios>,
}

/// What the threads share.
#[derive(Debug)]
struct Shared {
    place: Mutex<Place>,
    changed: Condvar,
    /// The question that keys answer just now.
    asks: Mutex<Option<ApprovalId>>,
    colours: Colours,
}

/// Where the editor and the writer are.
#[derive(Debug, Default)]
struct Place {
    /// A line is edited.
    edits: bool,
    /// It is about to end.
    ends: bool,
    /// Something is being given to the editor.
    writes: bool,
    /// No line will be edited any more.
    over: bool,
}

impl Shared {
    /// The editor shows itself: it takes what is written.
    fn edits(&self) {
        let mut place = self.place.lock();
        if !place.ends {
            place.edits = true;
            self.changed.notify_all();
        }
    }

    /// The line is about to end. What is being written has a moment to get to the editor.
    fn ends(&self) {
        let mut place = self.place.lock();
        (place.edits, place.ends) = (false, true);
        self.changed
            .wait_while_for(&mut place, |place| place.writes, WRITE_LIMIT);
    }

    fn begins(&self) {
        self.place.lock().ends = false;
    }

    fn is_over(&self) {
        self.place.lock().over = true;
        self.changed.notify_all();
    }

    fn begins_to_write(&self) {
        let mut place = self.place.lock();
        let waits = |place: &mut Place| !place.edits && !place.over;
        self.changed.wait_while_for(&mut place, waits, EDITOR_LIMIT);
        place.writes = true;
    }

    fn has_written(&self) {
        self.place.lock().writes = false;
        self.changed.notify_all();
    }
}

impl Terminal {
    /// Takes the terminal over. What was typed before stands in `history`.
    ///
    /// # Errors
    /// It is one that cannot have a line edited.
    pub(super) fn open(history: PathBuf, colours: Colours, names: Names) -> anyhow::Result<Self> {
        let before = tcgetattr(io::stdin()).ok();
        let shared = Arc::new(Shared {
            place: Mutex::default(),
            changed: Condvar::new(),
            asks: Mutex::default(),
            colours,
        });
        let (tell, inputs) = mpsc::unbounded_channel();
        let mut editor = editor(&shared, &tell, names)?;
        // A first time, or one that cannot be read: nothing is remembered.
        let _ = editor.load_history(&history);
        let printer = editor.create_external_printer()?;
        let (prints, to_print) = blocking::sync_channel(PRINTS);
        let (done, written) = blocking::channel();
        let writer = Arc::clone(&shared);
        thread::Builder::new()
            .name("chat-writer".to_owned())
            .spawn(move || {
                write(&to_print, printer, &writer);
                drop(done);
            })?;
        let reader = Arc::clone(&shared);
        thread::Builder::new()
            .name("chat-reader".to_owned())
            .spawn(move || {
                read(editor, &history, &reader, &tell);
                reader.is_over();
            })?;
        Ok(Self {
            inputs,
            prints: Some(prints),
            written,
            shared,
            colours,
            before,
        })
    }

    /// What is done next. May be dropped at any time, and asked again.
    pub(super) async fn next(&mut self) -> Input {
        self.inputs.recv().await.unwrap_or(Input::End)
    }

    /// Writes lines above the editor.
    pub(super) fn print(&self, lines: &[Line]) {
        if lines.is_empty() {
            return;
        }
        let mut text = String::new();
        for line in lines {
            text.push_str(&line.paint(self.colours));
            text.push('\n');
        }
        if let Some(prints) = &self.prints {
            // A terminal that takes nothing holds up whoever has something to say.
            let _ = prints.send(text);
        }
    }

    /// Which question keys answer from now on.
    pub(super) fn set_asks(&self, asks: Option<ApprovalId>) {
        *self.shared.asks.lock() = asks;
    }

    /// Gives the terminal back, with last words on it.
    pub(super) fn close(mut self, last_words: &[Line]) {
        self.prints = None;
        let _ = self.written.recv_timeout(LAST_WORDS);
        self.give_back();
        let mut out = io::stdout().lock();
        for line in last_words {
            let _ = writeln!(out, "{}", line.paint(self.colours));
        }
    }

    fn give_back(&mut self) {
        let Some(before) = self.before.take() else {
            return;
        };
        // The editor's prompt, and its wish for marked pastes.
        let mut out = io::stdout().lock();
        let _ = out.write_all(b"\r\x1b[J\x1b[?2004l");
        let _ = out.flush();
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &before);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// How wide the terminal is, in columns.
pub(super) fn width() -> usize {
    let size = tcgetwinsize(io::stdout()).ok();
    let columns = size.map(|size| usize::from(size.ws_col));
    columns.filter(|columns| *columns > 0).unwrap_or(WIDTH)
}

fn write(
    to_print: &blocking::Receiver<String>,
    mut printer: impl ExternalPrinter,
    shared: &Shared,
) {
    while let Ok(mut text) = to_print.recv() {
        while let Ok(more) = to_print.try_recv() {
            text.push_str(&more);
        }
        shared.begins_to_write();
        // A terminal that is gone is told by the reader.
        let _ = printer.print(text);
        shared.has_written();
    }
}

fn read(
    mut editor: Editor<Hand, DefaultHistory>,
    history: &Path,
    shared: &Shared,
    tell: &mpsc::UnboundedSender<Input>,
) {
    loop {
        shared.begins();
        let read = editor.readline(PROMPT);
        shared.ends();
        let input = match read {
            Ok(line) => {
                if !line.trim().is_empty() && editor.add_history_entry(&line).is_ok_and(|new| new) {
                    // What cannot be kept is known until the end.
                    let _ = editor.append_history(history);
                }
                match typed(&line) {
                    Typed::Command(Command::Quit) => Input::End,
                    _ => Input::Line(line),
                }
            }
            Err(ReadlineError::Interrupted) => Input::Interrupt,
            Err(_) => Input::End,
        };
        let is_end = input == Input::End;
        if tell.send(input).is_err() || is_end {
            return;
        }
    }
}

fn editor(
    shared: &Arc<Shared>,
    tell: &mpsc::UnboundedSender<Input>,
    names: Names,
) -> rustyline::Result<Editor<Hand, DefaultHistory>> {
    let config = Config::builder()
        .max_history_size(HISTORY)?
        .history_ignore_dups(true)?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        // So that the editor tells when it shows itself; without colours nothing is coloured.
        .color_mode(ColorMode::Forced)
        .build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(Hand {
        shared: Arc::clone(shared),
        files: FilenameCompleter::new(),
        names,
    }));
    for key in ['a', 'A', 'd'] {
        editor.bind_sequence(
            KeyEvent::from(key),
            EventHandler::Conditional(Box::new(Keys {
                shared: Arc::clone(shared),
                tell: tell.clone(),
                key: match key {
                    'a' => Key::Allow,
                    'A' => Key::Always,
                    _ => Key::Deny,
                },
            })),
        );
    }
    for key in ['C', 'D'] {
        editor.bind_sequence(
            KeyEvent::ctrl(key),
            EventHandler::Conditional(Box::new(Ends {
                shared: Arc::clone(shared),
                empty_only: key == 'D',
            })),
        );
    }
    editor.bind_sequence(
        KeyEvent(KeyCode::Enter, Modifiers::ALT),
        EventHandler::Simple(Cmd::Newline),
    );
    Ok(editor)
}

/// The keys that answer a question, where nothing was typed.
struct Keys {
    shared: Arc<Shared>,
    tell: mpsc::UnboundedSender<Input>,
    key: Key,
}

impl ConditionalEventHandler for Keys {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, ctx: &EventContext) -> Option<Cmd> {
        if !ctx.line().is_empty() {
            return None;
        }
        let asked = self.shared.asks.lock().take()?;
        self.tell.send(Input::Key(self.key, asked)).ok()?;
        Some(Cmd::Noop)
    }
}

/// The keys that end a line without its text.
struct Ends {
    shared: Arc<Shared>,
    empty_only: bool,
}

impl ConditionalEventHandler for Ends {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, ctx: &EventContext) -> Option<Cmd> {
        if !self.empty_only || ctx.line().is_empty() {
            self.shared.ends();
        }
        // It does what it always does.
        None
    }
}

/// What the editor asks.
struct Hand {
    shared: Arc<Shared>,
    files: FilenameCompleter,
    names: Names,
}

impl Helper for Hand {}

impl Hinter for Hand {
    type Hint = String;
}

impl Validator for Hand {
    fn validate(&self, _: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        self.shared.ends();
        Ok(ValidationResult::Valid(None))
    }
}

impl Highlighter for Hand {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(
        &'s self,
        prompt: &'p str,
        _: bool,
    ) -> std::borrow::Cow<'b, str> {
        self.shared.edits();
        let look = Look {
            bold: true,
            ..Tint::Own.into()
        };
        Line::of(look, prompt).paint(self.shared.colours).into()
    }
}

impl Completer for Hand {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = line.get(..pos).unwrap_or_default();
        let Some((name, word)) = before.split_once(' ') else {
            let names = COMMANDS.iter().map(|(name, ..)| *name);
            let is_one = before.starts_with('/');
            return Ok((0, beginning_with(before, names.filter(|_| is_one))));
        };
        let at = pos - word.len();
        let found = match name {
            "/file" => {
                let (at, mut found) = self.files.complete_path(line, pos)?;
                // A name on the disk may be anybody's.
                found.retain(|pair| !pair.display.contains(unseen::is_moving));
                return Ok((at, found));
            }
            "/mode" => beginning_with(word, ["ask", "edits", "auto"].into_iter()),
            "/profile" => beginning_with(word, self.names.profiles.iter().map(String::as_str)),
            "/model" => beginning_with(word, self.names.models.iter().map(String::as_str)),
            _ => Vec::new(),
        };
        Ok((at, found))
    }
}

fn beginning_with<'a>(text: &str, words: impl Iterator<Item = &'a str>) -> Vec<Pair> {
    let words = words.filter(|word| word.starts_with(text) && !word.contains(unseen::is_moving));
    words
        .map(|word| Pair {
            display: word.to_owned(),
            replacement: word.to_owned(),
        })
        .collect()
}
