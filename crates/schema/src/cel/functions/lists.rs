//! Functions of lists and sets.

use std::cmp::Ordering;

use crate::cel::eval::{Eval, Fault, Out, fault, no_overload};
use crate::cel::functions::arithmetic;
use crate::cel::value::Val;

/// Numbers that `lists.range` may make.
const MAX_RANGE: i64 = 1_000_000;

pub(super) fn call(eval: &mut Eval<'_>, name: &str, target: Option<&Val>, args: &[Val]) -> Option<Out> {
    if let ("sets.contains" | "sets.intersects" | "sets.equivalent", None, [Val::List(a), Val::List(b)]) =
        (name, target, args)
    {
        if let Err(why) = eval.charge(a.items.len() as u64 * b.items.len() as u64) {
            return Some(Err(why));
        }
        let within = |v: &Val, list: &[Val]| list.iter().any(|w| w.equals(v));
        let all_of_b = || b.items.iter().all(|v| within(v, &a.items));
        return Some(Ok(Val::Bool(match name {
            "sets.contains" => all_of_b(),
            "sets.intersects" => a.items.iter().any(|v| within(v, &b.items)),
            _ => all_of_b() && a.items.iter().all(|v| within(v, &b.items)),
        })));
    }
    if let ("lists.range", None, [Val::Int(n)]) = (name, target, args) {
        if *n > MAX_RANGE {
            return Some(Err(Fault::Budget));
        }
        if let Err(why) = eval.charge((*n).max(0) as u64) {
            return Some(Err(why));
        }
        return Some(Ok(Val::list((0..*n).map(Val::Int).collect())));
    }
    let Some(Val::List(list)) = target else { return None };
    let items = &list.items;
    if let Err(why) = eval.charge(items.len() as u64) {
        return Some(Err(why));
    }
    Some(match (name, args) {
        ("isSorted", []) => sorted(items).map(Val::Bool),
        ("sum", []) => sum(items),
        ("min", []) => extreme(items, Ordering::Less, "min"),
        ("max", []) => extreme(items, Ordering::Greater, "max"),
        ("indexOf", [value]) => Ok(Val::Int(place(items.iter().position(|v| v.equals(value))))),
        ("lastIndexOf", [value]) => Ok(Val::Int(place(items.iter().rposition(|v| v.equals(value))))),
        ("distinct", []) => distinct(eval, items),
        ("reverse", []) => Ok(Val::list(items.iter().rev().cloned().collect())),
        ("sort", []) => match sorted_order(items) {
            Ok(order) => Ok(Val::list(order.into_iter().map(|i| items[i].clone()).collect())),
            Err(why) => Err(why),
        },
        ("flatten", []) => flatten(eval, items, 1),
        ("flatten", [Val::Int(depth)]) => {
            if *depth < 0 {
                fault("level must be non-negative")
            } else {
                flatten(eval, items, *depth)
            }
        }
        ("slice", [Val::Int(from), Val::Int(to)]) => slice(items, *from, *to),
        ("first", []) => Ok(items.first().map_or(Val::NONE, |v| Val::some(v.clone()))),
        ("last", []) => Ok(items.last().map_or(Val::NONE, |v| Val::some(v.clone()))),
        _ => return None,
    })
}

fn place(at: Option<usize>) -> i64 {
    at.map_or(-1, |i| i as i64)
}

fn order(a: &Val, b: &Val) -> Result<Ordering, Fault> {
    a.compare(b).map_or_else(no_overload, Ok)
}

fn sorted(items: &[Val]) -> Result<bool, Fault> {
    for pair in items.windows(2) {
        if order(&pair[0], &pair[1])? == Ordering::Greater {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Indexes of the values in ascending order, equal ones as they stand.
pub(in crate::cel) fn sorted_order(keys: &[Val]) -> Result<Vec<usize>, Fault> {
    if let Some(first) = keys.first() {
        for key in keys {
            order(first, key)?;
        }
    }
    let mut indexes: Vec<usize> = (0..keys.len()).collect();
    indexes.sort_by(|a, b| keys[*a].compare(&keys[*b]).unwrap_or(Ordering::Equal));
    Ok(indexes)
}

fn sum(items: &[Val]) -> Out {
    let Some((first, rest)) = items.split_first() else { return Ok(Val::Int(0)) };
    if !matches!(first, Val::Int(_) | Val::Uint(_) | Val::Double(_) | Val::Duration(_)) {
        return no_overload();
    }
    rest.iter().try_fold(first.clone(), |sum, v| arithmetic::add(&sum, v))
}

fn extreme(items: &[Val], wanted: Ordering, name: &str) -> Out {
    let Some((first, rest)) = items.split_first() else {
        return fault(format!("{name} called on empty list"));
    };
    let mut best = first;
    for value in rest {
        if order(value, best)? == wanted {
            best = value;
        }
    }
    Ok(best.clone())
}

fn distinct(eval: &mut Eval<'_>, items: &[Val]) -> Out {
    let mut out: Vec<Val> = Vec::new();
    for value in items {
        eval.charge(out.len() as u64)?;
        if !out.iter().any(|v| v.equals(value)) {
            out.push(value.clone());
        }
    }
    Ok(Val::list(out))
}

fn flatten(eval: &mut Eval<'_>, items: &[Val], depth: i64) -> Out {
    let mut out = items.to_vec();
    for _ in 0..depth {
        if !out.iter().any(|v| matches!(v, Val::List(_))) {
            break;
        }
        let mut next = Vec::new();
        for value in out {
            match value {
                Val::List(inner) => next.extend(inner.items.iter().cloned()),
                other => next.push(other),
            }
            eval.charge(1)?;
        }
        out = next;
    }
    Ok(Val::list(out))
}

fn slice(items: &[Val], from: i64, to: i64) -> Out {
    if from < 0 || to < 0 {
        return fault(format!("cannot slice({from}, {to}), negative indexes not supported"));
    }
    if from > to {
        return fault(format!(
            "cannot slice({from}, {to}), start index must be less than or equal to end index"
        ));
    }
    match items.get(from as usize..to as usize) {
        Some(part) => Ok(Val::list(part.to_vec())),
        None => fault(format!("cannot slice({from}, {to}), list is length {}", items.len())),
    }
}
