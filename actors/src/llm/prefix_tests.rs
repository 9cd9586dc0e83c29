//! DESIGN section 5: each next prompt begins with the one before it, up to its notes, as the
//! model's side renders them: Ollama, which joins all system messages into the first, and the
//! models' own templates.
use minijinja::value::Serde;
use minijinja::{Environment, context};
use serde_json::{Value, json};

use super::ollama::request::{Think, body as ollama_body};
use super::roles::Roles;
use crate::domain::context::{CallOptions, CallSetup, ContextMessage, Conversation, Notes};
use crate::domain::talk::{asked, call, planned, result, said, user};
use crate::protocol::chat::ChatRequest;
use crate::protocol::prompt::PromptMessage;
use crate::protocol::tool::{Effect, ToolSpec};

/// In the shape of Qwen's: tools with the system message, results in the user's turn.
const QWEN_LIKE: &str = "{% if tools %}[S]{{ messages[0].content }}
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}[/S]{% endif %}{% for m in messages %}{% if m.role == 'tool' %}{% if loop.index0 == 0 or messages[loop.index0 - 1].role != 'tool' %}[U]{% endif %}<r>{{ m.content }}</r>{% if loop.last or messages[loop.index0 + 1].role != 'tool' %}[/U]{% endif %}{% elif not (loop.first and tools) %}[{{ m.role }}]{{ m.content }}{% for c in m.tool_calls or [] %}<c>{{ c.function | tojson }}</c>{% endfor %}[/]{% endif %}{% endfor %}";

/// In the shape of Llama's: a result is JSON.
const LLAMA_LIKE: &str = "{{ bos_token }}{% for m in messages %}<h>{{ m.role }}</h>{% if m.role == 'tool' %}{{ m.content | tojson }}{% else %}{{ m.content }}{% endif %}{% for c in m.tool_calls or [] %}{{ c.function | tojson }}{% endfor %}<eot>{% endfor %}";

/// In the shape of Gemma's: no system role, and turns.
const GEMMA_LIKE: &str = "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}<t>{{ 'model' if m.role == 'assistant' else m.role }}
{{ m.content | trim }}{% for c in m.tool_calls or [] %}{{ c.function | tojson }}{% endfor %}<e>
{% endfor %}";

/// What ends a turn may come later: what follows an assistant's words can be their part.
const END_OF_TURN: usize = 4;

fn body(request: &ChatRequest) -> Value {
    serde_json::to_value(ollama_body(request, Think::Off, "5m")).unwrap()
}

fn jinja(template: &str, body: &Value) -> String {
    let mut environment = Environment::new();
    environment.add_function("raise_exception", |message: String| {
        Err::<String, _>(minijinja::Error::new(
            minijinja::ErrorKind::InvalidOperation,
            message,
        ))
    });
    let context = context! {
        messages => Serde(&body["messages"]),
        tools => Serde(&body["tools"]),
        bos_token => "<s>",
    };
    environment.render_str(template, context).unwrap()
}

/// What Ollama does before a Go template: all system messages are the first, and messages of
/// one role after each other are one.
fn ollama_like(body: &Value) -> String {
    let messages = body["messages"].as_array().unwrap();
    let text = |message: &Value| message["content"].as_str().unwrap().to_owned();
    let systems = messages.iter().filter(|it| it["role"] == "system");
    let system: Vec<String> = systems.map(text).collect();
    let mut prompt = format!(
        "<system>{}\n{}</system>",
        system.join("\n\n"),
        body["tools"]
    );
    let mut role = &json!("system");
    for message in messages.iter().filter(|it| it["role"] != "system") {
        let same = &message["role"] == role && role != "tool";
        role = &message["role"];
        prompt += &if same {
            "\n\n".to_owned()
        } else {
            format!("<end><{role}>")
        };
        prompt += &format!("{}{}", text(message), message["tool_calls"]);
    }
    prompt
}

/// A request for each point of a conversation where the model is asked, each with other notes.
fn requests() -> Vec<ChatRequest> {
    let (_, plan) = planned(1, "1. Read it. SELF");
    let messages: Vec<ContextMessage> = [
        user(1, "compare them"),
        plan,
        asked(1, &["a", "b"]),
        result(1, "a", "one \"1\""),
        result(1, "b", "two"),
        asked(1, &["c"]),
        result(1, "c", "three"),
        user(1, "be quick"),
        said(1, "done"),
        user(2, "thanks"),
    ]
    .map(ContextMessage::from)
    .into();
    let asks = [1, 2, 5, 7, 8, 10].into_iter().enumerate();
    asks.map(|(at, end)| {
        let frame = CallSetup {
            system: PromptMessage::system("You are Navi."),
            tools: vec![ToolSpec {
                name: call("a").name,
                description: "files".to_owned(),
                parameters: json!({"type": "object"}),
                effect: Effect::Read,
                time_limit_ms: 1,
            }]
            .into(),
            // The first and the last call have none.
            notes: (1..5)
                .contains(&at)
                .then(|| format!("[budget] {at}"))
                .into_iter()
                .collect(),
            options: CallOptions {
                model: "m".to_owned(),
                temperature: 0.5,
                think: true,
                window: 8_192,
                sees_images: true,
                room: None,
                form: None,
            },
        };
        let conversation = Conversation {
            memory: Some("Her name is Olha."),
            messages: &messages[..end],
            ..Conversation::default()
        };
        frame.request(&conversation).request
    })
    .collect()
}

fn common(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}

type Render = Box<dyn Fn(&ChatRequest) -> String>;

#[test]
fn each_prompt_begins_with_the_one_before_it_up_to_its_notes() {
    let with = |template: &'static str, order: Roles| -> Render {
        Box::new(move |request| jinja(template, &body(&order.arranged(request))))
    };
    let renders: [(&str, Render); 4] = [
        ("ollama", Box::new(|request| ollama_like(&body(request)))),
        ("qwen", with(QWEN_LIKE, Roles::SystemFirst)),
        ("llama", with(LLAMA_LIKE, Roles::Any)),
        ("gemma", with(GEMMA_LIKE, Roles::NoSystem)),
    ];
    let requests = requests();
    for (name, render) in renders {
        for pair in requests.windows(2) {
            let mut bare = pair[0].clone();
            let notes = Notes::take(&mut bare.messages);
            let (before, bare, after) = (render(&pair[0]), render(&bare), render(&pair[1]));
            let marks = before.matches("[navi-note-").count();
            assert_eq!(marks, usize::from(notes.is_some()), "{name}:\n{before}");
            let lasting = common(&before, &bare);
            assert!(
                common(&before, &after) + END_OF_TURN >= lasting,
                "{name}:\n{before}\n---\n{after}"
            );
        }
    }
}
