//! StatefulSets and Deployments from creation to deletion.

use k8s_openapi::api::apps::v1::{ControllerRevision, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::support::{World, holds};

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": image}]}})
}

fn workload(kind: &str, replicas: i32) -> Value {
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": {"replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}}, "template": template("one")}})
}

fn names<K: ResourceExt>(objects: &[K]) -> Vec<String> {
    objects.iter().map(ResourceExt::name_any).collect()
}

async fn ready(world: &World, replicas: i32) -> StatefulSet {
    world
        .until("the set is ready", || async {
            let set = world.api::<StatefulSet>().get("web").await.unwrap();
            let status = set.status.clone().unwrap_or_default();
            let seen = status.observed_generation == set.metadata.generation;
            (seen
                && status.replicas == replicas
                && status.ready_replicas.unwrap_or(0) == replicas
                && status.updated_replicas.unwrap_or(0) == replicas)
                .then_some(set)
        })
        .await
}

#[tokio::test]
async fn a_stateful_set_lives() {
    let world = World::start().await;
    let mut set = workload("StatefulSet", 3);
    set["spec"]["serviceName"] = "web".into();
    set["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]);
    world.create(set).await;
    let set = ready(&world, 3).await;
    let pods = world.list::<Pod>().await;
    assert_eq!(names(&pods), ["web-0", "web-1", "web-2"]);
    let created: Vec<_> = pods.iter().map(|p| p.metadata.creation_timestamp.clone()).collect();
    assert!(created.is_sorted());
    assert_eq!(pods[1].labels()["apps.kubernetes.io/pod-index"], "1");
    assert_eq!(pods[1].spec.as_ref().unwrap().hostname.as_deref(), Some("web-1"));
    assert_eq!(
        names(&world.list::<PersistentVolumeClaim>().await),
        ["data-web-0", "data-web-1", "data-web-2"]
    );
    let revision = set.status.unwrap().update_revision.unwrap();
    assert_eq!(pods[1].labels()["controller-revision-hash"], revision);

    world.merge::<StatefulSet>("web", json!({"spec": {"replicas": 1}})).await;
    ready(&world, 1).await;
    assert_eq!(names(&world.list::<Pod>().await), ["web-0"]);

    // A new template replaces the pod.
    let uid = world.list::<Pod>().await[0].uid();
    world.merge::<StatefulSet>("web", json!({"spec": {"template": template("two")}})).await;
    let set = ready(&world, 1).await;
    let status = set.status.unwrap();
    assert_ne!(status.update_revision.as_deref(), Some(revision.as_str()));
    assert_eq!(status.current_revision, status.update_revision);
    assert_ne!(world.list::<Pod>().await[0].uid(), uid);
    assert_eq!(world.list::<ControllerRevision>().await.len(), 2);

    // A pod that vanishes comes back under its name.
    world.api::<Pod>().delete("web-0", &DeleteParams::default()).await.unwrap();
    ready(&world, 1).await;

    world.api::<StatefulSet>().delete("web", &DeleteParams::default()).await.unwrap();
    world.until("all is collected", || async { holds(world.list::<Pod>().await.is_empty()) }).await;
    world
        .until("the history is collected", || async {
            holds(world.list::<ControllerRevision>().await.is_empty())
        })
        .await;
    assert_eq!(world.list::<PersistentVolumeClaim>().await.len(), 3);
    world.stop().await;
}

async fn rolled_out(world: &World, replicas: i32) -> Deployment {
    world
        .until("the rollout is complete", || async {
            let deployment = world.api::<Deployment>().get("web").await.unwrap();
            let status = deployment.status.clone().unwrap_or_default();
            let n = |v: Option<i32>| v.unwrap_or(0) == replicas;
            let seen = status.observed_generation == deployment.metadata.generation;
            let complete =
                seen && n(status.updated_replicas) && n(status.replicas) && n(status.available_replicas);
            complete.then_some(deployment)
        })
        .await
}

#[tokio::test]
async fn a_deployment_rolls_and_rolls_back() {
    let world = World::start().await;
    world.create(workload("Deployment", 3)).await;
    let first = rolled_out(&world, 3).await;
    assert_eq!(first.annotations()["deployment.kubernetes.io/revision"], "1");
    let sets = world.list::<ReplicaSet>().await;
    assert_eq!(sets.len(), 1);
    assert_eq!(sets[0].name_any(), format!("web-{}", sets[0].labels()["pod-template-hash"]));
    let conditions = first.status.unwrap().conditions.unwrap();
    let reasons: Vec<_> = conditions.iter().map(|c| c.reason.as_deref().unwrap_or_default()).collect();
    assert!(reasons.contains(&"MinimumReplicasAvailable"), "{reasons:?}");

    world.merge::<Deployment>("web", json!({"spec": {"template": template("two")}})).await;
    rolled_out(&world, 3).await;
    world.merge::<Deployment>("web", json!({"spec": {"replicas": 5}})).await;
    rolled_out(&world, 5).await;
    assert_eq!(world.list::<ReplicaSet>().await.len(), 2);

    // Back to the first template: its set comes to life again.
    world.merge::<Deployment>("web", json!({"spec": {"template": template("one")}})).await;
    let back = rolled_out(&world, 5).await;
    assert_eq!(back.annotations()["deployment.kubernetes.io/revision"], "3");
    let sets = world.list::<ReplicaSet>().await;
    let live = sets.iter().find(|s| s.spec.as_ref().unwrap().replicas == Some(5)).unwrap();
    assert_eq!(live.annotations()["deployment.kubernetes.io/revision-history"], "1");

    world.api::<Deployment>().delete("web", &DeleteParams::default()).await.unwrap();
    world
        .until("all is collected", || async {
            holds(world.list::<Pod>().await.is_empty() && world.list::<ReplicaSet>().await.is_empty())
        })
        .await;
    world.stop().await;
}

#[tokio::test]
async fn a_replica_set_adopts_and_lets_go() {
    let world = World::start().await;
    let mut orphan = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "orphan"}});
    orphan["metadata"]["labels"] = json!({"app": "web"});
    orphan["spec"] = template("one")["spec"].clone();
    world.create(orphan).await;
    world.create(workload("ReplicaSet", 2)).await;
    let owner = |p: &Pod| p.owner_references().first().map(|o| o.name.clone());
    world
        .until("two pods are owned", || async {
            let pods = world.list::<Pod>().await;
            holds(pods.len() == 2 && pods.iter().all(|p| owner(p).as_deref() == Some("web")))
        })
        .await;
    world.merge::<Pod>("orphan", json!({"metadata": {"labels": {"app": "other"}}})).await;
    world
        .until("it is let go and replaced", || async {
            let pods = world.list::<Pod>().await;
            let owned = pods.iter().filter(|p| owner(p).is_some()).count();
            holds(
                pods.len() == 3
                    && owned == 2
                    && owner(&world.api::<Pod>().get("orphan").await.unwrap()).is_none(),
            )
        })
        .await;
    world.stop().await;
}

#[tokio::test]
async fn a_pod_that_failed_is_replaced_and_stays_owned() {
    let world = World::with_nodes(0).await;
    world.create(workload("ReplicaSet", 1)).await;
    let pod = world.until("a pod", || async { world.list::<Pod>().await.pop() }).await;
    let failed = Patch::Merge(json!({"status": {"phase": "Failed"}}));
    world.api::<Pod>().patch_status(&pod.name_any(), &PatchParams::default(), &failed).await.unwrap();
    world.until("another one", || async { holds(world.list::<Pod>().await.len() == 2) }).await;
    assert_eq!(world.api::<Pod>().get(&pod.name_any()).await.unwrap().owner_references().len(), 1);
    world.stop().await;
}

#[tokio::test]
async fn a_claim_stays_while_a_pod_uses_it() {
    let world = World::start().await;
    world
        .create(json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "finalizers": ["kubernetes.io/pvc-protection"]},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}))
        .await;
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "user"}, "spec": template("one")["spec"]});
    pod["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    // Bound by hand: the scheduler may wait for a volume that nobody provides.
    pod["spec"]["nodeName"] = "elsewhere".into();
    world.create(pod).await;
    let claims = world.api::<PersistentVolumeClaim>();
    claims.delete("data", &DeleteParams::default()).await.unwrap();
    assert!(claims.get("data").await.unwrap().metadata.deletion_timestamp.is_some());
    let gone = DeleteParams::default().grace_period(0);
    world.api::<Pod>().delete("user", &gone).await.unwrap();
    world
        .until("the claim is gone", || async { holds(claims.get_opt("data").await.unwrap().is_none()) })
        .await;
    world.stop().await;
}
