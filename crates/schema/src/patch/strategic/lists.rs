//! Lists of a strategic merge patch: merging items, and the order of the result.
//!
//! Items of the patch keep the patch's order, the others the live one's; where an item of either could come
//! first, it goes by the live order if both were there, and otherwise the patch's item is first.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::lookup::ListField;
use super::{DIRECTIVE, PatchError, bad_directive, bad_type, failed, merge_map, no_merge_key};
use crate::typed::go;

/// Merges a list field.
pub(super) fn merge(
    original: Vec<Value>,
    patch: Vec<Value>,
    field: &ListField<'_>,
) -> Result<Vec<Value>, PatchError> {
    if !field.merges {
        return Ok(patch);
    }
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    if kind_of(original.iter().chain(&patch), &[&original, &patch])? {
        return merge_maps(original, patch, field);
    }
    let mut seen = BTreeSet::new();
    let merged = original.iter().chain(&patch).filter(|v| seen.insert(v.to_string())).cloned().collect();
    order(merged, &patch, &original, field.key)
}

/// Merges a list of objects by the field's key.
pub(super) fn merge_maps(
    original: Vec<Value>,
    patch: Vec<Value>,
    field: &ListField<'_>,
) -> Result<Vec<Value>, PatchError> {
    if field.key.is_empty() {
        let kind = field.items.kind();
        return Err(failed(format!("cannot merge lists without merge key for {kind}")));
    }
    let (original, patch) = take_directives(original, patch, field.key)?;
    let live_order = original.clone();
    let mut merged = original;
    let mut places = places(&merged, field.key)?;
    for item in &patch {
        let map = as_map(item)?;
        let name = map.get(field.key).ok_or_else(|| no_merge_key(map, field.key))?;
        if let Some(at) = places.get(&name.to_string()).copied() {
            let current = merged[at].as_object_mut().map(std::mem::take).unwrap_or_default();
            merged[at] = Value::Object(merge_map(current, map.clone(), field.items)?);
        } else {
            places.insert(name.to_string(), merged.len());
            merged.push(item.clone());
        }
    }
    order(merged, &patch, &live_order, field.key)
}

/// Carries out the items that are directives; gives the live items that are left and the patch's real items.
fn take_directives(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut items = Vec::with_capacity(patch.len());
    let mut replace = false;
    let mut deleted = BTreeSet::new();
    for item in patch {
        let map = as_map(&item)?;
        let Some(directive) = map.get(DIRECTIVE) else {
            items.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let name = map.get(key).ok_or_else(|| no_merge_key(map, key))?;
                deleted.insert(name.to_string());
            }
            Some("replace") => replace = true,
            Some("merge") => return Err(failed("merging lists cannot yet be specified in the patch")),
            _ => return Err(bad_directive(directive, map)),
        }
    }
    if !deleted.is_empty() {
        original.retain(|v| v.get(key).is_none_or(|name| !deleted.contains(&name.to_string())));
    }
    // All other directives beside a replacement lose their meaning.
    if replace { Ok((items, Vec::new())) } else { Ok((original, items)) }
}

/// First places of items, by the text of their key.
fn places(items: &[Value], key: &str) -> Result<BTreeMap<String, usize>, PatchError> {
    let mut out = BTreeMap::new();
    for (at, item) in items.iter().enumerate() {
        let map = item.as_object().ok_or_else(|| failed(format!("value for key {at} is not a map")))?;
        if let Some(name) = map.get(key) {
            out.entry(name.to_string()).or_insert(at);
        }
    }
    Ok(out)
}

fn as_map(item: &Value) -> Result<&Map<String, Value>, PatchError> {
    item.as_object().ok_or_else(|| bad_type("map[string]interface {}", item))
}

/// Whether the items are objects. All must be of one type, and not lists.
pub(super) fn kind_of<'a>(
    items: impl Iterator<Item = &'a Value>,
    lists: &[&Vec<Value>],
) -> Result<bool, PatchError> {
    let mut kind: Option<&Value> = None;
    for item in items {
        match kind {
            None if item.is_array() => {
                return Err(PatchError::Rejected("lists of lists are not supported".to_owned()));
            }
            None => kind = Some(item),
            Some(first) if go::type_name(first) != go::type_name(item) => {
                let lists: Vec<String> = lists.iter().map(|l| go::v(&Value::Array((*l).clone()))).collect();
                let lists = lists.join(" ");
                return Err(failed(format!("list element types are not identical: [{lists}]")));
            }
            Some(_) => {}
        }
    }
    match kind {
        Some(first) => Ok(first.is_object()),
        None => Err(failed("no elements in any of the given slices")),
    }
}

/// Whether the patch's items stand in the order that `$setElementOrder` asks for, and are all named by it.
pub(super) fn check_order(patch: &[Value], order: &[Value], key: &str) -> Result<(), PatchError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut rest = order.iter();
    for item in patch {
        if !key.is_empty() {
            as_map(item)?;
        }
        // Directives have no place in the order.
        if item.get(DIRECTIVE).is_some() {
            continue;
        }
        loop {
            let Some(next) = rest.next() else {
                return Err(failed(format!(
                    "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                    go::v(&Value::Array(patch.to_vec())),
                    go::v(&Value::Array(order.to_vec()))
                )));
            };
            if same(item, next, key)? {
                break;
            }
        }
    }
    Ok(())
}

fn same(a: &Value, b: &Value, key: &str) -> Result<bool, PatchError> {
    if key.is_empty() {
        return Ok(a == b);
    }
    let name = |v: &Value| {
        let map = as_map(v)?;
        map.get(key).cloned().ok_or_else(|| no_merge_key(map, key))
    };
    Ok(name(a)? == name(b)?)
}

/// Orders a merged list: items that `wanted` names in its order, the others as they stood live, and the two
/// interleaved by the live order.
pub(super) fn order(
    merged: Vec<Value>,
    wanted: &[Value],
    live: &[Value],
    key: &str,
) -> Result<Vec<Value>, PatchError> {
    let name = |item: &Value| -> Result<String, PatchError> {
        if key.is_empty() {
            return Ok(item.to_string());
        }
        let map = as_map(item)?;
        map.get(key).map(ToString::to_string).ok_or_else(|| no_merge_key(map, key))
    };
    let rank = |list: &[Value]| -> Result<BTreeMap<String, usize>, PatchError> {
        let mut out = BTreeMap::new();
        for (i, item) in list.iter().enumerate() {
            out.entry(name(item)?).or_insert(i);
        }
        Ok(out)
    };
    let (wanted, live) = (rank(wanted)?, rank(live)?);
    let (mut ours, mut others) = (Vec::new(), Vec::new());
    for item in merged {
        let name = name(&item)?;
        match wanted.get(&name) {
            Some(at) => ours.push((*at, live.get(&name).copied(), item)),
            None => others.push((live.get(&name).copied().unwrap_or(0), live.get(&name).copied(), item)),
        }
    }
    ours.sort_by_key(|(at, ..)| *at);
    others.sort_by_key(|(at, ..)| *at);

    let mut out = Vec::with_capacity(ours.len() + others.len());
    let (mut ours, mut others) = (ours.into_iter().peekable(), others.into_iter().peekable());
    loop {
        let other_first = match (others.peek(), ours.peek()) {
            (None, None) => break,
            (Some((_, Some(a), _)), Some((_, Some(b), _))) => a < b,
            (Some(_), None) => true,
            _ => false,
        };
        let next = if other_first { others.next() } else { ours.next() };
        out.extend(next.map(|(_, _, item)| item));
    }
    Ok(out)
}
