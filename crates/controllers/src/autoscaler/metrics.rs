//! The three APIs of metrics (`metrics.k8s.io`, `custom.metrics.k8s.io`, `external.metrics.k8s.io`), as plain requests.
//!
//! Errors are sentences, in client-go's words, since they end up in conditions and events.

use std::time::Duration;

use homeostat_model::Timestamp;
use homeostat_model::quantity::Quantity;
use k8s_openapi::api::autoscaling::v2::{MetricIdentifier, MetricSpec, ObjectMetricSource};
use kube::Client;
use serde_json::Value;

use super::calc::{Sample, Samples, clamp};
use super::source::Fetched;
use crate::common::claim;
use crate::common::scale::{explain, get};
use crate::common::served::Discovery;

const CUSTOM: &str = "custom.metrics.k8s.io";
const EXTERNAL: &str = "external.metrics.k8s.io";
/// The window of a metric that doesn't say its own.
const WINDOW: Duration = Duration::from_secs(60);

/// A query, its values escaped.
fn query(pairs: &[(&str, &str)]) -> String {
    let escape = |text: &str| -> String {
        let one = |b: u8| match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => (b as char).to_string(),
            b => format!("%{b:02X}"),
        };
        text.bytes().map(one).collect()
    };
    let pairs: Vec<String> =
        pairs.iter().filter(|(_, v)| !v.is_empty()).map(|(k, v)| format!("{k}={}", escape(v))).collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

/// What a metric says.
pub(super) async fn fetch(
    client: &Client,
    discovery: &Discovery,
    namespace: &str,
    selector: &str,
    spec: &MetricSpec,
) -> Result<Fetched, String> {
    if let Some(source) = &spec.resource {
        return resource(client, namespace, selector, &source.name, None).await;
    }
    if let Some(source) = &spec.container_resource {
        return resource(client, namespace, selector, &source.name, Some(&source.container)).await;
    }
    if let Some(source) = &spec.pods {
        return pods(client, namespace, selector, &source.metric).await;
    }
    if let Some(source) = &spec.object {
        return object(client, discovery, namespace, source).await;
    }
    match &spec.external {
        Some(source) => external(client, namespace, &source.metric).await,
        None => Err("no source".into()),
    }
}

fn milli(value: &Value) -> Option<i64> {
    Quantity::from_value(value).ok().filter(|_| !value.is_null()).map(|q| clamp(q.milli()))
}

fn time(value: &Value) -> Timestamp {
    value.as_str().and_then(|t| t.parse().ok()).unwrap_or(Timestamp::MIN)
}

/// Go's `30s`, `1m0s`, `17.062s`.
fn window(text: &str) -> Duration {
    let mut total = 0.0;
    let mut rest = text;
    while let Some(end) = rest.find(|c: char| c.is_ascii_alphabetic()) {
        let number: f64 = rest[..end].parse().unwrap_or(0.0);
        rest = &rest[end..];
        let unit = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        total += number
            * match &rest[..unit] {
                "h" => 3600.0,
                "m" => 60.0,
                "ms" => 0.001,
                _ => 1.0,
            };
        rest = &rest[unit..];
    }
    Duration::try_from_secs_f64(total).unwrap_or(WINDOW)
}

async fn resource(
    client: &Client,
    namespace: &str,
    selector: &str,
    resource: &str,
    container: Option<&str>,
) -> Result<Fetched, String> {
    let query = query(&[("labelSelector", selector)]);
    let path = format!("/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods{query}");
    let list: Value = get(client, &path).await.map_err(|e| {
        format!(
            "unable to fetch metrics from resource metrics API: {}",
            explain(e, "get pods.metrics.k8s.io")
        )
    })?;
    let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    if items.is_empty() {
        return Err("no metrics returned from resource metrics API".into());
    }
    let of_all = of_pods(items, resource, container);
    of_all.map(Fetched::Pods).map_err(|e| format!("failed to get container metrics: {e}"))
}

/// A pod's sum over its containers, or one container's value. Pods that lack a value are left out.
fn of_pods(items: &[Value], resource: &str, container: Option<&str>) -> Result<Samples, String> {
    let mut samples = Samples::new();
    for pod in items {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let containers = pod["containers"].as_array().map(Vec::as_slice).unwrap_or_default();
        let value = match container {
            None if containers.is_empty() => None,
            None => containers.iter().map(|c| milli(&c["usage"][resource])).sum(),
            Some(wanted) => match containers.iter().find(|c| c["name"] == wanted) {
                Some(found) => milli(&found["usage"][resource]),
                None => {
                    let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
                    return Err(format!(
                        "container {wanted} not present in metrics for pod {namespace}/{name}"
                    ));
                }
            },
        };
        if let Some(value) = value {
            let window = window(pod["window"].as_str().unwrap_or_default());
            samples.insert(name.to_owned(), Sample { value, at: time(&pod["timestamp"]), window });
        }
    }
    Ok(samples)
}

fn labels(metric: &MetricIdentifier) -> Result<String, String> {
    let Some(selector) = &metric.selector else { return Ok(String::new()) };
    claim::labels(Some(selector)).map_err(|e| e.to_string())?;
    Ok(claim::text(Some(selector)))
}

/// The root of a group in the version that it prefers.
async fn root(client: &Client, group: &str, absent: &str) -> Result<String, String> {
    let found: Result<Value, _> = get(client, &format!("/apis/{group}")).await;
    match found {
        Ok(group) => match group["preferredVersion"]["groupVersion"].as_str() {
            Some(version) => Ok(format!("/apis/{version}")),
            None => Err(absent.to_owned()),
        },
        Err(kube::Error::Api(status)) if status.code == 404 => Err(absent.to_owned()),
        Err(e) => Err(explain(e, &format!("get {group}"))),
    }
}

async fn custom(client: &Client, path: &str, what: &str) -> Result<Vec<Value>, String> {
    let absent = format!("no custom metrics API ({CUSTOM}) registered");
    let root = root(client, CUSTOM, &absent).await?;
    let list: Value =
        get(client, &format!("{root}/{path}")).await.map_err(|e| explain(e, &format!("get {what}")))?;
    Ok(list["items"].as_array().cloned().unwrap_or_default())
}

const FROM_CUSTOM: &str = "unable to fetch metrics from custom metrics API";

async fn pods(
    client: &Client,
    namespace: &str,
    selector: &str,
    metric: &MetricIdentifier,
) -> Result<Fetched, String> {
    let query = query(&[("labelSelector", selector), ("metricLabelSelector", &labels(metric)?)]);
    let path = format!("namespaces/{namespace}/pods/*/{}{query}", metric.name);
    let items =
        custom(client, &path, &format!("pods.{CUSTOM}")).await.map_err(|e| format!("{FROM_CUSTOM}: {e}"))?;
    if items.is_empty() {
        return Err("no metrics returned from custom metrics API".into());
    }
    let one = |item: &Value| {
        let seconds = item["windowSeconds"].as_u64();
        let window = seconds.map_or(WINDOW, Duration::from_secs);
        let sample = Sample { value: milli(&item["value"])?, at: time(&item["timestamp"]), window };
        Some((item["describedObject"]["name"].as_str()?.to_owned(), sample))
    };
    Ok(Fetched::Pods(items.iter().filter_map(one).collect()))
}

async fn object(
    client: &Client,
    discovery: &Discovery,
    namespace: &str,
    source: &ObjectMetricSource,
) -> Result<Fetched, String> {
    let of = &source.described_object;
    let query = query(&[("metricLabelSelector", &labels(&source.metric)?)]);
    let version = of.api_version.as_deref().unwrap_or("v1");
    let metric = &source.metric.name;
    let (path, what) = if of.kind == "Namespace" && version == "v1" {
        // An autoscaler sees no namespace but its own.
        (format!("namespaces/{namespace}/metrics/{metric}{query}"), format!("namespaces.{CUSTOM}"))
    } else {
        let Some(served) = discovery.of_kind(version, &of.kind) else {
            let group = version.split_once('/').map_or("", |(group, _)| group);
            return Err(format!("{FROM_CUSTOM}: no matches for kind {:?} in group {group:?}", of.kind));
        };
        let resource = served.full_name();
        let path = format!("namespaces/{namespace}/{resource}/{}/{metric}{query}", of.name);
        (path, format!("{}.{CUSTOM}", served.plural))
    };
    let items = custom(client, &path, &what).await.map_err(|e| format!("{FROM_CUSTOM}: {e}"))?;
    let value = items.first().and_then(|i| milli(&i["value"]));
    value
        .map(Fetched::Sum)
        .ok_or_else(|| format!("{FROM_CUSTOM}: no metrics returned from custom metrics API"))
}

async fn external(client: &Client, namespace: &str, metric: &MetricIdentifier) -> Result<Fetched, String> {
    let query = query(&[("labelSelector", &labels(metric)?)]);
    let path = format!("/apis/{EXTERNAL}/v1beta1/namespaces/{namespace}/{}{query}", metric.name);
    let list: Value = get(client, &path).await.map_err(|e| {
        let why = explain(e, &format!("get {}.{EXTERNAL}", metric.name));
        format!("unable to fetch metrics from external metrics API: {why}")
    })?;
    let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    if items.is_empty() {
        return Err("no metrics returned from external metrics API".into());
    }
    Ok(Fetched::Sum(items.iter().filter_map(|i| milli(&i["value"])).sum()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_are_summed_or_left_out() {
        let items = [
            json!({"metadata": {"name": "a"}, "timestamp": "2026-01-01T00:00:00Z", "window": "30s", "containers": [
                {"name": "x", "usage": {"cpu": "100m"}}, {"name": "y", "usage": {"cpu": "23456789n"}}]}),
            json!({"metadata": {"name": "b"}, "containers": [{"name": "x", "usage": {"cpu": "1"}}, {"name": "y", "usage": {}}]}),
            json!({"metadata": {"name": "c"}, "containers": []}),
        ];
        let values = |container| {
            let samples = of_pods(&items[..2], "cpu", container).unwrap();
            samples.into_iter().map(|(name, s)| (name, s.value)).collect::<Vec<_>>()
        };
        assert_eq!(values(None), [("a".to_owned(), 124)]);
        assert_eq!(values(Some("x")), [("a".to_owned(), 100), ("b".to_owned(), 1000)]);
        let why = of_pods(&items, "cpu", Some("x")).unwrap_err();
        assert_eq!(why, "container x not present in metrics for pod /c");
    }

    #[test]
    fn texts_are_read_and_written() {
        assert_eq!(window("1m0s"), Duration::from_secs(60));
        assert_eq!(window("17.5s"), Duration::from_millis(17_500));
        assert_eq!(
            query(&[("labelSelector", "a=b,c in (d)"), ("x", "")]),
            "?labelSelector=a%3Db%2Cc%20in%20%28d%29"
        );
    }
}
