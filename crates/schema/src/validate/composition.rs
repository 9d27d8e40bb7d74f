//! `anyOf`, `oneOf`, `allOf` and `not`, with go-openapi's choice of what to report.
//!
//! Of several failed branches the one counts that passed most checks; the first of equals. Errors of compositions
//! have no path of their own (`<nil>`).

use homeostat_model::field::{Error, quote};
use serde_json::Value;

use super::{NIL, Out};
use crate::node::Node;
use crate::path::Path;
use crate::rules::Rules;

pub(super) fn check(rules: &Rules, value: &Value, old: Option<&Value>, path: &Path<'_>, out: &mut Out) {
    if rules.any_of.is_empty() && rules.one_of.is_empty() && rules.all_of.is_empty() && rules.not.is_none() {
        return;
    }
    let start = out.errors.len();
    any_of(&rules.any_of, value, old, path, out);
    one_of(&rules.one_of, value, old, path, out);
    all_of(&rules.all_of, value, old, path, out);
    if let Some(not) = &rules.not
        && branch(not, value, old, path).errors.is_empty()
    {
        fail(path, "must not validate the schema (not)", out);
    }
    out.unique_from(start);
}

fn branch(node: &Node, value: &Value, old: Option<&Value>, path: &Path<'_>) -> Out {
    let mut out = Out::default();
    super::check(node, value, old, path, &mut out);
    out
}

fn fail(path: &Path<'_>, why: &str, out: &mut Out) {
    out.push(Error::invalid(NIL, "", format!("{} {why}", quote(&path.to_string()))));
}

fn merge(out: &mut Out, other: Out) {
    out.errors.extend(other.errors);
    out.matches += other.matches;
}

fn any_of(branches: &[Node], value: &Value, old: Option<&Value>, path: &Path<'_>, out: &mut Out) {
    let mut best: Option<Out> = None;
    for node in branches {
        let result = branch(node, value, old, path);
        if result.errors.is_empty() {
            return merge(out, result);
        }
        if best.as_ref().is_none_or(|b| result.matches > b.matches) {
            best = Some(result);
        }
    }
    if let Some(best) = best {
        fail(path, "must validate at least one schema (anyOf)", out);
        merge(out, best);
    }
}

fn one_of(branches: &[Node], value: &Value, old: Option<&Value>, path: &Path<'_>, out: &mut Out) {
    if branches.is_empty() {
        return;
    }
    let mut best: Option<Out> = None;
    let mut first: Option<Out> = None;
    let mut valid = 0;
    for node in branches {
        let result = branch(node, value, old, path);
        if result.errors.is_empty() {
            valid += 1;
            best = None;
            first.get_or_insert(result);
        } else if valid == 0 && best.as_ref().is_none_or(|b| result.matches > b.matches) {
            best = Some(result);
        }
    }
    let found = match valid {
        0 => "Found none valid".to_owned(),
        1 => {
            if let Some(first) = first {
                merge(out, first);
            }
            return;
        }
        n => format!("Found {n} valid alternatives"),
    };
    fail(path, &format!("must validate one and only one schema (oneOf). {found}"), out);
    if let Some(best) = best {
        merge(out, best);
    }
}

fn all_of(branches: &[Node], value: &Value, old: Option<&Value>, path: &Path<'_>, out: &mut Out) {
    let mut valid = 0;
    for node in branches {
        let result = branch(node, value, old, path);
        valid += usize::from(result.errors.is_empty());
        merge(out, result);
    }
    if valid < branches.len() {
        let none = if valid == 0 { ". None validated" } else { "" };
        fail(path, &format!("must validate all the schemas (allOf){none}"), out);
    }
}
