//! `homeostat package`: `dist/` from `config/`, for those who install the program without this tool.
//!
//! Packages are generated files like all others: edits in them are kept (a Helm chart is made to be edited).

mod helm;
mod kustomize;

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::complaint::Complaint;
use crate::config::{self, Manifest};
use crate::create::{HINT, Merge};
use crate::manifests::yaml;
use crate::project::Project;
use crate::project::plan::{Plan, report};

/// Flags of `package`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  homeostat package --yaml --image registry.example.com/redis-operator:0.1.0 && kubectl apply --server-side -f dist/install.yaml
  homeostat package --helm && helm install redis-operator dist/chart --namespace redis-operator-system --create-namespace")]
pub(crate) struct Args {
    /// One file for `kubectl apply`: dist/install.yaml
    #[arg(long)]
    yaml: bool,
    /// A base for kustomize: dist/kustomize
    #[arg(long)]
    kustomize: bool,
    /// A Helm chart: dist/chart
    #[arg(long)]
    helm: bool,
    /// The image to run [default: the one in config/]
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    #[command(flatten)]
    merge: Merge,
}

/// What a package is made of.
struct Contents {
    project: Project,
    /// The program's version.
    version: String,
    manifests: Vec<Manifest>,
}

impl Contents {
    fn read(path: &Path, image: Option<&str>) -> Result<(PathBuf, Self), Complaint> {
        let (root, project) = Project::find(path)?;
        let mut manifests = config::read(&root)?;
        if let Some(image) = image {
            config::set_image(&mut manifests, image);
        }
        let version = version(&root)?;
        Ok((root, Self { project, version, manifests }))
    }

    /// The namespace that the program runs in.
    fn namespace(&self) -> &str {
        let deployment = self.manifests.iter().find(|m| m.kind() == "Deployment");
        deployment.and_then(|d| d.object["metadata"]["namespace"].as_str()).unwrap_or("default")
    }
}

#[derive(Deserialize)]
struct Cargo {
    package: Package,
}

#[derive(Deserialize)]
struct Package {
    version: Value,
}

/// The version in Cargo.toml.
fn version(root: &Path) -> Result<String, Complaint> {
    let path = root.join("Cargo.toml");
    let text = std::fs::read_to_string(&path)
        .map_err(|e| Complaint::new(format!("cannot read {}: {e}", path.display())))?;
    let cargo: Cargo =
        toml::from_str(&text).map_err(|e| Complaint::new(format!("{}: {}", path.display(), e.message())))?;
    // In a workspace the version may be inherited, and then it isn't here.
    Ok(cargo.package.version.as_str().unwrap_or("0.1.0").to_owned())
}

/// Writes the packages that are asked for.
pub(crate) fn run(args: &Args) -> Result<(), Complaint> {
    if !(args.yaml || args.kustomize || args.helm) {
        return Err(Complaint::usage_text("say for whom: --yaml, --kustomize, --helm".into()));
    }
    let (root, contents) = Contents::read(&args.merge.path, args.image.as_deref())?;
    let mut plan = Plan::new(&root, args.merge.mark_conflicts);
    if args.yaml {
        let documents: Vec<Value> = contents.manifests.iter().map(|m| m.object.clone()).collect();
        plan.produce("dist/install.yaml", yaml(&documents)?)?;
    }
    if args.kustomize {
        kustomize::plan(&contents, &mut plan)?;
        plan.retire("dist/kustomize")?;
    }
    if args.helm {
        helm::plan(&contents, &mut plan)?;
        plan.retire("dist/chart")?;
    }
    report(&plan.apply(HINT)?);
    Ok(())
}
