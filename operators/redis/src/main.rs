//! The operator as a program: in a cluster with its service account, elsewhere with a kubeconfig.

use std::process::ExitCode;

use clap::Parser;
use homeostat::process;
use tracing_subscriber::EnvFilter;

/// Keeps Redis running as RedisCluster objects say.
///
/// In a pod it uses the pod's service account; elsewhere the kubeconfig that $KUBECONFIG or --kubeconfig names, or
/// ~/.kube/config. It ends on SIGTERM or Ctrl-C when what it is doing is done.
#[derive(Parser)]
#[command(version, after_help = "Example:\n  redis-operator --kubeconfig .homeostat/kubeconfig")]
struct Args {
    /// The kubeconfig to use
    #[arg(long, value_name = "PATH")]
    kubeconfig: Option<std::path::PathBuf>,

    /// The kubeconfig's context to use, rather than its current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// What to log: a level (error, warn, info, debug, trace), or directives as in `info,homeostat_sdk=debug`
    #[arg(long, value_name = "FILTER", env = "RUST_LOG", default_value = DEFAULT_LOG)]
    log: String,
}

/// The SDK reports what goes wrong with watches and requests; kube would say it a second time.
const DEFAULT_LOG: &str = "info,kube_client=off,kube_runtime=off";

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let filter = match EnvFilter::try_new(&args.log) {
        Ok(filter) => filter,
        Err(error) => return fail(format!("--log {}: {error}", args.log)),
    };
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let client = match process::client(args.kubeconfig.as_deref(), args.context.as_deref()).await {
        Ok(client) => client,
        Err(error) => return fail(error),
    };
    match redis_operator::run(client, process::shutdown().cancelled_owned()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(error),
    }
}

fn fail(error: impl std::fmt::Display) -> ExitCode {
    eprintln!("redis-operator: {error}");
    ExitCode::FAILURE
}
