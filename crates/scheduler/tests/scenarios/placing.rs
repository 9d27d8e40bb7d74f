//! Pods get their nodes, or are told why not; priorities make room; profiles and gates are heeded.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use homeostat_scheduler::framework::{CycleState, Io, Plugin, PreBind, Status};
use homeostat_scheduler::snapshot::PodInfo;
use homeostat_scheduler::{Configuration, Registry};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::World;

#[tokio::test]
async fn a_pod_gets_its_node_and_events_say_so() {
    let world = World::start().await;
    world.pod("p", "1", json!({})).await;
    let (reason, message) = world.refused("p", "").await;
    assert_eq!((reason.as_str(), message.as_str()), ("Unschedulable", "no nodes available to schedule pods"));
    world.node("a", json!({})).await;
    assert_eq!(world.bound("p").await, "a");
    let event = world.event("p", "Scheduled").await;
    assert_eq!(event.note.as_deref(), Some("Successfully assigned default/p to a"));
    assert_eq!(event.reporting_controller.as_deref(), Some("default-scheduler"));
    let pod = world.pods().get("p").await.unwrap();
    let conditions = pod.status.unwrap().conditions.unwrap();
    assert!(conditions.iter().any(|c| c.type_ == "PodScheduled" && c.status == "True"));
    world.stop().await;
}

#[tokio::test]
async fn a_pod_without_room_says_why_and_goes_when_there_is_some() {
    let world = World::start().await;
    world.node("a", json!({})).await;
    world.node("t", json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}})).await;
    world.pod("first", "3", json!({})).await;
    assert_eq!(world.bound("first").await, "a");
    world.pod("second", "3", json!({})).await;
    let (reason, message) = world.refused("second", "2 nodes").await;
    assert_eq!(reason, "Unschedulable");
    assert_eq!(
        message,
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s). no new claims to deallocate, \
         preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
    );
    assert_eq!(world.event("second", "FailedScheduling").await.note, Some(message));
    world.delete("first").await;
    assert_eq!(world.bound("second").await, "a");
    world.stop().await;
}

#[tokio::test]
async fn the_more_important_pod_makes_room() {
    let world = World::start().await;
    world.node("a", json!({})).await;
    let class = |name: &str, value: i32| json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value});
    let classes = kube::Api::<k8s_openapi::api::scheduling::v1::PriorityClass>::all(world.client.clone());
    for (name, value) in [("low", 1), ("high", 1000)] {
        let class = serde_json::from_value(class(name, value)).unwrap();
        classes.create(&Default::default(), &class).await.unwrap();
    }
    world.pod("low", "3", json!({"spec": {"priorityClassName": "low"}})).await;
    world.bound("low").await;
    let uid = world.pods().get("low").await.unwrap().metadata.uid;
    world.pod("high", "3", json!({"spec": {"priorityClassName": "high"}})).await;
    assert_eq!(world.bound("high").await, "a");
    let event = world.event("low", "Preempted").await;
    let high = world.pods().get("high").await.unwrap();
    let note = format!("Preempted by pod {} on node a", high.metadata.uid.unwrap());
    assert_eq!((event.note, event.action.as_deref()), (Some(note), Some("Preempting")));
    assert_eq!(event.regarding.unwrap().uid, uid);
    world.stop().await;
}

#[tokio::test]
async fn gated_pods_wait_and_others_schedulers_pods_are_left_alone() {
    let world = World::start().await;
    world.node("a", json!({})).await;
    world.pod("gated", "1", json!({"spec": {"schedulingGates": [{"name": "example.com/g"}]}})).await;
    world.pod("other", "1", json!({"spec": {"schedulerName": "somebody"}})).await;
    world.pod("ours", "1", json!({})).await;
    world.bound("ours").await;
    assert_eq!((world.node_of("gated").await, world.node_of("other").await), (None, None));
    let ungate = kube::api::Patch::Merge(json!({"spec": {"schedulingGates": []}}));
    world.pods().patch("gated", &Default::default(), &ungate).await.unwrap();
    world.bound("gated").await;
    assert_eq!(world.node_of("other").await, None);
    world.stop().await;
}

#[tokio::test]
async fn each_profile_has_its_own_way() {
    let configuration = Configuration::parse(
        "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: packing
  plugins: {multiPoint: {disabled: [{name: NodeResourcesBalancedAllocation}]}}
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated}}
",
    );
    let world = World::with(configuration.unwrap()).await;
    for node in ["a", "b"] {
        world.node(node, json!({})).await;
    }
    world.pod("p0", "1", json!({})).await;
    let first = world.bound("p0").await;
    world.pod("p1", "1", json!({"spec": {"schedulerName": "packing"}})).await;
    assert_eq!(world.bound("p1").await, first);
    assert_eq!(world.event("p1", "Scheduled").await.reporting_controller.as_deref(), Some("packing"));
    world.pod("p2", "1", json!({})).await;
    assert_ne!(world.bound("p2").await, first);
    world.stop().await;
}

/// Breaks before each binding.
struct Broken;

impl Plugin for Broken {
    fn name(&self) -> &'static str {
        "Broken"
    }

    fn pre_bind(&self) -> Option<&dyn PreBind> {
        Some(self)
    }
}

impl PreBind for Broken {
    fn pre_bind<'a>(
        &'a self,
        _: &'a Io,
        _: &'a CycleState,
        _: &'a PodInfo,
        _: &'a str,
    ) -> BoxFuture<'a, Result<(), Status>> {
        async { Err(Status::error("no luck")) }.boxed()
    }
}

#[tokio::test]
async fn what_breaks_is_told_with_its_plugin_and_point() {
    let registry = Registry::default().with("Broken", Arc::new(|_, _| Ok(Arc::new(Broken))));
    let text = "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: Broken}]}}}]
";
    let configuration = Configuration::parse_with(text, &registry).unwrap();
    let world = World::with_plugins(configuration, registry).await;
    world.node("a", json!({})).await;
    world.pod("p", "1", json!({})).await;
    let (reason, message) = world.refused("p", "no luck").await;
    assert_eq!(reason, "SchedulerError");
    assert_eq!(message, "running PreBind plugin \"Broken\": no luck");
    assert_eq!(world.event("p", "FailedScheduling").await.note, Some(message));
    world.stop().await;
}

/// Has work to do before each binding, until it is let go; then it succeeds the first time, and fails from then on.
#[derive(Default)]
struct Slow {
    go: Notify,
    calls: AtomicUsize,
}

struct SlowPlugin(Arc<Slow>);

impl Plugin for SlowPlugin {
    fn name(&self) -> &'static str {
        "Slow"
    }

    fn pre_bind(&self) -> Option<&dyn PreBind> {
        Some(self)
    }
}

impl PreBind for SlowPlugin {
    fn pre_bind<'a>(
        &'a self,
        _: &'a Io,
        _: &'a CycleState,
        _: &'a PodInfo,
        _: &'a str,
    ) -> BoxFuture<'a, Result<(), Status>> {
        async {
            self.0.go.notified().await;
            match self.0.calls.fetch_add(1, Ordering::Relaxed) {
                0 => Ok(()),
                _ => Err(Status::error("no luck")),
            }
        }
        .boxed()
    }
}

#[tokio::test]
async fn where_a_pod_will_go_is_told_while_there_is_work_before_its_binding() {
    let slow = Arc::new(Slow::default());
    let plugin = slow.clone();
    let registry =
        Registry::default().with("Slow", Arc::new(move |_, _| Ok(Arc::new(SlowPlugin(plugin.clone())))));
    let text = "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: Slow}]}}}]
";
    let configuration = Configuration::parse_with(text, &registry).unwrap();
    let world = World::with_plugins(configuration, registry).await;
    world.node("a", json!({})).await;
    for (pod, comes) in [("p", true), ("q", false)] {
        world.pod(pod, "1", json!({})).await;
        let told = world.until("its node is told", async || world.nomination_of(pod).await).await;
        assert_eq!((told.as_str(), world.node_of(pod).await), ("a", None));
        slow.go.notify_one();
        match comes {
            true => drop(world.bound(pod).await),
            false => drop(world.refused(pod, "no luck").await),
        }
        assert_eq!(world.nomination_of(pod).await, None);
    }
    world.stop().await;
}

#[tokio::test]
async fn a_pod_waits_until_there_is_room_for_its_volume() {
    let world = World::start().await;
    world.node("a", json!({})).await;
    let create = async |path: &str, object: Value| {
        let request = http::Request::post(path).header("content-type", "application/json");
        let request = request.body(object.to_string().into_bytes()).unwrap();
        world.client.request::<Value>(request).await.unwrap();
    };
    let storage = "/apis/storage.k8s.io/v1";
    let driver = json!({"metadata": {"name": "example.com"}, "spec": {"storageCapacity": true}});
    create(&format!("{storage}/csidrivers"), driver).await;
    let class = json!({"metadata": {"name": "disks"}, "provisioner": "example.com",
        "volumeBindingMode": "WaitForFirstConsumer"});
    create(&format!("{storage}/storageclasses"), class).await;
    let claim = json!({"metadata": {"name": "data"}, "spec": {"storageClassName": "disks",
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    create("/api/v1/namespaces/default/persistentvolumeclaims", claim).await;
    let volume = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
    world.pod("p", "1", json!({"spec": {"volumes": volume}})).await;
    let (_, message) = world.refused("p", "storage").await;
    let want = "0/1 nodes are available: 1 node(s) did not have enough free storage.";
    assert!(message.starts_with(want), "{message}");
    let capacity = json!({"metadata": {"name": "all"}, "storageClassName": "disks", "capacity": "1Gi",
        "nodeTopology": {}});
    create(&format!("{storage}/namespaces/default/csistoragecapacities"), capacity).await;
    // It has its node, and waits there for the driver.
    assert_eq!(world.until("its node is told", async || world.nomination_of("p").await).await, "a");
    world.stop().await;
}

#[tokio::test]
async fn many_pods_never_overfill_a_node() {
    let world = World::start().await;
    for i in 0..5 {
        world.node(&format!("n{i}"), json!({})).await;
    }
    for i in 0..30 {
        world.pod(&format!("p{i}"), "1", json!({})).await;
    }
    let placed = world
        .until("twenty pods have their nodes", async || {
            let pods = world.pods().list(&Default::default()).await.unwrap().items;
            let nodes: Vec<String> = pods.into_iter().filter_map(|p| p.spec?.node_name).collect();
            (nodes.len() >= 20).then_some(nodes)
        })
        .await;
    for i in 0..5 {
        assert_eq!(placed.iter().filter(|n| **n == format!("n{i}")).count(), 4);
    }
    world.stop().await;
}
