//! ResourceQuota: whether a quota counts an object, and whether there is room for what it uses.

use homeostat_model::GroupResource;
use homeostat_model::quantity::Quantity;
use homeostat_model::quota::usage::{Amounts, amounts, usage};
use serde_json::Value;

use crate::builtin::types::pod::qos;
use crate::builtin::value::{at, items, text, texts};

/// Whether a quota's scopes take in an object; only pods have what scopes ask for.
pub fn counts(quota: &Value, id: &GroupResource, object: &Value) -> bool {
    let is_pod = id.group.is_empty() && &*id.resource == "pods";
    let scoped = !texts(quota, "spec.scopes").is_empty()
        || !items(quota, "spec.scopeSelector.matchExpressions").is_empty();
    if !scoped || !is_pod {
        return !scoped;
    }
    let best_effort = qos::class(&object["spec"]) == "BestEffort";
    homeostat_model::quota::selects_pod(&quota["spec"], object, best_effort)
}

/// Measures a write against a quota: `None` where the quota isn't touched, otherwise the `status.used` to store, or
/// why there is no room. `old` is what the write replaces.
pub fn admit(
    quota: &Value,
    id: &GroupResource,
    new: &Value,
    old: Option<&Value>,
) -> Option<Result<Value, String>> {
    let hard = amounts(&quota["status"]["hard"]);
    let (counted, before) = (counts(quota, id, new), old.is_some_and(|o| counts(quota, id, o)));
    let wanted = if counted { usage(id, new) } else { Amounts::new() };
    let had = old.filter(|_| before).map(|o| usage(id, o)).unwrap_or_default();
    let name = text(quota, "metadata.name");
    if counted
        && old.is_none()
        && let Some(missing) = unspecified(&hard, id, new)
    {
        return Some(Err(format!("failed quota: {name}: must specify {missing}")));
    }
    let mut used = amounts(&quota["status"]["used"]);
    let (mut requested, mut have, mut limited) = (Vec::new(), Vec::new(), Vec::new());
    let mut touched = false;
    for (resource, limit) in &hard {
        let zero = || Quantity::integer(0, limit.format());
        let delta = &wanted.get(resource).cloned().unwrap_or_else(zero)
            - &had.get(resource).cloned().unwrap_or_else(zero);
        if delta.is_zero() {
            continue;
        }
        touched = true;
        let now = used.get(resource).cloned().unwrap_or_else(zero);
        let then = &now + &delta;
        if delta.signum() > 0 && then > *limit {
            requested.push(format!("{resource}={delta}"));
            have.push(format!("{resource}={now}"));
            limited.push(format!("{resource}={limit}"));
        }
        used.insert(resource.clone(), then);
    }
    if !requested.is_empty() {
        return Some(Err(format!(
            "exceeded quota: {name}, requested: {}, used: {}, limited: {}",
            requested.join(","),
            have.join(","),
            limited.join(",")
        )));
    }
    touched.then(|| Ok(used.into_iter().map(|(k, q)| (k, Value::from(q.to_string()))).collect()))
}

/// A quota of processor or memory wants every container to say how much it takes.
fn unspecified(hard: &Amounts, id: &GroupResource, pod: &Value) -> Option<String> {
    if !id.group.is_empty() || &*id.resource != "pods" {
        return None;
    }
    let mut missing = Vec::new();
    for resource in hard.keys() {
        let (list, name) = match resource.split_once('.') {
            Some((list @ ("requests" | "limits"), name)) => (list, name),
            _ => ("requests", &**resource),
        };
        if !matches!(name, "cpu" | "memory") {
            continue;
        }
        let path = format!("resources.{list}");
        let without: Vec<&str> = items(pod, "spec.containers")
            .iter()
            .filter(|c| at(c, &path).get(name).is_none_or(Value::is_null))
            .map(|c| text(c, "name"))
            .collect();
        if !without.is_empty() {
            missing.push(format!("{resource} for: {}", without.join(",")));
        }
    }
    (!missing.is_empty()).then(|| missing.join("; "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn quota(used: Value) -> Value {
        let hard = json!({"pods": "2", "requests.cpu": "1500m", "count/leases.coordination.k8s.io": "1"});
        json!({"metadata": {"name": "team"}, "spec": {"hard": hard}, "status": {"hard": hard, "used": used}})
    }

    fn pod(cpu: &str) -> Value {
        json!({"spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": cpu}}}]}})
    }

    #[test]
    fn a_quota_is_used_up_and_says_so() {
        let pods = GroupResource::new("", "pods");
        let start = json!({"pods": "1", "requests.cpu": "1", "count/leases.coordination.k8s.io": "0"});
        assert_eq!(
            admit(&quota(start.clone()), &pods, &pod("600m"), None),
            Some(Err("exceeded quota: team, requested: requests.cpu=600m, used: requests.cpu=1, limited: \
                      requests.cpu=1500m"
                .to_owned()))
        );
        let full = json!({"pods": "2", "requests.cpu": "1500m", "count/leases.coordination.k8s.io": "0"});
        assert_eq!(admit(&quota(start), &pods, &pod("500m"), None), Some(Ok(full.clone())));
        assert_eq!(
            admit(&quota(full.clone()), &pods, &pod("100m"), None),
            Some(Err("exceeded quota: team, requested: pods=1,requests.cpu=100m, used: pods=2,requests.cpu=1500m, \
                      limited: pods=2,requests.cpu=1500m"
                .to_owned()))
        );
        assert_eq!(
            admit(&quota(full.clone()), &GroupResource::new("", "configmaps"), &json!({}), None),
            None
        );
        assert_eq!(
            admit(&quota(full), &pods, &json!({"spec": {"containers": [{"name": "a"}]}}), None),
            Some(Err("failed quota: team: must specify requests.cpu for: a".to_owned()))
        );
    }

    #[test]
    fn custom_resources_count_too() {
        let id = GroupResource::new("example.com", "widgets");
        assert_eq!(usage(&id, &json!({})).keys().collect::<Vec<_>>(), ["count/widgets.example.com"]);
    }

    #[test]
    fn scopes_choose_pods() {
        let best_effort = json!({"spec": {"scopes": ["BestEffort"]}});
        let pods = GroupResource::new("", "pods");
        assert!(!counts(&best_effort, &pods, &pod("1")));
        assert!(counts(&best_effort, &pods, &json!({"spec": {"containers": [{"name": "a"}]}})));
        assert!(!counts(&best_effort, &GroupResource::new("", "services"), &json!({})));
    }
}
