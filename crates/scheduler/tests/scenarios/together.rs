//! Gangs are bound whole or not at all; accelerators are told which devices they got; extenders are asked over HTTP.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use homeostat_scheduler::Configuration;
use homeostat_scheduler::plugins::devices::{DEVICES, TOPOLOGY};
use homeostat_scheduler::plugins::{GROUP, MINIMUM};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use serde_json::{Value, json};

use crate::support::{World, merge};

const WITH: &str = "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: Accelerators, weight: 5}, {name: Gang}]}}
  pluginConfig: [{name: Gang, args: {timeoutSeconds: 600}}]
";

fn member(group: &str, minimum: usize) -> Value {
    json!({"metadata": {"labels": {GROUP: group, MINIMUM: minimum.to_string()}}})
}

#[tokio::test]
async fn a_group_gets_all_its_places_or_none() {
    let world = World::with(Configuration::parse(WITH).unwrap()).await;
    world.node("a", json!({})).await;
    for i in 0..2 {
        world.pod(&format!("g{i}"), "2", member("train", 3)).await;
    }
    world.refused("g0", "pod group \"train\" has 2 of at least 3 pods").await;
    // Three don't fit on the one node: nobody is bound.
    world.pod("g2", "2", member("train", 3)).await;
    world
        .until("one of them has no place", async || {
            let pods = world.pods().list(&Default::default()).await.unwrap().items;
            let conditions = pods.into_iter().filter_map(|p| p.status?.conditions).flatten();
            let mut messages = conditions.filter_map(|c| c.message);
            messages.any(|m| m.contains("Insufficient cpu")).then_some(())
        })
        .await;
    // What the group gave back is free for others.
    world.pod("alone", "4", json!({})).await;
    world.bound("alone").await;
    for i in 0..3 {
        assert_eq!(world.node_of(&format!("g{i}")).await, None);
    }
    world.node("b", json!({})).await;
    world.node("c", json!({})).await;
    for i in 0..3 {
        assert_ne!(world.bound(&format!("g{i}")).await, "a");
    }
    world.stop().await;
}

#[tokio::test]
async fn a_member_that_waited_in_vain_says_how_long_and_for_whom() {
    let world = World::with(Configuration::parse(&WITH.replace("600", "1")).unwrap()).await;
    world.node("a", json!({})).await;
    // There are as many as needed, but one may not be tried.
    world.pod("g0", "1", member("train", 2)).await;
    let mut gated = member("train", 2);
    merge(&mut gated, &json!({"spec": {"schedulingGates": [{"name": "example.com/g"}]}}));
    world.pod("g1", "1", gated).await;
    let (_, message) = world.refused("g0", "timeout").await;
    let want = "0/1 nodes are available: 1 rejected due to timeout after waiting 1s at plugin Gang.";
    assert_eq!(message, want);
    world.stop().await;
}

#[tokio::test]
async fn a_pod_that_waits_for_its_group_says_where_it_will_go() {
    let world = World::with(Configuration::parse(&WITH.replace("600", "3")).unwrap()).await;
    world.node("a", json!({})).await;
    world.pod("g0", "1", member("train", 2)).await;
    let mut gated = member("train", 2);
    merge(&mut gated, &json!({"spec": {"schedulingGates": [{"name": "example.com/g"}]}}));
    world.pod("g1", "1", gated).await;
    let told = world.until("g0 says its node", async || world.nomination_of("g0").await).await;
    assert_eq!((told.as_str(), world.node_of("g0").await), ("a", None));
    world.refused("g0", "timeout").await;
    // In the write that says that it came to nothing.
    assert_eq!(world.nomination_of("g0").await, None);
    world.stop().await;
}

#[tokio::test]
async fn a_pod_is_told_its_devices_with_its_node() {
    let world = World::with(Configuration::parse(WITH).unwrap()).await;
    let devices: Vec<Value> =
        (0..4).map(|i| json!({"id": i.to_string(), "link": (i / 2).to_string()})).collect();
    let topology = json!({"nvidia.com/gpu": devices}).to_string();
    let gpus = json!({"metadata": {"annotations": {TOPOLOGY: topology}}, "status": {"allocatable": {"nvidia.com/gpu": "4"}}});
    world.node("g", gpus).await;
    let wants = |n: &str| json!({"spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": n}}}]}});
    let devices_of = async |pod: &str| {
        world.bound(pod).await;
        world.pods().get(pod).await.unwrap().metadata.annotations.unwrap().remove(DEVICES).unwrap()
    };
    world.pod("one", "1", wants("1")).await;
    assert_eq!(devices_of("one").await, "{\"nvidia.com/gpu\":[\"0\"]}");
    world.pod("two", "1", wants("2")).await;
    assert_eq!(devices_of("two").await, "{\"nvidia.com/gpu\":[\"2\",\"3\"]}");
    world.pod("three", "1", wants("2")).await;
    world.refused("three", "Insufficient nvidia.com/gpu").await;
    world.delete("one").await;
    assert_eq!(devices_of("three").await, "{\"nvidia.com/gpu\":[\"0\",\"1\"]}");
    world.stop().await;
}

/// Lets only node `b` pass.
async fn answer(
    asked: Arc<Mutex<Vec<String>>>,
    request: http::Request<Incoming>,
) -> Result<http::Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body: Value =
        serde_json::from_slice(&request.into_body().collect().await.unwrap().to_bytes()).unwrap();
    asked.lock().unwrap().push(path);
    let nodes = body["Nodes"]["items"].as_array().cloned().unwrap_or_default();
    let items: Vec<Value> = nodes.into_iter().filter(|n| n["metadata"]["name"] == "b").collect();
    let answer = json!({"Nodes": {"items": items}, "FailedNodes": {"a": "not by my rules"}});
    Ok(http::Response::new(Full::new(answer.to_string().into())))
}

#[tokio::test]
async fn an_extender_is_asked_over_http() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = asked.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let seen = seen.clone();
            let serve = hyper::service::service_fn(move |r| answer(seen.clone(), r));
            let io = hyper_util::rt::TokioIo::new(stream);
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(io, serve));
        }
    });
    let mut configuration =
        json!({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"});
    let url = format!("http://{address}/scheduler");
    merge(&mut configuration, &json!({"extenders": [{"urlPrefix": url, "filterVerb": "filter"}]}));
    let world = World::with(Configuration::parse(&configuration.to_string()).unwrap()).await;
    world.node("a", json!({})).await;
    world.pod("p", "1", json!({})).await;
    let (_, message) = world.refused("p", "not by my rules").await;
    assert!(message.starts_with("0/1 nodes are available: 1 not by my rules."), "{message}");
    world.node("b", json!({})).await;
    assert_eq!(world.bound("p").await, "b");
    assert!(asked.lock().unwrap().iter().all(|p| p == "/scheduler/filter"));
    world.stop().await;
}
