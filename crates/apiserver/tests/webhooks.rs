//! Admission webhooks beside what the recordings show: matching through other versions, conditions that fail, and policies
//! that look again at what a webhook has changed.
#![allow(missing_docs)]

#[path = "support/hook.rs"]
mod hook;
mod support;

use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use homeostat_apiserver::ApiServer;
use hook::{Hook, Reply};
use serde_json::{Value, json};
use support::{post, server};
use tokio::sync::Barrier;

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const SCALERS: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

/// What a webhook was asked.
type Asked = Arc<Mutex<Vec<Value>>>;

/// A webhook that allows everything, with this patch.
async fn patching(patch: Value) -> (Hook, Asked) {
    let asked = Asked::default();
    let seen = asked.clone();
    let hook = Hook::start(move |review| {
        seen.lock().unwrap().push(review["request"].clone());
        let patch = STANDARD.encode(patch.to_string());
        Reply::Json(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {
            "uid": review["request"]["uid"], "allowed": true, "patchType": "JSONPatch", "patch": patch}}))
    })
    .await;
    (hook, asked)
}

/// Registers a mutating webhook; `more` has the rest of it.
async fn register(s: &ApiServer, hook: &Hook, more: Value) {
    let mut webhook = json!({"name": "hook.example.com", "clientConfig": hook.config(), "admissionReviewVersions": ["v1"],
        "sideEffects": "None"});
    for (key, value) in more.as_object().unwrap() {
        webhook[key] = value.clone();
    }
    let body = json!({"metadata": {"name": "hook"}, "webhooks": [webhook]});
    let made = post(s, &format!("{GROUP}/mutatingwebhookconfigurations"), body).await;
    assert_eq!(made.code, 201, "{}", made.body);
}

fn rules(group: &str, version: &str, resources: &str) -> Value {
    json!([{"apiGroups": [group], "apiVersions": [version], "operations": ["CREATE"], "resources": [resources]}])
}

#[tokio::test]
async fn other_versions_are_shown_in_the_one_that_is_named() {
    for (policy, patched) in [("Equivalent", 40), ("Exact", 60)] {
        let patch = json!([{"op": "replace", "path": "/spec/targetCPUUtilizationPercentage", "value": 40}]);
        let (hook, asked) = patching(patch).await;
        let s = server();
        let rules = rules("autoscaling", "v1", "horizontalpodautoscalers");
        register(&s, &hook, json!({"rules": rules, "matchPolicy": policy})).await;
        let scaler = json!({"metadata": {"name": "x"}, "spec": {"maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}}]}});
        let made = post(&s, SCALERS, scaler).await;
        let target = &made.body["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"];
        assert_eq!((made.code, target), (201, &json!(patched)), "{policy}: {}", made.body);
        assert_eq!(made.body["apiVersion"], "autoscaling/v2");
        let asked = asked.lock().unwrap();
        let versions: Vec<_> = asked
            .iter()
            .map(|r| [&r["kind"]["version"], &r["requestKind"]["version"], &r["object"]["apiVersion"]])
            .collect();
        match policy {
            "Exact" => assert!(versions.is_empty()),
            _ => assert_eq!(versions, [[&json!("v1"), &json!("v2"), &json!("autoscaling/v1")]]),
        }
    }
}

#[tokio::test]
async fn conditions_that_cannot_be_told_are_the_failure_policys() {
    for (policy, code) in [("Fail", 403), ("Ignore", 201)] {
        let (hook, asked) = patching(json!([])).await;
        let s = server();
        let conditions = json!([{"name": "c", "expression": "object.none == 1"}]);
        let rules = rules("", "v1", "configmaps");
        register(&s, &hook, json!({"rules": rules, "matchConditions": conditions, "failurePolicy": policy}))
            .await;
        let answer = post(&s, CONFIGMAPS, json!({"metadata": {"name": "x"}})).await;
        assert_eq!(answer.code, code, "{}", answer.body);
        if code == 403 {
            let why = "configmaps \"x\" is forbidden: expression 'object.none == 1' resulted in error: no such key: none";
            assert_eq!(answer.body["message"], why);
        }
        assert!(asked.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn policies_look_again_at_what_a_webhook_changes() {
    let (hook, asked) = patching(json!([{"op": "add", "path": "/data/hook", "value": "was here"}])).await;
    let s = server();
    register(&s, &hook, json!({"rules": rules("", "v1", "configmaps")})).await;
    let copy = "Object{data: {'seen': object.data.?hook.orValue('nothing')}}";
    let policy = json!({"metadata": {"name": "p"}, "spec": {"reinvocationPolicy": "IfNeeded",
        "matchConstraints": {"resourceRules": rules("", "v1", "configmaps")},
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": copy}}]}});
    let binding = json!({"metadata": {"name": "p"}, "spec": {"policyName": "p"}});
    assert_eq!(post(&s, &format!("{GROUP}/mutatingadmissionpolicies"), policy).await.code, 201);
    assert_eq!(post(&s, &format!("{GROUP}/mutatingadmissionpolicybindings"), binding).await.code, 201);
    let made = post(&s, CONFIGMAPS, json!({"metadata": {"name": "x"}, "data": {"a": "1"}})).await;
    assert_eq!(made.body["data"], json!({"a": "1", "hook": "was here", "seen": "was here"}), "{}", made.body);
    // The webhook never asked to be asked again, and saw what the policy had made of the object before it.
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0]["object"]["data"]["seen"], "nothing");
}

#[tokio::test]
async fn validating_webhooks_are_asked_at_once_and_heard_in_order() {
    let s = server();
    let barrier = Arc::new(Barrier::new(3));
    let mut hooks = Vec::new();
    let mut webhooks = Vec::new();
    for (name, allowed) in [("a", true), ("b", false), ("c", false)] {
        let barrier = barrier.clone();
        // Asked one after another, the first would wait for ever.
        let hook = Hook::start(move |review| {
            let response = json!({"uid": review["request"]["uid"], "allowed": allowed, "warnings": [name],
                "status": {"message": name}});
            let kind =
                json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
            Reply::Together(barrier.clone(), kind)
        })
        .await;
        webhooks.push(json!({"name": format!("{name}.example.com"), "clientConfig": hook.config(),
            "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 30,
            "rules": rules("", "v1", "configmaps")}));
        hooks.push(hook);
    }
    let body = json!({"metadata": {"name": "hooks"}, "webhooks": webhooks});
    assert_eq!(post(&s, &format!("{GROUP}/validatingwebhookconfigurations"), body).await.code, 201);
    let denied = post(&s, CONFIGMAPS, json!({"metadata": {"name": "x"}})).await;
    assert_eq!(denied.code, 400, "{}", denied.body);
    assert_eq!(denied.body["message"], "admission webhook \"b.example.com\" denied the request: b");
    assert!(hooks.iter().all(|h| h.asked() == 1));
}
