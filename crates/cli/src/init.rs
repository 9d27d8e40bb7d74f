//! `homeostat init`: a project to fill.

use std::path::{Component, Path, PathBuf};

use crate::complaint::Complaint;
use crate::project::plan::{Plan, report};
use crate::project::{FILE, Project, Sdk, names};

/// Flags of `init`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  homeostat init --domain example.com --name redis-operator --path redis-operator
  cd redis-operator && homeostat create api --group cache --version v1 --kind RedisCluster")]
pub(crate) struct Args {
    /// The domain that the API groups end in
    #[arg(long, default_value = "example.com", value_name = "DOMAIN")]
    domain: String,
    /// The project's name [default: the folder's]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The folder to make it in; what is there already is not overwritten
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    path: PathBuf,
    /// The program works in its own namespace only: a Role rather than a ClusterRole
    #[arg(long)]
    namespaced: bool,
    /// The folder of the `homeostat` package, rather than a published version
    #[arg(long, env = "HOMEOSTAT_SDK_PATH", value_name = "FOLDER")]
    sdk_path: Option<PathBuf>,
}

/// Makes the project.
pub(crate) fn run(args: &Args) -> Result<(), Complaint> {
    let folder = std::path::absolute(&args.path)?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default(),
    };
    names::project(&name).map_err(|why| {
        let hint = if args.name.is_none() { "; give it with --name" } else { "" };
        Complaint::usage_text(format!("{why}{hint}"))
    })?;
    names::domain(&args.domain).map_err(Complaint::usage_text)?;
    if folder.join(FILE).exists() {
        return Err(Complaint::new(format!(
            "{} is a project already; add kinds to it with `homeostat create api`",
            folder.display()
        )));
    }
    let sdk = Sdk { path: args.sdk_path.as_deref().map(|path| sdk(path, &folder)).transpose()? };
    let project = Project::new(&name, &args.domain, args.namespaced, sdk);
    let mut plan = Plan::new(&folder, false);
    project.generate(&mut plan)?;
    let outcomes = plan.apply("choose another folder with --path, or move these away")?;
    report(&outcomes);
    println!("Next: homeostat create api --group cache --version v1 --kind RedisCluster");
    Ok(())
}

/// The SDK's folder as the project names it: absolute where it was given so, else from the project's folder.
fn sdk(path: &Path, project: &Path) -> Result<String, Complaint> {
    let there = std::path::absolute(path)?;
    if !there.join("Cargo.toml").is_file() {
        return Err(Complaint::new(format!(
            "{} holds no package; --sdk-path is the folder of `homeostat`'s Cargo.toml",
            there.display()
        )));
    }
    let named = if path.is_absolute() { there } else { relative(&normal(&there), &normal(project)) };
    named.to_str().map(str::to_owned).ok_or_else(|| Complaint::new("--sdk-path must be UTF-8"))
}

/// `path` without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

/// The way from `from` to `to`, both absolute.
fn relative(to: &Path, from: &Path) -> PathBuf {
    let (to, from): (Vec<_>, Vec<_>) = (to.components().collect(), from.components().collect());
    let same = to.iter().zip(&from).take_while(|(a, b)| a == b).count();
    let up = from[same..].iter().map(|_| Component::ParentDir);
    up.chain(to[same..].iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_between_folders() {
        for (to, from, way) in [
            ("/a/b/c", "/a/d/e", "../../b/c"),
            ("/a/b", "/a", "b"),
            ("/a", "/a/b/../c", ".."),
            ("/a/./b", "/x", "../a/b"),
        ] {
            assert_eq!(relative(&normal(Path::new(to)), &normal(Path::new(from))), Path::new(way));
        }
    }
}
