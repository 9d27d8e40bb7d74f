//! From the table of built-in types to [`Resource`]s.
//!
//! The table, the definitions and the marks are part of the program and checked by tests; nothing here depends on
//! what a client sends.

use std::sync::{Arc, LazyLock};

use homeostat_model::{GroupResource, GroupVersion};
use homeostat_schema::{Definitions, Schema};
use serde::Deserialize;

use super::types;
use crate::definition::{Column, LazySchema, OpenApi, Origin, Resource, ScalePaths, Subresource, Version};

/// Files of `data/definitions`, each a JSON object of name -> schema.
const FILES: &[&str] = &[
    include_str!("../../data/definitions/admissionregistration.v1.json"),
    include_str!("../../data/definitions/apiextensions.v1.json"),
    include_str!("../../data/definitions/apiregistration.v1.json"),
    include_str!("../../data/definitions/apps.v1.json"),
    include_str!("../../data/definitions/authentication.v1.json"),
    include_str!("../../data/definitions/authorization.v1.json"),
    include_str!("../../data/definitions/autoscaling.v1.json"),
    include_str!("../../data/definitions/autoscaling.v2.json"),
    include_str!("../../data/definitions/batch.v1.json"),
    include_str!("../../data/definitions/certificates.v1.json"),
    include_str!("../../data/definitions/coordination.v1.json"),
    include_str!("../../data/definitions/core.v1.json"),
    include_str!("../../data/definitions/discovery.v1.json"),
    include_str!("../../data/definitions/events.v1.json"),
    include_str!("../../data/definitions/flowcontrol.v1.json"),
    include_str!("../../data/definitions/meta.v1.json"),
    include_str!("../../data/definitions/networking.v1.json"),
    include_str!("../../data/definitions/node.v1.json"),
    include_str!("../../data/definitions/policy.v1.json"),
    include_str!("../../data/definitions/rbac.v1.json"),
    include_str!("../../data/definitions/resource.v1.json"),
    include_str!("../../data/definitions/scheduling.v1.json"),
    include_str!("../../data/definitions/storage.v1.json"),
];

/// Every definition that a built-in type refers to: raw JSON by name (`io.k8s.api.apps.v1.Deployment`), with
/// `"$ref": "name"` between them. OpenAPI publishes them; schemas compile from them.
pub fn definitions() -> &'static Arc<Definitions> {
    static DEFINITIONS: LazyLock<Arc<Definitions>> = LazyLock::new(|| {
        let bodies = FILES.iter().filter_map(|f| f.trim().strip_prefix('{')?.strip_suffix('}'));
        let all = format!("{{{}}}", bodies.collect::<Vec<_>>().join(","));
        Definitions::parse(all.as_bytes()).expect("the committed definitions are JSON")
    });
    &DEFINITIONS
}

#[derive(Deserialize)]
struct Table {
    types: Vec<Line>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    group: String,
    version: String,
    plural: String,
    singular: String,
    kind: String,
    definition: String,
    #[serde(default)]
    namespaced: bool,
    verbs: Option<Vec<String>>,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    #[serde(default)]
    subresources: Vec<SubLine>,
    #[serde(default)]
    columns: Vec<ColumnLine>,
}

#[derive(Deserialize)]
struct SubLine {
    name: String,
    kind: String,
    group: Option<String>,
    version: Option<String>,
    verbs: Vec<String>,
}

#[derive(Deserialize)]
struct ColumnLine {
    name: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    format: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    priority: i64,
}

/// All verbs, in the order in which discovery lists them.
const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

fn verbs(names: &[String]) -> Vec<&'static str> {
    VERBS.into_iter().filter(|v| names.iter().any(|n| n == v)).collect()
}

/// The built-in resources in discovery order. Versions of one resource (autoscaling) are one [`Resource`].
pub fn resources() -> Vec<Arc<Resource>> {
    let table: Table =
        serde_json::from_str(include_str!("../../data/types.json")).expect("the committed table is JSON");
    let mut found: Vec<Resource> = Vec::new();
    for line in table.types {
        let known = found.iter_mut().find(|r| *r.id.group == *line.group && *r.id.resource == *line.plural);
        match known {
            Some(resource) => resource.versions.push(version(&line)),
            None => found.push(resource(line)),
        }
    }
    for resource in &mut found {
        if &*resource.id.group == "events.k8s.io" {
            resource.storage = resource.versions.len();
            resource.versions.push(core_event());
        }
        let definitions = resource.versions.iter().filter_map(|v| match &v.openapi {
            OpenApi::Definition(name) => Some((v.gv.clone(), name.clone())),
            OpenApi::Inline(_) => None,
        });
        let status = resource.versions[0].subresource("status").is_some();
        resource.strategy = types::strategy(&resource.id, definitions.collect(), status);
    }
    found.into_iter().map(Arc::new).collect()
}

fn resource(line: Line) -> Resource {
    // Events of both groups are one set of objects.
    let collection = match (&*line.group, &*line.plural) {
        ("" | "events.k8s.io", "events") => "events".into(),
        ("", plural) => plural.into(),
        (group, plural) => format!("{plural}.{group}").into(),
    };
    let version = version(&line);
    Resource {
        id: GroupResource::new(line.group, line.plural),
        singular: line.singular,
        list_kind: format!("{}List", line.kind),
        kind: line.kind.into(),
        short_names: line.short_names,
        categories: line.categories,
        namespaced: line.namespaced,
        versions: vec![version],
        storage: 0,
        collection,
        origin: Origin::BuiltIn,
        epoch: 0,
        strategy: Arc::new(crate::Plain),
    }
}

fn version(line: &Line) -> Version {
    let name = line.definition.clone();
    Version {
        gv: GroupVersion::new(&*line.group, &*line.version),
        served: true,
        deprecation: deprecation(line),
        schema: schema(name.clone()),
        verbs: line.verbs.as_deref().map_or(VERBS.to_vec(), verbs),
        subresources: line.subresources.iter().map(subresource).collect(),
        columns: line.columns.iter().map(|c| column(&line.kind, c)).collect(),
        selectable: Vec::new(),
        openapi: OpenApi::Definition(name),
    }
}

/// Events of `events.k8s.io` are stored as the core group's, so that each group reads what the other wrote.
fn core_event() -> Version {
    let name = "io.k8s.api.core.v1.Event";
    Version {
        gv: GroupVersion::new("", "v1"),
        served: false,
        deprecation: None,
        schema: schema(name.to_owned()),
        verbs: Vec::new(),
        subresources: Vec::new(),
        columns: Vec::new(),
        selectable: Vec::new(),
        openapi: OpenApi::Definition(name.to_owned()),
    }
}

fn schema(name: String) -> LazySchema {
    Arc::new(LazyLock::new(Box::new(move || {
        Arc::new(
            Schema::builtin(definitions().clone(), &name).expect("the table names committed definitions"),
        )
    })))
}

/// The types that the reference warns of.
fn deprecation(line: &Line) -> Option<String> {
    let text = match (&*line.group, &*line.plural) {
        ("", "componentstatuses") => "v1 ComponentStatus is deprecated in v1.19+",
        ("", "endpoints") => "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        _ => return None,
    };
    Some(text.to_owned())
}

fn subresource(line: &SubLine) -> Subresource {
    let gv = line.group.as_ref().zip(line.version.as_ref()).map(|(g, v)| GroupVersion::new(&**g, &**v));
    let scale = (line.name == "scale").then(|| ScalePaths {
        spec: ".spec.replicas".into(),
        status: ".status.replicas".into(),
        selector: Some(".spec.selector".into()),
    });
    Subresource { name: line.name.clone(), kind: line.kind.clone(), gv, verbs: verbs(&line.verbs), scale }
}

fn column(kind: &str, line: &ColumnLine) -> Column {
    let description = match (&*line.description, &*line.name) {
        ("", "Name") => {
            "The object's name, unique among the objects of its type in its namespace, or in the cluster where the \
             type has no namespaces."
                .to_owned()
        }
        ("", "Age" | "Created At") => {
            "How long ago the object was created, which the server noted in metadata.creationTimestamp, or when."
                .to_owned()
        }
        ("", name) => format!(
            "{name} of the {kind}, in short; what is behind it is among the fields that the schema of the type \
             explains."
        ),
        (given, _) => given.to_owned(),
    };
    Column {
        name: line.name.clone(),
        kind: line.kind.clone().unwrap_or_else(|| "string".into()),
        format: line.format.clone(),
        description,
        priority: line.priority,
        path: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_compiles_and_every_served_type_has_one() {
        definitions().check().unwrap();
        let all = resources();
        assert_eq!(all.len(), 67);
        for resource in &all {
            for version in &resource.versions {
                assert!(version.schema.root().property("metadata").is_some(), "{}", resource.id);
            }
        }
    }

    #[test]
    fn discovery_order_and_names_are_the_references() {
        let all = resources();
        let first: Vec<String> = all.iter().take(3).map(|r| r.id.to_string()).collect();
        assert_eq!(first, ["bindings", "componentstatuses", "configmaps"]);
        let hpa = all.iter().find(|r| &*r.id.group == "autoscaling").unwrap();
        assert_eq!(
            hpa.versions.iter().map(|v| v.gv.to_string()).collect::<Vec<_>>(),
            ["autoscaling/v2", "autoscaling/v1"]
        );
        let pods = all.iter().find(|r| &*r.id.resource == "pods").unwrap();
        assert_eq!(pods.short_names, ["po"]);
        assert_eq!(pods.versions[0].subresources.len(), 10);
    }
}
