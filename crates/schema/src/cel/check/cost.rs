//! What operations cost at least and at most, and how large their results get: cel-go's estimator.

use super::infer::Node;
use super::types::Type;

/// The least and the most of something.
pub(super) type Range = (u64, u64);

/// Nothing is known.
pub(super) const UNKNOWN: Range = (0, u64::MAX);
const PER_CHARACTER: f64 = 0.1;
const PER_PATTERN: f64 = 0.25;
/// Bytes of the longest pattern of a named format.
const FORMAT_PATTERN: f64 = 128.0;

pub(super) fn add(a: Range, b: Range) -> Range {
    (a.0.saturating_add(b.0), a.1.saturating_add(b.1))
}

pub(super) fn multiply(a: Range, b: Range) -> Range {
    (a.0.saturating_mul(b.0), a.1.saturating_mul(b.1))
}

pub(super) fn union(a: Range, b: Range) -> Range {
    (a.0.min(b.0), a.1.max(b.1))
}

pub(super) fn scale(a: Range, factor: f64) -> Range {
    // Casts of floats saturate.
    let one = |n: u64| (n as f64 * factor).ceil() as u64;
    (one(a.0), one(a.1))
}

/// The cost of a call without that of its target and arguments, and the size of its result where it is known.
pub(super) fn call(function: &str, target: Option<&Node>, args: &[Node]) -> (Range, Option<Range>) {
    let size = |n: Option<&Node>| n.map_or(UNKNOWN, Node::size);
    let arg = |i: usize| size(args.get(i));
    let characters = |r: Range| scale(r, PER_CHARACTER);
    match function {
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" if target.is_some() => {
            let mut each = (1, 1);
            let Some(Type::List(item)) = target.map(|t| &t.ty) else {
                return (characters(size(target)), None);
            };
            if matches!(**item, Type::Text | Type::Bytes) {
                each = add(each, characters(target.map_or(UNKNOWN, Node::item_size)));
            }
            (multiply(size(target), each), None)
        }
        "url" => (characters(arg(0)), Some(arg(0))),
        "lowerAscii" | "upperAscii" | "substring" | "trim" => (characters(size(target)), Some(size(target))),
        "replace" => (scale(size(target), 2.0 * PER_CHARACTER), Some(replaced(size(target), arg(0), arg(1)))),
        "split" => {
            let most = args.get(1).and_then(|n| n.literal).map_or(size(target).1, |n| n as u64);
            (scale(size(target), 2.0 * PER_CHARACTER), Some((0, most)))
        }
        "join" => {
            let list = size(target);
            let mut joined = multiply(list, target.map_or(UNKNOWN, Node::item_size));
            if !args.is_empty() {
                let separators = (list.0.saturating_sub(1), list.1.saturating_sub(1));
                joined = add(joined, multiply(arg(0), separators));
            }
            (characters(joined), Some(joined))
        }
        "find" | "findAll" => {
            let (text, pattern) = (characters(add(size(target), (1, 1))), scale(arg(0), PER_PATTERN));
            (multiply(text, pattern), Some((0, size(target).1)))
        }
        "matches" => {
            let (text, pattern) = if target.is_some() { (size(target), arg(0)) } else { (arg(0), arg(1)) };
            // Only the method is looked at; the function costs one.
            if target.is_none() {
                return ((1, 1), None);
            }
            (multiply(characters(add(text, (1, 1))), scale(pattern, PER_PATTERN)), None)
        }
        "contains" => (multiply(characters(size(target)), characters(arg(0))), None),
        "startsWith" | "endsWith" => (characters(arg(0)), None),
        "cidr" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
            (characters(arg(0)), None)
        }
        "ip" if target.is_none() => (characters(arg(0)), None),
        "ip.isCanonical" => (scale(arg(0), 2.0 * PER_CHARACTER), None),
        "containsIP" | "containsCIDR" => {
            let mut cost = characters((8, 32));
            if function == "containsCIDR" {
                cost = add(cost, add(characters((4, 16)), (1, 1)));
            }
            if args.first().is_some_and(|a| matches!(a.ty, Type::Text)) {
                cost = add(cost, characters(arg(0)));
            }
            (cost, None)
        }
        "validate" => (scale(characters(arg(0)), FORMAT_PATTERN * PER_PATTERN), None),
        "format" => (characters(size(target)), None),
        "strings.quote" => {
            let text = arg(0);
            (characters(text), Some((text.0.saturating_add(2), text.1.saturating_mul(2).saturating_add(2))))
        }
        "bytes" if args.first().is_some_and(|a| matches!(a.ty, Type::Text)) => {
            (characters(arg(0)), Some((arg(0).0, arg(0).1.saturating_mul(4))))
        }
        "string" if args.first().is_some_and(|a| matches!(a.ty, Type::Bytes)) => {
            (characters(arg(0)), Some((arg(0).0 / 4, arg(0).1)))
        }
        "sets.contains" | "sets.intersects" => (add(multiply(arg(0), arg(1)), (1, 1)), None),
        "sets.equivalent" => (add(scale(multiply(arg(0), arg(1)), 2.0), (1, 1)), None),
        "distinct" | "reverse" | "sort" | "flatten" => {
            let n = size(target);
            let cost = if function == "distinct" { multiply(n, n) } else { n };
            (add(cost, (11, 11)), Some(if function == "flatten" { UNKNOWN } else { n }))
        }
        "slice" => (add(size(target), (11, 11)), Some((0, size(target).1))),
        "lists.range" => {
            let most = args.first().and_then(|n| n.literal).map_or(u64::MAX, |n| n.max(0) as u64);
            (add((most.min(1), most), (11, 11)), Some((most, most)))
        }
        "@in" if matches!(args.get(1).map(|a| &a.ty), Some(Type::List(_))) => (arg(1), None),
        "_+_" => match args.first().map(|a| &a.ty) {
            Some(Type::List(_)) => ((1, 1), Some(add(arg(0), arg(1)))),
            Some(Type::Text | Type::Bytes) => {
                let joined = add(arg(0), arg(1));
                (characters(joined), Some(joined))
            }
            // Of values that aren't known any overload may be meant.
            Some(Type::Dyn) => (characters(add(arg(0), arg(1))), Some(add(arg(0), arg(1)))),
            _ => ((1, 1), None),
        },
        "_==_" | "_!=_" => {
            let opaque = |n: &Node| matches!(&n.ty, Type::Library(_));
            if function == "_==_" && args.len() == 2 && args.iter().all(opaque) {
                return ((1, 1), None);
            }
            (comparison(arg(0), arg(1)), None)
        }
        "_<_" | "_<=_" | "_>_" | "_>=_"
            if args.iter().any(|a| matches!(a.ty, Type::Text | Type::Bytes | Type::Dyn)) =>
        {
            (comparison(arg(0), arg(1)), None)
        }
        _ => ((1, 1), None),
    }
}

fn comparison(a: Range, b: Range) -> Range {
    let most = a.1.min(b.1);
    scale((most.min(1), most), PER_CHARACTER)
}

/// The length of a text after replacement.
fn replaced(text: Range, from: Range, to: Range) -> Range {
    let divided = |a: u64, b: u64| (a as f64 / b as f64).ceil() as u64;
    let (most, kept_most) = if from.0 == 0 {
        (text.1.saturating_add(1), text.1)
    } else if to.1 <= from.0 {
        (0, text.1)
    } else {
        (divided(text.1, from.0), 0)
    };
    let (least, kept_least) = if from.1 == 0 {
        (text.0.saturating_add(1), text.0)
    } else if from.1 <= to.0 {
        (0, text.0)
    } else {
        (divided(text.0, from.1), 0)
    };
    add(multiply((least, most), to), (kept_least, kept_most))
}
