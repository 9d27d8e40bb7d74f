//! `homeostat create api`: a kind, or another version of one; or only its type, or only its controller.

use crate::complaint::Complaint;
use crate::create::{HINT, Merge, Which};
use crate::manifests;
use crate::project::plan::{Plan, report};
use crate::project::{Api, Project, Webhooks, foreign, names};

/// Flags of `create api`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  homeostat create api --group cache --version v1 --kind RedisCluster
  homeostat create api --group cache --version v2 --kind RedisCluster    # another version of it
  homeostat create api --group apps --version v1 --kind Deployment --resource=false    # a type that is there")]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// The plural [default: the kind's, as English has it]
    #[arg(long, value_name = "PLURAL")]
    plural: Option<String>,
    /// Whether its objects live in namespaces
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    namespaced: bool,
    /// Whether to make the type; without it, a controller for a type that is there: this project's, Kubernetes' (by its
    /// group: apps, core, networking …), or --external-type [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    resource: Option<bool>,
    /// Whether to reconcile it; without it, only the type is made [default: true for a new kind]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    controller: Option<bool>,
    /// The Rust type to reconcile, of a crate that you add to Cargo.toml, such as some_crate::v1::Certificate; the group
    /// is then the full one
    #[arg(long, value_name = "PATH", visible_alias = "external-api-path")]
    external_type: Option<String>,
    /// Write config/ at once, as `homeostat manifests` does
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    make: bool,
    /// Generate it again where it is there already
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    merge: Merge,
}

/// Adds what is asked for.
pub(crate) fn run(args: &Args) -> Result<(), Complaint> {
    let (root, mut project) = Project::find(&args.merge.path)?;
    names::kind(&args.which.kind).map_err(Complaint::usage_text)?;
    names::version(&args.which.version).map_err(Complaint::usage_text)?;
    let resource = args.resource.unwrap_or(args.external_type.is_none());
    if !resource && args.controller == Some(false) {
        return Err(Complaint::usage_text(
            "nothing would be made: leave out --resource or --controller".into(),
        ));
    }
    let next = match &args.external_type {
        Some(_) if resource => {
            return Err(Complaint::usage_text(
                "--external-type names a type that is there: it goes with --resource=false".into(),
            ));
        }
        None if resource => kind(args, &mut project)?,
        path => controller(args, path.as_deref(), &mut project)?,
    };
    let mut plan = Plan::new(&root, args.merge.mark_conflicts);
    project.generate(&mut plan)?;
    report(&plan.apply(HINT)?);
    if args.make {
        manifests::write(&args.merge, false)?;
    }
    println!("Next: {next}");
    Ok(())
}

/// The API that the flags describe.
fn described(args: &Args, group: String, project: &Project) -> Result<Api, Complaint> {
    let kind = &args.which.kind;
    let plural = args.plural.clone().unwrap_or_else(|| {
        let other = project.versions(kind).next().map(|other| other.plural.clone());
        other.unwrap_or_else(|| names::pluralize(kind))
    });
    names::plural(&plural).map_err(Complaint::usage_text)?;
    Ok(Api {
        group,
        version: args.which.version.clone(),
        kind: kind.clone(),
        plural,
        namespaced: args.namespaced,
        controller: true,
        external: None,
        webhooks: Webhooks::default(),
    })
}

/// Adds a kind of the project's, or a version; what is next.
fn kind(args: &Args, project: &mut Project) -> Result<String, Complaint> {
    let Which { group, version, kind } = &args.which;
    let group = names::group(group, &project.domain).map_err(Complaint::usage_text)?;
    let again = project.versions(kind).next().is_some();
    // All versions of a kind have one controller.
    let has = project.has_controller(kind);
    if has && args.controller == Some(false) {
        return Err(Complaint::new(format!(
            "{kind} has its controller already, for all of its versions; leave out --controller"
        )));
    }
    let controller = has || args.controller.unwrap_or(!again);
    let api = Api { controller, ..described(args, group, project)? };
    let module = api.module();
    project.add(api, args.force).map_err(Complaint::new)?;
    if controller {
        project.add_controller(kind);
    }
    Ok(if again {
        format!("homeostat create webhook --conversion, once src/{module}/{version}.rs has its fields")
    } else if controller {
        format!("fields in src/{module}/{version}.rs, `reconcile` in src/{module}/mod.rs; then cargo test")
    } else {
        format!("fields in src/{module}/{version}.rs")
    })
}

/// Adds a controller for a type that is there; what is next.
fn controller(args: &Args, path: Option<&str>, project: &mut Project) -> Result<String, Complaint> {
    let Which { group, version, kind } = &args.which;
    let ours = path.is_none() && project.versions(kind).any(|a| a.external.is_none());
    let module = names::module(kind);
    let next = format!("`reconcile` in src/{module}/mod.rs; then cargo test");
    if ours {
        project.api(group, version, kind).map_err(Complaint::new)?;
        if project.has_controller(kind) && !args.force {
            return Err(Complaint::new(format!(
                "{kind} has its controller already; --force generates it again"
            )));
        }
        project.add_controller(kind);
        return Ok(next);
    }
    if let Some(path) = path {
        foreign::path(path).map_err(Complaint::usage_text)?;
        names::foreign_group(foreign::full(group)).map_err(Complaint::usage_text)?;
    }
    let external = path.map(str::to_owned).or_else(|| foreign::kubernetes(group, version, kind));
    let Some(external) = external else {
        return Err(Complaint::new(format!(
            "there is no {kind} in this project, and Kubernetes has no group {group:?}; name its Rust type with \
             --external-type, or make it without --resource=false"
        )));
    };
    let api = described(args, foreign::full(group).to_owned(), project)?;
    project.add(Api { external: Some(external), ..api }, args.force).map_err(Complaint::new)?;
    Ok(next)
}
