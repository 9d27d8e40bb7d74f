//! `homeostat create`: adds to a project.

mod api;
mod webhook;

use crate::complaint::Complaint;

/// Flags of `create`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  homeostat create api --group cache --version v1 --kind RedisCluster")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Add a kind, or a version of one: type, reconciler, test, sample
    Api(api::Args),
    /// Add webhooks to a kind: defaults, rules, conversion between versions
    Webhook(webhook::Args),
}

/// Which version of which kind is meant.
#[derive(clap::Args)]
pub(crate) struct Which {
    /// The API group, without the domain; '' is the domain itself
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: String,
    /// The version, such as v1 or v1alpha1
    #[arg(long, value_name = "VERSION")]
    pub(crate) version: String,
    /// The kind, in CamelCase
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: String,
}

/// What to do about files that can't be merged.
#[derive(clap::Args)]
pub(crate) struct Merge {
    /// Write conflicts with your edits into the files, marked as git marks them, rather than refuse
    #[arg(long)]
    pub(crate) mark_conflicts: bool,
    /// The project's folder
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    pub(crate) path: std::path::PathBuf,
}

/// What to do when a plan conflicts with edits.
pub(crate) const HINT: &str =
    "make room for it and try again, or have both versions written into the file with --mark-conflicts";

/// Adds what is asked for.
pub(crate) fn run(args: &Args) -> Result<(), Complaint> {
    match &args.what {
        What::Api(args) => api::run(args),
        What::Webhook(args) => webhook::run(args),
    }
}
