//! What a reconcile writes, what it then sees, and what it is spared.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use homeostat_sdk::{Context, Next, NoStatusSubresource, Operator, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Secret};
use serde_json::json;

use crate::server::Server;
use crate::{manager, run};

const PODS: &str = "/api/v1/namespaces/a/pods";

/// Reports the number of its label as status, and keeps what came of it.
#[derive(Clone, Default)]
struct Report(Arc<Mutex<Vec<String>>>);

impl Operator for Report {
    type Resource = Pod;
    type Owns = ();
    type Reads = ();

    async fn reconcile(&self, pod: &Pod, cx: &Context<Self>) -> Result<Next> {
        let phase = pod.metadata.labels.iter().flatten().next().map(|(_, v)| v.clone());
        let result = cx.status(json!({"phase": phase, "reason": null})).await;
        let text = match &result {
            Ok(()) => "ok".into(),
            Err(e) => format!("{e} ({})", e.downcast_ref::<NoStatusSubresource>().is_some()),
        };
        self.0.lock().unwrap().push(text);
        result.map(|()| Next::done())
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_is_written_when_it_changes() {
    let server = Server::default();
    server.put(&format!("{PODS}/x"), json!({"metadata": {"labels": {"phase": "one"}}}));
    let running = run(manager(&server).with(Report::default()));
    tokio::time::sleep(Duration::from_secs(60)).await;
    let writes = server.writes();
    assert_eq!(writes.len(), 1);
    assert_eq!(writes[0].line, format!("PATCH {PODS}/x/status"));
    assert_eq!(
        writes[0].body,
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": "a"},
            "status": {"phase": "one"}})
    );
    // Somebody else's part of the status, and a change of something else, are no reason to write.
    server.put(&format!("{PODS}/x"), json!({"status": {"message": "theirs"}}));
    server.put(&format!("{PODS}/x"), json!({"metadata": {"annotations": {"a": "b"}}}));
    running.settle().await;
    assert_eq!(server.writes().len(), 0);
    server.put(&format!("{PODS}/x"), json!({"metadata": {"labels": {"phase": "two"}}}));
    running.settle().await;
    assert_eq!(server.writes().len(), 1);
    running.stopped().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_missing_status_subresource_is_said_once_with_what_to_do() {
    let server = Server::default();
    server.without_status("/api/v1/pods");
    server.put(&format!("{PODS}/x"), json!({"metadata": {"labels": {"phase": "one"}}}));
    let report = Report::default();
    let running = run(manager(&server).with(report.clone()));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(
        *report.0.lock().unwrap(),
        ["Pod has no status subresource: add `subresources: {status: {}}` to version v1 of its \
          CustomResourceDefinition, or keep what you report elsewhere (true)"]
    );
    running.stopped().await.unwrap();
}

/// Keeps three ConfigMaps with generated names, seeing its own writes only in the cache.
struct Three;

impl Operator for Three {
    type Resource = Pod;
    type Owns = (ConfigMap,);
    type Reads = (homeostat_sdk::Edits<Node>, Secret);

    async fn reconcile(&self, _: &Pod, cx: &Context<Self>) -> Result<Next> {
        let have = cx.owned::<ConfigMap, _>();
        for _ in have.len()..3 {
            let mut map = ConfigMap::default();
            map.metadata.generate_name = Some("map-".into());
            cx.create(map).await?;
        }
        for extra in have.iter().skip(3) {
            cx.delete(&**extra).await?;
        }
        if have.len() < 3 {
            assert_eq!(cx.owned::<ConfigMap, _>().len(), 3, "its own writes");
        }
        Ok(Next::done())
    }
}

#[tokio::test(start_paused = true)]
async fn own_writes_are_seen_before_the_watch_tells() {
    let server = Server::default();
    let running = run(manager(&server).with(Three));
    running.settle().await;
    server.put(&format!("{PODS}/x"), json!({}));
    running.settle().await;
    assert_eq!(server.writes().len(), 3);
    // A late watch neither makes it create twice nor forget one.
    server.hold_watches(true);
    let maps = "/api/v1/namespaces/a/configmaps";
    server.delete(&format!("{maps}/map-1"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    server.hold_watches(false);
    running.settle().await;
    assert_eq!(server.writes().len(), 1, "one is made for the one deleted");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(server.writes().len(), 0);
    running.stopped().await.unwrap();
}

/// Holds a pod until its cleanup was allowed.
#[derive(Clone, Default)]
struct Holds {
    cleaned: Arc<Mutex<Vec<String>>>,
    allowed: Arc<Mutex<bool>>,
}

impl Operator for Holds {
    type Resource = Pod;
    type Owns = ();
    type Reads = ();

    fn finalizer() -> Option<&'static str> {
        Some("example.com/holds")
    }

    async fn reconcile(&self, pod: &Pod, cx: &Context<Self>) -> Result<Next> {
        assert!(pod.metadata.finalizers.iter().flatten().any(|f| f == "example.com/holds"), "{cx:?}");
        Ok(Next::done())
    }

    async fn finalize(&self, _: &Pod, cx: &Context<Self>) -> Result<Next> {
        self.cleaned.lock().unwrap().push(cx.name().into());
        let allowed = *self.allowed.lock().unwrap();
        Ok(if allowed { Next::done() } else { Next::after(Duration::from_secs(10)) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_is_added_kept_until_done_and_removed() {
    let server = Server::default();
    let pod = format!("{PODS}/x");
    server.put(&pod, json!({"metadata": {"finalizers": ["theirs"]}}));
    let holds = Holds::default();
    let running = run(manager(&server).with(holds.clone()));
    running.settle().await;
    assert_eq!(server.get(&pod).unwrap()["metadata"]["finalizers"], json!(["theirs", "example.com/holds"]));
    server.delete(&pod);
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(holds.cleaned.lock().unwrap().len(), 2);
    *holds.allowed.lock().unwrap() = true;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(server.get(&pod).unwrap()["metadata"]["finalizers"], json!(["theirs"]));
    assert_eq!(running.health.metrics()[0].errors, 0);
    running.stopped().await.unwrap();
}
