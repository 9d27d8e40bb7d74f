//! StorageClasses, VolumeAttributesClasses, CSIDrivers, CSINodes and VolumeAttachments.

use std::collections::BTreeSet;

use homeostat_model::field::{self, Error, child, index};
use homeostat_model::validation::{dns1123_subdomain_value, qualified_name};
use serde_json::Value;

use crate::builtin::rules;
use crate::builtin::value::{Errors, IMMUTABLE, at, carry, has, items, one_of, text, unchanged, wrong};
use crate::strategy::{Cx, Strategy};

/// StorageClasses.
pub(in crate::builtin::types) struct StorageClasses;

impl Strategy for StorageClasses {
    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        if rules::required(&mut errors, new, "", "provisioner") {
            let name = text(new, "provisioner").to_lowercase();
            wrong(&mut errors, "provisioner", &name, qualified_name(&name));
        }
        one_of(&mut errors, new, "", "reclaimPolicy", &["Delete", "Retain"]);
        one_of(&mut errors, new, "", "volumeBindingMode", &["Immediate", "WaitForFirstConsumer"]);
        errors
    }

    fn validate_update(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = self.validate(cx, new);
        for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            unchanged(&mut errors, new, old, field);
        }
        errors
    }
}

/// VolumeAttributesClasses.
pub(in crate::builtin::types) struct AttributesClasses;

impl Strategy for AttributesClasses {
    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        if rules::required(&mut errors, new, "", "driverName") {
            let name = text(new, "driverName");
            wrong(&mut errors, "driverName", name, dns1123_subdomain_value(name));
        }
        errors
    }

    fn validate_update(&self, _cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        for field in ["driverName", "parameters"] {
            unchanged(&mut errors, new, old, field);
        }
        errors
    }
}

/// CSIDrivers.
pub(in crate::builtin::types) struct CsiDrivers;

impl Strategy for CsiDrivers {
    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let spec = &new["spec"];
        for field in ["attachRequired", "podInfoOnMount", "storageCapacity"] {
            if !has(spec, field) {
                errors.push(Error::required(child("spec", field), ""));
            }
        }
        let policies = ["ReadWriteOnceWithFSType", "None", "File"];
        one_of(&mut errors, spec, "spec", "fsGroupPolicy", &policies);
        for (i, mode) in items(spec, "volumeLifecycleModes").iter().enumerate() {
            let allowed = ["Persistent", "Ephemeral"];
            let mode = mode.as_str().unwrap_or_default();
            if !allowed.contains(&mode) {
                let path = index("spec.volumeLifecycleModes", i);
                errors.push(Error::not_supported(path, mode, &["Ephemeral", "Persistent"]));
            }
        }
        errors
    }

    fn validate_update(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = self.validate(cx, new);
        for field in ["attachRequired", "fsGroupPolicy", "volumeLifecycleModes"] {
            unchanged(&mut errors, new, old, &child("spec", field));
        }
        errors
    }
}

/// CSINodes.
pub(in crate::builtin::types) struct CsiNodes;

impl Strategy for CsiNodes {
    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors: Errors = Vec::new();
        let mut names = BTreeSet::new();
        for (i, driver) in items(new, "spec.drivers").iter().enumerate() {
            let path = index("spec.drivers", i);
            rules::required(&mut errors, driver, &path, "name");
            rules::required(&mut errors, driver, &path, "nodeID");
            if !names.insert(text(driver, "name")) {
                errors.push(Error::duplicate(child(&path, "name"), text(driver, "name")));
            }
        }
        errors
    }
}

/// VolumeAttachments.
pub(in crate::builtin::types) struct VolumeAttachments;

impl Strategy for VolumeAttachments {
    fn prepare_update(&self, _cx: &Cx<'_>, new: &mut Value, old: &Value) {
        carry(new, old, "status");
    }

    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        rules::required(&mut errors, &new["spec"], "spec", "attacher");
        rules::required(&mut errors, &new["spec"], "spec", "nodeName");
        let (volume, inline) =
            (has(new, "spec.source.persistentVolumeName"), has(new, "spec.source.inlineVolumeSpec"));
        if !volume && !inline {
            let why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
            errors.push(Error::required("spec.source", why));
        }
        if volume && inline {
            let why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
            errors.push(Error::forbidden("spec.source", why));
        }
        errors
    }

    fn validate_update(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = self.validate(cx, new);
        if at(new, "spec") != at(old, "spec") {
            errors.push(Error::invalid("spec", at(new, "spec").clone(), IMMUTABLE));
        }
        errors
    }
}
