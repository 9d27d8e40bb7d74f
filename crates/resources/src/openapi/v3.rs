//! The OpenAPI 3 document of a group and version.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::operations::{self, Body, Operation, PathItem};
use super::published::{self, Dialect};
use super::{Slot, VERSION, custom};
use crate::definition::OpenApi;

/// Media types that objects come in.
const JSON: [&str; 3] = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// The whole document.
pub(super) fn document(slot: &Slot) -> Value {
    let paths = operations::paths(slot);
    let mut roots = BTreeSet::from([custom::OBJECT_META.to_owned(), custom::LIST_META.to_owned()]);
    for operation in paths.values().flat_map(|p| &p.operations) {
        roots.extend(operation.request.clone());
        if let Body::Definition(name) = &operation.response {
            roots.insert(name.clone());
        }
    }
    let mut schemas = published::closure(roots, Dialect::V3);
    for (r, v) in slot.served() {
        if let OpenApi::Inline(source) = &v.openapi {
            schemas.insert(operations::object_name((r, v)), custom::object(r, v, source, Dialect::V3));
            schemas.insert(operations::list_name((r, v)), custom::list(r, v, Dialect::V3));
        }
    }
    let custom_only = slot.served().all(|(_, v)| matches!(v.openapi, OpenApi::Inline(_)));
    add_common(slot, custom_only, &mut schemas);
    let info = if custom_only {
        json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"})
    } else {
        json!({"title": "Kubernetes", "version": VERSION})
    };
    let paths: Map<String, Value> = paths.into_iter().map(|(path, item)| (path, path_item(&item))).collect();
    let mut components = json!({"schemas": schemas});
    if !custom_only {
        let about = "Bearer Token authentication";
        let scheme = json!({"type": "apiKey", "description": about, "name": "authorization", "in": "header"});
        components["securitySchemes"] = json!({"BearerToken": scheme});
    }
    json!({"openapi": "3.0.0", "info": info, "paths": paths, "components": components})
}

/// Bodies of deletes and events of watches are known in every built-in group; kubectl looks the kinds up in the
/// group of the object.
fn add_common(slot: &Slot, custom_only: bool, schemas: &mut BTreeMap<String, Value>) {
    for name in ["DeleteOptions", "WatchEvent"] {
        let full = format!("io.k8s.apimachinery.pkg.apis.meta.v1.{name}");
        if name == "WatchEvent" && !custom_only {
            schemas.extend(published::closure(BTreeSet::from([full.clone()]), Dialect::V3));
        }
        if let Some(Value::Object(schema)) = schemas.get_mut(&full) {
            let mut kinds = vec![json!({"group": "", "kind": name, "version": "v1"})];
            if !slot.group.is_empty() {
                kinds.push(json!({"group": slot.group, "kind": name, "version": slot.version}));
            }
            schema.insert("x-kubernetes-group-version-kind".into(), kinds.into());
        }
    }
}

fn path_item(item: &PathItem) -> Value {
    let mut out = Map::new();
    let mut params: Vec<Value> = item
        .params
        .iter()
        .map(|(name, about)| {
            let schema = json!({"type": "string", "uniqueItems": true});
            json!({"name": name, "in": "path", "description": about, "required": true, "schema": schema})
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
    let schema = json!({"type": p.kind, "uniqueItems": true});
    json!({"name": p.name, "in": "query", "description": p.about, "schema": schema})
}

fn operation(o: &Operation) -> Value {
    let response = match &o.response {
        Body::Definition(name) => {
            let content: Map<String, Value> = JSON
                .iter()
                .map(|m| ((*m).to_owned(), json!({"schema": Dialect::V3.reference(name)})))
                .collect();
            json!({"description": "OK", "content": content})
        }
        Body::Text => json!({"description": "OK", "content": {"*/*": {"schema": {"type": "string"}}}}),
    };
    let mut responses = Map::new();
    responses.insert("200".into(), response.clone());
    for code in o.codes {
        let mut other = response.clone();
        other["description"] = if *code == "201" { "Created" } else { "Accepted" }.into();
        responses.insert((*code).to_owned(), other);
    }
    responses.insert("401".into(), json!({"description": "Unauthorized"}));
    let (group, version, kind) = &o.gvk;
    let mut out = json!({
        "tags": [o.tag],
        "description": o.about,
        "operationId": o.id,
        "responses": responses,
        "x-kubernetes-action": o.action,
        "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
    });
    if !o.params.is_empty() {
        out["parameters"] = o.params.iter().map(|p| query(p)).collect();
    }
    if let Some(body) = &o.request {
        let content: Map<String, Value> = o
            .consumes
            .iter()
            .map(|m| ((*m).to_owned(), json!({"schema": Dialect::V3.reference(body)})))
            .collect();
        out["requestBody"] = json!({"content": content});
        if o.action != "delete" && o.action != "deletecollection" {
            out["requestBody"]["required"] = true.into();
        }
    }
    out
}
