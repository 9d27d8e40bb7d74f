//! The OpenAPI 2 document (Swagger): put together from one fragment per group and version, so that a change of one
//! leaves the others' as they are.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::operations::{self, Body, Operation, PathItem};
use super::published::{self, Dialect};
use super::{Slot, VERSION, custom, proto};
use crate::builtin;
use crate::definition::OpenApi;

/// Entries of `paths` and `definitions` as JSON, without the braces around them.
pub(super) struct Fragment {
    paths: String,
    definitions: String,
}

/// The same as protobuf: repeated fields of `Paths` and `Definitions`.
pub(super) struct ProtoFragment {
    paths: Vec<u8>,
    definitions: Vec<u8>,
}

/// Definitions of all built-in types, without braces.
static BUILT_IN: LazyLock<String> = LazyLock::new(|| entries(&built_in_definitions()));
static BUILT_IN_PROTO: LazyLock<Vec<u8>> = LazyLock::new(|| proto::definitions(&built_in_definitions()));

fn built_in_definitions() -> Map<String, Value> {
    let names: BTreeSet<String> = builtin::definitions().names().map(str::to_owned).collect();
    published::closure(names, Dialect::V2).into_iter().collect()
}

fn parts(slot: &Slot) -> (Map<String, Value>, Map<String, Value>) {
    let paths = operations::paths(slot).into_iter().map(|(path, item)| (path, path_item(&item))).collect();
    let mut definitions = Map::new();
    for (r, v) in slot.served() {
        if let OpenApi::Inline(source) = &v.openapi {
            definitions.insert(operations::object_name((r, v)), custom::object(r, v, source, Dialect::V2));
            definitions.insert(operations::list_name((r, v)), custom::list(r, v, Dialect::V2));
        }
    }
    (paths, definitions)
}

fn entries(map: &Map<String, Value>) -> String {
    let mut out = String::new();
    for (name, value) in map {
        if !out.is_empty() {
            out.push(',');
        }
        out.push_str(&Value::from(name.as_str()).to_string());
        out.push(':');
        out.push_str(&value.to_string());
    }
    out
}

/// The part of one group and version.
pub(super) fn fragment(slot: &Slot) -> Fragment {
    let (paths, definitions) = parts(slot);
    Fragment { paths: entries(&paths), definitions: entries(&definitions) }
}

/// The part of one group and version, in protobuf.
pub(super) fn proto_fragment(slot: &Slot) -> ProtoFragment {
    let (paths, definitions) = parts(slot);
    ProtoFragment { paths: proto::paths(&paths), definitions: proto::definitions(&definitions) }
}

/// The document as JSON.
pub(super) fn json<'a>(fragments: impl Iterator<Item = &'a Fragment>) -> Vec<u8> {
    let (mut paths, mut definitions) = (Vec::new(), vec![BUILT_IN.as_str()]);
    for f in fragments {
        paths.push(f.paths.as_str());
        definitions.push(f.definitions.as_str());
    }
    let join = |mut parts: Vec<&str>| {
        parts.retain(|p| !p.is_empty());
        parts.join(",")
    };
    format!(
        "{{\"swagger\":\"2.0\",\"info\":{{\"title\":\"Kubernetes\",\"version\":\"{VERSION}\"}},\"paths\":{{{}}},\
         \"definitions\":{{{}}},\"securityDefinitions\":{{\"BearerToken\":{{\"description\":\"Bearer Token \
         authentication\",\"type\":\"apiKey\",\"name\":\"authorization\",\"in\":\"header\"}}}},\
         \"security\":[{{\"BearerToken\":[]}}]}}",
        join(paths),
        join(definitions),
    )
    .into_bytes()
}

/// The document as protobuf.
pub(super) fn protobuf<'a>(fragments: impl Iterator<Item = &'a ProtoFragment>) -> Vec<u8> {
    let (mut paths, mut definitions) = (Vec::new(), BUILT_IN_PROTO.clone());
    for f in fragments {
        paths.extend_from_slice(&f.paths);
        definitions.extend_from_slice(&f.definitions);
    }
    proto::document("Kubernetes", VERSION, &paths, &definitions)
}

fn path_item(item: &PathItem) -> Value {
    let mut out = Map::new();
    let mut params: Vec<Value> = item
        .params
        .iter()
        .map(|(name, about)| {
            json!({"name": name, "in": "path", "description": about, "required": true, "type": "string",
                "uniqueItems": true})
        })
        .collect();
    params.push(query(&operations::PRETTY));
    out.insert("parameters".into(), params.into());
    for o in &item.operations {
        out.insert(o.method.to_owned(), operation(o));
    }
    Value::Object(out)
}

fn query(p: &operations::Param) -> Value {
    json!({"name": p.name, "in": "query", "description": p.about, "type": p.kind, "uniqueItems": true})
}

fn operation(o: &Operation) -> Value {
    let schema = match &o.response {
        Body::Definition(name) => Dialect::V2.reference(name),
        Body::Text => json!({"type": "string"}),
    };
    let mut responses = Map::new();
    responses.insert("200".into(), json!({"description": "OK", "schema": schema}));
    for code in o.codes {
        let text = if *code == "201" { "Created" } else { "Accepted" };
        responses.insert((*code).to_owned(), json!({"description": text, "schema": schema}));
    }
    responses.insert("401".into(), json!({"description": "Unauthorized"}));
    let mut params: Vec<Value> = Vec::new();
    if let Some(body) = &o.request {
        let mut param = json!({"name": "body", "in": "body", "schema": Dialect::V2.reference(body)});
        if o.action != "delete" && o.action != "deletecollection" {
            param["required"] = true.into();
        }
        params.push(param);
    }
    params.extend(o.params.iter().map(|p| query(p)));
    let (group, version, kind) = &o.gvk;
    let mut out = json!({
        "tags": [o.tag],
        "description": o.about,
        "operationId": o.id,
        "consumes": o.consumes,
        "produces": ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"],
        "schemes": ["https"],
        "responses": responses,
        "x-kubernetes-action": o.action,
        "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
    });
    if !params.is_empty() {
        out["parameters"] = params.into();
    }
    out
}
