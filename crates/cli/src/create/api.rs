//! `homeostat create api`: a kind, or another version of one.

use crate::complaint::Complaint;
use crate::create::{HINT, Merge, Which};
use crate::project::plan::{Plan, report};
use crate::project::{Api, Project, Webhooks, names};

/// Flags of `create api`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  homeostat create api --group cache --version v1 --kind RedisCluster
  homeostat create api --group cache --version v2 --kind RedisCluster    # another version of it")]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// The plural [default: the kind's, as English has it]
    #[arg(long, value_name = "PLURAL")]
    plural: Option<String>,
    /// Whether its objects live in namespaces
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    namespaced: bool,
    /// Generate it again where it is there already
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    merge: Merge,
}

/// Adds the kind.
pub(crate) fn run(args: &Args) -> Result<(), Complaint> {
    let (root, mut project) = Project::find(&args.merge.path)?;
    let Which { group, version, kind } = &args.which;
    names::kind(kind).map_err(Complaint::usage_text)?;
    names::version(version).map_err(Complaint::usage_text)?;
    let group = names::group(group, &project.domain).map_err(Complaint::usage_text)?;
    let plural = args.plural.clone().unwrap_or_else(|| {
        let other = project.versions(kind).next().map(|other| other.plural.clone());
        other.unwrap_or_else(|| names::pluralize(kind))
    });
    names::plural(&plural).map_err(Complaint::usage_text)?;
    let api = Api {
        group,
        version: version.clone(),
        kind: kind.clone(),
        plural,
        namespaced: args.namespaced,
        webhooks: Webhooks::default(),
    };
    let (module, again) = (api.module(), project.versions(kind).next().is_some());
    project.add(api, args.force).map_err(Complaint::new)?;
    let mut plan = Plan::new(&root, args.merge.mark_conflicts);
    project.generate(&mut plan)?;
    report(&plan.apply(HINT)?);
    if again {
        println!(
            "Next: homeostat create webhook --conversion, once src/{module}/{version}.rs has its fields"
        );
    } else {
        println!(
            "Next: fields in src/{module}/{version}.rs, `reconcile` in src/{module}/mod.rs; then cargo test"
        );
    }
    Ok(())
}
