//! What only pods have: logs and connections of pods that nobody runs, and what a binding leaves behind.
#![allow(missing_docs)]

mod support;

use homeostat_apiserver::ApiServer;
use http::{Method, Response};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use support::{get, merge, post, read, send, server};

const PODS: &str = "/api/v1/namespaces/default/pods";
const DIGEST: &str = "simulated://abc";

async fn with_pod(spec: Value) -> ApiServer {
    let s = server();
    let account = json!({"metadata": {"name": "default"}});
    post(&s, "/api/v1/namespaces/default/serviceaccounts", account).await;
    let pod = json!({"metadata": {"name": "p"}, "spec": spec});
    let made = post(&s, PODS, pod).await;
    assert_eq!(made.code, 201, "{}", made.body);
    s
}

fn spec(names: &[&str], init: &[&str]) -> Value {
    let list =
        |names: &[&str]| -> Vec<Value> { names.iter().map(|n| json!({"name": n, "image": "i"})).collect() };
    json!({"containers": list(names), "initContainers": list(init)})
}

async fn bind(s: &ApiServer) {
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "node-1"}});
    let bound = post(s, &format!("{PODS}/p/binding"), binding).await;
    assert_eq!(bound.code, 201, "{}", bound.body);
}

async fn state(s: &ApiServer, list: &str, state: Value, last: Value) {
    let status = json!({"name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
        "state": state, "lastState": last});
    let told = merge(s, &format!("{PODS}/p/status"), json!({"status": {list: [status]}})).await;
    assert_eq!(told.code, 200, "{}", told.body);
}

async fn log(s: &ApiServer, query: &str) -> (u16, String) {
    let path = format!("{PODS}/p/log{query}");
    let response: Response<_> = send(s, Method::GET, &path, "application/json", "").await;
    let code = response.status().as_u16();
    let kind = response.headers().get("content-type").map(|k| k.to_str().unwrap().to_owned());
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    if code == 200 {
        assert!(kind.is_some_and(|k| k.starts_with("text/plain")));
        return (code, String::from_utf8(bytes.to_vec()).unwrap());
    }
    let status: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    (code, status["message"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test(start_paused = true)]
async fn logs_of_a_simulated_container_say_that_it_is_one() {
    let s = with_pod(spec(&["c"], &["i"])).await;
    assert_eq!(log(&s, "").await, (204, String::new()), "no host, no log");
    bind(&s).await;
    let started = json!({"running": {"startedAt": "2026-01-02T03:04:05Z"}});
    state(&s, "containerStatuses", started, json!({})).await;
    // The only main container is meant where none is named.
    let (code, text) = log(&s, "").await;
    assert_eq!(code, 200, "{text}");
    assert!(text.starts_with("Container c of pod default/p is simulated"), "{text}");
    assert!(text.contains("simulation.homeostat.dev") && text.ends_with('\n'), "{text}");
    assert_eq!(log(&s, "?container=c").await.1, text);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(log(&s, "?tailLines=1").await.1, format!("{}\n", lines[lines.len() - 1]));
    assert_eq!(log(&s, "?limitBytes=9").await.1, "Container");
    let stamped = format!("2026-01-02T03:04:05Z {}\n", lines[lines.len() - 1]);
    assert_eq!(log(&s, "?tailLines=1&timestamps=true").await.1, stamped);
}

#[tokio::test(start_paused = true)]
async fn logs_that_there_cannot_be_are_refused_as_kubelets_do() {
    let of = "container \"c\" in pod \"p\"";
    let ended = |id: &str| json!({"terminated": {"exitCode": 1, "startedAt": "2026-01-02T03:04:05Z", "containerID": id}});
    let waiting = |reason: &str| json!({"waiting": {"reason": reason}});
    let running = || json!({"running": {"startedAt": "2026-01-02T03:04:05Z"}});
    let none = json!({});
    for (now, last, query, want) in [
        (
            waiting("ContainerCreating"),
            none.clone(),
            "",
            format!("{of} is waiting to start: ContainerCreating"),
        ),
        (waiting("PodInitializing"), none.clone(), "", format!("{of} is waiting to start: PodInitializing")),
        (
            waiting("ErrImagePull"),
            none.clone(),
            "",
            format!("{of} is waiting to start: image can't be pulled"),
        ),
        (
            waiting("ImagePullBackOff"),
            none.clone(),
            "",
            format!("{of} is waiting to start: trying and failing to pull image"),
        ),
        (running(), none.clone(), "?previous=true", format!("previous terminated {of} not found")),
        (ended(""), none.clone(), "", format!("{of} is terminated")),
    ] {
        let s = with_pod(spec(&["c"], &[])).await;
        bind(&s).await;
        state(&s, "containerStatuses", now, last).await;
        assert_eq!(log(&s, query).await, (400, want));
    }
    // What has run once has a log.
    for (now, last, query) in [
        (ended(DIGEST), none.clone(), ""),
        (waiting("CrashLoopBackOff"), ended(DIGEST), ""),
        (running(), ended(DIGEST), "?previous=true"),
    ] {
        let s = with_pod(spec(&["c"], &[])).await;
        bind(&s).await;
        state(&s, "containerStatuses", now, last).await;
        assert_eq!(log(&s, query).await.0, 200);
    }
    let s = with_pod(spec(&["a", "b"], &["i"])).await;
    bind(&s).await;
    let choose = "a container name must be specified for pod p, choose one of: [a b] or one of the init containers: [i]";
    assert_eq!(log(&s, "").await, (400, choose.to_owned()));
    assert_eq!(log(&s, "?container=x").await, (400, "container x is not valid for pod p".to_owned()));
    let missing = "container \"a\" in pod \"p\" is not available".to_owned();
    assert_eq!(log(&s, "?container=a").await, (400, missing));
    assert_eq!(get(&s, &format!("{PODS}/q/log")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn there_is_nothing_to_connect_to_in_a_simulated_pod() {
    let s = with_pod(spec(&["c"], &[])).await;
    let ask = async |what: &str| {
        let form = "application/json";
        let answer = read(send(&s, Method::POST, &format!("{PODS}/p/{what}"), form, "").await).await;
        (answer.code, answer.body["message"].as_str().unwrap_or_default().to_owned())
    };
    let all = ["exec?command=ls&stdout=true", "attach?stdout=true", "portforward?ports=80"];
    for what in all {
        assert_eq!(ask(what).await, (400, "pod p does not have a host assigned".to_owned()), "{what}");
    }
    bind(&s).await;
    let why = "node node-1 is simulated: there is no process in pod p";
    for what in all {
        assert_eq!(ask(what).await, (400, why.to_owned()), "{what}");
    }
    let absent = (400, "container x is not valid for pod p".to_owned());
    assert_eq!(ask("exec?command=ls&container=x").await, absent);
    assert_eq!(ask("attach?container=x").await, absent);
}

#[tokio::test(start_paused = true)]
async fn a_binding_clears_the_nomination() {
    let s = with_pod(spec(&["c"], &[])).await;
    let status = format!("{PODS}/p/status");
    let told = merge(&s, &status, json!({"status": {"nominatedNodeName": "node-2"}})).await;
    assert_eq!(told.body["status"]["nominatedNodeName"], "node-2");
    bind(&s).await;
    let pod = get(&s, &format!("{PODS}/p")).await.body;
    assert_eq!(pod["spec"]["nodeName"], "node-1");
    assert_eq!(pod["status"]["nominatedNodeName"], Value::Null);
    assert!(pod["status"]["conditions"].as_array().is_some_and(|c| !c.is_empty()));
}
