//! Evaluation of a syntax tree, within a budget.
//!
//! Errors carry cel-go's texts. `&&`, `||`, `all` and `exists` forgive an error where the other side decides.
//! Invariant: every step and every copied byte is charged, so that no rule runs for long.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::ast::{Expr, Field, Kind, Loop, Name, Op, Which};
use super::authorizer::{self, Authorizer};
use super::functions;
use super::program::Activation;
use super::value::{Key, List, ListKind, Struct, Val};

/// Why there is no value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fault {
    /// An error of the expression, in cel-go's words.
    Error(String),
    /// The budget is spent.
    Budget,
}

pub(super) type Out = Result<Val, Fault>;

pub(super) fn fault<T>(why: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Error(why.into()))
}

/// No function or operator takes these types.
pub(super) fn no_overload<T>() -> Result<T, Fault> {
    fault("no such overload")
}

/// Variables, innermost first.
pub(super) enum Scope<'a> {
    /// `self`, and `oldSelf` where there is one.
    Root(&'a Val, Option<&'a Val>),
    /// Those of admission.
    Admission(&'a Activation<'a>),
    Bound(&'a Scope<'a>, &'a str, &'a Val),
}

impl Scope<'_> {
    fn get(&self, name: &str) -> Option<&Val> {
        match self {
            Self::Bound(_, n, value) if *n == name => Some(value),
            Self::Bound(outer, ..) => outer.get(name),
            Self::Root(this, _) if name == "self" => Some(this),
            Self::Root(_, old) if name == "oldSelf" => *old,
            Self::Root(..) => None,
            Self::Admission(activation) => activation.get(name),
        }
    }

    /// Where the variables of admission are what a name means.
    fn admission(&self, name: &str) -> Option<&Activation<'_>> {
        match self {
            Self::Bound(_, n, _) if *n == name => None,
            Self::Bound(outer, ..) => outer.admission(name),
            Self::Admission(activation) => Some(activation),
            Self::Root(..) => None,
        }
    }
}

/// Names of types that are values.
pub(super) const TYPES: [&str; 10] =
    ["int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type"];

pub(super) struct Eval<'a> {
    /// What may still be spent.
    pub(super) budget: u64,
    /// Who answers `authorizer`, where there is one.
    pub(super) authorizer: Option<&'a dyn Authorizer>,
}

impl Eval<'_> {
    pub(super) fn charge(&mut self, cost: u64) -> Result<(), Fault> {
        self.budget = self.budget.checked_sub(cost).ok_or(Fault::Budget)?;
        Ok(())
    }

    pub(super) fn eval(&mut self, expr: &Expr, scope: &Scope<'_>) -> Out {
        self.charge(1)?;
        match &expr.kind {
            Kind::Literal(value) => Ok(value.clone()),
            Kind::Ident(name) => match scope.get(name) {
                Some(value) => Ok(value.clone()),
                None if &**name == "authorizer" && self.authorizer.is_some() => Ok(Val::authorizer()),
                None => match TYPES.iter().find(|t| **t == &**name) {
                    Some(name) => Ok(Val::Type(name)),
                    None => fault(format!("no such attribute(s): {name}")),
                },
            },
            Kind::Select { operand, field, optional } => match self.special(operand, field, scope) {
                Some(value) if *optional => Ok(Val::some(value?)),
                Some(value) => value,
                None => {
                    let operand = self.eval(operand, scope)?;
                    select(&operand, field, *optional)
                }
            },
            Kind::Has { operand, field } => {
                if self.is_variables(operand, scope) {
                    return Ok(Val::Bool(true));
                }
                let operand = self.eval(operand, scope)?;
                let inner = match &operand {
                    Val::Optional(Some(value)) => value,
                    other => other,
                };
                // What has no fields has not this one.
                Ok(Val::Bool(match inner {
                    Val::Map(map) => field.find(map).is_some(),
                    Val::Struct(s) => s.fields.contains_key(&**field),
                    _ => false,
                }))
            }
            Kind::Index { operand, index, optional } => {
                let operand = self.eval(operand, scope)?;
                let index = self.eval(index, scope)?;
                self.get(&operand, &index, *optional)
            }
            Kind::Call { target, function, args } => {
                let target = target.as_ref().map(|t| self.eval(t, scope)).transpose()?;
                let mut values = Vec::with_capacity(args.len());
                for arg in args {
                    values.push(self.eval(arg, scope)?);
                }
                functions::call(self, function, target.as_ref(), &values)
            }
            Kind::List(elements) => {
                let mut items = Vec::with_capacity(elements.len());
                for (element, optional) in elements {
                    match (self.eval(element, scope)?, optional) {
                        (value, false) => items.push(value),
                        (Val::Optional(value), true) => items.extend(value.map(|v| (*v).clone())),
                        _ => return no_overload(),
                    }
                }
                Ok(Val::list(items))
            }
            Kind::Map(entries) => {
                let mut map = BTreeMap::new();
                for (key, value, optional) in entries {
                    let key = self.eval(key, scope)?;
                    let value = match (self.eval(value, scope)?, optional) {
                        (value, false) => value,
                        (Val::Optional(None), true) => continue,
                        (Val::Optional(Some(value)), true) => (*value).clone(),
                        _ => return no_overload(),
                    };
                    self.insert(&mut map, &key, value)?;
                }
                Ok(Val::Map(Arc::new(map)))
            }
            Kind::Struct { name, fields } => self.message(name, fields, scope),
            Kind::Not(operand) => match self.eval(operand, scope)? {
                Val::Bool(b) => Ok(Val::Bool(!b)),
                _ => no_overload(),
            },
            Kind::Negate(operand) => match self.eval(operand, scope)? {
                Val::Int(n) => n.checked_neg().map(Val::Int).ok_or(Fault::Error("integer overflow".into())),
                Val::Double(v) => Ok(Val::Double(-v)),
                Val::Duration(n) => {
                    n.checked_neg().map(Val::Duration).ok_or(Fault::Error("duration overflow".into()))
                }
                _ => no_overload(),
            },
            Kind::Binary(op @ (Op::And | Op::Or), left, right) => {
                self.logic(*op == Op::Or, left, right, scope)
            }
            Kind::Binary(op, left, right) => {
                let left = self.eval(left, scope)?;
                let right = self.eval(right, scope)?;
                self.binary(*op, &left, &right)
            }
            Kind::Cond(condition, yes, no) => match self.eval(condition, scope)? {
                Val::Bool(true) => self.eval(yes, scope),
                Val::Bool(false) => self.eval(no, scope),
                _ => no_overload(),
            },
            Kind::Loop(l) => self.repeat(l, scope),
        }
    }

    /// What is no field but a variable with a dot in its name.
    fn special(&mut self, operand: &Expr, field: &str, scope: &Scope<'_>) -> Option<Out> {
        let Kind::Ident(name) = &operand.kind else { return None };
        match &**name {
            "variables" => Some(scope.admission(name)?.variable(field)),
            "authorizer" if field == "requestResource" => {
                scope.admission(name)?;
                self.authorizer.map(|a| Ok(authorizer::request_resource(a)))
            }
            _ => None,
        }
    }

    fn is_variables(&self, operand: &Expr, scope: &Scope<'_>) -> bool {
        matches!(&operand.kind, Kind::Ident(n) if &**n == "variables" && scope.admission(n).is_some())
    }

    fn message(&mut self, name: &str, fields: &[Field], scope: &Scope<'_>) -> Out {
        let mut out = BTreeMap::new();
        for field in fields {
            let value = match (self.eval(&field.value, scope)?, field.optional) {
                (value, false) => value,
                (Val::Optional(None), true) => continue,
                (Val::Optional(Some(value)), true) => (*value).clone(),
                _ => return no_overload(),
            };
            out.insert(Arc::from(&*field.name), value);
        }
        Ok(Val::Struct(Arc::new(Struct { name: name.into(), fields: out })))
    }

    /// `&&` (which `false` decides) and `||` (which `true` decides).
    fn logic(&mut self, decides: bool, left: &Expr, right: &Expr, scope: &Scope<'_>) -> Out {
        let left = self.truth(left, scope);
        if left == Ok(decides) || left == Err(Fault::Budget) {
            return left.map(Val::Bool);
        }
        let right = self.truth(right, scope);
        match right {
            Ok(b) if b == decides => Ok(Val::Bool(decides)),
            Err(Fault::Budget) => Err(Fault::Budget),
            other => left.and(other).map(Val::Bool),
        }
    }

    fn truth(&mut self, expr: &Expr, scope: &Scope<'_>) -> Result<bool, Fault> {
        match self.eval(expr, scope)? {
            Val::Bool(b) => Ok(b),
            _ => no_overload(),
        }
    }

    fn get(&mut self, operand: &Val, key: &Val, optional: bool) -> Out {
        // What is taken out of an optional is optional.
        let (operand, optional) = match operand {
            Val::Optional(None) => return Ok(Val::NONE),
            Val::Optional(Some(value)) => (&**value, true),
            other => (other, optional),
        };
        let found = match operand {
            Val::Map(map) => match key {
                Val::String(name) => field_of(map, name),
                other => Key::of(other).and_then(|k| map.get(&k)),
            }
            .ok_or_else(|| format!("no such key: {}", functions::display(key))),
            Val::List(list) => {
                let index = match key {
                    Val::Int(n) => usize::try_from(*n).ok(),
                    Val::Uint(n) => usize::try_from(*n).ok(),
                    Val::Double(v) if v.fract() == 0.0 && *v >= 0.0 => Some(*v as usize),
                    other => {
                        return fault(format!("unsupported index type '{}' in list", other.type_name()));
                    }
                };
                index
                    .and_then(|i| list.items.get(i))
                    .ok_or_else(|| format!("index out of bounds: {}", functions::display(key)))
            }
            Val::Struct(s) => match key {
                Val::String(name) => s.fields.get(&**name),
                _ => None,
            }
            .ok_or_else(|| format!("no such key: {}", functions::display(key))),
            _ => Err(format!("no such key: {}", functions::display(key))),
        };
        match (found, optional) {
            (Ok(value), true) => Ok(Val::some(value.clone())),
            (Ok(value), false) => Ok(value.clone()),
            (Err(_), true) => Ok(Val::NONE),
            (Err(why), false) => fault(why),
        }
    }

    fn insert(&mut self, map: &mut BTreeMap<Key, Val>, key: &Val, value: Val) -> Result<(), Fault> {
        let Some(k) = Key::of(key) else { return fault("unsupported key type") };
        if map.insert(k, value).is_some() {
            return fault(format!("insert failed: key {} already exists", functions::display(key)));
        }
        Ok(())
    }

    fn binary(&mut self, op: Op, left: &Val, right: &Val) -> Out {
        match op {
            Op::Equal | Op::NotEqual => {
                self.charge(left.size_cost().min(right.size_cost()))?;
                Ok(Val::Bool(left.equals(right) == (op == Op::Equal)))
            }
            Op::Less | Op::LessOrEqual | Op::Greater | Op::GreaterOrEqual => {
                self.charge(left.size_cost().min(right.size_cost()))?;
                let Some(order) = left.compare(right) else {
                    // NaN has no order, and that is an answer.
                    let nan = |v: &Val| matches!(v, Val::Double(v) if v.is_nan());
                    return if nan(left) || nan(right) { Ok(Val::Bool(false)) } else { no_overload() };
                };
                Ok(Val::Bool(match op {
                    Op::Less => order == Ordering::Less,
                    Op::LessOrEqual => order != Ordering::Greater,
                    Op::Greater => order == Ordering::Greater,
                    _ => order != Ordering::Less,
                }))
            }
            Op::In => match right {
                Val::List(list) => {
                    self.charge(list.items.len() as u64 + right.size_cost())?;
                    Ok(Val::Bool(list.items.iter().any(|v| v.equals(left))))
                }
                Val::Map(map) => Ok(Val::Bool(Key::of(left).is_some_and(|k| map.contains_key(&k)))),
                _ => no_overload(),
            },
            Op::Add => {
                if matches!(left, Val::String(_) | Val::Bytes(_) | Val::List(_)) {
                    self.charge(left.size_cost() + right.size_cost())?;
                }
                functions::arithmetic::add(left, right)
            }
            Op::Subtract => functions::arithmetic::subtract(left, right),
            Op::Multiply => functions::arithmetic::multiply(left, right),
            Op::Divide => functions::arithmetic::divide(left, right),
            Op::Remainder => functions::arithmetic::remainder(left, right),
            Op::And | Op::Or => no_overload(),
        }
    }

    fn repeat(&mut self, l: &Loop, scope: &Scope<'_>) -> Out {
        let range = self.eval(&l.range, scope)?;
        if let Which::OptMap | Which::OptFlatMap = l.which {
            let Val::Optional(value) = range else { return no_overload() };
            let Some(value) = value else { return Ok(Val::NONE) };
            let result = self.eval(&l.body, &Scope::Bound(scope, &l.first, &value))?;
            return match (l.which, result) {
                (Which::OptMap, value) => Ok(Val::some(value)),
                (_, value @ Val::Optional(_)) => Ok(value),
                _ => no_overload(),
            };
        }
        let pairs: Vec<(Val, Val)> = match &range {
            Val::List(list) => {
                list.items.iter().enumerate().map(|(i, v)| (Val::Int(i as i64), v.clone())).collect()
            }
            Val::Map(map) => map.iter().map(|(k, v)| (k.value(), v.clone())).collect(),
            _ => return no_overload(),
        };
        // With one variable, lists give their elements, maps their keys.
        let pairs = pairs.into_iter().map(|(key, value)| match (&l.second, &range) {
            (None, Val::List(_)) => (value, None),
            (None, _) => (key, None),
            (Some(_), _) => (key, Some(value)),
        });
        let mut items = Vec::new();
        let mut map = BTreeMap::new();
        let mut sorted: Vec<(Val, Val)> = Vec::new();
        let mut count = 0;
        let mut error: Option<Fault> = None;
        for (first, second) in pairs {
            self.charge(2)?;
            let bound = Scope::Bound(scope, &l.first, &first);
            let both;
            let inner = match (&l.second, &second) {
                (Some(name), Some(value)) => {
                    both = Scope::Bound(&bound, name, value);
                    &both
                }
                _ => &bound,
            };
            if let Some(filter) = &l.filter
                && !self.truth(filter, inner)?
            {
                continue;
            }
            match l.which {
                Which::All | Which::Exists => match self.truth(&l.body, inner) {
                    Ok(b) if b == (l.which == Which::Exists) => return Ok(Val::Bool(b)),
                    Ok(_) => {}
                    Err(Fault::Budget) => return Err(Fault::Budget),
                    Err(why) => error = Some(error.unwrap_or(why)),
                },
                Which::ExistsOne => count += usize::from(self.truth(&l.body, inner)?),
                Which::Filter => {
                    if self.truth(&l.body, inner)? {
                        items.push(first);
                    }
                }
                Which::Map | Which::TransformList => items.push(self.eval(&l.body, inner)?),
                Which::TransformMap => {
                    let value = self.eval(&l.body, inner)?;
                    self.insert(&mut map, &first, value)?;
                }
                Which::TransformMapEntry => {
                    let Val::Map(entries) = self.eval(&l.body, inner)? else { return no_overload() };
                    for (key, value) in entries.iter() {
                        self.insert(&mut map, &key.value(), value.clone())?;
                    }
                }
                Which::SortBy => match self.eval(&l.body, inner) {
                    Ok(key) => sorted.push((key, first)),
                    Err(Fault::Budget) => return Err(Fault::Budget),
                    // What cel-go makes of an error there.
                    Err(_) => {
                        return fault(
                            "internal error: interface conversion: *types.Err is not traits.Lister: missing \
                             method Add",
                        );
                    }
                },
                Which::OptMap | Which::OptFlatMap => {}
            }
        }
        match l.which {
            Which::All | Which::Exists => match error {
                Some(why) => Err(why),
                None => Ok(Val::Bool(l.which == Which::All)),
            },
            Which::ExistsOne => Ok(Val::Bool(count == 1)),
            Which::TransformMap | Which::TransformMapEntry => Ok(Val::Map(Arc::new(map))),
            Which::SortBy => {
                let keys: Vec<Val> = sorted.iter().map(|(key, _)| key.clone()).collect();
                let order = functions::lists::sorted_order(&keys)?;
                self.charge(order.len() as u64)?;
                Ok(Val::list(order.into_iter().map(|i| sorted[i].1.clone()).collect()))
            }
            _ => Ok(Val::list(items)),
        }
    }
}

/// The value of a field.
fn select(operand: &Val, field: &Name, optional: bool) -> Out {
    // What is taken out of an optional is optional.
    let (operand, optional) = match operand {
        Val::Optional(None) => return Ok(Val::NONE),
        Val::Optional(Some(value)) => (&**value, true),
        other => (other, optional),
    };
    let found = match operand {
        Val::Map(map) => field.find(map),
        Val::Struct(s) => s.fields.get(&**field),
        Val::List(_) => return fault("unsupported index type 'string' in list"),
        // As in cel-go, what has no fields just hasn't this one.
        _ => None,
    };
    match (found, optional) {
        (Some(value), true) => Ok(Val::some(value.clone())),
        (Some(value), false) => Ok(value.clone()),
        (None, true) => Ok(Val::NONE),
        (None, false) => fault(format!("no such key: {}", &**field)),
    }
}

/// A field, by its name as it is or as rules write it.
fn field_of<'a>(map: &'a BTreeMap<Key, Val>, name: &str) -> Option<&'a Val> {
    let key = Key::String(Arc::from(name));
    map.get(&key).or_else(|| map.get(&Key::String(Arc::from(&*super::names::escape(name)))))
}

/// Lists joined; of two sets, the union.
pub(super) fn concat(a: &List, b: &List) -> Val {
    let mut items = a.items.clone();
    match &a.kind {
        ListKind::Plain => items.extend(b.items.iter().cloned()),
        ListKind::Set => {
            for value in &b.items {
                if !items.iter().any(|v| v.equals(value)) {
                    items.push(value.clone());
                }
            }
        }
        ListKind::Map(keys) => {
            for value in &b.items {
                match items.iter_mut().find(|v| super::value::same_keys(keys, v, value)) {
                    Some(old) => *old = value.clone(),
                    None => items.push(value.clone()),
                }
            }
        }
    }
    Val::List(Arc::new(List { items, kind: a.kind.clone() }))
}
