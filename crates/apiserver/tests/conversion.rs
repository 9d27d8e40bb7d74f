//! Webhooks that convert: one call for a whole list, and what becomes of requests when a webhook hangs, lies or talks
//! nonsense. Whatever it does, no object is lost or changed.
#![allow(missing_docs)]

#[path = "support/hook.rs"]
mod hook;
mod support;

use std::sync::Arc;

use arc_swap::ArcSwap;
use homeostat_apiserver::ApiServer;
use hook::{Hook, Reply, converted};
use serde_json::{Value, json};
use support::{apply, get, merge, post, put, server, watch};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const V1: &str = "/apis/example.com/v1/namespaces/default/gadgets";
const V2: &str = "/apis/example.com/v2/namespaces/default/gadgets";

fn crd(client_config: Value) -> Value {
    let version = |name: &str| {
        json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}}})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gadgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "gadgets", "kind": "Gadget"},
            "versions": [version("v1"), version("v2")],
            "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client_config}},
        },
    })
}

fn gadget(version: &str, name: &str) -> Value {
    json!({"apiVersion": format!("example.com/{version}"), "kind": "Gadget", "metadata": {"name": name}, "spec": {"size": 1}})
}

async fn until(s: &ApiServer, path: &str, code: u16) {
    for _ in 0..2000 {
        if get(s, path).await.code == code {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    panic!("{path} never answered {code}");
}

/// A server with gadgets `a` and `b`, stored as v1.
async fn with_gadgets(client_config: Value) -> ApiServer {
    let s = server();
    let made = post(&s, CRDS, crd(client_config)).await;
    assert_eq!(made.code, 201, "{}", made.body);
    until(&s, V1, 200).await;
    for name in ["a", "b"] {
        assert_eq!(post(&s, V1, gadget("v1", name)).await.code, 201);
    }
    s
}

#[tokio::test]
async fn a_list_is_converted_in_one_call() {
    let hook = Hook::start(|review| Reply::Json(converted(review, |_| ()))).await;
    let s = with_gadgets(hook.config()).await;
    for i in 0..50 {
        post(&s, V1, gadget("v1", &format!("g{i}"))).await;
    }
    assert_eq!(hook.asked(), 0, "what is stored in this version needs no webhook");
    let list = get(&s, V2).await;
    assert_eq!((list.code, list.body["items"].as_array().unwrap().len()), (200, 52));
    assert!(list.body["items"].as_array().unwrap().iter().all(|i| i["apiVersion"] == "example.com/v2"));
    assert_eq!(hook.asked(), 1);
}

/// What a broken webhook answers to every request, and a part of the error that clients then get.
async fn check(reply: impl Fn(&Value) -> Reply + Send + Sync + 'static, why: &str) {
    let hook = Hook::start(reply).await;
    broken(&hook.config(), why).await;
}

async fn broken(client_config: &Value, why: &str) {
    let s = with_gadgets(client_config.clone()).await;
    let before = get(&s, V1).await.body;
    let one = format!("{V2}/a");
    for (what, answer) in [
        ("get", get(&s, &one).await),
        ("list", get(&s, V2).await),
        ("create", post(&s, V2, gadget("v2", "c")).await),
        ("update", put(&s, &one, gadget("v2", "a")).await),
        ("patch", merge(&s, &one, json!({"spec": {"size": 9}})).await),
        ("apply", apply(&s, &format!("{one}?fieldManager=m&force=true"), gadget("v2", "a")).await),
    ] {
        let message = answer.body["message"].as_str().unwrap_or_default();
        assert_eq!(
            (answer.code, &answer.body["kind"]),
            (500, &json!("Status")),
            "{why}: {what}: {}",
            answer.body
        );
        assert!(message.contains(why), "{what}: {message}");
    }
    assert_eq!(get(&s, V1).await.body, before, "{why}: nothing is lost or changed");
    // In the stored version it goes on as if there were no webhook.
    assert_eq!(merge(&s, &format!("{V1}/b"), json!({"spec": {"size": 2}})).await.code, 200);
    assert_eq!(support::delete(&s, &format!("{V1}/b")).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn one_that_hangs() {
    // Time stands still but for waiting, so the first wait of all is over at once.
    check(|_| Reply::Silence, "context deadline exceeded").await;
}

#[tokio::test]
async fn one_that_is_gone_or_is_somebody_else() {
    let gone = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        json!({"url": format!("https://{}/", listener.local_addr().unwrap())})
    };
    broken(&gone, "connect: connection refused").await;
    let (one, other) = (Hook::start(|_| Reply::Close).await, Hook::start(|_| Reply::Close).await);
    let foreign = json!({"url": one.url, "caBundle": other.bundle});
    broken(&foreign, "x509: certificate signed by unknown authority").await;
    let service = json!({"service": {"namespace": "default", "name": "nobody", "port": 443}});
    broken(&service, "service \"nobody\" not found").await;
}

#[tokio::test]
async fn one_that_talks_nonsense() {
    check(|_| Reply::Close, "EOF").await;
    check(|_| Reply::Endless, "failed: Post").await;
    check(
        |_| Reply::Bytes(500, b"oh no".to_vec()),
        "an error on the server (\"oh no\") has prevented the request from succeeding",
    )
    .await;
    check(|_| Reply::Bytes(200, b"garbage".to_vec()), "couldn't get version/kind; json parse error").await;
    check(|_| Reply::Bytes(200, vec![0xff; 100]), "failed: ").await;
    check(|_| Reply::Bytes(200, Vec::new()), "failed: ").await;
    check(
        |_| Reply::Bytes(200, "[".repeat(100_000).into_bytes()),
        "couldn't get version/kind; json parse error",
    )
    .await;
    check(|_| Reply::Json(json!({"apiVersion": "v1", "kind": "Pod"})), "got v1, Kind=Pod").await;
    check(|_| Reply::Json(json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"})), "")
        .await;
}

fn edited(edit: impl Fn(&mut Value) + Send + Sync + 'static) -> impl Fn(&Value) -> Reply + Send + Sync {
    move |review| {
        let mut answer = converted(review, |_| ());
        edit(&mut answer["response"]);
        Reply::Json(answer)
    }
}

#[tokio::test]
async fn one_that_lies() {
    check(edited(|r| r["uid"] = "other".into()), "expected response.uid=").await;
    check(edited(|r| r["result"] = json!({"status": "Failure", "message": "cannot"})), "failed: cannot")
        .await;
    check(edited(|r| r["convertedObjects"] = json!([])), "returned 0 objects, expected ").await;
    check(edited(|r| r["convertedObjects"] = json!(["x"])), "").await;
    check(edited(|r| r["convertedObjects"][0]["apiVersion"] = "example.com/v3".into()), "example.com/v3")
        .await;
    check(edited(|r| r["convertedObjects"][0]["kind"] = "Other".into()), "").await;
    for (field, value) in [
        ("name", json!("other")),
        ("namespace", json!("kube-system")),
        ("uid", json!("other")),
        ("finalizers", json!(["a/b"])),
        ("ownerReferences", json!([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}])),
        ("labels", json!({"-": "not a label"})),
    ] {
        let lie = move |r: &mut Value| r["convertedObjects"][0]["metadata"][field] = value.clone();
        if field == "labels" || field == "finalizers" || field == "ownerReferences" {
            tolerated_or_refused(edited(lie)).await;
        } else {
            check(edited(lie), "must have the same").await;
        }
    }
}

/// Parts of metadata that are either not taken from the webhook or refused: what is stored stays as it was.
async fn tolerated_or_refused(reply: impl Fn(&Value) -> Reply + Send + Sync + 'static) {
    let hook = Hook::start(reply).await;
    let s = with_gadgets(hook.config()).await;
    let before = get(&s, V1).await.body;
    let read = get(&s, &format!("{V2}/a")).await;
    if read.code == 200 {
        for field in ["finalizers", "ownerReferences"] {
            assert_eq!(read.body["metadata"].get(field), None, "{}", read.body);
        }
    } else {
        assert_eq!(read.code, 500, "{}", read.body);
    }
    assert_eq!(get(&s, V1).await.body, before);
}

#[tokio::test]
async fn a_watch_tells_what_cannot_be_converted() {
    let good = |review: &Value| Reply::Json(converted(review, |_| ()));
    let answer: Arc<ArcSwap<bool>> = Arc::new(ArcSwap::from_pointee(true));
    let works = answer.clone();
    let hook = Hook::start(move |review| if **works.load() { good(review) } else { Reply::Close }).await;
    let s = with_gadgets(hook.config()).await;
    let mut w = watch(&s, &format!("{V2}?watch=true")).await;
    assert_eq!((w.brief().await.as_str(), w.brief().await.as_str()), ("ADDED a", "ADDED b"));
    answer.store(Arc::new(false));
    merge(&s, &format!("{V1}/a"), json!({"spec": {"size": 2}})).await;
    let event = w.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["kind"]), (&json!("ERROR"), &json!("Status")), "{event}");
    assert_eq!(w.brief().await, "END", "so that the client lists anew");
    answer.store(Arc::new(true));
    let again = get(&s, &format!("{V2}/a")).await;
    assert_eq!((again.code, &again.body["spec"]["size"]), (200, &json!(2)));
}
