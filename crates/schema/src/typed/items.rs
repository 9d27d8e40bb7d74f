//! From list items to the path elements that name them.

use serde_json::Value;

use super::types::{List, Relation};
use crate::fields::PathElement;
use crate::typed::go;

/// The element of an item of a set or map list, or why it has none.
pub(crate) fn element(list: List<'_>, item: &Value) -> Result<PathElement, String> {
    match list.relation {
        Relation::Atomic => Err("invalid indexing of non-associative list".to_owned()),
        Relation::Set => match item {
            Value::Object(_) => {
                Err("associative list without keys has an element that's a map type".to_owned())
            }
            Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
            Value::Null => {
                Err("associative list without keys has an element that's an explicit null".to_owned())
            }
            scalar => Ok(PathElement::value(scalar.clone())),
        },
        Relation::Keyed(keys) => keyed(list, keys, item),
    }
}

fn keyed(list: List<'_>, keys: &[String], item: &Value) -> Result<PathElement, String> {
    let map = match item {
        Value::Object(map) => map,
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let mut fields: Vec<(Box<str>, Value)> = Vec::with_capacity(keys.len());
    for key in keys {
        if let Some(value) = map.get(key) {
            fields.push((key.as_str().into(), value.clone()));
        } else if !list.items.is_map() {
            return Err(format!(
                "couldn't find default value for {key}: associative list may not have non-map types"
            ));
        } else if let super::Type::Node(node, _) = list.items {
            // A key that is absent has its default; without one, the item is named by the keys that it has.
            if let Some(default) = node.property(key).and_then(|n| n.default()) {
                fields.push((key.as_str().into(), default.clone()));
            }
        }
    }
    if fields.is_empty() && !keys.is_empty() {
        let names: Vec<String> = keys.iter().map(|k| homeostat_model::field::quote(k)).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] \
             (and doesn't have default values for any key fields)",
            names.join(" ")
        ));
    }
    Ok(PathElement::key(fields))
}

/// What a set or map list says when it is given something else.
pub(crate) fn not_a_list(value: &Value) -> String {
    format!("expected list, got &{{{}}}", go::v(value))
}
