//! What is told of requests: the events of each stage, at each level, through a server in the test's process.
#![allow(missing_docs)]

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use homeostat_access::{Attributes, User};
use homeostat_apiserver::audit::{Audit, Event, Interest, Log, Policy};
use homeostat_apiserver::{ApiServer, Body, PeerAddress};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use support::{read, send, server_with};
use tower::Service;

/// Keeps what it is told, by a policy.
#[derive(Debug)]
struct Keep(Policy, Mutex<Vec<Value>>);

impl Audit for Keep {
    fn interest(&self, request: &Attributes<'_>) -> Interest {
        self.0.interest(request)
    }

    fn tell(&self, event: Event) {
        self.1.lock().unwrap().push(serde_json::to_value(event).unwrap());
    }
}

impl Keep {
    fn take(&self) -> Vec<Value> {
        std::mem::take(&mut self.1.lock().unwrap())
    }

    /// The last event; its stage must be this.
    #[track_caller]
    fn last(&self, stage: &str) -> Value {
        let events = self.take();
        let last = events.last().cloned().expect("an event");
        assert_eq!(last["stage"], stage, "{events:#?}");
        last
    }
}

fn audited(rules: &str) -> (ApiServer, Arc<Keep>) {
    let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: {rules}");
    let keep = Arc::new(Keep(Policy::parse(&text).unwrap(), Mutex::default()));
    let audit = keep.clone();
    (server_with(|config| config.audit = Some(audit)), keep)
}

const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";
const JSON: &str = "application/json";

/// Sends a request with headers, as a user or without any; the answer whole.
async fn ask(
    s: &ApiServer,
    user: Option<User>,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Response<Bytes> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut request = request.body(Full::new(body.into())).unwrap();
    if let Some(user) = user {
        request.extensions_mut().insert(user);
    }
    request.extensions_mut().insert(PeerAddress([127, 0, 0, 1].into()));
    let (parts, body) = s.clone().call(request).await.unwrap().into_parts();
    Response::from_parts(parts, body.collect().await.unwrap().to_bytes())
}

#[tokio::test]
async fn a_create_is_told_in_two_stages() {
    let (s, keep) = audited("[{level: RequestResponse}]");
    let body = json!({"metadata": {"generateName": "c-"}, "data": {"a": "b"}});
    let headers = [("content-type", JSON), ("user-agent", "kubectl/v1"), ("audit-id", "mine")];
    let path = format!("{CONFIGMAPS}?fieldManager=me");
    let admin = Some(User::administrator("jane"));
    let answer = ask(&s, admin, Method::POST, &path, &headers, body.to_string()).await;
    assert_eq!((answer.status().as_u16(), answer.headers()["audit-id"].to_str().unwrap()), (201, "mine"));
    let created: Value = serde_json::from_slice(answer.body()).unwrap();

    let events = keep.take();
    let told = json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": "mine",
        "stage": "RequestReceived", "requestURI": path, "verb": "create",
        "user": {"username": "jane", "groups": ["system:masters", "system:authenticated"]},
        "sourceIPs": ["127.0.0.1"], "userAgent": "kubectl/v1",
        "objectRef": {"resource": "configmaps", "namespace": "default", "apiVersion": "v1"},
        "requestReceivedTimestamp": events[0]["requestReceivedTimestamp"],
        "stageTimestamp": events[0]["requestReceivedTimestamp"],
    });
    assert_eq!(events[0], told);
    assert_eq!(events[0]["stageTimestamp"].as_str().unwrap().len(), "2026-01-02T03:04:05.000000Z".len());
    let mut want = told;
    want["stage"] = "ResponseComplete".into();
    want["responseStatus"] = json!({"metadata": {}, "code": 201});
    want["requestObject"] = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "c-"}, "data": {"a": "b"},
    });
    want["responseObject"] = created;
    want["stageTimestamp"] = events[1]["stageTimestamp"].clone();
    want["annotations"] =
        json!({"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""});
    let mut got = events[1].clone();
    // Typed metadata may carry an empty time.
    got["requestObject"]["metadata"].as_object_mut().unwrap().retain(|_, v| !v.is_null());
    assert_eq!(got, want);
    assert_eq!(events.len(), 2);
}

/// Which parts of the last event a level tells.
async fn parts_of(level: &str, method: Method, path: &str, kind: &str, body: &str) -> (Value, [bool; 2]) {
    let (s, keep) = audited(&format!("[{{level: {level}}}]"));
    support::post(&s, CONFIGMAPS, json!({"metadata": {"name": "c", "labels": {"l": "v"}}})).await;
    keep.take();
    read(send(&s, method, path, kind, body.to_owned()).await).await;
    let event = keep.last("ResponseComplete");
    let parts = ["requestObject", "responseObject"].map(|k| event.get(k).is_some());
    (event, parts)
}

#[tokio::test]
async fn levels_tell_more_and_more() {
    let one = format!("{CONFIGMAPS}/c");
    let merge = "application/merge-patch+json";
    let patch = r#"{"data":{"a":"b"}}"#;
    for (level, parts) in
        [("Metadata", [false, false]), ("Request", [true, false]), ("RequestResponse", [true, true])]
    {
        assert_eq!(parts_of(level, Method::PATCH, &one, merge, patch).await.1, parts, "{level}");
    }
    let (event, _) = parts_of("Request", Method::PATCH, &one, merge, patch).await;
    assert_eq!(event["requestObject"], json!({"data": {"a": "b"}}), "a patch is told as it came");
    let apply = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: b}}";
    let (event, _) = parts_of(
        "Request",
        Method::PATCH,
        &format!("{one}?fieldManager=m&force=true"),
        "application/apply-patch+yaml",
        apply,
    )
    .await;
    assert_eq!(event["requestObject"]["data"], json!({"a": "b"}), "in JSON, whatever it was written in");
    // Lists are streamed, and told whole all the same.
    let (event, parts) = parts_of("RequestResponse", Method::GET, CONFIGMAPS, JSON, "").await;
    assert_eq!(parts, [false, true]);
    assert!(event["responseObject"]["items"].as_array().is_some_and(|i| !i.is_empty()), "{event:#}");
    // Paths that are no resources have no bodies.
    for path in ["/apis", "/version", "/healthz"] {
        assert_eq!(
            parts_of("RequestResponse", Method::GET, path, JSON, "").await.1,
            [false, false],
            "{path}"
        );
    }
    let options = r#"{"preconditions":{"uid":"x"}}"#;
    let (event, _) = parts_of("RequestResponse", Method::DELETE, &one, JSON, options).await;
    assert_eq!(event["requestObject"]["preconditions"]["uid"], "x");
    assert_eq!(event["responseStatus"]["code"], 409);
}

#[tokio::test]
async fn names_come_from_bodies_and_managed_fields_stay_out() {
    let (s, keep) = audited("[{level: RequestResponse, omitManagedFields: true}]");
    support::post(&s, CONFIGMAPS, json!({"metadata": {"name": "c"}, "data": {"a": "b"}})).await;
    let event = keep.last("ResponseComplete");
    assert_eq!(event["objectRef"]["name"], "c");
    assert!(event["responseObject"]["metadata"]["uid"].is_string());
    assert_eq!(event["responseObject"]["metadata"].get("managedFields"), None);
    let table = ask(
        &s,
        Some(User::administrator("jane")),
        Method::GET,
        &format!("{CONFIGMAPS}?includeObject=Object"),
        &[("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")],
        "",
    )
    .await;
    assert!(String::from_utf8_lossy(table.body()).contains("managedFields"));
    for event in keep.take() {
        assert!(!event.to_string().contains("managedFields"), "{event:#}");
    }
}

#[tokio::test]
async fn refusals_say_why() {
    let (s, keep) = audited("[{level: Metadata}]");
    let missing = read(send(&s, Method::GET, &format!("{CONFIGMAPS}/x"), JSON, "").await).await;
    let event = keep.last("ResponseComplete");
    assert_eq!(event["responseStatus"]["message"], missing.body["message"]);
    assert_eq!(event["responseStatus"]["details"], missing.body["details"]);
    assert_eq!(
        (&event["responseStatus"]["reason"], &event["responseStatus"]["code"]),
        (&json!("NotFound"), &json!(404))
    );

    let nobody = ask(&s, None, Method::GET, CONFIGMAPS, &[], "").await;
    assert_eq!(nobody.status(), 403);
    let event = keep.last("ResponseComplete");
    assert_eq!(event["user"]["username"], "system:anonymous");
    assert_eq!(event["annotations"]["authorization.k8s.io/decision"], "forbid");

    let forged = ask(&s, None, Method::GET, CONFIGMAPS, &[("authorization", "Bearer forged")], "").await;
    assert_eq!(forged.status(), 401);
    let events = keep.take();
    assert_eq!(events.len(), 1, "{events:#?}");
    assert_eq!((&events[0]["stage"], &events[0]["user"]), (&json!("ResponseStarted"), &json!({})));
    assert_eq!(
        events[0]["responseStatus"],
        json!({"metadata": {}, "message": "Authentication failed, attempted: bearer", "code": 401})
    );
}

#[tokio::test]
async fn both_users_of_an_impersonation_are_told() {
    let (s, keep) = audited("[{level: Metadata}]");
    let headers = [("impersonate-user", "john"), ("impersonate-group", "ops")];
    ask(&s, Some(User::administrator("jane")), Method::GET, CONFIGMAPS, &headers, "").await;
    let events = keep.take();
    assert_eq!(events[0].get("impersonatedUser"), None);
    assert_eq!(events[1]["user"]["username"], "jane");
    assert_eq!(
        events[1]["impersonatedUser"],
        json!({"username": "john", "groups": ["ops", "system:authenticated"]})
    );
}

#[tokio::test]
async fn a_watch_is_told_when_it_begins_and_when_it_ends() {
    let (s, keep) = audited("[{level: RequestResponse}]");
    support::post(&s, CONFIGMAPS, json!({"metadata": {"name": "c"}})).await;
    keep.take();
    let stages = || keep.take().iter().map(|e| e["stage"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let response = send(&s, Method::GET, &format!("{CONFIGMAPS}?watch=true"), JSON, "").await;
    assert_eq!(stages(), ["RequestReceived", "ResponseStarted"]);
    let mut body: Body = response.into_body();
    assert!(body.frame().await.is_some());
    assert!(stages().is_empty());
    drop(body);
    assert_eq!(stages(), ["ResponseComplete"]);
}

#[tokio::test]
async fn policies_choose_requests_and_stages() {
    let (s, keep) = audited(
        "[{level: None, verbs: [get]}, {level: Metadata, resources: [{resources: [configmaps]}], omitStages: [RequestReceived]}]",
    );
    for (method, path, told) in [
        (Method::GET, format!("{CONFIGMAPS}/c"), 0),
        (Method::GET, CONFIGMAPS.to_owned(), 1),
        (Method::GET, "/api/v1/namespaces/default/secrets".to_owned(), 0),
        (Method::DELETE, format!("{CONFIGMAPS}/c"), 1),
    ] {
        read(send(&s, method, &path, JSON, "").await).await;
        assert_eq!(keep.take().len(), told, "{path}");
    }
}

#[tokio::test]
async fn every_answer_names_its_request() {
    let s = support::server();
    let mut names = Vec::new();
    for path in ["/healthz", "/api/v1/namespaces", "/api/v1/nothing", "/nowhere"] {
        let response = send(&s, Method::GET, path, JSON, "").await;
        names.push(response.headers()["audit-id"].to_str().unwrap().to_owned());
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 4);
}

#[tokio::test]
async fn the_log_holds_one_line_for_each_event() {
    let folder = std::env::temp_dir().join(format!("homeostat-audit-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("audit.log");
    let log = Arc::new(Log::open(&path, Policy::parse("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, nonResourceURLs: ['/healthz*']}]").unwrap()).unwrap());
    let audit = log.clone();
    let s = server_with(|config| config.audit = Some(audit));
    for _ in 0..10 {
        read(send(&s, Method::GET, "/healthz", JSON, "").await).await;
        read(send(&s, Method::GET, CONFIGMAPS, JSON, "").await).await;
    }
    let closed = log.close(Duration::from_secs(60));
    assert_eq!((closed.dropped, closed.failed, closed.flushed), (0, 0, true));
    let text = std::fs::read_to_string(&path).unwrap();
    let events: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(events.len(), 20);
    assert!(events.iter().all(|e| e["requestURI"] == "/healthz"), "{text}");
    std::fs::remove_dir_all(&folder).unwrap();
}
