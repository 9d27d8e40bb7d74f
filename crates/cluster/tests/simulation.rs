//! Virtual time: a seed determines every byte of a cluster's life, and long times are short.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use homeostat_cluster::audit::{Audit, Event, Interest, Level};
use homeostat_cluster::{Cluster, ClusterOptions, simulate};
use http::Request;
use kube::Client;
use serde_json::{Value, json};

const HOUR: Duration = Duration::from_secs(3600);

async fn create(client: &Client, path: &str, object: Value) {
    let request = Request::post(path).body(serde_json::to_vec(&object).unwrap()).unwrap();
    client.request::<Value>(request).await.unwrap_or_else(|e| panic!("{path}: {e}"));
}

async fn get(client: &Client, path: &str) -> Value {
    serde_json::from_str(&text(client, path).await).unwrap()
}

async fn text(client: &Client, path: &str) -> String {
    let request = Request::get(path).body(Vec::new()).unwrap();
    client.request_text(request).await.unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// A little of everything: rolling, ordered, finite, timed.
async fn workload(client: &Client) {
    let pod = |extra: Value| {
        let mut spec = json!({"containers": [{"name": "c", "image": "busybox"}]});
        spec.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!({"metadata": {"labels": {"app": "a"}}, "spec": spec})
    };
    let selector = json!({"matchLabels": {"app": "a"}});
    for (path, object) in [
        (
            "/apis/apps/v1/namespaces/default/deployments",
            json!({"metadata": {"name": "web"}, "spec": {"replicas": 3, "selector": selector, "template": pod(json!({}))}}),
        ),
        (
            "/apis/apps/v1/namespaces/default/statefulsets",
            json!({"metadata": {"name": "db"},
                "spec": {"serviceName": "db", "replicas": 3, "selector": selector, "template": pod(json!({}))}}),
        ),
        (
            "/apis/batch/v1/namespaces/default/cronjobs",
            json!({"metadata": {"name": "tick"}, "spec": {"schedule": "*/10 * * * *", "jobTemplate":
                {"spec": {"activeDeadlineSeconds": 60, "template": pod(json!({"restartPolicy": "Never"}))}}}}),
        ),
        ("/api/v1/namespaces", json!({"metadata": {"name": "gone"}})),
        ("/api/v1/namespaces/gone/configmaps", json!({"metadata": {"generateName": "a-"}})),
    ] {
        create(client, path, object).await;
    }
    tokio::time::sleep(HOUR / 2).await;
    let delete = Request::delete("/api/v1/namespaces/gone").body(Vec::new()).unwrap();
    client.request::<Value>(delete).await.unwrap();
}

/// Every object of every listable resource, as the server's bytes.
async fn everything(client: &Client) -> Vec<String> {
    let mut all = Vec::new();
    let mut groups = vec!["/api/v1".to_owned()];
    for group in get(client, "/apis").await["groups"].as_array().unwrap() {
        for version in group["versions"].as_array().unwrap() {
            groups.push(format!("/apis/{}", version["groupVersion"].as_str().unwrap()));
        }
    }
    for group in groups {
        for resource in get(client, &group).await["resources"].as_array().unwrap() {
            let name = resource["name"].as_str().unwrap();
            if !name.contains('/') && resource["verbs"].as_array().unwrap().contains(&json!("list")) {
                all.push(text(client, &format!("{group}/{name}")).await);
            }
        }
    }
    all
}

/// Every stage of every request, with its time.
#[derive(Debug, Default)]
struct Trail(Mutex<Vec<String>>);

impl Audit for Trail {
    fn interest(&self, _: &homeostat_access::Attributes<'_>) -> Interest {
        Interest { level: Level::Metadata, ..Interest::default() }
    }

    fn tell(&self, event: Event) {
        self.0.lock().unwrap().push(serde_json::to_string(&event).unwrap());
    }
}

/// An hour of a cluster's life: who asked for what and when, and all that is left of it.
fn life(seed: u64) -> Vec<String> {
    simulate(async || {
        let trail = Arc::new(Trail::default());
        let audit = Some(trail.clone() as Arc<dyn Audit>);
        let options = ClusterOptions { nodes: 3, audit, ..ClusterOptions::simulated(seed) };
        let cluster = Cluster::with(options).await.unwrap();
        let client = cluster.client();
        workload(&client).await;
        tokio::time::sleep(HOUR / 2).await;
        let left = everything(&client).await;
        let mut life = std::mem::take(&mut *trail.0.lock().unwrap());
        life.extend(left);
        life
    })
    .unwrap()
}

#[test]
fn a_seed_determines_every_byte() {
    let (first, second) = (life(7), life(7));
    for (a, b) in first.iter().zip(&second) {
        assert_eq!(a, b);
    }
    assert_eq!(first.len(), second.len());
    let left = first.concat();
    assert!(left.contains("\"name\":\"tick-"), "jobs were made");
    assert!(
        !left.contains("\"namespace\":\"gone\",\"resourceVersion"),
        "a namespace went with what was in it"
    );
    assert_ne!(first, life(8), "another seed, other uids");
}
