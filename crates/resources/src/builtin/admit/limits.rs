//! LimitRanger: defaults of containers' resources, and bounds of containers, pods and claims.

use std::collections::BTreeMap;

use homeostat_model::quantity::Quantity;
use serde_json::{Map, Value};

use crate::builtin::value::{each, entries, items, object, text};

type Amounts = BTreeMap<String, Quantity>;

fn amounts(of: &Value, path: &str) -> Amounts {
    entries(of, path).filter_map(|(k, v)| Some((k.to_owned(), Quantity::from_value(v).ok()?))).collect()
}

/// Gives a pod's containers the defaults of a limit range, and notes in an annotation what was set. For creates.
pub fn default_pod(pod: &mut Value, range: &Value) {
    let (mut limits, mut requests) = (Map::new(), Map::new());
    for item in items(range, "spec.limits").iter().filter(|i| text(i, "type") == "Container") {
        let copy = |from: &str| item[from].as_object().cloned().unwrap_or_default();
        limits.extend(copy("default"));
        requests.extend(copy("defaultRequest"));
    }
    let mut notes = Vec::new();
    for (list, what) in [("spec.containers", "container"), ("spec.initContainers", "init container")] {
        each(pod, list, |container| {
            let name = text(container, "name").to_owned();
            let limited = fill(object(container, "resources"), "limits", &limits);
            let requested = fill(object(container, "resources"), "requests", &requests);
            for (set, kind) in [(requested, "request"), (limited, "limit")] {
                if !set.is_empty() {
                    notes.push(format!("{} {kind} for {what} {name}", set.join(", ")));
                }
            }
        });
    }
    if !notes.is_empty() {
        let note = format!("LimitRanger plugin set: {}", notes.join("; "));
        object(pod, "metadata.annotations").insert("kubernetes.io/limit-ranger".into(), note.into());
    }
}

/// Adds what is missing in one of a container's lists; returns the names.
fn fill(resources: &mut Map<String, Value>, list: &str, defaults: &Map<String, Value>) -> Vec<String> {
    let mut set = Vec::new();
    for (name, value) in defaults {
        let Some(into) = resources.entry(list).or_insert_with(|| Map::new().into()).as_object_mut() else {
            break;
        };
        if !into.contains_key(name) {
            into.insert(name.clone(), value.clone());
            set.push(name.clone());
        }
    }
    set
}

/// What of a limit range a new or changed pod breaks, in the reference's words; empty when nothing.
pub fn check_pod(pod: &Value, range: &Value) -> Vec<String> {
    let mut broken = Vec::new();
    for item in items(range, "spec.limits") {
        let kind = text(item, "type");
        match kind {
            "Container" => {
                for container in items(pod, "spec.containers").iter().chain(items(pod, "spec.initContainers"))
                {
                    let (requests, limits) =
                        (amounts(container, "resources.requests"), amounts(container, "resources.limits"));
                    bounds(&mut broken, kind, item, &requests, &limits);
                }
            }
            "Pod" => {
                let (requests, limits) = (total(pod, "requests"), total(pod, "limits"));
                bounds(&mut broken, kind, item, &requests, &limits);
            }
            _ => {}
        }
    }
    broken
}

/// What of a limit range a new or changed claim breaks.
pub fn check_claim(claim: &Value, range: &Value) -> Vec<String> {
    let mut broken = Vec::new();
    let requests = amounts(claim, "spec.resources.requests");
    for item in items(range, "spec.limits").iter().filter(|i| text(i, "type") == "PersistentVolumeClaim") {
        let kind = "PersistentVolumeClaim";
        for (name, min) in amounts(item, "min") {
            minimum(&mut broken, kind, &name, &min, requests.get(&name), None);
        }
        for (name, max) in amounts(item, "max") {
            match requests.get(&name) {
                None => {
                    broken.push(format!("maximum {name} usage per {kind} is {max}.  No request is specified"))
                }
                Some(request) if *request > max => {
                    broken
                        .push(format!("maximum {name} usage per {kind} is {max}, but request is {request}"));
                }
                Some(_) => {}
            }
        }
    }
    broken
}

fn total(pod: &Value, list: &str) -> Amounts {
    let mut sum = Amounts::new();
    let path = format!("resources.{list}");
    for container in items(pod, "spec.containers") {
        for (name, q) in amounts(container, &path) {
            *sum.entry(name).or_insert_with(|| Quantity::integer(0, q.format())) += &q;
        }
    }
    for container in items(pod, "spec.initContainers") {
        for (name, q) in amounts(container, &path) {
            let have = sum.entry(name).or_insert_with(|| q.clone());
            if *have < q {
                *have = q;
            }
        }
    }
    sum
}

fn minimum(
    broken: &mut Vec<String>,
    kind: &str,
    name: &str,
    min: &Quantity,
    request: Option<&Quantity>,
    limit: Option<&Quantity>,
) {
    match (request, limit) {
        (None, _) => {
            broken.push(format!("minimum {name} usage per {kind} is {min}.  No request is specified"))
        }
        (Some(request), _) if request < min => {
            broken.push(format!("minimum {name} usage per {kind} is {min}, but request is {request}"));
        }
        (_, Some(limit)) if limit < min => {
            broken.push(format!("minimum {name} usage per {kind} is {min}, but limit is {limit}"));
        }
        _ => {}
    }
}

fn bounds(broken: &mut Vec<String>, kind: &str, item: &Value, requests: &Amounts, limits: &Amounts) {
    for (name, min) in amounts(item, "min") {
        minimum(broken, kind, &name, &min, requests.get(&name), limits.get(&name));
    }
    for (name, max) in amounts(item, "max") {
        match (limits.get(&name), requests.get(&name)) {
            (None, _) => {
                broken.push(format!("maximum {name} usage per {kind} is {max}.  No limit is specified"))
            }
            (Some(limit), _) if *limit > max => {
                broken.push(format!("maximum {name} usage per {kind} is {max}, but limit is {limit}"));
            }
            (_, Some(request)) if *request > max => {
                broken.push(format!("maximum {name} usage per {kind} is {max}, but request is {request}"));
            }
            _ => {}
        }
    }
    for (name, ratio) in amounts(item, "maxLimitRequestRatio") {
        let text = format!("{name} max limit to request ratio per {kind} is {ratio}, but");
        match (requests.get(&name).filter(|q| !q.is_zero()), limits.get(&name).filter(|q| !q.is_zero())) {
            (None, _) => broken.push(format!("{text} no request is specified or request is 0")),
            (_, None) => broken.push(format!("{text} no limit is specified or limit is 0")),
            (Some(request), Some(limit)) => {
                let (request, limit) = (request.milli() as f64, limit.milli() as f64);
                if limit / request > ratio.milli() as f64 / 1000.0 {
                    broken.push(format!("{text} provided ratio is {:.6}", limit / request));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn range() -> Value {
        json!({"spec": {"limits": [
            {
                "type": "Container", "max": {"cpu": "1"}, "min": {"cpu": "50m"},
                "default": {"cpu": "1", "memory": "128Mi"}, "defaultRequest": {"cpu": "1", "memory": "64Mi"},
            },
            {"type": "Pod", "max": {"cpu": "1500m"}},
            {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}},
        ]}})
    }

    #[test]
    fn containers_are_given_what_they_lack() {
        let mut pod = json!({"spec": {"containers": [{"name": "app"}]}});
        default_pod(&mut pod, &range());
        assert_eq!(
            pod,
            json!({
                "metadata": {"annotations": {"kubernetes.io/limit-ranger":
                    "LimitRanger plugin set: cpu, memory request for container app; cpu, memory limit for container app"}},
                "spec": {"containers": [{"name": "app", "resources": {
                    "limits": {"cpu": "1", "memory": "128Mi"}, "requests": {"cpu": "1", "memory": "64Mi"},
                }}]},
            })
        );
    }

    #[test]
    fn bounds_are_told_as_the_reference_tells_them() {
        let pod = |resources: Value, n: usize| {
            let containers: Vec<Value> =
                (0..n).map(|_| json!({"name": "a", "resources": resources})).collect();
            json!({"spec": {"containers": containers}})
        };
        let cpu =
            |limit: &str, request: &str| json!({"limits": {"cpu": limit}, "requests": {"cpu": request}});
        for (pod, want) in [
            (
                pod(cpu("2", "100m"), 1),
                vec![
                    "maximum cpu usage per Container is 1, but limit is 2",
                    "maximum cpu usage per Pod is 1500m, but limit is 2",
                ],
            ),
            (pod(cpu("1", "10m"), 1), vec!["minimum cpu usage per Container is 50m, but request is 10m"]),
            (pod(cpu("1", "1"), 2), vec!["maximum cpu usage per Pod is 1500m, but limit is 2"]),
            (pod(cpu("1", "50m"), 1), vec![]),
        ] {
            assert_eq!(check_pod(&pod, &range()), want, "{pod}");
        }
        let claim = json!({"spec": {"resources": {"requests": {"storage": "512Mi"}}}});
        assert_eq!(
            check_claim(&claim, &range()),
            ["minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 512Mi"]
        );
    }
}
