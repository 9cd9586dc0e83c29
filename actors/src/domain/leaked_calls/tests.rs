use proptest::prelude::*;
use serde_json::json;

use super::*;

const KNOWN: [&str; 3] = ["todo", "filesystem", "web-search.v2"];

fn parsed(reply: &str) -> Option<Vec<(String, Value)>> {
    let calls = parse(reply, |name| KNOWN.contains(&name))?;
    Some(
        calls
            .into_iter()
            .map(|call| (call.name, call.arguments))
            .collect(),
    )
}

fn todo_list() -> Option<Vec<(String, Value)>> {
    Some(vec![("todo".to_owned(), json!({"action": "list"}))])
}

/// One call of `todo` with `{"action": "list"}`, in every notation.
const NOTATIONS: [&str; 29] = [
    r#"{"name":"todo","arguments":{"action":"list"}}"#,
    r#"{"name": "todo", "parameters": {"action": "list"}}"#,
    r#"{"arguments": {"action": "list"}, "name": "todo"}"#,
    r#"{"tool":"todo","args":{"action":"list"}}"#,
    r#"{"tool_name":"todo","input":{"action":"list"}}"#,
    r#"{"function":"todo","arguments":{"action":"list"}}"#,
    r#"{"function":{"name":"todo","arguments":{"action":"list"}}}"#,
    r#"{"type":"function","function":{"name":"todo","arguments":"{\"action\":\"list\"}"},"id":"call_1"}"#,
    r#"{"type": "function", "name": "todo", "parameters": {"action": "list"}}"#,
    r#"{"function_call":{"name":"todo","arguments":{"action":"list"}}}"#,
    r#"{"tool_calls":[{"name":"todo","arguments":{"action":"list"}}]}"#,
    r#"[{"name":"todo","arguments":{"action":"list"}}]"#,
    "\n  { \"name\" : \"todo\",\n \"arguments\" : {\"action\":\"list\"} }  \n",
    "```json\n{\"name\":\"todo\",\"arguments\":{\"action\":\"list\"}}\n```",
    "```\n{\"name\":\"todo\",\"arguments\":{\"action\":\"list\"}}\n```\n",
    "```tool_call\r\n{\"name\":\"todo\",\"arguments\":{\"action\":\"list\"}}\r\n```",
    "<tool_call>\n{\"name\": \"todo\", \"arguments\": {\"action\": \"list\"}}\n</tool_call>",
    "<tool_call>\n{\"name\": \"todo\", \"arguments\": {\"action\": \"list\"}}",
    "<tool_call><function=todo><parameter=action>list</parameter></function></tool_call>",
    "<function=todo>{\"action\": \"list\"}</function>",
    "<function=todo>{\"action\": \"list\"}",
    "<function=todo>\n<parameter=action>\nlist\n</parameter>\n</function>",
    r#"[TOOL_CALLS][{"name": "todo", "arguments": {"action": "list"}}]"#,
    r#"[TOOL_CALLS]todo[ARGS]{"action": "list"}"#,
    r#"<|python_tag|>{"name": "todo", "parameters": {"action": "list"}}"#,
    r#"[todo(action="list")]"#,
    "[ todo( action = 'list' ) ]",
    "```tool_code\ntodo(action=\"list\")\n```",
    "```python\ntodo({\"action\": \"list\"})\n```",
];

#[test]
fn every_usual_notation_is_read() {
    for notation in NOTATIONS {
        assert_eq!(parsed(notation), todo_list(), "{notation}");
    }
}

#[test]
fn several_calls_keep_their_order() {
    let two = Some(vec![
        ("todo".to_owned(), json!({"a": 1})),
        ("filesystem".to_owned(), json!({"b": [true, null]})),
    ]);
    let a = r#"{"name":"todo","arguments":{"a":1}}"#;
    let b = r#"{"name":"filesystem","arguments":{"b":[true,null]}}"#;
    for text in [
        format!("[{a}, {b}]"),
        format!("{a}\n{b}"),
        format!("{a}; {b}"),
        format!("<|python_tag|>{a}; {b}"),
        format!("<tool_call>{a}</tool_call>\n<tool_call>{b}</tool_call>"),
        format!("<tool_call>[{a},{b}]</tool_call>"),
        format!("```json\n{a}\n{b}\n```"),
        format!("[TOOL_CALLS] [{a}, {b}]"),
        r#"[TOOL_CALLS]todo[ARGS]{"a":1}[TOOL_CALLS]filesystem[ARGS]{"b":[true,null]}"#.to_owned(),
        "[todo(a=1), filesystem(b=[True, None])]".to_owned(),
    ] {
        assert_eq!(parsed(&text), two, "{text}");
    }
}

#[test]
fn arguments_of_all_kinds_are_read() {
    let python = r#"[web-search.v2(q='it\'s "ґ"\n', n=-1.5e3, deep=False, x={'k': [1, {}], "l": null}, y=[])]"#;
    assert_eq!(
        parsed(python).unwrap()[0].1,
        json!({
            "q": "it's \"ґ\"\n", "n": -1.5e3, "deep": false,
            "x": {"k": [1, {}], "l": null}, "y": []
        })
    );
    assert_eq!(parsed("[todo()]").unwrap()[0].1, json!({}));
    assert_eq!(
        parsed(r#"{"name":"todo","arguments":null}"#).unwrap()[0].1,
        json!({})
    );
    // Only the schema knows which of these is a number; a text keeps its inner line breaks.
    let coder = "<function=filesystem>\n<parameter=text>\n\n1\n{\"a\": 2}\n\n</parameter>\n<parameter=n>\n5\n</parameter>\n</function>";
    assert_eq!(
        parsed(coder).unwrap()[0].1,
        json!({"text": "\n1\n{\"a\": 2}\n", "n": "5"})
    );
}

#[test]
fn everything_else_is_an_answer() {
    let call = r#"{"name":"todo","arguments":{"action":"list"}}"#;
    for text in [
        String::new(),
        "  \n".to_owned(),
        "I use the todo tool.".to_owned(),
        format!("Like this: {call}"),
        format!("{call}\nThat is the list."),
        format!("```json\n{call}\n```\nThat is the list."),
        format!("```json\n{call}"),
        format!("```rust\n{call}\n```"),
        format!("```json\n{call}\n```\n```json\n{call}\n```"),
        format!("`{call}`"),
        call[..call.len() - 1].to_owned(),
        r#"{"name":"todo"}"#.to_owned(),
        r#"{"name":"todo","arguments":["list"]}"#.to_owned(),
        r#"{"name":"todo","arguments":"list"}"#.to_owned(),
        r#"{"name":"todo","arguments":{"action":list}}"#.to_owned(),
        r#"{"name":"Anna","age":33}"#.to_owned(),
        r#"{"name":"todo","arguments":{},"parameters":{}}"#.to_owned(),
        r#"{"type":"object","name":"todo","arguments":{}}"#.to_owned(),
        // How a tool is described, not a call of it.
        r#"{"name":"todo","description":"keeps a list","parameters":{}}"#.to_owned(),
        r#"{"name":"todo","parameters":{"type":"object","properties":{"action":{}}}}"#.to_owned(),
        "[]".to_owned(),
        "[1, 2]".to_owned(),
        "[todo](https://example.org)".to_owned(),
        "[todo(\"list\")]".to_owned(),
        "[todo(action=\"list\", action=\"add\")]".to_owned(),
        "[todo(action=\"a\nb\")]".to_owned(),
        "todo(action=\"list\")".to_owned(),
        "```python\nprint(\"todo\")\n```".to_owned(),
        "<tool_call>todo</tool_call>".to_owned(),
        // Cut off: an argument may be missing.
        "<function=todo><parameter=action>list</parameter>".to_owned(),
        format!("<|python_tag|>print({call})"),
        format!("[{}]", "[".repeat(1000)),
        format!("[todo(x={})]", "[".repeat(1000)),
    ] {
        assert_eq!(parsed(&text), None, "{text}");
    }
}

#[test]
fn one_unknown_tool_makes_it_an_answer() {
    let text = r#"[{"name":"todo","arguments":{}},{"name":"rm","arguments":{}}]"#;
    assert_eq!(parsed(text), None);
    assert_eq!(parse(text, |_| true).unwrap().len(), 2);
}

#[test]
fn a_call_has_a_size_limit() {
    let sized = |bytes: usize| {
        let empty = r#"{"name":"todo","arguments":{"x":""}}"#.len();
        format!(
            r#"{{"name":"todo","arguments":{{"x":"{}"}}}}"#,
            "y".repeat(bytes - empty)
        )
    };
    let (fits, large) = (sized(MAX_BYTES - 1), sized(MAX_BYTES));
    assert!(parsed(&fits).is_some() && may_be_call(&fits));
    assert!(parsed(&large).is_none() && !may_be_call(&large));
}

#[test]
fn a_plain_answer_is_shown_at_once() {
    for text in [
        "H",
        "Hello",
        "\n\nПривіт",
        "todo",
        "1",
        "**B",
        "# T",
        "- i",
        "`c",
        "``x",
        "<b",
        "<tool_r",
        "```rust\n",
        "```c",
        "```json\n1",
        "{}",
        "{\"temperature",
        "{\"nam\"",
        "{ x",
        "[1",
        "[ ]",
        "[x]",
        "[see the",
        "[todo](",
        "[todo(list)",
        "[{\"temperature",
        "{\"name\": \"Anna\", \"age\": 33}",
        "{\"name\": oops",
    ] {
        assert!(!may_be_call(text), "{text}");
    }
}

#[test]
fn what_may_become_a_call_is_held_back() {
    for text in [
        "",
        " \n",
        "`",
        "``",
        "```",
        "```js",
        "```json\n",
        "```tool",
        "{",
        "{\n  \"na",
        "{\"name\": \"Anna\"",
        "[",
        "[ {",
        "[todo",
        "[todo(act",
        "[TOOL",
        "<",
        "<tool",
        "<|pyth",
        "<function=to",
        r#"{"name":"todo","arguments":{"x":-"#,
        r#"{"name":"todo","arguments":{"x":1e"#,
        r#"{"name":"todo","arguments":{"x":1.5e+"#,
    ] {
        assert!(may_be_call(text), "{text}");
    }
}

/// Once false stays false, for every longer beginning of the text.
fn never_comes_back(text: &str) -> Result<(), TestCaseError> {
    let mut held = true;
    for (end, _) in text
        .char_indices()
        .chain(std::iter::once((text.len(), ' ')))
    {
        let now = may_be_call(&text[..end]);
        prop_assert!(held || !now, "came back at {:?}", &text[..end]);
        held = now;
    }
    prop_assert!(held || parse(text, |_| true).is_none());
    Ok(())
}

/// Pieces of all notations.
fn piece() -> impl Strategy<Value = String> {
    let pieces = [
        "```",
        "```json\n",
        "`",
        "\n",
        " ",
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        "\"",
        "'",
        ":",
        ",",
        ";",
        "=",
        "\"name\":",
        "\"todo\"",
        "\"arguments\":",
        "\"function\":",
        "\"type\":",
        "<tool_call>",
        "</tool_call>",
        "<function=todo>",
        "</function>",
        "<parameter=a>",
        "</parameter>",
        "[TOOL_CALLS]",
        "[ARGS]",
        "<|python_tag|>",
        "todo",
        "a=",
        "\\",
        "\\u12",
        "-",
        "1",
        "1e",
        ".",
        "+5",
        "true",
        "None",
        "ґ",
        "{\"name\":\"todo\",\"arguments\":{",
    ];
    prop_oneof![
        8 => prop::sample::select(pieces.to_vec()).prop_map(str::to_owned),
        1 => ".{0,3}",
    ]
}

/// A JSON value as arguments have them.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|n| Value::from(f64::from(n) / 8.0)),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,4}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn whatever_comes_nothing_panics_and_no_decision_is_taken_back(
        pieces in prop::collection::vec(piece(), 0..24),
    ) {
        never_comes_back(&pieces.concat())?;
    }

    #[test]
    fn a_damaged_call_is_decided_once_and_for_all(
        which in prop::sample::select(NOTATIONS.to_vec()),
        at in any::<prop::sample::Index>(),
        remove in 0usize..3,
        insert in piece(),
    ) {
        let mut chars: Vec<char> = which.chars().collect();
        let start = at.index(chars.len() + 1);
        let end = (start + remove).min(chars.len());
        chars.splice(start..end, insert.chars());
        never_comes_back(&chars.into_iter().collect::<String>())?;
    }

    #[test]
    fn every_beginning_of_a_call_is_held_back(value in any_json(), pretty in any::<bool>()) {
        let arguments = json!({"x": value});
        let call = json!({"name": "todo", "arguments": arguments});
        let call = if pretty { format!("{call:#}") } else { call.to_string() };
        for text in [
            call.clone(),
            format!("```json\n{call}\n```"),
            format!("<tool_call>\n{call}\n</tool_call>"),
            format!("<function=todo>{arguments}</function>"),
            format!("[TOOL_CALLS][{call}]"),
            format!("```\ntodo({arguments})\n```"),
        ] {
            prop_assert_eq!(parsed(&text).unwrap()[0].1.clone(), arguments.clone());
            for (end, _) in text.char_indices() {
                prop_assert!(may_be_call(&text[..end]), "{}", &text[..end]);
            }
        }
    }
}

#[test]
fn every_beginning_of_every_notation_is_held_back() {
    for text in NOTATIONS {
        for (end, _) in text.char_indices() {
            assert!(may_be_call(&text[..end]), "{}", &text[..end]);
        }
    }
}
