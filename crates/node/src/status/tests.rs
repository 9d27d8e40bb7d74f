//! Conditions and the rest of a pod's status, as tables.

use k8s_openapi::api::core::v1::PodStatus;
use serde_json::{Value, json};

use crate::runtime::tests::{Life, at};
use crate::status::whole;

/// `Type=Status(Reason: message)` of the conditions that a kubelet always writes.
fn conditions(status: &PodStatus) -> Vec<String> {
    let show = |c: &k8s_openapi::api::core::v1::PodCondition| {
        let why = c.reason.as_ref().map(|r| match &c.message {
            Some(m) => format!("({r}: {m})"),
            None => format!("({r})"),
        });
        format!("{}={}{}", c.type_, c.status, why.unwrap_or_default())
    };
    status.conditions.iter().flatten().filter(|c| c.type_ != "PodScheduled").map(show).collect()
}

#[track_caller]
fn check(spec: Value, behaviors: &[Value], s: f64, want: [&str; 4]) {
    let mut life = Life::new(spec, behaviors);
    let status = life.to(s).status(s);
    assert_eq!(conditions(&status), want);
}

#[test]
fn conditions_say_what_is_missing() {
    let init = json!({"initContainers": [{"name": "i"}], "containers": [{"name": "a"}, {"name": "b"}]});
    check(
        init.clone(),
        &[],
        0.5,
        [
            "PodReadyToStartContainers=True",
            "Initialized=False(ContainersNotInitialized: containers with incomplete status: [i])",
            "Ready=False(ContainersNotReady: containers with unready status: [a b])",
            "ContainersReady=False(ContainersNotReady: containers with unready status: [a b])",
        ],
    );
    let well = ["PodReadyToStartContainers=True", "Initialized=True", "Ready=True", "ContainersReady=True"];
    check(init, &[], 1.5, well);
    let done = json!({"container": {"run": {"stages": [{"for": "1s", "exit": {"code": 0}}]}}});
    check(
        json!({"restartPolicy": "Never", "containers": [{"name": "a"}]}),
        &[done],
        2.0,
        [
            "PodReadyToStartContainers=False",
            "Initialized=True(PodCompleted)",
            "Ready=False(PodCompleted)",
            "ContainersReady=False(PodCompleted)",
        ],
    );
    let failed = json!({"container": {"run": {"stages": [{"for": "1s", "exit": {"code": 1}}]}}});
    check(
        json!({"restartPolicy": "Never", "containers": [{"name": "a"}]}),
        &[failed],
        2.0,
        [
            "PodReadyToStartContainers=False",
            "Initialized=True",
            "Ready=False(PodFailed)",
            "ContainersReady=False(PodFailed)",
        ],
    );
    let sidecar = json!({
        "initContainers": [{"name": "s", "restartPolicy": "Always",
            "readinessProbe": {"tcpSocket": {"port": 1}, "initialDelaySeconds": 9}}],
        "containers": [{"name": "a"}]
    });
    check(
        sidecar,
        &[],
        2.0,
        [
            "PodReadyToStartContainers=True",
            "Initialized=True",
            "Ready=False(ContainersNotReady: containers with unready status: [s])",
            "ContainersReady=False(ContainersNotReady: containers with unready status: [s])",
        ],
    );
}

#[test]
fn readiness_gates_hold_a_pod_back() {
    let gates = json!([{"conditionType": "lb"}, {"conditionType": "net"}]);
    let mut life = Life::new(json!({"containers": [{"name": "c"}], "readinessGates": gates}), &[]);
    let ready = |life: &mut Life| conditions(&life.to(1.0).status(1.0))[2].clone();
    assert_eq!(
        ready(&mut life),
        "Ready=False(ReadinessGatesNotReady: corresponding condition of pod readiness gate \"lb\" does not exist., \
         corresponding condition of pod readiness gate \"net\" does not exist.)"
    );
    let set = |life: &mut Life, net: &str| {
        let both = json!({"conditions": [{"type": "lb", "status": "True"}, {"type": "net", "status": net}]});
        life.pod.status = serde_json::from_value(both).unwrap();
    };
    set(&mut life, "False");
    assert_eq!(
        ready(&mut life),
        "Ready=False(ReadinessGatesNotReady: the status of pod readiness gate \"net\" is not \"True\", but False)"
    );
    set(&mut life, "True");
    assert_eq!(ready(&mut life), "Ready=True");
}

#[test]
fn a_transition_keeps_its_time_while_it_holds() {
    let mut life = Life::new(json!({"containers": [{"name": "c"}]}), &[]);
    let first = life.to(1.0).status(1.0);
    life.pod.status = Some(first.clone());
    assert_eq!(life.to(500.0).status(500.0), first);
    life.delete(600.0, 30).to(601.0);
    let last = life.status(601.0);
    let since = |kind: &str| {
        let found = last.conditions.iter().flatten().find(|c| c.type_ == kind);
        found.and_then(|c| c.last_transition_time.clone())
    };
    assert_eq!((since("Ready"), since("Initialized")), (Some(whole(at(601.0))), Some(whole(at(1.0)))));
}

#[test]
fn host_network_has_the_nodes_address() {
    let mut life = Life::new(json!({"hostNetwork": true, "containers": [{"name": "c"}]}), &[]);
    let status = life.to(1.0).status(1.0);
    assert_eq!(
        (status.pod_ip.as_deref(), status.host_ip.as_deref()),
        (Some("172.18.0.2"), Some("172.18.0.2"))
    );
}

#[test]
fn containers_tell_their_resources_mounts_and_user() {
    let mut life = Life::new(
        json!({"securityContext": {"fsGroup": 5}, "containers": [{"name": "c",
            "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
            "securityContext": {"runAsUser": 1000, "runAsGroup": 3},
            "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": true}, {"name": "w", "mountPath": "/w"}]}]}),
        &[],
    );
    let status = serde_json::to_value(life.to(1.0).status(1.0)).unwrap();
    let c = &status["containerStatuses"][0];
    assert_eq!(c["resources"], json!({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}));
    assert_eq!(c["allocatedResources"], json!({"cpu": "1"}));
    assert_eq!(
        c["volumeMounts"],
        json!([{"name": "v", "mountPath": "/v", "readOnly": true, "recursiveReadOnly": "Disabled"},
            {"name": "w", "mountPath": "/w"}])
    );
    assert_eq!(c["user"], json!({"linux": {"uid": 1000, "gid": 3, "supplementalGroups": [3, 5]}}));
    let mut bare = Life::new(json!({"containers": [{"name": "c"}]}), &[]);
    let status = serde_json::to_value(bare.to(1.0).status(1.0)).unwrap();
    let c = &status["containerStatuses"][0];
    assert_eq!((&c["resources"], c.get("allocatedResources")), (&json!({}), None));
}
