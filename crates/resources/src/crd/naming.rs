//! Who gets which names: accepted names and conditions of a CRD beside the others of its group.
//!
//! A pure function of all definitions; the API server calls it after every change of any, and writes what it
//! returns. Names are given to who asks first and given back when it is deleted.

use std::collections::BTreeSet;

use homeostat_model::field::quote;
use serde_json::{Map, Value, json};

use super::approval;

/// The finalizer that holds a CRD until its objects are gone.
pub const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The new status of `crd`, or `None` if nothing changes. `all` are all stored CRDs, `crd` included; `now` is
/// the time in RFC 3339, seconds.
///
/// The reference gets there in two steps (named, then established a moment later); here it is one.
pub fn reconcile<'a>(crd: &Value, all: impl IntoIterator<Item = &'a Value>, now: &str) -> Option<Value> {
    let mut status = crd["status"].clone();
    if !status.is_object() {
        status = json!({});
    }
    if let Some((state, reason, message)) = approval::condition(crd) {
        set_condition(&mut status, "KubernetesAPIApprovalPolicyConformant", state, reason, &message, now);
    }
    if !same_names(&crd["spec"]["names"], &crd["status"]["acceptedNames"]) || !has(&status, "NamesAccepted") {
        name(crd, all, &mut status, now);
    }
    if condition_of(&status, "NamesAccepted") == Some("True")
        && condition_of(&status, "Established") != Some("True")
    {
        let message = "the initial names have been accepted";
        set_condition(&mut status, "Established", "True", "InitialNamesAccepted", message, now);
    }
    (status != crd["status"]).then_some(status)
}

fn same_names(requested: &Value, accepted: &Value) -> bool {
    let lists = ["shortNames", "categories"];
    let texts = ["plural", "singular", "kind", "listKind"];
    texts.iter().all(|k| text(requested, k) == text(accepted, k))
        && lists.iter().all(|k| list(requested, k) == list(accepted, k))
}

fn text<'a>(names: &'a Value, key: &str) -> &'a str {
    names[key].as_str().unwrap_or_default()
}

fn list<'a>(names: &'a Value, key: &str) -> Vec<&'a str> {
    names[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn name<'a>(crd: &Value, all: impl IntoIterator<Item = &'a Value>, status: &mut Value, now: &str) {
    let (mut resources, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    for other in all {
        if other["spec"]["group"] != crd["spec"]["group"] {
            continue;
        }
        let accepted = &other["status"]["acceptedNames"];
        resources.extend([text(accepted, "plural"), text(accepted, "singular")]);
        resources.extend(list(accepted, "shortNames"));
        kinds.extend([text(accepted, "kind"), text(accepted, "listKind")]);
    }
    let (requested, accepted) = (&crd["spec"]["names"], &crd["status"]["acceptedNames"]);
    let mut new = accepted.as_object().cloned().unwrap_or_default();
    // The last conflict found is the one that is told.
    let mut conflict = None;
    let used = |name: &str| format!("{} is already in use", quote(name));
    let mut one = |key: &str, taken: &BTreeSet<&str>, reason: &'static str, conflict: &mut Option<_>| {
        let name = text(requested, key);
        if name == text(accepted, key) || !taken.contains(name) {
            set(&mut new, key, &requested[key]);
        } else {
            *conflict = Some((reason, used(name)));
        }
    };
    one("plural", &resources, "PluralConflict", &mut conflict);
    one("singular", &resources, "SingularConflict", &mut conflict);
    let ours = list(accepted, "shortNames");
    let taken: Vec<String> = list(requested, "shortNames")
        .into_iter()
        .filter(|name| !ours.contains(name) && resources.contains(name))
        .map(used)
        .collect();
    let mut short_names = None;
    match taken.len() {
        0 => short_names = Some(&requested["shortNames"]),
        1 => conflict = Some(("ShortNamesConflict", taken[0].clone())),
        _ => conflict = Some(("ShortNamesConflict", format!("[{}]", taken.join(", ")))),
    }
    one("kind", &kinds, "KindConflict", &mut conflict);
    one("listKind", &kinds, "ListKindConflict", &mut conflict);
    if let Some(names) = short_names {
        set(&mut new, "shortNames", names);
    }
    set(&mut new, "categories", &requested["categories"]);
    for key in ["plural", "kind"] {
        new.entry(key).or_insert_with(|| "".into());
    }
    status["acceptedNames"] = Value::Object(new);
    match conflict {
        None => set_condition(status, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now),
        Some((reason, message)) => set_condition(status, "NamesAccepted", "False", reason, &message, now),
    }
    if !has(status, "Established") {
        set_condition(status, "Established", "False", "NotAccepted", "not all names are accepted", now);
    }
}

fn set(names: &mut Map<String, Value>, key: &str, value: &Value) {
    let empty = match value {
        Value::Null => true,
        Value::String(s) => s.is_empty(),
        Value::Array(a) => a.is_empty(),
        _ => false,
    };
    if empty {
        names.remove(key);
    } else {
        names.insert(key.to_owned(), value.clone());
    }
}

fn condition_of<'a>(status: &'a Value, kind: &str) -> Option<&'a str> {
    status["conditions"].as_array()?.iter().find(|c| c["type"] == kind)?["status"].as_str()
}

fn has(status: &Value, kind: &str) -> bool {
    condition_of(status, kind).is_some()
}

/// Sets a condition of a CRD's status; the transition time changes with the condition's status only.
pub fn set_condition(status: &mut Value, kind: &str, state: &str, reason: &str, message: &str, now: &str) {
    if !status.is_object() {
        *status = json!({});
    }
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else { return };
    let new = |time: &Value| json!({"type": kind, "status": state, "reason": reason, "message": message, "lastTransitionTime": time});
    match conditions.iter_mut().find(|c| c["type"] == kind) {
        Some(old) => {
            let time = if old["status"] == state && old["lastTransitionTime"].is_string() {
                old["lastTransitionTime"].clone()
            } else {
                now.into()
            };
            *old = new(&time);
        }
        None => conditions.push(new(&now.into())),
    }
}

/// Stages of a CRD's deletion, as the condition `Terminating` tells them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// Asked for; the answer to the DELETE.
    Pending,
    /// Objects are being deleted.
    InProgress,
    /// All objects are gone.
    Completed,
    /// There never was an object.
    NeverEstablished,
    /// Deleting or listing objects failed, with the reason.
    Failed(String),
}

/// Puts a stage of deletion into a CRD's status, and the finalizer into its metadata at the first, out of it at the
/// last. The deletion timestamp is the caller's.
pub fn set_deletion(crd: &mut Value, stage: &Deletion, now: &str) {
    let (state, reason, message) = match stage {
        Deletion::Pending => (
            "True",
            "InstanceDeletionPending",
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        ),
        Deletion::InProgress => {
            ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
        }
        Deletion::Completed => ("False", "InstanceDeletionCompleted", "removed all instances"),
        Deletion::NeverEstablished => ("False", "NeverEstablished", "resource was never established"),
        Deletion::Failed(why) => ("True", "InstanceDeletionFailed", why.as_str()),
    };
    let Value::Object(fields) = crd else { return };
    set_condition(fields.entry("status").or_insert(Value::Null), "Terminating", state, reason, message, now);
    let Some(Value::Object(metadata)) = fields.get_mut("metadata") else { return };
    let mut list = metadata.get("finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
    match stage {
        Deletion::Pending if !list.iter().any(|f| f == FINALIZER) => list.push(FINALIZER.into()),
        Deletion::Completed | Deletion::NeverEstablished => list.retain(|f| f != FINALIZER),
        _ => {}
    }
    if list.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".into(), list.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-01T00:00:00Z";

    fn crd(plural: &str, names: Value) -> Value {
        let mut names = names;
        names["plural"] = plural.into();
        json!({
            "metadata": {"name": format!("{plural}.example.com")},
            "spec": {"group": "example.com", "names": names},
            "status": {"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]},
        })
    }

    /// Reconciles the last CRD beside the others, and returns its accepted names and conditions in short.
    fn check(crds: &mut [Value], names: Value, conditions: &[&str]) {
        let last = crds.len() - 1;
        if let Some(status) = reconcile(&crds[last], crds.iter(), NOW) {
            crds[last]["status"] = status;
        }
        assert_eq!(reconcile(&crds[last], crds.iter(), NOW), None, "a second look changes nothing");
        let status = &crds[last]["status"];
        assert_eq!(status["acceptedNames"], names);
        let found: Vec<String> = status["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|c| {
                let get = |k: &str| c[k].as_str().unwrap_or_default();
                format!("{}={} {}: {}", get("type"), get("status"), get("reason"), get("message"))
            })
            .collect();
        assert_eq!(found, conditions);
    }

    const ACCEPTED: [&str; 2] = [
        "NamesAccepted=True NoConflicts: no conflicts found",
        "Established=True InitialNamesAccepted: the initial names have been accepted",
    ];

    #[test]
    fn the_first_gets_its_names_and_the_second_waits() {
        let store =
            json!({"singular": "store", "kind": "Store", "listKind": "StoreList", "shortNames": ["st"]});
        let mut crds = vec![crd("stores", store.clone())];
        let mut accepted = store;
        accepted["plural"] = "stores".into();
        check(&mut crds, accepted, &ACCEPTED);

        crds.push(crd(
            "shops",
            json!({"singular": "shop", "kind": "Store", "listKind": "StoreList", "shortNames": ["sh"]}),
        ));
        let waiting = [
            "NamesAccepted=False ListKindConflict: \"StoreList\" is already in use",
            "Established=False NotAccepted: not all names are accepted",
        ];
        let partly = json!({"plural": "shops", "singular": "shop", "shortNames": ["sh"], "kind": ""});
        check(&mut crds, partly, &waiting);

        crds[1]["spec"]["names"]["kind"] = "Shop".into();
        crds[1]["spec"]["names"]["listKind"] = "ShopList".into();
        let all = json!({"plural": "shops", "singular": "shop", "shortNames": ["sh"], "kind": "Shop", "listKind": "ShopList"});
        check(&mut crds, all.clone(), &ACCEPTED);

        crds[1]["spec"]["names"]["shortNames"] = json!(["st"]);
        let still_served = ["NamesAccepted=False ShortNamesConflict: \"st\" is already in use", ACCEPTED[1]];
        check(&mut crds, all.clone(), &still_served);

        crds.remove(0);
        let mut renamed = all;
        renamed["shortNames"] = json!(["st"]);
        check(&mut crds, renamed, &ACCEPTED);
    }

    #[test]
    fn a_deletion_adds_and_removes_the_finalizer() {
        let mut crd = crd("stores", json!({"singular": "store", "kind": "Store", "listKind": "StoreList"}));
        set_deletion(&mut crd, &Deletion::Pending, NOW);
        assert_eq!(crd["metadata"]["finalizers"], json!([FINALIZER]));
        set_deletion(&mut crd, &Deletion::InProgress, NOW);
        assert_eq!(crd["status"]["conditions"][0]["reason"], "InstanceDeletionInProgress");
        set_deletion(&mut crd, &Deletion::Completed, NOW);
        assert_eq!(crd["metadata"].get("finalizers"), None);
    }
}
