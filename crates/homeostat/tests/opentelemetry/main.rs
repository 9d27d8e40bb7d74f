//! Traces of a whole program: it is started as in a pod, with the environment that names a collector, and stopped with
//! SIGTERM.
//!
//! The variables concern a whole process, so this test starts itself again as the operator's program; that is why it
//! brings its own `main`.

mod collector;
mod otlp;

use std::process::{ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use homeostat::{Context, Error, Next, Operator, Program, Result};
use homeostat_cluster::{Cluster, ClusterOptions};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::PostParams;
use kube::{Api, Client};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::collector::Collector;
use crate::otlp::Span;

/// Says that this process is to be the operator's program.
const BE_THE_PROGRAM: &str = "BE_THE_PROGRAM";

const PATIENCE: Duration = Duration::from_secs(60);

/// A Secret for each ConfigMap, after which it fails where the ConfigMap's name says so.
struct Copies;

impl Operator for Copies {
    type Resource = ConfigMap;
    type Owns = (Secret,);
    type Reads = ();

    fn name() -> &'static str {
        "copies"
    }

    async fn reconcile(&self, map: &ConfigMap, cx: &Context<Self>) -> Result<Next> {
        let mut secret = Secret::default();
        secret.metadata.name = map.metadata.name.clone();
        cx.apply(secret).await?;
        if cx.name().starts_with("broken") {
            return Err(Error::msg("no way").terminal());
        }
        Ok(Next::done())
    }
}

fn main() -> ExitCode {
    if std::env::var_os(BE_THE_PROGRAM).is_some() {
        return Program::new("traced").version("1.2.3").operator(Copies).main();
    }
    // As runners of tests ask.
    if std::env::args().any(|a| a == "--list") {
        if !std::env::args().any(|a| a == "--ignored") {
            println!("traces: test");
        }
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let world = World::start().await;
        reconciles_are_exported_when_the_program_stops(&world).await;
        without_the_variables_nothing_is_said(&world).await;
        a_collector_that_is_away_is_one_warning(&world).await;
        a_collector_that_refuses_is_one_warning(&world).await;
        a_wrong_variable_is_one_warning(&world).await;
        world.cluster.stop(Duration::from_secs(4)).await;
    });
    ExitCode::SUCCESS
}

async fn reconciles_are_exported_when_the_program_stops(world: &World) {
    let collector = Collector::start().await;
    let url = collector.url();
    let run = world
        .run(
            &["fine", "broken"],
            &[
                ("OTEL_EXPORTER_OTLP_ENDPOINT", &url),
                ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=blue"),
                // What arrives is what was flushed in the end.
                ("OTEL_BSP_SCHEDULE_DELAY", "3600000"),
                // Logs and traces are chosen apart.
                ("RUST_LOG", "error"),
                ("POD_NAME", "traced-0"),
                ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test"),
            ],
        )
        .await;
    assert!(run.status.success(), "{}", run.said);

    let exports = collector.received();
    assert!(!exports.is_empty(), "nothing was exported: {}", run.said);
    let mut spans = Vec::new();
    for export in exports {
        assert_eq!((export.path.as_str(), export.kind.as_str()), ("/v1/traces", "application/x-protobuf"));
        assert_eq!(export.tenant, "blue");
        for (key, expect) in [
            ("service.name", "traced"),
            ("service.version", "1.2.3"),
            ("k8s.pod.name", "traced-0"),
            ("deployment.environment.name", "test"),
        ] {
            let resource = otlp::resource(&export.body);
            assert_eq!(resource.get(key).map(String::as_str), Some(expect), "{resource:?}");
        }
        spans.extend(otlp::spans(&export.body));
    }
    let of = |name: &str| -> &Span {
        let mut found =
            spans.iter().filter(|s| s.name == "reconcile" && s.is("key", &format!("default/{name}")));
        found.next().unwrap_or_else(|| panic!("no reconcile of {name}: {spans:#?}"))
    };
    let fine = of("fine");
    for (key, expect) in [
        ("operator", "copies"),
        ("k8s.object.kind", "ConfigMap"),
        ("k8s.namespace.name", "default"),
        ("k8s.object.name", "fine"),
        ("result", "success"),
    ] {
        assert!(fine.is(key, expect), "{key} of {fine:#?}");
    }
    assert_eq!((fine.status, fine.parent.is_empty()), (0, true), "{fine:#?}");

    let requests: Vec<&Span> = spans.iter().filter(|s| s.parent == fine.id).collect();
    let [request] = requests[..] else { panic!("requests of {fine:#?}: {requests:#?}") };
    assert!(request.name == "patch" && request.is("http.method", "PATCH"), "{request:#?}");
    assert!(spans.iter().all(|s| s.name == "reconcile" || !s.parent.is_empty()), "{spans:#?}");

    let broken = of("broken");
    assert!(broken.is("result", "error") && broken.is("error.type", "_OTHER"), "{broken:#?}");
    assert_eq!((broken.status, broken.description.as_str()), (2, "no way"));
}

async fn without_the_variables_nothing_is_said(world: &World) {
    let run = world.run(&["silent"], &[]).await;
    assert!(run.status.success() && !run.said.contains("traces"), "{}", run.said);
}

async fn a_collector_that_is_away_is_one_warning(world: &World) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let run = world
        .run(&["away"], &[("OTEL_EXPORTER_OTLP_ENDPOINT", &url), ("OTEL_BSP_SCHEDULE_DELAY", "1")])
        .await;
    run.warned(&format!("traces can't be exported to {url}/v1/traces, and get lost"), "refused");
}

/// The API server knows no traces, and it speaks TLS.
async fn a_collector_that_refuses_is_one_warning(world: &World) {
    let url = &world.url;
    let authority = world.folder.path().join("ca.pem").to_string_lossy().into_owned();
    let run = world
        .run(
            &["refused"],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", url), ("OTEL_EXPORTER_OTLP_CERTIFICATE", &authority)],
        )
        .await;
    run.warned(&format!("traces can't be exported to {url}/v1/traces, and get lost"), "it answers 403");
}

async fn a_wrong_variable_is_one_warning(world: &World) {
    let run = world.run(&["wrong"], &[("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318")]).await;
    run.warned("traces are not exported", "OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4318: write a URL");
}

/// A served control plane without controllers.
struct World {
    cluster: Cluster,
    client: Client,
    url: String,
    folder: tempfile::TempDir,
}

/// How the program went.
struct Run {
    status: ExitStatus,
    said: String,
}

impl Run {
    /// It worked, and warned once.
    #[track_caller]
    fn warned(&self, of: &str, why: &str) {
        assert!(self.status.success(), "{}", self.said);
        let warnings: Vec<&str> = self.said.lines().filter(|l| l.contains("traces")).collect();
        let [warning] = warnings[..] else { panic!("warnings: {}", self.said) };
        assert!(
            warning.contains(" WARN ") && warning.contains(of) && warning.contains(why),
            "{of}, {why}: {warning}"
        );
    }
}

impl World {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let advertise = listener.local_addr().ok();
        let options =
            ClusterOptions { nodes: 0, controllers: Default::default(), advertise, ..Default::default() };
        let cluster = Cluster::with(options).await.unwrap();
        let endpoint = cluster.serve(listener).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("kubeconfig"), endpoint.kubeconfig()).unwrap();
        std::fs::write(folder.path().join("ca.pem"), endpoint.authority().pem()).unwrap();
        Self { client: cluster.client(), url: endpoint.url(), cluster, folder }
    }

    /// Runs the program until it has reconciled ConfigMaps of these names, and stops it.
    async fn run(&self, names: &[&str], variables: &[(&str, &str)]) -> Run {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .arg("--kubeconfig")
            .arg(self.folder.path().join("kubeconfig"))
            .env_clear()
            .env(BE_THE_PROGRAM, "1")
            .envs(variables.iter().copied())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut program = command.spawn().unwrap();
        let mut stderr = program.stderr.take().unwrap();
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), "default");
        for name in names {
            let mut map = ConfigMap::default();
            map.metadata.name = Some((*name).to_owned());
            maps.create(&PostParams::default(), &map).await.unwrap();
        }
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), "default");
        for name in names {
            until(name, async || secrets.get_opt(name).await.unwrap().is_some()).await;
        }
        let pid = Pid::from_raw(program.id().unwrap().try_into().unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        let mut said = String::new();
        let ended = async {
            stderr.read_to_string(&mut said).await.unwrap();
            program.wait().await.unwrap()
        };
        let status = tokio::time::timeout(PATIENCE, ended).await.expect("the program stops");
        Run { status, said }
    }
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let met = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, met).await.unwrap_or_else(|_| panic!("never: {what}"));
}
