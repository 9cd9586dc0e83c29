//! What the hot pieces cost by themselves: a model's stream as it is read, text on its way to the
//! tabs, and a request as it is put together. `cargo bench -p navi-bench-pieces`.
#![allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on says so by failing"
)]

use std::hint::black_box;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use chrono::Utc;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures_util::StreamExt as _;
use navi_actors::domain::context::{CallOptions, CallSetup, ContextMessage, Conversation};
use navi_actors::llm::Backend as _;
use navi_actors::llm::openai::{OpenAiBackend, OpenAiConfig};
use navi_actors::protocol::chat::{ChatMessage, ChatRequest};
use navi_actors::protocol::event::PartKind;
use navi_actors::protocol::ids::{MessageId, Origin, PartId, RunId};
use navi_actors::protocol::message::Message;
use navi_actors::session::sequencer::{Piece, Sequencer};

const TOKENS: usize = 2_000;
const TOKEN: &str = " word";

/// The server's part is in it: it writes all of them at once.
fn a_models_stream(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let backend = OpenAiBackend::new(OpenAiConfig {
        base_url: serve_answers(),
        api_key: None,
        default_model: None,
    })
    .unwrap();
    let request = Arc::new(setup().request(&Conversation::default()).request);
    let mut group = criterion.benchmark_group("a model's stream");
    group.throughput(Throughput::Elements(TOKENS as u64));
    group.bench_function("read over loopback", |bench| {
        bench.to_async(&runtime).iter(|| read(&backend, &request));
    });
    group.finish();
}

async fn read(backend: &OpenAiBackend, request: &Arc<ChatRequest>) {
    let mut stream = backend.chat(Arc::clone(request)).await.unwrap();
    while let Some(delta) = stream.next().await {
        black_box(delta.unwrap());
    }
}

fn text_to_tabs(criterion: &mut Criterion) {
    let (origin, message_id) = (Origin::foreground(RunId::new()), MessageId::new());
    let part_id = PartId::text(message_id);
    let pieces: Vec<Piece> = (0..TOKENS)
        .map(|at| Piece {
            origin,
            part_id: part_id.clone(),
            kind: PartKind::Text,
            message_id,
            offset: (at * TOKEN.len()) as u64,
            text: TOKEN.to_owned(),
        })
        .collect();
    let mut group = criterion.benchmark_group("text to tabs");
    group.throughput(Throughput::Elements(TOKENS as u64));
    group.bench_function("numbered and told", |bench| {
        bench.iter_batched(
            || pieces.clone(),
            |pieces| {
                let mut sequencer = Sequencer::<()>::new(0, Vec::new());
                for piece in pieces {
                    sequencer.delta(piece, Utc::now());
                    black_box(sequencer.next_told());
                }
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

fn a_request(criterion: &mut Criterion) {
    let (setup, run_id) = (setup(), RunId::new());
    let mut group = criterion.benchmark_group("a request");
    for count in [10, 1_000, 10_000] {
        let messages: Vec<_> = (0..count)
            .map(|at| {
                let text = format!("Message {at}: {}", "a few words ".repeat(10));
                ContextMessage::from(if at % 2 == 0 {
                    Message::user(MessageId::new(), run_id, text, Utc::now())
                } else {
                    let mut said = Message::assistant(MessageId::new(), run_id, Utc::now());
                    said.content = Some(text);
                    said
                })
            })
            .collect();
        let conversation = Conversation {
            messages: &messages,
            ..Conversation::default()
        };
        group.bench_function(BenchmarkId::new("of messages", count), |bench| {
            bench.iter(|| black_box(setup.request(&conversation)));
        });
    }
    group.finish();
}

fn setup() -> CallSetup {
    let content = "You are Navi.".to_owned();
    CallSetup {
        system: ChatMessage::System { content }.into(),
        tools: Vec::new().into(),
        notes: Vec::new(),
        options: CallOptions {
            model: "fake".to_owned(),
            temperature: 0.7,
            think: false,
            window: 1_000_000,
            sees_images: false,
            room: None,
            form: None,
        },
    }
}

/// A server that answers every request with the same stream. It ends with the process.
fn serve_answers() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let token = format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{TOKEN}\"}}}}]}}\n\n"
    );
    let body = token.repeat(TOKENS)
        + "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer: Arc<str> = answer.into();
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            thread::spawn(move || answer_all(socket, &answer));
        }
    });
    format!("http://{address}/v1")
}

/// Until the client goes.
fn answer_all(socket: TcpStream, answer: &str) -> std::io::Result<()> {
    let mut requests = BufReader::new(socket.try_clone()?);
    let mut socket = socket;
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if requests.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let header = line.to_ascii_lowercase();
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            if line.trim().is_empty() {
                break;
            }
        }
        requests.read_exact(&mut vec![0; length])?;
        socket.write_all(answer.as_bytes())?;
    }
}

criterion_group!(pieces, a_models_stream, text_to_tabs, a_request);
criterion_main!(pieces);
