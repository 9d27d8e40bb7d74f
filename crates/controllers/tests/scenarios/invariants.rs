//! What holds at every moment of random workloads, looked at many times a second of virtual time.
//!
//! A seed gives the workload and the cluster, so a failure names all that is needed to see it again.

use std::collections::BTreeMap;
use std::time::Duration;

use homeostat_cluster::simulate;
use homeostat_model::Entropy;
use serde_json::{Value, json};

use crate::virtual_time::Simulation;

const PODS: &str = "/api/v1/namespaces/default/pods";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/default/deployments";
const SET: &str = "/apis/apps/v1/namespaces/default/statefulsets";
const DAEMONS: &str = "/apis/apps/v1/namespaces/default/daemonsets";
const BUDGET: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

fn template(image: u64) -> Value {
    json!({"metadata": {"labels": {"app": "a"}}, "spec": {"terminationGracePeriodSeconds": 1,
        "containers": [{"name": "c", "image": format!("web:{image}")}]}})
}

fn workload(replicas: u64) -> Value {
    json!({"metadata": {"name": "web"}, "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "a"}},
        "template": template(0)}})
}

/// Gives a workload's pods a label of their own.
fn own(workload: &mut Value, app: &str) {
    workload["spec"]["selector"]["matchLabels"]["app"] = app.into();
    workload["spec"]["template"]["metadata"]["labels"]["app"] = app.into();
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ready = conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == "True");
    ready && pod["metadata"]["deletionTimestamp"].is_null()
}

async fn moment() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}

#[test]
fn rollouts_stay_within_their_bounds() {
    for seed in 1..=3 {
        simulate(async || {
            let chance = Entropy::seeded(seed);
            let world = Simulation::start(seed, 2).await;
            let replicas = 2 + chance.below(4);
            let (surge, unavailable) = (1 + chance.below(2), chance.below(2));
            let mut deployment = workload(replicas);
            deployment["spec"]["strategy"] =
                json!({"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}});
            world.create(DEPLOYMENT, deployment).await;
            world.pass(60).await;
            for image in 1..=3 {
                let patch = json!({"spec": {"template": template(image)}});
                world.merge(&format!("{DEPLOYMENT}/web"), patch).await;
                // Sometimes the next change comes before this one is done.
                for _ in 0..if chance.below(2) == 0 { 5 } else { 400 } {
                    moment().await;
                    let pods = world.items(PODS).await;
                    let all =
                        pods.iter().filter(|p| p["metadata"]["deletionTimestamp"].is_null()).count() as u64;
                    let ready = pods.iter().filter(|p| is_ready(p)).count() as u64;
                    assert!(all <= replicas + surge, "seed {seed}: {all} pods of {replicas} + {surge}");
                    assert!(
                        ready + unavailable >= replicas,
                        "seed {seed}: {ready} ready of {replicas} - {unavailable}"
                    );
                }
            }
            world.pass(120).await;
            let done = world.get(&format!("{DEPLOYMENT}/web")).await;
            assert_eq!(done["status"]["updatedReplicas"], replicas, "seed {seed}");
            assert_eq!(done["status"]["replicas"], replicas, "seed {seed}");
        })
        .unwrap();
    }
}

/// The pods of the set by ordinal.
async fn places(world: &Simulation) -> BTreeMap<u64, Value> {
    let ordinal = |p: &Value| p["metadata"]["name"].as_str()?.rsplit_once('-')?.1.parse().ok();
    world.items(PODS).await.into_iter().filter_map(|p| Some((ordinal(&p)?, p))).collect()
}

#[test]
fn stateful_sets_keep_their_order() {
    for seed in 1..=2 {
        simulate(async || {
            let chance = Entropy::seeded(seed);
            let world = Simulation::start(seed, 2).await;
            let mut set = workload(0);
            set["spec"]["serviceName"] = "web".into();
            world.create(SET, set).await;
            let mut before: BTreeMap<u64, Value> = BTreeMap::new();
            for _ in 0..5 {
                let wanted = chance.below(6);
                world.merge(&format!("{SET}/web"), json!({"spec": {"replicas": wanted}})).await;
                for _ in 0..300 {
                    moment().await;
                    let now = places(&world).await;
                    let highest = now.keys().last().copied();
                    // Each new pod finds all before it in place, each that leaves is the last.
                    for ordinal in now.keys().filter(|o| !before.contains_key(o)) {
                        let ready = (0..*ordinal).all(|i| now.get(&i).is_some_and(is_ready));
                        assert!(ready, "seed {seed}: {ordinal} was made too early");
                    }
                    let leaving = now.iter().filter(|(_, p)| !p["metadata"]["deletionTimestamp"].is_null());
                    for (ordinal, _) in leaving {
                        assert_eq!(Some(*ordinal), highest, "seed {seed}: not the last one leaves");
                    }
                    before = now;
                }
                assert_eq!(before.len() as u64, wanted, "seed {seed}");
            }
        })
        .unwrap();
    }
}

#[test]
fn evictions_keep_the_budget() {
    for seed in 1..=2 {
        simulate(async || {
            let chance = Entropy::seeded(seed);
            let world = Simulation::start(seed, 2).await;
            let replicas = 3 + chance.below(3);
            let least = 1 + chance.below(replicas - 1);
            world.create(DEPLOYMENT, workload(replicas)).await;
            let budget = json!({"metadata": {"name": "web"}, "spec": {"minAvailable": least,
                "selector": {"matchLabels": {"app": "a"}}}});
            world.create(BUDGET, budget).await;
            world.pass(60).await;
            let mut agreed = 0;
            for _ in 0..60 {
                let pods = world.items(PODS).await;
                let ready: Vec<&Value> = pods.iter().filter(|p| is_ready(p)).collect();
                assert!(ready.len() as u64 >= least, "seed {seed}: {} ready of {least}", ready.len());
                let victim = ready[usize::try_from(chance.below(ready.len() as u64)).unwrap()];
                let name = victim["metadata"]["name"].as_str().unwrap();
                let eviction =
                    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
                agreed += u64::from(world.post(&format!("{PODS}/{name}/eviction"), eviction).await);
                moment().await;
            }
            assert!(agreed > 3, "seed {seed}: only {agreed} evictions in all this time");
        })
        .unwrap();
    }
}

#[test]
fn a_cascade_leaves_no_orphan() {
    for seed in 1..=2 {
        simulate(async || {
            let chance = Entropy::seeded(seed);
            let world = Simulation::start(seed, 2).await;
            world.create(DEPLOYMENT, workload(1 + chance.below(5))).await;
            let mut set = workload(1 + chance.below(3));
            set["metadata"]["name"] = "set".into();
            set["spec"]["serviceName"] = "set".into();
            own(&mut set, "set");
            world.create(SET, set).await;
            let mut daemons = workload(0);
            daemons["metadata"]["name"] = "every".into();
            daemons["spec"].as_object_mut().unwrap().remove("replicas");
            own(&mut daemons, "every");
            world.create(DAEMONS, daemons).await;
            let job = json!({"metadata": {"name": "work"}, "spec": {"completions": 4, "parallelism": 2,
                "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}});
            let cron = json!({"metadata": {"name": "tick"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job["spec"]}}});
            world.create("/apis/batch/v1/namespaces/default/jobs", job).await;
            world.create("/apis/batch/v1/namespaces/default/cronjobs", cron).await;
            world.pass(60 + chance.below(120)).await;
            for path in [
                &*format!("{DEPLOYMENT}/web"),
                &format!("{SET}/set"),
                &format!("{DAEMONS}/every"),
                "/apis/batch/v1/namespaces/default/jobs/work",
                "/apis/batch/v1/namespaces/default/cronjobs/tick",
            ] {
                let policy = if chance.below(2) == 0 { "Foreground" } else { "Background" };
                world.delete(path, policy).await;
            }
            world.pass(120).await;
            let apps = "/apis/apps/v1/namespaces/default";
            for path in [
                PODS,
                SET,
                DAEMONS,
                &format!("{apps}/replicasets"),
                &format!("{apps}/controllerrevisions"),
                "/apis/batch/v1/namespaces/default/jobs",
            ] {
                let left = world.items(path).await;
                assert!(left.is_empty(), "seed {seed}: {path} {left:#?}");
            }
        })
        .unwrap();
    }
}
