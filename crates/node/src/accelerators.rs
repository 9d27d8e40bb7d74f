//! The devices of simulated machines: what each has of an extended resource, how they lie to each other, and which of
//! them work.
//!
//! A machine has two NUMA nodes; a resource's devices are spread over both, and those on one are linked. That is what a
//! device plugin would find out, so it is told as one tells the scheduler: in the node's annotation, with the statuses
//! that the device plugin's health changes. Of devices that are unhealthy only a number is known; it is the last ones.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::behavior::nodes::NodeState;

/// The annotation that the scheduler's plugin `Accelerators` reads; its shape is described in `docs/scheduler.md`.
pub(crate) const TOPOLOGY: &str = "accelerators.homeostat.dev/topology";
/// Of more devices than this nobody wants to read one by one: they are only a number.
const MOST: i64 = 256;
const NUMA_NODES: i64 = 2;

/// Whether devices stand behind a resource: it has a vendor's name.
fn has_devices(resource: &str) -> bool {
    resource.split_once('/').is_some_and(|(domain, _)| !domain.ends_with("kubernetes.io"))
}

/// The annotation of a machine with this capacity; `None` for one without devices.
pub(crate) fn topology(capacity: &BTreeMap<String, String>, state: &NodeState) -> Option<String> {
    let mut all = BTreeMap::new();
    for (resource, count) in capacity.iter().filter(|(resource, _)| has_devices(resource)) {
        let count = count.parse().ok().filter(|n| (1..=MOST).contains(n));
        let Some(count) = count else { continue };
        let well = count - state.unhealthy.get(resource).copied().unwrap_or(0).clamp(0, count);
        let short = resource.rsplit('/').next().unwrap_or_default();
        let each = (count + NUMA_NODES - 1) / NUMA_NODES;
        let device = |i: i64| {
            let numa = i / each;
            let mut device =
                json!({"id": format!("{short}-{i}"), "numa": numa, "link": format!("{short}-link-{numa}")});
            if i >= well {
                device["healthy"] = false.into();
            }
            device
        };
        all.insert(resource, (0..count).map(device).collect::<Vec<Value>>());
    }
    (!all.is_empty()).then(|| json!(all).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Devices as `id numa link`, with `!` for one that doesn't work.
    #[track_caller]
    fn check(capacity: &[(&str, &str)], unhealthy: i64, want: &[(&str, &str)]) {
        let capacity = capacity.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let unhealthy = [("nvidia.com/gpu".to_owned(), unhealthy)].into();
        let text = topology(&capacity, &NodeState { unhealthy, ..NodeState::default() });
        let text = text.unwrap_or_else(|| "{}".to_owned());
        let told: BTreeMap<String, Vec<Value>> = serde_json::from_str(&text).unwrap();
        let show = |d: &Value| {
            let sick = if d["healthy"] == false { "!" } else { "" };
            let text = |field: &str| d[field].as_str().unwrap().to_owned();
            format!("{sick}{} {} {}", text("id"), d["numa"], text("link"))
        };
        let got: Vec<(String, String)> = told
            .iter()
            .map(|(r, list)| (r.clone(), list.iter().map(show).collect::<Vec<_>>().join(", ")))
            .collect();
        let got: Vec<(&str, &str)> = got.iter().map(|(r, d)| (r.as_str(), d.as_str())).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn devices_are_spread_over_numa_nodes_and_the_last_turn_sick() {
        let gpu = "nvidia.com/gpu";
        let four = "gpu-0 0 gpu-link-0, gpu-1 0 gpu-link-0, gpu-2 1 gpu-link-1, gpu-3 1 gpu-link-1";
        check(&[("cpu", "4"), (gpu, "4")], 0, &[(gpu, four)]);
        let three = "gpu-0 0 gpu-link-0, !gpu-1 0 gpu-link-0, !gpu-2 1 gpu-link-1";
        check(&[(gpu, "3"), ("a.dev/nic", "1")], 2, &[("a.dev/nic", "nic-0 0 nic-link-0"), (gpu, three)]);
        check(&[(gpu, "1")], 9, &[(gpu, "!gpu-0 0 gpu-link-0")]);
        check(&[("cpu", "4"), ("hugepages-2Mi", "2"), (gpu, "0"), ("a.dev/dust", "1M")], 0, &[]);
    }
}
