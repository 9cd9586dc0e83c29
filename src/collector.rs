//! Sends traces (docs/observing.md) to a collector that takes OTLP over HTTP, in batches and from a
//! thread beside the service. Spans wait in a queue with an end: a collector that is slow, or not
//! there, costs spans and nothing else.

use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use navi_actors::domain::loopback::is_loopback;
use navi_actors::{https, traces};
use opentelemetry::KeyValue;
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SpanProcessor as _};
use parking_lot::Mutex;
use reqwest::Client;
use reqwest::redirect::Policy;
use tokio::runtime::Handle;
use tokio::time::Instant;
use tracing::warn;
use uuid::Uuid;

use crate::settings::CollectorSettings;

/// The most spans that wait, a few MB of them; the newest are dropped.
const WAITING: usize = 4096;
/// The most that are sent at once.
const BATCH: usize = 512;
/// What there is is sent this often.
const EVERY: Duration = Duration::from_secs(2);
/// How long a collector has for one request, and for a batch with all that is tried again.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the end of the service waits for what is left.
const FLUSH: Duration = Duration::from_secs(1);
/// The most of an answer that is read.
const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// A collector that fails is told of in the log no more often than this.
const TOLD_EVERY: Duration = Duration::from_secs(600);

/// Has spans made and sent from here on.
///
/// # Errors
/// Where no client can be made.
pub(crate) fn turn_on(settings: &CollectorSettings, runtime: Handle) -> anyhow::Result<()> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Sender {
            client: client(settings)?,
            runtime,
            told: Mutex::default(),
        })
        .with_endpoint(settings.url.as_str())
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(PATIENCE)
        .build()
        .context("no traces can be sent")?;
    let batches = BatchConfigBuilder::default()
        .with_max_queue_size(WAITING)
        .with_max_export_batch_size(BATCH)
        .with_scheduled_delay(EVERY)
        .build();
    let mut processor = BatchSpanProcessor::new(exporter, batches);
    processor.set_resource(&resource());
    traces::turn_on(Box::new(processor));
    Ok(())
}

/// Sends what is left, within a limit. Spans that end after this are lost.
pub(crate) async fn flush() {
    let Some(traces) = traces::on() else {
        return;
    };
    // It waits for the thread that sends.
    let flushed = tokio::task::spawn_blocking(|| traces.processor().shutdown_with_timeout(FLUSH));
    if !matches!(flushed.await, Ok(Ok(()))) {
        warn!("the last traces could not be sent in time");
    }
}

/// What the spans are of. OpenTelemetry's own variables (`OTEL_RESOURCE_ATTRIBUTES`) add to it.
fn resource() -> Resource {
    Resource::builder()
        .with_service_name("navi")
        .with_attributes([
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", Uuid::new_v4().to_string()),
        ])
        .build()
}

/// As model servers are asked: no proxy to this very machine, and no redirect, with which the
/// headers would go elsewhere.
fn client(settings: &CollectorSettings) -> anyhow::Result<Client> {
    let mut builder = https::client()
        .default_headers(settings.headers.clone())
        .redirect(Policy::none())
        .timeout(PATIENCE);
    if is_loopback(&settings.url) {
        builder = builder.no_proxy();
    }
    builder.build().context("no HTTP client can be made")
}

/// Sends the exporter's requests on the service's runtime: the thread that waits for them is on
/// none.
#[derive(Debug)]
struct Sender {
    client: Client,
    runtime: Handle,
    /// When it was last told that the collector fails.
    told: Mutex<Option<Instant>>,
}

#[async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let sent = send(self.client.clone(), request);
        let answer = self.runtime.spawn(sent).await?;
        match &answer {
            Ok(answer) if answer.status().is_success() => {}
            Ok(answer) => self.tell(&format!("it answers {}", answer.status())),
            Err(error) => self.tell(&https::innermost(error).to_string()),
        }
        Ok(answer?)
    }
}

impl Sender {
    fn tell(&self, problem: &str) {
        let mut told = self.told.lock();
        if told.is_none_or(|told| told.elapsed() >= TOLD_EVERY) {
            *told = Some(Instant::now());
            warn!(
                problem,
                "the collector does not take traces (NAVI_OTLP_ENDPOINT); they are lost until it does"
            );
        }
    }
}

async fn send(client: Client, request: Request<Bytes>) -> reqwest::Result<Response<Bytes>> {
    let mut answer = client.execute(request.try_into()?).await?;
    let mut body = BytesMut::new();
    while body.len() < MAX_ANSWER_BYTES
        && let Some(chunk) = answer.chunk().await?
    {
        body.extend_from_slice(&chunk);
    }
    let mut read = Response::new(body.freeze());
    *read.status_mut() = answer.status();
    *read.headers_mut() = std::mem::take(answer.headers_mut());
    Ok(read)
}
