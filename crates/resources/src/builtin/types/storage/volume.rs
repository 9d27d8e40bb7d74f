//! PersistentVolumes.

use homeostat_model::clock;
use homeostat_model::field::{self, Error};
use homeostat_model::quantity::Quantity;
use homeostat_model::validation::dns1123_subdomain_value;
use serde_json::{Value, json};

use super::claim::ACCESS_MODES;
use crate::builtin::rules;
use crate::builtin::types::pod::{spec::node_selector, update::difference};
use crate::builtin::value::{Errors, IMMUTABLE, at, carry, entries, has, one_of, set, text, texts, wrong};
use crate::strategy::{Cx, Strategy};

/// PersistentVolumes.
pub(in crate::builtin::types) struct Volumes;

/// Kinds of volumes, in the order in which the reference looks at them.
const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

impl Strategy for Volumes {
    fn prepare_create(&self, cx: &Cx<'_>, new: &mut Value) {
        new["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": clock::seconds(cx.now)});
    }

    fn prepare_status(&self, cx: &Cx<'_>, new: &mut Value, old: &Value) {
        if text(new, "status.phase") != text(old, "status.phase")
            && at(new, "status.lastPhaseTransitionTime") == at(old, "status.lastPhaseTransitionTime")
        {
            set(new, "status.lastPhaseTransitionTime", clock::seconds(cx.now));
        }
    }

    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let spec = &new["spec"];
        let modes = texts(spec, "accessModes");
        if modes.is_empty() {
            errors.push(Error::required("spec.accessModes", ""));
        }
        for mode in &modes {
            if !ACCESS_MODES.contains(mode) {
                errors.push(Error::not_supported("spec.accessModes", *mode, &ACCESS_MODES));
            }
        }
        if modes.contains(&"ReadWriteOncePod") && modes.len() > 1 {
            let why = "may not use ReadWriteOncePod with other access modes";
            errors.push(Error::forbidden("spec.accessModes", why));
        }
        capacity(&mut errors, spec);
        let policy = text(spec, "persistentVolumeReclaimPolicy");
        if !policy.is_empty() {
            one_of(
                &mut errors,
                spec,
                "spec",
                "persistentVolumeReclaimPolicy",
                &["Delete", "Recycle", "Retain"],
            );
        }
        if has(spec, "nodeAffinity.required") {
            node_selector(&mut errors, "spec.nodeAffinity.required", at(spec, "nodeAffinity.required"));
        }
        source(&mut errors, spec);
        if text(spec, "hostPath.path") == "/" && policy == "Recycle" {
            let why = "may not be 'recycle' for a hostPath mount of '/'";
            errors.push(Error::forbidden("spec.persistentVolumeReclaimPolicy", why));
        }
        let class = text(spec, "storageClassName");
        if !class.is_empty() {
            wrong(&mut errors, "spec.storageClassName", class, dns1123_subdomain_value(class));
        }
        one_of(&mut errors, spec, "spec", "volumeMode", &["Block", "Filesystem"]);
        errors
    }

    fn validate_update(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = self.validate(cx, new);
        let sources = |volume: &Value| {
            let mut only = json!({});
            for kind in SOURCES {
                carry(&mut only, &volume["spec"], kind);
            }
            only
        };
        let (mut now, before) = (sources(new), sources(old));
        // Secrets of CSI volumes may be named later.
        for reference in ["controllerExpandSecretRef", "nodeExpandSecretRef"] {
            if !has(&before, &format!("csi.{reference}")) && has(&before, "csi") {
                carry(&mut now, &before, &format!("csi.{reference}"));
            }
        }
        if now != before {
            let why = format!(
                "spec.persistentvolumesource is immutable after creation\n{}",
                difference("spec.persistentvolumesource", &before, &now)
            );
            errors.push(Error::forbidden("spec.persistentvolumesource", why));
        }
        if at(new, "spec.volumeMode") != at(old, "spec.volumeMode") {
            errors.push(Error::invalid("volumeMode", at(new, "spec.volumeMode").clone(), IMMUTABLE));
        }
        if has(old, "spec.nodeAffinity") && at(new, "spec.nodeAffinity") != at(old, "spec.nodeAffinity") {
            errors.push(Error::invalid("nodeAffinity", at(new, "spec.nodeAffinity").clone(), IMMUTABLE));
        }
        errors
    }
}

fn capacity(errors: &mut Errors, spec: &Value) {
    let path = "spec.capacity";
    if !has(spec, path.trim_start_matches("spec.")) {
        errors.push(Error::required(path, ""));
        return;
    }
    if !has(spec, "capacity.storage") || entries(spec, "capacity").count() > 1 {
        errors.push(Error::not_supported(path, at(spec, "capacity").clone(), &["storage"]));
    }
    for (name, value) in entries(spec, "capacity") {
        let path = field::key(path, name);
        rules::quantity_value(errors, &path, name, value);
        if let Ok(q) = Quantity::from_value(value)
            && q.signum() <= 0
        {
            errors.push(Error::invalid(path, q.to_string(), "must be greater than zero"));
        }
    }
}

fn source(errors: &mut Errors, spec: &Value) {
    let given: Vec<&str> = SOURCES.into_iter().filter(|s| has(spec, s)).collect();
    for extra in given.iter().skip(1) {
        errors.push(Error::forbidden(format!("spec.{extra}"), "may not specify more than 1 volume type"));
    }
    let Some(first) = given.first() else {
        return errors.push(Error::required("spec", "must specify a volume type"));
    };
    let needs: &[&str] = match *first {
        "hostPath" | "local" => &["path"],
        "nfs" => &["server", "path"],
        "csi" => &["driver", "volumeHandle"],
        _ => &[],
    };
    for field in needs {
        rules::required(errors, at(spec, first), &format!("spec.{first}"), field);
    }
    if *first == "local" && !has(spec, "nodeAffinity") {
        errors.push(Error::required("metadata.annotations", "Local volume requires node affinity"));
    }
}
