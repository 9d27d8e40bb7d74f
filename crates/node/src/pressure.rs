//! What a kubelet does when its node is short of memory, disk space or processes: it takes no pods that could do
//! without it, and evicts those that it has, one after another.
//!
//! A simulated node is short of something as long as a Behavior sets the condition; evicting doesn't end it. Choosing is
//! pure. Source: kubelet's `eviction` package.

use std::cmp::Reverse;

use homeostat_model::Timestamp;
use homeostat_model::quantity::{Format, Quantity};
use homeostat_sdk::{Cache, Key, placement};
use k8s_openapi::api::core::v1::{Pod, Taint};

use crate::behavior::nodes::NodeState;
use crate::fleet::Machine;
use crate::machines::requests;
use crate::usage;
use crate::world::World;

/// Why pods are evicted, and not taken.
pub(crate) const REASON: &str = "Evicted";
/// From this priority on a pod is critical (`system-cluster-critical`).
const CRITICAL: i32 = 2_000_000_000;
/// Conditions and what the node lacks then, in the order in which it is reclaimed.
const PRESSURES: [(&str, &str); 3] =
    [("MemoryPressure", MEMORY), ("DiskPressure", "ephemeral-storage"), ("PIDPressure", "pids")];
const MEMORY: &str = "memory";

fn pressures(state: &NodeState) -> impl Iterator<Item = (&'static str, &'static str)> {
    let is = |kind: &str| state.conditions.iter().any(|c| c.kind == kind && c.status == "True");
    PRESSURES.into_iter().filter(move |(kind, _)| is(kind))
}

fn is_critical(pod: &Pod) -> bool {
    pod.spec.as_ref().and_then(|s| s.priority).is_some_and(|p| p >= CRITICAL)
}

/// Why a node doesn't take a pod for what it is short of; `None` where it does.
pub(crate) fn refuse(pod: &Pod, state: &NodeState) -> Option<String> {
    let short: Vec<&str> = pressures(state).map(|(kind, _)| kind).collect();
    if short.is_empty() || is_critical(pod) {
        return None;
    }
    if short == ["MemoryPressure"] {
        let best_effort = pod.status.as_ref().and_then(|s| s.qos_class.as_deref()) == Some("BestEffort");
        let taint = Taint {
            key: "node.kubernetes.io/memory-pressure".to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Taint::default()
        };
        let tolerations = pod.spec.iter().flat_map(|s| s.tolerations.iter().flatten());
        if !best_effort || tolerations.into_iter().any(|t| placement::tolerates(t, &taint)) {
            return None;
        }
    }
    Some(format!("The node had condition: [{}]. ", short.join(" ")))
}

/// A pod that could be evicted.
struct Candidate {
    key: Key,
    priority: i32,
    /// Its memory in bytes: used, and requested.
    used: i128,
    requested: i128,
    /// What the containers that use more than they request would be told of.
    excess: String,
}

/// Who goes first: who uses more memory than it requests, then the less important, then by how much more it uses. Of
/// disk space and processes nothing is known, so that only importance counts.
fn first<'a>(resource: &str, candidates: &'a [Candidate]) -> Option<&'a Candidate> {
    let rank = |c: &&Candidate| match resource {
        MEMORY => (c.used <= c.requested, c.priority, Reverse(c.used - c.requested)),
        _ => (false, c.priority, Reverse(0)),
    };
    candidates.iter().min_by_key(rank)
}

fn candidate(world: &World, key: Key, pod: &Pod, now: Timestamp) -> Candidate {
    let spec = pod.spec.as_ref();
    let (mut used, mut excess) = (0, String::new());
    for (name, (_, memory)) in usage::containers(world, pod, now) {
        used += memory;
        let container = spec.into_iter().flat_map(|s| &s.containers).find(|c| c.name == name);
        let asked = container.and_then(|c| c.resources.as_ref()?.requests.as_ref()?.get(MEMORY));
        let asked = asked.and_then(|q| Quantity::parse(&q.0).ok());
        let asked = asked.unwrap_or_else(|| Quantity::integer(0, Format::DecimalSi));
        if memory > asked.value() {
            let memory = Quantity::integer(memory, Format::BinarySi);
            excess += &format!(
                "Container {name} was using {memory}, request is {asked}, has larger consumption of {MEMORY}. "
            );
        }
    }
    let requested = requests(pod).get(MEMORY).copied().unwrap_or_default() / 1000;
    Candidate { key, priority: spec.and_then(|s| s.priority).unwrap_or_default(), used, requested, excess }
}

/// Where a machine is short of something and no eviction is under way, one begins. What the machine is short of, if so.
pub(crate) fn relieve(
    world: &World,
    pods: &Cache<Pod>,
    machine: Machine,
    state: &NodeState,
    now: Timestamp,
) -> Option<&'static str> {
    let (_, resource) = pressures(state).next()?;
    let mut keys = Vec::new();
    for (key, placed) in world.inventory().on(machine) {
        if placed.sandbox.eviction.is_some() {
            return None;
        }
        if placed.sandbox.teardown.is_none() {
            keys.push(key.clone());
        }
    }
    let pods = keys.into_iter().filter_map(|key| pods.get(&key).map(|pod| (key, pod)));
    let evictable = pods.filter(|(_, p)| !is_critical(p) && p.metadata.deletion_timestamp.is_none());
    let candidates: Vec<Candidate> = evictable.map(|(key, pod)| candidate(world, key, &pod, now)).collect();
    let victim = first(resource, &candidates)?;
    let excess = if resource == MEMORY { &*victim.excess } else { "" };
    let message = format!("The node was low on resource: {resource}. {excess}");
    if let Some(placed) = world.inventory().pod(&victim.key) {
        placed.sandbox.eviction = Some(message.into());
        placed.settled = None;
    }
    world.wake(&victim.key);
    Some(resource)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::behavior::Condition;

    fn short_of(kinds: &[&str]) -> NodeState {
        let condition =
            |k: &&str| Condition { kind: (*k).to_owned(), status: "True".to_owned(), ..Condition::default() };
        NodeState { conditions: kinds.iter().map(condition).collect(), ..NodeState::default() }
    }

    #[test]
    fn who_can_do_without_it_is_not_taken() {
        let check = |kinds: &[&str], pod: Value, want: Option<&str>| {
            let mut object = json!({"spec": {"containers": []}});
            json_patch::merge(&mut object, &pod);
            let pod: Pod = serde_json::from_value(object).unwrap();
            assert_eq!(refuse(&pod, &short_of(kinds)).as_deref(), want, "{kinds:?} {pod:?}");
        };
        let best = || json!({"status": {"qosClass": "BestEffort"}});
        let memory = "The node had condition: [MemoryPressure]. ";
        check(&[], best(), None);
        check(&["GPUPressure"], best(), None);
        check(&["MemoryPressure"], best(), Some(memory));
        check(&["MemoryPressure"], json!({"status": {"qosClass": "Burstable"}}), None);
        let mut tolerant = best();
        tolerant["spec"] = json!({"tolerations": [{"operator": "Exists"}]});
        check(&["MemoryPressure"], tolerant.clone(), None);
        check(&["DiskPressure"], tolerant, Some("The node had condition: [DiskPressure]. "));
        let both = "The node had condition: [MemoryPressure PIDPressure]. ";
        check(&["PIDPressure", "MemoryPressure"], json!({"status": {"qosClass": "Guaranteed"}}), Some(both));
        check(&["DiskPressure"], json!({"spec": {"priority": CRITICAL}}), None);
    }

    /// Who goes, one after the other, of `(name, priority, used, requested)`.
    #[track_caller]
    fn check(resource: &str, pods: &[(&str, i32, i128, i128)], want: &str) {
        let candidate = |(name, priority, used, requested): &(&str, i32, i128, i128)| Candidate {
            key: Key::namespaced("default", *name),
            priority: *priority,
            used: *used,
            requested: *requested,
            excess: String::new(),
        };
        let mut left: Vec<Candidate> = pods.iter().map(candidate).collect();
        let mut order = Vec::new();
        while let Some(key) = first(resource, &left).map(|c| c.key.clone()) {
            order.push(key.name().to_owned());
            left.retain(|c| c.key != key);
        }
        assert_eq!(order.join(" "), want);
    }

    #[test]
    fn who_uses_more_than_it_asked_for_goes_first() {
        let pods = [("modest", -5, 1, 4), ("vip", 9, 90, 1), ("greedy", 0, 50, 1), ("over", 0, 9, 1)];
        check(MEMORY, &pods, "greedy over vip modest");
        check("pids", &pods, "modest greedy over vip");
    }
}
