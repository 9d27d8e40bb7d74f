//! Rows of the core group's types, but for pods.

use std::collections::BTreeSet;

use homeostat_model::Timestamp;
use serde_json::Value;

use super::cells::{age, ago, condition, count, first_three, labels, name, or, plain};
use crate::builtin::value::{at, entries, flag, has, int, items, text, texts};

/// A ConfigMap.
pub(super) fn config_map(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), (count(object, "data") + count(object, "binaryData")).into(), age(object, now)]
}

/// A Secret.
pub(super) fn secret(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), text(object, "type").into(), count(object, "data").into(), age(object, now)]
}

/// Endpoints.
pub(super) fn endpoints(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut all = Vec::new();
    for subset in items(object, "subsets") {
        let ports = items(subset, "ports");
        for address in items(subset, "addresses") {
            let ip = text(address, "ip");
            if ports.is_empty() {
                all.push(ip.to_owned());
            }
            for port in ports {
                let number = int(port, "port").unwrap_or_default();
                all.push(if ip.contains(':') {
                    format!("[{ip}]:{number}")
                } else {
                    format!("{ip}:{number}")
                });
            }
        }
    }
    vec![name(object), first_three(&all, "<none>"), age(object, now)]
}

/// An Event of either group.
pub(super) fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    // The two groups name the same fields differently.
    let either = |a: &str, b: &str| {
        let first = text(object, a);
        if first.is_empty() { text(object, b).to_owned() } else { first.to_owned() }
    };
    let about = if has(object, "regarding") { "regarding" } else { "involvedObject" };
    let mut first = either("firstTimestamp", "deprecatedFirstTimestamp");
    if first.is_empty() {
        first = text(object, "eventTime").to_owned();
    }
    let mut last = either("lastTimestamp", "deprecatedLastTimestamp");
    let counted = int(object, "count").or_else(|| int(object, "deprecatedCount")).unwrap_or_default();
    let mut times = counted.max(1);
    if has(object, "series") {
        last = text(object, "series.lastObservedTime").to_owned();
        times = int(object, "series.count").unwrap_or_default();
    }
    if last.is_empty() {
        last.clone_from(&first);
    }
    let first_of = |a: String, b: String| if a.is_empty() { b } else { a };
    let component = first_of(
        either("source.component", "deprecatedSource.component"),
        either("reportingComponent", "reportingController"),
    );
    let host = first_of(
        either("source.host", "deprecatedSource.host"),
        text(object, "reportingInstance").to_owned(),
    );
    let source = if host.is_empty() { component } else { format!("{component}, {host}") };
    vec![
        ago(&last, now).into(),
        text(object, "type").into(),
        text(object, "reason").into(),
        format!(
            "{}/{}",
            text(object, &format!("{about}.kind")).to_lowercase(),
            text(object, &format!("{about}.name"))
        )
        .into(),
        text(object, &format!("{about}.fieldPath")).into(),
        source.into(),
        either("message", "note").trim().into(),
        ago(&first, now).into(),
        times.into(),
        name(object),
    ]
}

/// A Namespace.
pub(super) fn namespace(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), text(object, "status.phase").into(), age(object, now)]
}

/// A Node.
pub(super) fn node(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut status = match condition(object, "Ready").map(|c| text(c, "status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if flag(object, "spec.unschedulable") {
        status.push_str(",SchedulingDisabled");
    }
    let mut roles = BTreeSet::new();
    for (label, value) in entries(object, "metadata.labels") {
        if let Some(role) = label.strip_prefix("node-role.kubernetes.io/").filter(|r| !r.is_empty()) {
            roles.insert(role);
        } else if label == "kubernetes.io/role" {
            roles.extend(value.as_str().filter(|r| !r.is_empty()));
        }
    }
    let roles: Vec<&str> = roles.into_iter().collect();
    let address = |kind: &str| {
        let found = items(object, "status.addresses").iter().find(|a| text(a, "type") == kind);
        or(found.map_or("", |a| text(a, "address")), "<none>")
    };
    let info = |field: &str| or(text(object, &format!("status.nodeInfo.{field}")), "<unknown>");
    vec![
        name(object),
        status.into(),
        or(&roles.join(","), "<none>"),
        age(object, now),
        text(object, "status.nodeInfo.kubeletVersion").into(),
        address("InternalIP"),
        address("ExternalIP"),
        info("osImage"),
        info("kernelVersion"),
        info("containerRuntimeVersion"),
    ]
}

/// Access modes by their initials.
fn modes(list: &Value) -> String {
    let short = |mode: &str| match mode {
        "ReadWriteOnce" => "RWO",
        "ReadOnlyMany" => "ROX",
        "ReadWriteMany" => "RWX",
        "ReadWriteOncePod" => "RWOP",
        _ => "",
    };
    let all = list.as_array().into_iter().flatten().filter_map(Value::as_str).map(short);
    all.filter(|m| !m.is_empty()).collect::<Vec<_>>().join(",")
}

/// A PersistentVolumeClaim.
pub(super) fn claim(object: &Value, now: Timestamp) -> Vec<Value> {
    let phase =
        if has(object, "metadata.deletionTimestamp") { "Terminating" } else { text(object, "status.phase") };
    let volume = text(object, "spec.volumeName");
    let (mut capacity, mut access) = (String::new(), String::new());
    if !volume.is_empty() {
        capacity = plain(at(object, "status.capacity.storage"));
        access = modes(at(object, "status.accessModes"));
    }
    vec![
        name(object),
        phase.into(),
        volume.into(),
        capacity.into(),
        access.into(),
        text(object, "spec.storageClassName").into(),
        or(text(object, "spec.volumeAttributesClassName"), "<unset>"),
        age(object, now),
        or(text(object, "spec.volumeMode"), "<unset>"),
    ]
}

/// A PersistentVolume.
pub(super) fn volume(object: &Value, now: Timestamp) -> Vec<Value> {
    let phase =
        if has(object, "metadata.deletionTimestamp") { "Terminating" } else { text(object, "status.phase") };
    let claim = match at(object, "spec.claimRef") {
        Value::Null => String::new(),
        claim => format!("{}/{}", text(claim, "namespace"), text(claim, "name")),
    };
    vec![
        name(object),
        plain(at(object, "spec.capacity.storage")).into(),
        modes(at(object, "spec.accessModes")).into(),
        text(object, "spec.persistentVolumeReclaimPolicy").into(),
        phase.into(),
        claim.into(),
        text(object, "spec.storageClassName").into(),
        or(text(object, "spec.volumeAttributesClassName"), "<unset>"),
        text(object, "status.reason").into(),
        age(object, now),
        or(text(object, "spec.volumeMode"), "<unset>"),
    ]
}

/// A ResourceQuota.
pub(super) fn quota(object: &Value, now: Timestamp) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in entries(object, "status.hard") {
        let used = object["status"]["used"].get(resource).map_or_else(|| "0".to_owned(), plain);
        let shown = format!("{resource}: {used}/{}", plain(hard));
        if resource.starts_with("limits.") { limits.push(shown) } else { requests.push(shown) }
    }
    vec![name(object), requests.join(", ").into(), limits.join(", ").into(), age(object, now)]
}

/// A Service.
pub(super) fn service(object: &Value, now: Timestamp) -> Vec<Value> {
    let address = texts(object, "spec.clusterIPs").first().copied().unwrap_or(text(object, "spec.clusterIP"));
    let ports: Vec<String> = items(object, "spec.ports")
        .iter()
        .map(|p| {
            let (number, protocol) = (int(p, "port").unwrap_or_default(), text(p, "protocol"));
            match int(p, "nodePort").unwrap_or_default() {
                0 => format!("{number}/{protocol}"),
                node => format!("{number}:{node}/{protocol}"),
            }
        })
        .collect();
    vec![
        name(object),
        text(object, "spec.type").into(),
        or(address, "<none>"),
        external(object),
        or(&ports.join(","), "<none>"),
        age(object, now),
        labels(at(object, "spec.selector")),
    ]
}

fn external(service: &Value) -> Value {
    let own = texts(service, "spec.externalIPs").join(",");
    match text(service, "spec.type") {
        "ExternalName" => text(service, "spec.externalName").into(),
        "LoadBalancer" => {
            let ingress: Vec<&str> = items(service, "status.loadBalancer.ingress")
                .iter()
                .map(|i| if text(i, "ip").is_empty() { text(i, "hostname") } else { text(i, "ip") })
                .collect();
            match (ingress.join(","), own) {
                (given, own) if given.is_empty() => or(&own, "<pending>"),
                (given, own) if own.is_empty() => given.into(),
                (given, own) => format!("{given},{own}").into(),
            }
        }
        _ => or(&own, "<none>"),
    }
}
