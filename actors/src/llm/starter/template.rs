//! The chat template that a model's file brings along: a program by whoever made the file.
//! Minijinja gives it no way to files or the network; steps and output are bounded here.

use std::io;

use chrono::Local;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, Error, ErrorKind, context};
use serde::Serialize;

use super::error::ModelError;

const NAME: &str = "chat";

/// The longest template in use is a tenth of that.
const MAX_TEMPLATE_BYTES: usize = 256 << 10;

/// Steps of the template's machine; a message costs about thirty.
const FUEL: u64 = 1_000_000;

/// What a prompt may grow by over its messages' own text.
const MAX_OVERHEAD_BYTES: usize = 1 << 20;

/// Understood by most small models, and the only format that demo models know.
const CHATML: &str = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}{% endfor %}{{ '<|im_start|>assistant\\n' }}";

/// A message as templates know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct TemplateMessage {
    pub(super) role: &'static str,
    pub(super) content: String,
}

/// A compiled template.
#[derive(Debug)]
pub(super) struct ChatTemplate {
    environment: Environment<'static>,
    begin: String,
    end: String,
}

impl ChatTemplate {
    /// Compiles the file's template, or plain ChatML where it has none that compiles.
    pub(super) fn new(source: Option<&str>, begin: &str, end: &str) -> Result<Self, ModelError> {
        let own = source
            .filter(|source| source.len() <= MAX_TEMPLATE_BYTES)
            .map(|source| environment(source.to_owned()));
        let environment = match own {
            Some(Ok(environment)) => environment,
            Some(Err(error)) => {
                tracing::warn!(%error, "the model's chat template does not compile; ChatML is used");
                environment(CHATML.to_owned()).map_err(|error| prompt_error(&error))?
            }
            None => environment(CHATML.to_owned()).map_err(|error| prompt_error(&error))?,
        };
        Ok(Self {
            environment,
            begin: begin.to_owned(),
            end: end.to_owned(),
        })
    }

    /// The prompt for these messages, up to where the model's answer begins.
    pub(super) fn render(&self, messages: &[TemplateMessage]) -> Result<String, ModelError> {
        let content: usize = messages.iter().map(|message| message.content.len()).sum();
        let mut prompt = Bounded {
            bytes: Vec::with_capacity(content),
            limit: content.saturating_mul(2).saturating_add(MAX_OVERHEAD_BYTES),
        };
        let template = self
            .environment
            .get_template(NAME)
            .map_err(|error| prompt_error(&error))?;
        let context = context! {
            messages => Serde(messages),
            add_generation_prompt => true,
            bos_token => self.begin.as_str(),
            eos_token => self.end.as_str(),
            tools => Value::from(()),
            documents => Value::from(()),
        };
        template
            .render_captured_to(context, &mut prompt)
            .map_err(|error| prompt_error(&error))?;
        String::from_utf8(prompt.bytes).map_err(|error| ModelError::Prompt(error.to_string()))
    }
}

fn prompt_error(error: &Error) -> ModelError {
    ModelError::Prompt(format!("its chat template fails: {error}"))
}

/// The environment that templates on the model hub are written for.
fn environment(source: String) -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_fuel(Some(FUEL));
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()?;
    environment.set_syntax(syntax);
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_function("raise_exception", |message: String| {
        Err::<Value, Error>(Error::new(ErrorKind::InvalidOperation, message))
    });
    environment.add_function("strftime_now", strftime_now);
    environment.add_template_owned(NAME, source)?;
    Ok(environment)
}

fn strftime_now(format: &str) -> Result<String, Error> {
    use std::fmt::Write;
    let mut text = String::new();
    // A format that chrono does not know is an error of `Display`, which `to_string` turns
    // into a panic.
    write!(text, "{}", Local::now().format(format))
        .map_err(|_| Error::new(ErrorKind::InvalidOperation, "strftime_now: unknown format"))?;
    Ok(text)
}

/// Takes so many bytes and no more.
#[derive(Debug)]
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            return Err(io::Error::other(
                "the prompt is longer than its messages allow",
            ));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod template_tests;
