//! From the status that is stored to the one that is to be: a strategic merge patch with what differs, as kubelets send
//! it.
//!
//! Conditions that aren't a kubelet's are not in it, so that a stale view never takes back what another has said.

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use serde_json::{Map, Value, json};

use super::conditions::OWN;

/// Fields that a kubelet writes; where they are gone they are removed.
const FIELDS: [&str; 13] = [
    "phase",
    "reason",
    "message",
    "hostIP",
    "hostIPs",
    "podIP",
    "podIPs",
    "startTime",
    "containerStatuses",
    "initContainerStatuses",
    "ephemeralContainerStatuses",
    "observedGeneration",
    "resize",
];

/// The patch; `None` where nothing differs.
pub fn patch(pod: &Pod, new: &PodStatus) -> Result<Option<Value>, serde_json::Error> {
    if pod.status.as_ref() == Some(new) {
        return Ok(None);
    }
    let old = json(pod.status.as_ref())?;
    let new = json(Some(new))?;
    let mut changes = Map::new();
    for field in FIELDS {
        let (had, has) = (old.get(field), new.get(field));
        if had == has {
            continue;
        }
        let value = match (field, has) {
            ("podIPs" | "hostIPs", Some(Value::Array(items))) if had.is_some() => Value::Array(
                [json!({"$patch": "replace"})].into_iter().chain(items.iter().cloned()).collect(),
            ),
            (_, has) => has.cloned().unwrap_or_default(),
        };
        changes.insert(field.to_owned(), value);
    }
    let conditions = conditions(old.get("conditions"), new.get("conditions"));
    if !conditions.is_empty() {
        changes.insert("conditions".to_owned(), Value::Array(conditions));
    }
    if changes.is_empty() {
        return Ok(None);
    }
    Ok(Some(json!({"metadata": {"uid": pod.metadata.uid}, "status": changes})))
}

fn conditions(old: Option<&Value>, new: Option<&Value>) -> Vec<Value> {
    let items = |v: Option<&Value>| v.and_then(Value::as_array).cloned().unwrap_or_default();
    let own = |c: &Value| c["type"].as_str().is_some_and(|t| OWN.contains(&t));
    let (old, new) = (items(old), items(new));
    let gone = old.iter().filter(|o| own(o) && !new.iter().any(|n| n["type"] == o["type"]));
    let gone: Vec<Value> = gone.map(|o| json!({"type": o["type"], "$patch": "delete"})).collect();
    let told = new.into_iter().filter(|n| own(n) && !old.contains(n)).map(|mut n| {
        let before = old.iter().find(|o| o["type"] == n["type"]);
        for (field, _) in before.and_then(Value::as_object).into_iter().flatten() {
            if n.get(field).is_none() {
                n[field.as_str()] = Value::Null;
            }
        }
        n
    });
    told.chain(gone).collect()
}

/// As JSON, without nulls on the first two levels, where k8s-openapi leaves them out anyway.
fn json(status: Option<&PodStatus>) -> Result<Value, serde_json::Error> {
    status.map_or(Ok(Value::Null), serde_json::to_value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(v: Value) -> PodStatus {
        serde_json::from_value(v).unwrap()
    }

    #[track_caller]
    fn check(old: Value, new: Value, want: Option<Value>) {
        let pod = Pod { status: Some(status(old)), ..Pod::default() };
        let got = patch(&pod, &status(new)).unwrap();
        assert_eq!(got.map(|p| p["status"].clone()), want);
    }

    #[test]
    fn only_what_differs_is_sent() {
        let ready = |s: &str| json!({"type": "Ready", "status": s});
        check(json!({"phase": "Pending"}), json!({"phase": "Pending"}), None);
        check(json!({"phase": "Pending"}), json!({"phase": "Running"}), Some(json!({"phase": "Running"})));
        check(json!({"reason": "Evicted"}), json!({}), Some(json!({"reason": null})));
        check(
            json!({"conditions": [ready("False"), {"type": "lb", "status": "True"}]}),
            json!({"conditions": [ready("True"), {"type": "lb", "status": "False"}]}),
            Some(json!({"conditions": [ready("True")]})),
        );
        check(
            json!({"conditions": [{"type": "Ready", "status": "False", "reason": "R", "message": "m"}]}),
            json!({"conditions": [ready("True")]}),
            Some(json!({"conditions": [
                {"type": "Ready", "status": "True", "reason": null, "message": null}]})),
        );
        check(
            json!({"conditions": [{"type": "PodResizePending", "status": "True"}]}),
            json!({"conditions": []}),
            Some(json!({"conditions": [{"type": "PodResizePending", "$patch": "delete"}]})),
        );
        check(
            json!({"podIPs": [{"ip": "10.0.0.1"}]}),
            json!({"podIPs": [{"ip": "10.0.0.2"}]}),
            Some(json!({"podIPs": [{"$patch": "replace"}, {"ip": "10.0.0.2"}]})),
        );
        // What a kubelet doesn't write is not taken back.
        check(json!({"qosClass": "Burstable", "nominatedNodeName": "n"}), json!({}), None);
    }
}
