//! Volumes: where they are, where they can be made, and how many a node takes.

use std::sync::Arc;

use homeostat_sdk::Key;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode, CSIStorageCapacity, StorageClass};
use serde_json::{Value, json};

use super::{both, check_in, node, on, pod, zoned};
use crate::snapshot::{Room, Snapshot};

const ZONE: &str = "topology.kubernetes.io/zone";

fn uses(claim: &str) -> Value {
    json!({"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}})
}

fn claim(snapshot: &mut Snapshot, name: &str, change: Value) {
    let claim = both(
        json!({"metadata": {"name": name, "namespace": "default"}, "spec": {"storageClassName": "late",
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
        change,
    );
    let claim: PersistentVolumeClaim = serde_json::from_value(claim).unwrap();
    snapshot.objects.claims.insert(Key::namespaced("default", name), Arc::new(claim));
}

fn volume(snapshot: &mut Snapshot, name: &str, size: &str, zone: &str) {
    let volume: PersistentVolume = serde_json::from_value(json!({"metadata": {"name": name}, "spec": {
        "storageClassName": "late", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": size},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions":
            [{"key": ZONE, "operator": "In", "values": [zone]}]}]}}}}))
    .unwrap();
    snapshot.objects.volumes.insert(name.to_owned(), Arc::new(volume));
}

fn class(snapshot: &mut Snapshot, provisioner: &str, mode: &str) {
    let class: StorageClass = serde_json::from_value(json!({"metadata": {"name": "late"}, "provisioner": provisioner,
        "volumeBindingMode": mode, "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["2"]}]}]}))
    .unwrap();
    snapshot.objects.classes.insert("late".to_owned(), Arc::new(class));
}

fn world() -> Snapshot {
    Snapshot::new([zoned("a", "1"), zoned("c", "2")], [])
}

fn bound(volume: &str) -> Value {
    json!({"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": volume}})
}

#[test]
fn claims_must_be_there_and_bound_or_wait_for_the_pod() {
    let mut w = world();
    let missing = "0/2 nodes are available: persistentvolumeclaim \"data\" not found.";
    check_in(&mut w, uses("data"), Err(missing));
    claim(&mut w, "data", json!({}));
    let unbound = "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims.";
    check_in(&mut w, uses("data"), Err(unbound));
    class(&mut w, "example.com/disks", "Immediate");
    check_in(&mut w, uses("data"), Err(unbound));
    class(&mut w, "example.com/disks", "WaitForFirstConsumer");
    check_in(&mut w, uses("data"), Ok("c"));
    class(&mut w, "kubernetes.io/no-provisioner", "WaitForFirstConsumer");
    let none = "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind.";
    check_in(&mut w, uses("data"), Err(none));
    volume(&mut w, "small", "1Mi", "1");
    check_in(&mut w, uses("data"), Err(none));
    volume(&mut w, "large", "5Gi", "1");
    check_in(&mut w, uses("data"), Ok("a"));
    // Chosen for a pod that is being bound.
    w.objects.promised.insert("other".into(), vec!["large".to_owned()]);
    check_in(&mut w, uses("data"), Err(none));
    let ephemeral =
        json!({"spec": {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]}});
    let waits = "0/2 nodes are available: waiting for ephemeral volume controller to create the \
                 persistentvolumeclaim \"new-v\".";
    check_in(&mut w, ephemeral, Err(waits));
}

#[test]
fn volumes_are_made_where_there_is_room_for_them() {
    const DRIVER: &str = "example.com/disks";
    let mut w = world();
    claim(&mut w, "data", json!({}));
    class(&mut w, DRIVER, "WaitForFirstConsumer");
    let driver = |tells: bool| -> CSIDriver {
        serde_json::from_value(json!({"metadata": {"name": DRIVER}, "spec": {"storageCapacity": tells}}))
            .unwrap()
    };
    w.objects.drivers.insert(DRIVER.into(), Arc::new(driver(false)));
    check_in(&mut w, uses("data"), Ok("c"));
    w.objects.drivers.insert(DRIVER.into(), Arc::new(driver(true)));
    let far = "node(s) didn't find available persistent volumes to bind";
    let none = format!("0/2 nodes are available: 1 node(s) did not have enough free storage, 1 {far}.");
    check_in(&mut w, uses("data"), Err(&none));
    let mut check = |change: Value, fits: bool| {
        let capacity = json!({"metadata": {"name": "c", "namespace": "disks"}, "storageClassName": "late",
            "capacity": "2Gi", "nodeTopology": {"matchLabels": {ZONE: "2"}}});
        let capacity: CSIStorageCapacity = serde_json::from_value(both(capacity, change)).unwrap();
        w.objects.capacities.insert(Key::namespaced("disks", "c"), Room::new(&capacity));
        check_in(&mut w, uses("data"), if fits { Ok("c") } else { Err(&none) });
    };
    check(json!({}), true);
    check(json!({"capacity": "1Gi"}), true);
    check(json!({"capacity": "900Mi"}), false);
    check(json!({"maximumVolumeSize": "512Mi"}), false);
    check(json!({"nodeTopology": {"matchLabels": {ZONE: "1"}}}), false);
    check(json!({"nodeTopology": null}), false);
    check(json!({"nodeTopology": {"matchLabels": null}}), true);
    check(json!({"storageClassName": "other"}), false);
    check(json!({"capacity": null}), false);
    // A volume that is there needs no room.
    volume(&mut w, "large", "5Gi", "1");
    check_in(&mut w, uses("data"), Ok("a"));
}

#[test]
fn pods_go_to_their_volumes() {
    let mut w = world();
    claim(&mut w, "data", bound("disk"));
    let gone = "0/2 nodes are available: 2 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s).";
    check_in(&mut w, uses("data"), Err(gone));
    volume(&mut w, "disk", "1Gi", "2");
    check_in(&mut w, uses("data"), Ok("c"));
    volume(&mut w, "disk", "1Gi", "3");
    let far = "0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity.";
    check_in(&mut w, uses("data"), Err(far));
    // By labels alone, as before node affinity.
    let labels = json!({"metadata": {"name": "disk", "labels": {ZONE: "9__2"}}, "spec": {}});
    w.objects.volumes.insert("disk".into(), Arc::new(serde_json::from_value(labels).unwrap()));
    check_in(&mut w, uses("data"), Ok("c"));
}

#[test]
fn some_claims_are_for_one_pod() {
    let mut w =
        Snapshot::new([node("a", json!({})), node("b", json!({}))], [pod("x", on("a", uses("data")))]);
    claim(&mut w, "data", both(bound("disk"), json!({"spec": {"accessModes": ["ReadWriteOncePod"]}})));
    let disk = json!({"metadata": {"name": "disk"}, "spec": {}});
    w.objects.volumes.insert("disk".into(), Arc::new(serde_json::from_value(disk).unwrap()));
    let why = "0/2 nodes are available: 2 node has pod using PersistentVolumeClaim with the same name and \
               ReadWriteOncePod access mode.";
    check_in(&mut w, uses("data"), Err(why));
}

#[test]
fn a_node_takes_so_many_volumes() {
    let mut w = Snapshot::new([node("a", json!({}))], [pod("x", on("a", uses("one")))]);
    for (name, handle) in [("one", "h1"), ("two", "h2"), ("same", "h1")] {
        claim(&mut w, name, bound(name));
        let v = json!({"metadata": {"name": name}, "spec": {"csi": {"driver": "d", "volumeHandle": handle}}});
        w.objects.volumes.insert(name.into(), Arc::new(serde_json::from_value(v).unwrap()));
    }
    let limits: CSINode = serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": {"drivers":
        [{"name": "d", "nodeID": "a", "allocatable": {"count": 1}}]}}))
    .unwrap();
    w.objects.storage_nodes.insert("a".into(), Arc::new(limits));
    check_in(&mut w, uses("same"), Ok("a"));
    let why = "0/1 nodes are available: 1 node(s) exceed max volume count.";
    check_in(&mut w, uses("two"), Err(why));
}
