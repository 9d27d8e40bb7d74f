//! `homeostat delete api`: takes a kind, or a version of one, out of a project.

use crate::complaint::Complaint;
use crate::create::{HINT, Merge, Which};
use crate::project::plan::{Plan, remembered, report};
use crate::project::{Project, templates};

/// Flags of `delete`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  homeostat delete api --group cache --version v1 --kind RedisCluster")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Take a version of a kind out of the project; with its last version goes the kind
    #[command(after_help = "Example:
  homeostat delete api --group cache --version v1 --kind RedisCluster
  homeostat delete api --group cache --version v1 --kind RedisCluster --force    # with what you have written in it")]
    Api(Api),
}

#[derive(clap::Args)]
struct Api {
    #[command(flatten)]
    which: Which,
    /// Remove files even where you have edited them
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    merge: Merge,
}

/// Takes out what is named. The cluster is left alone: `homeostat uninstall` is for that.
pub(crate) fn run(args: &Args) -> Result<(), Complaint> {
    let What::Api(args) = &args.what;
    let (root, mut project) = Project::find(&args.merge.path)?;
    let Which { group, version, kind } = &args.which;
    let api = project.api(group, version, kind).map_err(Complaint::new)?.clone();
    let last = project.versions(kind).count() == 1;
    let mut paths = if last { templates::of_kind(&project, &api) } else { templates::of_version(&api) };
    if last {
        // What `homeostat manifests` made for this kind alone.
        let manifests = [
            format!("config/crd/{}.yaml", api.definition()),
            format!("config/rbac/people_{}.yaml", api.definition()),
        ];
        let made = remembered(&root)?;
        paths.extend(manifests.into_iter().filter(|m| made.contains(m)));
    }
    project.apis.retain(|a| !(a.group == api.group && a.version == *version && a.kind == *kind));
    if project.versions(kind).count() == 1 {
        // One version has nothing to convert to.
        paths.push(format!("src/{}/conversion.rs", api.module()));
        project.apis.iter_mut().filter(|a| a.kind == *kind).for_each(|a| a.webhooks.conversion = false);
    }
    let mut plan = Plan::new(&root, args.merge.mark_conflicts);
    project.generate(&mut plan)?;
    for path in paths {
        plan.remove(&path, args.force)?;
    }
    let hint = if plan.conflicts().iter().any(|c| c.contains("would be lost")) {
        "save them and use --force"
    } else {
        HINT
    };
    report(&plan.apply(hint)?);
    Ok(())
}
