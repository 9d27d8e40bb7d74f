//! The reviews: access, rules, self and token reviews, from the request's object to the answer's.
//!
//! Nothing is stored. The objects come decoded; managed fields are the caller's. Source: kubernetes
//! `pkg/registry/authorization`, `pkg/registry/authentication` and their validation.

mod access;
mod validate;

use homeostat_model::Status;
use serde_json::{Map, Value, json};

use crate::authn::Verified;
use crate::{Policy, User};

pub use access::{local_subject_access_review, self_subject_access_review, subject_access_review};

fn with_status(mut review: Value, status: Value) -> Value {
    if !review.is_object() {
        review = json!({});
    }
    review["status"] = status;
    review
}

/// `SelfSubjectReview`: who the requester is. `now` is RFC 3339 and becomes the creation time.
pub fn self_subject_review(mut review: Value, user: &User, now: &str) -> Value {
    if !review["metadata"].is_object() {
        review["metadata"] = json!({});
    }
    review["metadata"]["creationTimestamp"] = now.into();
    with_status(review, json!({"userInfo": user.to_value()}))
}

/// `SelfSubjectRulesReview`: what the requester may do in a namespace.
pub fn self_subject_rules_review(review: &Value, user: &User, policy: &Policy) -> Result<Value, Status> {
    let namespace = review["spec"]["namespace"].as_str().unwrap_or_default();
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    let (rules, error) = policy.rules_for(user, namespace);
    let pick = |keys: &[&str], rule: &crate::rbac::Rule| {
        let rule = rule.to_value();
        Value::Object(
            keys.iter().filter_map(|k| Some(((*k).to_owned(), rule.get(k)?.clone()))).collect::<Map<_, _>>(),
        )
    };
    let resources = rules.iter().filter(|r| !r.resources.is_empty());
    let urls = rules.iter().filter(|r| !r.urls.is_empty());
    let mut status = json!({
        "resourceRules":
            resources.map(|r| pick(&["verbs", "apiGroups", "resources", "resourceNames"], r)).collect::<Vec<_>>(),
        "nonResourceRules": urls.map(|r| pick(&["verbs", "nonResourceURLs"], r)).collect::<Vec<_>>(),
        "incomplete": false,
    });
    if let Some(error) = error {
        status["evaluationError"] = error.into();
    }
    // The answer is a new object: it repeats nothing of the request.
    let header =
        json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "metadata": {}, "spec": {}});
    Ok(with_status(header, status))
}

/// `TokenReview`: whose a token is. `verify` is given the token and the wanted audiences, which may be none.
pub fn token_review(
    review: Value,
    verify: impl FnOnce(&str, &[String]) -> Result<Verified, String>,
) -> Result<Value, Status> {
    let spec = &review["spec"];
    let token = spec["token"].as_str().unwrap_or_default();
    if token.is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    let audiences = spec["audiences"].as_array().into_iter().flatten();
    let audiences: Vec<String> = audiences.filter_map(Value::as_str).map(str::to_owned).collect();
    let status = match verify(token, &audiences) {
        Ok(v) => json!({"authenticated": true, "user": v.user.to_value(), "audiences": v.audiences}),
        Err(why) => json!({"user": {}, "error": why}),
    };
    Ok(with_status(review, status))
}

#[cfg(test)]
mod tests;
