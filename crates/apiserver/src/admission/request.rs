//! A write as webhooks and expressions are told of it: the `request` of an AdmissionReview.

use homeostat_model::GroupVersion;
use serde_json::{Value, json};

use super::Operation;
use super::matching::{Attributes, word};
use crate::registry::Target;

fn kind(target: &Target) -> Value {
    let gv: &GroupVersion = target.gv();
    json!({"group": &*gv.group, "version": &*gv.version, "kind": &*target.resource.kind})
}

fn resource(target: &Target) -> Value {
    let gv: &GroupVersion = target.gv();
    json!({"group": &*gv.group, "version": &*gv.version, "resource": &*target.resource.id.resource})
}

/// The request, without its objects; `shown` is the version in which they are shown.
pub(super) fn request(a: &Attributes<'_>, shown: &Target) -> Value {
    let w = a.w;
    let mut options = w.options.clone();
    if !options.is_object() {
        options = json!({});
    }
    options["kind"] = match a.subject.operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
    }
    .into();
    options["apiVersion"] = "meta.k8s.io/v1".into();
    let mut request = json!({
        "kind": kind(shown), "resource": resource(shown),
        "requestKind": kind(w.target), "requestResource": resource(w.target),
        "operation": word(a.subject.operation), "userInfo": w.user.to_value(), "dryRun": w.dry_run,
        "options": options,
    });
    for (key, value) in [
        ("name", a.subject.name.as_str()),
        ("namespace", w.namespace),
        ("subResource", w.subresource),
        ("requestSubResource", w.subresource),
    ] {
        if !value.is_empty() {
            request[key] = value.into();
        }
    }
    request
}
