//! `homeostat demo`: from the user's YAML to a converged RedisCluster, in one process and a second or two.
//!
//! It is the main job end to end and hides nothing: the same control plane as `up`, the same operator as
//! `redis-operator`, the same manifests as `examples/`. Invariant: what it prints was read through the API.

mod progress;
mod view;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use homeostat_cluster::{Cluster, ClusterOptions, kubeconfig};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::complaint::Complaint;
use crate::{signals, up};
use progress::Progress;
use view::View;

const CRD: &str = include_str!("../../../../examples/rediscluster-crd.yaml");
const CLUSTER: &str = include_str!("../../../../examples/rediscluster.yaml");
const NODES: usize = 3;

/// Flags of `demo`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  homeostat demo --exit --timeout 30s")]
pub(crate) struct Args {
    /// End once converged (exit code 0), or when the time is up (1, with the reason)
    #[arg(long)]
    exit: bool,
    /// How long convergence may take, such as 60s or 2m
    #[arg(long, default_value = "60s", value_parser = duration)]
    timeout: Duration,
    /// Where to write the kubeconfig [default: .homeostat/demo-PORT]
    #[arg(long, value_name = "PATH")]
    kubeconfig: Option<PathBuf>,
}

/// `90s`, `2m`, or a plain number of seconds.
fn duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    let parsed: jiff::SignedDuration = text.parse().map_err(|_| "write it as 60s or 2m".to_owned())?;
    Duration::try_from(parsed).map_err(|_| "it must not be negative".to_owned())
}

/// Runs the demo.
pub(crate) async fn run(args: Args) -> Result<(), Complaint> {
    let begin = Instant::now();
    let mut view = View::new(begin);
    let listener = up::listen(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0)).await?;
    let advertise = Some(listener.local_addr()?);
    let cluster =
        Cluster::with(ClusterOptions { nodes: NODES, advertise, ..ClusterOptions::default() }).await?;
    let endpoint = cluster.serve(listener).await?;
    let path =
        args.kubeconfig.clone().unwrap_or_else(|| format!(".homeostat/demo-{}", endpoint.port()).into());
    kubeconfig::write(&path, &endpoint.kubeconfig())?;
    view.stage(&format!("control plane ready at {}, {NODES} simulated nodes", endpoint.url()));

    let quit = CancellationToken::new();
    let signal = quit.clone();
    tokio::spawn(async move {
        signals::stop().await;
        signal.cancel();
    });
    let operator = CancellationToken::new();
    let result = tokio::select! {
        biased;
        () = quit.cancelled() => Ok(()),
        result = play(&args, &cluster, &operator, &mut view, &path) => result,
    };
    view.end();
    operator.cancel();
    cluster.stop(up::DRAIN).await;
    // The cluster is gone, and so is the file's use.
    let _ = std::fs::remove_file(&path);
    result
}

async fn play(
    args: &Args,
    cluster: &Cluster,
    stop: &CancellationToken,
    view: &mut View,
    path: &std::path::Path,
) -> Result<(), Complaint> {
    let deadline = Instant::now() + args.timeout;
    let client = cluster.client();
    register(&client).await?;
    view.stage("registered redisclusters.cache.example.com (examples/rediscluster-crd.yaml)");
    let mut operator = tokio::spawn(redis_operator::run(client.clone(), stop.clone().cancelled_owned()));
    view.stage("Redis operator started");
    let mut progress = Progress::watch(&client).await?;
    let name = apply(&client).await?;
    view.stage(&format!("applied rediscluster {name} (examples/rediscluster.yaml)"));

    let mut converged = false;
    loop {
        let changes = tokio::select! {
            biased;
            ended = &mut operator => return Err(operator_ended(ended)),
            () = tokio::time::sleep_until(deadline), if !converged => {
                let why = format!("not converged after {:?}: {}", args.timeout, progress.missing(&name));
                if args.exit {
                    return Err(Complaint::new(why));
                }
                view.stage(&why);
                converged = true;
                continue;
            }
            changes = progress.next() => changes?,
        };
        for change in &changes {
            view.stage(change);
        }
        view.table(&progress.rows());
        if !converged && progress.converged(&name) {
            converged = true;
            view.stage(&format!("converged: status.readyReplicas of {name} is what spec.replicas says"));
            if args.exit {
                return Ok(());
            }
            view.say(&farewell(path));
        }
    }
}

fn operator_ended<E: std::fmt::Display, J: std::fmt::Display>(ended: Result<Result<(), E>, J>) -> Complaint {
    Complaint::new(match ended {
        Ok(Ok(())) => "the Redis operator ended".to_owned(),
        Ok(Err(e)) => format!("the Redis operator failed: {e}"),
        Err(e) => format!("the Redis operator broke off: {e}"),
    })
}

/// Registers the user's CRD and waits until it is served.
async fn register(client: &Client) -> Result<(), Complaint> {
    let crd: CustomResourceDefinition = serde_saphyr::from_str(CRD)?;
    let name = crd.metadata.name.clone().unwrap_or_default();
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    crds.patch(&name, &PatchParams::apply("homeostat-demo"), &Patch::Apply(&crd)).await?;
    await_condition(crds, &name, conditions::is_crd_established()).await?;
    Ok(())
}

/// Applies the user's RedisCluster as it stands; returns its name.
async fn apply(client: &Client) -> Result<String, Complaint> {
    let object: DynamicObject = serde_saphyr::from_str(CLUSTER)?;
    let name = object.metadata.name.clone().unwrap_or_default();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("cache.example.com", "v1", "RedisCluster"));
    let api: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &kind);
    api.patch(&name, &PatchParams::apply("homeostat-demo"), &Patch::Apply(&object)).await?;
    Ok(name)
}

fn farewell(path: &std::path::Path) -> String {
    format!(
        "\nIt stays until Ctrl-C. From another terminal:\n\n  export KUBECONFIG={}\n  \
         kubectl get rediscluster,statefulset,pods -o wide\n  \
         kubectl patch rediscluster sessions --type=merge -p '{{\"spec\":{{\"replicas\":5}}}}'\n  \
         kubectl delete statefulset sessions        # it comes back\n",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_read_as_people_write_them() {
        let cases = [("60s", 60), ("2m", 120), ("5", 5), ("1m30s", 90)];
        for (text, seconds) in cases {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert!(duration("soon").is_err());
        assert!(duration("-5s").is_err());
    }
}
