//! `homeostat controllers`: controllers, scheduler and simulated nodes for an API server that has none, such as
//! envtest's.

use homeostat_cluster::{attach, leader};
use homeostat_sdk::process;

use crate::complaint::Complaint;
use crate::parts::Parts;
use crate::remote::Where;

/// Flags of `controllers`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  homeostat controllers --kubeconfig envtest.kubeconfig --nodes 3\n\n\
                  Each acts as a user of its own, so the kubeconfig's must be allowed to impersonate. They wait\n\
                  while another kube-controller-manager holds the lease kube-system/kube-controller-manager.")]
pub(crate) struct Args {
    #[command(flatten)]
    at: Where,
    /// Simulated nodes
    #[arg(long, default_value_t = 0, value_name = "N")]
    nodes: usize,
    #[command(flatten)]
    parts: Parts,
}

/// Runs until stopped.
pub(crate) async fn run(args: Args) -> Result<(), Complaint> {
    let options = args.parts.options(args.nodes)?;
    let stop = process::shutdown();
    let config = process::config(args.at.kubeconfig.as_deref(), args.at.context.as_deref())
        .await
        .map_err(|e| Complaint::new(e.to_string()))?;
    let client = process::connect(config.clone()).await.map_err(|e| Complaint::new(e.to_string()))?;
    println!(
        "{} controllers and {} nodes for {}; stop them with Ctrl-C.",
        options.controllers.len(),
        options.nodes,
        config.cluster_url
    );
    if let Some(holder) = leader(&client, &options.clock).await? {
        println!("{holder} leads there; they wait until it is gone.");
    }
    attach(&config, &options, stop).await.map_err(|e| Complaint::new(e.to_string()))
}
