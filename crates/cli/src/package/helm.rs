//! A Helm chart: the manifests, with what differs from installation to installation taken from values.
//!
//! What is to become an expression is first a placeholder in the object, then replaced in the YAML text, so no template
//! is ever parsed as YAML. Invariant: text that looks like a template (in a description, say) is escaped.

use serde_json::{Value, json};

use super::Contents;
use crate::complaint::Complaint;
use crate::config::Manifest;
use crate::manifests::yaml;
use crate::project::plan::Plan;

/// Placeholder and the expression that takes its place.
const EXPRESSIONS: &[(&str, &str)] = &[
    ("PLACEHOLDER-NAMESPACE", "{{ .Release.Namespace }}"),
    ("PLACEHOLDER-SERVICE", "{{ .Release.Service }}"),
    ("PLACEHOLDER-REPLICAS", "{{ .Values.replicas }}"),
    (
        "PLACEHOLDER-IMAGE",
        "\"{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}\"",
    ),
    ("PLACEHOLDER-PULL", "{{ .Values.image.pullPolicy }}"),
];
const RESOURCES: &str = "PLACEHOLDER-RESOURCES";

pub(super) fn plan(contents: &Contents, plan: &mut Plan) -> Result<(), Complaint> {
    let name = &contents.project.name;
    let chart = json!({
        "apiVersion": "v2",
        "name": name,
        "description": format!("The operator {name}"),
        "type": "application",
        "version": contents.version,
        "appVersion": contents.version,
        "kubeVersion": ">=1.25.0-0",
    });
    plan.produce("dist/chart/Chart.yaml", yaml(&[chart])?)?;
    plan.produce("dist/chart/values.yaml", values(contents)?)?;
    let mut files: Vec<(String, String)> = Vec::new();
    for manifest in contents.manifests.iter().filter(|m| m.kind() != "Namespace") {
        let path = format!("dist/chart/templates/{}", manifest.file.replace('/', "_"));
        let text = template(contents, manifest)?;
        match files.iter_mut().find(|(p, _)| *p == path) {
            Some((_, whole)) => {
                whole.push_str("---\n");
                whole.push_str(&text);
            }
            None => files.push((path, text)),
        }
    }
    for (path, text) in files {
        plan.produce(&path, text)?;
    }
    Ok(())
}

/// The repository and the tag of an image; a digest stays with the repository.
fn image(text: &str) -> (&str, &str) {
    match text.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') && !repository.contains('@') => (repository, tag),
        _ => (text, ""),
    }
}

fn container(manifest: &Value) -> Option<&Value> {
    manifest.pointer("/spec/template/spec/containers")?.as_array()?.iter().find(|c| c["name"] == "manager")
}

fn values(contents: &Contents) -> Result<String, Complaint> {
    let deployment = contents.manifests.iter().find(|m| m.kind() == "Deployment").map(|m| &m.object);
    let container = deployment.and_then(container);
    let (repository, tag) = image(container.and_then(|c| c["image"].as_str()).unwrap_or_default());
    let tag = if tag == "latest" { "" } else { tag };
    let resources = container.map_or_else(|| json!({}), |c| c["resources"].clone());
    let replicas = deployment.map_or_else(|| json!(1), |d| d["spec"]["replicas"].clone());
    let part = |value: Value| yaml(&[value]);
    Ok([
        part(json!({"image": {"repository": repository, "tag": tag, "pullPolicy": "IfNotPresent"}}))?,
        "# Without a tag it is the chart's appVersion.\n".into(),
        part(json!({"replicas": replicas}))?,
        part(json!({"resources": resources}))?,
        "# With keep, the definitions and all objects of theirs outlive the release.\n".into(),
        part(json!({"crds": {"install": true, "keep": true}}))?,
        part(json!({"networkPolicy": {"enabled": true}}))?,
        part(json!({"podDisruptionBudget": {"enabled": true}}))?,
        "# Needs the Prometheus operator.\n".into(),
        part(json!({"serviceMonitor": {"enabled": false}}))?,
    ]
    .concat())
}

/// The switch in values.yaml that a kind depends on.
fn switch(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "CustomResourceDefinition" => ".Values.crds.install",
        "NetworkPolicy" => ".Values.networkPolicy.enabled",
        "PodDisruptionBudget" => ".Values.podDisruptionBudget.enabled",
        "ServiceMonitor" => ".Values.serviceMonitor.enabled",
        _ => return None,
    })
}

fn template(contents: &Contents, manifest: &Manifest) -> Result<String, Complaint> {
    let mut object = manifest.object.clone();
    place(&mut object, contents.namespace());
    let labels = object.pointer_mut("/metadata/labels/app.kubernetes.io~1managed-by");
    if let Some(label) = labels {
        *label = json!("PLACEHOLDER-SERVICE");
    }
    if manifest.kind() == "CustomResourceDefinition" {
        object["metadata"]["annotations"]["PLACEHOLDER-KEEP"] = json!("");
    }
    if manifest.kind() == "Deployment" {
        object["spec"]["replicas"] = json!("PLACEHOLDER-REPLICAS");
        let containers = object.pointer_mut("/spec/template/spec/containers").and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter(|c| c["name"] == "manager") {
            container["image"] = json!("PLACEHOLDER-IMAGE");
            container["imagePullPolicy"] = json!("PLACEHOLDER-PULL");
            container["resources"] = json!(RESOURCES);
        }
    }
    let text = yaml(&[object])?.replace("{{", "{{ \"{{\" }}");
    let mut out = String::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start_matches([' ', '-']).len();
        let mut line = line.to_owned();
        for (placeholder, expression) in EXPRESSIONS {
            line = line.replace(placeholder, expression);
        }
        if line.contains(RESOURCES) {
            let more = indent + 2;
            line = line.replace(RESOURCES, &format!("{{{{- toYaml .Values.resources | nindent {more} }}}}"));
        }
        if line.contains("PLACEHOLDER-KEEP") {
            line = KEEP.to_owned();
        }
        out.push_str(&line);
        out.push('\n');
    }
    Ok(match switch(manifest.kind()) {
        Some(switch) => format!("{{{{- if {switch} }}}}\n{out}{{{{- end }}}}\n"),
        None => out,
    })
}

/// An annotation of definitions, which a release should not take with it.
const KEEP: &str = "    {{- if .Values.crds.keep }}
    helm.sh/resource-policy: keep
    {{- end }}";

/// Puts the placeholder where the namespace stands.
fn place(value: &mut Value, namespace: &str) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                if key == "namespace" && value == namespace {
                    *value = json!("PLACEHOLDER-NAMESPACE");
                } else {
                    place(value, namespace);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|i| place(i, namespace)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_have_a_repository_and_maybe_a_tag() {
        for (text, repository, tag) in [
            ("a/b:1", "a/b", "1"),
            ("localhost:5000/b", "localhost:5000/b", ""),
            ("localhost:5000/b:2", "localhost:5000/b", "2"),
            ("b", "b", ""),
            ("b@sha256:00", "b@sha256:00", ""),
        ] {
            assert_eq!(image(text), (repository, tag));
        }
    }
}
