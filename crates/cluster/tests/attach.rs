//! Controllers, scheduler and nodes on an API server that they only know by its kubeconfig, over TLS.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use homeostat_cluster::audit::{Audit, Event, Interest, Level};
use homeostat_cluster::{Cluster, ClusterOptions, attach, leader};
use homeostat_sdk::CancellationToken;
use http::Request;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::Kubeconfig;
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Who asked for what, and what came of it.
#[derive(Debug, Default)]
struct Asked(Mutex<Vec<Value>>);

impl Audit for Asked {
    fn interest(&self, _: &homeostat_access::Attributes<'_>) -> Interest {
        Interest { level: Level::Metadata, ..Interest::default() }
    }

    fn tell(&self, event: Event) {
        self.0.lock().unwrap().push(serde_json::to_value(event).unwrap());
    }
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait)
        .await
        .unwrap_or_else(|_| panic!("not in time: {what}"));
}

/// A server without controllers or nodes, and the configuration that leads to it.
async fn server(asked: &Arc<Asked>) -> (Cluster, Config) {
    let mut options = ClusterOptions { nodes: 0, ..ClusterOptions::default() };
    options.controllers("").unwrap();
    options.audit = Some(asked.clone());
    let cluster = Cluster::with(options).await.unwrap();
    let endpoint = cluster.serve(TcpListener::bind("127.0.0.1:0").await.unwrap()).await.unwrap();
    let file = Kubeconfig::from_yaml(&endpoint.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(file, &Default::default()).await.unwrap();
    (cluster, config)
}

async fn ready(deployments: &Api<Deployment>, replicas: i32) {
    until("the Deployment is ready", async || {
        let web = deployments.get("web").await.unwrap();
        let status = web.status.unwrap_or_default();
        status.observed_generation == web.metadata.generation && status.ready_replicas == Some(replicas)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_parts_work_on_a_server_that_is_not_theirs() {
    let asked = Arc::new(Asked::default());
    let (cluster, config) = server(&asked).await;
    let mut options = ClusterOptions::default();
    options.nodes(2, "", "").unwrap();
    let stop = CancellationToken::new();
    let run = |stop: CancellationToken| {
        let (config, options) = (config.clone(), options.clone());
        tokio::spawn(async move { attach(&config, &options, stop).await })
    };
    let first = run(stop.clone());

    let client = Client::try_from(config.clone()).unwrap();
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let labels = json!({"app": "web"});
    let web: Deployment = serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "web:1"}]}}},
    }))
    .unwrap();
    // Pods need the account that a controller makes; ReplicaSets try again until it is there.
    deployments.create(&PostParams::default(), &web).await.unwrap();
    ready(&deployments, 2).await;

    // Whoever comes second waits, and goes on when the first stops.
    let second_stop = CancellationToken::new();
    let second = run(second_stop.clone());
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-system");
    let holder = async || {
        let lease = leases.get("kube-controller-manager").await.unwrap();
        lease.spec.and_then(|s| s.holder_identity).unwrap_or_default()
    };
    let leads = holder().await;
    // It has looked by now, several times.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(leader(&client, cluster.clock()).await.unwrap().as_ref(), Some(&leads));
    stop.cancel();
    first.await.unwrap().unwrap();
    until("another leads", async || !matches!(holder().await, h if h.is_empty() || h == leads)).await;
    let three = Patch::Merge(json!({"spec": {"replicas": 3}}));
    deployments.patch("web", &PatchParams::default(), &three).await.unwrap();
    ready(&deployments, 3).await;

    // Children go with their owner, and what is in a namespace goes with it.
    deployments.delete("web", &DeleteParams::default()).await.unwrap();
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    until("its pods are gone", async || pods.list(&ListParams::default()).await.unwrap().items.is_empty())
        .await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let named = |name: &str| serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    namespaces.create(&PostParams::default(), &named("gone")).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "gone");
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    namespaces.delete("gone", &DeleteParams::default()).await.unwrap();
    until("the namespace is gone", async || namespaces.get_opt("gone").await.unwrap().is_none()).await;
    second_stop.cancel();
    second.await.unwrap().unwrap();
    cluster.stop(Duration::from_secs(5)).await;

    // Each acted as itself, and nobody lacked a right.
    let asked = std::mem::take(&mut *asked.0.lock().unwrap());
    let acted = |account: &str, verb: &str| {
        let user = format!("system:serviceaccount:kube-system:{account}");
        asked.iter().any(|e| e["impersonatedUser"]["username"] == *user && e["verb"] == *verb)
    };
    for (account, verb) in [
        ("deployment-controller", "create"),
        ("replicaset-controller", "create"),
        ("simulated-kubelet", "patch"),
        ("generic-garbage-collector", "delete"),
        ("namespace-controller", "deletecollection"),
    ] {
        assert!(acted(account, verb), "{account} has done no {verb}");
    }
    let lacked_right = |e: &&Value| {
        let message = e["responseStatus"]["message"].as_str().unwrap_or_default();
        e["responseStatus"]["code"] == 403 && message.contains("is forbidden: User ")
    };
    let refused: Vec<_> = asked.iter().filter(lacked_right).collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_impersonate_is_told() {
    let asked = Arc::new(Asked::default());
    let (cluster, mut config) = server(&asked).await;
    // Somebody without rights: a client's own impersonation is refused for whoever is not an administrator.
    let admin = Client::try_from(config.clone()).unwrap();
    let account = json!({"metadata": {"name": "nobody"}});
    let post = |path: &str, body: Value| Request::post(path).body(body.to_string().into_bytes()).unwrap();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    admin.request::<Value>(post(accounts, account)).await.unwrap();
    let token = format!("{accounts}/nobody/token");
    let token: Value = admin.request(post(&token, json!({}))).await.unwrap();
    config.auth_info = kube::config::AuthInfo {
        token: Some(token["status"]["token"].as_str().unwrap().to_owned().into()),
        ..Default::default()
    };
    let why = attach(&config, &ClusterOptions::default(), CancellationToken::new()).await.unwrap_err();
    assert!(why.to_string().contains("impersonate"), "{why}");
    cluster.stop(Duration::from_secs(5)).await;
}
