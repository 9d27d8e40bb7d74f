//! PersistentVolumeClaims, and the claim templates of StatefulSets and ephemeral volumes.

use homeostat_model::GroupVersion;
use homeostat_model::field::{self, Error, child};
use homeostat_model::quantity::Quantity;
use homeostat_model::validation::{self, dns1123_subdomain_value};
use serde_json::Value;

use crate::builtin::types::pod::update::difference;
use crate::builtin::value::{
    Errors, IMMUTABLE, at, carry, default, empty, has, one_of, quantity, set, text, texts, wrong,
};
use crate::strategy::{Cx, Strategy};

/// Ways in which a volume may be mounted, as error texts list them.
pub(super) const ACCESS_MODES: [&str; 4] =
    ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// PersistentVolumeClaims.
pub(in crate::builtin::types) struct Claims;

impl Strategy for Claims {
    fn default(&self, _gv: &GroupVersion, object: &mut Value) {
        data_source(object);
    }

    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        spec(&mut errors, "spec", &new["spec"]);
        errors
    }

    fn validate_update(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = self.validate(cx, new);
        update(&mut errors, new, old);
        errors
    }

    fn validate_status(&self, _cx: &Cx<'_>, new: &Value, _old: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        if empty(new, "spec.resources") {
            errors.push(Error::invalid(
                "spec.resources",
                Value::Null,
                "is required for persistentVolumeClaim",
            ));
        }
        for (name, value) in crate::builtin::value::entries(new, "status.capacity") {
            let path = field::key("status.capacity", name);
            crate::builtin::rules::quantity_value(&mut errors, &path, name, value);
        }
        errors
    }
}

/// `dataSource` and `dataSourceRef` say the same where both can.
fn data_source(claim: &mut Value) {
    let Some(spec) = claim.get_mut("spec").filter(|s| s.is_object()) else { return };
    match (has(spec, "dataSource"), has(spec, "dataSourceRef")) {
        (true, false) => {
            let source = at(spec, "dataSource").clone();
            set(spec, "dataSourceRef", source);
        }
        (false, true) if empty(spec, "dataSourceRef.namespace") => {
            let group = text(spec, "dataSourceRef.apiGroup");
            let kind = text(spec, "dataSourceRef.kind");
            let known = matches!(
                (group, kind),
                ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
            );
            if known {
                let source = at(spec, "dataSourceRef").clone();
                set(spec, "dataSource", source);
            }
        }
        _ => {}
    }
}

/// Rules of a `PersistentVolumeClaimSpec` at `path`.
pub(in crate::builtin::types) fn spec(errors: &mut Errors, path: &str, spec: &Value) {
    let modes = texts(spec, "accessModes");
    let at_modes = child(path, "accessModes");
    if modes.is_empty() {
        errors.push(Error::required(&*at_modes, "at least 1 access mode is required"));
    }
    if has(spec, "selector") {
        errors.extend(validation::label_selector(at(spec, "selector"), &child(path, "selector")));
    }
    for mode in &modes {
        if !ACCESS_MODES.contains(mode) {
            errors.push(Error::not_supported(&*at_modes, *mode, &ACCESS_MODES));
        }
    }
    if modes.contains(&"ReadWriteOncePod") && modes.len() > 1 {
        let why = "may not use ReadWriteOncePod with other access modes";
        errors.push(Error::forbidden(&*at_modes, why));
    }
    let at_storage = field::key(&child(path, "resources"), "storage");
    let storage = at(spec, "resources.requests.storage");
    match Quantity::from_value(storage) {
        _ if storage.is_null() => errors.push(Error::required(at_storage, "")),
        Ok(q) if q.signum() <= 0 => {
            errors.push(Error::invalid(at_storage, q.to_string(), "must be greater than zero"))
        }
        _ => {}
    }
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        wrong(errors, &child(path, "storageClassName"), class, dns1123_subdomain_value(class));
    }
    one_of(errors, spec, path, "volumeMode", &["Block", "Filesystem"]);
    for source in ["dataSource", "dataSourceRef"] {
        let (value, path) = (at(spec, source), child(path, source));
        if value.is_null() {
            continue;
        }
        for part in ["name", "kind"] {
            if text(value, part).is_empty() {
                errors.push(Error::required(child(&path, part), ""));
            }
        }
        if text(value, "apiGroup").is_empty()
            && text(value, "kind") != "PersistentVolumeClaim"
            && has(value, "kind")
        {
            errors.push(Error::invalid(
                &*path,
                text(value, "kind"),
                "must be 'PersistentVolumeClaim' when referencing the default apiGroup",
            ));
        }
    }
}

fn update(errors: &mut Errors, new: &Value, old: &Value) {
    let bound = text(old, "status.phase") == "Bound";
    let mut allowed = new["spec"].clone();
    // The volume may be named once, and a claim without a class may be given the default one.
    if empty(old, "spec.volumeName") && !empty(new, "spec.volumeName") {
        carry(&mut allowed, &old["spec"], "volumeName");
    }
    if !has(old, "spec.storageClassName") && has(new, "spec.storageClassName") && !bound {
        carry(&mut allowed, &old["spec"], "storageClassName");
    }
    if text(new, "status.phase") == "Bound" {
        carry(&mut allowed, &old["spec"], "resources.requests.storage");
        carry(&mut allowed, &old["spec"], "volumeAttributesClassName");
    } else if at(old, "spec.volumeAttributesClassName").is_null() {
        carry(&mut allowed, &old["spec"], "volumeAttributesClassName");
    }
    default(&mut allowed, "resources", serde_json::json!({}));
    let mut before = old["spec"].clone();
    default(&mut before, "resources", serde_json::json!({}));
    if allowed != before {
        let why = format!(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound \
             claims\n{}",
            difference("spec", &before, &allowed)
        );
        errors.push(Error::forbidden("spec", why));
    }
    let size = quantity;
    let (now, was) =
        (size(new, "spec.resources.requests.storage"), size(old, "spec.resources.requests.storage"));
    if let (Some(now), Some(was)) = (now, was)
        && now < was
    {
        let path = "spec.resources.requests.storage";
        match size(old, "status.capacity.storage") {
            Some(real) if now <= real => {
                errors.push(Error::forbidden(path, "field can not be less than status.capacity"))
            }
            _ => {}
        }
    }
    if at(new, "spec.volumeMode") != at(old, "spec.volumeMode") {
        errors.push(Error::invalid("volumeMode", at(new, "spec.volumeMode").clone(), IMMUTABLE));
    }
}
