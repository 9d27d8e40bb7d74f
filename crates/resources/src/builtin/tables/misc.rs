//! Rows of the remaining groups.

use std::collections::BTreeSet;

use homeostat_model::Timestamp;
use serde_json::Value;

use super::cells::{age, condition, first_three, name, number, or, plain, selector};
use crate::builtin::value::{at, flag, has, int, items, text, texts};

/// An APIService.
pub(super) fn api_service(object: &Value, now: Timestamp) -> Vec<Value> {
    let service = match at(object, "spec.service") {
        Value::Null => "Local".to_owned(),
        service => format!("{}/{}", text(service, "namespace"), text(service, "name")),
    };
    let available = match condition(object, "Available") {
        Some(c) if text(c, "status") == "True" => "True".to_owned(),
        Some(c) => format!("{} ({})", text(c, "status"), text(c, "reason")),
        None => "Unknown".to_owned(),
    };
    vec![name(object), service.into(), available.into(), age(object, now)]
}

/// A CertificateSigningRequest.
pub(super) fn signing_request(object: &Value, now: Timestamp) -> Vec<Value> {
    let duration = int(object, "spec.expirationSeconds").map(crate::table::human_duration);
    let mut state: Vec<&str> = items(object, "status.conditions")
        .iter()
        .map(|c| text(c, "type"))
        .filter(|kind| matches!(*kind, "Approved" | "Denied" | "Failed"))
        .collect();
    state.sort_unstable();
    let mut state = if state.is_empty() { "Pending".to_owned() } else { state.join(",") };
    if !text(object, "status.certificate").is_empty() {
        state.push_str(",Issued");
    }
    vec![
        name(object),
        age(object, now),
        or(text(object, "spec.signerName"), "<none>"),
        text(object, "spec.username").into(),
        or(&duration.unwrap_or_default(), "<none>"),
        state.into(),
    ]
}

/// An IngressClass.
pub(super) fn ingress_class(object: &Value, now: Timestamp) -> Vec<Value> {
    let parameters = match at(object, "spec.parameters") {
        Value::Null => "<none>".to_owned(),
        p => {
            let group = text(p, "apiGroup");
            let kind = text(p, "kind");
            let kind = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
            format!("{kind}/{}", text(p, "name"))
        }
    };
    vec![name(object), text(object, "spec.controller").into(), parameters.into(), age(object, now)]
}

/// An Ingress.
pub(super) fn ingress(object: &Value, now: Timestamp) -> Vec<Value> {
    let hosts: Vec<String> = items(object, "spec.rules")
        .iter()
        .map(|r| text(r, "host"))
        .filter(|h| !h.is_empty())
        .map(str::to_owned)
        .collect();
    let addresses: BTreeSet<&str> = items(object, "status.loadBalancer.ingress")
        .iter()
        .map(|i| if text(i, "ip").is_empty() { text(i, "hostname") } else { text(i, "ip") })
        .collect();
    let class = match text(object, "spec.ingressClassName") {
        "" => object["metadata"]["annotations"].get("kubernetes.io/ingress.class").and_then(Value::as_str),
        class => Some(class),
    };
    vec![
        name(object),
        or(class.unwrap_or_default(), "<none>"),
        first_three(&hosts, "*"),
        addresses.into_iter().collect::<Vec<_>>().join(",").into(),
        if items(object, "spec.tls").is_empty() { "80".into() } else { "80, 443".into() },
        age(object, now),
    ]
}

/// An IPAddress.
pub(super) fn ip_address(object: &Value, _now: Timestamp) -> Vec<Value> {
    let parent = at(object, "spec.parentRef");
    let mut parts = vec![text(parent, "resource").to_owned()];
    if !text(parent, "group").is_empty() {
        parts[0] = format!("{}.{}", text(parent, "resource"), text(parent, "group"));
    }
    parts.extend(
        [text(parent, "namespace"), text(parent, "name")]
            .into_iter()
            .filter(|p| !p.is_empty())
            .map(str::to_owned),
    );
    vec![name(object), or(&parts.join("/"), "<none>")]
}

/// A NetworkPolicy.
pub(super) fn network_policy(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), selector(at(object, "spec.podSelector")), age(object, now)]
}

/// A ServiceCIDR.
pub(super) fn service_cidr(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), texts(object, "spec.cidrs").join(",").into(), age(object, now)]
}

/// A PodDisruptionBudget.
pub(super) fn disruption_budget(object: &Value, now: Timestamp) -> Vec<Value> {
    let bound = |field: &str| or(&plain(at(object, field)), "N/A");
    vec![
        name(object),
        bound("spec.minAvailable"),
        bound("spec.maxUnavailable"),
        number(object, "status.disruptionsAllowed"),
        age(object, now),
    ]
}

/// A RoleBinding or ClusterRoleBinding.
pub(super) fn role_binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let of = |kind: &str| -> Value {
        let all: Vec<String> = items(object, "subjects")
            .iter()
            .filter(|s| text(s, "kind") == kind)
            .map(|s| match kind {
                "ServiceAccount" => format!("{}/{}", text(s, "namespace"), text(s, "name")),
                _ => text(s, "name").to_owned(),
            })
            .collect();
        all.join(", ").into()
    };
    let role = format!("{}/{}", text(object, "roleRef.kind"), text(object, "roleRef.name"));
    vec![name(object), role.into(), age(object, now), of("User"), of("Group"), of("ServiceAccount")]
}

/// A CSIDriver.
pub(super) fn csi_driver(object: &Value, now: Timestamp) -> Vec<Value> {
    let modes = texts(object, "spec.volumeLifecycleModes").join(",");
    let audiences: Vec<&str> =
        items(object, "spec.tokenRequests").iter().map(|t| text(t, "audience")).collect();
    vec![
        name(object),
        at(object, "spec.attachRequired").as_bool().unwrap_or(true).into(),
        flag(object, "spec.podInfoOnMount").into(),
        flag(object, "spec.storageCapacity").into(),
        or(&audiences.join(","), "<unset>"),
        flag(object, "spec.requiresRepublish").into(),
        or(&modes, "<none>"),
        age(object, now),
    ]
}

/// A CSINode.
pub(super) fn csi_node(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), items(object, "spec.drivers").len().into(), age(object, now)]
}

/// The name, marked where the class is the default one.
fn class_name(object: &Value, annotations: &[&str]) -> Value {
    let default =
        annotations.iter().any(|a| object["metadata"]["annotations"].get(a).is_some_and(|v| v == "true"));
    let name = text(object, "metadata.name");
    if default { format!("{name} (default)").into() } else { name.into() }
}

/// A StorageClass.
pub(super) fn storage_class(object: &Value, now: Timestamp) -> Vec<Value> {
    let marks =
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
    vec![
        class_name(object, &marks),
        text(object, "provisioner").into(),
        or(text(object, "reclaimPolicy"), "Delete"),
        or(text(object, "volumeBindingMode"), "Immediate"),
        flag(object, "allowVolumeExpansion").into(),
        age(object, now),
    ]
}

/// A VolumeAttributesClass.
pub(super) fn attributes_class(object: &Value, now: Timestamp) -> Vec<Value> {
    let marks = ["volumeattributesclass.alpha.kubernetes.io/is-default-class"];
    vec![class_name(object, &marks), text(object, "driverName").into(), age(object, now)]
}

/// A VolumeAttachment.
pub(super) fn volume_attachment(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        text(object, "spec.attacher").into(),
        text(object, "spec.source.persistentVolumeName").into(),
        text(object, "spec.nodeName").into(),
        flag(object, "status.attached").into(),
        age(object, now),
    ]
}

/// An admission policy.
pub(super) fn admission_policy(object: &Value, now: Timestamp) -> Vec<Value> {
    let kind = match at(object, "spec.paramKind") {
        Value::Null => "<unset>".to_owned(),
        kind => format!("{}/{}", text(kind, "apiVersion"), text(kind, "kind")),
    };
    let rules = items(object, "spec.mutations").len() + items(object, "spec.validations").len();
    vec![name(object), rules.into(), kind.into(), age(object, now)]
}

/// A binding of an admission policy.
pub(super) fn policy_binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let reference = at(object, "spec.paramRef");
    let shown = match (text(reference, "namespace"), text(reference, "name")) {
        _ if reference.is_null() => "<unset>".to_owned(),
        (_, "") => selector(at(reference, "selector")).as_str().unwrap_or_default().to_owned(),
        ("", name) => format!("*/{name}"),
        (namespace, name) => format!("{namespace}/{name}"),
    };
    vec![name(object), text(object, "spec.policyName").into(), shown.into(), age(object, now)]
}

/// A webhook configuration.
pub(super) fn webhooks(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), items(object, "webhooks").len().into(), age(object, now)]
}

/// A PriorityClass.
pub(super) fn priority_class(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        number(object, "value"),
        flag(object, "globalDefault").into(),
        age(object, now),
        text(object, "preemptionPolicy").into(),
    ]
}

/// A Lease.
pub(super) fn lease(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), text(object, "spec.holderIdentity").into(), age(object, now)]
}

/// A RuntimeClass.
pub(super) fn runtime_class(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), text(object, "handler").into(), age(object, now)]
}

/// An EndpointSlice.
pub(super) fn endpoint_slice(object: &Value, now: Timestamp) -> Vec<Value> {
    let ports: Vec<String> = items(object, "ports")
        .iter()
        .map(|p| int(p, "port").map_or_else(|| "*".to_owned(), |n| n.to_string()))
        .collect();
    let addresses: Vec<String> =
        items(object, "endpoints").iter().flat_map(|e| texts(e, "addresses")).map(str::to_owned).collect();
    vec![
        name(object),
        text(object, "addressType").into(),
        first_three(&ports, "<unset>"),
        first_three(&addresses, "<unset>"),
        age(object, now),
    ]
}

/// A ResourceClaim.
pub(super) fn resource_claim(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut states = Vec::new();
    if has(object, "metadata.deletionTimestamp") {
        states.push("deleted");
    }
    if !has(object, "status.allocation") {
        if states.is_empty() {
            states.push("pending");
        }
    } else {
        states.push("allocated");
        states.push(if items(object, "status.reservedFor").is_empty() { "" } else { "reserved" });
    }
    states.retain(|s| !s.is_empty());
    vec![name(object), states.join(",").into(), age(object, now)]
}

/// A ResourceSlice.
pub(super) fn resource_slice(object: &Value, now: Timestamp) -> Vec<Value> {
    let node = text(object, "spec.nodeName");
    vec![
        name(object),
        or(node, if flag(object, "spec.allNodes") { "<all>" } else { "<unset>" }),
        text(object, "spec.driver").into(),
        text(object, "spec.pool.name").into(),
        age(object, now),
    ]
}

/// A FlowSchema.
pub(super) fn flow_schema(object: &Value, now: Timestamp) -> Vec<Value> {
    let missing = condition(object, "Dangling").map_or("?", |c| text(c, "status"));
    vec![
        name(object),
        or(text(object, "spec.priorityLevelConfiguration.name"), "<none>"),
        number(object, "spec.matchingPrecedence"),
        or(text(object, "spec.distinguisherMethod.type"), "<none>"),
        age(object, now),
        missing.into(),
    ]
}

/// A PriorityLevelConfiguration.
pub(super) fn priority_level(object: &Value, now: Timestamp) -> Vec<Value> {
    let shares = match at(object, "spec.limited.nominalConcurrencyShares") {
        Value::Null => at(object, "spec.exempt.nominalConcurrencyShares"),
        shares => shares,
    };
    let queuing = |field: &str| {
        or(&plain(at(object, &format!("spec.limited.limitResponse.queuing.{field}"))), "<none>")
    };
    vec![
        name(object),
        text(object, "spec.type").into(),
        or(&plain(shares), "<none>"),
        queuing("queues"),
        queuing("handSize"),
        queuing("queueLengthLimit"),
        age(object, now),
    ]
}
