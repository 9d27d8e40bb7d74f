//! Simulated nodes in a whole control plane, in virtual time: what Behaviors, annotations and resizes come to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use homeostat_cluster::audit::{Audit, Event, Interest, Level, Stage};
use homeostat_cluster::{Cluster, ClusterOptions, simulate};
use http::Request;
use kube::Client;
use serde_json::{Value, json};

struct World {
    cluster: Cluster,
    client: Client,
}

const BEHAVIORS: &str = "/apis/simulation.homeostat.dev/v1alpha1/behaviors";
const PODS: &str = "/api/v1/namespaces/default/pods";

impl World {
    async fn start(nodes: usize, capacity: &str) -> Self {
        let mut options = ClusterOptions::simulated(7);
        options.nodes(nodes, capacity, "zone=a|b").unwrap();
        let cluster = Cluster::with(options).await.unwrap();
        let client = cluster.client();
        let world = Self { cluster, client };
        // The account of pods, the nodes, and the definition of behaviors.
        sleep(2.0).await;
        world
    }

    async fn send(&self, method: &str, path: &str, body: Value) -> Value {
        let patch =
            if method == "PATCH" { "application/strategic-merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(method).uri(path).header("content-type", patch);
        let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(&body).unwrap() };
        self.client
            .request(request.body(body).unwrap())
            .await
            .unwrap_or_else(|e| panic!("{method} {path}: {e}"))
    }

    async fn get(&self, path: &str) -> Value {
        self.send("GET", path, Value::Null).await
    }

    async fn behavior(&self, name: &str, spec: Value) {
        let object = json!({"apiVersion": "simulation.homeostat.dev/v1alpha1", "kind": "Behavior",
            "metadata": {"name": name}, "spec": spec});
        self.send("POST", BEHAVIORS, object).await;
    }

    async fn pod(&self, name: &str, annotations: Value, spec: Value) {
        let mut spec = spec;
        if spec["containers"].is_null() {
            spec["containers"] = json!([{"name": "c", "image": "web:1"}]);
        }
        let meta = json!({"name": name, "labels": {"app": name}, "annotations": annotations});
        self.send("POST", PODS, json!({"metadata": meta, "spec": spec})).await;
    }

    /// `Phase state[restarts]` of a pod's first container.
    async fn seen(&self, pod: &str) -> String {
        let status = self.get(&format!("{PODS}/{pod}")).await["status"].take();
        let container = &status["containerStatuses"][0];
        let state = &container["state"];
        let state = match (&state["waiting"], &state["running"], &state["terminated"]) {
            (Value::Object(w), _, _) => w["reason"].as_str().unwrap().to_owned(),
            (_, Value::Object(_), _) => "running".to_owned(),
            (_, _, t) => format!("{}({})", t["reason"].as_str().unwrap_or_default(), t["exitCode"]),
        };
        let ready = if container["ready"] == true { "+" } else { "" };
        format!(
            "{} {state}[{}]{ready}",
            status["phase"].as_str().unwrap_or_default(),
            container["restartCount"]
        )
    }

    /// `reason note` of the events about a pod, in the order in which they came.
    async fn told(&self, pod: &str) -> Vec<String> {
        let mut events = self.get("/apis/events.k8s.io/v1/events").await;
        let mut all = events["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
        all.retain(|e| e["regarding"]["name"] == pod);
        all.sort_by_key(|e| e["metadata"]["resourceVersion"].as_str().and_then(|v| v.parse::<u64>().ok()));
        let text = |e: &Value, f: &str| e[f].as_str().unwrap_or_default().to_owned();
        all.iter().map(|e| format!("{} {}", text(e, "reason"), text(e, "note"))).collect()
    }

    #[track_caller]
    fn condition(object: &Value, kind: &str) -> String {
        let all = object["status"]["conditions"].as_array().unwrap();
        let found = all.iter().find(|c| c["type"] == kind);
        found.map_or("absent".to_owned(), |c| {
            let text = |f: &str| c[f].as_str().unwrap_or_default().to_owned();
            format!("{} {} {}", text("status"), text("reason"), text("message"))
        })
    }

    async fn stop(self) {
        self.cluster.stop(Duration::from_secs(5)).await;
    }
}

async fn sleep(s: f64) {
    tokio::time::sleep(Duration::from_secs_f64(s)).await;
}

#[test]
fn behaviors_hold_for_what_they_select_and_as_long_as_they_are_there() {
    simulate(async || {
        let world = World::start(2, "").await;
        let crash = json!({"run": {"stages": [{"for": "5s", "exit": {"code": 3, "message": "no luck"}}]}});
        world.behavior("crash", json!({"selector": {"images": ["web:*"]}, "container": crash})).await;
        let absent = json!({"pull": {"error": "not found"}});
        world.behavior("absent", json!({"selector": {"images": ["nope:*"]}, "container": absent})).await;
        sleep(0.1).await;
        world.pod("web", json!({}), json!({})).await;
        world.pod("nope", json!({}), json!({"containers": [{"name": "c", "image": "nope:1"}]})).await;
        world
            .pod(
                "said",
                json!({"simulation.homeostat.dev/exit": "7 after 2s"}),
                json!({"restartPolicy": "Never"}),
            )
            .await;
        world.pod("well", json!({}), json!({"containers": [{"name": "c", "image": "db:1"}]})).await;
        sleep(14.0).await;
        assert_eq!(world.seen("web").await, "Running CrashLoopBackOff[1]");
        assert_eq!(world.seen("nope").await, "Pending ImagePullBackOff[0]");
        assert_eq!(world.seen("said").await, "Failed Error(7)[0]");
        assert_eq!(world.seen("well").await, "Running running[0]+");
        let web = world.get(&format!("{PODS}/web")).await;
        assert_eq!(web["status"]["containerStatuses"][0]["lastState"]["terminated"]["message"], "no luck");
        world.send("DELETE", &format!("{BEHAVIORS}/crash"), Value::Null).await;
        world.send("DELETE", &format!("{BEHAVIORS}/absent"), Value::Null).await;
        sleep(600.0).await;
        assert_eq!(world.seen("web").await, "Running running[2]+");
        assert_eq!(world.seen("nope").await, "Running running[0]+");
        // What can't be read is told.
        world.pod("odd", json!({"simulation.homeostat.dev/exit": "soon"}), json!({})).await;
        world.behavior("odd", json!({"selector": {"labels": "a in ("}, "container": {}})).await;
        sleep(2.0).await;
        let events = world.get("/apis/events.k8s.io/v1/events").await;
        let of = |kind: &str| {
            let all = events["items"].as_array().unwrap().iter();
            all.filter(|e| e["reason"] == "InvalidBehavior" && e["regarding"]["kind"] == kind).count()
        };
        assert_eq!((of("Pod"), of("Behavior")), (1, 1));
        world.stop().await;
    })
    .unwrap();
}

#[test]
fn jobs_finish_by_themselves_and_retry_what_fails() {
    simulate(async || {
        let world = World::start(1, "").await;
        let fails = json!({"run": {"stages": [{"for": "3s", "exit": {"code": 1}}]}});
        let once = json!({"selector": {"containers": ["c"], "labels": "job-name=once", "restarts": {"to": 0}},
            "container": fails});
        world.behavior("once", once).await;
        sleep(0.1).await;
        for (name, policy) in [("plain", "Never"), ("once", "OnFailure")] {
            let template =
                json!({"spec": {"restartPolicy": policy, "containers": [{"name": "c", "image": "i"}]}});
            let job = json!({"metadata": {"name": name}, "spec": {"completions": 2, "template": template}});
            world.send("POST", "/apis/batch/v1/namespaces/default/jobs", job).await;
        }
        sleep(60.0).await;
        for name in ["plain", "once"] {
            let job = world.get(&format!("/apis/batch/v1/namespaces/default/jobs/{name}")).await;
            assert_eq!(job["status"]["succeeded"], 2, "{name}: {}", job["status"]);
            assert!(World::condition(&job, "Complete").starts_with("True"), "{}", job["status"]);
        }
        world.stop().await;
    })
    .unwrap();
}

#[test]
fn nodes_go_away_and_come_back_and_devices_turn_unhealthy() {
    simulate(async || {
        let world = World::start(2, "nvidia.com/gpu=8").await;
        let node = async |name: &str| world.get(&format!("/api/v1/nodes/{name}")).await;
        let ready = async |name: &str| World::condition(&node(name).await, "Ready").split(' ').next().unwrap().to_owned();
        assert_eq!(node("node-2").await["metadata"]["labels"]["zone"], "b");
        world.pod("here", json!({}), json!({"nodeName": "node-1"})).await;
        sleep(1.0).await;
        assert_eq!(world.seen("here").await, "Running running[0]+");
        let lost = json!({"stages": [{"for": "10s"}, {"for": "100s", "reboot": true}]});
        world.behavior("lost", json!({"selector": {"nodes": ["node-1"]}, "node": lost})).await;
        let sick = json!({"stages": [{"unhealthy": {"nvidia.com/gpu": 2},
            "conditions": [{"type": "GPUHealthy", "status": "False", "reason": "Xid", "message": "Xid 79"}]}]});
        world.behavior("sick", json!({"selector": {"nodes": ["node-2"]}, "node": sick})).await;
        sleep(5.0).await;
        let second = node("node-2").await;
        let gpus = |list: &str| second["status"][list]["nvidia.com/gpu"].clone();
        assert_eq!((gpus("capacity"), gpus("allocatable")), (json!("8"), json!("6")));
        assert_eq!(World::condition(&second, "GPUHealthy"), "False Xid Xid 79");
        assert_eq!(ready("node-1").await, "True");
        sleep(70.0).await;
        assert_eq!((ready("node-1").await.as_str(), ready("node-2").await.as_str()), ("Unknown", "True"));
        // Back: its containers were started anew.
        sleep(60.0).await;
        assert_eq!(ready("node-1").await, "True");
        assert_eq!(world.seen("here").await, "Running running[1]+");
        world.send("DELETE", &format!("{BEHAVIORS}/sick"), Value::Null).await;
        sleep(5.0).await;
        let second = node("node-2").await;
        assert_eq!(second["status"]["allocatable"]["nvidia.com/gpu"], "8");
        assert_eq!(World::condition(&second, "GPUHealthy"), "absent");
        world.stop().await;
    })
    .unwrap();
}

#[test]
fn resources_change_in_place_where_they_fit() {
    simulate(async || {
        let world = World::start(1, "cpu=4,memory=8Gi").await;
        let resources = |cpu: &str| json!({"requests": {"cpu": cpu, "memory": "1Gi"}});
        let spec = |cpu: &str| {
            json!({"containers": [{"name": "c", "image": "i", "resources": resources(cpu),
            "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"},
                {"resourceName": "memory", "restartPolicy": "RestartContainer"}]}]})
        };
        world.pod("a", json!({}), spec("1")).await;
        world.pod("b", json!({}), spec("1")).await;
        sleep(1.0).await;
        let resize = async |requests: Value| {
            let body = json!({"spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}});
            world.send("PATCH", &format!("{PODS}/a/resize"), body).await;
            sleep(2.0).await;
            world.get(&format!("{PODS}/a")).await
        };
        let has = |pod: &Value| {
            let c = &pod["status"]["containerStatuses"][0];
            (
                c["resources"]["requests"]["cpu"].clone(),
                c["allocatedResources"]["cpu"].clone(),
                c["restartCount"].clone(),
            )
        };
        let pod = resize(json!({"cpu": "2"})).await;
        assert_eq!(has(&pod), (json!("2"), json!("2"), json!(0)));
        assert_eq!(World::condition(&pod, "PodResizePending"), "absent");
        let pod = resize(json!({"cpu": "40"})).await;
        assert_eq!(has(&pod), (json!("2"), json!("2"), json!(0)));
        assert_eq!(
            World::condition(&pod, "PodResizePending"),
            "True Infeasible Node didn't have enough capacity: cpu, requested: 40000, capacity: 4000"
        );
        let pod = resize(json!({"cpu": "3500m"})).await;
        assert_eq!(
            World::condition(&pod, "PodResizePending"),
            "True Deferred Node didn't have enough resource: cpu, requested: 3500, used: 1000, capacity: 4000"
        );
        // Room is made.
        world.send("DELETE", &format!("{PODS}/b"), Value::Null).await;
        sleep(20.0).await;
        let pod = world.get(&format!("{PODS}/a")).await;
        assert_eq!(has(&pod), (json!("3500m"), json!("3500m"), json!(0)));
        assert_eq!(World::condition(&pod, "PodResizePending"), "absent");
        let pod = resize(json!({"memory": "2Gi"})).await;
        assert_eq!(has(&pod).2, 1);
        let asked = |cpu: &str, memory: &str, rest: &str| {
            let requests = format!("{{\"requests\":{{\"cpu\":\"{cpu}\",\"memory\":\"{memory}\"}}}}");
            format!("{{\"containers\":[{{\"name\":\"c\",\"resources\":{requests}}}],\"generation\":{rest}}}")
        };
        let want = [
            format!("ResizeStarted Pod resize started: {}", asked("2", "1Gi", "2")),
            format!("ResizeCompleted Pod resize completed: {}", asked("2", "1Gi", "2")),
            format!(
                "ResizeInfeasible Pod resize Infeasible: {}",
                asked(
                    "40",
                    "1Gi",
                    "3,\"error\":\"Node didn't have \
                enough capacity: cpu, requested: 40000, capacity: 4000\""
                )
            ),
            format!(
                "ResizeDeferred Pod resize Deferred: {}",
                asked(
                    "3500m",
                    "1Gi",
                    "4,\"error\":\"Node didn't have \
                enough resource: cpu, requested: 3500, used: 1000, capacity: 4000\""
                )
            ),
            format!("ResizeStarted Pod resize started: {}", asked("3500m", "1Gi", "4")),
            format!("ResizeCompleted Pod resize completed: {}", asked("3500m", "1Gi", "4")),
            format!("ResizeStarted Pod resize started: {}", asked("3500m", "2Gi", "5")),
            format!("ResizeCompleted Pod resize completed: {}", asked("3500m", "2Gi", "5")),
        ];
        let mut told: Vec<String> = world.told("a").await;
        told.retain(|event| event.starts_with("Resize"));
        assert_eq!(told, want);
        // And what doesn't fit at all isn't taken.
        let mut forced = spec("3");
        forced["nodeName"] = json!("node-1");
        world.pod("c", json!({}), forced).await;
        sleep(1.0).await;
        let c = world.get(&format!("{PODS}/c")).await["status"].take();
        assert_eq!((&c["phase"], &c["reason"]), (&json!("Failed"), &json!("OutOfcpu")));
        world.stop().await;
    })
    .unwrap();
}

#[test]
fn pods_bound_to_a_node_that_is_not_theirs_are_rejected() {
    simulate(async || {
        let world = World::start(2, "").await;
        let port = json!([{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 8080}]}]);
        let fixed = |spec: Value| {
            let mut spec = spec;
            spec["nodeName"] = json!("node-1");
            spec
        };
        world.pod("first", json!({}), fixed(json!({"containers": port}))).await;
        sleep(1.0).await;
        world.pod("ports", json!({}), fixed(json!({"containers": port}))).await;
        world.pod("elsewhere", json!({}), fixed(json!({"nodeSelector": {"zone": "b"}}))).await;
        // The label has just come.
        world.send("PATCH", "/api/v1/nodes/node-1", json!({"metadata": {"labels": {"disk": "ssd"}}})).await;
        world.pod("here", json!({}), fixed(json!({"nodeSelector": {"disk": "ssd"}}))).await;
        sleep(1.0).await;
        let taint = json!({"spec": {"taints": [{"key": "sick", "effect": "NoSchedule"}]}});
        world.send("PATCH", "/api/v1/nodes/node-1", taint).await;
        sleep(1.0).await;
        world.pod("scheduled", json!({}), fixed(json!({}))).await;
        sleep(1.0).await;
        let status = async |pod: &str| world.get(&format!("{PODS}/{pod}")).await["status"].take();
        for (pod, reason, why) in [
            ("ports", "NodePorts", "node(s) didn't have free ports for the requested pod ports"),
            ("elsewhere", "NodeAffinity", "node(s) didn't match Pod's node affinity/selector"),
        ] {
            let status = status(pod).await;
            assert_eq!((&status["phase"], &status["reason"]), (&json!("Failed"), &json!(reason)));
            let message = format!("Predicate {reason} failed: {why}");
            assert_eq!(status["message"], format!("Pod was rejected: {message}"));
            assert_eq!(world.told(pod).await, [format!("{reason} {message}")]);
        }
        for pod in ["first", "here", "scheduled"] {
            assert_eq!(world.seen(pod).await, "Running running[0]+", "{pod}");
        }
        // Whoever has the port no longer runs: it is free.
        world.send("DELETE", &format!("{PODS}/first"), Value::Null).await;
        sleep(40.0).await;
        world.pod("next", json!({}), fixed(json!({"containers": port}))).await;
        sleep(1.0).await;
        assert_eq!(world.seen("next").await, "Running running[0]+");
        world.stop().await;
    })
    .unwrap();
}

#[test]
fn a_node_short_of_memory_evicts_one_pod_after_the_other() {
    simulate(async || {
        let world = World::start(1, "").await;
        let spec = |requests: Value| {
            json!({"nodeName": "node-1", "terminationGracePeriodSeconds": 300,
                "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]})
        };
        let uses = |memory: &str| {
            json!({"simulation.homeostat.dev/memory": memory, "simulation.homeostat.dev/stop": "never"})
        };
        world.pod("modest", json!({}), spec(json!({"memory": "1Gi"}))).await;
        world.pod("over", uses("96Mi"), spec(json!({"memory": "64Mi"}))).await;
        world.pod("greedy", uses("1Gi"), spec(json!({"memory": "64Mi"}))).await;
        sleep(3.0).await;
        let low = json!({"type": "MemoryPressure", "status": "True", "reason": "KubeletHasInsufficientMemory"});
        let node = json!({"stages": [{"for": "18s", "conditions": [low]}]});
        world.behavior("low", json!({"selector": {"nodes": ["node-1"]}, "node": node})).await;
        sleep(1.0).await;
        world.pod("best", json!({}), spec(json!({}))).await;
        world.pod("burst", json!({}), spec(json!({"memory": "1Mi"}))).await;
        sleep(9.5).await;
        // It was told to stop and took no notice.
        let greedy = world.get(&format!("{PODS}/greedy")).await;
        let text = "The node was low on resource: memory. Container c was using 1Gi, request is 64Mi, has larger \
            consumption of memory. ";
        let status = &greedy["status"];
        assert_eq!((&status["phase"], &status["reason"]), (&json!("Failed"), &json!("Evicted")), "{status}");
        assert_eq!(status["message"], text);
        assert_eq!(
            World::condition(&greedy, "DisruptionTarget"),
            format!("True TerminationByKubelet {text}")
        );
        assert_eq!(status["containerStatuses"][0]["state"]["terminated"]["exitCode"], 137);
        assert!(world.told("greedy").await.contains(&format!("Evicted {text}")));
        assert!(world.told("node-1").await.contains(&"EvictionThresholdMet Attempting to reclaim memory".into()));
        assert_eq!(world.seen("over").await, "Running running[0]+");
        let best = world.get(&format!("{PODS}/best")).await["status"].take();
        let text = "Pod was rejected: The node had condition: [MemoryPressure]. ";
        assert_eq!((&best["reason"], &best["message"]), (&json!("Evicted"), &json!(text)));
        sleep(60.0).await;
        // One more went before the pressure was over, those within their requests not.
        let over = world.get(&format!("{PODS}/over")).await["status"].take();
        assert_eq!(over["reason"], "Evicted");
        for pod in ["modest", "burst"] {
            assert_eq!(world.seen(pod).await, "Running running[0]+", "{pod}");
        }
        world.stop().await;
    })
    .unwrap();
}

#[test]
fn a_container_that_uses_more_memory_than_it_may_is_killed() {
    simulate(async || {
        let world = World::start(1, "").await;
        let grows = json!({"run": {"stages": [{"for": "10s", "usage": {"memory": "64Mi"}},
            {"usage": {"memory": "256Mi"}}]}});
        world.behavior("grows", json!({"selector": {"labels": "app=grows"}, "container": grows})).await;
        sleep(0.1).await;
        for (name, limit) in [("grows", "128Mi"), ("fits", "512Mi")] {
            let c = json!([{"name": "c", "image": "i", "resources": {"limits": {"memory": limit}}}]);
            let said = match name {
                "fits" => json!({"simulation.homeostat.dev/memory": "512Mi"}),
                _ => json!({}),
            };
            world.pod(name, said, json!({"containers": c, "restartPolicy": "OnFailure"})).await;
        }
        sleep(9.0).await;
        assert_eq!(world.seen("grows").await, "Running running[0]+");
        sleep(5.0).await;
        let pod = world.get(&format!("{PODS}/grows")).await;
        let last = &pod["status"]["containerStatuses"][0]["lastState"]["terminated"];
        assert_eq!((&last["reason"], &last["exitCode"]), (&json!("OOMKilled"), &json!(137)), "{pod}");
        assert_eq!(world.seen("fits").await, "Running running[0]+");
        world.stop().await;
    })
    .unwrap();
}

/// At whatever moment of a pod's start its deletion comes, between what a kubelet reads and what it tells too.
#[test]
fn a_deletion_is_never_passed_over() {
    simulate(async || {
        let world = World::start(1, "").await;
        for i in 0..60 {
            let name = format!("p{i}");
            world.pod(&name, json!({}), json!({"nodeName": "node-1"})).await;
            for _ in 0..i {
                sleep(0.003).await;
                tokio::task::yield_now().await;
            }
            world.send("DELETE", &format!("{PODS}/{name}"), Value::Null).await;
        }
        sleep(120.0).await;
        assert_eq!(world.get(PODS).await["items"], json!([]));
        world.stop().await;
    })
    .unwrap();
}

#[test]
fn events_name_the_container_and_the_node_that_tells_them() {
    simulate(async || {
        let world = World::start(1, "").await;
        let container = |name: &str| json!([{"name": name, "image": format!("{name}:1")}]);
        let spec =
            json!({"nodeName": "node-1", "containers": container("c"), "initContainers": container("i")});
        world.pod("a", json!({}), spec).await;
        sleep(2.0).await;
        let events = world.get("/apis/events.k8s.io/v1/namespaces/default/events").await;
        let told = |event: &Value| {
            let text =
                |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
            let container = text("/regarding/fieldPath");
            format!("{} {container} {} {}", text("/reportingInstance"), text("/reason"), text("/note"))
        };
        let mut all: Vec<String> = events["items"].as_array().unwrap().iter().map(told).collect();
        all.retain(|event| event.starts_with("node-1 ") && !event.contains(" Pull"));
        all.sort();
        let want = [
            "node-1 spec.containers{c} Created Container created",
            "node-1 spec.containers{c} Started Container started",
            "node-1 spec.initContainers{i} Created Container created",
            "node-1 spec.initContainers{i} Started Container started",
        ];
        assert_eq!(all, want);
        world.stop().await;
    })
    .unwrap();
}

#[test]
fn pods_start_once_what_they_are_configured_with_is_there() {
    simulate(async || {
        let world = World::start(1, "").await;
        let reference = json!({"secretKeyRef": {"name": "password", "key": "word"}});
        let env = json!([{"name": "c", "image": "i", "env": [{"name": "WORD", "valueFrom": reference}]}]);
        world.pod("env", json!({}), json!({"containers": env})).await;
        let volumes = json!([{"name": "v", "configMap": {"name": "settings"}}]);
        world.pod("volume", json!({}), json!({"volumes": volumes})).await;
        sleep(4.0).await;
        assert_eq!(world.seen("env").await, "Pending CreateContainerConfigError[0]");
        assert_eq!(world.seen("volume").await, "Pending ContainerCreating[0]");
        let told = world.get("/apis/events.k8s.io/v1/namespaces/default/events").await;
        let told: Vec<String> =
            told["items"].as_array().unwrap().iter().map(|e| e["note"].to_string()).collect();
        for text in [
            "Error: secret \\\"password\\\" not found",
            "MountVolume.SetUp failed for volume \\\"v\\\" : configmap \\\"settings\\\" not found",
        ] {
            assert!(told.iter().any(|note| note.contains(text)), "{text}: {told:?}");
        }
        let base = "/api/v1/namespaces/default";
        let secret = json!({"metadata": {"name": "password"}, "stringData": {"else": "x"}});
        world.send("POST", &format!("{base}/secrets"), secret).await;
        world.send("POST", &format!("{base}/configmaps"), json!({"metadata": {"name": "settings"}})).await;
        sleep(20.0).await;
        assert_eq!(world.seen("volume").await, "Running running[0]+");
        let waits = world.get(&format!("{PODS}/env")).await;
        let waits = &waits["status"]["containerStatuses"][0]["state"]["waiting"];
        assert_eq!(waits["message"], "couldn't find key word in Secret default/password");
        let word = json!({"stringData": {"word": "x"}});
        world.send("PATCH", &format!("{base}/secrets/password"), word).await;
        sleep(11.0).await;
        assert_eq!(world.seen("env").await, "Running running[0]+");
        world.stop().await;
    })
    .unwrap();
}

#[test]
fn usage_is_served_as_metrics() {
    simulate(async || {
        let world = World::start(2, "").await;
        world
            .behavior(
                "busy",
                json!({"selector": {"labels": "app=busy"}, "container":
            {"run": {"stages": [{"for": "60s", "usage": {"cpu": "250m"}}, {"usage": {"cpu": "2"}}]},
            "usage": {"memory": "1Gi"}}}),
            )
            .await;
        sleep(0.1).await;
        let requests = json!({"requests": {"cpu": "1", "memory": "64Mi"}});
        world.pod("busy", json!({}), json!({"nodeName": "node-2"})).await;
        world
            .pod(
                "usual",
                json!({}),
                json!({"containers": [{"name": "c", "image": "i", "resources": requests}]}),
            )
            .await;
        sleep(10.0).await;
        let base = "/apis/metrics.k8s.io/v1beta1";
        let pod = world.get(&format!("{base}/namespaces/default/pods/busy")).await;
        assert_eq!((&pod["kind"], &pod["window"]), (&json!("PodMetrics"), &json!("15s")));
        assert_eq!(
            pod["containers"],
            json!([{"name": "c", "usage": {"cpu": "250m", "memory": "1048576Ki"}}])
        );
        let list = world.get(&format!("{base}/namespaces/default/pods?labelSelector=app%3Dusual")).await;
        assert_eq!((&list["kind"], list["items"].as_array().unwrap().len()), (&json!("PodMetricsList"), 1));
        assert_eq!(list["items"][0]["containers"][0]["usage"], json!({"cpu": "100m", "memory": "32768Ki"}));
        sleep(60.0).await;
        let nodes = world.get(&format!("{base}/nodes")).await;
        let names: Vec<&str> = nodes["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|n| n["metadata"]["name"].as_str())
            .collect();
        assert_eq!(names, ["node-1", "node-2"]);
        let node = world.get(&format!("{base}/nodes/node-2")).await;
        assert_eq!(node["kind"], "NodeMetrics");
        let cpu: u64 = node["usage"]["cpu"].as_str().unwrap().trim_end_matches('m').parse().unwrap();
        assert!((2100..2300).contains(&cpu), "{node}");
        let group = world.get(base).await;
        let verbs: Vec<&Value> = group["resources"].as_array().unwrap().iter().map(|r| &r["verbs"]).collect();
        assert_eq!(verbs, [&json!(["get", "list"]); 2]);
        let request = Request::post(format!("{base}/nodes")).body(b"{}".to_vec()).unwrap();
        let refused = world.client.request::<Value>(request).await.unwrap_err();
        assert!(refused.to_string().contains("create is not supported"), "{refused}");
        world.stop().await;
    })
    .unwrap();
}

/// Counts what simulated kubelets ask for, by verb and resource.
#[derive(Debug, Default)]
struct Kubelets(Mutex<BTreeMap<String, usize>>);

impl Audit for Kubelets {
    fn interest(&self, _: &homeostat_access::Attributes<'_>) -> Interest {
        Interest { level: Level::Metadata, ..Interest::default() }
    }

    fn tell(&self, event: Event) {
        if event.stage == Stage::ResponseComplete && event.user.name.ends_with(":simulated-kubelet") {
            let path = event.request_uri.split('?').next().unwrap_or_default();
            let resource = path.rsplit('/').find(|part| !part.starts_with("node-")).unwrap_or_default();
            let subresource = if path.ends_with("/status") { "nodes/status" } else { resource };
            *self.0.lock().unwrap().entry(format!("{} {subresource}", event.verb)).or_default() += 1;
        }
    }
}

#[test]
fn a_node_costs_one_lease_update_each_time_and_a_status_now_and_then() {
    const NODES: usize = 10;
    simulate(async || {
        let kubelets = Arc::new(Kubelets::default());
        let mut options = ClusterOptions::simulated(7);
        options.nodes(NODES, "", "").unwrap();
        options.audit = Some(kubelets.clone());
        let cluster = Cluster::with(options).await.unwrap();
        sleep(600.0).await;
        kubelets.0.lock().unwrap().clear();
        sleep(3600.0).await;
        let asked = std::mem::take(&mut *kubelets.0.lock().unwrap());
        // A renewal in ten seconds; a look at the Node and a report of it in five minutes.
        let most = |hourly: usize| NODES * (hourly + 1);
        for (what, count) in &asked {
            let hourly = match &**what {
                "patch leases" => 360,
                "get nodes" | "patch nodes/status" => 12,
                _ => 0,
            };
            assert!(
                hourly > 0 && *count <= most(hourly),
                "{count} {what} of {NODES} nodes in an hour: {asked:#?}"
            );
        }
        assert!(asked["patch leases"] >= NODES * 359, "{asked:#?}");
        cluster.stop(Duration::from_secs(5)).await;
    })
    .unwrap();
}
