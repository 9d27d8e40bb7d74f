//! `homeostat create webhook`: defaults, rules and conversions for a kind.

use crate::complaint::Complaint;
use crate::create::{HINT, Merge, Which};
use crate::project::Project;
use crate::project::plan::{Plan, report};

/// Flags of `create webhook`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  homeostat create webhook --group cache --version v1 --kind RedisCluster --defaulting --validation")]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Fill in what a person left open
    #[arg(long)]
    defaulting: bool,
    /// Accept or deny what is asked
    #[arg(long, visible_alias = "programmatic-validation")]
    validation: bool,
    /// Convert between the versions of the kind
    #[arg(long)]
    conversion: bool,
    #[command(flatten)]
    merge: Merge,
}

/// Adds the webhooks.
pub(crate) fn run(args: &Args) -> Result<(), Complaint> {
    if !(args.defaulting || args.validation || args.conversion) {
        return Err(Complaint::usage_text("say what for: --defaulting, --validation, --conversion".into()));
    }
    let (root, mut project) = Project::find(&args.merge.path)?;
    let Which { group, version, kind } = &args.which;
    if args.conversion && project.versions(kind).count() == 1 {
        return Err(Complaint::new(format!(
            "{kind} has one version, so there is nothing to convert; add another with `homeostat create api`"
        )));
    }
    let api = project.api(group, version, kind).map_err(Complaint::new)?;
    if api.external.is_some() {
        return Err(Complaint::new(format!(
            "{kind} is made elsewhere; write a Defaulter or Validator for it, and give it to `Program` in src/lib.rs"
        )));
    }
    api.webhooks.defaulting |= args.defaulting;
    api.webhooks.validation |= args.validation;
    api.webhooks.conversion |= args.conversion;
    let mut plan = Plan::new(&root, args.merge.mark_conflicts);
    project.generate(&mut plan)?;
    report(&plan.apply(HINT)?);
    println!("Next: homeostat manifests");
    Ok(())
}
