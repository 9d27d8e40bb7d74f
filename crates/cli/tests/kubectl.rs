//! Real kubectl, the oldest and the newest at hand, against a cluster with the Redis operator.
//!
//! The transcripts in `tests/kubectl/*.md` are what a person types and sees; `[..]` stands for what differs from run to
//! run. Each transcript has a namespace of its own, since they run side by side.

#[path = "shared/kubectls.rs"]
mod kubectls;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use homeostat_cluster::{Cluster, ClusterOptions, kubeconfig};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Runs all transcripts with one kubectl, on a cluster of its own.
fn transcripts(kubectl: Option<PathBuf>) {
    let Some(kubectl) = kubectls::or_skip(kubectl) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("kubeconfig");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let stop = CancellationToken::new();
    let cluster = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let advertise = listener.local_addr().ok();
        let options = ClusterOptions { nodes: 2, advertise, ..ClusterOptions::default() };
        let cluster = Cluster::with(options).await.expect("a cluster");
        let endpoint = cluster.serve(listener).await.expect("an endpoint");
        kubeconfig::write(&config, &endpoint.kubeconfig()).expect("a kubeconfig");
        tokio::spawn(redis_operator::run(cluster.client(), stop.clone().cancelled_owned()));
        cluster
    });
    // Those in `alone` do to the nodes what others wouldn't survive.
    let alone = ["tests/kubectl/alone/nodes.md", "tests/kubectl/alone/disruptions.md"];
    for side_by_side in std::iter::once("tests/kubectl/*.md").chain(alone) {
        let cases = trycmd::TestCases::new();
        cases.register_bin("kubectl", kubectl.as_path());
        cases.env("KUBECONFIG", config.to_string_lossy().into_owned());
        // kubectl caches discovery here; each cluster is another one.
        cases.env("HOME", folder.path().to_string_lossy().into_owned());
        cases.timeout(Duration::from_secs(60));
        cases.case(side_by_side);
        cases.run();
    }
    watches(&kubectl, &config);
    stop.cancel();
    runtime.block_on(cluster.stop(Duration::from_secs(4)));
}

/// `kubectl get -w` says what changes, as it changes.
fn watches(kubectl: &Path, config: &Path) {
    let command = |args: &[&str]| {
        let mut command = Command::new(kubectl);
        command.args(args).env("KUBECONFIG", config).env("HOME", config.parent().expect("a folder"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        command
    };
    let watch = ["get", "configmap", "seen", "-w", "--no-headers", "-o", "custom-columns=COLOR:.data.color"];
    let run = |args: &[&str]| assert!(command(args).status().expect("kubectl runs").success(), "{args:?}");
    run(&["create", "configmap", "seen", "--from-literal=color=blue"]);
    let mut child = command(&watch).spawn().expect("kubectl runs");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut next = || lines.next().expect("another line").expect("text");
    assert_eq!(next(), "blue");
    for color in ["red", "green"] {
        run(&["patch", "configmap", "seen", "-p", &format!(r#"{{"data":{{"color":"{color}"}}}}"#)]);
        assert_eq!(next(), color);
    }
    run(&["delete", "configmap", "seen"]);
    assert_eq!(next(), "green", "the deleted object as it was last");
    child.kill().expect("it still watches");
    child.wait().expect("it ends");
}

#[test]
fn the_oldest_kubectl() {
    transcripts(kubectls::kubectls().into_iter().next());
}

#[test]
fn the_newest_kubectl() {
    transcripts(kubectls::kubectls().into_iter().last());
}
