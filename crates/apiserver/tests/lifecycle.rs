//! From an empty store to custom resources and back, in-process: what every client does first.
#![allow(missing_docs)]

mod support;

use std::time::Duration;

use homeostat_apiserver::ApiServer;
use http::Method;
use serde_json::{Value, json};
use support::{apply, delete, get, merge, post, put, read, send, server, watch};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wg"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "color": {"type": "string", "default": "blue"},
                        "size": {"type": "integer", "minimum": 1, "maximum": 100},
                    }},
                    "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
                }}},
            }],
        },
    })
}

fn widget(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

/// Waits until a GET answers with this code.
async fn until(server: &ApiServer, path: &str, code: u16) {
    for _ in 0..1000 {
        if get(server, path).await.code == code {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("{path} never answered {code}");
}

async fn with_widgets() -> ApiServer {
    let s = server();
    assert_eq!(post(&s, CRDS, crd()).await.code, 201);
    until(&s, WIDGETS, 200).await;
    s
}

#[tokio::test(start_paused = true)]
async fn a_refused_patch_is_shown_with_what_is_wrong_in_it() {
    let s = with_widgets().await;
    assert_eq!(post(&s, WIDGETS, widget("a", json!({}))).await.code, 201);
    for (form, patch) in [
        ("application/merge-patch+json", json!({"spec": {"nope": 1}})),
        ("application/json-patch+json", json!([{"op": "add", "path": "/spec/nope", "value": 1}])),
    ] {
        let path = format!("{WIDGETS}/a?fieldValidation=Strict");
        let refused = read(send(&s, Method::PATCH, &path, form, patch.to_string()).await).await;
        let message = refused.body["message"].as_str().unwrap_or_default();
        assert_eq!(refused.code, 422, "{message}");
        assert!(message.contains("unknown field \"spec.nope\""), "{message}");
        assert!(message.contains(r#"\"nope\":1"#), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_fresh_server_has_its_namespaces_and_tells_what_it_serves() {
    let s = server();
    let names = get(&s, "/api/v1/namespaces").await.body;
    let names: Vec<&str> =
        names["items"].as_array().unwrap().iter().map(|n| n["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["default", "kube-node-lease", "kube-public", "kube-system"]);
    assert_eq!(
        get(&s, "/api/v1/namespaces/default/services/kubernetes").await.body["spec"]["clusterIP"],
        "10.96.0.1"
    );
    let groups = get(&s, "/apis").await.body;
    assert!(groups["groups"].as_array().unwrap().iter().any(|g| g["name"] == "apps"));
    assert_eq!(get(&s, "/version").await.body["minor"], "36");
}

#[tokio::test(start_paused = true)]
async fn without_credentials_little_answers() {
    let s = server();
    for (path, code) in [
        ("/healthz", 200),
        ("/readyz?verbose", 200),
        ("/version", 200),
        ("/api/v1/pods", 403),
        ("/apis", 403),
    ] {
        let request = http::Request::get(path).body(http_body_util::Full::new(bytes::Bytes::new())).unwrap();
        let r = tower::Service::call(&mut s.clone(), request).await.unwrap();
        assert_eq!(r.status(), code, "{path}");
    }
    let request = http::Request::get("/api/v1/pods")
        .header("Authorization", "Bearer wrong")
        .body(http_body_util::Full::new(bytes::Bytes::new()))
        .unwrap();
    assert_eq!(tower::Service::call(&mut s.clone(), request).await.unwrap().status(), 401);
}

#[tokio::test(start_paused = true)]
async fn custom_resources_come_alive_and_go_with_their_definition() {
    let s = with_widgets().await;
    let made = post(&s, WIDGETS, widget("a", json!({"size": 1}))).await;
    assert_eq!((made.code, &made.body["spec"]), (201, &json!({"color": "blue", "size": 1})));
    assert_eq!(post(&s, WIDGETS, widget("big", json!({"size": 101}))).await.code, 422);
    let changed =
        merge(&s, &format!("{WIDGETS}/a"), json!({"spec": {"size": 2}, "status": {"ready": true}})).await;
    assert_eq!((&changed.body["metadata"]["generation"], &changed.body["status"]), (&json!(2), &Value::Null));
    let again = merge(&s, &format!("{WIDGETS}/a"), json!({"spec": {"size": 2}})).await;
    assert_eq!(again.body, changed.body, "nothing changed, so nothing was written");
    let status = merge(&s, &format!("{WIDGETS}/a/status"), json!({"status": {"ready": true}})).await;
    assert_eq!(
        (&status.body["metadata"]["generation"], &status.body["status"]["ready"]),
        (&json!(2), &json!(true))
    );
    let list = get(&s, WIDGETS).await.body;
    assert_eq!((list["kind"].as_str(), list["items"].as_array().unwrap().len()), (Some("WidgetList"), 1));
    assert_eq!(delete(&s, &format!("{CRDS}/widgets.example.com")).await.code, 200);
    until(&s, &format!("{CRDS}/widgets.example.com"), 404).await;
    assert_eq!(get(&s, WIDGETS).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn watches_tell_every_change_in_order() {
    let s = with_widgets().await;
    post(&s, WIDGETS, widget("a", json!({"size": 1}))).await;
    let version = get(&s, WIDGETS).await.body["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let mut all = watch(&s, &format!("{WIDGETS}?watch=true")).await;
    let mut since = watch(&s, &format!("{WIDGETS}?watch=true&resourceVersion={version}")).await;
    let mut blue =
        watch(&s, &format!("{WIDGETS}?watch=true&resourceVersion={version}&labelSelector=tone=blue")).await;
    assert_eq!(all.brief().await, "ADDED a");
    let mut labelled = widget("b", json!({}));
    labelled["metadata"]["labels"] = json!({"tone": "blue"});
    post(&s, WIDGETS, labelled).await;
    merge(&s, &format!("{WIDGETS}/b"), json!({"metadata": {"labels": {"tone": "red"}}})).await;
    delete(&s, &format!("{WIDGETS}/b")).await;
    for w in [&mut all, &mut since] {
        for expect in ["ADDED b", "MODIFIED b", "DELETED b"] {
            assert_eq!(w.brief().await, expect);
        }
    }
    assert_eq!((blue.brief().await, blue.brief().await), ("ADDED b".to_owned(), "DELETED b".to_owned()));
    s.drain();
    assert_eq!(all.brief().await, "END");
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_changes_bookmarks_and_ends() {
    let s = server();
    let mut w = watch(
        &s,
        "/api/v1/configmaps?watch=true&allowWatchBookmarks=true&timeoutSeconds=100&resourceVersion=1",
    )
    .await;
    assert_eq!((w.brief().await, w.brief().await), ("BOOKMARK".to_owned(), "BOOKMARK".to_owned()));
    assert_eq!(w.brief().await, "END");
}

#[tokio::test(start_paused = true)]
async fn pages_show_one_state() {
    let s = server();
    let path = "/api/v1/namespaces/default/configmaps";
    for name in ["a", "b", "c", "d", "e"] {
        assert_eq!(post(&s, path, json!({"metadata": {"name": name}})).await.code, 201);
    }
    let names = |v: &Value| -> String {
        v["items"].as_array().unwrap().iter().map(|i| i["metadata"]["name"].as_str().unwrap()).collect()
    };
    let first = get(&s, &format!("{path}?limit=2")).await.body;
    assert_eq!((names(&first).as_str(), &first["metadata"]["remainingItemCount"]), ("ab", &json!(3)));
    delete(&s, &format!("{path}/d")).await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    let rest = get(&s, &format!("{path}?continue={token}")).await.body;
    assert_eq!(names(&rest), "cde");
    assert_eq!(first["metadata"]["resourceVersion"], rest["metadata"]["resourceVersion"]);
}

#[tokio::test(start_paused = true)]
async fn stale_updates_conflict_and_applies_share() {
    let s = with_widgets().await;
    let made = post(&s, WIDGETS, widget("a", json!({"size": 1}))).await.body;
    merge(&s, &format!("{WIDGETS}/a"), json!({"spec": {"size": 2}})).await;
    let stale = put(&s, &format!("{WIDGETS}/a"), made).await;
    assert_eq!((stale.code, stale.body["reason"].as_str()), (409, Some("Conflict")));
    let applied = apply(&s, &format!("{WIDGETS}/b?fieldManager=one"), widget("b", json!({"size": 3}))).await;
    assert_eq!(applied.code, 201);
    let other = apply(&s, &format!("{WIDGETS}/b?fieldManager=two"), widget("b", json!({"size": 4}))).await;
    assert_eq!(other.code, 409);
    let forced =
        apply(&s, &format!("{WIDGETS}/b?fieldManager=two&force=true"), widget("b", json!({"size": 4}))).await;
    assert_eq!((forced.code, &forced.body["spec"]["size"]), (200, &json!(4)));
}

#[tokio::test(start_paused = true)]
async fn services_get_addresses_that_nobody_else_has() {
    let s = server();
    let path = "/api/v1/namespaces/default/services";
    let mut seen = std::collections::BTreeSet::new();
    for i in 0..20 {
        let made = post(
            &s,
            path,
            json!({
                "metadata": {"name": format!("s{i}")},
                "spec": {"type": "NodePort", "ports": [{"port": 80}]},
            }),
        )
        .await;
        assert_eq!(made.code, 201, "{}", made.body);
        assert!(seen.insert(made.body["spec"]["clusterIP"].to_string()));
        assert!(seen.insert(made.body["spec"]["ports"][0]["nodePort"].to_string()));
    }
    let taken = post(
        &s,
        path,
        json!({
            "metadata": {"name": "late"}, "spec": {"clusterIP": "10.96.0.1", "ports": [{"port": 80}]},
        }),
    )
    .await;
    assert_eq!(taken.code, 422);
}

#[tokio::test(start_paused = true)]
async fn bad_input_is_told_what_is_wrong_with_it() {
    let s = server();
    let path = "/api/v1/namespaces/default/configmaps";
    for (method, path, kind, body, code) in [
        (Method::POST, path, "application/json", "{", 400),
        (Method::POST, path, "application/json", "[1]", 400),
        (Method::POST, path, "application/json", "", 400),
        (Method::POST, path, "text/plain", "{}", 415),
        (Method::POST, path, "application/yaml", "metadata: {name: why}", 201),
        (Method::POST, path, "application/yaml", "a: [", 400),
        (Method::POST, path, "application/json", r#"{"metadata":{"name":7}}"#, 400),
        (Method::POST, path, "application/json", r#"{"kind":"Pod","apiVersion":"v1"}"#, 400),
        (
            Method::POST,
            "/api/v1/namespaces/absent/configmaps",
            "application/json",
            r#"{"metadata":{"name":"a"}}"#,
            404,
        ),
        (Method::POST, "/api/v1/nothing", "application/json", "{}", 404),
        (Method::GET, "/apis/no.such/v1/things", "application/json", "", 404),
        (Method::TRACE, path, "application/json", "", 405),
        (Method::PATCH, "/api/v1/namespaces/default/configmaps/why", "application/json", "{}", 415),
        (
            Method::PATCH,
            "/api/v1/namespaces/default/configmaps/why",
            "application/json-patch+json",
            "{}",
            400,
        ),
        (
            Method::DELETE,
            "/api/v1/namespaces/default/configmaps/why?dryRun=Some",
            "application/json",
            "",
            422,
        ),
    ] {
        let r = read(send(&s, method.clone(), path, kind, body).await).await;
        assert_eq!(r.code, code, "{method} {path} {body}: {}", r.body);
    }
    let large = vec![b' '; 3 * 1024 * 1024 + 1];
    assert_eq!(read(send(&s, Method::POST, path, "application/json", large).await).await.code, 413);
}

#[tokio::test(start_paused = true)]
async fn old_versions_and_old_events_expire() {
    let s = server();
    let path = "/api/v1/namespaces/default/configmaps";
    let first =
        post(&s, path, json!({"metadata": {"name": "a"}})).await.body["metadata"]["resourceVersion"].clone();
    let event = json!({
        "metadata": {"name": "e"}, "type": "Normal", "reason": "Test", "message": "m",
        "involvedObject": {"kind": "ConfigMap", "namespace": "default", "name": "a"},
    });
    assert_eq!(post(&s, "/api/v1/namespaces/default/events", event).await.code, 201);
    let page = get(&s, &format!("{path}?limit=1&resourceVersion=0&resourceVersionMatch=NotOlderThan")).await;
    assert_eq!(page.code, 200);
    tokio::time::sleep(Duration::from_secs(11 * 60)).await;
    let version = first.as_str().unwrap();
    let exact = get(&s, &format!("{path}?resourceVersion={version}&resourceVersionMatch=Exact")).await;
    assert_eq!((exact.code, exact.body["reason"].as_str()), (410, Some("Expired")));
    let mut w = watch(&s, &format!("{path}?watch=true&resourceVersion=1")).await;
    let told = w.next().await.unwrap();
    assert_eq!((told["type"].as_str(), &told["object"]["code"]), (Some("ERROR"), &json!(410)));
    assert_eq!(get(&s, "/api/v1/namespaces/default/events/e").await.code, 200);
    tokio::time::sleep(Duration::from_secs(65 * 60)).await;
    assert_eq!(get(&s, "/api/v1/namespaces/default/events/e").await.code, 404);
}
