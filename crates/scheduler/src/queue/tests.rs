//! The queue in a clock of its own.

use std::sync::Arc;
use std::time::Duration;

use homeostat_model::Entropy;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::config::{Configuration, Registry};

struct World {
    queue: Queue,
    snapshot: Snapshot,
    framework: Arc<Framework>,
    now: Instant,
}

fn pod(name: &str, change: Value) -> Arc<Pod> {
    let mut pod = json!({"metadata": {"name": name, "namespace": "d", "uid": name}, "spec": {"containers": [{"name": "c",
        "resources": {"requests": {"cpu": "1"}}}]}});
    for (k, v) in change.as_object().unwrap() {
        pod["spec"][k] = v.clone();
    }
    Arc::new(serde_json::from_value(pod).unwrap())
}

impl World {
    fn new() -> Self {
        let all = Configuration::default().frameworks(&Registry::default(), &Entropy::seeded(1)).unwrap();
        Self {
            queue: Queue::new(Duration::from_secs(1), Duration::from_secs(10)),
            snapshot: Snapshot::default(),
            framework: all.into_iter().next().unwrap(),
            now: Instant::now(),
        }
    }

    fn put(&mut self, name: &str, change: Value) {
        let info = self.snapshot.read(pod(name, change));
        self.queue.put(info, &self.framework, &self.snapshot, self.now);
    }

    fn pop(&mut self) -> Option<String> {
        self.queue.pop().map(|(p, _)| p.key.name().to_owned())
    }

    fn refuse(&mut self, name: &str, by: &'static str) {
        let failure = Failure { refused_by: [by].into(), ..Failure::default() };
        self.queue.failed(&name.into(), failure, &self.snapshot, self.now);
    }

    fn breaks(&mut self, name: &str) {
        self.queue.failed(
            &name.into(),
            Failure { error: true, ..Failure::default() },
            &self.snapshot,
            self.now,
        );
    }

    fn leaves(&mut self, name: &str) -> Event {
        Event::AssignedPodDeleted(self.snapshot.read(pod(name, json!({"nodeName": "n"}))))
    }

    fn event(&mut self, event: Event) {
        self.queue.event(event, &self.snapshot, self.now);
    }

    fn pass(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.queue.flush(self.now);
    }

    /// Active, backing off, waiting, gated, being tried.
    #[track_caller]
    fn check(&self, want: [usize; 5]) {
        let d = self.queue.depth();
        assert_eq!([d.active, d.backoff, d.unschedulable, d.gated, d.trying], want);
    }
}

#[test]
fn the_important_go_first_then_the_older() {
    let mut w = World::new();
    for (name, priority) in [("a", 0), ("b", 5), ("c", 0), ("d", 5)] {
        w.put(name, json!({"priority": priority}));
    }
    let order: Vec<String> = std::iter::from_fn(|| w.pop()).collect();
    assert_eq!(order, ["b", "d", "a", "c"]);
    w.check([0, 0, 0, 0, 4]);
    w.queue.remove(&"a".into());
    w.check([0, 0, 0, 0, 3]);
}

#[test]
fn a_refused_pod_stands_behind_those_that_came_meanwhile() {
    let mut w = World::new();
    w.put("a", json!({}));
    w.put("b", json!({"priority": 5}));
    assert_eq!((w.pop().as_deref(), w.pop().as_deref()), (Some("b"), Some("a")));
    w.put("c", json!({}));
    w.put("d", json!({"priority": 5}));
    for name in ["a", "b"] {
        w.refuse(name, "NodeResourcesFit");
    }
    w.pass(2);
    let left = w.leaves("x");
    w.event(left);
    let order: Vec<String> = std::iter::from_fn(|| w.pop()).collect();
    assert_eq!(order, ["d", "b", "c", "a"]);
}

#[test]
fn a_refused_pod_waits_for_what_helps() {
    let mut w = World::new();
    w.put("a", json!({}));
    w.pop();
    w.refuse("a", "NodeResourcesFit");
    w.check([0, 0, 1, 0, 0]);
    w.event(Event::Volume);
    w.check([0, 0, 1, 0, 0]);
    // Within its backoff it backs off, after it it is active.
    let left = w.leaves("x");
    w.event(left.clone());
    w.check([0, 1, 0, 0, 0]);
    w.pass(1);
    w.check([1, 0, 0, 0, 0]);
    w.pop();
    w.refuse("a", "NodeResourcesFit");
    w.pass(3);
    w.event(left);
    w.check([1, 0, 0, 0, 0]);
}

#[test]
fn five_minutes_are_enough_waiting() {
    let mut w = World::new();
    w.put("a", json!({}));
    w.pop();
    w.refuse("a", "NodeAffinity");
    w.pass(299);
    w.check([0, 0, 1, 0, 0]);
    assert_eq!(w.queue.deadline(), Some(w.now + Duration::from_secs(1)));
    w.pass(1);
    w.check([1, 0, 0, 0, 0]);
}

#[test]
fn what_happens_meanwhile_counts() {
    let mut w = World::new();
    w.put("a", json!({}));
    w.pop();
    let left = w.leaves("x");
    w.event(left);
    w.refuse("a", "NodeResourcesFit");
    w.check([0, 1, 0, 0, 0]);
    // And what happened before does not.
    assert_eq!(w.pop().as_deref(), Some("a"));
    w.refuse("a", "NodeResourcesFit");
    w.check([0, 0, 1, 0, 0]);
}

#[test]
fn backoffs_double_to_ten_seconds() {
    let mut w = World::new();
    w.put("a", json!({}));
    for want in [1, 2, 4, 8, 10, 10] {
        w.pop();
        w.breaks("a");
        w.check([0, 1, 0, 0, 0]);
        // Something broke: not before the time.
        assert_eq!(w.pop(), None);
        w.pass(want - 1);
        assert_eq!(w.queue.depth().backoff, usize::from(want > 0));
        w.pass(1);
        w.check([1, 0, 0, 0, 0]);
    }
}

#[test]
fn idle_time_is_not_waited_away() {
    let mut w = World::new();
    w.put("a", json!({}));
    w.pop();
    w.refuse("a", "NodeResourcesFit");
    let left = w.leaves("x");
    w.event(left);
    w.put("b", json!({}));
    // Whoever doesn't back off goes first.
    assert_eq!((w.pop().as_deref(), w.pop().as_deref(), w.pop()), (Some("b"), Some("a"), None));
}

#[test]
fn one_that_was_refused_does_not_follow_those_that_waited() {
    let mut w = World::new();
    w.put("a", json!({}));
    w.pop();
    let waits = Event::PodWaits(w.snapshot.read(pod("x", json!({"nodeName": "n"}))));
    w.event(waits);
    w.queue.failed(&"a".into(), Failure::default(), &w.snapshot, w.now);
    w.check([0, 0, 1, 0, 0]);
}

#[test]
fn gates_keep_pods_out() {
    let mut w = World::new();
    w.put("a", json!({"schedulingGates": [{"name": "g"}]}));
    w.check([0, 0, 0, 1, 0]);
    assert_eq!(w.pop(), None);
    w.put("a", json!({"schedulingGates": [{"name": "g"}], "priority": 1}));
    w.check([0, 0, 0, 1, 0]);
    w.put("a", json!({}));
    w.check([1, 0, 0, 0, 0]);
}

#[test]
fn a_change_of_the_pod_itself_can_help() {
    let mut w = World::new();
    w.put("a", json!({"nodeSelector": {"x": "y"}}));
    w.pop();
    w.refuse("a", "NodeAffinity");
    w.pass(2);
    w.put("a", json!({"nodeSelector": {"x": "y"}}));
    w.check([0, 0, 1, 0, 0]);
    w.put("a", json!({}));
    w.check([1, 0, 0, 0, 0]);
}
