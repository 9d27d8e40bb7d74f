//! Groups that the Kubernetes community guards: a CRD in one needs an annotation that says where it was approved.

use homeostat_model::field::Error;
use serde_json::Value;

const APPROVAL: &str = "api-approved.kubernetes.io";

/// How a CRD of a group that the community guards is approved.
#[derive(PartialEq)]
enum Approval {
    Missing,
    Bypassed,
    Approved,
    Invalid,
}

/// The state of the approval annotation, with the reason in words.
fn state(crd: &Value) -> (Approval, String) {
    const MORE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";
    let annotation = crd["metadata"]["annotations"][APPROVAL].as_str().unwrap_or_default();
    let is_url = annotation.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.is_empty()
            && scheme.chars().all(|c| c.is_ascii_alphanumeric())
            && !rest.starts_with('/')
            && !rest.is_empty()
    });
    if annotation.is_empty() {
        (Approval::Missing, format!("protected groups must have approval annotation \"{APPROVAL}\", {MORE}"))
    } else if annotation.starts_with("unapproved") {
        (Approval::Bypassed, format!("not approved: {}", homeostat_model::field::quote(annotation)))
    } else if is_url {
        (Approval::Approved, format!("approved in {annotation}"))
    } else {
        let why = format!(
            "protected groups must have approval annotation \"{APPROVAL}\" with either a URL or a reason starting \
             with \"unapproved\", {MORE}"
        );
        (Approval::Invalid, why)
    }
}

/// Whether the group is one that only the Kubernetes community may define types in.
fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].iter().any(|p| group == *p || group.ends_with(&format!(".{p}")))
}

/// The condition `KubernetesAPIApprovalPolicyConformant` of a CRD in a guarded group: (status, reason, message).
pub(crate) fn condition(crd: &Value) -> Option<(&'static str, &'static str, String)> {
    if !is_protected(crd["spec"]["group"].as_str().unwrap_or_default()) {
        return None;
    }
    let (found, why) = state(crd);
    Some(match found {
        Approval::Missing => ("False", "MissingAnnotation", why),
        Approval::Bypassed => ("False", "UnapprovedAnnotation", why),
        Approval::Approved => ("True", "ApprovedAnnotation", why),
        Approval::Invalid => ("False", "InvalidAnnotation", why),
    })
}

/// Errors of the annotation; a state that an update doesn't change is not judged again.
pub(crate) fn validate(crd: &Value, old: Option<&Value>, errors: &mut Vec<Error>) {
    if !is_protected(crd["spec"]["group"].as_str().unwrap_or_default()) {
        return;
    }
    let (found, why) = state(crd);
    if old.is_some_and(|o| state(o).0 == found) {
        return;
    }
    let path = format!("metadata.annotations[{APPROVAL}]");
    match found {
        Approval::Missing => errors.push(Error::required(path, why)),
        Approval::Invalid => {
            let value = crd["metadata"]["annotations"][APPROVAL].clone();
            errors.push(Error::invalid(path, value, why));
        }
        Approval::Bypassed | Approval::Approved => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(group: &str, annotation: &str, want: Option<(&str, &str)>, errors: usize) {
        let crd = json!({"metadata": {"annotations": {APPROVAL: annotation}}, "spec": {"group": group}});
        let found = condition(&crd).map(|(state, reason, _)| (state, reason));
        assert_eq!(found, want, "{annotation}");
        let mut found = Vec::new();
        validate(&crd, None, &mut found);
        assert_eq!(found.len(), errors, "{annotation}");
        // What an older object had may stay.
        found.clear();
        validate(&crd, Some(&crd), &mut found);
        assert_eq!(found, []);
    }

    #[test]
    fn guarded_groups_need_an_approval_or_a_reason() {
        check("example.com", "", None, 0);
        check("a.k8s.io", "", Some(("False", "MissingAnnotation")), 1);
        check("a.kubernetes.io", "https://example.com/pull/1", Some(("True", "ApprovedAnnotation")), 0);
        check("k8s.io", "unapproved, a test", Some(("False", "UnapprovedAnnotation")), 0);
        check("k8s.io", "yes", Some(("False", "InvalidAnnotation")), 1);
    }
}
