//! Admission policies in force: what they see, deny, warn of, annotate and change, and what becomes of failures.
#![allow(missing_docs)]

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use homeostat_access::{Attributes, User};
use homeostat_apiserver::ApiServer;
use homeostat_apiserver::audit::{Audit, Event, Interest, Level};
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};
use support::{Answer, delete, get, merge, post, put, server, server_with};
use tower::Service;

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

fn rules(group: &str, version: &str, resources: &str) -> Value {
    json!([{"apiGroups": [group], "apiVersions": [version], "operations": ["*"], "resources": [resources]}])
}

async fn made(s: &ApiServer, path: &str, body: Value) {
    let answer = post(s, path, body).await;
    assert_eq!(answer.code, 201, "{}", answer.body);
}

/// Registers a policy on config maps and binds it; `spec` has the rest of it, and may replace the rules.
async fn put_in_force(s: &ApiServer, mutating: bool, name: &str, spec: Value, binding: Value) {
    let which = if mutating { "mutating" } else { "validating" };
    let mut full = json!({"matchConstraints": {"resourceRules": rules("", "v1", "configmaps")}});
    if mutating {
        full["reinvocationPolicy"] = "Never".into();
    }
    for (key, value) in spec.as_object().unwrap() {
        full[key] = value.clone();
    }
    made(s, &format!("{GROUP}/{which}admissionpolicies"), json!({"metadata": {"name": name}, "spec": full}))
        .await;
    let mut bound = json!({"policyName": name});
    if !mutating {
        bound["validationActions"] = json!(["Deny"]);
    }
    for (key, value) in binding.as_object().unwrap() {
        bound[key] = value.clone();
    }
    let path = format!("{GROUP}/{which}admissionpolicybindings");
    made(s, &path, json!({"metadata": {"name": name}, "spec": bound})).await;
}

async fn validating(spec: Value, binding: Value) -> ApiServer {
    let s = server();
    put_in_force(&s, false, "p", spec, binding).await;
    s
}

fn config(name: &str, data: Value) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": name}}, "data": data})
}

/// The code of an answer, and its message where it has one.
fn told(answer: &Answer) -> (u16, &str) {
    (answer.code, answer.body["message"].as_str().unwrap_or_default())
}

#[track_caller]
fn check(answer: &Answer, code: u16, message: &str) {
    let (got, text) = told(answer);
    assert!(got == code && text.contains(message), "{got} {text}\nwanted {code} {message}");
}

#[tokio::test]
async fn expressions_see_the_whole_request() {
    for (expression, code) in [
        ("object.data.a == '1' && oldObject == null", 201),
        ("request.operation == 'CREATE' && request.name == 'x' && request.namespace == 'default'", 201),
        (
            "request.kind.kind == 'ConfigMap' && request.resource.resource == 'configmaps' && !request.dryRun",
            201,
        ),
        ("request.userInfo.username == 'test' && 'system:masters' in request.userInfo.groups", 201),
        ("namespaceObject.metadata.name == 'default' && namespaceObject.status.phase == 'Active'", 201),
        ("namespaceObject.metadata.creationTimestamp == timestamp('2026-01-02T03:04:05Z')", 201),
        ("authorizer.requestResource.check('delete').allowed()", 201),
        (
            "authorizer.serviceAccount('default', 'x').group('').resource('pods').namespace('default').check('get').allowed()",
            422,
        ),
        ("authorizer.path('/healthz').check('get').allowed()", 201),
        ("authorizer.serviceAccount('default', 'x').path('/metrics').check('get').allowed()", 422),
        ("has(object.metadata.uid) && object.metadata.labels['app'] == 'x'", 201),
    ] {
        let s = validating(json!({"validations": [{"expression": expression}]}), json!({})).await;
        let answer = post(&s, CONFIGMAPS, config("x", json!({"a": "1"}))).await;
        assert_eq!(answer.code, code, "{expression}: {}", answer.body);
    }
}

#[tokio::test]
async fn conditions_see_no_namespace_and_annotations_no_authorizer() {
    let spec = json!({"matchConditions": [{"name": "c", "expression": "namespaceObject == null"}],
        "variables": [{"name": "space", "expression": "namespaceObject.metadata.name"}],
        "validations": [{"expression": "variables.space != 'default'", "messageExpression": "'in ' + variables.space"}]});
    let s = validating(spec, json!({})).await;
    check(&post(&s, CONFIGMAPS, config("x", json!({}))).await, 422, "denied request: in default");
    let told = "authorizer.path('/x').check('get').reason()";
    let spec = json!({"auditAnnotations": [{"key": "k", "valueExpression": told}]});
    let s = validating(spec, json!({})).await;
    check(&post(&s, CONFIGMAPS, config("x", json!({}))).await, 422, "no such attribute(s): authorizer");
}

#[tokio::test]
async fn deletes_have_only_an_old_object() {
    let spec = json!({"validations": [
        {"expression": "request.operation != 'DELETE' || oldObject.data.keep == 'no'", "message": "kept"}]});
    let s = validating(spec, json!({})).await;
    made(&s, CONFIGMAPS, config("a", json!({"keep": "yes"}))).await;
    made(&s, CONFIGMAPS, config("b", json!({"keep": "no"}))).await;
    check(&delete(&s, &format!("{CONFIGMAPS}/a")).await, 422, "denied request: kept");
    check(&delete(&s, &format!("{CONFIGMAPS}/b")).await, 200, "");
}

#[tokio::test]
async fn who_is_asked_is_chosen() {
    let deny = json!([{"expression": "false", "message": "no"}]);
    for (more, binding, code) in [
        (json!({}), json!({}), 422),
        (json!({"objectSelector": {"matchLabels": {"app": "x"}}}), json!({}), 422),
        (json!({"objectSelector": {"matchLabels": {"app": "y"}}}), json!({}), 201),
        (
            json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}),
            json!({}),
            201,
        ),
        (json!({"excludeResourceRules": rules("*", "*", "*")}), json!({}), 201),
        (json!({"excludeResourceRules": rules("", "v1", "pods")}), json!({}), 422),
        (json!({}), json!({"matchResources": {"resourceRules": rules("", "v1", "secrets")}}), 201),
        (json!({}), json!({"matchResources": {"objectSelector": {"matchLabels": {"app": "x"}}}}), 422),
        (json!({}), json!({"matchResources": {"namespaceSelector": {"matchLabels": {"a": "b"}}}}), 201),
    ] {
        let mut constraints = json!({"resourceRules": rules("", "v1", "configmaps")});
        for (key, value) in more.as_object().unwrap() {
            constraints[key] = value.clone();
        }
        let s =
            validating(json!({"matchConstraints": constraints, "validations": deny}), binding.clone()).await;
        let answer = post(&s, CONFIGMAPS, config("x", json!({}))).await;
        assert_eq!(answer.code, code, "{constraints} {binding}: {}", answer.body);
    }
    let mut named = rules("", "v1", "configmaps");
    named[0]["resourceNames"] = json!(["x"]);
    let constraints = json!({"resourceRules": named});
    let s = validating(json!({"matchConstraints": constraints, "validations": deny}), json!({})).await;
    check(&post(&s, CONFIGMAPS, config("x", json!({}))).await, 422, "no");
    check(&post(&s, CONFIGMAPS, config("y", json!({}))).await, 201, "");
}

#[tokio::test]
async fn other_versions_of_an_object_are_matched_through_the_one_that_is_named() {
    let scalers = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
    let scaler = json!({"metadata": {"name": "x"}, "spec": {"maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}}]}});
    let rules = rules("autoscaling", "v1", "horizontalpodautoscalers");
    for (policy, code) in [("Equivalent", 422), ("Exact", 201)] {
        let spec = json!({
            "matchConstraints": {"matchPolicy": policy, "resourceRules": rules},
            "validations": [{
                "expression": "object.spec.targetCPUUtilizationPercentage <= 50",
                "messageExpression": "request.kind.version + ' of ' + request.requestKind.version + ': ' \
                                      + string(object.spec.targetCPUUtilizationPercentage)"}]});
        let s = validating(spec, json!({})).await;
        let answer = post(&s, scalers, scaler.clone()).await;
        check(&answer, code, if code == 422 { "denied request: v1 of v2: 60" } else { "" });
    }
    let s = server();
    let spec = json!({"matchConstraints": {"resourceRules": rules}, "mutations": [{"patchType": "JSONPatch",
        "jsonPatch": {"expression": "[JSONPatch{op: 'replace', path: '/spec/targetCPUUtilizationPercentage', value: 40}]"}}]});
    put_in_force(&s, true, "p", spec, json!({})).await;
    let made = post(&s, scalers, scaler).await;
    assert_eq!(
        made.body["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 40,
        "{}",
        made.body
    );
    assert_eq!(made.body["apiVersion"], "autoscaling/v2");
}

#[tokio::test]
async fn failures_are_the_failure_policys() {
    let loops = "object.data.a.split(',').all(x, object.data.a.split(',').all(y, object.data.a.split(',').all(z, x + y + z != '')))";
    for (spec, message) in [
        (
            json!({"validations": [{"expression": "object.data.none == '1'"}]}),
            "denied request: expression 'object.data.none == '1'' resulted in error: no such key: none",
        ),
        (
            json!({"variables": [{"name": "v", "expression": "int(object.data.a)"}], "validations": [{"expression": "variables.v > 1"}]}),
            "resulted in error: composited variable \"v\" fails to evaluate: type conversion error from 'string' to 'int'",
        ),
        (
            json!({"matchConditions": [{"name": "c", "expression": "object.none"}], "validations": [{"expression": "true"}]}),
            "",
        ),
        (
            json!({"matchConditions": [{"name": "c", "expression": "object.none == 1"}, {"name": "d", "expression": "object.some == 1"}],
                "validations": [{"expression": "true"}]}),
            "denied request: [expression 'object.none == 1' resulted in error: no such key: none, expression 'object.some == 1' resulted in error: no such key: some]",
        ),
        (
            json!({"validations": [{"expression": loops}]}),
            "resulted in error: operation cancelled: actual cost limit exceeded",
        ),
        (
            json!({"auditAnnotations": [{"key": "k", "valueExpression": "string(object.data.none)"}]}),
            "denied request: expression 'string(object.data.none)' resulted in error: no such key: none",
        ),
        (
            json!({"paramKind": {"apiVersion": "absent.example.com/v1", "kind": "Limit"}, "validations": [{"expression": "params != null"}]}),
            "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'absent.example.com/v1, Kind=Limit'",
        ),
    ] {
        for fail in [true, false] {
            let mut spec = spec.clone();
            spec["failurePolicy"] = if fail { "Fail" } else { "Ignore" }.into();
            let s = server();
            let policy = json!({"metadata": {"name": "p"}, "spec": spec});
            // What does not compile is refused when it is registered.
            if message.is_empty() {
                check(
                    &post(&s, &format!("{GROUP}/validatingadmissionpolicies"), policy).await,
                    422,
                    "must evaluate to bool but got dyn",
                );
                continue;
            }
            put_in_force(&s, false, "p", spec, json!({})).await;
            let many = vec!["x"; 400].join(",");
            let answer = post(&s, CONFIGMAPS, config("x", json!({"a": many}))).await;
            check(&answer, if fail { 422 } else { 201 }, if fail { message } else { "" });
        }
    }
}

#[tokio::test]
async fn parameters_are_read_as_they_are() {
    let spec = json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": {"resourceRules": rules("", "v1", "secrets")},
        "validations": [{"expression": "params == null || size(object.metadata.name) <= int(params.data.max)",
            "messageExpression": "'longer than ' + params.data.max"}]});
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = |name: &str| json!({"metadata": {"name": name}});
    let s = validating(spec.clone(), json!({})).await;
    check(&post(&s, secrets, secret("without-parameters")).await, 201, "");

    let reference =
        json!({"selector": {"matchLabels": {"limits": "yes"}}, "parameterNotFoundAction": "Deny"});
    let s = validating(spec.clone(), json!({"paramRef": reference})).await;
    check(
        &post(&s, secrets, secret("abc")).await,
        422,
        "no params found for policy binding with `Deny` parameterNotFoundAction",
    );
    for max in ["3", "5"] {
        let params = json!({"metadata": {"name": format!("max-{max}"), "labels": {"limits": "yes"}}, "data": {"max": max}});
        made(&s, CONFIGMAPS, params).await;
    }
    check(&post(&s, secrets, secret("abc")).await, 201, "");
    check(&post(&s, secrets, secret("abcd")).await, 422, "denied request: longer than 3");
    assert_eq!(delete(&s, &format!("{CONFIGMAPS}/max-3")).await.code, 200);
    check(&post(&s, secrets, secret("abcd")).await, 201, "");

    let mut nodes = spec;
    nodes["matchConstraints"]["resourceRules"] = rules("", "v1", "namespaces");
    let reference = json!({"name": "a", "parameterNotFoundAction": "Allow"});
    let s = validating(nodes, json!({"paramRef": reference})).await;
    let namespace = post(&s, "/api/v1/namespaces", json!({"metadata": {"name": "n"}})).await;
    check(
        &namespace,
        422,
        "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources",
    );
}

/// Keeps the annotations of what it is told.
#[derive(Debug, Default)]
struct Notes(Mutex<Vec<Value>>);

impl Audit for Notes {
    fn interest(&self, _: &Attributes<'_>) -> Interest {
        Interest { level: Level::Metadata, ..Interest::default() }
    }

    fn tell(&self, event: Event) {
        let mut annotations = serde_json::to_value(event.annotations).unwrap();
        annotations.as_object_mut().unwrap().retain(|k, _| !k.starts_with("authorization"));
        self.0.lock().unwrap().push(annotations);
    }
}

#[tokio::test]
async fn what_is_said_of_a_request_is_audited() {
    let notes = Arc::new(Notes::default());
    let audit = notes.clone();
    let s = server_with(|config| config.audit = Some(audit));
    let spec = json!({"validations": [{"expression": "true"}, {"expression": "object.data.a == 'x'", "message": "not \"x\""}],
        "auditAnnotations": [{"key": "who", "valueExpression": "'by ' + request.userInfo.username"},
            {"key": "none", "valueExpression": "object.data.a == 'x' ? 'x' : ''"}]});
    put_in_force(&s, false, "p", spec, json!({"validationActions": ["Warn", "Audit"]})).await;
    notes.0.lock().unwrap().clear();
    let answer = post(&s, CONFIGMAPS, config("a", json!({"a": "y"}))).await;
    check(&answer, 201, "");
    let warning =
        "299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': not \\\"x\\\"\"";
    assert_eq!(answer.warnings, [warning]);
    tokio::time::sleep(Duration::from_millis(1)).await;
    let failure = r#"[{"message":"not \"x\"","policy":"p","binding":"p","expressionIndex":1,"validationActions":["Warn","Audit"]}]"#;
    assert_eq!(
        notes.0.lock().unwrap().last(),
        Some(&json!({"p/who": "by test", "validation.policy.admission.k8s.io/validation_failure": failure}))
    );
}

#[tokio::test]
async fn mutations_that_do_not_fit_leave_the_object_alone() {
    let apply = |expression: &str| json!([{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}]);
    let patch =
        |expression: &str| json!([{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}]);
    for (mutations, message) in [
        (apply("Object{data: {'b': '2'}}"), ""),
        (
            patch(
                "[JSONPatch{op: 'test', path: '/data/a', value: 'other'}, JSONPatch{op: 'remove', path: '/data'}]",
            ),
            "",
        ),
        (
            patch("[JSONPatch{op: 'remove', path: '/data/none'}]"),
            "policy 'p' with binding 'p' denied request: JSON Patch: ",
        ),
        (
            apply("Object{metadata: Object.data{labels: {'a': 'b'}}}"),
            "denied request: type mismatch: unexpected type name \"Object.data\", expected \"Object.metadata\", which matches field name path from root Object type",
        ),
        (
            apply("Object{dato: {'b': '2'}}"),
            "denied request: error applying patch: failed to convert patch object to typed object: .dato: field not declared in schema",
        ),
        (
            apply("Object{data: object.none}"),
            "denied request: expression 'Object{data: object.none}' resulted in error: no such key: none",
        ),
    ] {
        for fail in [true, false] {
            let s = server();
            let spec = json!({"mutations": mutations, "failurePolicy": if fail { "Fail" } else { "Ignore" }});
            put_in_force(&s, true, "p", spec, json!({})).await;
            let answer = post(&s, CONFIGMAPS, config("x", json!({"a": "1"}))).await;
            if fail && !message.is_empty() {
                check(&answer, 403, message);
                assert_eq!(answer.body["reason"], "Invalid");
            } else {
                check(&answer, 201, "");
                let want = if mutations[0]["applyConfiguration"]["expression"] == "Object{data: {'b': '2'}}" {
                    json!({"a": "1", "b": "2"})
                } else {
                    json!({"a": "1"})
                };
                assert_eq!(answer.body["data"], want, "{mutations}");
            }
        }
    }
    let s = server();
    let spec = json!({"mutations": apply("Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'a': 'b'}}}}"),
        "matchConstraints": {"resourceRules": rules("apps", "v1", "deployments")}});
    put_in_force(&s, true, "p", spec, json!({})).await;
    let deployment = json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "x"}},
        "template": {"metadata": {"labels": {"a": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    check(
        &post(&s, "/apis/apps/v1/namespaces/default/deployments", deployment).await,
        403,
        "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.selector",
    );
}

#[tokio::test]
async fn a_policy_that_asks_for_it_sees_what_later_ones_change() {
    for (again, want) in [("IfNeeded", "b"), ("Never", "")] {
        let s = server();
        let copy = "Object{metadata: Object.metadata{annotations: {'seen': object.metadata.?labels.?late.orValue('')}}}";
        let mutate = |expression: &str| json!([{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}]);
        put_in_force(
            &s,
            true,
            "a",
            json!({"mutations": mutate(copy), "reinvocationPolicy": again}),
            json!({}),
        )
        .await;
        let late = "Object{metadata: Object.metadata{labels: {'late': 'b'}}}";
        put_in_force(&s, true, "b", json!({"mutations": mutate(late)}), json!({})).await;
        let made = post(&s, CONFIGMAPS, config("x", json!({}))).await;
        assert_eq!(made.body["metadata"]["annotations"]["seen"], want, "{again}");
        // It was written after the policies: nothing is left to change.
        let same = put(&s, &format!("{CONFIGMAPS}/x"), made.body.clone()).await;
        assert_eq!(same.code, 200, "{}", same.body);
    }
}

#[tokio::test]
async fn policies_come_and_go_at_once() {
    let s =
        validating(json!({"validations": [{"expression": "false", "message": "first"}]}), json!({})).await;
    check(&post(&s, CONFIGMAPS, config("x", json!({}))).await, 422, "first");
    let policy = format!("{GROUP}/validatingadmissionpolicies/p");
    let changed = json!({"spec": {"validations": [{"expression": "false", "message": "second"}]}});
    check(&merge(&s, &policy, changed).await, 200, "");
    check(&post(&s, CONFIGMAPS, config("x", json!({}))).await, 422, "second");
    assert_eq!(delete(&s, &policy).await.code, 200);
    check(&post(&s, CONFIGMAPS, config("x", json!({}))).await, 201, "");
    // No policy is asked about policies.
    let all = json!({"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]});
    let s = validating(json!({"matchConstraints": all, "validations": [{"expression": "false"}]}), json!({}))
        .await;
    check(&post(&s, CONFIGMAPS, config("x", json!({}))).await, 422, "");
    assert_eq!(delete(&s, &policy).await.code, 200);
    assert_eq!(post(&s, CONFIGMAPS, config("x", json!({}))).await.code, 201);
}

#[tokio::test]
async fn who_registers_a_policy_may_read_its_parameters() {
    let s = server();
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let grant = async |name: &str, group: &str, resources: Value, verbs: Value| {
        let rule = json!([{"apiGroups": [group], "resources": resources, "verbs": verbs}]);
        made(&s, &format!("{rbac}/clusterroles"), json!({"metadata": {"name": name}, "rules": rule})).await;
        let binding = json!({"metadata": {"name": name}, "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}});
        made(&s, &format!("{rbac}/clusterrolebindings"), binding).await;
    };
    grant("policies", "admissionregistration.k8s.io", json!(["*"]), json!(["*"])).await;
    let jane = async |plural: &str, body: Value| {
        let request = Request::post(format!("{GROUP}/{plural}"))
            .header("Content-Type", "application/json")
            .extension(User::new("jane", ["devs"]))
            .body(Full::new(Bytes::from(body.to_string())))
            .unwrap();
        support::read(s.clone().call(request).await.unwrap()).await
    };
    let policy = json!({"metadata": {"name": "p"}, "spec": {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": {"resourceRules": rules("", "v1", "pods")}, "validations": [{"expression": "true"}]}});
    let binding = json!({"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"],
        "paramRef": {"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"}}});
    let refused = jane("validatingadmissionpolicies", policy.clone()).await;
    let why = "spec.paramKind: Forbidden: user &{jane  [devs system:authenticated] map[]} must have \"get\" permission on all \
               objects of the referenced paramKind (kind=ConfigMap, apiVersion=v1)";
    check(&refused, 422, why);
    made(&s, &format!("{GROUP}/validatingadmissionpolicies"), policy).await;
    let refused = jane("validatingadmissionpolicybindings", binding.clone()).await;
    check(&refused, 422, "does not have \"get\" permission on the object referenced by paramRef");
    grant("limits", "", json!(["configmaps"]), json!(["get"])).await;
    assert_eq!(jane("validatingadmissionpolicybindings", binding).await.code, 201);
}

#[tokio::test]
async fn types_are_checked_after_registration() {
    let s = server();
    let spec = json!({
        "matchConstraints": {"resourceRules": [
            {"apiGroups": ["apps", "batch"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["jobs", "deployments", "deployments/scale"]}]},
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "variables": [{"name": "labels", "expression": "object.metadata.labels"}],
        "validations": [
            {"expression": "variables.labels['a'] == 'b' && object.spec.template.spec.containers.all(c, c.name != '')"},
            {"expression": "object.spec.replicas > 1", "messageExpression": "'' + params.data.x + params.date"}]});
    put_in_force(&s, false, "p", spec, json!({})).await;
    let path = format!("{GROUP}/validatingadmissionpolicies/p");
    let mut status = Value::Null;
    for _ in 0..1000 {
        status = get(&s, &path).await.body["status"].take();
        if status["observedGeneration"] == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let field = |n: usize, name: &str| format!("spec.validations[{n}].{name}");
    let date = "ERROR: <input>:1:28: undefined field 'date'\n | '' + params.data.x + params.date\n | ...........................^\n";
    let replicas = "batch/v1, Kind=Job: ERROR: <input>:1:12: undefined field 'replicas'\n | object.spec.replicas > 1\n | ...........^\n";
    assert_eq!(
        status,
        json!({"observedGeneration": 1, "typeChecking": {"expressionWarnings": [
            {"fieldRef": field(1, "expression"), "warning": replicas},
            {"fieldRef": field(1, "messageExpression"),
                "warning": format!("apps/v1, Kind=Deployment: {date}\nbatch/v1, Kind=Job: {date}")}]}})
    );
}
