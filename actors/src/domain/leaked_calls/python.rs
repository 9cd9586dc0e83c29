//! Calls written like those of Python: `name(key="value", …)`, or `name({…})`.

use serde_json::{Map, Number, Value};

use super::cursor::{Cursor, Read, Stop, starts_name};
use super::json;
use crate::protocol::chat::RequestedCall;

/// As deep as lists and dictionaries may lie in each other.
const MAX_DEPTH: usize = 32;

/// Takes `[call, …]`.
pub(super) fn take_list(cursor: &mut Cursor<'_>) -> Read<Vec<RequestedCall>> {
    let mut calls = Vec::new();
    cursor.take("[")?;
    loop {
        cursor.skip_space();
        calls.push(take_call(cursor)?);
        if !goes_on(cursor, "]")? {
            return Ok(calls);
        }
    }
}

/// Takes one call. Arguments without a name are none that we could pass on.
pub(super) fn take_call(cursor: &mut Cursor<'_>) -> Read<RequestedCall> {
    let name = cursor.take_name()?.to_owned();
    cursor.take("(")?;
    cursor.skip_space();
    let arguments = match cursor.peek()? {
        '{' => {
            let arguments = json::take_arguments(cursor)?;
            cursor.skip_space();
            cursor.take(")")?;
            arguments
        }
        ')' => {
            cursor.skip(1);
            Value::Object(Map::new())
        }
        _ => take_named_arguments(cursor)?,
    };
    Ok(RequestedCall { name, arguments })
}

fn take_named_arguments(cursor: &mut Cursor<'_>) -> Read<Value> {
    let mut arguments = Map::new();
    loop {
        cursor.skip_space();
        let name = cursor.take_name()?;
        cursor.skip_space();
        cursor.take("=")?;
        let value = take_literal(cursor, 0)?;
        if arguments.insert(name.to_owned(), value).is_some() {
            return Err(Stop::Mismatch);
        }
        if !goes_on(cursor, ")")? {
            return Ok(Value::Object(arguments));
        }
    }
}

/// Takes the comma after which there is more, or what closes the list.
fn goes_on(cursor: &mut Cursor<'_>, close: &str) -> Read<bool> {
    cursor.skip_space();
    if cursor.next_is(",")? {
        cursor.skip(1);
        return Ok(true);
    }
    cursor.take(close)?;
    Ok(false)
}

fn take_literal(cursor: &mut Cursor<'_>, depth: usize) -> Read<Value> {
    if depth > MAX_DEPTH {
        return Err(Stop::Mismatch);
    }
    cursor.skip_space();
    match cursor.peek()? {
        '"' | '\'' => take_string(cursor).map(Value::String),
        '[' => take_items(cursor, depth),
        '{' => take_fields(cursor, depth),
        c if c.is_ascii_digit() || c == '-' => {
            let digits = cursor
                .take_while(|c| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E'))?;
            let number: Number = serde_json::from_str(digits).map_err(|_| Stop::Mismatch)?;
            Ok(Value::Number(number))
        }
        c if starts_name(c) => match cursor.take_while(starts_name)? {
            "True" | "true" => Ok(Value::Bool(true)),
            "False" | "false" => Ok(Value::Bool(false)),
            "None" | "null" => Ok(Value::Null),
            _ => Err(Stop::Mismatch),
        },
        _ => Err(Stop::Mismatch),
    }
}

fn take_items(cursor: &mut Cursor<'_>, depth: usize) -> Read<Value> {
    let mut items = Vec::new();
    cursor.take("[")?;
    cursor.skip_space();
    if cursor.peek()? == ']' {
        cursor.skip(1);
        return Ok(Value::Array(items));
    }
    loop {
        items.push(take_literal(cursor, depth + 1)?);
        if !goes_on(cursor, "]")? {
            return Ok(Value::Array(items));
        }
    }
}

fn take_fields(cursor: &mut Cursor<'_>, depth: usize) -> Read<Value> {
    let mut fields = Map::new();
    cursor.take("{")?;
    cursor.skip_space();
    if cursor.peek()? == '}' {
        cursor.skip(1);
        return Ok(Value::Object(fields));
    }
    loop {
        cursor.skip_space();
        let key = take_string(cursor)?;
        cursor.skip_space();
        cursor.take(":")?;
        fields.insert(key, take_literal(cursor, depth + 1)?);
        if !goes_on(cursor, "}")? {
            return Ok(Value::Object(fields));
        }
    }
}

/// Takes a string in single or double quotes. An escape that means different things in Python
/// and in JSON, or nothing in either, is no call.
fn take_string(cursor: &mut Cursor<'_>) -> Read<String> {
    let quote = cursor.peek()?;
    if !matches!(quote, '"' | '\'') {
        return Err(Stop::Mismatch);
    }
    cursor.skip(1);
    let mut text = String::new();
    loop {
        text.push_str(cursor.take_while(|c| c != quote && c != '\\' && c != '\n')?);
        match cursor.peek()? {
            '\\' => {
                cursor.skip(1);
                text.push(take_escape(cursor)?);
            }
            '\n' => return Err(Stop::Mismatch),
            _ => {
                cursor.skip(1);
                return Ok(text);
            }
        }
    }
}

fn take_escape(cursor: &mut Cursor<'_>) -> Read<char> {
    let c = match cursor.peek()? {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        c @ ('\\' | '\'' | '"' | '/') => c,
        'u' => {
            cursor.skip(1);
            let mut code = 0;
            for _ in 0..4 {
                let digit = cursor.peek()?.to_digit(16).ok_or(Stop::Mismatch)?;
                code = code * 16 + digit;
                cursor.skip(1);
            }
            return char::from_u32(code).ok_or(Stop::Mismatch);
        }
        _ => return Err(Stop::Mismatch),
    };
    // All of these are one byte long.
    cursor.skip(1);
    Ok(c)
}
