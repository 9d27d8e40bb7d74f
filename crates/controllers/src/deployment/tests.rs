//! Rollouts in tables, and in a simulated world whose invariants are checked after every step.

use std::sync::Arc;

use homeostat_model::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::rollout::{Sets, Stage};
use super::sets::{self, HISTORY, Limits, REVISION, Set};
use super::status::{self, Conditions};

fn deployment(replicas: i32, extra: Value) -> Deployment {
    let mut spec = json!({"replicas": replicas, "selector": {}, "progressDeadlineSeconds": 600,
        "template": {"spec": {"containers": [{"name": "c", "image": "new"}]}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}});
    for (k, v) in extra.as_object().unwrap() {
        spec[k] = v.clone();
    }
    serde_json::from_value(json!({"metadata": {"name": "web", "generation": 2}, "spec": spec})).unwrap()
}

/// A set as `size/pods/available`; its age is its place, the first one is the oldest.
fn set(name: &str, age: i64, numbers: &str, annotations: Value) -> ReplicaSet {
    let n: Vec<i32> = numbers.split('/').map(|n| n.parse().unwrap()).collect();
    let image = if name == "new" { "new" } else { "old" };
    serde_json::from_value(json!({
        "metadata": {"name": name, "generation": 1, "annotations": annotations,
            "creationTimestamp": Timestamp::from_second(age).unwrap().to_string()},
        "spec": {"replicas": n[0], "selector": {}, "template": {
            "metadata": {"labels": {"pod-template-hash": name}},
            "spec": {"containers": [{"name": "c", "image": image}]}}},
        "status": {"replicas": n[1], "readyReplicas": n[2], "availableReplicas": n[2], "observedGeneration": 1}}))
    .unwrap()
}

/// Sets such as `old=3/3/3 new=1/1/0`.
fn all(text: &str, annotations: &Value) -> Vec<Arc<ReplicaSet>> {
    let one = |(i, word): (usize, &str)| {
        let (name, numbers) = word.split_once('=').unwrap();
        Arc::new(set(name, i64::try_from(i).unwrap(), numbers, annotations.clone()))
    };
    text.split_whitespace().enumerate().map(one).collect()
}

fn view<'a>(deployment: &Deployment, all: &'a [Arc<ReplicaSet>]) -> Sets<'a> {
    let spec = deployment.spec.as_ref().unwrap();
    let (new, old) = sets::split(spec, all);
    let replicas_before = all.iter().map(|s| s.pods()).sum();
    Sets { new, old_pods: old.iter().any(|s| s.pods() > 0), old, limits: Limits::of(spec), replicas_before }
}

fn show(stage: &Stage<'_>) -> String {
    match stage {
        Stage::Create(n) => format!("+{n}"),
        Stage::Rest => String::new(),
        Stage::Scale(sizes) => {
            sizes.iter().map(|(s, n)| format!("{}={n}", s.name())).collect::<Vec<_>>().join(" ")
        }
    }
}

#[track_caller]
fn check(replicas: i32, extra: Value, has: &str, want: &str) {
    let deployment = deployment(replicas, extra);
    let all = all(has, &json!({}));
    assert_eq!(show(&view(&deployment, &all).update()), want, "{replicas}: {has}");
}

fn rolling(surge: Value, unavailable: Value) -> Value {
    json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}})
}

#[test]
fn limits_are_rounded_for_safety() {
    let limits = |replicas, surge: Value, unavailable: Value| {
        let d = deployment(replicas, rolling(surge, unavailable));
        let l = Limits::of(d.spec.as_ref().unwrap());
        (l.most(), l.least_available())
    };
    assert_eq!(limits(10, json!("25%"), json!("25%")), (13, 8));
    assert_eq!(limits(1, json!("25%"), json!("25%")), (2, 1));
    assert_eq!(limits(3, json!(0), json!("10%")), (3, 2));
    assert_eq!(limits(3, json!(0), json!(5)), (3, 0));
    assert_eq!(limits(0, json!("25%"), json!("25%")), (0, 0));
}

#[test]
fn a_first_rollout() {
    check(3, json!({}), "", "+3");
    check(3, json!({}), "new=3/3/0", "");
    check(3, json!({}), "new=3/3/3", "");
    check(0, json!({}), "", "+0");
}

#[test]
fn a_rolling_update() {
    check(10, json!({}), "old=10/10/10", "+3");
    check(10, json!({}), "old=10/10/10 new=3/3/0", "old=8");
    check(10, json!({}), "old=8/8/8 new=3/3/0", "new=5");
    check(10, json!({}), "old=8/8/8 new=5/5/0", "");
    check(10, json!({}), "old=8/8/8 new=5/5/2", "old=6");
    check(10, json!({}), "old=0/0/0 new=10/10/10", "");
    check(3, rolling(json!(0), json!(1)), "old=3/3/3", "+0");
    check(3, rolling(json!(0), json!(1)), "old=3/3/3 new=0/0/0", "old=2");
    check(3, rolling(json!(0), json!(1)), "old=2/2/2 new=0/0/0", "new=1");
    check(3, rolling(json!(1), json!(0)), "old=3/3/3 new=1/1/0", "");
    check(3, rolling(json!(1), json!(0)), "old=3/3/3 new=1/1/1", "old=2");
}

#[test]
fn broken_old_pods_go_first() {
    check(10, json!({}), "a=5/5/0 b=8/8/8", "+0");
    check(10, json!({}), "a=5/5/0 b=8/8/8 new=0/0/0", "a=0");
    check(10, json!({}), "old=10/10/9 new=3/3/0", "old=8");
}

#[test]
fn too_many_new_pods_are_taken_back() {
    check(3, json!({}), "new=5/5/5", "new=3");
}

#[test]
fn recreate_waits_for_the_last_old_pod() {
    let recreate = || json!({"strategy": {"type": "Recreate"}});
    check(3, recreate(), "", "+3");
    check(3, recreate(), "old=3/3/3", "old=0");
    check(3, recreate(), "old=0/1/0", "");
    check(3, recreate(), "old=0/0/0", "+3");
    check(3, recreate(), "old=0/0/0 new=1/1/1", "new=3");
    check(3, recreate(), "old=0/0/0 new=3/3/3", "");
}

#[track_caller]
fn check_scale(replicas: i32, before: i32, has: &str, want: &str) {
    let deployment = deployment(replicas, json!({}));
    let limits = Limits::of(super::tests::deployment(before, json!({})).spec.as_ref().unwrap());
    let annotations: serde_json::Map<String, Value> =
        sets::sizes(&limits).into_iter().map(|(k, v)| (k, v.into())).collect();
    let all = all(has, &annotations.into());
    let sets = view(&deployment, &all);
    assert_eq!(sets.is_scaling(), replicas != before && all.iter().any(|s| s.size() > 0));
    assert_eq!(show(&sets.scale()), want, "{before} -> {replicas}: {has}");
}

#[test]
fn scaling_is_shared_in_proportion() {
    check_scale(5, 3, "new=3/3/3", "new=5");
    check_scale(5, 3, "old=3/3/3 new=0/0/0", "old=5");
    check_scale(0, 3, "new=3/3/3", "new=0");
    // 13 pods at most become 26.
    check_scale(20, 10, "old=8/8/8 new=5/5/5", "old=15 new=10");
    check_scale(5, 10, "old=8/8/8 new=5/5/5", "old=4 new=3");
    check_scale(0, 10, "old=8/8/8 new=5/5/5", "old=0 new=0");
    check_scale(10, 10, "old=2/2/2 new=10/10/10", "old=0");
}

#[test]
fn revisions_follow_the_history() {
    let d = deployment(3, json!({}));
    let limits = Limits::of(d.spec.as_ref().unwrap());
    let changes = |set: Option<&ReplicaSet>, next| json!(sets::annotations(&d, set, next, &limits));
    assert_eq!(
        changes(None, 1),
        json!({"deployment.kubernetes.io/revision": "1", "deployment.kubernetes.io/desired-replicas": "3",
            "deployment.kubernetes.io/max-replicas": "4"})
    );
    let again = set("new", 0, "0/0/0", json!({REVISION: "1"}));
    assert_eq!(changes(Some(&again), 1), json!({}));
    assert_eq!(changes(Some(&again), 3), json!({REVISION: "3", HISTORY: "1"}));
    let twice = set("new", 0, "0/0/0", json!({REVISION: "3", HISTORY: "1"}));
    assert_eq!(changes(Some(&twice), 5), json!({REVISION: "5", HISTORY: "1,3"}));
}

#[test]
fn annotations_are_copied_except_our_own() {
    let mut d = deployment(3, json!({}));
    d.metadata.annotations = Some(
        [("team", "a"), (REVISION, "7"), ("kubectl.kubernetes.io/last-applied-configuration", "{}")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into(),
    );
    let limits = Limits::of(d.spec.as_ref().unwrap());
    let has = set("new", 0, "0/0/0", json!({REVISION: "1"}));
    assert_eq!(json!(sets::annotations(&d, Some(&has), 1, &limits)), json!({"team": "a"}));
}

#[test]
fn the_history_is_limited() {
    let d = deployment(3, json!({}));
    let mut all = all("a=0/0/0 b=0/1/0 c=0/0/0 new=3/3/3", &json!({}));
    for (i, s) in all.iter_mut().enumerate() {
        Arc::make_mut(s).metadata.annotations = Some([(REVISION.to_owned(), i.to_string())].into());
    }
    let names = |limit| {
        let sets = view(&d, &all);
        sets.surplus(limit).iter().map(|s| s.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(10), Vec::<String>::new());
    assert_eq!(names(2), ["a"]);
    assert_eq!(names(0), ["a", "c"]);
}

/// The conditions as `Type=Status/Reason`.
fn conditions(d: &Deployment, has: &str, now: i64) -> (String, Deployment) {
    let now = Timestamp::from_second(now).unwrap();
    let (spec, all) = (d.spec.as_ref().unwrap(), all(has, &json!({})));
    let sets = view(d, &all);
    let mut conditions = Conditions::of(d, now);
    conditions.pause(spec);
    if let Some(new) = sets.new {
        conditions.found(spec, new.name());
    }
    let rollout = spec.paused != Some(true);
    let counts = status::counts(d, &sets, None);
    let conditions = status::conditions(d, spec, &sets, &counts, conditions, rollout, now);
    let status = status::with(counts, &conditions);
    let text = status.conditions.iter().flatten();
    let text = text.map(|c| format!("{}={}/{}", c.type_, c.status, c.reason.as_deref().unwrap()));
    let text = text.collect::<Vec<_>>().join(" ");
    let mut after = d.clone();
    after.status = Some(status);
    (text, after)
}

#[test]
fn conditions_follow_a_rollout() {
    let d = deployment(2, json!({}));
    let (text, d) = conditions(&d, "new=2/2/0", 1000);
    assert_eq!(text, "Progressing=True/ReplicaSetUpdated Available=False/MinimumReplicasUnavailable");
    let (text, d) = conditions(&d, "new=2/2/1", 1100);
    assert_eq!(text, "Progressing=True/ReplicaSetUpdated Available=False/MinimumReplicasUnavailable");
    // No progress for longer than the deadline, counted from the last progress.
    let (text, late) = conditions(&d, "new=2/2/1", 1701);
    assert_eq!(text, "Progressing=False/ProgressDeadlineExceeded Available=False/MinimumReplicasUnavailable");
    let (text, _) = conditions(&late, "new=2/2/2", 1800);
    assert_eq!(text, "Progressing=True/NewReplicaSetAvailable Available=True/MinimumReplicasAvailable");
    let (text, d) = conditions(&d, "new=2/2/2", 1200);
    assert_eq!(text, "Progressing=True/NewReplicaSetAvailable Available=True/MinimumReplicasAvailable");
    // Complete stays complete, whatever becomes of the pods.
    let (text, _) = conditions(&d, "new=2/2/0", 9000);
    assert_eq!(text, "Progressing=True/NewReplicaSetAvailable Available=False/MinimumReplicasUnavailable");
}

#[test]
fn a_pause_stops_the_clock() {
    let d = deployment(2, json!({"paused": true}));
    let (text, mut d) = conditions(&d, "new=2/2/0", 1000);
    assert_eq!(text, "Progressing=Unknown/DeploymentPaused Available=False/MinimumReplicasUnavailable");
    d.spec.as_mut().unwrap().paused = None;
    let (text, d) = conditions(&d, "new=2/2/0", 9000);
    assert_eq!(text, "Progressing=Unknown/DeploymentResumed Available=False/MinimumReplicasUnavailable");
    let (text, _) = conditions(&d, "new=2/2/0", 9599);
    assert_eq!(text, "Progressing=Unknown/DeploymentResumed Available=False/MinimumReplicasUnavailable");
    let (text, _) = conditions(&d, "new=2/2/0", 9601);
    assert_eq!(text, "Progressing=False/ProgressDeadlineExceeded Available=False/MinimumReplicasUnavailable");
}

#[test]
fn without_a_deadline_nothing_is_estimated() {
    let mut d = deployment(2, json!({}));
    d.spec.as_mut().unwrap().progress_deadline_seconds = Some(i32::MAX);
    let (text, _) = conditions(&d, "new=2/2/0", 1000);
    assert_eq!(text, "Available=False/MinimumReplicasUnavailable");
}

#[test]
fn the_counts() {
    let d = deployment(3, json!({}));
    let all = all("old=2/2/1 new=1/1/0", &json!({}));
    assert_eq!(
        json!(status::counts(&d, &view(&d, &all), Some(1))),
        json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 1, "readyReplicas": 1,
            "availableReplicas": 1, "unavailableReplicas": 2, "terminatingReplicas": 0, "collisionCount": 1})
    );
}

/// A ReplicaSet and its controller, which makes all pods at once and deletes unavailable ones first.
#[derive(Clone, Debug)]
struct World {
    replicas: i32,
    strategy: Value,
    /// Template, size, pods, available; the last template is the new one.
    sets: Vec<(u32, i32, i32, i32)>,
    template: u32,
}

impl World {
    fn objects(&self) -> Vec<Arc<ReplicaSet>> {
        let one = |(i, (template, size, pods, available)): (usize, &(u32, i32, i32, i32))| {
            let name = if *template == self.template { "new".to_owned() } else { format!("old{template}") };
            Arc::new(set(&name, i64::try_from(i).unwrap(), &format!("{size}/{pods}/{available}"), json!({})))
        };
        self.sets.iter().enumerate().map(one).collect()
    }

    fn available(&self) -> i32 {
        self.sets.iter().map(|s| s.3).sum()
    }

    fn size(&self) -> i32 {
        self.sets.iter().map(|s| s.1).sum()
    }

    /// One stage of the Deployment controller; whether it changed something.
    fn step(&mut self) -> bool {
        let d = deployment(self.replicas, self.strategy.clone());
        let limits = Limits::of(d.spec.as_ref().unwrap());
        let objects = self.objects();
        let before = self.size();
        let changed = match view(&d, &objects).update() {
            Stage::Rest => false,
            Stage::Create(n) => {
                self.sets.push((self.template, n, 0, 0));
                true
            }
            Stage::Scale(sizes) => {
                for (set, size) in sizes {
                    let at = objects.iter().position(|o| o.name() == set.name()).unwrap();
                    assert_ne!(self.sets[at].1, size, "a scale to the same size");
                    self.sets[at].1 = size;
                }
                true
            }
        };
        assert!(self.size() <= before.max(limits.most()), "more than maxSurge: {self:?}");
        changed
    }

    /// The ReplicaSet controller catches up with one set, and a pod of it may become available.
    fn advance(&mut self, at: usize, ready: bool) {
        let n = self.sets.len();
        if n == 0 {
            return;
        }
        let (_, size, pods, available) = &mut self.sets[at % n];
        *pods = *size;
        *available = (*available).min(*size);
        if ready && available < pods {
            *available += 1;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_rollout_keeps_its_limits_and_converges(
        replicas in 1..12i32,
        surge in 0..4i32,
        unavailable in 0..4i32,
        steps in proptest::collection::vec((0..4usize, any::<bool>(), 0..12u8), 0..80),
    ) {
        let strategy = rolling(json!(surge), json!(unavailable));
        let mut world = World { replicas, strategy, sets: vec![(0, replicas, replicas, replicas)], template: 0 };
        let limits = Limits::of(deployment(replicas, world.strategy.clone()).spec.as_ref().unwrap());
        let advance = |world: &mut World, at, ready| {
            world.step();
            world.advance(at, ready);
            assert!(world.available() >= limits.least_available(), "less than minAvailable: {world:?}");
        };
        for (at, ready, update) in steps {
            if update == 0 {
                world.template += 1;
            }
            advance(&mut world, at, ready);
        }
        for i in 0..200 {
            advance(&mut world, i, true);
        }
        prop_assert!(!world.step(), "not settled: {world:?}");
        for (template, size, _, _) in &world.sets {
            prop_assert_eq!(*size, if *template == world.template { replicas } else { 0 });
        }
    }
}
