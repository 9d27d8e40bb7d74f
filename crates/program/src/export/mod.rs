//! Spans to an OpenTelemetry collector, over OTLP/HTTP, where the environment names one.
//!
//! The variables are those of the OpenTelemetry specification; what `settings` doesn't read, the library does (sampler,
//! batches, limits, headers, resource attributes). It exports no metrics and no logs: those have their own ways.
//! A thread of the library's own collects spans and sends them in batches, so that a reconcile never waits for the
//! collector; when more wait than `OTEL_BSP_MAX_QUEUE_SIZE` says, spans are dropped. Invariant: a collector that is
//! wrong, slow or away costs traces and one warning, nothing else.

mod chosen;
mod client;
mod settings;

use std::time::Duration;

use opentelemetry::trace::TracerProvider;
use opentelemetry::{InstrumentationScope, Key, KeyValue, Value};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

use self::chosen::Chosen;
use self::client::Client;
use self::settings::Settings;
use crate::logs::Speaker;

/// How long the end of the program may wait for the collector. A pod has 30 s in all, most of which reconciles may use.
const FAREWELL: Duration = Duration::from_secs(5);

/// A running export.
pub(crate) struct Export {
    provider: SdkTracerProvider,
}

impl Export {
    /// Begins, if the environment says so. What is in the way is a sentence that says what to do.
    pub(crate) fn start(
        variable: impl Fn(&str) -> Option<String>,
        speaker: &Speaker<'_>,
        runtime: &Handle,
    ) -> Result<Option<Self>, String> {
        let Some(settings) = Settings::read(&variable)? else {
            return Ok(None);
        };
        let client = Client::new(&settings, runtime.clone())?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(settings.endpoint.to_string())
            .with_timeout(settings.timeout)
            .build()
            .map_err(|e| e.to_string())?;
        let provider = SdkTracerProvider::builder()
            .with_resource(resource(variable, speaker))
            .with_batch_exporter(exporter)
            .build();
        Ok(Some(Self { provider }))
    }

    /// What takes the spans.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let scope = InstrumentationScope::builder("homeostat").with_version(env!("CARGO_PKG_VERSION"));
        // Threads and lines are those of the runtime and of the runner: they say nothing about a reconcile.
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer_with_scope(scope.build()))
            .with_threads(false)
            .with_location(false)
            .with_filter(Chosen)
    }

    /// Sends what hasn't been sent. What goes wrong was said where it did.
    pub(crate) fn stop(self) {
        let _ = self.provider.shutdown_with_timeout(FAREWELL);
    }
}

/// Who it is that exports: what the environment says, and what the program knows itself.
fn resource(variable: impl Fn(&str) -> Option<String>, speaker: &Speaker<'_>) -> Resource {
    let said = Resource::builder().build();
    let pod = |name| variable(name).filter(|v| !v.is_empty());
    let known = [
        ("service.name", Some(speaker.name.to_owned())),
        ("service.version", Some(speaker.version.to_owned()).filter(|v| !v.is_empty())),
        ("k8s.pod.name", pod("POD_NAME")),
        ("k8s.namespace.name", pod("POD_NAMESPACE")),
    ];
    let known = known.into_iter().filter_map(|(key, value)| Some(KeyValue::new(key, value?)));
    Resource::builder().with_attributes(known.filter(|own| !is_said(&said, &own.key))).build()
}

/// Whether somebody said it; the library makes up a name where nobody has.
fn is_said(resource: &Resource, key: &Key) -> bool {
    match resource.get_ref(key) {
        None => false,
        Some(Value::String(text)) => !text.as_str().starts_with("unknown_service"),
        Some(_) => true,
    }
}
