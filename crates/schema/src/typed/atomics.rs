//! Places of an object that are replaced as a whole when it is merged into another.
//!
//! Only what the schema names is looked at, as in the reference: values of maps without names are not.

use serde_json::Value;

use super::types::{Form, Relation, Type};

/// Paths of the atomic lists, maps and objects in `object`.
pub(crate) fn atomics(object: &Value, ty: Type<'_>) -> Vec<String> {
    let mut out = Vec::new();
    find(object, ty, "", &mut out);
    out
}

fn find(value: &Value, ty: Type<'_>, path: &str, out: &mut Vec<String>) {
    match (ty.form(value), value) {
        (Form::Map, Value::Object(map)) => {
            if ty.is_atomic_map() {
                out.push(path.to_owned());
            }
            for (name, value) in map {
                if let Some(ty) = ty.named(name) {
                    find(value, ty, &format!("{path}.{name}"), out);
                }
            }
        }
        (Form::List, Value::Array(items)) => {
            let Some(list) = ty.list() else { return };
            if matches!(list.relation, Relation::Atomic) {
                out.push(path.to_owned());
            }
            for (i, item) in items.iter().enumerate() {
                find(item, list.items, &format!("{path}[{i}]"), out);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Schema;
    use crate::typed::atomics;

    #[test]
    fn what_is_replaced_whole_is_found() {
        let schema = Schema::compile(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "list": {"type": "array", "items": {"type": "string"}},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": {"type": "string"},
                    "tags": {"type": "array", "items": {"type": "string"}}}}},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}))
        .unwrap();
        for (spec, want) in [
            (json!({"set": ["a"], "keyed": [{"name": "a"}], "any": {"x": [1]}}), &[][..]),
            (json!({"list": ["a"], "whole": {"a": "b"}}), &[".spec.list", ".spec.whole"]),
            (json!({"keyed": [{"name": "a"}, {"name": "b", "tags": []}]}), &[".spec.keyed[1].tags"]),
        ] {
            assert_eq!(atomics(&json!({"spec": spec}), &schema), want, "{spec}");
        }
    }
}
