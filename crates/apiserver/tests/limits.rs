//! What a client can make grow has a limit, and each limit its answer: bodies, nesting, patches, requests under way,
//! watches.
#![allow(missing_docs)]

mod support;

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures::SinkExt;
use futures::channel::mpsc;
use homeostat_access::User;
use homeostat_apiserver::{ApiServer, InFlight};
use http::{Method, Request, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use serde_json::{Value, json};
use support::{get, post, read, send, server, server_with, watch};
use tower::Service;

const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";
const JSON: &str = "application/json";
const MIB: usize = 1024 * 1024;

fn limited(most: InFlight) -> ApiServer {
    server_with(|config| config.most = most)
}

/// Lets everything run that can.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// The answer to one request too many.
async fn check_turned_away(s: &ApiServer, method: Method, path: &str) {
    let response = send(s, method, path, JSON, r#"{"metadata":{"name":"n"}}"#).await;
    assert_eq!(response.headers()["retry-after"], "1");
    let answer = read(response).await;
    assert_eq!(answer.code, 429);
    let want = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "TooManyRequests",
        "message": "Too many requests, please try again later.", "details": {"retryAfterSeconds": 1}, "code": 429,
    });
    assert_eq!(answer.body, want, "{path}");
}

#[tokio::test(start_paused = true)]
async fn writes_under_way() {
    let s = limited(InFlight { writing: 1, ..InFlight::default() });
    let (mut sender, chunks) = mpsc::channel::<Result<Frame<Bytes>, Infallible>>(1);
    let request = Request::post(CONFIGMAPS)
        .header("content-type", JSON)
        .extension(User::administrator("test"))
        .body(StreamBody::new(chunks))
        .unwrap();
    let slow = tokio::spawn(s.clone().call(request));
    settle().await;
    check_turned_away(&s, Method::POST, CONFIGMAPS).await;
    check_turned_away(&s, Method::DELETE, &format!("{CONFIGMAPS}/x")).await;
    assert_eq!(get(&s, CONFIGMAPS).await.code, 200, "reading goes on");
    let body = Bytes::from(r#"{"metadata":{"name":"slow"}}"#);
    sender.send(Ok(Frame::data(body))).await.unwrap();
    drop(sender);
    assert_eq!(slow.await.unwrap().unwrap().status(), StatusCode::CREATED);
    assert_eq!(
        post(&s, CONFIGMAPS, json!({"metadata": {"name": "n"}})).await.code,
        201,
        "the place is free again"
    );
}

#[tokio::test(start_paused = true)]
async fn reads_under_way() {
    let s = limited(InFlight { reading: 1, ..InFlight::default() });
    // A version that is not there yet is waited for.
    let ahead = format!("{CONFIGMAPS}?resourceVersion=1000000");
    let other = s.clone();
    let slow = tokio::spawn(async move { get(&other, &ahead).await.code });
    settle().await;
    check_turned_away(&s, Method::GET, CONFIGMAPS).await;
    for path in ["/healthz", "/readyz", "/apis", "/version"] {
        assert_eq!(get(&s, path).await.code, 200, "{path} is always answered");
    }
    assert_eq!(slow.await.unwrap(), 504);
    assert_eq!(get(&s, CONFIGMAPS).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn watches_under_way() {
    let s = limited(InFlight { watching: 2, ..InFlight::default() });
    let path = format!("{CONFIGMAPS}?watch=true");
    let (one, mut two) = (watch(&s, &path).await, watch(&s, &path).await);
    check_turned_away(&s, Method::GET, &path).await;
    assert_eq!(get(&s, CONFIGMAPS).await.code, 200, "others go on");
    drop(one);
    let mut three = watch(&s, &path).await;
    check_turned_away(&s, Method::GET, &path).await;
    post(&s, CONFIGMAPS, json!({"metadata": {"name": "n"}})).await;
    for w in [&mut two, &mut three] {
        assert_eq!(w.brief().await, "ADDED n");
    }
    // One that ends by itself makes room too.
    drop(three);
    let mut short = watch(&s, &format!("{path}&timeoutSeconds=1")).await;
    assert_eq!((short.brief().await.as_str(), short.brief().await.as_str()), ("ADDED n", "END"));
    // A watch that is refused takes no place.
    drop(two);
    for _ in 0..4 {
        let bad = read(send(&s, Method::GET, &format!("{path}&labelSelector=!!"), JSON, "").await).await;
        assert_eq!(bad.code, 400);
    }
    watch(&s, &path).await;
}

#[tokio::test]
async fn bodies() {
    let s = server();
    let merge = "application/merge-patch+json";
    for (method, path, kind) in [
        (Method::POST, CONFIGMAPS.to_owned(), JSON),
        (Method::PUT, format!("{CONFIGMAPS}/a"), JSON),
        (Method::PATCH, format!("{CONFIGMAPS}/a"), merge),
        (Method::PATCH, format!("{CONFIGMAPS}/a?fieldManager=m"), "application/apply-patch+yaml"),
        (Method::DELETE, format!("{CONFIGMAPS}/a"), JSON),
        (Method::POST, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned(), JSON),
    ] {
        let answer = read(send(&s, method.clone(), &path, kind, vec![b' '; 3 * MIB + 1]).await).await;
        assert_eq!(
            (answer.code, answer.body["message"].as_str()),
            (413, Some("Request entity too large: limit is 3145728")),
            "{method} {path}"
        );
    }
    let mut whole = json!({"metadata": {"name": "a"}}).to_string().into_bytes();
    whole.resize(3 * MIB, b' ');
    assert_eq!(read(send(&s, Method::POST, CONFIGMAPS, JSON, whole).await).await.code, 201);
}

#[tokio::test]
async fn nesting() {
    let s = server();
    post(&s, CONFIGMAPS, json!({"metadata": {"name": "a"}})).await;
    let one = format!("{CONFIGMAPS}/a");
    let deep = |n: usize| format!("{{\"data\":{}{}}}", "[".repeat(n), "]".repeat(n));
    let deeper = |n: usize| format!("{{\"data\":{}1{}}}", "{\"a\":".repeat(n), "}".repeat(n));
    for (method, path, kind) in [
        (Method::POST, CONFIGMAPS, JSON),
        (Method::POST, CONFIGMAPS, "application/yaml"),
        (Method::PUT, &one, JSON),
        (Method::PATCH, &one, "application/merge-patch+json"),
        (Method::PATCH, &one, "application/strategic-merge-patch+json"),
        (Method::PATCH, &one, "application/json-patch+json"),
        (Method::PATCH, &format!("{one}?fieldManager=m"), "application/apply-patch+yaml"),
        (Method::DELETE, &one, JSON),
    ] {
        for body in [deep(100_000), deeper(100_000), deep(300), deeper(300)] {
            let answer = read(send(&s, method.clone(), path, kind, body).await).await;
            assert_eq!(answer.code, 400, "{method} {kind}: {}", answer.body);
        }
    }
    assert_eq!(get(&s, &one).await.code, 200);
}

#[tokio::test]
async fn operations_of_a_json_patch() {
    let s = server();
    post(&s, CONFIGMAPS, json!({"metadata": {"name": "a"}})).await;
    let one = format!("{CONFIGMAPS}/a");
    let kind = "application/json-patch+json";
    let test = json!({"op": "test", "path": "/kind", "value": "ConfigMap"});
    let patch = |n: usize| Value::from(vec![test.clone(); n]).to_string();
    assert_eq!(read(send(&s, Method::PATCH, &one, kind, patch(10_000)).await).await.code, 200);
    let answer = read(send(&s, Method::PATCH, &one, kind, patch(10_001)).await).await;
    assert_eq!(
        (answer.code, answer.body["message"].as_str()),
        (
            413,
            Some(
                "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
            )
        )
    );
    // An object cannot be made to grow beyond what may be stored by doubling it in itself.
    let grow = json!([{"op": "add", "path": "/data", "value": {"a": "x".repeat(1000)}}]);
    assert_eq!(read(send(&s, Method::PATCH, &one, kind, grow.to_string()).await).await.code, 200);
    let copies: Vec<Value> =
        (0..9_000).map(|i| json!({"op": "copy", "from": "/data/a", "path": format!("/data/b{i}")})).collect();
    let answer = read(send(&s, Method::PATCH, &one, kind, Value::from(copies).to_string()).await).await;
    assert!((400..500).contains(&answer.code), "{}", answer.code);
    let doubling: Vec<Value> =
        (0..64).map(|i| json!({"op": "copy", "from": "/data", "path": format!("/data/c{i}")})).collect();
    let answer = read(send(&s, Method::PATCH, &one, kind, Value::from(doubling).to_string()).await).await;
    assert!((400..500).contains(&answer.code), "{}", answer.code);
}

#[tokio::test]
async fn metadata() {
    let s = server();
    for metadata in [
        json!({"name": "x".repeat(254)}),
        json!({"name": "a", "annotations": {"a": "x".repeat(256 * 1024)}}),
        json!({"name": "a", "labels": {"a": "x".repeat(64)}}),
    ] {
        assert_eq!(post(&s, CONFIGMAPS, json!({"metadata": metadata})).await.code, 422);
    }
}
