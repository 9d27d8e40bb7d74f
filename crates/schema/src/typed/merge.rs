//! Merging an applied object into the live one.
//!
//! Nothing is removed here: what the applied object leaves out stays. Values of the applied object win; lists that
//! merge take the applied order for the items that are applied and keep the others where they stand.

use serde_json::Value;

use super::items;
use super::types::{Form, List, Relation, Type};
use crate::fields::{PathElement, equal_values};

/// A live list has an item without a key, and can't be merged.
pub(crate) struct Unnamed;

/// Merges `applied`, which was checked, into `live`.
pub(crate) fn merge(live: &mut Value, applied: &Value, ty: Type<'_>) -> Result<(), Unnamed> {
    match ty.settle(ty.form(applied)) {
        Form::Scalar => live.clone_from(applied),
        Form::Map | Form::Open => {
            let empty = applied.as_object().is_none_or(|m| m.is_empty());
            match live {
                // An empty or null object leaves what is there, unless the object is replaced whole.
                Value::Object(map) if !ty.is_atomic_map() && (!empty || !map.is_empty()) => {
                    for (key, value) in applied.as_object().into_iter().flatten() {
                        match (map.get_mut(key), ty.field(key)) {
                            (Some(current), Some(child)) => merge(current, value, child)?,
                            (Some(current), None) => current.clone_from(value),
                            (None, _) => {
                                map.insert(key.clone(), value.clone());
                            }
                        }
                    }
                }
                other => other.clone_from(applied),
            }
        }
        Form::List => {
            let applied_items = applied.as_array().map_or(&[][..], Vec::as_slice);
            match (live, ty.list()) {
                (Value::Array(current), Some(list))
                    if !matches!(list.relation, Relation::Atomic)
                        && (!applied_items.is_empty() || !current.is_empty()) =>
                {
                    if let Some(places) = items::align(current, applied_items, list) {
                        for (at, item) in places.into_iter().zip(applied_items) {
                            merge(&mut current[at], item, list.items)?;
                        }
                    } else {
                        *current = merge_lists(current, applied_items, list)?;
                    }
                }
                (other, _) => other.clone_from(applied),
            }
        }
    }
    Ok(())
}

/// Whether merging `applied` would leave `live` as it is; may say no where it would.
pub(crate) fn covers(live: &Value, applied: &Value, ty: Type<'_>) -> bool {
    match (ty.settle(ty.form(applied)), live, applied) {
        (Form::Map, Value::Object(live), Value::Object(applied)) if !ty.is_atomic_map() => {
            applied.iter().all(|(key, value)| match (live.get(key), ty.field(key)) {
                (Some(current), Some(child)) => covers(current, value, child),
                _ => false,
            })
        }
        (Form::List, Value::Array(live), Value::Array(applied)) => match ty.list() {
            Some(list) if !matches!(list.relation, Relation::Atomic) => items::align(live, applied, list)
                .is_some_and(|places| {
                    places.into_iter().zip(applied).all(|(at, item)| covers(&live[at], item, list.items))
                }),
            _ => live.len() == applied.len() && live.iter().zip(applied).all(|(a, b)| equal_values(a, b)),
        },
        (_, live, applied) => equal_values(live, applied),
    }
}

/// One side of a merge: its items with their elements, in order.
struct Side<T> {
    items: Vec<(PathElement, T)>,
    /// Places in `items`, sorted by element; of items that stand twice, all.
    index: Vec<usize>,
}

impl<T> Side<T> {
    fn new(items: Vec<(PathElement, T)>) -> Self {
        let mut index: Vec<usize> = (0..items.len()).collect();
        index.sort_by(|a, b| items[*a].0.cmp(&items[*b].0));
        Self { items, index }
    }

    fn places(&self, element: &PathElement) -> &[usize] {
        let start = self.index.partition_point(|i| self.items[*i].0 < *element);
        let len = self.index[start..].partition_point(|i| self.items[*i].0 == *element);
        &self.index[start..start + len]
    }

    fn has(&self, element: &PathElement) -> bool {
        !self.places(element).is_empty()
    }
}

fn merge_lists(live: &mut [Value], applied: &[Value], ty: List<'_>) -> Result<Vec<Value>, Unnamed> {
    let names: Result<Vec<PathElement>, _> = live.iter().map(|item| items::element(ty, item)).collect();
    let names = names.map_err(|_| Unnamed)?;
    let mut live: Side<Value> =
        Side::new(names.into_iter().zip(live.iter_mut().map(std::mem::take)).collect());
    let applied: Side<&Value> =
        Side::new(applied.iter().filter_map(|i| items::element(ty, i).ok().map(|e| (e, i))).collect());

    // Items of both sides, in the applied order: the merge goes from one to the next.
    let shared: Vec<usize> = (0..applied.items.len()).filter(|r| live.has(&applied.items[*r].0)).collect();
    let mut next_shared = 0;

    let mut out = Vec::with_capacity(live.items.len().max(applied.items.len()));
    let mut merged: Vec<bool> = vec![false; applied.items.len()];
    let (mut l, mut r) = (0, 0);
    while l < live.items.len() || r < applied.items.len() {
        if l < live.items.len() && r < applied.items.len() {
            let element = &live.items[l].0;
            if *element == applied.items[r].0 {
                merged[r] = true;
                out.push(merged_item(&mut live, &applied, r, ty)?);
                l += 1;
                r += 1;
                next_shared += 1;
                continue;
            }
            let other_first = shared.get(next_shared).is_some_and(|next| applied.items[*next].0 != *element);
            if other_first && applied.has(element) {
                // Shared, but it is not its turn yet: it will come with the applied item.
                l += 1;
                continue;
            }
        }
        if l < live.items.len() {
            match applied.places(&live.items[l].0) {
                [] => {
                    out.push(std::mem::take(&mut live.items[l].1));
                    l += 1;
                    continue;
                }
                // Already merged with the applied item.
                [at, ..] if merged[*at] => l += 1,
                _ => {}
            }
        }
        if r < applied.items.len() {
            merged[r] = true;
            out.push(merged_item(&mut live, &applied, r, ty)?);
            if shared.get(next_shared) == Some(&r) {
                next_shared += 1;
            }
            r += 1;
        }
    }
    Ok(out)
}

/// The applied item `r`, merged into its live counterpart if there is exactly one.
fn merged_item(
    live: &mut Side<Value>,
    applied: &Side<&Value>,
    r: usize,
    ty: List<'_>,
) -> Result<Value, Unnamed> {
    let (element, item) = &applied.items[r];
    match live.places(element) {
        [one] => {
            let at = *one;
            let mut current = std::mem::take(&mut live.items[at].1);
            merge(&mut current, item, ty.items)?;
            Ok(current)
        }
        _ => Ok((*item).clone()),
    }
}
