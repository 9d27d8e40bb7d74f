//! Subject access reviews: may this subject do that?

use homeostat_model::gvk::GroupKind;
use homeostat_model::selector::{Fields, Labels};
use homeostat_model::{Status, field};
use serde_json::{Value, json};

use super::{validate, with_status};
use crate::{Attributes, Policy, User};

/// `SubjectAccessReview`: may the subject that it names do something?
pub fn subject_access_review(review: Value, policy: &Policy) -> Result<Value, Status> {
    let mut errors = validate::spec(&review["spec"], true);
    errors.extend(validate::metadata(&review["metadata"], false));
    refuse(&errors)?;
    let user = subject(&review["spec"]);
    Ok(decide(review, &user, policy))
}

/// `LocalSubjectAccessReview`: the same in the namespace of the request.
pub fn local_subject_access_review(
    mut review: Value,
    namespace: &str,
    policy: &Policy,
) -> Result<Value, Status> {
    if review["metadata"]["namespace"].as_str().unwrap_or_default().is_empty() {
        review["metadata"]["namespace"] = namespace.into();
    }
    let mut errors = validate::spec(&review["spec"], true);
    errors.extend(validate::metadata(&review["metadata"], true));
    errors.extend(validate::local(&review));
    refuse(&errors)?;
    let user = subject(&review["spec"]);
    Ok(decide(review, &user, policy))
}

/// `SelfSubjectAccessReview`: may the requester do something?
pub fn self_subject_access_review(review: Value, user: &User, policy: &Policy) -> Result<Value, Status> {
    let mut errors = validate::spec(&review["spec"], false);
    errors.extend(validate::metadata(&review["metadata"], false));
    refuse(&errors)?;
    Ok(decide(review, user, policy))
}

/// The reference forgets the kind here.
fn refuse(errors: &[field::Error]) -> Result<(), Status> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(&GroupKind::new("authorization.k8s.io", ""), "", errors))
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn subject(spec: &Value) -> User {
    let extra = spec["extra"].as_object().into_iter().flatten();
    User {
        name: spec["user"].as_str().unwrap_or_default().to_owned(),
        uid: spec["uid"].as_str().unwrap_or_default().to_owned(),
        groups: strings(&spec["groups"]),
        extra: extra.map(|(k, v)| (k.clone(), strings(v))).collect(),
    }
}

fn decide(review: Value, user: &User, policy: &Policy) -> Value {
    let spec = &review["spec"];
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let text = |of: &'_ Value, key: &str| of[key].as_str().unwrap_or_default().to_owned();
    let decision = if resource.is_null() {
        policy.allows(&Attributes::path(user, &text(path, "verb"), &text(path, "path")))
    } else {
        let keys = ["verb", "group", "version", "resource", "subresource", "name", "namespace"];
        let [verb, group, version, plural, subresource, name, namespace] = keys.map(|k| text(resource, k));
        policy.allows(&Attributes {
            version: &version,
            subresource: &subresource,
            name: &name,
            namespace: &namespace,
            ..Attributes::resource(user, &verb, &group, &plural)
        })
    };
    let mut status = json!({"allowed": decision.allowed});
    if !decision.reason.is_empty() {
        status["reason"] = (*decision.reason).into();
    }
    let errors: Vec<&str> =
        [fields_error(&resource["fieldSelector"]), labels_error(&resource["labelSelector"])]
            .into_iter()
            .flatten()
            .collect();
    if !errors.is_empty() {
        status["evaluationError"] = errors.join("; ").into();
    }
    with_status(review, status)
}

/// RBAC doesn't look at selectors, but says what it could not have read of them.
fn fields_error(selector: &Value) -> Option<&'static str> {
    let raw = selector["rawSelector"].as_str().unwrap_or_default();
    let readable = |r: &&Value| {
        let one = r["values"].as_array().is_some_and(|v| v.len() == 1);
        matches!(r["operator"].as_str(), Some("In" | "NotIn")) && one
    };
    let all = selector["requirements"].as_array().map(Vec::as_slice).unwrap_or_default();
    match all.iter().filter(readable).count() {
        _ if all.is_empty() && Fields::parse(raw).is_ok() => None,
        n if n == all.len() && n > 0 => None,
        0 => Some("spec.resourceAttributes.fieldSelector ignored due to parse error"),
        _ => Some("spec.resourceAttributes.fieldSelector partially ignored due to parse error"),
    }
}

fn labels_error(selector: &Value) -> Option<&'static str> {
    let raw = selector["rawSelector"].as_str().unwrap_or_default();
    let readable = |r: &&Value| Labels::from_value(&json!({"matchExpressions": [r]})).is_ok();
    let all = selector["requirements"].as_array().map(Vec::as_slice).unwrap_or_default();
    match all.iter().filter(readable).count() {
        _ if all.is_empty() && Labels::parse(raw).is_ok() => None,
        n if n == all.len() && n > 0 => None,
        0 => Some("spec.resourceAttributes.labelSelector ignored due to parse error"),
        _ => Some("spec.resourceAttributes.labelSelector partially ignored due to parse error"),
    }
}
