//! CEL rules of a CRD: each must compile against its schema, and none nor all together may cost too much.

use homeostat_model::field::{Error, Kind, child, index, verbatim};
use homeostat_schema::cel::check::{self, Declared};
use serde_json::Value;

use super::gotext;
use super::props::{Props, array, flag, listed, some, text};

/// The most that one expression may be estimated to cost.
const PER_EXPRESSION: u64 = 10_000_000;
/// The most for all expressions of a schema.
const PER_SCHEMA: u64 = 100_000_000;
/// How many of the dearest are named when that is exceeded.
const NAMED: usize = 4;

/// What a place in the schema means for rules.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    /// How often the place can be in one object; `None` without a limit.
    cardinality: Option<u64>,
    /// The outermost place above whose parts an update can't match with those before.
    pub(crate) uncorrelated: Option<String>,
}

impl Scope {
    pub(crate) fn root() -> Self {
        Self { cardinality: Some(1), uncorrelated: None }
    }

    /// The scope of what is directly within `schema`.
    pub(crate) fn child(&self, schema: &Props) -> Self {
        let limit = |key: &str| some(schema, key).and_then(Value::as_i64).map(|n| n.max(0) as u64);
        let most = match text(schema, "type") {
            "object" if some(schema, "additionalProperties").is_some() => limit("maxProperties"),
            "array" => limit("maxItems"),
            _ => Some(1),
        };
        let cardinality = self.cardinality.zip(most).map(|(a, b)| a.saturating_mul(b));
        Self { cardinality, uncorrelated: self.uncorrelated.clone() }
    }
}

/// What the rules of a schema cost so far, and what is wrong with them.
#[derive(Default)]
pub(crate) struct Budget {
    /// The schema was accepted before: the cost of each expression isn't judged again.
    unchanged: bool,
    total: u64,
    dearest: Vec<(u64, String)>,
    errors: Vec<Error>,
}

impl Budget {
    /// Nothing spent yet; `unchanged` as in the field.
    pub(crate) fn new(unchanged: bool) -> Self {
        Self { unchanged, ..Self::default() }
    }

    /// Checks the rules that stand directly at a schema.
    pub(crate) fn check(&mut self, path: &str, schema: &Props, root: bool, scope: &Scope) {
        if array(schema, "x-kubernetes-validations").is_empty() {
            return;
        }
        let path = child(path, "x-kubernetes-validations");
        let resource = root || flag(schema, "x-kubernetes-embedded-resource");
        let Some(declared) = Declared::of(schema, resource) else {
            let why = "internal error: failed to construct type information for x-kubernetes-validations rules: \
                       unable to convert structural schema to CEL declarations";
            self.errors.push(Error::new(Kind::Internal, path, Value::Null, why));
            return;
        };
        let times = scope.cardinality.unwrap_or_else(|| declared.cardinality());
        for (i, rule) in listed(schema, "x-kubernetes-validations") {
            self.rule(&index(&path, i), rule, &declared, times, scope);
        }
    }

    fn rule(&mut self, path: &str, rule: &Props, declared: &Declared, times: u64, scope: &Scope) {
        let checked = check::rule(rule, declared);
        self.charge(&child(path, "rule"), "estimated rule cost", checked.cost.saturating_mul(times));
        let shown = || verbatim(gotext::rule(rule));
        if let Some(why) = &checked.error {
            self.errors.push(Error::invalid(child(path, "rule"), shown(), why.as_str()));
        }
        match checked.message {
            None => {}
            Some(Ok(cost)) => {
                self.charge(&child(path, "messageExpression"), "estimated messageExpression cost", cost)
            }
            Some(Err(why)) => {
                self.errors.push(Error::invalid(child(path, "messageExpression"), shown(), why))
            }
        }
        if checked.uses_old_self {
            if let Some(within) = &scope.uncorrelated {
                let rule_text = text(rule, "rule");
                let why = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"
                );
                self.errors.push(Error::invalid(child(path, "rule"), rule_text, why));
            }
        } else if let Some(optional) = some(rule, "optionalOldSelf") {
            let why = "may not be set if oldSelf is not used in rule";
            self.errors.push(Error::invalid(child(path, "optionalOldSelf"), optional.clone(), why));
        }
    }

    fn charge(&mut self, path: &str, what: &str, cost: u64) {
        if cost > PER_EXPRESSION && !self.unchanged {
            self.errors.push(Error::forbidden(path, exceeds(what, cost, PER_EXPRESSION)));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= PER_SCHEMA / 100 {
            let at = self.dearest.iter().position(|(c, _)| *c < cost).unwrap_or(self.dearest.len());
            self.dearest.insert(at, (cost, path.to_owned()));
            self.dearest.truncate(NAMED);
        }
    }

    /// All errors, with those of the sum.
    pub(crate) fn close(mut self, path: &str) -> Vec<Error> {
        if self.total > PER_SCHEMA {
            for (_, place) in &self.dearest {
                let why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
                self.errors.push(Error::forbidden(place.as_str(), why));
            }
            let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
            self.errors.push(Error::forbidden(path, exceeds(what, self.total, PER_SCHEMA)));
        }
        self.errors
    }
}

fn exceeds(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = match factor {
        f if f > 100.0 => "more than 100x".to_owned(),
        f if f < 1.5 => format!("{f:.6}x"),
        f => format!("{f:.1}x"),
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_excess_is_told_in_three_ways() {
        let check = |cost, want: &str| {
            let text = exceeds("cost", cost, 100);
            assert!(text.starts_with(&format!("cost exceeds budget by factor of {want} (try")), "{text}");
        };
        check(101, "1.010000x");
        check(250, "2.5x");
        check(10_001, "more than 100x");
    }

    #[test]
    fn the_dearest_are_named_first() {
        let mut budget = Budget::new(true);
        for (path, cost) in [("a", 40), ("b", 60), ("c", 1), ("d", 50), ("e", 45), ("f", 55)] {
            budget.charge(path, "cost", cost * 1_000_000);
        }
        let errors = budget.close("root");
        let places: Vec<&str> = errors.iter().map(|e| e.path.as_str()).collect();
        assert_eq!(places, ["b", "f", "d", "e", "root"]);
    }
}
