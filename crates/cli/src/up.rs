//! `homeostat up`: the control plane alone, until Ctrl-C or SIGTERM.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use homeostat_cluster::audit::{Level, Log, Policy};
use homeostat_cluster::{Cluster, Pace, kubeconfig};
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::complaint::Complaint;
use crate::files::{read, wrong};
use crate::parts::Parts;
use crate::signals;

/// How long a drain may take.
pub(crate) const DRAIN: Duration = Duration::from_secs(4);

/// Flags of `up`.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  homeostat up --nodes 3\n  export KUBECONFIG=.homeostat/kubeconfig && kubectl get nodes"
)]
pub(crate) struct Args {
    /// Port to serve on; 0 takes a free one
    #[arg(long, default_value_t = 6443)]
    port: u16,
    /// Address to serve on
    #[arg(long, default_value = "127.0.0.1")]
    bind: IpAddr,
    /// Simulated nodes
    #[arg(long, default_value_t = 1, value_name = "N")]
    nodes: usize,
    #[command(flatten)]
    parts: Parts,
    /// Where to write the kubeconfig; a file that isn't ours is never overwritten
    #[arg(long, default_value = ".homeostat/kubeconfig", value_name = "PATH")]
    kubeconfig: PathBuf,
    /// More users: a CSV file of token,user,uid,"group1,group2"
    #[arg(long, value_name = "FILE")]
    token_auth_file: Option<PathBuf>,
    /// Admission plugins to leave out, such as ServiceAccount
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    disable_admission_plugins: Vec<String>,
    /// Write an audit log: a line of JSON (an audit.k8s.io/v1 Event) for each stage of each request; '-' is the standard
    /// output. Without a policy file everything is logged at level Metadata
    #[arg(long, alias = "audit-log-path", value_name = "FILE")]
    audit_log: Option<PathBuf>,
    /// What the audit log tells of which request: an audit.k8s.io/v1 Policy
    #[arg(long, value_name = "FILE", requires = "audit_log")]
    audit_policy_file: Option<PathBuf>,
    /// Let the cluster's time pass faster than the machine's, up to 3600x: its clock, timers, leases and schedules
    #[arg(long, value_name = "PACE")]
    time: Option<Pace>,
    /// Range of the Services' cluster addresses
    #[arg(long, default_value = "10.96.0.0/16", value_name = "CIDR")]
    service_cluster_ip_range: String,
}

impl Args {
    /// What it is to run on: a runtime whose time passes at the pace asked for.
    pub(crate) fn runtime(&self) -> Option<std::io::Result<tokio::runtime::Runtime>> {
        self.time.map(Pace::runtime)
    }
}

/// Runs until stopped.
pub(crate) async fn run(args: Args) -> Result<(), Complaint> {
    let begin = Instant::now();
    kubeconfig::check(&args.kubeconfig)?;
    let mut options = args.parts.options(args.nodes)?;
    options.disabled_admission(&args.disable_admission_plugins)?;
    options.service_range(&args.service_cluster_ip_range)?;
    if let Some(file) = &args.token_auth_file {
        let csv = read(file, "a CSV file of token,user,uid,\"groups\"")?;
        options.tokens(&csv).map_err(|e| wrong(file, e))?;
    }
    if let Some(pace) = args.time {
        options.paced(pace);
    }
    let audit = audit_log(&args)?;
    options.audit = audit.clone().map(|log| log as _);
    let listener = listen(SocketAddr::new(args.bind, args.port)).await?;
    options.advertise = Some(listener.local_addr()?);
    let cluster = Cluster::with(options).await?;
    let endpoint = cluster.serve(listener).await?;
    kubeconfig::write(&args.kubeconfig, &endpoint.kubeconfig())?;
    println!("homeostat is up after {} ms: {}", begin.elapsed().as_millis(), endpoint.url());
    println!("  export KUBECONFIG={}", args.kubeconfig.display());
    println!("  kubectl get nodes");
    println!("Stop it with Ctrl-C; its state is in memory and goes with it.");
    signals::stop().await;
    println!("Stopping …");
    cluster.stop(DRAIN).await;
    match audit {
        Some(log) => close(log).await,
        None => Ok(()),
    }
}

/// The audit log, if one is asked for.
fn audit_log(args: &Args) -> Result<Option<Arc<Log>>, Complaint> {
    let Some(path) = &args.audit_log else { return Ok(None) };
    let policy = match &args.audit_policy_file {
        None => Policy::all(Level::Metadata),
        Some(file) => {
            let text = read(file, "an audit.k8s.io/v1 Policy")?;
            Policy::parse(&text).map_err(|e| wrong(file, e))?
        }
    };
    let log = Log::open(path, policy).map_err(|e| {
        Complaint::new(format!("cannot write {}: {e}; name another file with --audit-log", path.display()))
    })?;
    Ok(Some(Arc::new(log)))
}

/// Writes out what the audit log still holds, and complains of what it lost.
async fn close(log: Arc<Log>) -> Result<(), Complaint> {
    let closed = tokio::task::spawn_blocking(move || log.close(DRAIN)).await?;
    let lost = closed.dropped + closed.failed;
    match (lost, closed.flushed) {
        (0, true) => Ok(()),
        (0, false) => {
            Err(Complaint::new("the audit log could not be written out in time; its end is missing"))
        }
        _ => Err(Complaint::new(format!(
            "the audit log lacks {lost} events ({} came too fast, {} could not be written); log less with \
             --audit-policy-file, or to a faster disk",
            closed.dropped, closed.failed
        ))),
    }
}

/// Opens a port, or says why it can't and what to do.
pub(crate) async fn listen(address: SocketAddr) -> Result<TcpListener, Complaint> {
    TcpListener::bind(address).await.map_err(|e| match e.kind() {
        std::io::ErrorKind::AddrInUse => Complaint::new(format!(
            "{address} is in use; choose another port with --port N (0 takes a free one)"
        )),
        _ => Complaint::new(format!("cannot serve on {address}: {e}; choose another with --bind and --port")),
    })
}
