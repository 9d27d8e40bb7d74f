//! Which behavior holds for a container's run, or for a node.
//!
//! A [`Choice`] is a snapshot of all Behaviors; it is made anew when one changes. The same pod, run and seed give the
//! same [`Act`], however often it is asked.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use homeostat_model::Timestamp;
use homeostat_model::quantity::Quantity;
use homeostat_sdk::selector::Labels;
use k8s_openapi::api::core::v1::Pod;

use super::script::Script;
use super::{Behavior, ContainerBehavior, Exit, NodeBehavior, Pull, Run, Selector, Span, Start, Stop, Usage};
use super::{annotations, glob};

/// How long the parts of a pod's life take where nothing says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays {
    /// From binding to a sandbox with an address.
    pub sandbox: Duration,
    /// The pull of an image.
    pub pull: Duration,
    /// From a free way and an image to a running container.
    pub start: Duration,
    /// An init container's run.
    pub init: Duration,
    /// The run of a container whose pod belongs to a Job.
    pub job: Duration,
    /// From the signal to the exit.
    pub stop: Duration,
    /// From an exit, or a failed pull, to when the kubelet looks at it again.
    pub notice: Duration,
    /// From new resources to their being in force.
    pub resize: Duration,
}

impl Default for Delays {
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self {
            sandbox: ms(30),
            pull: ms(20),
            start: ms(60),
            init: ms(40),
            job: ms(1_000),
            stop: ms(40),
            notice: ms(500),
            resize: ms(50),
        }
    }
}

/// A container's part in the pod's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Runs to its end before the next begins.
    Init,
    /// An init container with restartPolicy Always: the next begins when it has started.
    Sidecar,
    /// Runs as long as the pod.
    Main,
    /// Was added to a running pod; is never started again.
    Ephemeral,
}

/// Whose behavior is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// The container's name.
    pub name: &'a str,
    /// Its image.
    pub image: &'a str,
    /// Its part.
    pub part: Part,
}

/// What a container does in one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// How long a pull takes.
    pub pull: Duration,
    /// The image's size in bytes.
    pub size: i64,
    /// Why pulls fail, and how many do (`None`: all).
    pub pull_error: Option<(String, Option<i32>)>,
    /// From a pulled image to a running container.
    pub start: Duration,
    /// Why it can't start.
    pub start_error: Option<String>,
    /// The run.
    pub script: Script,
    /// From the signal to the exit; `None`: it takes no notice.
    pub stop: Option<Duration>,
    /// The exit code after the signal.
    pub stop_code: i32,
}

/// Size of an image of which nothing else is known.
const SIZE: i64 = 25_000_000;

/// How long it takes a process to fill the memory that it may have.
const FILLS: Duration = Duration::from_secs(1);

/// The memory that a container may have.
fn limit(subject: &Subject<'_>) -> Option<Quantity> {
    let spec = subject.pod.spec.as_ref()?;
    let mut all = spec.init_containers.iter().flatten().chain(&spec.containers);
    let container = all.find(|c| c.name == subject.name)?;
    Quantity::parse(&container.resources.as_ref()?.limits.as_ref()?.get("memory")?.0).ok()
}

struct Compiled {
    behavior: Arc<Behavior>,
    labels: Labels,
}

/// All Behaviors at a moment.
#[derive(Default)]
pub struct Choice {
    seed: u64,
    delays: Delays,
    /// In the order in which they hold.
    behaviors: Vec<Compiled>,
    problems: Vec<(Arc<Behavior>, String)>,
}

impl std::fmt::Debug for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Choice").field("behaviors", &self.behaviors.len()).finish_non_exhaustive()
    }
}

impl Choice {
    /// Of these Behaviors; `seed` is what chance and jitter come from.
    pub fn new(seed: u64, delays: Delays, behaviors: impl IntoIterator<Item = Arc<Behavior>>) -> Self {
        let (mut compiled, mut problems) = (Vec::new(), Vec::new());
        for behavior in behaviors {
            match Labels::parse(&behavior.spec.selector.labels) {
                Ok(labels) => compiled.push(Compiled { behavior, labels }),
                Err(why) => problems.push((behavior, format!("spec.selector.labels: {why}"))),
            }
        }
        compiled.sort_by(|a, b| {
            let rank =
                |c: &Compiled| (-i64::from(c.behavior.spec.priority), c.behavior.metadata.name.clone());
            rank(a).cmp(&rank(b))
        });
        Self { seed, delays, behaviors: compiled, problems }
    }

    /// Whether there is no Behavior.
    pub fn is_empty(&self) -> bool {
        self.behaviors.is_empty()
    }

    /// The default delays.
    pub fn delays(&self) -> &Delays {
        &self.delays
    }

    /// Behaviors that have no effect, and why.
    pub fn problems(&self) -> &[(Arc<Behavior>, String)] {
        &self.problems
    }

    /// A number that follows from the seed and `what`.
    fn roll(&self, what: &impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.seed, what).hash(&mut hasher);
        hasher.finish()
    }

    /// A part of `most`, by chance.
    fn jitter(&self, most: Option<Span>, what: &impl Hash) -> Duration {
        let most = most.map_or(0, |m| u64::try_from(m.0.as_nanos()).unwrap_or(u64::MAX));
        if most == 0 { Duration::ZERO } else { Duration::from_nanos(self.roll(what) % most) }
    }

    fn chosen(&self, behavior: &Behavior, percent: Option<u32>, whom: &str) -> bool {
        let Some(percent) = percent else { return true };
        self.roll(&("percent", behavior.metadata.name.as_deref(), whom)) % 100 < u64::from(percent)
    }

    /// The parts that hold for a run, the first that there is of each.
    fn parts(&self, subject: &Subject<'_>, restarts: i32) -> Parts<'_> {
        let mut parts = Parts::default();
        if self.behaviors.is_empty() {
            return parts;
        }
        let uid = subject.pod.metadata.uid.as_deref().unwrap_or_default();
        for Compiled { behavior, labels } in &self.behaviors {
            let Some(container) = &behavior.spec.container else { continue };
            let selector = &behavior.spec.selector;
            if selects(selector, labels, subject, restarts) && self.chosen(behavior, selector.percent, uid) {
                parts.add(container);
            }
        }
        parts
    }

    /// What a container does in the run that comes after `restarts` restarts.
    pub fn act(&self, subject: &Subject<'_>, restarts: i32) -> Act {
        let said = annotations::behavior(subject);
        let mut parts = Parts::default();
        parts.add(&said);
        parts.or(&self.parts(subject, restarts));
        let uid = subject.pod.metadata.uid.as_deref().unwrap_or_default();
        let jitter = |most, what: &str, n: usize| self.jitter(most, &(uid, subject.name, restarts, what, n));
        let plus = |given: Option<Span>, default: Duration, most, what| {
            given.map_or(default, |s| s.0) + jitter(most, what, 0)
        };
        let pull = parts.pull.cloned().unwrap_or_default();
        let start = parts.start.cloned().unwrap_or_default();
        let stop = parts.stop.cloned().unwrap_or_default();
        let script = match parts.run {
            Some(run) => Script::new(run, |stage, most| jitter(Some(Span(most)), "stage", stage)),
            None => self.default_script(subject),
        };
        // More memory than it may have: the kernel ends it.
        let says = parts.usage.is_some() || parts.run.is_some();
        let limit = says.then(|| limit(subject)).flatten();
        let over = |stage: usize| {
            let staged = parts.run.and_then(|r| r.stages.get(stage)?.usage.as_ref()?.memory.as_ref());
            let used = staged.or_else(|| parts.usage?.memory.as_ref()).and_then(|q| Quantity::parse(q).ok());
            used.zip(limit.as_ref()).is_some_and(|(used, limit)| used > *limit)
        };
        let killed = Exit { code: 137, reason: Some("OOMKilled".to_owned()), message: None };
        let script = script.cut(over, FILLS, killed);
        Act {
            pull: plus(pull.delay, self.delays.pull, pull.jitter, "pull"),
            size: pull.size.unwrap_or(SIZE),
            pull_error: pull.error.map(|why| (why, pull.failures)),
            start: plus(start.delay, self.delays.start, start.jitter, "start"),
            start_error: start.error,
            script,
            stop: (!stop.ignore).then(|| plus(stop.delay, self.delays.stop, stop.jitter, "stop")),
            stop_code: stop.code,
        }
    }

    fn default_script(&self, subject: &Subject<'_>) -> Script {
        let ends = |delay| Script::ends(delay, Exit::default());
        match subject.part {
            Part::Init => ends(self.delays.init),
            Part::Main if runs_to_its_end(subject.pod) => ends(self.delays.job),
            _ => Script::forever(),
        }
    }

    /// What it uses, as Behaviors and annotations say, `elapsed` after the start of a run: processor and memory.
    pub fn usage(
        &self,
        subject: &Subject<'_>,
        restarts: i32,
        elapsed: Duration,
    ) -> (Option<String>, Option<String>) {
        let said = annotations::behavior(subject);
        let mut parts = Parts::default();
        parts.add(&said);
        parts.or(&self.parts(subject, restarts));
        let staged = parts.run.and_then(|run| {
            let stage = self.act(subject, restarts).script.step(elapsed).stage;
            run.stages.get(stage)?.usage.as_ref()
        });
        let sources = [staged, parts.usage];
        let first = |f: fn(&Usage) -> Option<&String>| sources.iter().flatten().find_map(|u| f(u)).cloned();
        (first(|u| u.cpu.as_ref()), first(|u| u.memory.as_ref()))
    }

    /// What a node with these labels does, and since when.
    pub fn node(&self, name: &str, labels: &BTreeMap<String, String>) -> Option<(&NodeBehavior, Timestamp)> {
        let found = self.behaviors.iter().find(|Compiled { behavior, labels: wanted }| {
            let selector = &behavior.spec.selector;
            behavior.spec.node.is_some()
                && glob::any(&selector.nodes, name)
                && wanted.matches(|key| labels.get(key).map(String::as_str))
                && self.chosen(behavior, selector.percent, name)
        })?;
        let since =
            found.behavior.metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |t| t.0);
        Some((found.behavior.spec.node.as_ref()?, since))
    }

    /// The jitter of a node's stage.
    pub fn node_jitter(&self, node: &str, stage: usize, most: Option<Span>) -> Duration {
        self.jitter(most, &("node", node, stage))
    }
}

/// Parts of behaviors, borrowed from whom they come.
#[derive(Default)]
struct Parts<'a> {
    pull: Option<&'a Pull>,
    start: Option<&'a Start>,
    run: Option<&'a Run>,
    stop: Option<&'a Stop>,
    usage: Option<&'a Usage>,
}

impl<'a> Parts<'a> {
    fn add(&mut self, more: &'a ContainerBehavior) {
        self.pull = self.pull.or(more.pull.as_ref());
        self.start = self.start.or(more.start.as_ref());
        self.run = self.run.or(more.run.as_ref());
        self.stop = self.stop.or(more.stop.as_ref());
        self.usage = self.usage.or(more.usage.as_ref());
    }

    fn or(&mut self, more: &Parts<'a>) {
        self.pull = self.pull.or(more.pull);
        self.start = self.start.or(more.start);
        self.run = self.run.or(more.run);
        self.stop = self.stop.or(more.stop);
        self.usage = self.usage.or(more.usage);
    }
}

fn selects(selector: &Selector, labels: &Labels, subject: &Subject<'_>, restarts: i32) -> bool {
    let meta = &subject.pod.metadata;
    let annotation = |(name, pattern): (&String, &String)| {
        let value = meta.annotations.as_ref().and_then(|a| a.get(name));
        value.is_some_and(|v| glob::matches(pattern, v))
    };
    let node = subject.pod.spec.as_ref().and_then(|s| s.node_name.as_deref()).unwrap_or_default();
    glob::any(&selector.images, subject.image)
        && glob::any(&selector.containers, subject.name)
        && glob::any(&selector.namespaces, meta.namespace.as_deref().unwrap_or_default())
        && glob::any(&selector.nodes, node)
        && labels.matches(|key| meta.labels.as_ref()?.get(key).map(String::as_str))
        && selector.annotations.iter().all(annotation)
        && selector
            .restarts
            .as_ref()
            .is_none_or(|r| r.from <= restarts && r.to.is_none_or(|to| restarts <= to))
}

/// Whether the pod is of a Job, and so expected to end.
fn runs_to_its_end(pod: &Pod) -> bool {
    let of_a_job = pod
        .metadata
        .owner_references
        .iter()
        .flatten()
        .any(|r| r.controller == Some(true) && r.kind == "Job" && r.api_version.starts_with("batch/"));
    of_a_job && pod.spec.as_ref().and_then(|s| s.restart_policy.as_deref()).is_some_and(|p| p != "Always")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(extra: Value) -> Pod {
        let mut pod = json!({
            "metadata": {"name": "p", "namespace": "shop", "uid": "u", "labels": {"app": "web"}},
            "spec": {"nodeName": "node-1", "containers": [{"name": "c", "image": "web:1"}]}
        });
        for (k, v) in extra.as_object().unwrap() {
            pod["metadata"][k] = v.clone();
        }
        serde_json::from_value(pod).unwrap()
    }

    fn behavior(name: &str, priority: i32, selector: Value, container: Value) -> Arc<Behavior> {
        let spec = json!({"priority": priority, "selector": selector, "container": container});
        Arc::new(Behavior::new(name, serde_json::from_value(spec).unwrap()))
    }

    fn crash(code: i32) -> Value {
        json!({"run": {"stages": [{"for": "1s", "exit": {"code": code}}]}})
    }

    /// How the run ends: `code after seconds`, or `on`.
    #[track_caller]
    fn check(pod: &Pod, restarts: i32, behaviors: Vec<Arc<Behavior>>, want: &str) {
        let choice = Choice::new(1, Delays::default(), behaviors);
        let act = choice.act(&Subject { pod, name: "c", image: "web:1", part: Part::Main }, restarts);
        let got = act.script.end().map_or("on".to_owned(), |(at, exit)| {
            format!("{} after {}", exit.code, homeostat_model::duration::go(at))
        });
        assert_eq!(got, want);
    }

    #[test]
    fn every_given_part_of_a_selector_must_match() {
        let p = pod(json!({"annotations": {"team": "red-1"}}));
        for (selector, holds) in [
            (json!({}), true),
            (json!({"images": ["web:*"]}), true),
            (json!({"images": ["db:*"]}), false),
            (json!({"containers": ["c"], "nodes": ["node-?"]}), true),
            (json!({"containers": ["d"], "nodes": ["node-?"]}), false),
            (json!({"namespaces": ["kube-*"]}), false),
            (json!({"labels": "app in (web,db)"}), true),
            (json!({"labels": "app!=web"}), false),
            (json!({"labels": "app in ("}), false),
            (json!({"annotations": {"team": "red-*"}}), true),
            (json!({"annotations": {"team": "blue"}}), false),
            (json!({"restarts": {"from": 1}}), false),
            (json!({"percent": 0}), false),
            (json!({"percent": 100}), true),
        ] {
            let want = if holds { "1 after 1s" } else { "on" };
            check(&p, 0, vec![behavior("b", 0, selector, crash(1))], want);
        }
    }

    #[test]
    fn the_higher_priority_holds_then_the_name_and_annotations_before_all() {
        let all = || json!({});
        let p = pod(json!({}));
        check(
            &p,
            0,
            vec![behavior("b", 0, all(), crash(1)), behavior("a", 0, all(), crash(2))],
            "2 after 1s",
        );
        check(
            &p,
            0,
            vec![behavior("b", 5, all(), crash(1)), behavior("a", 0, all(), crash(2))],
            "1 after 1s",
        );
        // A part that one doesn't have comes from the next.
        let slow = json!({"start": {"delay": "9s"}});
        check(&p, 0, vec![behavior("b", 5, all(), slow), behavior("a", 0, all(), crash(2))], "2 after 1s");
        let said = pod(json!({"annotations": {"simulation.homeostat.dev/exit": "7 after 2s"}}));
        check(&said, 0, vec![behavior("b", 5, all(), crash(1))], "7 after 2s");
    }

    #[test]
    fn runs_differ_by_their_restarts() {
        let twice = behavior("b", 0, json!({"restarts": {"to": 1}}), crash(1));
        check(&pod(json!({})), 1, vec![twice.clone()], "1 after 1s");
        check(&pod(json!({})), 2, vec![twice], "on");
    }

    #[test]
    fn pods_of_jobs_end_and_others_run_on() {
        let mut p = pod(json!({"ownerReferences": [
            {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": true}]}));
        check(&p, 0, vec![], "on");
        p.spec.as_mut().unwrap().restart_policy = Some("Never".into());
        check(&p, 0, vec![], "0 after 1s");
        p.metadata.owner_references = None;
        check(&p, 0, vec![], "on");
    }

    #[test]
    fn jitter_is_bounded_and_the_same_again() {
        let jittery = json!({"run": {"stages": [{"for": "1s", "jitter": "1s", "exit": {"code": 0}}]}});
        let of = |seed, uid: &str| {
            let choice = Choice::new(seed, Delays::default(), [behavior("b", 0, json!({}), jittery.clone())]);
            let p = pod(json!({"uid": uid}));
            let act = choice.act(&Subject { pod: &p, name: "c", image: "i", part: Part::Main }, 0);
            act.script.end().unwrap().0
        };
        assert_eq!(of(1, "a"), of(1, "a"));
        assert_ne!(of(1, "a"), of(2, "a"));
        let all: Vec<Duration> = (0..50).map(|i| of(1, &i.to_string())).collect();
        assert!(all.iter().all(|d| (1..2).contains(&d.as_secs())), "{all:?}");
        assert!(all.windows(2).any(|w| w[0] != w[1]));
    }
}
