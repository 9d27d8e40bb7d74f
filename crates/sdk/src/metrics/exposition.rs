//! The metrics in Prometheus' text format, under the names that controller-runtime gives them.
//!
//! Families come in the order of their names, and samples in the order of their labels, whatever happened before.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::{Common, lock};
use crate::cache::Caches;
use crate::runner::Status;

/// What the text is to be served as.
pub(crate) const CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

/// Everything that a manager shows.
pub(crate) struct Exposed {
    pub(crate) operators: Vec<Arc<Status>>,
    pub(crate) common: Arc<Common>,
    pub(crate) caches: Caches,
}

impl fmt::Debug for Exposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exposed").finish_non_exhaustive()
    }
}

impl Exposed {
    /// The text, as it is now.
    pub(crate) fn text(self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        // Writing to a string can't fail.
        let _ = prometheus_text::encode(&mut text, &registry);
        text
    }
}

/// Names and values of a sample's labels.
type Labels = Vec<(&'static str, String)>;

/// What a family is, and what it says.
enum Samples {
    Counter(Vec<(Labels, u64)>),
    Gauge(Vec<(Labels, f64)>),
    Histogram(Vec<(Labels, Histogram)>),
}

fn encode(out: &mut DescriptorEncoder<'_>, name: &str, help: &str, samples: &Samples) -> fmt::Result {
    let (kind, empty) = match samples {
        Samples::Counter(s) => (MetricType::Counter, s.is_empty()),
        Samples::Gauge(s) => (MetricType::Gauge, s.is_empty()),
        Samples::Histogram(s) => (MetricType::Histogram, s.is_empty()),
    };
    if empty {
        return Ok(());
    }
    // The encoder puts `_total` behind the names of counters.
    let mut family = out.encode_descriptor(name.trim_end_matches("_total"), help, None, kind)?;
    match samples {
        Samples::Counter(samples) => {
            for (labels, value) in samples {
                ConstCounter::new(*value).encode(family.encode_family(labels)?)?;
            }
        }
        Samples::Gauge(samples) => {
            for (labels, value) in samples {
                ConstGauge::new(*value).encode(family.encode_family(labels)?)?;
            }
        }
        Samples::Histogram(samples) => {
            for (labels, histogram) in samples {
                histogram.encode(family.encode_family(labels)?)?;
            }
        }
    }
    Ok(())
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

#[expect(clippy::cast_precision_loss, reason = "a gauge is a float; counts stay far below 2^53")]
fn gauge(n: u64) -> f64 {
    n as f64
}

impl Exposed {
    fn controller(status: &Status) -> Labels {
        vec![("controller", status.name.to_owned())]
    }

    fn queue(status: &Status) -> Labels {
        vec![("controller", status.name.to_owned()), ("name", status.name.to_owned())]
    }

    fn counters(&self, f: impl Fn(&Status) -> u64) -> Samples {
        Samples::Counter(self.operators.iter().map(|s| (Self::controller(s), f(s))).collect())
    }

    fn gauges(&self, f: impl Fn(&Status) -> f64) -> Samples {
        Samples::Gauge(self.operators.iter().map(|s| (Self::controller(s), f(s))).collect())
    }

    fn reconciles(&self) -> Samples {
        let mut samples = Vec::new();
        for status in &self.operators {
            let c = &status.counters;
            for (result, value) in [
                ("error", load(&c.errors)),
                ("requeue_after", load(&c.requeued_after)),
                ("success", load(&c.done)),
            ] {
                let mut labels = Self::controller(status);
                labels.push(("result", result.to_owned()));
                samples.push((labels, value));
            }
        }
        Samples::Counter(samples)
    }

    fn depths(&self) -> Samples {
        let mut samples = Vec::new();
        for status in &self.operators {
            for (depth, priority) in status.queue.ready_by_priority().into_iter().zip(["0", "-100"]) {
                let mut labels = Self::queue(status);
                labels.push(("priority", priority.to_owned()));
                samples.push((labels, gauge(depth as u64)));
            }
        }
        Samples::Gauge(samples)
    }

    fn families(&self) -> Vec<(&'static str, &'static str, Samples)> {
        let queues = |f: &dyn Fn(&Status) -> f64| {
            Samples::Gauge(self.operators.iter().map(|s| (Self::queue(s), f(s))).collect())
        };
        let queue_counters = |f: &dyn Fn(&Status) -> u64| {
            Samples::Counter(self.operators.iter().map(|s| (Self::queue(s), f(s))).collect())
        };
        let queue_times = |f: &dyn Fn(&Status) -> Histogram| {
            Samples::Histogram(self.operators.iter().map(|s| (Self::queue(s), f(s))).collect())
        };
        let sizes = self.caches.sizes();
        let cached = |f: &dyn Fn(&crate::cache::CacheSize) -> u64| {
            let labels = |s: &crate::cache::CacheSize| {
                vec![
                    ("fields", s.selection.fields.clone()),
                    ("labels", s.selection.labels.clone()),
                    ("metadata_only", s.metadata.to_string()),
                    ("namespace", s.selection.namespace.clone().unwrap_or_default()),
                    ("resource", s.resource.clone()),
                ]
            };
            Samples::Gauge(sizes.iter().map(|s| (labels(s), gauge(f(s)))).collect())
        };
        let common = &self.common;
        let webhooks = lock(&common.webhooks);
        let webhook = |path: &String| vec![("webhook", path.clone())];
        vec![
            (
                "certwatcher_read_certificate_errors_total",
                "Total number of certificate read errors",
                Samples::Counter(vec![(vec![], load(&common.certificate_errors))]),
            ),
            (
                "certwatcher_read_certificate_total",
                "Total number of certificate reads",
                Samples::Counter(vec![(vec![], load(&common.certificate_reads))]),
            ),
            (
                "controller_runtime_active_workers",
                "Number of currently used workers per controller",
                self.gauges(|s| gauge(load(&s.counters.active))),
            ),
            (
                "controller_runtime_max_concurrent_reconciles",
                "Maximum number of concurrent reconciles per controller",
                self.gauges(|s| gauge(s.concurrency as u64)),
            ),
            (
                "controller_runtime_reconcile_errors_total",
                "Total number of reconciliation errors per controller",
                self.counters(|s| load(&s.counters.errors)),
            ),
            (
                "controller_runtime_reconcile_panics_total",
                "Total number of reconciliation panics per controller",
                self.counters(|s| load(&s.counters.panics)),
            ),
            (
                "controller_runtime_reconcile_time_seconds",
                "Length of time per reconciliation per controller",
                Samples::Histogram(
                    self.operators
                        .iter()
                        .map(|s| (Self::controller(s), s.durations.reconcile.clone()))
                        .collect(),
                ),
            ),
            (
                "controller_runtime_reconcile_timeouts_total",
                "Total number of reconciliation timeouts per controller",
                self.counters(|s| load(&s.counters.timeouts)),
            ),
            (
                "controller_runtime_reconcile_total",
                "Total number of reconciliations per controller",
                self.reconciles(),
            ),
            (
                "controller_runtime_terminal_reconcile_errors_total",
                "Total number of terminal reconciliation errors per controller",
                self.counters(|s| load(&s.counters.terminal_errors)),
            ),
            (
                "controller_runtime_webhook_latency_seconds",
                "Histogram of the latency of processing admission requests",
                Samples::Histogram(webhooks.iter().map(|(p, a)| (webhook(p), a.latency.clone())).collect()),
            ),
            (
                "controller_runtime_webhook_panics_total",
                "Total number of webhook panics",
                Samples::Counter(vec![(vec![], load(&common.webhook_panics))]),
            ),
            (
                "controller_runtime_webhook_requests_in_flight",
                "Current number of admission requests being served",
                Samples::Gauge(webhooks.iter().map(|(p, a)| (webhook(p), gauge(a.in_flight))).collect()),
            ),
            (
                "controller_runtime_webhook_requests_total",
                "Total number of admission requests by HTTP status code",
                Samples::Counter(
                    webhooks
                        .iter()
                        .flat_map(|(path, asked)| {
                            asked.codes.iter().map(|(code, n)| {
                                (vec![("code", code.to_string()), ("webhook", path.clone())], *n)
                            })
                        })
                        .collect(),
                ),
            ),
            (
                "homeostat_cache_json_bytes",
                "Bytes of JSON that the objects of a cache came in",
                cached(&|s| s.json_bytes),
            ),
            ("homeostat_cache_objects", "Objects in a cache", cached(&|s| s.objects)),
            (
                "leader_election_master_status",
                "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. 'name' is the string used to identify the lease. Please make sure to group by name.",
                Samples::Gauge(
                    lock(&common.leads)
                        .iter()
                        .map(|(lease, leads)| (vec![("name", lease.clone())], gauge(u64::from(*leads))))
                        .collect(),
                ),
            ),
            (
                "rest_client_requests_total",
                "Number of HTTP requests, partitioned by status code, method, and host.",
                Samples::Counter(
                    lock(&common.requests)
                        .iter()
                        .map(|((method, code), n)| {
                            let code = if *code == 0 { "<error>".to_owned() } else { code.to_string() };
                            let host = String::new();
                            (vec![("code", code), ("host", host), ("method", method.clone())], *n)
                        })
                        .collect(),
                ),
            ),
            (
                "workqueue_adds_total",
                "Total number of adds handled by workqueue",
                queue_counters(&|s| s.queue.counts().0),
            ),
            ("workqueue_depth", "Current depth of workqueue by workqueue and priority", self.depths()),
            (
                "workqueue_longest_running_processor_seconds",
                "How many seconds has the longest running processor for workqueue been running.",
                queues(&|s| s.queue.unfinished().longest.as_secs_f64()),
            ),
            (
                "workqueue_queue_duration_seconds",
                "How long in seconds an item stays in workqueue before being requested",
                queue_times(&|s| s.durations.queue.clone()),
            ),
            (
                "workqueue_retries_total",
                "Total number of retries handled by workqueue",
                queue_counters(&|s| s.queue.counts().1),
            ),
            (
                "workqueue_unfinished_work_seconds",
                "How many seconds of work has been done that is in progress and hasn't been observed by work_duration. Large values indicate stuck threads. One can deduce the number of stuck threads by observing the rate at which this increases.",
                queues(&|s| s.queue.unfinished().total.as_secs_f64()),
            ),
            (
                "workqueue_work_duration_seconds",
                "How long in seconds processing an item from workqueue takes.",
                queue_times(&|s| s.durations.work.clone()),
            ),
        ]
    }
}

impl Collector for Exposed {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, samples) in self.families() {
            encode(&mut encoder, name, help, &samples)?;
        }
        Ok(())
    }
}
