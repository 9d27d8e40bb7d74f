//! The project's own chores: `cargo xtask test | tidy | fidelity | data`.
//!
//! It needs only Rust and a C compiler. What a chore needs beyond that it says; with `CI=true` it installs it.

mod apply;
mod chores;
mod crds;
mod data;
mod fidelity;
mod kubectl;
mod run;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores of the Homeostat project", disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Every test: fmt, clippy, tidy, unit and scenario tests, doctests, replays, kubectl
    Test(chores::TestArgs),
    /// Check the house rules: who imports whom, module heads, file sizes
    Tidy,
    /// Start a server and replay recorded conversations against it
    Fidelity(chores::FidelityArgs),
    /// Regenerate the schemas of the built-in types
    Data,
    /// Regenerate the apply configurations from the schemas
    ApplyTypes,
}

fn main() -> ExitCode {
    let result = match Cli::parse().chore {
        Chore::Test(args) => chores::test(&args),
        Chore::Tidy => tidy::check().map(|n| println!("tidy: {n} files and all imports in order")),
        Chore::Fidelity(args) => chores::fidelity(&args),
        Chore::Data => chores::data(),
        Chore::ApplyTypes => apply::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}
