//! Reads the paths that a Rust file names, without comments and literals.
//!
//! A scanner, not a parser: it knows just enough of the language to see `a::b`, nested
//! `use` groups and inline modules.

/// A word or sign of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    /// `::`
    Colons,
    Sign(char),
}

/// A path as the source names it, as far as its first segments matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedPath {
    pub(crate) segments: Vec<String>,
    /// How many inline modules of the file it stands in.
    pub(crate) inline_depth: usize,
    pub(crate) line: usize,
}

/// Every path of two or more segments, with `use` groups spread out.
pub(crate) fn named_paths(source: &str) -> Vec<NamedPath> {
    let tokens = tokens(source);
    let mut reader = Reader {
        tokens: &tokens,
        at: 0,
        open: Vec::new(),
        found: Vec::new(),
    };
    reader.read();
    reader.found
}

struct Reader<'a> {
    tokens: &'a [(Token, usize)],
    at: usize,
    /// For each open brace, whether it is an inline module's.
    open: Vec<bool>,
    found: Vec<NamedPath>,
}

impl Reader<'_> {
    fn token(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead).map(|(token, _)| token)
    }

    fn read(&mut self) {
        while let Some(token) = self.token(0) {
            match token {
                Token::Word(word) if word == "mod" && self.opens_inline_module() => {
                    self.open.push(true);
                    self.at += 3;
                }
                Token::Word(word) if word == "use" => {
                    self.at += 1;
                    self.read_tree(&[]);
                }
                Token::Word(_) | Token::Colons => self.read_tree(&[]),
                Token::Sign('{') => {
                    self.open.push(false);
                    self.at += 1;
                }
                Token::Sign('}') => {
                    self.open.pop();
                    self.at += 1;
                }
                Token::Sign(_) => self.at += 1,
            }
        }
    }

    fn opens_inline_module(&self) -> bool {
        matches!(
            (self.token(1), self.token(2)),
            (Some(Token::Word(_)), Some(Token::Sign('{')))
        )
    }

    /// Reads `a::b::{c, d::e}` from where it stands and notes each path that it names.
    fn read_tree(&mut self, prefix: &[String]) {
        let line = self.tokens[self.at].1;
        let mut segments = prefix.to_vec();
        if self.token(0) == Some(&Token::Colons) {
            self.at += 1;
        }
        loop {
            match self.token(0) {
                Some(Token::Word(word)) => segments.push(word.clone()),
                Some(Token::Sign('{')) if segments.len() > prefix.len() || !prefix.is_empty() => {
                    self.read_group(&segments);
                    return;
                }
                _ => break,
            }
            self.at += 1;
            if self.token(0) != Some(&Token::Colons) {
                break;
            }
            self.at += 1;
        }
        if segments.len() > 1 {
            self.found.push(NamedPath {
                segments,
                inline_depth: self.open.iter().filter(|is_module| **is_module).count(),
                line,
            });
        }
    }

    fn read_group(&mut self, prefix: &[String]) {
        self.at += 1;
        loop {
            match self.token(0) {
                Some(Token::Word(_) | Token::Colons | Token::Sign('{')) => self.read_tree(prefix),
                Some(Token::Sign('}')) => {
                    self.at += 1;
                    return;
                }
                Some(Token::Sign(_)) => self.at += 1,
                None => return,
            }
        }
    }
}

fn tokens(source: &str) -> Vec<(Token, usize)> {
    let chars: Vec<char> = source.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    let mut line = 1;
    while at < chars.len() {
        let start = at;
        let rest = &chars[at..];
        if let Some(length) = comment(rest).or_else(|| literal(rest)) {
            at += length;
        } else if is_word(chars[at]) {
            while at < chars.len() && is_word(chars[at]) {
                at += 1;
            }
            tokens.push((Token::Word(chars[start..at].iter().collect()), line));
        } else if rest.starts_with(&[':', ':']) {
            tokens.push((Token::Colons, line));
            at += 2;
        } else {
            if !chars[at].is_whitespace() {
                tokens.push((Token::Sign(chars[at]), line));
            }
            at += 1;
        }
        line += chars[start..at].iter().filter(|c| **c == '\n').count();
    }
    tokens
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The length of the comment that stands at the start, if one does. Block comments nest.
fn comment(text: &[char]) -> Option<usize> {
    if text.starts_with(&['/', '/']) {
        return Some(text.iter().take_while(|c| **c != '\n').count());
    }
    if !text.starts_with(&['/', '*']) {
        return None;
    }
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with(&['/', '*']) {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with(&['*', '/']) {
            depth -= 1;
            at += 2;
        } else {
            at += 1;
        }
        if depth == 0 {
            break;
        }
    }
    Some(at)
}

/// The length of the string, character or lifetime that stands at the start, if one does.
fn literal(text: &[char]) -> Option<usize> {
    let prefix = text
        .iter()
        .take_while(|c| matches!(c, 'b' | 'c' | 'r'))
        .count();
    let raw = text[..prefix].contains(&'r');
    let hashes = text[prefix..].iter().take_while(|c| **c == '#').count();
    if raw && prefix <= 2 && text.get(prefix + hashes) == Some(&'"') {
        let mut end = vec!['"'];
        end.extend(std::iter::repeat_n('#', hashes));
        let body = prefix + hashes + 1;
        let length = text[body..].windows(end.len()).position(|w| w == end)?;
        return Some(body + length + end.len());
    }
    if prefix <= 1 && text.get(prefix) == Some(&'"') {
        return Some(prefix + quoted(&text[prefix..], '"'));
    }
    match text {
        ['\'', '\\', ..] => Some(quoted(text, '\'')),
        ['\'', _, '\'', ..] => Some(3),
        // A lifetime: its name is no path.
        ['\'', ..] => Some(1 + text[1..].iter().take_while(|c| is_word(**c)).count()),
        _ => None,
    }
}

fn quoted(text: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < text.len() && text[at] != quote {
        at += if text[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}
