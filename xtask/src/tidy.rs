//! The house rules that a compiler doesn't know: imports point one way, every file says what it is and is part of
//! something, files stay small. Runs as a chore and as a test.

mod orphans;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// What each package may import of ours. Tests may import more: the whole is tested through `cluster`.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("homeostat-model", &[]),
    ("homeostat-schema", &["homeostat-model"]),
    ("homeostat-store", &["homeostat-model"]),
    ("homeostat-resources", &["homeostat-model", "homeostat-schema"]),
    ("homeostat-access", &["homeostat-model"]),
    ("homeostat-protobuf", &[]),
    (
        "homeostat-apiserver",
        &[
            "homeostat-model",
            "homeostat-schema",
            "homeostat-store",
            "homeostat-resources",
            "homeostat-access",
            "homeostat-protobuf",
        ],
    ),
    ("homeostat-sdk", &["homeostat-model"]),
    ("homeostat-apply", &["homeostat-sdk"]),
    ("homeostat-controllers", &["homeostat-model", "homeostat-sdk"]),
    ("homeostat-scheduler", &["homeostat-model", "homeostat-sdk"]),
    ("homeostat-node", &["homeostat-model", "homeostat-sdk"]),
    (
        "homeostat-cluster",
        &[
            "homeostat-model",
            "homeostat-store",
            "homeostat-resources",
            "homeostat-access",
            "homeostat-apiserver",
            "homeostat-sdk",
            "homeostat-controllers",
            "homeostat-scheduler",
            "homeostat-node",
        ],
    ),
    ("homeostat-program", &["homeostat-sdk"]),
    ("homeostat", &["homeostat-sdk", "homeostat-apply", "homeostat-program", "homeostat-cluster"]),
    ("redis-operator", &["homeostat"]),
    ("widget-operator", &["homeostat"]),
    ("homeostat-book", &["homeostat"]),
    (
        "homeostat-cli",
        &["homeostat-model", "homeostat-cluster", "homeostat-sdk", "homeostat", "redis-operator"],
    ),
    ("xtask", &[]),
];

/// Packages on the server's side: values, not typed objects.
const UNTYPED: &[&str] = &[
    "homeostat-model",
    "homeostat-schema",
    "homeostat-store",
    "homeostat-resources",
    "homeostat-access",
    "homeostat-protobuf",
    "homeostat-apiserver",
];
const TYPED_CLIENTS: &[&str] = &["kube", "k8s-openapi"];

/// More lines than this in one file hold two subjects.
const MOST_LINES: usize = 900;

/// Checks everything; returns how many files were read.
pub(crate) fn check() -> Result<usize, String> {
    let metadata = MetadataCommand::new().no_deps().exec().map_err(|e| e.to_string())?;
    let rules: BTreeMap<&str, &[&str]> = MAY_IMPORT.iter().copied().collect();
    let mut faults = Vec::new();
    let mut files = Vec::new();
    let mut roots = BTreeSet::new();
    for package in &metadata.packages {
        let name = package.name.as_str();
        let Some(allowed) = rules.get(name) else {
            faults.push(format!("{name}: a new package needs a line in xtask/src/tidy.rs"));
            continue;
        };
        for dependency in &package.dependencies {
            if dependency.kind == DependencyKind::Development {
                continue;
            }
            let of = dependency.name.as_str();
            if rules.contains_key(of) && !allowed.contains(&of) {
                faults.push(format!("{name} must not import {of}"));
            }
            if UNTYPED.contains(&name) && TYPED_CLIENTS.contains(&of) {
                faults.push(format!("{name} works on JSON values and must not import {of}"));
            }
        }
        roots.extend(package.targets.iter().map(|t| t.src_path.as_std_path().to_owned()));
        let root = package.manifest_path.parent().map(|p| p.as_std_path().to_owned()).unwrap_or_default();
        for folder in ["src", "tests", "benches"] {
            sources(&root.join(folder), &mut files);
        }
    }
    files.sort();
    for file in &files {
        faults.extend(faults_of(file));
    }
    for file in orphans::orphans(&files, roots, |file| std::fs::read_to_string(file).ok()) {
        faults.push(format!("{}: no mod reaches it, so no compiler reads it", file.display()));
    }
    if faults.is_empty() { Ok(files.len()) } else { Err(format!("not tidy:\n  {}", faults.join("\n  "))) }
}

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|x| x == "rs") {
            out.push(path);
        }
    }
}

fn faults_of(file: &Path) -> Vec<String> {
    let Ok(text) = std::fs::read_to_string(file) else {
        return vec![format!("{}: unreadable", file.display())];
    };
    let mut faults = Vec::new();
    if !text.starts_with("//!") {
        faults.push(format!("{}: begins without a head (//!) that says what it is", file.display()));
    }
    let lines = text.lines().count();
    if lines > MOST_LINES {
        faults.push(format!("{}: {lines} lines; more than {MOST_LINES} hold two subjects", file.display()));
    }
    faults
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_house_is_tidy() {
        if let Err(why) = super::check() {
            panic!("{why}");
        }
    }
}
