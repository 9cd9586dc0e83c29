//! A collector of traces for tests: takes OTLP over HTTP on loopback, and keeps every span.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test code, included by several programs that each use a part of it"
)]

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// How long spans are waited for: only a test that fails ever sees its end.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the collector does with what it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Takes,
    /// Reads it and never says anything.
    Hangs,
}

/// What came until now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    /// The heads of the requests, as they came.
    pub(crate) heads: Vec<String>,
    /// Their bodies, as they came.
    pub(crate) bodies: Vec<Vec<u8>>,
    pub(crate) resource: BTreeMap<String, Value>,
    pub(crate) spans: Vec<Span>,
}

impl Kept {
    /// The spans whose names begin so.
    pub(crate) fn named(&self, beginning: &str) -> Vec<&Span> {
        let spans = self.spans.iter();
        spans
            .filter(|span| span.name.starts_with(beginning))
            .collect()
    }

    /// The only one.
    #[track_caller]
    pub(crate) fn only(&self, beginning: &str) -> &Span {
        let found = self.named(beginning);
        assert_eq!(found.len(), 1, "{beginning}: {:#?}", self.spans);
        found[0]
    }
}

/// A collector that runs until its test's runtime ends.
#[derive(Debug)]
pub(crate) struct Collector {
    address: SocketAddr,
    kept: watch::Receiver<Kept>,
}

impl Collector {
    pub(crate) async fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let (keep, kept) = watch::channel(Kept::default());
        let keep = Arc::new(keep);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let keep = Arc::clone(&keep);
                tokio::spawn(async move { serve(stream, manner, &keep).await });
            }
        });
        Self { address, kept }
    }

    /// What `NAVI_OTLP_ENDPOINT` is set to.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn now(&self) -> Kept {
        self.kept.borrow().clone()
    }

    /// Waits until what came is enough.
    pub(crate) async fn when(&self, enough: impl Fn(&Kept) -> bool) -> Kept {
        let mut kept = self.kept.clone();
        let found = tokio::time::timeout(PATIENCE, kept.wait_for(enough)).await;
        match found {
            Ok(found) => found.expect("the collector").clone(),
            Err(_) => panic!("not enough: {:#?}", self.now().spans),
        }
    }
}

/// Requests of one connection, one after another. An error is a connection that is over.
async fn serve(
    mut stream: TcpStream,
    manner: Manner,
    keep: &watch::Sender<Kept>,
) -> io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        let head = loop {
            if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                let rest = buffer.split_off(end + 4);
                break std::mem::replace(&mut buffer, rest);
            }
            read_more(&mut stream, &mut buffer).await?;
        };
        let head = String::from_utf8(head).expect("a head");
        let length = length(&head);
        while buffer.len() < length {
            read_more(&mut stream, &mut buffer).await?;
        }
        let rest = buffer.split_off(length);
        take(keep, head, std::mem::replace(&mut buffer, rest));
        if manner == Manner::Hangs {
            std::future::pending::<()>().await;
        }
        let answer =
            "HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(answer.as_bytes()).await?;
    }
}

async fn read_more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<()> {
    match stream.read_buf(buffer).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

fn length(head: &str) -> usize {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let mut lengths = lines.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let (_, length) = lengths.next().expect("a length");
    length.trim().parse().expect("a number")
}

fn take(keep: &watch::Sender<Kept>, head: String, body: Vec<u8>) {
    let request = ExportTraceServiceRequest::decode(body.as_slice()).expect("OTLP");
    keep.send_modify(|kept| {
        kept.heads.push(head);
        kept.bodies.push(body);
        for of_resource in request.resource_spans {
            let resource = of_resource.resource.expect("a resource");
            kept.resource = as_json(&resource.attributes);
            let scopes = of_resource.scope_spans.into_iter();
            kept.spans.extend(scopes.flat_map(|scope| scope.spans));
        }
    });
}

/// A span's attributes, as JSON.
pub(crate) fn attributes(span: &Span) -> BTreeMap<String, Value> {
    as_json(&span.attributes)
}

fn as_json(attributes: &[KeyValue]) -> BTreeMap<String, Value> {
    let values = attributes.iter();
    values
        .map(|pair| (pair.key.clone(), value(pair.value.as_ref())))
        .collect()
}

fn value(any: Option<&AnyValue>) -> Value {
    match any.and_then(|any| any.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => json!(text),
        Some(any_value::Value::BoolValue(yes)) => json!(yes),
        Some(any_value::Value::IntValue(number)) => json!(number),
        Some(any_value::Value::DoubleValue(number)) => json!(number),
        Some(any_value::Value::ArrayValue(array)) => {
            let values = array.values.iter();
            Value::Array(values.map(|any| value(Some(any))).collect())
        }
        other => panic!("no value of ours: {other:?}"),
    }
}
