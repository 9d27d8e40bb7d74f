//! Evaluating the rules of a schema at every place of an object.
//!
//! Old values are found by name, and in list maps by key. A rule that an unchanged value breaks is a warning, unless
//! it compares with the old value.

use homeostat_model::field::{self, Error, Kind as Wrong};
use serde_json::Value;

use super::eval::{Eval, Fault, Scope};
use super::value::Val;
use super::{Rule, convert};
use crate::golang;
use crate::node::{ListType, Node};
use crate::path::Path;
use crate::validate::{Report, find_item};

/// What all rules of one object may cost together.
const OBJECT_BUDGET: u64 = 10_000_000;
/// What one evaluation of one rule may cost.
const CALL_BUDGET: u64 = 1_000_000;
/// Bytes that a message expression may give.
const MAX_MESSAGE: usize = 5 * 1024;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// Evaluates all rules of `root` on `new`.
pub(crate) fn evaluate(root: &Node, new: &Value, old: Option<&Value>, report: &mut Report) {
    let mut walk = Walk { budget: OBJECT_BUDGET, spent: false, report };
    let correlated = Correlated { current: old.map(|old| (new, old)), nearest: None };
    walk.place(root, root, new, old, &Path::Root, correlated);
}

/// Pairs of new and old values, to tell whether a broken rule was broken before.
#[derive(Clone, Copy)]
struct Correlated<'a> {
    current: Option<(&'a Value, &'a Value)>,
    /// The nearest place above that has an old value.
    nearest: Option<(&'a Value, &'a Value)>,
}

impl<'a> Correlated<'a> {
    fn unchanged(self) -> bool {
        self.current.or(self.nearest).is_some_and(|(new, old)| new == old)
    }

    fn child(self, new: &'a Value, old: Option<&'a Value>) -> Self {
        match self.current {
            None => self,
            Some(_) => Self { current: old.map(|old| (new, old)), nearest: self.current },
        }
    }
}

struct Walk<'a> {
    budget: u64,
    /// The budget is spent: nothing more is evaluated.
    spent: bool,
    report: &'a mut Report,
}

impl Walk<'_> {
    /// `rules` has the rules, `types` the structure; they differ inside `allOf`.
    fn place<'a>(
        &mut self,
        rules: &Node,
        types: &Node,
        new: &'a Value,
        old: Option<&'a Value>,
        path: &Path<'_>,
        correlated: Correlated<'a>,
    ) {
        if !rules.rules_below || new.is_null() || self.spent {
            return;
        }
        let old = old.filter(|o| !o.is_null());
        if let Some(own) = &rules.rules {
            if !own.cel.is_empty() {
                self.rules(&own.cel, types, new, old, path, correlated);
            }
            for branch in &own.all_of {
                let correlated = Correlated { current: None, nearest: correlated.nearest };
                self.place(branch, types, new, old, path, correlated);
            }
        }
        match new {
            Value::Array(items) => {
                let (Some(rules), Some(item)) = (rules.items(), types.items()) else { return };
                let old = old.and_then(Value::as_array).filter(|_| types.list_type == ListType::Map);
                for (i, value) in items.iter().enumerate() {
                    let old = old.and_then(|old| find_item(&types.list_keys, old, value));
                    self.place(rules, item, value, old, &path.index(i), correlated.child(value, old));
                }
            }
            Value::Object(map) => {
                let old = old.and_then(Value::as_object);
                for (name, value) in map {
                    let old = old.and_then(|old| old.get(name));
                    let hidden = path.is_root() && matches!(name.as_str(), "apiVersion" | "kind");
                    let correlated = if hidden {
                        Correlated { current: None, nearest: None }
                    } else {
                        correlated.child(value, old)
                    };
                    if types.is_resource && name == "metadata" {
                        if let Some(metadata) = &rules.metadata_rules {
                            self.place(metadata, metadata, value, old, &path.field(name), correlated);
                        }
                    } else if let (Some(rules), Some(child)) = (rules.property(name), types.property(name)) {
                        self.place(rules, child, value, old, &path.field(name), correlated);
                    } else if let (Some(rules), Some(child)) = (rules.additional(), types.additional()) {
                        self.place(rules, child, value, old, &path.key(name), correlated);
                    }
                }
            }
            _ => {}
        }
    }

    fn rules(
        &mut self,
        rules: &[Rule],
        node: &Node,
        new: &Value,
        old: Option<&Value>,
        path: &Path<'_>,
        correlated: Correlated<'_>,
    ) {
        let place = Place { node, new, path };
        let this = convert::value(Some(node), new);
        let old = old.map(|old| convert::value(Some(node), old));
        for rule in rules {
            let Err(fault) = self.rule(rule, &place, &this, old.as_ref(), correlated) else { continue };
            self.report.errors.push(place.invalid(fault));
            if self.spent {
                return;
            }
        }
    }

    /// Evaluates one rule; `Err` is why it couldn't be.
    fn rule(
        &mut self,
        rule: &Rule,
        place: &Place<'_>,
        this: &Val,
        old: Option<&Val>,
        correlated: Correlated<'_>,
    ) -> Result<(), String> {
        let program =
            rule.program.as_ref().map_err(|why| format!("rule compile error: compilation failed: {why}"))?;
        if rule.uses_old_self && old.is_none() && !rule.optional_old_self {
            return Ok(());
        }
        let optional =
            rule.optional_old_self.then(|| Val::Optional(old.map(|old| std::sync::Arc::new(old.clone()))));
        let scope = Scope::Root(this, optional.as_ref().or(old));
        let shown = rule.shown();
        match self.run(program, &scope) {
            Ok(Val::Bool(true)) => return Ok(()),
            Ok(Val::Bool(false)) => {}
            Ok(_) => return Err(format!("cel expression must evaluate to a bool evaluating rule: {shown}")),
            Err(Fault::Budget) if self.budget == 0 => {
                self.spent = true;
                return Err(OUT_OF_BUDGET.to_owned());
            }
            Err(Fault::Budget) => {
                self.spent = true;
                return Err(format!(
                    "'operation cancelled: actual cost limit exceeded': no further validation rules will be run \
                     due to call cost exceeds limit for rule: {shown}"
                ));
            }
            Err(Fault::Error(why)) if why.starts_with("no such overload") => {
                return Err(format!(
                    "'{why}': call arguments did not match a supported operator, function or macro signature for \
                     rule: {shown}"
                ));
            }
            Err(Fault::Error(why)) => return Err(format!("{why} evaluating rule: {shown}")),
        }
        let detail = match self.message(rule, &Scope::Root(this, old)) {
            Some(message) => message,
            None => rule.message.clone().unwrap_or_else(|| format!("failed rule: {}", rule.source)),
        };
        let value = match place.new {
            Value::Object(_) | Value::Array(_) => field::omitted(),
            scalar => scalar.clone(),
        };
        let at = match (&rule.field_path, place.path.is_root()) {
            (None, _) => place.path(),
            (Some(below), true) => below.clone(),
            (Some(below), false) => format!("{}.{below}", place.path),
        };
        let error = match rule.reason {
            Wrong::Forbidden => Error::forbidden(at, detail),
            Wrong::Required => Error::required(at, detail),
            Wrong::Duplicate => Error::duplicate(at, value),
            _ => Error::invalid(at, value, detail),
        };
        if !rule.uses_old_self && correlated.unchanged() {
            self.report.warnings.push(error.to_string());
        } else {
            self.report.errors.push(error);
        }
        Ok(())
    }

    fn run(&mut self, program: &super::Expr, scope: &Scope<'_>) -> Result<Val, Fault> {
        let limit = self.budget.min(CALL_BUDGET);
        let mut eval = Eval { budget: limit, authorizer: None };
        let result = eval.eval(program, scope);
        let cost = if result == Err(Fault::Budget) { limit } else { limit - eval.budget };
        self.budget -= cost;
        result
    }

    /// What `messageExpression` gives, if it gives a good message.
    fn message(&mut self, rule: &Rule, scope: &Scope<'_>) -> Option<String> {
        let expression = rule.message_expression.as_ref()?;
        let Ok(Val::String(text)) = self.run(expression, scope) else { return None };
        let text = text.trim();
        (!text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n')).then(|| text.to_owned())
    }
}

/// Where rules are evaluated.
struct Place<'a> {
    node: &'a Node,
    new: &'a Value,
    path: &'a Path<'a>,
}

impl Place<'_> {
    fn path(&self) -> String {
        if self.path.is_root() { golang::NIL.to_owned() } else { self.path.to_string() }
    }

    /// An error of evaluation shows the type in place of the value.
    fn invalid(&self, why: String) -> Error {
        Error::invalid(self.path(), self.node.kind.name(), why)
    }
}
