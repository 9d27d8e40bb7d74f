//! A base for kustomize: the manifests as they are, and a `kustomization.yaml` that names them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Contents;
use crate::complaint::Complaint;
use crate::manifests::yaml;
use crate::project::plan::Plan;

/// Kinds that not every cluster has: a component of their own.
const OPTIONAL: &[(&str, &str)] = &[("ServiceMonitor", "prometheus")];

pub(super) fn plan(contents: &Contents, plan: &mut Plan) -> Result<(), Complaint> {
    let mut files: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    let mut components: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for manifest in &contents.manifests {
        let file = manifest.file.as_str();
        if !files.contains_key(file) {
            match OPTIONAL.iter().find(|(kind, _)| *kind == manifest.kind()) {
                Some((_, component)) => components.entry(component).or_default().push(file),
                None => order.push(file),
            }
        }
        files.entry(file).or_default().push(manifest.object.clone());
    }
    for (file, documents) in &files {
        plan.produce(&format!("dist/kustomize/{file}"), yaml(documents)?)?;
    }
    let base = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": order,
    });
    plan.produce("dist/kustomize/kustomization.yaml", yaml(&[base])?)?;
    for (component, files) in components {
        let prefix = format!("{component}/");
        let inside: Vec<&str> = files.iter().map(|f| f.strip_prefix(&prefix).unwrap_or(f)).collect();
        let part = json!({
            "apiVersion": "kustomize.config.k8s.io/v1alpha1",
            "kind": "Component",
            "resources": inside,
        });
        plan.produce(&format!("dist/kustomize/{component}/kustomization.yaml"), yaml(&[part])?)?;
    }
    Ok(())
}
