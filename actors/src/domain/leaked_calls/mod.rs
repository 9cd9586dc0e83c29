//! Tool calls that a model wrote as text (DESIGN section 5).
//!
//! Small local models know several notations of a call and write them into the answer instead
//! of using the backend's own. A reply that is nothing but such calls is taken as those calls;
//! a reply that merely contains one is an answer that talks about it.
//!
//! One reader answers both questions, what a whole reply calls and what a beginning may become,
//! so that the two cannot disagree.

mod cursor;
mod json;
mod python;
mod unread;

use serde_json::{Map, Value};

use crate::protocol::chat::RequestedCall;
pub use unread::ends_in_call;

use cursor::{Cursor, Read, Stop, starts_name};

/// Text of this length is no call any more, but an answer that someone waits to see.
pub const MAX_BYTES: usize = 16 * 1024;

/// What may follow the opening of a code fence around calls.
const FENCE_INFO: [&str; 8] = [
    "",
    "json",
    "tool_call",
    "tool_calls",
    "tool_code",
    "python",
    "xml",
    "text",
];

/// The calls that a whole reply consists of, each of a known tool.
///
/// Notations, one or several calls each, in one code fence or bare:
/// - JSON: `{"name": …, "arguments": {…}}` or a list of those; also `tool`, `tool_name` or
///   `function` for the name, `parameters`, `args` or `input` for the arguments, and the
///   wrappers `{"function": {…}}`, `{"tool_calls": […]}` and their kin;
/// - `<tool_call>…</tool_call>` around JSON or a function element (Hermes, Qwen);
/// - `<function=name>{…}</function>` (Llama), or with `<parameter=key>…</parameter>` inside
///   (Qwen coder), whose values stay text: what type they have, the tool's schema says;
/// - `[TOOL_CALLS][…]` and `[TOOL_CALLS]name[ARGS]{…}` (Mistral);
/// - `<|python_tag|>{…}` (Llama);
/// - `[name(key="value")]`, and in a fence `name(key="value")` or `name({…})` too. Bare, the
///   last would make the first word of every answer a possible call.
///
/// None for everything else: text around the calls, an unknown tool, broken or unfinished
/// notation, [`MAX_BYTES`] or more.
#[must_use]
pub fn parse(reply: &str, is_known: impl Fn(&str) -> bool) -> Option<Vec<RequestedCall>> {
    if reply.len() >= MAX_BYTES {
        return None;
    }
    let calls = read_reply(reply).ok()?;
    calls
        .iter()
        .all(|call| is_known(&call.name))
        .then_some(calls)
}

/// Whether a reply that begins so may still become one that [`parse`] takes. Where it cannot,
/// no longer text can, so a driver asks until the first no and shows everything from then on.
///
/// The empty text may become anything.
#[must_use]
pub fn may_be_call(prefix: &str) -> bool {
    prefix.len() < MAX_BYTES && read_reply(prefix) != Err(Stop::Mismatch)
}

fn read_reply(reply: &str) -> Read<Vec<RequestedCall>> {
    let mut cursor = Cursor::new(reply);
    cursor.skip_space();
    let fenced = cursor.next_is("```")?;
    if fenced {
        cursor.skip(3);
        take_fence_info(&mut cursor)?;
    }
    let mut calls = Vec::new();
    loop {
        cursor.skip_space();
        calls.append(&mut take_calls(&mut cursor, fenced)?);
        cursor.skip_space();
        if fenced && cursor.peek()? == '`' {
            cursor.take("```")?;
            cursor.skip_space();
            break;
        }
        if cursor.is_at_end() {
            break;
        }
        if matches!(cursor.peek()?, ';' | ',') {
            cursor.skip(1);
        }
    }
    if cursor.is_at_end() {
        Ok(calls)
    } else {
        Err(Stop::Mismatch)
    }
}

fn take_fence_info(cursor: &mut Cursor<'_>) -> Read<()> {
    let Some((line, _)) = cursor.rest().split_once('\n') else {
        let begun = cursor.rest().trim().to_ascii_lowercase();
        let fits = FENCE_INFO.iter().any(|info| info.starts_with(&begun));
        return Err(if fits { Stop::Ended } else { Stop::Mismatch });
    };
    if !FENCE_INFO.contains(&line.trim().to_ascii_lowercase().as_str()) {
        return Err(Stop::Mismatch);
    }
    cursor.skip(line.len());
    Ok(())
}

/// Takes what one notation holds.
fn take_calls(cursor: &mut Cursor<'_>, fenced: bool) -> Read<Vec<RequestedCall>> {
    if cursor.next_is("<tool_call>")? {
        return take_tool_call_element(cursor);
    }
    if cursor.next_is("<function=")? {
        return Ok(vec![take_function_element(cursor)?]);
    }
    if cursor.next_is("<|python_tag|>")? {
        cursor.take("<|python_tag|>")?;
        cursor.skip_space();
        return json::take_calls(cursor);
    }
    if cursor.next_is("[TOOL_CALLS]")? {
        return take_mistral(cursor);
    }
    match cursor.peek()? {
        '{' => json::take_calls(cursor),
        '[' => {
            let mut inside = *cursor;
            inside.skip(1);
            inside.skip_space();
            if inside.peek()? == '{' {
                json::take_calls(cursor)
            } else {
                python::take_list(cursor)
            }
        }
        c if fenced && starts_name(c) => Ok(vec![python::take_call(cursor)?]),
        _ => Err(Stop::Mismatch),
    }
}

fn take_tool_call_element(cursor: &mut Cursor<'_>) -> Read<Vec<RequestedCall>> {
    cursor.take("<tool_call>")?;
    cursor.skip_space();
    let calls = if cursor.next_is("<function=")? {
        vec![take_function_element(cursor)?]
    } else {
        json::take_calls(cursor)?
    };
    take_close(cursor, "</tool_call>")?;
    Ok(calls)
}

fn take_function_element(cursor: &mut Cursor<'_>) -> Read<RequestedCall> {
    cursor.take("<function=")?;
    let name = cursor.take_name()?.to_owned();
    cursor.take(">")?;
    cursor.skip_space();
    if cursor.peek()? == '{' {
        let arguments = json::take_arguments(cursor)?;
        take_close(cursor, "</function>")?;
        return Ok(RequestedCall { name, arguments });
    }
    let mut arguments = Map::new();
    while cursor.next_is("<parameter=")? {
        cursor.take("<parameter=")?;
        let key = cursor.take_name()?.to_owned();
        cursor.take(">")?;
        let value = cursor.take_until("</parameter>")?;
        // A line break after the opening tag and before the closing one only sets them off.
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        if arguments.insert(key, Value::from(value)).is_some() {
            return Err(Stop::Mismatch);
        }
        cursor.skip_space();
    }
    cursor.take("</function>")?;
    Ok(RequestedCall {
        name,
        arguments: Value::Object(arguments),
    })
}

/// Takes a closing tag. Models forget the last one; what stood before it is whole all the same.
fn take_close(cursor: &mut Cursor<'_>, tag: &str) -> Read<()> {
    cursor.skip_space();
    if cursor.is_at_end() {
        return Ok(());
    }
    cursor.take(tag)
}

fn take_mistral(cursor: &mut Cursor<'_>) -> Read<Vec<RequestedCall>> {
    cursor.take("[TOOL_CALLS]")?;
    cursor.skip_space();
    if matches!(cursor.peek()?, '[' | '{') {
        return json::take_calls(cursor);
    }
    let name = cursor.take_name()?.to_owned();
    cursor.take("[ARGS]")?;
    cursor.skip_space();
    let arguments = json::take_arguments(cursor)?;
    Ok(vec![RequestedCall { name, arguments }])
}

#[cfg(test)]
mod tests;
