//! `homeostat install` and `uninstall`: the project's CustomResourceDefinitions in a cluster.

use std::path::PathBuf;

use crate::complaint::Complaint;
use crate::config;
use crate::project::Project;
use crate::remote::{Definitions, Where};

/// Flags of `install`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  homeostat manifests && homeostat install")]
pub(crate) struct Install {
    #[command(flatten)]
    cluster: Where,
    /// Make definitions this project's that the cluster has from somebody else
    #[arg(long)]
    take_over: bool,
    /// The project's folder
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    path: PathBuf,
}

/// Flags of `uninstall`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  homeostat uninstall")]
pub(crate) struct Uninstall {
    #[command(flatten)]
    cluster: Where,
    /// Delete definitions even where there are objects, which go with them
    #[arg(long)]
    force: bool,
    /// The project's folder
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    path: PathBuf,
}

fn definitions(path: &std::path::Path) -> Result<Definitions, Complaint> {
    let (root, project) = Project::find(path)?;
    let objects = config::definitions(&config::read(&root)?);
    if objects.is_empty() {
        return Err(Complaint::new(
            "config/crd holds no definitions; add a kind with `homeostat create api`, then run `homeostat manifests`",
        ));
    }
    Ok(Definitions { project: project.name, objects })
}

/// Installs the definitions, and waits until they are served.
pub(crate) async fn install(args: &Install) -> Result<(), Complaint> {
    let definitions = definitions(&args.path)?;
    let mut remote = args.cluster.connect().await?;
    definitions.install(&mut remote, args.take_over).await?;
    for object in &definitions.objects {
        println!("   installed  {}", object["metadata"]["name"].as_str().unwrap_or_default());
    }
    Ok(())
}

/// Deletes the definitions.
pub(crate) async fn uninstall(args: &Uninstall) -> Result<(), Complaint> {
    let definitions = definitions(&args.path)?;
    let mut remote = args.cluster.connect().await?;
    let gone = definitions.uninstall(&mut remote, args.force).await?;
    for name in &gone {
        println!(" uninstalled  {name}");
    }
    if gone.is_empty() {
        println!("The cluster has none of this project's definitions");
    }
    Ok(())
}
