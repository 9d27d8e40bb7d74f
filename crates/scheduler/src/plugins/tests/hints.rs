//! Queueing hints, as one table: a plugin that refused a pod, an event, and whether the pod is tried again for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use homeostat_model::Entropy;
use serde_json::{Value, json};

use super::{asks, both, cpu, labelled, node, on, pod};
use crate::Registry;
use crate::config::Configuration;
use crate::framework::{Event, Framework};
use crate::plugins::devices::{TOGETHER, TOPOLOGY};
use crate::plugins::{GROUP, MINIMUM};
use crate::snapshot::Snapshot;

const ALL: &str = "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: Accelerators}, {name: Gang}]}}}]
";
/// These refuse nothing.
const NEVER_REFUSE: [&str; 5] = [
    "PrioritySort",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "DefaultBinder",
    "DefaultPreemption",
];

struct Table {
    framework: Arc<Framework>,
    snapshot: Snapshot,
    seen: BTreeSet<&'static str>,
    wrong: Vec<String>,
}

/// Something that happens, in JSON.
enum What {
    Node(Value),
    NodeGone(Value),
    /// From one state to another; both have what the third says.
    NodeChanged(Value, Value),
    Came(Value),
    Left(Value),
    Changed(Value, Value),
    Waits(Value),
    Added(Value),
    /// One without a node goes.
    Gone(Value),
    /// The pod in question, from one state to another.
    Itself(Value, Value),
    Claim(&'static str, &'static str),
    ResourceClaim(&'static str, &'static str),
    Plain(Event),
}
use What::{Added, Came, Changed, Gone, Itself, Left, NodeChanged, NodeGone, Plain, Waits};

impl Table {
    fn event(&mut self, what: What) -> Event {
        let mut read = |name: &str, v: Value| self.snapshot.read(Arc::new(pod(name, v)));
        let there = |v: Value| on("n", v);
        let object =
            |namespace: &str, name: &str| json!({"metadata": {"namespace": namespace, "name": name}});
        match what {
            What::Node(v) => Event::NodeAdded(Arc::new(node("n", v))),
            NodeGone(v) => Event::NodeDeleted(Arc::new(node("n", v))),
            NodeChanged(old, new) => {
                Event::NodeUpdated { old: Arc::new(node("n", old)), new: Arc::new(node("n", new)) }
            }
            Came(v) => Event::PodAssigned(read("o", there(v))),
            Left(v) => Event::AssignedPodDeleted(read("o", there(v))),
            Changed(old, new) => {
                Event::AssignedPodUpdated { old: read("o", there(old)), new: read("o", there(new)) }
            }
            Waits(v) => Event::PodWaits(read("o", there(v))),
            Added(v) => Event::PodAdded(read("o", v)),
            Gone(v) => Event::PodDeleted(read("o", v)),
            Itself(old, new) => Event::PodUpdated { old: read("p", old), new: read("p", new) },
            What::Claim(namespace, name) => {
                Event::Claim(Arc::new(serde_json::from_value(object(namespace, name)).unwrap()))
            }
            What::ResourceClaim(namespace, name) => {
                let claim = both(object(namespace, name), json!({"spec": {}}));
                Event::ResourceClaim(Arc::new(serde_json::from_value(claim).unwrap()))
            }
            Plain(event) => event,
        }
    }

    /// Whether each of these brings back a pod that the plugin refused.
    fn plugin(&mut self, name: &'static str, refused: Value, rows: Vec<(What, bool)>) {
        self.seen.insert(name);
        let info = self.snapshot.read(Arc::new(pod("p", refused)));
        for (i, (what, want)) in rows.into_iter().enumerate() {
            let event = self.event(what);
            if self.framework.helps(&event, &info, &[name].into(), &self.snapshot) != want {
                self.wrong.push(format!("{name}, row {i}: {} expected", if want { "queue" } else { "skip" }));
            }
        }
    }
}

fn taint(key: &str) -> Value {
    json!({"spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}})
}

fn tolerates(key: &str) -> Value {
    json!({"spec": {"tolerations": [{"key": key, "operator": "Exists"}]}})
}

fn allocatable(what: &str, amount: &str) -> Value {
    json!({"status": {"allocatable": {what: amount}}})
}

fn rule(kind: &str) -> Value {
    json!({"spec": {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution":
        [{"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone"}]}}}})
}

fn volume(claim: &str) -> Value {
    json!({"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}})
}

fn annotated(key: &str, value: &str) -> Value {
    json!({"metadata": {"annotations": {key: value}}})
}

fn none() -> Value {
    json!({})
}

fn table() -> Table {
    let configuration = Configuration::parse(ALL).unwrap();
    let mut all = configuration.frameworks(&Registry::default(), &Entropy::seeded(1)).unwrap();
    Table {
        framework: all.remove(0),
        snapshot: Snapshot::default(),
        seen: BTreeSet::new(),
        wrong: Vec::new(),
    }
}

fn of_nodes(t: &mut Table) {
    let cordoned = || json!({"spec": {"unschedulable": true}});
    t.plugin(
        "NodeUnschedulable",
        none(),
        vec![
            (What::Node(none()), true),
            (What::Node(cordoned()), false),
            (NodeChanged(cordoned(), none()), true),
            (NodeChanged(none(), allocatable("cpu", "9")), false),
            (Itself(none(), tolerates("node.kubernetes.io/unschedulable")), true),
            (Itself(none(), labelled("a", "b")), false),
            (Left(none()), false),
        ],
    );
    t.plugin(
        "NodeName",
        on("n", none()),
        vec![
            (What::Node(none()), true),
            (NodeChanged(none(), labelled("a", "b")), false),
            (Left(none()), false),
        ],
    );
    t.plugin(
        "TaintToleration",
        tolerates("a"),
        vec![
            (What::Node(taint("a")), true),
            (What::Node(taint("b")), false),
            (NodeChanged(taint("b"), none()), true),
            (NodeChanged(none(), labelled("a", "b")), false),
            (Itself(tolerates("a"), tolerates("b")), true),
            (Itself(tolerates("a"), both(tolerates("a"), labelled("a", "b"))), false),
        ],
    );
    let selects = json!({"spec": {"nodeSelector": {"disk": "ssd"}}});
    t.plugin(
        "NodeAffinity",
        selects.clone(),
        vec![
            (What::Node(labelled("disk", "ssd")), true),
            (What::Node(labelled("disk", "hdd")), false),
            (NodeChanged(none(), labelled("disk", "ssd")), true),
            (NodeChanged(labelled("disk", "ssd"), both(labelled("disk", "ssd"), labelled("a", "b"))), false),
            (NodeChanged(labelled("disk", "ssd"), none()), false),
            (Itself(selects, none()), true),
            (Left(none()), false),
        ],
    );
    let port = |n: u16| json!({"spec": {"containers": [{"name": "c", "ports": [{"containerPort": n, "hostPort": n}]}]}});
    t.plugin(
        "NodePorts",
        port(80),
        vec![
            (What::Node(none()), true),
            (NodeChanged(none(), labelled("a", "b")), false),
            (Left(port(80)), true),
            (Left(port(81)), false),
            (Came(port(80)), false),
        ],
    );
    t.plugin(
        "NodeResourcesFit",
        cpu("3"),
        vec![
            (What::Node(none()), true),
            (What::Node(allocatable("cpu", "2")), false),
            (NodeChanged(allocatable("cpu", "2"), allocatable("cpu", "3")), true),
            (NodeChanged(allocatable("cpu", "1"), allocatable("cpu", "2")), false),
            (NodeChanged(none(), allocatable("memory", "9Gi")), false),
            (NodeChanged(none(), labelled("a", "b")), false),
            (Left(cpu("1")), true),
            (Changed(cpu("2"), cpu("1")), true),
            (Changed(cpu("1"), cpu("2")), false),
            (Itself(cpu("3"), cpu("2")), true),
            (Itself(cpu("3"), cpu("4")), false),
            (Came(cpu("1")), false),
            (Gone(cpu("1")), false),
            (Gone(both(cpu("1"), json!({"status": {"nominatedNodeName": "n"}}))), true),
            (Plain(Event::Volume), false),
        ],
    );
    let restarts = json!({"spec": {"containers": [{"name": "c", "restartPolicyRules": [{"action": "RestartAllContainers"}]}]}});
    t.plugin(
        "NodeDeclaredFeatures",
        restarts.clone(),
        vec![
            (What::Node(none()), true),
            (NodeChanged(none(), json!({"status": {"declaredFeatures": ["x"]}})), true),
            (NodeChanged(none(), labelled("a", "b")), false),
            (Itself(restarts.clone(), both(restarts, labelled("a", "b"))), false),
            (Left(none()), false),
        ],
    );
}

fn of_pods(t: &mut Table) {
    let gates = |names: &[&str]| {
        let gates: Vec<Value> = names.iter().map(|n| json!({"name": n})).collect();
        json!({"spec": {"schedulingGates": gates}})
    };
    t.plugin(
        "SchedulingGates",
        gates(&["a"]),
        vec![
            (Itself(gates(&["a"]), none()), true),
            (Itself(gates(&["a", "b"]), gates(&["a"])), false),
            (What::Node(none()), false),
        ],
    );
    let db = || labelled("app", "db");
    t.plugin(
        "InterPodAffinity",
        rule("podAffinity"),
        vec![
            (Came(db()), true),
            (Came(none()), false),
            (Changed(none(), db()), true),
            (Changed(db(), none()), false),
            (Left(db()), false),
            (What::Node(labelled("zone", "a")), true),
            (What::Node(none()), false),
            (NodeChanged(none(), labelled("zone", "a")), true),
            (NodeChanged(labelled("zone", "a"), both(labelled("zone", "a"), taint("a"))), false),
            (Itself(none(), labelled("app", "web")), true),
            (Plain(Event::Namespace), true),
            (Plain(Event::Volume), false),
        ],
    );
    t.plugin(
        "InterPodAffinity",
        rule("podAntiAffinity"),
        vec![(Left(db()), true), (Left(none()), false), (Changed(db(), none()), true), (Came(db()), false)],
    );
    // Whom somebody else doesn't want near.
    t.plugin(
        "InterPodAffinity",
        db(),
        vec![(Left(rule("podAntiAffinity")), true), (Left(rule("podAffinity")), false)],
    );
    let spread = both(
        db(),
        json!({"spec": {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "db"}}}]}}),
    );
    t.plugin(
        "PodTopologySpread",
        spread.clone(),
        vec![
            (Came(db()), true),
            (Left(db()), true),
            (Left(none()), false),
            (Changed(none(), db()), true),
            (Changed(db(), db()), false),
            (What::Node(labelled("zone", "a")), true),
            (What::Node(none()), false),
            (NodeGone(labelled("zone", "a")), true),
            (NodeChanged(none(), labelled("zone", "a")), true),
            (NodeChanged(labelled("zone", "a"), both(labelled("zone", "a"), allocatable("cpu", "9"))), false),
            (Itself(spread, db()), true),
        ],
    );
    let group = |name: &str| both(labelled(GROUP, name), labelled(MINIMUM, "2"));
    t.plugin(
        "Gang",
        group("train"),
        vec![
            (Added(group("train")), true),
            (Added(group("other")), false),
            (Waits(group("train")), true),
            (Waits(group("other")), false),
            (Left(none()), true),
            (What::Node(none()), true),
            (Itself(none(), group("train")), true),
            (Plain(Event::Volume), false),
        ],
    );
}

fn of_volumes_and_devices(t: &mut Table) {
    let (claim, other) = (|| What::Claim("default", "data"), || What::Claim("default", "else"));
    let far = || What::Claim("far", "data");
    t.plugin(
        "VolumeBinding",
        volume("data"),
        vec![
            (claim(), true),
            (other(), false),
            (far(), false),
            (Plain(Event::Volume), true),
            (Plain(Event::StorageClass), true),
            (Plain(Event::StorageNode), true),
            (Plain(Event::StorageCapacity), true),
            (NodeChanged(none(), labelled("a", "b")), true),
            (NodeChanged(none(), taint("a")), false),
            (Left(none()), false),
        ],
    );
    t.plugin(
        "VolumeZone",
        volume("data"),
        vec![
            (claim(), true),
            (far(), false),
            (Plain(Event::Volume), true),
            (Plain(Event::StorageClass), true),
            (Plain(Event::StorageNode), false),
            (What::Node(none()), true),
            (NodeChanged(none(), labelled("a", "b")), true),
            (NodeChanged(none(), taint("a")), false),
        ],
    );
    t.plugin(
        "VolumeRestrictions",
        volume("data"),
        vec![
            (Left(volume("data")), true),
            (Left(volume("else")), false),
            (claim(), true),
            (far(), false),
            (What::Node(none()), true),
            (NodeChanged(none(), labelled("a", "b")), false),
        ],
    );
    t.plugin(
        "NodeVolumeLimits",
        volume("data"),
        vec![
            (Left(volume("else")), true),
            (Left(none()), false),
            (Plain(Event::StorageNode), true),
            (claim(), true),
            (far(), false),
            (What::Node(none()), true),
            (NodeChanged(none(), labelled("a", "b")), false),
        ],
    );
    let named = json!({"spec": {"resourceClaims": [{"name": "g", "resourceClaimName": "gpu"}]}});
    let made = json!({"status": {"resourceClaimStatuses": [{"name": "g", "resourceClaimName": "gpu"}]}});
    let template = json!({"spec": {"resourceClaims": [{"name": "g", "resourceClaimTemplateName": "t"}]}});
    t.plugin(
        "DynamicResources",
        named,
        vec![
            (What::ResourceClaim("default", "gpu"), true),
            (What::ResourceClaim("default", "nic"), false),
            (What::ResourceClaim("far", "gpu"), false),
            (Itself(template.clone(), both(template.clone(), made)), true),
            (Itself(template.clone(), both(template, labelled("a", "b"))), false),
            (NodeChanged(none(), labelled("a", "b")), true),
            (NodeChanged(none(), allocatable("cpu", "9")), false),
            (claim(), false),
        ],
    );
    let gpus = |n: &str| asks(json!({"nvidia.com/gpu": n}));
    t.plugin(
        "Accelerators",
        gpus("1"),
        vec![
            (Left(gpus("2")), true),
            (Left(cpu("1")), false),
            (What::Node(none()), true),
            (NodeChanged(none(), annotated(TOPOLOGY, "{}")), true),
            (NodeChanged(none(), allocatable("nvidia.com/gpu", "8")), true),
            (NodeChanged(none(), taint("a")), false),
            (Itself(annotated(TOGETHER, "link"), none()), true),
            (Itself(none(), labelled("a", "b")), false),
        ],
    );
}

#[test]
fn events_bring_back_those_they_may_help() {
    let mut t = table();
    of_nodes(&mut t);
    of_pods(&mut t);
    of_volumes_and_devices(&mut t);
    // Preemption's own objection is never what has to go.
    t.plugin("DefaultPreemption", none(), vec![(What::Node(none()), false), (Left(none()), false)]);
    assert!(t.wrong.is_empty(), "{}", t.wrong.join("\n"));
    let registry = Registry::default();
    let missing: Vec<&str> =
        registry.names().filter(|n| !t.seen.contains(n) && !NEVER_REFUSE.contains(n)).collect();
    assert!(missing.is_empty(), "in no table: {missing:?}");
}
