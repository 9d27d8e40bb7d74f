//! From a CustomResourceDefinition to the definition that requests are served by.
//!
//! It takes what was admitted and does not validate again, but never panics on anything stored.

use std::sync::{Arc, LazyLock};

use homeostat_model::{GroupResource, GroupVersion};
use homeostat_schema::Schema;
use serde_json::{Value, json};

use crate::definition::{
    Column, Conversion, LazySchema, OpenApi, Origin, Resource, ScalePaths, Subresource, Version,
};
use crate::discovery::compare_versions;
use crate::strategy::Plain;

const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const SUB_VERBS: [&str; 3] = ["get", "patch", "update"];

/// Whether the condition `Established` is true: only then is the type served.
pub fn is_established(crd: &Value) -> bool {
    condition(crd, "Established")
}

/// Whether the definition is being deleted: objects can go but no longer come.
pub fn is_terminating(crd: &Value) -> bool {
    condition(crd, "Terminating") || crd["metadata"]["deletionTimestamp"].is_string()
}

fn condition(crd: &Value, kind: &str) -> bool {
    crd["status"]["conditions"]
        .as_array()
        .is_some_and(|c| c.iter().any(|c| c["type"] == kind && c["status"] == "True"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(|v| v.as_str().map(str::to_owned)).collect()
}

/// The resource that a CRD defines, under its accepted names (before any were accepted, those it asks for).
/// Schemas are compiled by the first request that needs them.
///
/// # Errors
/// In words, when the CRD lacks a group, names or a storage version; admitted CRDs have them.
pub fn to_resource(crd: &Value, epoch: u64) -> Result<Resource, String> {
    let spec = &crd["spec"];
    let accepted = &crd["status"]["acceptedNames"];
    let names = if text(&accepted["plural"]).is_empty() || text(&accepted["kind"]).is_empty() {
        &spec["names"]
    } else {
        accepted
    };
    let (group, plural, kind) = (text(&spec["group"]), text(&names["plural"]), text(&names["kind"]));
    if group.is_empty() || plural.is_empty() || kind.is_empty() {
        return Err("a CustomResourceDefinition needs a group, a plural and a kind".to_owned());
    }
    let singular = match text(&names["singular"]) {
        "" => kind.to_lowercase(),
        s => s.to_owned(),
    };
    let list_kind = match text(&names["listKind"]) {
        "" => format!("{kind}List"),
        s => s.to_owned(),
    };
    let preserve = spec["preserveUnknownFields"] == true;
    let specs = spec["versions"].as_array().ok_or("a CustomResourceDefinition needs versions")?;
    let stored = specs.iter().find(|v| v["storage"] == true).map(|v| text(&v["name"]).to_owned());
    let stored = stored.ok_or("a CustomResourceDefinition needs a storage version")?;
    let refuse =
        Schema::compile(&json!({"type": "object", "not": {"type": "object"}})).map_err(|e| e.to_string())?;
    let mut versions: Vec<Version> =
        specs.iter().map(|v| version(v, specs, group, kind, preserve, &refuse)).collect();
    versions.sort_by(|a, b| compare_versions(&b.gv.version, &a.gv.version));
    let storage = versions.iter().position(|v| *v.gv.version == *stored).unwrap_or(0);
    let conversion = match text(&spec["conversion"]["strategy"]) {
        "Webhook" => Conversion::Webhook(spec["conversion"]["webhook"].clone()),
        _ => Conversion::None,
    };
    Ok(Resource {
        id: GroupResource::new(group, plural),
        singular,
        kind: kind.into(),
        list_kind,
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        namespaced: spec["scope"] != "Cluster",
        versions,
        storage,
        collection: format!("{plural}.{group}").into(),
        origin: Origin::Custom { terminating: is_terminating(crd), conversion },
        epoch,
        strategy: Arc::new(Plain),
    })
}

fn version(v: &Value, all: &[Value], group: &str, kind: &str, preserve: bool, refuse: &Schema) -> Version {
    let gv = GroupVersion::new(group, text(&v["name"]));
    let mut schema = v["schema"]["openAPIV3Schema"].clone();
    if !schema.is_object() {
        schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    } else if preserve {
        schema["x-kubernetes-preserve-unknown-fields"] = true.into();
    }
    let schema = Arc::new(schema);
    let deprecation = (v["deprecated"] == true).then(|| match v["deprecationWarning"].as_str() {
        Some(warning) => warning.to_owned(),
        None => deprecation(&gv, kind, all),
    });
    Version {
        served: v["served"] == true,
        deprecation,
        schema: lazy(schema.clone(), refuse.clone()),
        verbs: VERBS.to_vec(),
        subresources: subresources(&v["subresources"], kind),
        columns: columns(&v["additionalPrinterColumns"]),
        selectable: v["selectableFields"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|f| f["jsonPath"].as_str())
            .map(|path| (path.strip_prefix('.').unwrap_or(path).to_owned(), path.to_owned()))
            .collect(),
        openapi: OpenApi::Inline(schema),
        gv,
    }
}

/// The warning of a deprecated version without a text of its own; it recommends the best version that is newer.
fn deprecation(gv: &GroupVersion, kind: &str, all: &[Value]) -> String {
    let newer = |v: &&Value| {
        v["served"] == true
            && v["deprecated"] != true
            && compare_versions(&gv.version, text(&v["name"])).is_lt()
    };
    let best = all.iter().filter(newer).max_by(|a, b| compare_versions(text(&a["name"]), text(&b["name"])));
    match best {
        Some(v) => format!("{gv} {kind} is deprecated; use {}/{} {kind}", gv.group, text(&v["name"])),
        None => format!("{gv} {kind} is deprecated"),
    }
}

/// A schema that validation let through and that still can't be compiled lets nothing through: `refuse`.
fn lazy(source: Arc<Value>, refuse: Schema) -> LazySchema {
    Arc::new(LazyLock::new(Box::new(move || Arc::new(Schema::compile(&source).unwrap_or(refuse)))))
}

fn subresources(v: &Value, kind: &str) -> Vec<Subresource> {
    let mut out = Vec::new();
    if v["status"].is_object() {
        out.push(Subresource {
            name: "status".into(),
            kind: kind.to_owned(),
            gv: None,
            verbs: SUB_VERBS.to_vec(),
            scale: None,
        });
    }
    if let Some(scale) = v["scale"].as_object() {
        let path = |key: &str| scale.get(key).and_then(Value::as_str).map(str::to_owned);
        out.push(Subresource {
            name: "scale".into(),
            kind: "Scale".into(),
            gv: Some(GroupVersion::new("autoscaling", "v1")),
            verbs: SUB_VERBS.to_vec(),
            scale: Some(ScalePaths {
                spec: path("specReplicasPath").unwrap_or_default(),
                status: path("statusReplicasPath").unwrap_or_default(),
                selector: path("labelSelectorPath").filter(|p| !p.is_empty()),
            }),
        });
    }
    out
}

fn columns(v: &Value) -> Vec<Column> {
    let mut out = vec![Column::name()];
    let custom = v.as_array().map(Vec::as_slice).unwrap_or_default();
    if custom.is_empty() {
        out.push(Column::age());
    }
    for c in custom {
        let path = text(&c["jsonPath"]);
        let description = match text(&c["description"]) {
            "" => format!("Custom resource definition column (in JSONPath format): {path}"),
            d => d.to_owned(),
        };
        out.push(Column {
            name: text(&c["name"]).to_owned(),
            kind: text(&c["type"]).to_owned(),
            format: text(&c["format"]).to_owned(),
            description,
            priority: c["priority"].as_i64().unwrap_or(0),
            path: Some(path.to_owned()),
        });
    }
    out
}
