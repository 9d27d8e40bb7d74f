//! Events, which two groups serve under different names of their fields.
//!
//! Both are one set of objects: what is written through one is read through the other.

use homeostat_model::GroupVersion;
use homeostat_model::field::{self, Error};
use homeostat_model::validation::qualified_name;
use serde_json::Value;

use crate::builtin::value::{Errors, IMMUTABLE, at, empty, has, int, text, wrong};
use crate::strategy::{Cx, Strategy};

/// Events of either group.
pub(super) struct Events {
    /// Whether this is the resource of `events.k8s.io`.
    pub(super) new_api: bool,
}

/// Field names in the core group, and in `events.k8s.io`.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

const CORE_LABELS: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];

const NEW_LABELS: &[&str] = &[
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "reportingController",
    "type",
];

impl Events {
    fn object_field(&self) -> &'static str {
        if self.new_api { "regarding" } else { "involvedObject" }
    }

    fn legacy(&self, event: &Value) -> Errors {
        let mut errors = Vec::new();
        let namespace = text(event, "metadata.namespace");
        let about = text(event, &format!("{}.namespace", self.object_field()));
        // Events of cluster-scoped objects live in `default`.
        let fits = if about.is_empty() { matches!(namespace, "" | "default") } else { about == namespace };
        if !fits {
            errors.push(Error::invalid("involvedObject.namespace", about, "does not match event.namespace"));
        }
        errors
    }
}

impl Strategy for Events {
    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        if self.new_api {
            strict(&mut errors, new);
        } else {
            errors = self.legacy(new);
            if has(new, "eventTime") && errors.is_empty() {
                modern(&mut errors, new, "reportingComponent");
            }
        }
        errors
    }

    fn validate_update(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = self.validate(cx, new);
        if self.new_api {
            for field in [
                "regarding",
                "reason",
                "note",
                "type",
                "action",
                "related",
                "reportingController",
                "reportingInstance",
                "eventTime",
            ] {
                if at(new, field) != at(old, field) {
                    errors.push(Error::invalid(core_name(field), at(new, field).clone(), IMMUTABLE));
                }
            }
            // The reference looks twice.
            errors.extend_from_within(..);
        }
        errors
    }

    /// Both groups' labels, from either form: what one group wrote is selected through the other.
    fn selectable(&self, object: &Value) -> Vec<(&'static str, String)> {
        let either = |core: &str, new: &str| {
            let first = text(object, core);
            if first.is_empty() { text(object, new).to_owned() } else { first.to_owned() }
        };
        let about = if has(object, "regarding") { "regarding" } else { "involvedObject" };
        let reporter = either("reportingComponent", "reportingController");
        let component = match either("source.component", "deprecatedSource.component") {
            none if none.is_empty() => reporter.clone(),
            component => component,
        };
        CORE_LABELS
            .iter()
            .chain(NEW_LABELS.iter().filter(|l| !CORE_LABELS.contains(l)))
            .map(|label| {
                let value = match label.split_once('.') {
                    Some((_, rest)) => text(object, &format!("{about}.{rest}")).to_owned(),
                    None if *label == "source" => component.clone(),
                    None if label.starts_with("reporting") => reporter.clone(),
                    None => text(object, label).to_owned(),
                };
                (*label, value)
            })
            .collect()
    }

    fn selectable_labels(&self) -> &'static [&'static str] {
        if self.new_api { NEW_LABELS } else { CORE_LABELS }
    }

    fn convert(&self, object: &mut Value, to: &GroupVersion) {
        let Some(map) = object.as_object_mut() else { return };
        let modern = &*to.group == "events.k8s.io";
        for (core, new) in NAMES {
            let (from, into) = if modern { (core, new) } else { (new, core) };
            if let Some(value) = map.remove(from) {
                map.insert(into.to_owned(), value);
            }
        }
        if modern {
            // Required there, so written even when empty; optional here.
            for key in ["reportingController", "reportingInstance"] {
                if map.get(key).is_some_and(|v| v == "") {
                    map.remove(key);
                }
            }
        } else {
            for key in ["reportingComponent", "reportingInstance"] {
                map.entry(key).or_insert_with(|| "".into());
            }
            map.entry("involvedObject").or_insert_with(|| serde_json::json!({}));
        }
        map.insert("apiVersion".into(), to.to_string().into());
    }
}

/// The core group's name of a field, which error texts have.
fn core_name(field: &str) -> &str {
    NAMES.iter().find(|(_, new)| *new == field).map_or(field, |(core, _)| core)
}

fn strict(errors: &mut Errors, event: &Value) {
    if empty(event, "eventTime") {
        errors.push(Error::required("eventTime", ""));
    }
    let kind = text(event, "type");
    if !matches!(kind, "Normal" | "Warning") {
        errors.push(Error::invalid("type", "", format!("has invalid value: {kind}")));
    }
    if errors.is_empty() {
        modern(errors, event, "reportingController");
    }
    for (field, core) in
        [("deprecatedFirstTimestamp", "firstTimestamp"), ("deprecatedLastTimestamp", "lastTimestamp")]
    {
        if has(event, field) && errors.is_empty() {
            errors.push(Error::invalid(core, at(event, field).clone(), "needs to be unset"));
        }
    }
    if int(event, "deprecatedCount").is_some_and(|n| n != 0) {
        errors.push(Error::invalid("count", at(event, "deprecatedCount").clone(), "needs to be unset"));
    }
}

fn modern(errors: &mut Errors, event: &Value, controller: &str) {
    let reporter = text(event, controller);
    if reporter.is_empty() {
        errors.push(Error::required("reportingController", ""));
    }
    wrong(errors, "reportingController", reporter, qualified_name(reporter));
    let instance = text(event, "reportingInstance");
    if instance.is_empty() {
        errors.push(Error::required("reportingInstance", ""));
    } else if instance.len() > 128 {
        errors.push(Error::invalid("reportingInstance", "", "can have at most 128 characters"));
    }
    for (field, max) in [("action", 128), ("reason", 128)] {
        let value = text(event, field);
        if value.is_empty() {
            errors.push(Error::required(field, ""));
        } else if value.len() > max {
            errors.push(Error::invalid(field, "", format!("can have at most {max} characters")));
        }
    }
    let note = if controller == "reportingController" { text(event, "note") } else { text(event, "message") };
    if note.len() > 1024 {
        errors.push(Error::invalid("message", "", "can have at most 1024 characters"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_event_reads_as_either_group_has_it() {
        let core = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "n"},
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "n"}, "reason": "Started", "message": "up",
            "type": "Normal", "count": 3, "source": {"component": "kubelet"}, "eventTime": null,
            "firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:04:06Z",
            "reportingComponent": "", "reportingInstance": "",
        });
        let mut other = core.clone();
        let new_api = Events { new_api: true };
        new_api.convert(&mut other, &GroupVersion::new("events.k8s.io", "v1"));
        assert_eq!(
            other,
            json!({
                "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e", "namespace": "n"},
                "regarding": {"kind": "Pod", "name": "p", "namespace": "n"}, "reason": "Started", "note": "up",
                "type": "Normal", "deprecatedCount": 3, "deprecatedSource": {"component": "kubelet"},
                "eventTime": null, "deprecatedFirstTimestamp": "2026-01-02T03:04:05Z",
                "deprecatedLastTimestamp": "2026-01-02T03:04:06Z",
            })
        );
        let selected = new_api.selectable(&other);
        assert!(selected.contains(&("regarding.name", "p".to_owned())), "{selected:?}");
        assert_eq!(selected, Events { new_api: false }.selectable(&core));
        new_api.convert(&mut other, &GroupVersion::new("", "v1"));
        assert_eq!(other, core);
    }

    #[test]
    fn an_event_is_about_something_in_its_namespace() {
        for (namespace, about, good) in
            [("n", "n", true), ("n", "m", false), ("n", "", false), ("default", "", true)]
        {
            let event = json!({"metadata": {"namespace": namespace}, "involvedObject": {"namespace": about}});
            assert_eq!(Events { new_api: false }.legacy(&event).is_empty(), good, "{namespace} {about}");
        }
    }
}
