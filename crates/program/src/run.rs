//! From the command line to a running manager, or to manifests on standard output.
//!
//! Errors are one line on standard error that says what to do, and exit code 1; 2 for a mistake in the flags.

use std::fmt::Display;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use homeostat_sdk::webhook::{Reach, WebhookOptions};
use homeostat_sdk::{LeaderElection, Manager, process};
use tracing_subscriber::EnvFilter;

use crate::Program;
use crate::flags::{Flags, Run, Verb};
use crate::logs::{Logs, Speaker};

pub(crate) fn main(program: Program) -> ExitCode {
    let name = program.parts().name().to_owned();
    let flags = match parse(&program) {
        Ok(flags) => flags,
        Err(error) => error.exit(),
    };
    match flags.verb {
        Some(Verb::Manifests(manifests)) => print(&program, manifests.options(&name)),
        None => run(program, flags.run),
    }
}

fn parse(program: &Program) -> Result<Flags, clap::Error> {
    // Both live as long as the process does.
    let name: &'static str = Box::leak(program.parts().name().to_owned().into_boxed_str());
    let mut command = Flags::command().name(name).bin_name(name);
    if !program.version.is_empty() {
        command = command.version(program.version);
    }
    Flags::from_arg_matches(&command.try_get_matches()?)
}

/// The manifests, as JSON.
fn print(program: &Program, options: homeostat_sdk::manifests::Options) -> ExitCode {
    let name = program.parts().name();
    let files = match program.parts().files(&options) {
        Ok(files) => files,
        Err(faults) => return fail(name, faults.join("; ")),
    };
    match serde_json::to_string(&files) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => fail(name, error),
    }
}

fn run(program: Program, flags: Run) -> ExitCode {
    let name = program.parts().name().to_owned();
    let filter = match EnvFilter::try_new(&flags.log) {
        Ok(filter) => filter,
        Err(error) => return fail(&name, format!("--log {}: {error}", flags.log)),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&name, format!("cannot start: {error}")),
    };
    let logs = Logs::start(filter, &Speaker { name: &name, version: program.version }, runtime.handle());
    let result = runtime.block_on(async {
        let client = process::client(flags.kubeconfig.as_deref(), flags.context.as_deref())
            .await
            .map_err(|e| e.to_string())?;
        let mut manager = manager(&name, client, flags);
        program.add_to(&mut manager);
        manager.run(process::shutdown()).await.map_err(|e| e.to_string())
    });
    logs.stop();
    // Whatever still runs after a stop in order is not worth waiting for.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&name, error),
    }
}

/// An empty manager, as the flags want it.
fn manager(name: &str, client: kube::Client, flags: Run) -> Manager {
    let mut manager = Manager::new(client).with_name(name);
    if let Some(namespace) = flags.namespace {
        manager = manager.in_namespace(namespace);
    }
    if flags.leader_elect {
        manager = manager.with_leader_election(LeaderElection::new(name));
    }
    if let Some(address) = flags.health_address {
        manager = manager.with_probes(address);
    }
    if let Some(address) = flags.metrics_address {
        manager = manager.with_metrics(address);
    }
    if flags.webhook_address.is_some() || flags.webhook_url.is_some() {
        manager = manager.with_webhook_options(WebhookOptions {
            listen: flags.webhook_address,
            reach: flags.webhook_url.map(Reach::Url),
            ..WebhookOptions::default()
        });
    }
    manager
}

fn fail(name: &str, error: impl Display) -> ExitCode {
    eprintln!("{name}: {error}");
    ExitCode::FAILURE
}
