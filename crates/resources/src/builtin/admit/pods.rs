//! What admission adds to pods: tolerations of unreachable nodes, and what a RuntimeClass brings along.

use serde_json::{Value, json};

use crate::builtin::value::{at, empty, has, items, object, set, text};

/// Seconds that a pod stays on a node that isn't ready or reachable.
const SECONDS: i64 = 300;

/// DefaultTolerationSeconds: every pod tolerates a node's absence for five minutes, unless it says otherwise. For
/// creates and updates of pods.
pub fn default_tolerations(pod: &mut Value) {
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let said = items(pod, "spec.tolerations").iter().any(|t| {
            matches!(text(t, "key"), k if k == key || k.is_empty())
                && matches!(text(t, "effect"), "NoExecute" | "")
        });
        if said {
            continue;
        }
        let toleration =
            json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS});
        let list = object(pod, "spec").entry("tolerations").or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            list.push(toleration);
        }
    }
}

/// RuntimeClass: the overhead, node selector and tolerations of the class that a new pod names; `class` is what is
/// stored under that name. The error is the reference's text.
pub fn runtime_class(pod: &mut Value, class: Option<&Value>) -> Result<(), String> {
    let name = text(pod, "spec.runtimeClassName").to_owned();
    if name.is_empty() {
        return match has(pod, "spec.overhead") && !empty(pod, "spec.overhead") {
            true => Err("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
                .to_owned()),
            false => Ok(()),
        };
    }
    let Some(class) = class else {
        return Err(format!("pod rejected: RuntimeClass \"{name}\" not found"));
    };
    let overhead = at(class, "overhead.podFixed").clone();
    let own = at(pod, "spec.overhead").clone();
    if !own.is_null() && own != overhead {
        return Err("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead".to_owned());
    }
    if !overhead.is_null() {
        set(pod, "spec.overhead", overhead);
    }
    for (key, value) in class["scheduling"]["nodeSelector"].as_object().into_iter().flatten() {
        let selector = object(pod, "spec.nodeSelector");
        match selector.get(key) {
            Some(own) if own != value => {
                return Err(format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                    value.as_str().unwrap_or_default(),
                    own.as_str().unwrap_or_default()
                ));
            }
            _ => drop(selector.insert(key.clone(), value.clone())),
        }
    }
    for toleration in items(class, "scheduling.tolerations") {
        let list = object(pod, "spec").entry("tolerations").or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut()
            && !list.contains(toleration)
        {
            list.push(toleration.clone());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerations_are_added_where_the_pod_says_nothing() {
        let keys = |spec: Value| -> Vec<String> {
            let mut pod = json!({"spec": spec});
            default_tolerations(&mut pod);
            items(&pod, "spec.tolerations").iter().map(|t| text(t, "key").to_owned()).collect()
        };
        let both = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
        assert_eq!(keys(json!({})), both);
        assert_eq!(keys(json!({"tolerations": [{"operator": "Exists"}]})), [""]);
        let own =
            json!({"key": both[0], "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5});
        assert_eq!(keys(json!({"tolerations": [own]})), both);
        assert_eq!(
            keys(json!({"tolerations": [{"key": "gpu", "operator": "Exists"}]})),
            ["gpu", both[0], both[1]]
        );
    }

    #[test]
    fn a_runtime_class_brings_overhead_and_places() {
        let class = json!({"overhead": {"podFixed": {"cpu": "250m"}}, "scheduling": {"nodeSelector": {"runtime": "kata"}}});
        let mut pod = json!({"spec": {"runtimeClassName": "kata"}});
        runtime_class(&mut pod, Some(&class)).unwrap();
        assert_eq!(
            pod["spec"],
            json!({"runtimeClassName": "kata", "overhead": {"cpu": "250m"}, "nodeSelector": {"runtime": "kata"}})
        );
        let mut absent = json!({"spec": {"runtimeClassName": "fid-absent"}});
        assert_eq!(
            runtime_class(&mut absent, None).unwrap_err(),
            "pod rejected: RuntimeClass \"fid-absent\" not found"
        );
    }
}
