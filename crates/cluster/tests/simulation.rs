//! Virtual time: a seed determines every byte of a cluster's life, in this process and in any other, and long times are
//! short.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use homeostat_cluster::audit::{Audit, Event, Interest, Level};
use homeostat_cluster::{Cluster, ClusterOptions, simulate};
use homeostat_model::Entropy;
use homeostat_sdk::{CancellationToken, Context, Event as Told, Manager, Next, Operator};
use http::Request;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Client;
use serde_json::{Value, json};

const HOUR: Duration = Duration::from_secs(3600);
/// Where another process of this test is to write the life that it sees.
const ELSEWHERE: &str = "HOMEOSTAT_TEST_LIFE";

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

/// Gives each ConfigMap that asks for one a Secret, and looks after it now and then.
struct Badges;

impl Operator for Badges {
    type Resource = ConfigMap;
    type Owns = (Secret,);
    type Reads = ();

    async fn reconcile(&self, map: &ConfigMap, cx: &Context<Self>) -> homeostat_sdk::Result<Next> {
        let Some(badge) = map.data.as_ref().and_then(|d| d.get("badge")) else { return Ok(Next::done()) };
        // A new stamp is a change of what it owns, which brings it back here.
        if !cx.owned::<Secret, _>().is_empty() {
            return Ok(Next::after(HOUR / 6));
        }
        let mut secret = Secret::default();
        secret.metadata.name = Some(format!("{}-badge", cx.key().name()));
        let stamp = format!("{badge} {:x}", cx.entropy().below(1 << 32));
        secret.string_data = Some([("badge".to_owned(), stamp)].into());
        cx.apply(secret).await?;
        cx.event(Told::normal("Badged", badge.as_str())).await;
        Ok(Next::after(HOUR / 6))
    }
}

/// Pods that crash when chance says so, and one that another has to go for.
async fn trouble(client: &Client) {
    let behavior = json!({"apiVersion": "simulation.homeostat.dev/v1alpha1", "kind": "Behavior",
        "metadata": {"name": "trouble"}, "spec": {"selector": {"images": ["busybox"], "percent": 60}, "container": {
            "pull": {"delay": "1s", "jitter": "3s"},
            "run": {"stages": [{"for": "5m", "jitter": "10m"}, {"exit": {"code": 1}}]}}}});
    create(client, "/apis/simulation.homeostat.dev/v1alpha1/behaviors", behavior).await;
    create(
        client,
        "/api/v1/namespaces/default/configmaps",
        json!({"metadata": {"name": "guest"}, "data": {"badge": "blue"}}),
    )
    .await;
    for (name, value) in [("low", 1), ("high", 1000)] {
        let class = json!({"metadata": {"name": name}, "value": value});
        create(client, "/apis/scheduling.k8s.io/v1/priorityclasses", class).await;
    }
    for (name, class) in [("a", "low"), ("b", "low"), ("c", "low"), ("vip", "high")] {
        let requests = json!({"requests": {"cpu": "3"}});
        let spec = json!({"priorityClassName": class,
            "containers": [{"name": "c", "image": "big", "resources": requests}]});
        create(client, "/api/v1/namespaces/default/pods", json!({"metadata": {"name": name}, "spec": spec}))
            .await;
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
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
        let mut options = ClusterOptions { audit, ..ClusterOptions::simulated(seed) };
        options.nodes(3, "cpu=4", "").unwrap();
        let cluster = Cluster::with(options).await.unwrap();
        let client = cluster.client();
        let stop = CancellationToken::new();
        let operator = Manager::new(cluster.client_as("badges", &["system:masters"]))
            .with_clock(cluster.clock().clone())
            .with_entropy(Entropy::seeded(seed))
            .with(Badges);
        let operator = tokio::spawn(operator.run(stop.clone()));
        // The definition of behaviors, and the account of pods.
        tokio::time::sleep(Duration::from_secs(2)).await;
        trouble(&client).await;
        workload(&client).await;
        tokio::time::sleep(HOUR / 2).await;
        let left = everything(&client).await;
        let mut life = std::mem::take(&mut *trail.0.lock().unwrap());
        life.extend(left);
        stop.cancel();
        operator.await.unwrap().unwrap();
        life
    })
    .unwrap()
}

/// The same life in another process, elsewhere: its clock's zone, its home and the place that it runs in are others.
struct Other {
    child: Child,
    file: PathBuf,
}

impl Other {
    fn start(test: &str, folder: &Path, zone: &str) -> Self {
        let home = folder.join(zone.replace('/', "-"));
        std::fs::create_dir(&home).unwrap();
        let file = home.join("life");
        let child = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact"])
            .env(ELSEWHERE, &file)
            .env("TZ", zone)
            .env("HOME", &home)
            .env("LANG", "ko_KR.UTF-8")
            .current_dir(&home)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, file }
    }

    fn life(mut self) -> Vec<String> {
        assert!(self.child.wait().unwrap().success());
        std::fs::read_to_string(self.file).unwrap().lines().map(str::to_owned).collect()
    }
}

#[track_caller]
fn same(first: &[String], second: &[String]) {
    for (a, b) in first.iter().zip(second) {
        assert_eq!(a, b);
    }
    assert_eq!(first.len(), second.len());
}

#[test]
fn a_seed_determines_every_byte() {
    let first = life(7);
    if let Some(file) = std::env::var_os(ELSEWHERE) {
        std::fs::write(file, first.join("\n")).unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let test = "a_seed_determines_every_byte";
    let others = ["Asia/Seoul", "America/Caracas"].map(|zone| Other::start(test, folder.path(), zone));
    same(&first, &life(7));
    let left = first.concat();
    assert!(left.contains("\"name\":\"tick-"), "jobs were made");
    assert!(
        !left.contains("\"namespace\":\"gone\",\"resourceVersion"),
        "a namespace went with what was in it"
    );
    for happened in ["\"Preempted\"", "\"BackOff\"", "\"Badged\"", "\"name\":\"guest-badge\""] {
        assert!(left.contains(happened), "{happened}");
    }
    assert_ne!(first, life(8), "another seed, other uids");
    for other in others {
        same(&first, &other.life());
    }
}
