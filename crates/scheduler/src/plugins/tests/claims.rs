//! Claims of devices, and features that nodes declare.

use std::sync::Arc;

use homeostat_sdk::Key;
use k8s_openapi::api::resource::v1::ResourceClaim;
use serde_json::{Value, json};

use super::{both, check, check_in, cycle, node, pod, profile};
use crate::snapshot::Snapshot;

fn claim(snapshot: &mut Snapshot, name: &str, change: Value) {
    let object = json!({"metadata": {"name": name, "namespace": "default"}, "spec": {}});
    let object: ResourceClaim = serde_json::from_value(both(object, change)).unwrap();
    snapshot.objects.resource_claims.insert(Key::namespaced("default", name), Arc::new(object));
}

fn named(name: &str) -> Value {
    json!({"spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": name}]}})
}

fn templated(made: Option<Value>) -> Value {
    let spec = json!({"spec": {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}});
    match made {
        Some(name) => {
            let made =
                json!({"status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": name}]}});
            both(spec, made)
        }
        None => spec,
    }
}

#[test]
fn a_pod_waits_for_claims_that_are_there_and_allocated() {
    let mut s = Snapshot::new([node("a", json!({})), node("b", json!({}))], []);
    let missing = "0/2 nodes are available: resourceclaim \"x\" not found.";
    check_in(&mut s, named("x"), Err(missing));
    let unmade = "0/2 nodes are available: pod \"default/new\": ResourceClaim not created yet.";
    check_in(&mut s, templated(None), Err(unmade));
    claim(&mut s, "x", json!({}));
    let unallocated = "0/2 nodes are available: resourceclaim \"x\" is not allocated: this scheduler allocates no \
                       devices.";
    check_in(&mut s, named("x"), Err(unallocated));
    check_in(&mut s, templated(Some(json!("x"))), Err(unallocated));
    // Somebody else has allocated it, on one node.
    let on_b = json!({"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}]});
    let allocation = json!({"devices": {"results": []}, "nodeSelector": on_b});
    claim(&mut s, "x", json!({"status": {"allocation": allocation}}));
    check_in(&mut s, named("x"), Ok("b"));
    check_in(&mut s, templated(Some(json!("x"))), Ok("b"));
    // Made for nothing: the template asked for none.
    let there = json!({"spec": {"nodeSelector": {"kubernetes.io/hostname": "a"}}});
    check_in(&mut s, both(templated(Some(Value::Null)), there), Ok("a"));
    let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    claim(&mut s, "x", going);
    check_in(&mut s, named("x"), Err("0/2 nodes are available: resourceclaim \"x\" is being deleted."));
}

#[test]
fn what_is_said_about_claims_comes_before_preemption() {
    let mut s = Snapshot::new([node("a", json!({}))], []);
    let says = |s: &mut Snapshot, new: Value| {
        let info = s.read(Arc::new(pod("new", new)));
        cycle(s, &profile(None), &info).node.unwrap_err()
    };
    let want = "0/1 nodes are available: resourceclaim \"x\" not found. no new claims to deallocate, preemption: 0/1 nodes \
                are available: 1 Preemption is not helpful for scheduling.";
    assert_eq!(says(&mut s, named("x")), want);
    let allocation = json!({"devices": {"results": []}, "nodeSelector": {"nodeSelectorTerms": []}});
    claim(&mut s, "x", json!({"status": {"allocation": allocation}}));
    let want = "0/1 nodes are available: 1 resourceclaim not available on the node. still not schedulable, preemption: \
                0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
    assert_eq!(says(&mut s, named("x")), want);
}

#[test]
fn a_pod_goes_where_its_features_are_declared() {
    let declares = |features: Value| json!({"status": {"declaredFeatures": features}});
    let rule = json!([{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}]);
    let restarts = json!({"spec": {"containers": [{"name": "c", "restartPolicyRules": rule}]}});
    let users = json!({"spec": {"hostNetwork": true, "hostUsers": false}});
    let nodes = [
        node("a", json!({})),
        node("b", declares(json!(["GuaranteedQoSPodCPUResize", "RestartAllContainersOnContainerExits"]))),
        node("c", declares(json!(["UserNamespacesHostNetworkSupport"]))),
    ];
    check(&nodes, &[], restarts.clone(), Ok("b"));
    check(&nodes, &[], users.clone(), Ok("c"));
    let none = "0/3 nodes are available: 3 node(s) didn't match Pod's required features.";
    check(&nodes, &[], both(restarts, users), Err(none));
    check(&nodes[..1], &[], json!({"spec": {"hostNetwork": true}}), Ok("a"));
}
