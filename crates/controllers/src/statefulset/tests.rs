//! The planner in tables, and in a simulated world of pods that come, fail and go at random.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use homeostat_model::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::identity;
use super::plan::{Action, Plan, State, Which, plan};

const NOW: i64 = 1_000_000;

/// A set named `web`; `extra` is merged into its spec.
fn set(replicas: i32, extra: Value) -> StatefulSet {
    let mut spec = json!({"replicas": replicas, "serviceName": "web", "selector": {}, "template": {},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}});
    for (k, v) in extra.as_object().unwrap() {
        spec[k] = v.clone();
    }
    serde_json::from_value(
        json!({"metadata": {"name": "web", "namespace": "d", "generation": 1}, "spec": spec}),
    )
    .unwrap()
}

/// A pod in short: its ordinal, its revision (`a` or `b`), then `.` pending, `+` ready, `~` running but not ready,
/// `!` running and never ready, `x` failed, and `-` after it for one on its way out. `0a+ 1b.-`
fn pods(text: &str) -> Vec<Arc<Pod>> {
    let one = |word: &str| {
        let at = word.find(|c: char| !c.is_ascii_digit()).unwrap();
        let (ordinal, rest) = word.split_at(at);
        let (revision, state) = rest.split_at(1);
        let phase = match &state[..1] {
            "." => "Pending",
            "x" => "Failed",
            _ => "Running",
        };
        let ready = if state.starts_with('+') { "True" } else { "False" };
        let mut pod = json!({
            "metadata": {"name": format!("web-{ordinal}"), "namespace": "d", "labels": {
                "statefulset.kubernetes.io/pod-name": format!("web-{ordinal}"),
                "apps.kubernetes.io/pod-index": ordinal, "controller-revision-hash": revision}},
            "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready,
                "lastTransitionTime": Timestamp::from_second(NOW - 5).unwrap().to_string()}]}});
        if state.ends_with('-') {
            pod["metadata"]["deletionTimestamp"] = Timestamp::from_second(NOW).unwrap().to_string().into();
        }
        Arc::new(serde_json::from_value(pod).unwrap())
    };
    text.split_whitespace().map(one).collect()
}

fn planned(set: &StatefulSet, pods: &[Arc<Pod>], current: &str, update: &str) -> Plan {
    let state = State {
        set,
        spec: set.spec.as_ref().unwrap(),
        pods,
        current,
        update,
        collisions: 0,
        stale: &BTreeSet::new(),
        now: Timestamp::from_second(NOW).unwrap(),
    };
    plan(&state)
}

fn show(actions: &[Action]) -> String {
    let mut out = String::new();
    for action in actions {
        match action {
            Action::Create(n, Which::Current) => write!(out, "+{n}a ").unwrap(),
            Action::Create(n, Which::Update) => write!(out, "+{n}b ").unwrap(),
            Action::Claims(n) => write!(out, "c{n} ").unwrap(),
            Action::Mend(p) => write!(out, "m{} ", identity::parent_and_ordinal(p).unwrap().1).unwrap(),
            Action::Delete(p) => write!(out, "-{} ", identity::parent_and_ordinal(p).unwrap().1).unwrap(),
        }
    }
    out.trim_end().to_owned()
}

/// The set goes from revision `a` to `b`.
#[track_caller]
fn check(replicas: i32, extra: Value, has: &str, want: &str) {
    let set = set(replicas, extra);
    assert_eq!(show(&planned(&set, &pods(has), "a", "b").actions), want, "{replicas} {has}");
}

#[test]
fn scales_up_in_order() {
    check(3, json!({}), "", "+0b");
    check(3, json!({}), "0b.", "");
    check(3, json!({}), "0b~", "");
    check(3, json!({}), "0b+", "+1b");
    check(3, json!({}), "0b+ 1b+", "+2b");
    check(3, json!({}), "0b+ 1b+ 2b+", "");
    check(3, json!({}), "0b+ 2b+", "+1b");
    check(3, json!({}), "0b+- 1b+", "");
    check(2, json!({"ordinals": {"start": 5}}), "5b+", "+6b");
    check(2, json!({"ordinals": {"start": 5}}), "0b+ 5b+ 6b+", "-0");
    check(0, json!({}), "", "");
}

#[test]
fn waits_until_pods_are_available() {
    let min = json!({"minReadySeconds": 10});
    check(3, min.clone(), "0b+", "");
    let plan = planned(&set(3, min), &pods("0b+"), "b", "b");
    assert_eq!(plan.again.unwrap().as_secs(), 5);
    assert_eq!((plan.status.ready_replicas, plan.status.available_replicas), (Some(1), Some(0)));
    check(3, json!({"minReadySeconds": 5}), "0b+", "+1b");
}

#[test]
fn scales_down_from_the_last() {
    check(1, json!({}), "0b+ 1b+ 2b+", "-2");
    check(1, json!({}), "0b+ 1b+ 2b+-", "");
    check(1, json!({}), "0b~ 1b+ 2b+", "");
    check(1, json!({}), "0b+ 1b+ 2b~", "-2");
    // The first unhealthy one of all may go; others wait for it.
    check(1, json!({}), "0b+ 1b~ 2b~", "");
    check(0, json!({}), "0b+ 1b+", "-1");
}

#[test]
fn replaces_what_ended() {
    check(3, json!({}), "0b+ 1bx 2b+", "-1");
    check(3, json!({}), "0b+ 1bx- 2b+", "");
}

#[test]
fn parallel_sets_do_all_at_once() {
    let parallel = json!({"podManagementPolicy": "Parallel"});
    check(3, parallel.clone(), "", "+0b +1b +2b");
    check(3, parallel.clone(), "0b. 1bx", "-1 +2b");
    check(1, parallel.clone(), "0b~ 1b. 2b+ 3b+-", "-2 -1");
    check(3, parallel, "0a+ 1a+ 2a+", "-2");
}

#[test]
fn updates_from_the_last() {
    check(3, json!({}), "0a+ 1a+ 2a+", "-2");
    check(3, json!({}), "0a+ 1a+ 2a+-", "");
    check(3, json!({}), "0a+ 1a+", "+2b");
    check(3, json!({}), "0a+ 1a+ 2b~", "");
    check(3, json!({}), "0a+ 1a+ 2b+", "-1");
    check(3, json!({}), "0a+ 1b+ 2b+", "-0");
    check(3, json!({"updateStrategy": {"type": "OnDelete"}}), "0a+ 1a+ 2a+", "");
    check(3, json!({"updateStrategy": {"type": "OnDelete"}}), "0a+ 1a+", "+2b");
}

#[test]
fn a_broken_revision_is_left_for_another() {
    let parallel = || json!({"podManagementPolicy": "Parallel"});
    check(3, parallel(), "0a! 1a! 2a!", "-2");
    check(3, parallel(), "0a. 1a. 2a.", "-2");
    check(3, parallel(), "0a! 1a! 2a!-", "");
    check(3, parallel(), "0a! 1a! 2b.", "");
    check(3, parallel(), "0a! 1a! 2b+", "-1");
    check(3, parallel(), "0a! 1a! 2ax", "-2");
    check(3, parallel(), "0b! 1a+ 2a+", "-2");
    let two = || {
        json!({"podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}})
    };
    check(4, two(), "0a! 1a! 2a! 3a!", "-3 -2");
    check(4, two(), "0a! 1a! 2b. 3b+", "-1");
    check(4, two(), "0a! 1a! 2b. 3b.", "");
    check(4, two(), "0b! 1a+ 2a+ 3b+", "-2");
    // The broken ones first, so that no more are missing than may be.
    check(4, two(), "0a! 1a! 2a+ 3a+", "-1 -0");
    check(4, two(), "0a! 1a+ 2a+ 3a+", "-0 -3");
    check(4, two(), "0b+ 1a+ 2a+ 3a+", "-3 -2");
    // An ordered set stops at the first that isn't ready: people have to delete it.
    check(3, json!({}), "0a! 1a!", "");
}

#[test]
fn a_partition_keeps_the_first_pods() {
    let partition =
        |n: i32| json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": n}}});
    check(3, partition(2), "0a+ 1a+ 2a+", "-2");
    check(3, partition(2), "0a+ 1a+ 2b+", "");
    check(3, partition(2), "0a+ 2b+", "+1a");
    check(3, partition(5), "0a+ 1a+ 2a+", "");
}

#[test]
fn several_may_be_unavailable() {
    let two = json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 2}}});
    check(4, two.clone(), "0a+ 1a+ 2a+ 3a+", "-3 -2");
    let half = json!({"podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "50%"}}});
    check(5, half, "0a+ 1a+ 2a+ 3a+ 4b~", "-3");
}

#[test]
fn labels_are_mended() {
    let mut all = pods("0b+");
    Arc::make_mut(&mut all[0]).metadata.labels.as_mut().unwrap().remove("apps.kubernetes.io/pod-index");
    assert_eq!(show(&planned(&set(1, json!({})), &all, "b", "b").actions), "m0");
}

#[test]
fn claims_are_completed_for_pending_pods() {
    let claims = json!({"volumeClaimTemplates": [{"metadata": {"name": "data"}}]});
    check(1, claims, "0b.", "c0");
}

#[test]
fn a_set_that_is_deleted_only_tells() {
    let mut set = set(3, json!({}));
    set.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH));
    let plan = planned(&set, &pods("0a+"), "a", "b");
    assert!(plan.actions.is_empty());
    assert_eq!(plan.status.replicas, 1);
}

#[test]
fn the_status_counts_and_ends_an_update() {
    let status = |has: &str| json!(planned(&set(2, json!({})), &pods(has), "a", "b").status);
    assert_eq!(
        status("0a+ 1b~"),
        json!({"replicas": 2, "readyReplicas": 1, "availableReplicas": 1, "currentReplicas": 1, "updatedReplicas": 1,
            "currentRevision": "a", "updateRevision": "b", "observedGeneration": 1, "collisionCount": 0})
    );
    assert_eq!(
        status("0b+ 1b+"),
        json!({"replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "currentReplicas": 2, "updatedReplicas": 2,
            "currentRevision": "b", "updateRevision": "b", "observedGeneration": 1, "collisionCount": 0})
    );
    assert_eq!(
        status(""),
        json!({"replicas": 0, "availableReplicas": 0, "currentRevision": "a", "updateRevision": "b",
            "observedGeneration": 1, "collisionCount": 0})
    );
}

#[test]
fn a_pod_knows_its_place() {
    let set = set(1, json!({"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}));
    let template: PodTemplateSpec = serde_json::from_value(json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c"}], "volumes": [
            {"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]}}))
    .unwrap();
    let pod = identity::pod(&set, set.spec.as_ref().unwrap(), 4, &template, "web-abc");
    assert!(identity::matches(&set, set.spec.as_ref().unwrap(), &pod));
    assert_eq!(
        json!(pod),
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "web-4", "generateName": "web-", "namespace": "d", "labels": {"app": "web",
                "statefulset.kubernetes.io/pod-name": "web-4", "apps.kubernetes.io/pod-index": "4",
                "controller-revision-hash": "web-abc"}},
            "spec": {"containers": [{"name": "c"}], "hostname": "web-4", "subdomain": "web", "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-4"}},
                {"name": "tmp", "emptyDir": {}}]}})
    );
}

#[test]
fn ordinals_are_read_from_names() {
    let check = |name: &str, want: Option<(&str, i32)>| {
        let mut pod = Pod::default();
        pod.metadata.name = Some(name.into());
        assert_eq!(identity::parent_and_ordinal(&pod), want, "{name}");
    };
    check("web-0", Some(("web", 0)));
    check("a-b-12", Some(("a-b", 12)));
    check("web", None);
    check("web-", None);
    check("web-x1", None);
    check("web-99999999999", None);
}

/// What a disturbance does to the world between two plans.
#[derive(Clone, Debug)]
enum Disturb {
    Nothing,
    Scale(i32),
    Update,
    /// The template proves to be broken: its pods never get ready.
    Break,
    Fail(usize),
    Unready(usize),
    Vanish(usize),
}

fn disturbances() -> impl Strategy<Value = Vec<Disturb>> {
    let one = prop_oneof![
        4 => Just(Disturb::Nothing),
        1 => (0..6i32).prop_map(Disturb::Scale),
        1 => Just(Disturb::Update),
        1 => Just(Disturb::Break),
        1 => (0..6usize).prop_map(Disturb::Fail),
        1 => (0..6usize).prop_map(Disturb::Unready),
        1 => (0..6usize).prop_map(Disturb::Vanish),
    ];
    proptest::collection::vec(one, 0..30)
}

/// Pods as words of [`pods`], by ordinal.
struct World {
    replicas: i32,
    pods: BTreeMap<i32, (char, &'static str)>,
    revision: char,
    broken: bool,
}

impl World {
    /// Another template, which works.
    fn update(&mut self) {
        self.revision = if self.revision == 'z' { 'A' } else { char::from(self.revision as u8 + 1) };
        self.broken = false;
    }

    fn words(&self) -> String {
        self.pods.iter().map(|(n, (revision, state))| format!("{n}{revision}{state} ")).collect()
    }

    fn step(&mut self, ordered: bool) -> usize {
        let policy = if ordered { "OrderedReady" } else { "Parallel" };
        let set = set(self.replicas, json!({"podManagementPolicy": policy}));
        let update = self.revision.to_string();
        let before = pods(&self.words());
        let plan = planned(&set, &before, &update, &update);
        if ordered {
            assert!(plan.actions.len() <= 1, "one at a time: {}", show(&plan.actions));
        }
        for action in &plan.actions {
            match action {
                Action::Create(n, _) => {
                    assert!(!self.pods.contains_key(n), "{n} is there already");
                    if ordered {
                        let healthy = |m: i32| self.pods.get(&m).is_some_and(|p| p.1 == "+");
                        assert!((0..*n).all(healthy), "{n} made before those before it: {}", self.words());
                    }
                    self.pods.insert(*n, (self.revision, "."));
                }
                Action::Delete(pod) => {
                    let (_, n) = identity::parent_and_ordinal(pod).unwrap();
                    if ordered && n >= self.replicas {
                        assert_eq!(self.pods.keys().next_back(), Some(&n), "not the last: {}", self.words());
                    }
                    if n < self.replicas && self.pods[&n].1 != "x" {
                        let above = || self.pods.range(n + 1..self.replicas);
                        let done = above().all(|(_, p)| *p == (self.revision, "+"));
                        assert!(done, "{n} is updated before those above it: {}", self.words());
                        assert_ne!(self.pods[&n].0, self.revision, "{n} needs no update: {}", self.words());
                    }
                    let place = self.pods.get_mut(&n).unwrap();
                    place.1 = if place.1 == "x" { "x-" } else { "+-" };
                }
                Action::Claims(_) | Action::Mend(_) => panic!("nothing to mend here"),
            }
        }
        plan.actions.len()
    }

    /// Pods go on: the pending start, the terminating go, the unready recover.
    fn advance(&mut self) {
        self.pods.retain(|_, p| !p.1.ends_with('-'));
        for pod in self.pods.values_mut() {
            pod.1 = match pod.1 {
                "." => "~",
                "~" if self.broken && pod.0 == self.revision => "!",
                "~" => "+",
                other => other,
            };
        }
    }

    fn disturb(&mut self, what: &Disturb) {
        let nth = |pods: &mut BTreeMap<i32, (char, &'static str)>, n: usize, state| {
            if let Some(pod) = pods.values_mut().nth(n).filter(|p| !p.1.ends_with('-')) {
                pod.1 = state;
            }
        };
        match what {
            Disturb::Nothing => {}
            Disturb::Scale(n) => self.replicas = *n,
            Disturb::Update => self.update(),
            Disturb::Break => {
                self.broken = true;
                for pod in self.pods.values_mut().filter(|p| p.0 == self.revision && p.1 == "+") {
                    pod.1 = "!";
                }
            }
            Disturb::Fail(n) => nth(&mut self.pods, *n, "x"),
            Disturb::Unready(n) => nth(&mut self.pods, *n, "~"),
            Disturb::Vanish(n) => {
                if let Some(key) = self.pods.keys().nth(*n).copied() {
                    self.pods.remove(&key);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn keeps_its_order_and_converges(disturbances in disturbances(), ordered in any::<bool>()) {
        let mut world = World { replicas: 3, pods: BTreeMap::new(), revision: 'a', broken: false };
        for disturbance in &disturbances {
            // An ordered set does not leave a broken pod by itself.
            if ordered && matches!(disturbance, Disturb::Break) {
                continue;
            }
            world.step(ordered);
            world.disturb(disturbance);
            world.step(ordered);
            world.advance();
        }
        if world.broken {
            world.update();
        }
        let mut quiet = 0;
        for _ in 0..80 {
            quiet = if world.step(ordered) == 0 { quiet + 1 } else { 0 };
            world.advance();
        }
        prop_assert!(quiet > 10, "still busy: {}", world.words());
        let want: Vec<i32> = (0..world.replicas).collect();
        prop_assert_eq!(world.pods.keys().copied().collect::<Vec<_>>(), want);
        prop_assert!(world.pods.values().all(|p| *p == (world.revision, "+")), "{}", world.words());
    }
}
