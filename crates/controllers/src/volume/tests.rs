//! Claims and volumes in tables.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::{Value, json};

use super::plan::{self, Fate, Reclaim, Step, World};
use super::{BIND_COMPLETED, BOUND_BY_CONTROLLER, PROVISIONED_BY, SIMULATED, provision};

fn merge(into: &mut Value, other: &Value) {
    match (into, other) {
        (Value::Object(into), Value::Object(other)) => {
            for (k, v) in other {
                merge(into.entry(k.clone()).or_insert(Value::Null), v);
            }
        }
        (into, other) => *into = other.clone(),
    }
}

/// A claim on 2Gi without a class.
fn claim(extra: Value) -> PersistentVolumeClaim {
    let mut claim = json!({"metadata": {"name": "c", "namespace": "n", "uid": "u"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}},
            "storageClassName": ""}});
    merge(&mut claim, &extra);
    serde_json::from_value(claim).unwrap()
}

/// An available volume of a size.
fn volume(name: &str, size: &str, extra: Value) -> Arc<PersistentVolume> {
    let mut volume = json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size}, "persistentVolumeReclaimPolicy": "Retain"}, "status": {"phase": "Available"}});
    merge(&mut volume, &extra);
    Arc::new(serde_json::from_value(volume).unwrap())
}

fn for_claim(uid: &str) -> Value {
    json!({"spec": {"claimRef": {"name": "c", "namespace": "n", "uid": uid}}})
}

fn class(name: &str, provisioner: &str, extra: Value) -> Arc<StorageClass> {
    let mut class = json!({"metadata": {"name": name}, "provisioner": provisioner});
    merge(&mut class, &extra);
    Arc::new(serde_json::from_value(class).unwrap())
}

fn pod(name: &str, node: Option<&str>) -> Arc<Pod> {
    Arc::new(
        serde_json::from_value(
            json!({"metadata": {"name": name}, "spec": {"containers": [], "nodeName": node}}),
        )
        .unwrap(),
    )
}

fn show(step: Step) -> String {
    match step {
        Step::Wait(None) => "wait".into(),
        Step::Wait(Some(event)) | Step::Lose(event) => {
            let text = format!("{event:?}");
            let part = |field: &str| {
                let from = text.find(&format!("{field}: \"")).unwrap() + field.len() + 3;
                text[from..].split_once("\", ").unwrap().0.replace("\\\"", "\"")
            };
            format!("{}: {}", part("reason"), part("note"))
        }
        Step::Bind(volume) => format!("bind {}", volume.metadata.name.as_deref().unwrap()),
        Step::Classify(class) => format!("class {class}"),
        Step::Provision(class, node) => {
            format!("make {} {}", class.metadata.name.as_deref().unwrap(), node.unwrap_or_default())
        }
        Step::Elsewhere(provisioner) => format!("elsewhere {provisioner}"),
    }
}

#[track_caller]
fn check_in(
    extra: Value,
    volumes: &[Arc<PersistentVolume>],
    classes: &[Arc<StorageClass>],
    pods: &[Arc<Pod>],
    want: &str,
) {
    let step = plan::claim(&claim(extra), &World { volumes, classes, pods });
    let got = step.map_or_else(|e| format!("error {e}"), show);
    assert_eq!(got.trim_end(), want);
}

#[track_caller]
fn check(extra: Value, volumes: &[Arc<PersistentVolume>], want: &str) {
    check_in(extra, volumes, &[], &[], want);
}

const NONE_FREE: &str =
    "FailedBinding: no persistent volumes available for this claim and no storage class is set";

#[test]
fn the_closest_volume_is_taken() {
    let all = [volume("a", "10Gi", json!({})), volume("b", "3Gi", json!({})), volume("c", "1Gi", json!({}))];
    check(json!({}), &all, "bind b");
    check(json!({"spec": {"resources": {"requests": {"storage": "4Gi"}}}}), &all, "bind a");
    check(json!({"spec": {"resources": {"requests": {"storage": "11Gi"}}}}), &all, NONE_FREE);
    // Fewer ways of access are closer than a smaller size.
    let more = volume("d", "2Gi", json!({"spec": {"accessModes": ["ReadWriteOnce", "ReadWriteMany"]}}));
    check(json!({}), &[all[0].clone(), more.clone()], "bind a");
    check(json!({"spec": {"accessModes": ["ReadWriteMany"]}}), &[all[0].clone(), more], "bind d");
}

#[test]
fn what_does_not_fit_is_passed_over() {
    let not = |extra: Value| check(json!({}), &[volume("a", "2Gi", extra)], NONE_FREE);
    not(json!({"status": {"phase": "Released"}}));
    not(json!({"status": {"phase": "Pending"}}));
    not(json!({"spec": {"storageClassName": "fast"}}));
    not(json!({"spec": {"volumeMode": "Block"}}));
    not(json!({"spec": {"claimRef": {"name": "other", "namespace": "n"}}}));
    not(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    let labelled = [volume("a", "2Gi", json!({"metadata": {"labels": {"tier": "db"}}}))];
    check(json!({"spec": {"selector": {"matchLabels": {"tier": "db"}}}}), &labelled, "bind a");
    check(json!({"spec": {"selector": {"matchLabels": {"tier": "web"}}}}), &labelled, NONE_FREE);
    check(json!({"spec": {"selector": {}}}), &labelled, "bind a");
}

#[test]
fn reservations_hold_in_both_directions() {
    let small = volume("a", "2Gi", json!({}));
    check(json!({}), &[small.clone(), volume("z", "9Gi", for_claim(""))], "bind z");
    check(json!({}), &[small.clone(), volume("z", "9Gi", for_claim("other"))], "bind a");
    let named = json!({"spec": {"volumeName": "z"}});
    check(named.clone(), &[small], "wait");
    check(named.clone(), &[volume("z", "9Gi", json!({}))], "bind z");
    check(named.clone(), &[volume("z", "9Gi", for_claim("u"))], "bind z");
    check(
        named.clone(),
        &[volume("z", "9Gi", for_claim("other"))],
        "FailedBinding: volume \"z\" already bound to a different claim.",
    );
    let mismatch = |extra: Value, why: &str| {
        let want = format!("VolumeMismatch: Cannot bind to requested volume \"z\": {why}");
        check(json!({"spec": {"volumeName": "z"}}), &[volume("z", "2Gi", extra)], &want);
    };
    mismatch(json!({"spec": {"capacity": {"storage": "1Gi"}}}), "requested PV is too small");
    mismatch(json!({"spec": {"storageClassName": "fast"}}), "storageClassName does not match");
    mismatch(json!({"spec": {"volumeMode": "Block"}}), "incompatible volumeMode");
    mismatch(json!({"spec": {"accessModes": ["ReadOnlyMany"]}}), "incompatible accessMode");
}

#[test]
fn a_binding_that_was_whole_can_be_lost() {
    let done = |name: &str| json!({"metadata": {"annotations": {BIND_COMPLETED: "yes"}}, "spec": {"volumeName": name}});
    check(done("a"), &[volume("a", "2Gi", for_claim("u"))], "bind a");
    check(done("a"), &[volume("a", "2Gi", json!({}))], "bind a");
    let lost = "ClaimLost: Bound claim has lost its PersistentVolume. Data on the volume is lost!";
    check(done("a"), &[], lost);
    let lost = "ClaimLost: Bound claim has lost reference to PersistentVolume. Data on the volume is lost!";
    check(done(""), &[], lost);
    let two = "ClaimMisbound: Two claims are bound to the same volume, this one is bound incorrectly";
    check(done("a"), &[volume("a", "2Gi", for_claim("other"))], two);
}

#[test]
fn volumes_are_made_by_class() {
    let fast = json!({"spec": {"storageClassName": "fast"}});
    let check = |classes: &[Arc<StorageClass>], want: &str| check_in(fast.clone(), &[], classes, &[], want);
    check(&[], "ProvisioningFailed: storageclass.storage.k8s.io \"fast\" not found");
    check(&[class("fast", SIMULATED, json!({}))], "make fast");
    check(&[class("fast", "csi.example.com", json!({}))], "elsewhere csi.example.com");
    let local = "kubernetes.io/no-provisioner";
    check(
        &[class("fast", local, json!({}))],
        "ProvisioningFailed: no volume plugin matched name: kubernetes.io/no-provisioner",
    );
    let picky = json!({"spec": {"storageClassName": "fast", "selector": {"matchLabels": {"a": "b"}}}});
    check_in(
        picky,
        &[],
        &[class("fast", SIMULATED, json!({}))],
        &[],
        "ProvisioningFailed: failed to provision volume with StorageClass \"fast\": claim Selector is not supported",
    );
}

#[test]
fn a_class_that_waits_waits_for_a_pod() {
    let late = [class("late", SIMULATED, json!({"volumeBindingMode": "WaitForFirstConsumer"}))];
    let check = |extra: Value, pods: &[Arc<Pod>], want: &str| {
        let mut claim = json!({"spec": {"storageClassName": "late"}});
        merge(&mut claim, &extra);
        let free = volume("a", "2Gi", json!({"spec": {"storageClassName": "late"}}));
        check_in(claim, &[free], &late, pods, want);
    };
    let none = "WaitForFirstConsumer: waiting for first consumer to be created before binding";
    check(json!({}), &[], none);
    check(json!({}), &[pod("p", None)], "WaitForPodScheduled: waiting for pod p to be scheduled");
    let two = [pod("p", None), pod("q", None)];
    check(json!({}), &two, "WaitForPodScheduled: waiting for pods p,q to be scheduled");
    check(json!({}), &[pod("p", Some("n1"))], "make late n1");
    let chosen = json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n2"}}});
    check(chosen, &[pod("p", None)], "make late n2");
}

#[test]
fn a_default_class_comes_late_too() {
    let default = |name: &str, time: &str| {
        class(
            name,
            SIMULATED,
            json!({"metadata": {"creationTimestamp": time,
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}}),
        )
    };
    let classes = [
        class("a", SIMULATED, json!({})),
        default("b", "2026-01-01T00:00:00Z"),
        default("c", "2026-01-02T00:00:00Z"),
        default("d", "2026-01-02T00:00:00Z"),
    ];
    check_in(json!({"spec": {"storageClassName": null}}), &[], &classes, &[], "class c");
    check_in(json!({}), &[], &classes, &[], NONE_FREE);
}

#[test]
fn a_made_volume_is_its_claims_own() {
    let class = class("fast", SIMULATED, json!({"reclaimPolicy": "Delete", "mountOptions": ["noatime"]}));
    let claim = claim(json!({"spec": {"storageClassName": "fast", "volumeMode": "Filesystem"}}));
    assert_eq!(
        json!(provision::volume(&claim, &class)),
        json!({"apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": "pvc-u", "annotations": {PROVISIONED_BY: SIMULATED}},
            "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"},
                "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "n", "name": "c", "uid": "u"},
                "hostPath": {"path": "/var/lib/homeostat/volumes/pvc-u", "type": "DirectoryOrCreate"},
                "mountOptions": ["noatime"], "persistentVolumeReclaimPolicy": "Delete", "storageClassName": "fast",
                "volumeMode": "Filesystem"}})
    );
}

#[test]
fn volumes_follow_their_claims() {
    let fate = |extra: Value, claim: Option<Value>| {
        plan::volume(&volume("a", "2Gi", extra), claim.map(self::claim).as_ref())
    };
    assert_eq!(fate(json!({}), None), Fate::Phase("Available"));
    assert_eq!(fate(for_claim(""), None), Fate::Phase("Available"));
    let has = |name: &str| Some(json!({"spec": {"volumeName": name}}));
    assert_eq!(fate(for_claim("u"), has("a")), Fate::Phase("Bound"));
    assert_eq!(fate(for_claim("u"), has("")), Fate::Wait);
    assert_eq!(fate(for_claim("u"), has("b")), Fate::Unbind);
    let mut block = for_claim("u");
    block["spec"]["volumeMode"] = "Block".into();
    assert!(matches!(fate(block, has("")), Fate::Mismatch(..)));
    let mut ours = for_claim("u");
    merge(
        &mut ours,
        &json!({"metadata": {"annotations": {PROVISIONED_BY: SIMULATED, BOUND_BY_CONTROLLER: "yes"}},
        "spec": {"persistentVolumeReclaimPolicy": "Delete"}}),
    );
    assert_eq!(fate(ours, has("b")), Fate::Release(Reclaim::Delete));
}

#[test]
fn what_is_released_is_reclaimed_by_policy() {
    let check = |policy: &str, by: Option<&str>, source: Value, want: Result<Reclaim, &str>| {
        let mut extra = for_claim("u");
        merge(&mut extra, &json!({"spec": {"persistentVolumeReclaimPolicy": policy}}));
        merge(&mut extra, &json!({"spec": source}));
        if let Some(by) = by {
            merge(&mut extra, &json!({"metadata": {"annotations": {PROVISIONED_BY: by}}}));
        }
        match (plan::volume(&volume("a", "2Gi", extra), None), want) {
            (Fate::Release(got), Ok(want)) => assert_eq!(got, want),
            (Fate::Release(Reclaim::Fail(reason, _)), Err(want)) => assert_eq!(reason, want),
            (got, want) => panic!("{got:?}, not {want:?}"),
        }
    };
    let host = |path: &str| json!({"hostPath": {"path": path}});
    let csi = json!({"csi": {"driver": "d", "volumeHandle": "h"}});
    check("Retain", Some(SIMULATED), host("/a"), Ok(Reclaim::Keep));
    check("Delete", Some(SIMULATED), host("/a"), Ok(Reclaim::Delete));
    check("Delete", Some("csi.example.com"), csi.clone(), Ok(Reclaim::Keep));
    check("Delete", None, csi, Err("VolumeFailedDelete"));
    check("Delete", None, host("/tmp/x"), Ok(Reclaim::Delete));
    check("Delete", None, host("/data"), Err("VolumeFailedDelete"));
    check("Recycle", None, host("/tmp/x"), Err("VolumeFailedRecycle"));
    check("Burn", None, host("/tmp/x"), Err("VolumeUnknownReclaimPolicy"));
}
