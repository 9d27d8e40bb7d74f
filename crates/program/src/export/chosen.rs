//! Which spans and events are exported: what is at the level info or above, and the requests of a reconcile.
//!
//! It has nothing to do with `--log`. The Kubernetes client gives each request a span at the level debug; outside of a
//! reconcile these are watches and leases, which tell nothing about one and would each be a trace of their own.

use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Filter};
use tracing_subscriber::registry::LookupSpan;

/// The filter.
pub(super) struct Chosen;

/// The span of a request to the API server.
fn is_request(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && *metadata.level() == Level::DEBUG && metadata.target().starts_with("kube_client")
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Filter<S> for Chosen {
    fn enabled(&self, metadata: &Metadata<'_>, cx: &Context<'_, S>) -> bool {
        *metadata.level() <= Level::INFO || (is_request(metadata) && cx.lookup_current().is_some())
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        if *metadata.level() <= Level::INFO {
            Interest::always()
        } else if is_request(metadata) {
            Interest::sometimes()
        } else {
            Interest::never()
        }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::DEBUG)
    }
}
