//! What is wrong with parts of a program's request.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use navi_actors::domain::consent::is_free;
use navi_actors::domain::import::MAX_NAME_CHARS;
use navi_actors::protocol::error::NaviError;
use navi_actors::protocol::message::Role;
use navi_actors::protocol::tool::Effect;
use navi_actors::tools::lent::OfferedByProgram;

use super::{SentFile, invalid};

/// The most tools that a program may lend, and what they may come to together.
pub(crate) const MAX_TOOLS: usize = 128;
pub(crate) const MAX_TOOLS_BYTES: usize = 512 * 1024;
/// The longest name of a session, or key, in bytes.
pub(crate) const MAX_NAME_BYTES: usize = 256;

/// Checks the names of tools that were called.
///
/// # Errors
/// `invalid_field`.
pub(in crate::doors) fn check_names<'a>(
    mut names: impl Iterator<Item = &'a str>,
) -> Result<(), NaviError> {
    if names.all(|name| (1..=MAX_NAME_CHARS).contains(&name.chars().count())) {
        return Ok(());
    }
    Err(invalid(format!(
        "a call must name its tool in 1 to {MAX_NAME_CHARS} characters"
    )))
}

/// Whether something may be called so in OpenAI's protocols.
pub(super) fn is_tool_name(name: &str) -> bool {
    let is_seen = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=64).contains(&name.len()) && name.chars().all(is_seen)
}

/// Checks what a program lends.
///
/// # Errors
/// `invalid_field`.
pub(crate) fn checked(tools: Vec<OfferedByProgram>) -> Result<Vec<OfferedByProgram>, NaviError> {
    if tools.len() > MAX_TOOLS {
        return Err(invalid(format!("tools may be {MAX_TOOLS} at most")));
    }
    let mut bytes = 0;
    for tool in &tools {
        if !is_tool_name(&tool.name) {
            return Err(invalid(
                "a tool's name must have 1 to 64 letters, digits, _ or -",
            ));
        }
        if tool.effect != Effect::Read && is_free(&tool.name, tool.effect) {
            return Err(invalid(format!(
                "`{}` is the name of a tool that nobody is asked about; give it another one",
                tool.name
            )));
        }
        if !tool.parameters.is_object() {
            return Err(invalid(
                "a tool's parameters must be a JSON Schema of an object",
            ));
        }
        bytes += tool.name.len() + tool.description.len() + tool.parameters.to_string().len();
    }
    if bytes > MAX_TOOLS_BYTES {
        return Err(invalid(format!(
            "tools may have {MAX_TOOLS_BYTES} bytes together at most"
        )));
    }
    Ok(tools)
}

/// A part of a message that has nothing of what its type says.
pub(in crate::doors) fn lacking(kind: &str, field: &str) -> NaviError {
    invalid(format!("a part of the type {kind:?} must have its {field}"))
}

/// A part of a message of a type that is passed over nowhere: what was said in it would be missing.
pub(in crate::doors) fn untaken(kind: &str, taken: &str) -> NaviError {
    let shown: String = kind.chars().take(40).collect();
    let instead = if kind.contains("audio") {
        "; send what is said there as text"
    } else {
        ""
    };
    invalid(format!(
        "parts of the type {shown:?} cannot be taken: {taken} can{instead}"
    ))
}

/// An image, as the `data:` URL that it came in.
///
/// # Errors
/// `invalid_field` where it is somewhere else.
pub(in crate::doors) fn image_data(url: String) -> Result<String, NaviError> {
    if url.starts_with("data:") {
        return Ok(url);
    }
    Err(invalid(
        "image_url must be a data: URL with the image in base64; Navi fetches none",
    ))
}

/// What of a message's parts is taken, by who says it. The model is told of what came with a
/// result and cannot be shown to it.
///
/// # Errors
/// `invalid_field` where a system message is more than text.
pub(in crate::doors) fn heard(
    role: Role,
    mut text: String,
    images: Vec<String>,
    files: Vec<SentFile>,
) -> Result<(String, Vec<String>, Vec<SentFile>), NaviError> {
    let beside = images.len() + files.len();
    match role {
        Role::System if beside > 0 => Err(invalid(
            "a system message has text alone; send images and files with a message of the user's",
        )),
        Role::Tool if beside > 0 => {
            text.push_str(&format!(
                "\n[{beside} of its parts are images or files, which a result cannot show here]"
            ));
            Ok((text, Vec::new(), Vec::new()))
        }
        Role::System | Role::Tool | Role::User | Role::Assistant => Ok((text, images, files)),
    }
}

/// A file, of a `data:` URL or of base64 alone.
///
/// # Errors
/// `invalid_field`.
pub(in crate::doors) fn sent_file(name: Option<String>, data: &str) -> Result<SentFile, NaviError> {
    let (head, base64) = match data.strip_prefix("data:") {
        Some(url) => url.split_once(',').unwrap_or((url, "")),
        None => ("base64", data),
    };
    let base64 = base64.trim_end_matches('=');
    let content = STANDARD_NO_PAD.decode(base64).ok();
    let content = content.filter(|content| head.ends_with("base64") && !content.is_empty());
    let content = content.ok_or_else(|| invalid("a file's data must be base64, or a data: URL"))?;
    Ok(SentFile {
        name: name.unwrap_or_else(|| "file".to_owned()),
        content: content.into(),
    })
}

/// A word that names something, from the field of this name.
///
/// # Errors
/// `invalid_field`.
pub(in crate::doors) fn checked_name(field: &str, text: &str) -> Result<String, NaviError> {
    let is_seen = |c: char| c == ' ' || c.is_ascii_graphic();
    if !(1..=MAX_NAME_BYTES).contains(&text.len()) || !text.chars().all(is_seen) {
        return Err(invalid(format!(
            "{field} must have 1 to {MAX_NAME_BYTES} ASCII characters that can be seen"
        )));
    }
    Ok(text.to_owned())
}
