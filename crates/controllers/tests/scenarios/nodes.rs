//! What becomes of pods on nodes that drive them out or stop answering.

use homeostat_cluster::simulate;
use serde_json::{Value, json};

use crate::virtual_time::Simulation;

const PODS: &str = "/api/v1/namespaces/default/pods";

async fn node(world: &Simulation) -> String {
    let nodes = world.items("/api/v1/nodes").await;
    format!("/api/v1/nodes/{}", nodes[0]["metadata"]["name"].as_str().unwrap())
}

#[test]
fn tolerations_of_a_taint_run_out() {
    simulate(async || {
        let world = Simulation::start(21, 1).await;
        let path = node(&world).await;
        for (name, seconds) in [("never", json!(0)), ("short", json!(60)), ("long", json!(null))] {
            let pod = json!({"metadata": {"name": name}, "spec": {"terminationGracePeriodSeconds": 1,
                "containers": [{"name": "c", "image": "i"}],
                "tolerations": [{"key": "out", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}]}});
            world.create(PODS, pod).await;
        }
        world.pass(30).await;
        world.merge(&path, json!({"spec": {"taints": [{"key": "out", "effect": "NoExecute"}]}})).await;
        let names = async |world: &Simulation| {
            let pods = world.items(PODS).await;
            pods.iter().map(|p| p["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        world.pass(30).await;
        assert_eq!(names(&world).await, ["long", "short"]);
        world.pass(60).await;
        assert_eq!(names(&world).await, ["long"]);
        let events = world.items("/api/v1/namespaces/default/events").await;
        let told = |text: &str| events.iter().any(|e| e["message"] == text);
        assert!(told("Marking for deletion Pod default/short"), "{events:#?}");
    })
    .unwrap();
}

#[test]
fn a_taint_that_goes_before_its_time_lets_pods_stay() {
    simulate(async || {
        let world = Simulation::start(23, 1).await;
        let path = node(&world).await;
        let pod = json!({"metadata": {"name": "short"}, "spec": {"containers": [{"name": "c", "image": "i"}],
            "tolerations": [{"key": "out", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]}});
        world.create(PODS, pod).await;
        world.pass(30).await;
        world.merge(&path, json!({"spec": {"taints": [{"key": "out", "effect": "NoExecute"}]}})).await;
        world.pass(30).await;
        world.merge(&path, json!({"spec": {"taints": null}})).await;
        world.pass(120).await;
        let pods = world.items(PODS).await;
        assert_eq!(pods.len(), 1);
        assert!(pods[0]["metadata"]["deletionTimestamp"].is_null());
        let events = world.items("/api/v1/namespaces/default/events").await;
        let told: Vec<_> = events.iter().filter(|e| e["reason"] == "TaintManagerEviction").collect();
        assert_eq!(told.len(), 1, "{told:#?}");
        assert_eq!(told[0]["message"], "Cancelling deletion of Pod default/short");
    })
    .unwrap();
}

#[test]
fn nodes_come_and_go_with_a_word() {
    simulate(async || {
        let world = Simulation::start(24, 0).await;
        world.create("/api/v1/nodes", json!({"metadata": {"name": "guest"}})).await;
        world.pass(5).await;
        world.delete("/api/v1/nodes/guest", "Background").await;
        world.pass(5).await;
        let events = world.items("/api/v1/namespaces/default/events").await;
        let about = events.iter().filter(|e| e["involvedObject"]["name"] == "guest");
        let told: Vec<_> =
            about.map(|e| (e["reason"].as_str().unwrap(), e["message"].as_str().unwrap())).collect();
        let want = [
            ("RegisteredNode", "Node guest event: Registered Node guest in Controller"),
            ("RemovingNode", "Node guest event: Removing Node guest from Controller"),
        ];
        assert_eq!(told, want);
    })
    .unwrap();
}

#[test]
fn pods_of_a_node_that_is_lost_leave_the_service_and_are_replaced() {
    simulate(async || {
        let world = Simulation::start(22, 2).await;
        let labels = json!({"app": "web"});
        let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}],
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": labels}}]}});
        let service = json!({"metadata": {"name": "web"}, "spec": {"selector": labels, "ports": [{"port": 80}]}});
        world.create("/api/v1/namespaces/default/services", service).await;
        let deployment = json!({"metadata": {"name": "web"},
            "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}});
        world.create("/apis/apps/v1/namespaces/default/deployments", deployment).await;
        world.pass(30).await;
        let lost = json!({"apiVersion": "simulation.homeostat.dev/v1alpha1", "kind": "Behavior",
            "metadata": {"name": "lost"}, "spec": {"selector": {"nodes": ["node-1"]}, "node": {"stages": [{"lost": true}]}}});
        world.create("/apis/simulation.homeostat.dev/v1alpha1/behaviors", lost).await;
        // On which nodes there are pods, and whether they are ready; `-` says that one is being deleted.
        let seen = async || {
            let mut seen: Vec<String> = Vec::new();
            for pod in world.items(PODS).await {
                let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
                let ready = conditions.iter().find(|c| c["type"] == "Ready").map(|c| c["status"].clone());
                let going = if pod["metadata"]["deletionTimestamp"].is_null() { "" } else { "-" };
                let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
                seen.push(format!("{going}{node} {}", ready.unwrap_or_default().as_str().unwrap_or_default()));
            }
            seen.sort();
            seen
        };
        let served = async || {
            let slices = world.items("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices").await;
            let of_web = slices.iter().filter(|s| s["metadata"]["labels"]["kubernetes.io/service-name"] == "web");
            let endpoints = of_web.flat_map(|s| s["endpoints"].as_array().cloned().unwrap_or_default());
            let ready = endpoints.filter(|e| e["conditions"]["ready"] == true);
            ready.map(|e| e["nodeName"].as_str().unwrap().to_owned()).collect::<Vec<_>>().len()
        };
        assert_eq!(seen().await, ["node-1 True", "node-2 True"]);
        assert_eq!(served().await, 2);
        world.pass(70).await;
        assert_eq!(seen().await, ["node-1 False", "node-2 True"]);
        assert_eq!(served().await, 1);
        let events = world.items("/api/v1/namespaces/default/events").await;
        assert!(events.iter().any(|e| e["reason"] == "NodeNotReady" && e["message"] == "Node is not ready"));
        // Five minutes later the pod is given up; nobody is there to say that it ended.
        world.pass(300).await;
        assert_eq!(seen().await, ["-node-1 False", "node-2 True", "node-2 True"]);
        assert_eq!(served().await, 2);
    })
    .unwrap();
}

fn lost(name: &str, nodes: &[&str]) -> Value {
    json!({"apiVersion": "simulation.homeostat.dev/v1alpha1", "kind": "Behavior", "metadata": {"name": name},
        "spec": {"selector": {"nodes": nodes}, "node": {"stages": [{"for": "15m", "lost": true}, {"for": "100h"}]}}})
}

/// How many nodes drive pods out, and how many are unreachable.
async fn tainted(world: &Simulation) -> (usize, usize) {
    let mut counts = (0, 0);
    for node in world.items("/api/v1/nodes").await {
        let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        let ours = || taints.iter().filter(|t| t["key"] == "node.kubernetes.io/unreachable");
        counts.0 += usize::from(ours().any(|t| t["effect"] == "NoExecute"));
        counts.1 += usize::from(ours().any(|t| t["effect"] == "NoSchedule"));
    }
    counts
}

#[test]
fn no_pod_is_driven_out_where_nothing_is_ready() {
    simulate(async || {
        let world = Simulation::start(25, 3).await;
        let pod = json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        world.create(PODS, pod).await;
        world.pass(30).await;
        let behaviors = "/apis/simulation.homeostat.dev/v1alpha1/behaviors";
        world.create(behaviors, lost("all", &["node-1", "node-2", "node-3"])).await;
        world.pass(90).await;
        assert_eq!(tainted(&world).await, (0, 3));
        // Longer than any pod tolerates.
        world.pass(600).await;
        let pods = world.items(PODS).await;
        assert!(pods.len() == 1 && pods[0]["metadata"]["deletionTimestamp"].is_null(), "{pods:#?}");
        world.pass(300).await;
        assert_eq!(tainted(&world).await, (0, 0));
    })
    .unwrap();
}

#[test]
fn a_zone_of_which_most_is_lost_gives_up_no_more_nodes() {
    simulate(async || {
        let world = Simulation::start(26, 5).await;
        let behaviors = "/apis/simulation.homeostat.dev/v1alpha1/behaviors";
        world.create(behaviors, lost("two", &["node-1", "node-2"])).await;
        world.pass(120).await;
        assert_eq!(tainted(&world).await, (2, 2));
        world.create(behaviors, lost("two-more", &["node-3", "node-4"])).await;
        world.pass(300).await;
        let (driven, unreachable) = tainted(&world).await;
        assert_eq!(unreachable, 4);
        // The third one is most of the zone: it and the fourth are left alone.
        assert_eq!(driven, 2);
    })
    .unwrap();
}

#[test]
fn a_node_whose_clock_is_behind_is_heard() {
    simulate(async || {
        let world = Simulation::start(27, 1).await;
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True",
            "lastHeartbeatTime": "2025-06-01T00:00:00Z", "lastTransitionTime": "2025-06-01T00:00:00Z"}]}});
        world.create("/api/v1/nodes", json!({"metadata": {"name": "behind"}})).await;
        world.merge("/api/v1/nodes/behind/status", ready).await;
        let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
        let renewed =
            |n: u64| json!({"renewTime": format!("2025-06-01T00:{:02}:{:02}.000000Z", n / 60, n % 60)});
        world.create(leases, json!({"metadata": {"name": "behind"}, "spec": renewed(0)})).await;
        let status = async || {
            let node = world.get("/api/v1/nodes/behind").await;
            let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().find(|c| c["type"] == "Ready").unwrap()["status"].clone()
        };
        for n in 1..30 {
            world.pass(10).await;
            world.merge(&format!("{leases}/behind"), json!({"spec": renewed(10 * n)})).await;
            assert_eq!(status().await, "True", "after {n} renewals");
        }
        world.pass(45).await;
        assert_eq!(status().await, "True");
        world.pass(10).await;
        assert_eq!(status().await, "Unknown");
    })
    .unwrap();
}

#[test]
fn nodes_are_told_how_long_they_may_keep_what_they_read() {
    simulate(async || {
        let world = Simulation::start(29, 1).await;
        let path = node(&world).await;
        let told = async || {
            world.get(&path).await["metadata"]["annotations"]["node.alpha.kubernetes.io/ttl"].clone()
        };
        assert_eq!(told().await, "0");
        for i in 0..100 {
            world.create("/api/v1/nodes", json!({"metadata": {"name": format!("more-{i}")}})).await;
        }
        // With its next report.
        world.pass(400).await;
        assert_eq!(told().await, "15");
    })
    .unwrap();
}
