//! Real kubectl, the oldest and the newest at hand, against a cluster with the Redis operator.
//!
//! The transcripts in `tests/kubectl/*.md` are what a person types and sees; `[..]` stands for what differs from run to
//! run. Each transcript has a namespace of its own, since they run side by side.
//! `cargo xtask test` provides the programs (`HOMEOSTAT_KUBECTL`); without one the test says so and, in CI, fails.

use std::path::PathBuf;
use std::time::Duration;

use homeostat_cluster::{Cluster, ClusterOptions, kubeconfig};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The kubectls to test with, oldest first.
fn kubectls() -> Vec<PathBuf> {
    let listed = std::env::var_os("HOMEOSTAT_KUBECTL").unwrap_or_default();
    let mut found: Vec<PathBuf> =
        std::env::split_paths(&listed).filter(|p| !p.as_os_str().is_empty()).collect();
    if found.is_empty() {
        let path = std::env::var_os("PATH").unwrap_or_default();
        found.extend(std::env::split_paths(&path).map(|p| p.join("kubectl")).find(|p| p.is_file()));
    }
    found
}

/// Runs all transcripts with one kubectl, on a cluster of its own.
fn transcripts(kubectl: Option<PathBuf>) {
    let Some(kubectl) = kubectl else {
        assert!(std::env::var("CI").is_err(), "there is no kubectl; cargo xtask test installs it");
        eprintln!("!! SKIPPED: there is no kubectl on this machine");
        return;
    };
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
    let cases = trycmd::TestCases::new();
    cases.register_bin("kubectl", kubectl.as_path());
    cases.env("KUBECONFIG", config.to_string_lossy().into_owned());
    // kubectl caches discovery here; each cluster is another one.
    cases.env("HOME", folder.path().to_string_lossy().into_owned());
    cases.timeout(Duration::from_secs(60));
    cases.case("tests/kubectl/*.md");
    cases.run();
    stop.cancel();
    runtime.block_on(cluster.stop(Duration::from_secs(4)));
}

#[test]
fn the_oldest_kubectl() {
    transcripts(kubectls().into_iter().next());
}

#[test]
fn the_newest_kubectl() {
    transcripts(kubectls().into_iter().last());
}
