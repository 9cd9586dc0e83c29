//! `read`: a file's lines, a range at a time. Of a large file no more is held than is shown.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Cursor, Read as _};

use encoding_rs_io::DecodeReaderBytesBuilder;

use super::FilesystemArgs;
use super::text::{Encoding, SNIFFED_BYTES, refuse_binary};
use crate::tools::ToolResult;
use crate::tools::output::{RESULT_LIMIT_BYTES, counted, cut_middle, human_size};
use crate::tools::workspace::{InnerPath, OrFault as _, Root, Spot};

/// What is kept free for the lines before and after the file's own.
const FRAME_BYTES: usize = 512;
/// As many bytes of lines as are shown.
const ROOM: usize = RESULT_LIMIT_BYTES - FRAME_BYTES;
/// As many bytes as are looked through behind the lines that are shown, to say how many lines
/// there are in all.
const COUNTED_BYTES: usize = 256 << 20;

pub(super) fn read(Spot { root, path }: &Spot, args: &FilesystemArgs) -> ToolResult<String> {
    let file = root.open_file(path)?;
    let size = file.metadata().or_fault(path)?.len();
    let mut start = Vec::with_capacity(SNIFFED_BYTES);
    let mut first = (&file).take(SNIFFED_BYTES as u64);
    first.read_to_end(&mut start).or_fault(path)?;
    if start.is_empty() {
        return Ok(format!("`{path}` is empty"));
    }
    let encoding = Encoding::of(&start);
    refuse_binary(path, encoding, &start, size)?;
    let mut lines = Lines::of(args);
    // As UTF-8, whatever it is. UTF-8 itself passes as it stands, valid or not.
    let source = DecodeReaderBytesBuilder::new()
        .utf8_passthru(true)
        .strip_bom(true)
        .build(Cursor::new(start).chain(file));
    lines.read(root, path, BufReader::new(source))?;
    lines.damaged |= encoding.is_utf16() && lines.body.contains(char::REPLACEMENT_CHARACTER);
    lines.told(path, size, encoding)
}

/// The lines of a file, as far as they are wanted and fit.
#[derive(Debug, Default)]
struct Lines {
    numbered: bool,
    /// The first line that is wanted, and the first that is not.
    first: u64,
    end: u64,
    body: String,
    /// How many lines are shown.
    taken: u64,
    /// How many lines there are, as far as was looked.
    total: u64,
    /// One that was wanted did not fit any more.
    full: bool,
    /// There may be lines that were not counted.
    uncounted: bool,
    /// Some of what is shown is not valid in the file's encoding.
    damaged: bool,
}

impl Lines {
    fn of(args: &FilesystemArgs) -> Self {
        let first = args.start_line.unwrap_or(0).max(1);
        let count = args.line_count.filter(|count| *count > 0);
        let count = count.unwrap_or(u64::MAX);
        Self {
            numbered: args.line_numbers,
            first,
            end: first.saturating_add(count),
            ..Self::default()
        }
    }

    fn read(&mut self, root: &Root, path: &InnerPath, mut source: impl BufRead) -> ToolResult<()> {
        let mut line = Held::default();
        let mut behind = 0;
        loop {
            root.check_stop()?;
            let mut piece = (&mut source).take(ROOM as u64);
            let length = piece.read_until(b'\n', &mut line.bytes).or_fault(path)?;
            if line.bytes.is_empty() {
                return Ok(());
            }
            if self.full || self.total + 1 >= self.end {
                behind += length;
            }
            if behind > COUNTED_BYTES {
                self.uncounted = true;
                return Ok(());
            }
            // The last line may have no end.
            if length > 0 && !line.bytes.ends_with(b"\n") {
                if line.bytes.len() > 4 * ROOM {
                    let tail = line.bytes.len() - ROOM;
                    line.dropped += tail - ROOM;
                    line.bytes.drain(ROOM..tail);
                }
                continue;
            }
            let next = self.total + 1;
            if !self.full && next >= self.first && next < self.end {
                self.take(&line);
            }
            self.total += 1;
            line.bytes.clear();
            line.dropped = 0;
        }
    }

    /// Shows the next line, if it fits. At least one does: one that doesn't is cut.
    fn take(&mut self, line: &Held) {
        let (mut line, damaged) = line.shown();
        if self.numbered {
            line = format!("{}: {line}", self.total + 1);
        }
        if self.taken > 0 {
            if self.body.len() + 1 + line.len() > ROOM {
                self.full = true;
                return;
            }
            self.body.push('\n');
        }
        self.body.push_str(&line);
        self.taken += 1;
        self.damaged |= damaged;
    }

    fn told(&self, path: &InnerPath, size: u64, encoding: Encoding) -> ToolResult<String> {
        let total = usize::try_from(self.total).unwrap_or(usize::MAX);
        refuse_if!(
            self.taken == 0,
            "`{path}` has only {}; use a smaller start_line",
            counted(total, "line")
        );
        let last = self.first + self.taken - 1;
        let lines = if self.taken == 1 {
            format!("line {last}")
        } else {
            format!("lines {} to {last}", self.first)
        };
        let more = if self.uncounted { "over " } else { "" };
        let mut text = format!(
            "`{path}`, {lines} of {more}{total} ({}):\n{}",
            human_size(size),
            self.body
        );
        if last < self.total || self.uncounted {
            let left = usize::try_from(self.total - last).unwrap_or(usize::MAX);
            text.push_str(&format!(
                "\n[{more}{} more; to go on, read with start_line {}]",
                counted(left, "line"),
                last + 1
            ));
        }
        if self.damaged {
            text.push_str(&format!(
                "\n[the file is no valid {}; what could not be read is shown as \u{fffd}]",
                encoding.name()
            ));
        }
        Ok(text)
    }
}

/// A line that is being read: whole, or its two ends where it is longer than can be shown.
#[derive(Debug, Default)]
struct Held {
    /// With its end, where it has one.
    bytes: Vec<u8>,
    /// How many bytes between the first [`ROOM`] and the rest were let go.
    dropped: usize,
}

impl Held {
    /// As much of the line as is shown, and whether it was no valid UTF-8.
    fn shown(&self) -> (String, bool) {
        let bytes = self.bytes.strip_suffix(b"\n").unwrap_or(&self.bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if self.dropped == 0 {
            let text = String::from_utf8_lossy(bytes);
            let damaged = matches!(text, Cow::Owned(_));
            return (cut_middle(&text, ROOM), damaged);
        }
        // The ends are cut anywhere, so that damage there says nothing of the file.
        let head = String::from_utf8_lossy(&bytes[..ROOM / 2]);
        let tail = String::from_utf8_lossy(&bytes[bytes.len() - ROOM / 4..]);
        let missing = bytes.len() + self.dropped - ROOM / 2 - ROOM / 4;
        let line = format!("{head}\n[… {missing} bytes cut here …]\n{tail}");
        (line, false)
    }
}
