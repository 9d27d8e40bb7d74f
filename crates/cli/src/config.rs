//! `config/` as it is on disk: what a person may have edited, and what is applied and packaged.
//!
//! Reading only. Invariant: objects come in the order in which a cluster wants them.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::complaint::Complaint;

/// The folder of manifests.
pub(crate) const FOLDER: &str = "config";

/// The order of kinds, after Helm's `InstallOrder`.
const ORDER: &[&str] = &[
    "Namespace",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "ConfigMap",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "Service",
    "Deployment",
    "StatefulSet",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "ServiceMonitor",
];

/// An object and the file that it is in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Manifest {
    /// Relative to `config/`.
    pub(crate) file: String,
    pub(crate) object: Value,
}

impl Manifest {
    pub(crate) fn kind(&self) -> &str {
        self.object["kind"].as_str().unwrap_or_default()
    }
}

/// All objects under `config/`, but the samples.
pub(crate) fn read(root: &Path) -> Result<Vec<Manifest>, Complaint> {
    let top = root.join(FOLDER);
    let mut files = Vec::new();
    if top.is_dir() {
        walk(&top, &mut files)?;
    }
    let mut manifests = Vec::new();
    for path in files {
        let relative = path.strip_prefix(&top).unwrap_or(&path).to_string_lossy().into_owned();
        let name = relative.rsplit('/').next().unwrap_or(&relative);
        if relative.starts_with("samples/") || name.starts_with("kustomization.") {
            continue;
        }
        let text = std::fs::read_to_string(&path)
            .map_err(|e| Complaint::new(format!("cannot read {}: {e}", path.display())))?;
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text)
            .map_err(|e| Complaint::new(format!("{FOLDER}/{relative}: {}", first_line(&e.to_string()))))?;
        for object in documents.into_iter().filter(|d| !d.is_null()) {
            if object["kind"].as_str().is_none() || object["metadata"]["name"].as_str().is_none() {
                return Err(Complaint::new(format!(
                    "{FOLDER}/{relative} holds something without kind or name"
                )));
            }
            manifests.push(Manifest { file: relative.clone(), object });
        }
    }
    if manifests.is_empty() {
        return Err(Complaint::new("there are no manifests yet; run `homeostat manifests`"));
    }
    let place = |m: &Manifest| ORDER.iter().position(|k| *k == m.kind()).unwrap_or(ORDER.len());
    manifests.sort_by_key(place);
    Ok(manifests)
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or(text)
}

fn walk(folder: &Path, out: &mut Vec<PathBuf>) -> Result<(), Complaint> {
    let fail = |e: std::io::Error| Complaint::new(format!("cannot read {}: {e}", folder.display()));
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .map_err(fail)?
        .map(|e| e.map(|e| e.path()))
        .collect::<Result<_, _>>()
        .map_err(fail)?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            walk(&path, out)?;
        } else if path.extension().is_some_and(|x| x == "yaml" || x == "yml" || x == "json") {
            out.push(path);
        }
    }
    Ok(())
}

/// The CustomResourceDefinitions among them.
pub(crate) fn definitions(manifests: &[Manifest]) -> Vec<Value> {
    manifests.iter().filter(|m| m.kind() == "CustomResourceDefinition").map(|m| m.object.clone()).collect()
}

/// Puts `image` into the program's container.
pub(crate) fn set_image(manifests: &mut [Manifest], image: &str) {
    for manifest in manifests.iter_mut().filter(|m| m.kind() == "Deployment") {
        let containers =
            manifest.object.pointer_mut("/spec/template/spec/containers").and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter(|c| c["name"] == "manager") {
            container["image"] = image.into();
        }
    }
}
