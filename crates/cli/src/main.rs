//! The `homeostat` binary: `up`, `demo`, `operator`.
//!
//! Each verb is a module of its own that parses its flags and does its work; an error is one line that says what to
//! do next.

mod complaint;
mod demo;
mod operator;
mod signals;
mod up;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use complaint::Complaint;

/// The workbench for Kubernetes operators in Rust: write an operator, run it without a cluster, prove that it
/// converges.
#[derive(Parser)]
#[command(name = "homeostat", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run a whole control plane on this machine
    Up(up::Args),
    /// Watch an operator converge, from YAML to running pods
    Demo(demo::Args),
    /// Run one of the operators that come with homeostat against a cluster
    Operator(operator::Args),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(help) if help.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = help.print();
            return ExitCode::from(2);
        }
        Err(e) if e.use_stderr() => return Complaint::usage(&e).report(),
        Err(help) => {
            // Help or the version: not an error. A closed pipe is none of our business.
            let _ = help.print();
            return ExitCode::SUCCESS;
        }
    };
    init_logs();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => return Complaint::new(format!("cannot start: {e}")).report(),
    };
    let result = runtime.block_on(async {
        match cli.verb {
            Verb::Up(args) => up::run(args).await,
            Verb::Demo(args) => demo::run(args).await,
            Verb::Operator(args) => operator::run(args).await,
        }
    });
    // Whatever still runs after a drain is not worth waiting for.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(complaint) => complaint.report(),
    }
}

/// Logs go to stderr; `RUST_LOG` widens them.
fn init_logs() {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("error"));
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
}
