//! Defaults of pods and pod templates that depend on other fields. Source: `pkg/apis/core/v1/defaults.go`.

use homeostat_model::quantity::Quantity;
use serde_json::{Map, Value, json};

use super::qos;
use crate::builtin::value::{at, default, each, empty, entries, has, int, object, set, text};

/// Lists of containers in a pod's spec.
pub(crate) const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Defaults of a pod template.
pub(crate) fn template(template: &mut Value) {
    if let Some(spec) = template.get_mut("spec").filter(|s| s.is_object()) {
        spec_defaults(spec);
    }
}

/// Defaults of a pod: those of templates and a few that only pods get.
pub(super) fn pod(pod: &mut Value) {
    let Some(spec) = pod.get_mut("spec").filter(|s| s.is_object()) else { return };
    spec_defaults(spec);
    default(spec, "enableServiceLinks", true);
    let host_network = spec["hostNetwork"] == true;
    for list in ["initContainers", "containers"] {
        each(spec, list, |container| {
            requests_from_limits(container);
            if host_network {
                each(container, "ports", |port| {
                    if int(port, "hostPort").unwrap_or_default() == 0 {
                        let port_number = at(port, "containerPort").clone();
                        set(port, "hostPort", port_number);
                    }
                });
            }
        });
    }
    pod_level_requests(spec);
}

fn spec_defaults(spec: &mut Value) {
    // The older name of a field is kept in step with its successor.
    match (text(spec, "serviceAccountName").to_owned(), text(spec, "serviceAccount").to_owned()) {
        (name, _) if !name.is_empty() => set(spec, "serviceAccount", name),
        (_, old) if !old.is_empty() => set(spec, "serviceAccountName", old),
        _ => {}
    }
    for list in CONTAINERS {
        each(spec, list, |container| {
            if empty(container, "imagePullPolicy") {
                let policy = pull_policy(text(container, "image"));
                set(container, "imagePullPolicy", policy);
            }
            for kind in ["limits", "requests"] {
                if has(container, &format!("resources.{kind}")) {
                    round(object(container, &format!("resources.{kind}")));
                }
            }
        });
    }
    each(spec, "volumes", |volume| {
        if volume.as_object().is_some_and(|v| v.keys().all(|k| k == "name")) {
            set(volume, "emptyDir", json!({}));
        }
        if has(volume, "image") && empty(volume, "image.pullPolicy") {
            let policy = pull_policy(text(volume, "image.reference"));
            set(volume, "image.pullPolicy", policy);
        }
        if has(volume, "ephemeral.volumeClaimTemplate.spec") {
            default(volume, "ephemeral.volumeClaimTemplate.spec.volumeMode", "Filesystem");
        }
    });
}

/// `Always` for images that are, or mean, `:latest`.
fn pull_policy(image: &str) -> &'static str {
    if tag(image) == "latest" { "Always" } else { "IfNotPresent" }
}

/// The tag of an image reference; `latest` where it has neither tag nor digest, empty where it can't be read.
fn tag(image: &str) -> &str {
    let (name, digest) = image.split_once('@').map_or((image, ""), |(n, d)| (n, d));
    let last = name.rfind('/').map_or(0, |i| i + 1);
    let malformed = name.is_empty() || name.chars().any(|c| c.is_whitespace()) || name.ends_with('/');
    match name[last..].split_once(':') {
        _ if malformed => "",
        Some((_, tag)) => tag,
        None if digest.is_empty() => "latest",
        None => "",
    }
}

/// Values below a thousandth are rounded up to it.
fn round(list: &mut Map<String, Value>) {
    for value in list.values_mut() {
        if let Some(text) = value.as_str().filter(|t| t.ends_with(['n', 'u']))
            && let Ok(q) = Quantity::parse(text)
        {
            *value = Quantity::from_milli(q.milli(), q.format()).to_string().into();
        }
    }
}

fn requests_from_limits(container: &mut Value) {
    let limits: Vec<(String, Value)> =
        entries(container, "resources.limits").map(|(k, v)| (k.to_owned(), v.clone())).collect();
    if limits.is_empty() {
        return;
    }
    let requests = object(container, "resources.requests");
    for (name, limit) in limits {
        requests.entry(name).or_insert(limit);
    }
}

/// Pod-level requests follow from the containers' and from the pod's limits.
fn pod_level_requests(spec: &mut Value) {
    if empty(spec, "resources.limits") {
        return;
    }
    let supported = |name: &str| matches!(name, "cpu" | "memory") || name.starts_with("hugepages-");
    let total = qos::aggregate_requests(spec);
    let limits: Vec<(String, Value)> =
        entries(spec, "resources.limits").map(|(k, v)| (k.to_owned(), v.clone())).collect();
    let requests = object(spec, "resources.requests");
    for (name, sum) in total.into_iter().filter(|(n, _)| matches!(&**n, "cpu" | "memory")) {
        requests.entry(name).or_insert_with(|| sum.to_string().into());
    }
    for (name, limit) in limits.into_iter().filter(|(n, _)| supported(n)) {
        requests.entry(name).or_insert(limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_and_untagged_images_are_always_pulled() {
        for (image, want) in [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("nginx:1.27", "IfNotPresent"),
            ("registry.example.com:5000/nginx", "Always"),
            ("registry.example.com:5000/nginx:1", "IfNotPresent"),
            ("nginx@sha256:0123", "IfNotPresent"),
            ("nginx:latest@sha256:0123", "Always"),
            ("", "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), want, "{image}");
        }
    }
}
