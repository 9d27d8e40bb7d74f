//! No hot loops: what can't be done is told, and tried again ever more seldom.
//!
//! Each case is an input that nobody can make good, the most that the cluster's parts may ask about it in an hour, and
//! where it is told. The hour begins a minute after the input: a loop that slows down only later is one too.

use homeostat_cluster::simulate;
use serde_json::{Value, json};

use crate::virtual_time::Simulation;

const HOUR: u64 = 3600;
const CORE: &str = "/api/v1/namespaces/default";
const APPS: &str = "/apis/apps/v1/namespaces/default";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
const AUTOSCALERS: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
const EVENTS: &str = "/api/v1/namespaces/default/events";

fn template(extra: Value) -> Value {
    let mut spec = json!({"containers": [{"name": "c", "image": "busybox"}]});
    spec.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    json!({"metadata": {"labels": {"app": "a"}}, "spec": spec})
}

fn replicas(name: &str, count: i32) -> Value {
    json!({"metadata": {"name": name}, "spec": {"replicas": count, "selector": {"matchLabels": {"app": "a"}},
        "template": template(json!({}))}})
}

fn budget(name: &str, selector: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"minAvailable": "50%", "selector": selector}})
}

fn autoscaler(name: &str, target: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"minReplicas": 1, "maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
        "metrics": [{"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": 50}}}]}})
}

/// What is done to the cluster.
enum Step {
    Create(&'static str, Value),
    /// ConfigMaps `a` and `b` that own each other.
    Circle,
    Delete(&'static str, &'static str),
}

use Step::{Circle, Create, Delete};

impl Step {
    async fn take(&self, world: &Simulation) {
        match self {
            Create(path, object) => world.create(path, object.clone()).await,
            Delete(path, policy) => world.delete(path, policy).await,
            Circle => {
                let maps = format!("{CORE}/configmaps");
                let mut made = Vec::new();
                for name in ["a", "b"] {
                    world.create(&maps, json!({"metadata": {"name": name}})).await;
                    made.push(world.get(&format!("{maps}/{name}")).await);
                }
                for (owned, owner) in [(0, 1), (1, 0)] {
                    let reference = json!([{"apiVersion": "v1", "kind": "ConfigMap", "blockOwnerDeletion": true,
                        "name": made[owner]["metadata"]["name"], "uid": made[owner]["metadata"]["uid"]}]);
                    let path = format!("{maps}/{}", made[owned]["metadata"]["name"].as_str().unwrap());
                    world.merge(&path, json!({"metadata": {"ownerReferences": reference}})).await;
                }
            }
        }
    }
}

/// Takes the steps; then at most `limit` requests in an hour, and the text at each path of `told` (`!` before it: not).
#[track_caller]
fn check(name: &str, nodes: usize, steps: &[Step], limit: usize, told: &[(&str, &str)]) {
    let outcome = simulate(async || {
        let world = Simulation::start(1, nodes).await;
        for step in steps {
            step.take(&world).await;
            world.pass(2).await;
        }
        world.pass(60).await;
        world.count.take();
        world.pass(HOUR).await;
        let counted = world.count.take();
        let sum: usize = counted.values().sum();
        assert!(sum <= limit, "{name}: {sum} requests in an hour: {counted:#?}");
        for (path, text) in told {
            let has = world.get(path).await;
            let (text, wanted) = text.strip_prefix('!').map_or((*text, true), |t| (t, false));
            assert_eq!(has.to_string().contains(text), wanted, "{name}: {text} at {path}: {has:#}");
        }
    });
    outcome.unwrap();
}

#[test]
fn selectors_that_match_nothing() {
    let none = json!({"matchLabels": {"app": "none"}});
    let service = json!({"metadata": {"name": "empty"}, "spec": {"selector": {"app": "none"}, "ports": [{"port": 80}]}});
    check(
        "a service",
        0,
        &[Create("/api/v1/namespaces/default/services", service)],
        5,
        &[(
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
            "\"kubernetes.io/service-name\":\"empty\"",
        )],
    );
    check(
        "a budget",
        0,
        &[Create(BUDGETS, budget("empty", none))],
        5,
        &[(EVENTS, "No matching pods found"), (BUDGETS, "\"reason\":\"InsufficientPods\"")],
    );
    check(
        "an autoscaler",
        0,
        &[Create(AUTOSCALERS, autoscaler("lost", "absent"))],
        4 * 240,
        &[(EVENTS, "\"reason\":\"FailedGetScale\""), (AUTOSCALERS, "\"reason\":\"FailedGetScale\"")],
    );
}

#[test]
fn selectors_that_match_everything() {
    let pod =
        json!({"metadata": {"name": "lone", "labels": {"app": "lone"}}, "spec": template(json!({}))["spec"]});
    let deployment = replicas("web", 2);
    check(
        "two budgets over all pods",
        1,
        &[
            Create("/api/v1/namespaces/default/pods", pod),
            Create("/apis/apps/v1/namespaces/default/deployments", deployment.clone()),
            Create(BUDGETS, budget("one", json!({}))),
            Create(BUDGETS, budget("two", json!({}))),
        ],
        10,
        &[(EVENTS, "\"reason\":\"UnmanagedPods\""), (BUDGETS, "\"expectedPods\":2")],
    );
    // Each asks for its target and the metrics every fifteen seconds, and tells that it can't act.
    check(
        "two autoscalers of one deployment",
        1,
        &[
            Create("/apis/apps/v1/namespaces/default/deployments", deployment),
            Create(AUTOSCALERS, autoscaler("one", "web")),
            Create(AUTOSCALERS, autoscaler("two", "web")),
        ],
        2 * 4 * 240,
        &[(EVENTS, "\"reason\":\"AmbiguousSelector\""), (AUTOSCALERS, "\"reason\":\"AmbiguousSelector\"")],
    );
}

#[test]
fn two_controllers_over_one_pod() {
    let lone =
        json!({"metadata": {"name": "lone", "labels": {"app": "a"}}, "spec": template(json!({}))["spec"]});
    let controller = |name: &str| {
        json!({"metadata": {"name": name}, "spec": {"replicas": 1, "selector": {"app": "a"},
            "template": template(json!({}))}})
    };
    check(
        "two replica sets and a replication controller",
        1,
        &[
            Create("/api/v1/namespaces/default/pods", lone),
            Create("/apis/apps/v1/namespaces/default/replicasets", replicas("one", 1)),
            Create("/apis/apps/v1/namespaces/default/replicasets", replicas("two", 1)),
            Create("/api/v1/namespaces/default/replicationcontrollers", controller("three")),
        ],
        5,
        &[
            ("/apis/apps/v1/namespaces/default/replicasets", "\"readyReplicas\":1"),
            ("/api/v1/namespaces/default/replicationcontrollers/three", "\"readyReplicas\":1"),
        ],
    );
}

#[test]
fn owners_in_a_circle() {
    let a = "/api/v1/namespaces/default/configmaps/a";
    let maps = "/api/v1/namespaces/default/configmaps";
    let gone = [(maps, "!\"name\":\"a\""), (maps, "!\"name\":\"b\"")];
    check("that stays", 0, &[Circle], 5, &[(maps, "\"name\":\"a\""), (maps, "\"name\":\"b\"")]);
    check("deleted in the background", 0, &[Circle, Delete(a, "Background")], 5, &gone);
    check("deleted in the foreground", 0, &[Circle, Delete(a, "Foreground")], 5, &gone);
}

#[test]
fn pods_that_cannot_be_admitted() {
    let account = || template(json!({"serviceAccountName": "nobody", "restartPolicy": "Never"}));
    let job = json!({"metadata": {"name": "never"}, "spec": {"template": account()}});
    let cron = json!({"metadata": {"name": "tick"}, "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job["spec"]}}});
    check(
        "a job",
        0,
        &[
            Create("/apis/batch/v1/namespaces/default/jobs", job),
            Create("/apis/batch/v1/namespaces/default/cronjobs", cron),
        ],
        40,
        &[(EVENTS, "\"reason\":\"FailedCreate\"")],
    );
    let mut daemons = replicas("every", 0);
    daemons["spec"].as_object_mut().unwrap().remove("replicas");
    daemons["spec"]["template"]["spec"]["serviceAccountName"] = "nobody".into();
    let create = Create("/apis/apps/v1/namespaces/default/daemonsets", daemons);
    check("a daemon set", 1, &[create], 40, &[(EVENTS, "\"reason\":\"FailedCreate\"")]);
}

#[test]
fn a_quota_in_the_way() {
    let quota = json!({"metadata": {"name": "none"}, "spec": {"hard": {"pods": "1", "configmaps": "9"}}});
    let mut set = replicas("db", 3);
    set["spec"]["serviceName"] = "db".into();
    set["spec"]["podManagementPolicy"] = "Parallel".into();
    check(
        "a deployment and a set",
        0,
        &[
            Create("/api/v1/namespaces/default/resourcequotas", quota),
            Create("/apis/apps/v1/namespaces/default/deployments", replicas("web", 3)),
            Create("/apis/apps/v1/namespaces/default/statefulsets", set),
        ],
        // The scheduler tries its one pod every five minutes, and the quota counts what it can't watch as often.
        120,
        &[
            (EVENTS, "exceeded quota: none"),
            (EVENTS, "create Pod db-0 in StatefulSet db failed"),
            (&format!("{APPS}/deployments/web"), "\"type\":\"ReplicaFailure\""),
        ],
    );
}

#[test]
fn a_claim_of_a_class_that_is_not_there() {
    let claim = json!({"metadata": {"name": "lost"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "storageClassName": "absent", "resources": {"requests": {"storage": "1Gi"}}}});
    let create = Create("/api/v1/namespaces/default/persistentvolumeclaims", claim);
    check("a claim", 0, &[create], 600, &[(EVENTS, "storageclass.storage.k8s.io \\\"absent\\\" not found")]);
}

#[test]
fn a_node_that_lies() {
    let far = "2099-01-01T00:00:00Z";
    let node = json!({"metadata": {"name": "liar"}, "status": {"conditions": [{"type": "Ready", "status": "True",
        "lastHeartbeatTime": far, "lastTransitionTime": far}]}});
    let lease = json!({"metadata": {"name": "liar"}, "spec": {"holderIdentity": "liar", "leaseDurationSeconds": 40,
        "renewTime": "2099-01-01T00:00:00.000000Z"}});
    check(
        "of the year 2099",
        0,
        &[
            Create("/api/v1/nodes", node),
            Create("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", lease),
        ],
        5,
        &[(EVENTS, "\"reason\":\"NodeNotReady\""), ("/api/v1/nodes/liar", "node.kubernetes.io/unreachable")],
    );
}

#[test]
fn an_idle_cluster_is_idle() {
    // There is no node: as in the reference, the scheduler tries each of the three pods again every five minutes.
    let deployment = replicas("web", 3);
    let create = Create("/apis/apps/v1/namespaces/default/deployments", deployment);
    check("three pods that wait", 0, &[create], 20 + 3 * 12, &[(EVENTS, "\"reason\":\"FailedScheduling\"")]);
}
