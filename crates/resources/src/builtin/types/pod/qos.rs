//! The quality-of-service class of a pod, and the sum of what its containers ask for.

use std::collections::BTreeMap;

use homeostat_model::quantity::Quantity;
use serde_json::Value;

use crate::builtin::value::{empty, entries, items};

type Amounts = BTreeMap<String, Quantity>;

fn amounts(of: &Value, path: &str) -> Amounts {
    entries(of, path).filter_map(|(k, v)| Some((k.to_owned(), Quantity::from_value(v).ok()?))).collect()
}

/// `Guaranteed`, `Burstable` or `BestEffort`, from processor and memory only.
pub(crate) fn class(spec: &Value) -> &'static str {
    let counted = |list: Amounts| -> Amounts {
        list.into_iter().filter(|(k, q)| matches!(&**k, "cpu" | "memory") && q.signum() > 0).collect()
    };
    let (mut requests, mut limits) = (Amounts::new(), Amounts::new());
    let mut guaranteed = true;
    if !empty(spec, "resources.requests") || !empty(spec, "resources.limits") {
        requests = counted(amounts(spec, "resources.requests"));
        limits = counted(amounts(spec, "resources.limits"));
        guaranteed = limits.len() == 2;
    } else {
        for container in items(spec, "containers").iter().chain(items(spec, "initContainers")) {
            let own = counted(amounts(container, "resources.limits"));
            guaranteed &= own.len() == 2;
            add(&mut limits, own);
            add(&mut requests, counted(amounts(container, "resources.requests")));
        }
    }
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if guaranteed && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

fn add(sum: &mut Amounts, more: Amounts) {
    for (name, q) in more {
        match sum.get_mut(&name) {
            Some(have) => *have += &q,
            None => drop(sum.insert(name, q)),
        }
    }
}

/// What a pod's containers request at its peak.
pub(crate) fn aggregate_requests(spec: &Value) -> Amounts {
    homeostat_model::quota::usage::containers(spec, |c| amounts(c, "resources.requests"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn classes() {
        let container =
            |limits: Value, requests: Value| json!({"resources": {"limits": limits, "requests": requests}});
        let both = json!({"cpu": "1", "memory": "1Gi"});
        for (containers, want) in [
            (vec![container(json!({}), json!({}))], "BestEffort"),
            (vec![container(json!({"nvidia.com/gpu": "1"}), json!({"nvidia.com/gpu": "1"}))], "BestEffort"),
            (vec![container(both.clone(), both.clone())], "Guaranteed"),
            (vec![container(json!({"cpu": "1000m", "memory": "1024Mi"}), both.clone())], "Guaranteed"),
            (vec![container(both.clone(), json!({"cpu": "500m", "memory": "1Gi"}))], "Burstable"),
            (vec![container(both.clone(), both.clone()), container(json!({}), json!({}))], "Burstable"),
            (vec![container(json!({"cpu": "1"}), json!({"cpu": "1"}))], "Burstable"),
        ] {
            assert_eq!(class(&json!({"containers": containers})), want, "{containers:?}");
        }
    }
}
