//! From list items to the path elements that name them.

use serde_json::Value;

use super::types::{List, Relation};
use crate::fields::{PathElement, equal_values};
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

/// Whether two items have the same element, without making it; `None` if one of them has none.
pub(crate) fn same(list: List<'_>, a: &Value, b: &Value) -> Option<bool> {
    match list.relation {
        Relation::Atomic => None,
        Relation::Set => {
            let named = |v: &Value| !matches!(v, Value::Object(_) | Value::Array(_) | Value::Null);
            (named(a) && named(b)).then(|| equal_values(a, b))
        }
        Relation::Keyed(keys) => {
            let (a, b) = (a.as_object()?, b.as_object()?);
            let default = |key: &str| match list.items {
                super::Type::Node(node, _) => node.property(key).and_then(|n| n.default()),
                _ => None,
            };
            let mut named = (false, false);
            let mut same = true;
            for key in keys {
                let x = a.get(key).or_else(|| default(key));
                let y = b.get(key).or_else(|| default(key));
                named = (named.0 || x.is_some(), named.1 || y.is_some());
                same = same
                    && match (x, y) {
                        (Some(x), Some(y)) => equal_values(x, y),
                        (x, y) => x.is_none() && y.is_none(),
                    };
            }
            (named.0 && named.1).then_some(same)
        }
    }
}

/// Where each of `applied` stands in `live`, if all do, in this order, and none twice; `None` where that is not so
/// or would take long to find out.
pub(crate) fn align(live: &[Value], applied: &[Value], list: List<'_>) -> Option<Vec<usize>> {
    if live.len() > ALIGN {
        return None;
    }
    let mut out = Vec::with_capacity(applied.len());
    let mut next = 0;
    for item in applied {
        let mut found = None;
        for (at, other) in live.iter().enumerate() {
            if same(list, other, item)? {
                if found.is_some() || at < next {
                    return None;
                }
                found = Some(at);
            }
        }
        let at = found?;
        next = at + 1;
        out.push(at);
    }
    Some(out)
}

/// Up to so many items are compared with each other; more are sorted.
const ALIGN: usize = 48;

/// What a set or map list says when it is given something else.
pub(crate) fn not_a_list(value: &Value) -> String {
    format!("expected list, got &{{{}}}", go::v(value))
}
