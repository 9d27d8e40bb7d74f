//! Reviews as recorded of the reference.

use serde_json::json;

use super::*;

fn policy() -> Policy {
    Policy::from_objects(&[
        json!({"kind": "Role", "metadata": {"name": "reader", "namespace": "d"}, "rules": [
            {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["redis-auth"]},
            {"verbs": ["get"], "nonResourceURLs": ["/x"]}]}),
        json!({"kind": "RoleBinding", "metadata": {"name": "reader", "namespace": "d"}, "roleRef": {"kind": "Role", "name": "reader"},
            "subjects": [{"kind": "User", "name": "eve"}]}),
    ])
}

fn review(kind: &str, metadata: Value, spec: Value) -> Value {
    json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec})
}

#[test]
fn subject_access() {
    let check = |metadata: Value, spec: Value, want: Result<Value, &str>| {
        let got = subject_access_review(review("SubjectAccessReview", metadata, spec), &policy());
        assert_eq!(got.as_ref().map(|v| v["status"].clone()).map_err(|s| &*s.message), want);
    };
    let secret = json!({"verb": "get", "resource": "secrets", "namespace": "d", "name": "redis-auth"});
    let allowed = json!({"allowed": true, "reason": "RBAC: allowed by RoleBinding \"reader/d\" of Role \"reader\" to User \"eve\""});
    check(json!({}), json!({"user": "eve", "resourceAttributes": secret}), Ok(allowed));
    check(json!({}), json!({"user": "zoe", "resourceAttributes": secret}), Ok(json!({"allowed": false})));
    check(
        json!({}),
        json!({"user": "zoe", "nonResourceAttributes": {"path": "/x", "verb": "get"}}),
        Ok(json!({"allowed": false})),
    );
    check(
        json!({}),
        json!({"user": "zoe", "resourceAttributes": {"verb": "list", "resource": "pods", "labelSelector": {"rawSelector": "a b"}}}),
        Ok(
            json!({"allowed": false, "evaluationError": "spec.resourceAttributes.labelSelector ignored due to parse error"}),
        ),
    );
    for (metadata, spec, want) in [
        (
            json!({}),
            json!({"resourceAttributes": secret, "user": ""}),
            "spec.user: Invalid value: \"\": at least one of user or group must be specified",
        ),
        (
            json!({}),
            json!({"user": "zoe"}),
            "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified",
        ),
        (
            json!({}),
            json!({"user": "zoe", "resourceAttributes": secret, "nonResourceAttributes": {"path": "/", "verb": "get"}}),
            "spec.nonResourceAttributes: Invalid value: {\"Path\":\"/\",\"Verb\":\"get\"}: cannot be specified in combination with resourceAttributes",
        ),
        (
            json!({"name": "named", "managedFields": [{"apiVersion": "v1", "manager": "m", "operation": "Update"}]}),
            json!({"user": "zoe", "resourceAttributes": secret}),
            "metadata: Invalid value: {\"name\":\"named\",\"managedFields\":[{\"manager\":\"m\",\"operation\":\"Update\",\"apiVersion\":\"v1\"}]}: must be empty",
        ),
        (
            json!({}),
            json!({"user": "zoe", "resourceAttributes": {"fieldSelector": {}}}),
            "spec.resourceAttributes.fieldSelector.requirements: Required value: when spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required",
        ),
    ] {
        check(metadata, spec, Err(&format!(".authorization.k8s.io \"\" is invalid: {want}")));
    }
}

#[test]
fn local_and_self_access() {
    let attributes = |namespace: &str| json!({"verb": "get", "resource": "secrets", "namespace": namespace, "name": "redis-auth"});
    let local = |metadata: Value, spec: Value| {
        local_subject_access_review(review("LocalSubjectAccessReview", metadata, spec), "d", &policy())
    };
    let ok = local(json!({}), json!({"user": "eve", "resourceAttributes": attributes("d")})).unwrap();
    assert_eq!((&ok["status"]["allowed"], &ok["metadata"]["namespace"]), (&json!(true), &json!("d")));
    for (spec, want) in [
        (
            json!({"user": "eve", "resourceAttributes": attributes("other")}),
            "spec.resourceAttributes.namespace: Invalid value: \"other\": must match metadata.namespace",
        ),
        (
            json!({"user": "eve", "nonResourceAttributes": {"path": "/", "verb": "get"}}),
            "spec.nonResourceAttributes: Invalid value: {\"Path\":\"/\",\"Verb\":\"get\"}: disallowed on this kind of request",
        ),
    ] {
        let got = local(json!({}), spec).unwrap_err();
        assert_eq!((got.code, got.message), (422, format!(".authorization.k8s.io \"\" is invalid: {want}")));
    }
    let eve = User::new("eve", ["g"]);
    let mine = review("SelfSubjectAccessReview", json!({}), json!({"resourceAttributes": attributes("d")}));
    assert_eq!(self_subject_access_review(mine, &eve, &policy()).unwrap()["status"]["allowed"], true);
    let root = User::administrator("root");
    let nodes = json!({"resourceAttributes": {"verb": "delete", "resource": "nodes"}});
    let mine = review("SelfSubjectAccessReview", json!({}), nodes);
    assert_eq!(
        self_subject_access_review(mine, &root, &policy()).unwrap()["status"],
        json!({"allowed": true})
    );
}

#[test]
fn rules_and_selves() {
    let eve = User::new("eve", ["g"]);
    let ask = |spec: Value| {
        self_subject_rules_review(&review("SelfSubjectRulesReview", json!({}), spec), &eve, &policy())
    };
    assert_eq!(
        ask(json!({"namespace": "d"})).unwrap(),
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "metadata": {}, "spec": {}, "status": {
            "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["redis-auth"]}],
            "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}], "incomplete": false}})
    );
    let none = ask(json!({})).unwrap_err();
    assert_eq!((none.code, &*none.message), (400, "no namespace on request"));
    assert_eq!(
        self_subject_review(json!({"kind": "SelfSubjectReview"}), &eve, "t"),
        json!({"kind": "SelfSubjectReview", "metadata": {"creationTimestamp": "t"},
            "status": {"userInfo": {"username": "eve", "groups": ["g"]}}})
    );
}

#[test]
fn token_reviews() {
    let ask = |spec: Value| {
        token_review(json!({"spec": spec}), |token, audiences| match token {
            "good" => Ok(Verified { user: User::new("u", ["g"]), audiences: audiences.to_vec() }),
            _ => Err("invalid bearer token".into()),
        })
    };
    assert_eq!(
        ask(json!({"token": "good", "audiences": ["a"]})).unwrap()["status"],
        json!({"authenticated": true, "user": {"username": "u", "groups": ["g"]}, "audiences": ["a"]})
    );
    assert_eq!(
        ask(json!({"token": "bad"})).unwrap()["status"],
        json!({"user": {}, "error": "invalid bearer token"})
    );
    let none = ask(json!({"token": ""})).unwrap_err();
    assert_eq!((none.code, &*none.message), (400, "token is required for TokenReview in authentication"));
}
