//! `homeostat operator NAME`: runs an operator that comes with homeostat against any cluster.

use crate::complaint::Complaint;
use crate::signals;

/// Flags of `operator`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    operator: Operator,
}

#[derive(clap::Subcommand)]
enum Operator {
    /// RedisCluster (cache.example.com/v1): a StatefulSet and a Service for each
    #[command(after_help = "Example:\n  homeostat operator redis")]
    Redis,
}

/// Runs until stopped. The cluster is the kubeconfig's (`KUBECONFIG`, `~/.kube/config`) or the one it runs in.
pub(crate) async fn run(args: Args) -> Result<(), Complaint> {
    let client = kube::Client::try_default().await.map_err(|e| {
        Complaint::new(format!("no cluster to talk to ({e}); set KUBECONFIG, or run `homeostat up`"))
    })?;
    match args.operator {
        Operator::Redis => redis_operator::run(client, signals::stop()).await?,
    }
    Ok(())
}
