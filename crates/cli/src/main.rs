//! The `homeostat` binary: a control plane to try operators on, and the generator that operators come from.
//!
//! Each verb is a module of its own that parses its flags and does its work; an error is one line that says what to
//! do next.

mod complaint;
mod completion;
mod config;
mod controllers;
mod create;
mod delete;
mod demo;
mod deploy;
mod files;
mod init;
mod install;
mod manifests;
mod operator;
mod package;
mod parts;
mod project;
#[cfg(test)]
mod reference;
mod remote;
mod run;
mod signals;
mod up;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use complaint::Complaint;

/// A control plane lives on many small objects: with this allocator it takes a quarter less of the processor.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The workbench for Kubernetes operators in Rust: write an operator, run it without a cluster, prove that it
/// converges.
#[derive(Parser)]
#[command(name = "homeostat", version)]
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
    /// Make a project for an operator
    Init(init::Args),
    /// Add to a project
    Create(create::Args),
    /// Take out of a project
    Delete(delete::Args),
    /// Write config/ from the project's Rust types: CRDs, RBAC, Deployment, webhooks
    Manifests(manifests::Args),
    /// Install the project's CRDs into the cluster
    Install(install::Install),
    /// Remove the project's CRDs from the cluster
    Uninstall(install::Uninstall),
    /// Compile the project's program and run it, again on every change
    Run(run::Args),
    /// Package the project for kubectl, kustomize and Helm
    Package(package::Args),
    /// Deploy the project's program to the cluster
    Deploy(deploy::Deploy),
    /// Take the project's program out of the cluster
    Undeploy(deploy::Undeploy),
    /// Run controllers, scheduler and simulated nodes for an API server that has none
    Controllers(controllers::Args),
    /// Run one of the operators that come with homeostat against a cluster
    Operator(operator::Args),
    /// Print what a shell needs to complete all this
    Completion(completion::Args),
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
    let paced = match &cli.verb {
        Verb::Up(args) => args.runtime(),
        _ => None,
    };
    let plain = || tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = match paced.unwrap_or_else(plain) {
        Ok(runtime) => runtime,
        Err(e) => return Complaint::new(format!("cannot start: {e}")).report(),
    };
    let result = runtime.block_on(async {
        match cli.verb {
            Verb::Up(args) => up::run(args).await,
            Verb::Demo(args) => demo::run(args).await,
            Verb::Init(args) => init::run(&args),
            Verb::Create(args) => create::run(&args),
            Verb::Delete(args) => delete::run(&args),
            Verb::Manifests(args) => manifests::run(&args),
            Verb::Install(args) => install::install(&args).await,
            Verb::Uninstall(args) => install::uninstall(&args).await,
            Verb::Run(args) => run::run(args).await,
            Verb::Package(args) => package::run(&args),
            Verb::Deploy(args) => deploy::deploy(&args).await,
            Verb::Undeploy(args) => deploy::undeploy(&args).await,
            Verb::Controllers(args) => controllers::run(args).await,
            Verb::Operator(args) => operator::run(args).await,
            Verb::Completion(args) => {
                completion::run(&args);
                Ok(())
            }
        }
    });
    // Whatever still runs after a drain is not worth waiting for.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(complaint) => complaint.report(),
    }
}

/// Logs go to stderr; `RUST_LOG` widens them. What kube can't do is said once, by us.
fn init_logs() {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new("error,kube_client=off,kube_runtime=off"));
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
}
