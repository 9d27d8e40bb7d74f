//! Where `tracing` goes: logs to standard error, and with the feature `opentelemetry` spans to a collector.
//!
//! The two don't depend on each other: whatever `--log` leaves out is still traced, and without a collector logs are as
//! they are without the feature. Invariant: what goes wrong with traces is a warning, never the end of the program.

use tokio::runtime::Handle;
use tracing_subscriber::EnvFilter;

#[cfg(feature = "opentelemetry")]
use crate::export::Export;

/// Who says something.
#[cfg_attr(not(feature = "opentelemetry"), expect(dead_code, reason = "only traces say it"))]
pub(crate) struct Speaker<'a> {
    pub(crate) name: &'a str,
    /// Empty where it isn't known.
    pub(crate) version: &'a str,
}

/// What has to be stopped in the end.
#[must_use]
pub(crate) struct Logs {
    #[cfg(feature = "opentelemetry")]
    export: Option<Export>,
}

impl Logs {
    /// Begins. Whoever calls us may have set up logs of their own: then theirs are used.
    #[cfg(not(feature = "opentelemetry"))]
    pub(crate) fn start(filter: EnvFilter, _: &Speaker<'_>, _: &Handle) -> Self {
        plain(filter);
        Self {}
    }

    /// Begins. Whoever calls us may have set up logs of their own: then theirs are used, and nothing is exported.
    /// `runtime` carries what is sent to the collector.
    #[cfg(feature = "opentelemetry")]
    pub(crate) fn start(filter: EnvFilter, speaker: &Speaker<'_>, runtime: &Handle) -> Self {
        use tracing_subscriber::layer::SubscriberExt;
        use tracing_subscriber::util::SubscriberInitExt;
        use tracing_subscriber::{Layer, Registry};

        let export = match Export::start(|name| std::env::var(name).ok(), speaker, runtime) {
            Ok(None) => {
                plain(filter);
                None
            }
            Ok(Some(export)) => {
                let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_filter(filter);
                let ours = Registry::default().with(lines).with(export.layer()).try_init().is_ok();
                ours.then_some(export)
            }
            Err(why) => {
                plain(filter);
                tracing::warn!("traces are not exported: {why}");
                None
            }
        };
        Self { export }
    }

    /// Sends what hasn't been sent. To be called when nothing is reconciled any more, while the runtime still runs.
    pub(crate) fn stop(self) {
        #[cfg(feature = "opentelemetry")]
        if let Some(export) = self.export {
            export.stop();
        }
    }
}

/// Logs alone.
fn plain(filter: EnvFilter) {
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
}
