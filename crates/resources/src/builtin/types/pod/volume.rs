//! Rules of `spec.volumes`: a name, one source, and what each source needs.

use std::collections::BTreeSet;

use homeostat_model::field::{Error, child, index};
use homeostat_model::quantity::Quantity;
use serde_json::Value;

use super::container::{descending_path, field_ref, resource_field_ref};
use crate::builtin::rules::{self, config_key, required_label};
use crate::builtin::types::storage::claim;
use crate::builtin::value::{Errors, at, has, int, items, one_of, text, wrong};

/// Checks the volumes; their names are what containers may mount.
pub(super) fn volumes<'a>(errors: &mut Errors, path: &str, spec: &'a Value) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for (i, volume) in items(spec, "volumes").iter().enumerate() {
        let path = index(&child(path, "volumes"), i);
        let before = errors.len();
        source(errors, &path, volume);
        let name = text(volume, "name");
        required_label(errors, &child(&path, "name"), name);
        if names.contains(name) {
            errors.push(Error::duplicate(child(&path, "name"), name));
        } else if errors.len() == before {
            names.insert(name);
        }
    }
    names
}

fn source(errors: &mut Errors, path: &str, volume: &Value) {
    let given: Vec<&str> =
        volume.as_object().into_iter().flatten().map(|(k, _)| &**k).filter(|k| *k != "name").collect();
    for (i, kind) in given.iter().enumerate() {
        let path = child(path, kind);
        if i > 0 {
            errors.push(Error::forbidden(path, "may not specify more than 1 volume type"));
        } else {
            one(errors, &path, kind, &volume[*kind]);
        }
    }
    if given.is_empty() {
        errors.push(Error::required(path, "must specify a volume type"));
    }
}

/// Fields that a source cannot do without.
fn needs(kind: &str) -> &'static [&'static str] {
    match kind {
        "hostPath" => &["path"],
        "secret" => &["secretName"],
        "configMap" => &["name"],
        "persistentVolumeClaim" => &["claimName"],
        "nfs" => &["server", "path"],
        "csi" => &["driver"],
        "image" => &["reference"],
        "gcePersistentDisk" => &["pdName"],
        "awsElasticBlockStore" | "cinder" => &["volumeID"],
        "gitRepo" => &["repository"],
        "azureFile" => &["secretName", "shareName"],
        "azureDisk" => &["diskName", "diskURI"],
        "glusterfs" => &["endpoints", "path"],
        "rbd" => &["image"],
        "iscsi" => &["targetPortal", "iqn"],
        "vsphereVolume" => &["volumePath"],
        "quobyte" => &["registry", "volume"],
        "portworxVolume" => &["volumeID"],
        "scaleIO" => &["gateway", "system", "volumeName"],
        "flexVolume" => &["driver"],
        _ => &[],
    }
}

fn one(errors: &mut Errors, path: &str, kind: &str, source: &Value) {
    for field in needs(kind) {
        rules::required(errors, source, path, field);
    }
    match kind {
        "emptyDir" => {
            let limit = at(source, "sizeLimit");
            if Quantity::from_value(limit).is_ok_and(|q| q.signum() < 0) {
                errors.push(Error::forbidden(
                    child(path, "sizeLimit"),
                    "SizeLimit field must be a valid resource quantity",
                ));
            }
        }
        "hostPath" => {
            if text(source, "path").split('/').any(|p| p == "..") {
                errors.push(Error::invalid(
                    child(path, "path"),
                    text(source, "path"),
                    "must not contain '..'",
                ));
            }
            let kinds = [
                "",
                "BlockDevice",
                "CharDevice",
                "Directory",
                "DirectoryOrCreate",
                "File",
                "FileOrCreate",
                "Socket",
            ];
            one_of(errors, source, path, "type", &kinds);
        }
        "nfs" => {
            let value = text(source, "path");
            if !value.is_empty() && !value.starts_with('/') {
                errors.push(Error::invalid(child(path, "path"), value, "must be an absolute path"));
            }
        }
        "secret" | "configMap" => {
            mode(errors, &child(path, "defaultMode"), source, "defaultMode");
            keys(errors, path, source);
        }
        "downwardAPI" => {
            mode(errors, &child(path, "defaultMode"), source, "defaultMode");
            downward(errors, path, source);
        }
        "projected" => {
            mode(errors, &child(path, "defaultMode"), source, "defaultMode");
            projected(errors, path, source);
        }
        "ephemeral" => {
            let path = child(path, "volumeClaimTemplate");
            match at(source, "volumeClaimTemplate") {
                Value::Null => errors.push(Error::required(path, "")),
                template => claim::spec(errors, &child(&path, "spec"), at(template, "spec")),
            }
        }
        "image" => one_of(errors, source, path, "pullPolicy", &["Always", "IfNotPresent", "Never"]),
        _ => {}
    }
}

fn mode(errors: &mut Errors, path: &str, source: &Value, field: &str) {
    if let Some(mode) = int(source, field).filter(|m| !(0..=0o777).contains(m)) {
        let why = "must be a number between 0 and 0777 (octal), both inclusive";
        errors.push(Error::invalid(path, mode, why));
    }
}

/// `items` of a ConfigMap or Secret: a key to a path each.
fn keys(errors: &mut Errors, path: &str, source: &Value) {
    for (i, item) in items(source, "items").iter().enumerate() {
        let path = index(&child(path, "items"), i);
        if rules::required(errors, item, &path, "key") {
            wrong(errors, &child(&path, "key"), text(item, "key"), config_key(text(item, "key")));
        }
        local_path(errors, &path, item);
        mode(errors, &child(&path, "mode"), item, "mode");
    }
}

fn local_path(errors: &mut Errors, path: &str, item: &Value) {
    let field = child(path, "path");
    let value = text(item, "path");
    if value.is_empty() {
        return errors.push(Error::required(field, ""));
    }
    descending_path(errors, &field, value);
    if value.starts_with("..") && !value.starts_with("../") {
        errors.push(Error::invalid(field, value, "must not start with '..'"));
    }
}

fn downward(errors: &mut Errors, path: &str, source: &Value) {
    let allowed =
        ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
    for (i, item) in items(source, "items").iter().enumerate() {
        let path = index(&child(path, "items"), i);
        local_path(errors, &path, item);
        match (has(item, "fieldRef"), has(item, "resourceFieldRef")) {
            (true, true) => {
                let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.push(Error::invalid(&*path, "resource", why));
            }
            (true, false) => {
                let reference = at(item, "fieldRef");
                field_ref(errors, &child(&path, "fieldRef"), reference, &allowed, &["labels", "annotations"]);
            }
            (false, true) => {
                let (path, reference) = (child(&path, "resourceFieldRef"), at(item, "resourceFieldRef"));
                rules::required(errors, reference, &path, "containerName");
                resource_field_ref(errors, &path, reference);
            }
            (false, false) => {
                let why = "one of fieldRef and resourceFieldRef is required";
                errors.push(Error::required(child(&path, "fieldRef"), why));
            }
        }
        mode(errors, &child(&path, "mode"), item, "mode");
    }
}

fn projected(errors: &mut Errors, path: &str, source: &Value) {
    for (i, item) in items(source, "sources").iter().enumerate() {
        let path = index(&child(path, "sources"), i);
        let given: Vec<&str> = item.as_object().into_iter().flatten().map(|(k, _)| &**k).collect();
        for (i, kind) in given.iter().enumerate() {
            let (path, value) = (child(&path, kind), &item[*kind]);
            if i > 0 {
                errors.push(Error::forbidden(&*path, "may not specify more than 1 volume type per source"));
            }
            match *kind {
                "secret" | "configMap" => {
                    rules::required(errors, value, &path, "name");
                    keys(errors, &path, value);
                }
                "downwardAPI" => downward(errors, &path, value),
                "serviceAccountToken" => {
                    let seconds = int(value, "expirationSeconds").unwrap_or(3600);
                    let field = child(&path, "expirationSeconds");
                    if seconds < 600 {
                        let why = "may not specify a duration less than 10 minutes";
                        errors.push(Error::invalid(field, seconds, why));
                    } else if seconds > 1 << 32 {
                        let why = "may not specify a duration larger than 2^32 seconds";
                        errors.push(Error::invalid(field, seconds, why));
                    }
                    local_path(errors, &path, value);
                }
                _ => {}
            }
        }
    }
}
