//! What must hold of any cluster, checked by oracles that know nothing of the plugins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use homeostat_model::selector::Labels;
use homeostat_model::{Entropy, Timestamp};
use homeostat_sdk::Key;
use k8s_openapi::api::core::v1::{Node, Pod};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::groups::{eight, wants};
use super::{both, cpu, cycle, labelled, node, on, pod, profile, zoned};
use crate::framework::{Cycle, CycleState};
use crate::plugins::devices::{Assigned, DEVICES};
use crate::snapshot::{Budget, Snapshot};

/// A node of a random cluster: cores, zone, tainted, labelled.
fn any_node() -> impl Strategy<Value = (u32, u8, bool, bool)> {
    (1..5_u32, 0..3_u8, proptest::bool::weighted(0.2), any::<bool>())
}

/// A pod: cores in tenths, priority, tolerates, selects the label.
fn any_pod() -> impl Strategy<Value = (u32, i32, bool, bool)> {
    (1..20_u32, 0..4_i32, any::<bool>(), proptest::bool::weighted(0.3))
}

fn nodes(all: &[(u32, u8, bool, bool)]) -> Vec<Node> {
    let one = |(i, (cores, zone, tainted, ssd)): (usize, &(u32, u8, bool, bool))| {
        let mut change = json!({"status": {"allocatable": {"cpu": cores.to_string()}},
            "metadata": {"labels": {"topology.kubernetes.io/zone": zone.to_string()}}});
        if *tainted {
            change["spec"]["taints"] = json!([{"key": "k", "effect": "NoSchedule"}]);
        }
        if *ssd {
            change["metadata"]["labels"]["disk"] = "ssd".into();
        }
        node(&format!("n{i}"), change)
    };
    all.iter().enumerate().map(one).collect()
}

fn wish((tenths, priority, tolerates, ssd): &(u32, i32, bool, bool)) -> Value {
    let mut wish = both(cpu(&format!("{}m", tenths * 100)), json!({"spec": {"priority": priority}}));
    if *tolerates {
        wish["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
    }
    if *ssd {
        wish["spec"]["nodeSelector"] = json!({"disk": "ssd"});
    }
    wish
}

fn place(snapshot: &mut Snapshot, name: &str, at: &str, wish: &Value) {
    let placed = snapshot.read(Arc::new(pod(name, on(at, wish.clone()))));
    snapshot.place(placed, false);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_pod_goes_where_it_must_not(all in prop::collection::vec(any_node(), 1..8),
                                     pods in prop::collection::vec(any_pod(), 1..20)) {
        let (mut snapshot, framework) = (Snapshot::new(nodes(&all), []), profile(None));
        let mut used = vec![0; all.len()];
        for (i, p) in pods.iter().enumerate() {
            let info = snapshot.read(Arc::new(pod(&format!("p{i}"), wish(p))));
            let does = |n: usize, used: &[u32]| {
                let (cores, _, tainted, ssd) = all[n];
                used[n] + p.0 <= cores * 10 && (!tainted || p.2) && (!p.3 || ssd)
            };
            match cycle(&snapshot, &framework, &info).node {
                Ok(name) => {
                    let n: usize = name[1..].parse().unwrap();
                    prop_assert!(does(n, &used), "{p:?} on {:?}", all[n]);
                    used[n] += p.0;
                    place(&mut snapshot, &format!("p{i}"), &name, &wish(p));
                }
                Err(why) => prop_assert!((0..all.len()).all(|n| !does(n, &used)), "{why}"),
            }
        }
    }

    #[test]
    fn only_the_less_important_go_and_protected_ones_last(
        all in prop::collection::vec(any_node(), 1..5),
        there in prop::collection::vec((any_pod(), any::<bool>()), 1..16),
        new in any_pod(),
    ) {
        let (mut snapshot, framework) = (Snapshot::new(nodes(&all), []), profile(None));
        let mut used = vec![0; all.len()];
        for (i, (p, protected)) in there.iter().enumerate() {
            let n = i % all.len();
            if used[n] + p.0 <= all[n].0 * 10 {
                used[n] += p.0;
                let mut w = wish(p);
                if *protected {
                    w = both(w, labelled("app", "db"));
                }
                place(&mut snapshot, &format!("p{i}"), &format!("n{n}"), &w);
            }
        }
        let selector = Labels::from_map(&json!({"app": "db"}));
        let budget = Budget { namespace: "default".into(), selector, allowed: 0, disrupted: BTreeSet::new() };
        snapshot.objects.budgets.insert(Key::namespaced("default", "b"), budget);
        let info = snapshot.read(Arc::new(pod("new", wish(&new))));
        let outcome = cycle(&snapshot, &framework, &info);
        let fewest = outcome.candidates.iter().map(|c| c.violations).min();
        let chosen = crate::framework::pick(outcome.candidates);
        prop_assert_eq!(chosen.as_ref().map(|c| c.violations), fewest);
        if let Some(chosen) = chosen {
            for victim in &chosen.victims {
                prop_assert!(victim.priority < new.1);
            }
            let protected = chosen.victims.iter().filter(|v| v.label("app").is_some()).count();
            prop_assert_eq!(chosen.violations, protected as i64);
            // With them gone it fits there.
            for victim in &chosen.victims {
                snapshot.remove(&victim.uid);
            }
            let cx = Cycle { snapshot: &snapshot, waiting: &[], now: Timestamp::UNIX_EPOCH };
            let there = snapshot.node(&chosen.node).unwrap();
            prop_assert!(framework.filter(&cx, &CycleState::default(), &info, there).is_ok());
        }
    }

    #[test]
    fn the_skew_is_never_exceeded(zones in prop::collection::vec(0..4_u8, 1..8), skew in 1..3_i32,
                                  gone in prop::collection::vec(any::<bool>(), 24)) {
        let all = zones.iter().enumerate().map(|(i, z)| zoned(&format!("n{i}"), &z.to_string()));
        let (mut snapshot, framework) = (Snapshot::new(all, []), profile(None));
        let wish = both(labelled("app", "web"), json!({"spec": {"topologySpreadConstraints": [{"maxSkew": skew,
            "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}}}]}}));
        let mut counts: BTreeMap<u8, i32> = zones.iter().map(|z| (*z, 0)).collect();
        let mut places: Vec<(String, u8)> = Vec::new();
        for (i, leaves) in gone.iter().enumerate() {
            // Pods that leave may leave a skew behind, which must not grow.
            if *leaves && let Some((name, zone)) = places.pop() {
                snapshot.remove(&format!("u-{name}"));
                *counts.get_mut(&zone).unwrap() -= 1;
                continue;
            }
            let least = *counts.values().min().unwrap();
            let info = snapshot.read(Arc::new(pod(&format!("p{i}"), wish.clone())));
            if let Ok(node) = cycle(&snapshot, &framework, &info).node {
                let zone = zones[node[1..].parse::<usize>().unwrap()];
                let count = counts.get_mut(&zone).unwrap();
                *count += 1;
                prop_assert!(*count - least <= skew);
                place(&mut snapshot, &format!("p{i}"), &node, &wish);
                places.push((format!("p{i}"), zone));
            }
        }
    }

    #[test]
    fn a_device_is_one_pods(sizes in prop::collection::vec((1..6_usize, any::<bool>()), 1..24)) {
        const WITH: &str = "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, \
            profiles: [{plugins: {multiPoint: {enabled: [{name: Accelerators, weight: 5}]}}}]}";
        let (mut snapshot, framework) = (Snapshot::new([eight("a"), eight("b")], []), profile(Some(WITH)));
        let mut held: BTreeSet<(String, String)> = BTreeSet::new();
        let mut placed: Vec<(String, Vec<(String, String)>)> = Vec::new();
        for (i, (n, leaves)) in sizes.iter().enumerate() {
            if *leaves && !placed.is_empty() {
                let (name, ids) = placed.remove(i % placed.len());
                snapshot.remove(&format!("u-{name}"));
                ids.iter().for_each(|id| assert!(held.remove(id)));
                continue;
            }
            let name = format!("p{i}");
            let info = snapshot.read(Arc::new(pod(&name, wants(*n))));
            let outcome = cycle(&snapshot, &framework, &info);
            let Ok(node) = outcome.node else { continue };
            let text = outcome.state.annotations.get(DEVICES).unwrap();
            let assigned: Assigned = serde_json::from_str(text).unwrap();
            let ids: Vec<_> = assigned["nvidia.com/gpu"].iter().map(|id| (node.clone(), id.clone())).collect();
            prop_assert_eq!(ids.len(), *n);
            for id in &ids {
                prop_assert!(held.insert(id.clone()), "{id:?} twice");
            }
            let with = json!({"metadata": {"annotations": {DEVICES: text}}});
            place(&mut snapshot, &name, &node, &both(wants(*n), with));
            placed.push((name, ids));
        }
    }

    #[test]
    fn the_same_seed_chooses_the_same(all in prop::collection::vec(any_node(), 1..8), new in any_pod(), seed: u64) {
        let choose = || {
            let (mut snapshot, framework) = (Snapshot::new(nodes(&all), Vec::<Pod>::new()), profile(None));
            let info = snapshot.read(Arc::new(pod("p", wish(&new))));
            let cx = Cycle { snapshot: &snapshot, waiting: &[], now: Timestamp::UNIX_EPOCH };
            let (mut state, mut start) = (CycleState::default(), 0);
            let got = framework.schedule(&cx, &mut state, &info, &mut start, &Entropy::seeded(seed)).unwrap();
            got.map(|n| n.name.to_string()).map_err(|d| d.text())
        };
        prop_assert_eq!(choose(), choose());
    }
}
