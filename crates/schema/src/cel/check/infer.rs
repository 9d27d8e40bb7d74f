//! From a syntax tree to its type and cost, bottom up.
//!
//! Declared sizes follow the path by which a value was reached: `self.list[0].name` has the limit of its schema, what
//! a function returns has not.

use std::rc::Rc;

use super::cost::{self, Range, UNKNOWN, add, union};
use super::decl::{Decl, Declared, Shape};
use super::signatures;
use super::types::{Bindings, Type};
use crate::cel::ast::{Expr, Kind, Loop, Op, Which};
use crate::cel::value::Val;

/// What an expression comes to.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) ty: Type,
    /// The declaration that it was reached through.
    decl: Option<Rc<Decl>>,
    /// The size, where something says more than the declaration.
    size: Option<Range>,
    pub(super) cost: Range,
    /// An integer literal.
    pub(super) literal: Option<i64>,
}

impl Node {
    fn new(ty: Type, cost: Range) -> Self {
        Self { ty, decl: None, size: None, cost, literal: None }
    }

    fn of(decl: &Rc<Decl>, cost: Range) -> Self {
        Self { decl: Some(decl.clone()), ..Self::new(decl.ty(), cost) }
    }

    /// How large it is.
    pub(super) fn size(&self) -> Range {
        let declared = || self.decl.as_ref().map(|d| (0, d.max));
        let fixed = || self.ty.is_scalar().then_some((1, 1));
        self.size.or_else(declared).or_else(fixed).unwrap_or(UNKNOWN)
    }

    /// How large the items of a list are.
    pub(super) fn item_size(&self) -> Range {
        match self.decl.as_ref().map(|d| &d.shape) {
            Some(Shape::List(item) | Shape::Map(item)) => (0, item.max),
            _ => UNKNOWN,
        }
    }
}

type Fault = (usize, String);

/// The variables of a place in an expression.
pub(super) struct Env<'a> {
    root: &'a Rc<Decl>,
    variables: Vec<(&'a str, Node)>,
    /// Elements of a literal may differ in type: they are what `format` prints.
    mixed: bool,
}

impl<'a> Env<'a> {
    /// `self` and `oldSelf`.
    pub(super) fn new(declared: &'a Declared, optional_old_self: bool) -> Self {
        let me = Node::of(&declared.0, (1, 1));
        let mut old = me.clone();
        if optional_old_self {
            old.ty = Type::Optional(Rc::new(old.ty));
        }
        Self { root: &declared.0, variables: vec![("self", me), ("oldSelf", old)], mixed: false }
    }

    fn with(&self, more: Vec<(&'a str, Node)>) -> Self {
        let mut variables = self.variables.clone();
        variables.extend(more);
        Self { root: self.root, variables, mixed: self.mixed }
    }

    /// The type and cost of an expression, or the first thing that is wrong with it.
    pub(super) fn infer(&self, expr: &'a Expr) -> Result<Node, Fault> {
        let at = expr.at;
        match &expr.kind {
            Kind::Literal(value) => Ok(literal(value)),
            Kind::Ident(name) => self.ident(name).ok_or_else(|| (at, undeclared(name))),
            Kind::Select { operand, field, optional } => {
                let operand = self.infer(operand)?;
                self.select(at, operand, field, *optional)
            }
            Kind::Has { operand, field } => {
                let operand = self.infer(operand)?;
                let cost = operand.cost;
                let found = self.select(at, operand, field, false)?;
                Ok(Node { ty: Type::Bool, decl: None, size: None, cost, ..found })
            }
            Kind::Index { operand, index, optional } => {
                let (operand, index) = (self.infer(operand)?, self.infer(index)?);
                self.index(at, operand, &index, *optional)
            }
            Kind::Call { target, function, args } => {
                let target = target.as_ref().map(|t| self.infer(t)).transpose()?;
                if let ("matches", Some(Expr { kind: Kind::Literal(Val::String(pattern)), at, .. })) =
                    (&**function, args.last())
                    && crate::pattern::regex(pattern).is_err()
                {
                    return Err((*at, "invalid matches argument".to_owned()));
                }
                let scope = Self { mixed: self.mixed || &**function == "format", ..self.with(Vec::new()) };
                let args = args.iter().map(|a| scope.infer(a)).collect::<Result<Vec<_>, _>>()?;
                self.call(at, function, target.as_ref(), &args)
            }
            Kind::List(items) => self.list(items),
            Kind::Map(entries) => self.map(entries),
            Kind::Not(e) => {
                let args = [self.infer(e)?];
                self.call(at, "!_", None, &args)
            }
            Kind::Negate(e) => {
                let args = [self.infer(e)?];
                self.call(at, "-_", None, &args)
            }
            Kind::Binary(op, a, b) => {
                let args = [self.infer(a)?, self.infer(b)?];
                let mut node = self.call(at, name_of(*op), None, &args)?;
                if matches!(op, Op::Or | Op::And) {
                    // The second may never be looked at.
                    node.cost = (args[0].cost.0, add(args[0].cost, args[1].cost).1);
                }
                Ok(node)
            }
            Kind::Cond(condition, yes, no) => {
                let (condition, yes, no) = (self.infer(condition)?, self.infer(yes)?, self.infer(no)?);
                let joined =
                    yes.ty.join(&no.ty).filter(|_| Type::Bool.accepts(&condition.ty, &mut Bindings::new()));
                let Some(ty) = joined else {
                    return Err((at, mismatch("_?_:_", None, &[condition, yes, no])));
                };
                let size = Some(union(yes.size(), no.size()));
                Ok(Node { size, ..Node::new(ty, add(condition.cost, union(yes.cost, no.cost))) })
            }
            Kind::Loop(l) => self.repeat(at, l),
        }
    }

    fn ident(&self, name: &str) -> Option<Node> {
        if let Some((_, node)) = self.variables.iter().rev().find(|(n, _)| *n == name) {
            return Some(Node { cost: (1, 1), ..node.clone() });
        }
        // A name is a path, and the start of a path is cut off when its size is looked up.
        let known = crate::cel::eval::TYPES.contains(&name);
        known.then(|| Node { decl: Some(self.root.clone()), ..Node::new(Type::Meta, (1, 1)) })
    }

    /// The field of a type, with its declaration.
    fn field(
        &self,
        at: usize,
        ty: &Type,
        decl: Option<&Rc<Decl>>,
        name: &str,
    ) -> Result<(Type, Option<Rc<Decl>>), Fault> {
        let declared = |decl: Option<&Rc<Decl>>| match decl.map(|d| &d.shape) {
            Some(Shape::Object(fields)) => fields.get(name).cloned(),
            // The path of a map's entry by name leads nowhere in the declaration.
            _ => None,
        };
        match ty {
            Type::Dyn => Ok((Type::Dyn, None)),
            Type::Map(_, value) => Ok(((**value).clone(), None)),
            Type::Object(object) => match &object.shape {
                Shape::Object(fields) => match fields.get(name) {
                    Some(field) => Ok((field.ty(), declared(decl))),
                    None => Err((at, format!("undefined field '{name}'"))),
                },
                _ => Err((at, format!("undefined field '{name}'"))),
            },
            Type::Optional(inner) => {
                let (ty, _) = self.field(at, inner, None, name)?;
                Ok((optional(ty), None))
            }
            other => Err((at, format!("type '{other}' does not support field selection"))),
        }
    }

    fn select(&self, at: usize, operand: Node, name: &str, maybe: bool) -> Result<Node, Fault> {
        let (mut ty, mut decl) = self.field(at, &operand.ty, operand.decl.as_ref(), name)?;
        let mut cost = operand.cost;
        if maybe || matches!(operand.ty, Type::Map(..) | Type::Object(_)) {
            cost = add(cost, (1, 1));
        }
        if maybe {
            if !matches!(operand.ty, Type::Optional(_)) {
                ty = optional(ty);
            }
            decl = None;
        }
        Ok(Node { decl, ..Node::new(ty, cost) })
    }

    fn index(&self, at: usize, operand: Node, index: &Node, maybe: bool) -> Result<Node, Fault> {
        let (inner, was_optional) = match &operand.ty {
            Type::Optional(inner) => ((**inner).clone(), true),
            other => (other.clone(), false),
        };
        let name = if maybe { "_[?_]" } else { "_[_]" };
        let mut bindings = Bindings::new();
        let fits = |wanted: &Type, bindings: &mut Bindings| wanted.accepts(&index.ty, bindings);
        let mut ty = match &inner {
            Type::Dyn => Type::Dyn,
            Type::List(item) if fits(&Type::Int, &mut bindings) => (**item).clone(),
            Type::Map(key, value) if fits(key, &mut bindings) => (**value).clone(),
            _ => return Err((at, mismatch(name, None, &[operand, index.clone()]))),
        };
        let decl = match operand.decl.as_ref().map(|d| &d.shape) {
            Some(Shape::List(item) | Shape::Map(item)) if !maybe && !was_optional => Some(item.clone()),
            // A path that starts with an index has its start cut off.
            _ if operand.decl.is_none() && !maybe => Some(self.root.clone()),
            _ => None,
        };
        if maybe || was_optional {
            ty = optional(ty);
        }
        let cost = add(add(operand.cost, index.cost), (1, 1));
        Ok(Node { decl, ..Node::new(ty, cost) })
    }

    fn call(&self, at: usize, function: &str, target: Option<&Node>, args: &[Node]) -> Result<Node, Fault> {
        let Some(overloads) = signatures::overloads(function) else { return Err((at, undeclared(function))) };
        let mut result: Option<Type> = None;
        for s in
            overloads.iter().filter(|s| s.args.len() == args.len() && s.target.is_some() == target.is_some())
        {
            let mut bindings = Bindings::new();
            let fits = s.target.iter().zip(target).all(|(t, given)| t.accepts(&given.ty, &mut bindings))
                && s.args.iter().zip(args).all(|(t, given)| t.accepts(&given.ty, &mut bindings));
            if fits {
                let ty = s.result.bound(&bindings);
                result = Some(match result {
                    None => ty,
                    Some(other) => other.join(&ty).unwrap_or(Type::Dyn),
                });
                // Without anything unknown the first overload that fits is the one.
                if target.iter().chain(&args.iter().collect::<Vec<_>>()).all(|n| !matches!(n.ty, Type::Dyn)) {
                    break;
                }
            }
        }
        let Some(ty) = result else { return Err((at, mismatch(function, target, args))) };
        let (mut cost, size) = cost::call(function, target, args);
        for n in target.into_iter().chain(args) {
            cost = add(cost, n.cost);
        }
        Ok(Node { size, ..Node::new(ty, cost) })
    }

    fn list(&self, items: &'a [(Expr, bool)]) -> Result<Node, Fault> {
        let (mut ty, mut cost) = (None, (10, 10));
        for (expr, maybe) in items {
            let node = self.infer(expr)?;
            cost = add(cost, node.cost);
            ty = Some(self.aggregate(expr.at, ty, element(node.ty, *maybe))?);
        }
        let n = items.len() as u64;
        Ok(Node { size: Some((n, n)), ..Node::new(Type::list(ty.unwrap_or(Type::Dyn)), cost) })
    }

    fn map(&self, entries: &'a [(Expr, Expr, bool)]) -> Result<Node, Fault> {
        let (mut key_ty, mut value_ty, mut cost) = (None, None, (30, 30));
        for (key, value, maybe) in entries {
            let (k, v) = (self.infer(key)?, self.infer(value)?);
            cost = add(cost, add(k.cost, v.cost));
            key_ty = Some(self.aggregate(key.at, key_ty, k.ty)?);
            value_ty = Some(self.aggregate(value.at, value_ty, element(v.ty, *maybe))?);
        }
        let n = entries.len() as u64;
        let ty = Type::Map(Rc::new(key_ty.unwrap_or(Type::Dyn)), Rc::new(value_ty.unwrap_or(Type::Dyn)));
        Ok(Node { size: Some((n, n)), ..Node::new(ty, cost) })
    }

    /// Elements of a literal have one type.
    fn aggregate(&self, at: usize, so_far: Option<Type>, next: Type) -> Result<Type, Fault> {
        let Some(before) = so_far else { return Ok(next) };
        let joined = before.join(&next).or(self.mixed.then_some(Type::Dyn));
        joined.ok_or_else(|| (at, format!("expected type '{before}' but found '{next}'")))
    }

    fn repeat(&self, at: usize, l: &'a Loop) -> Result<Node, Fault> {
        let range = self.infer(&l.range)?;
        if matches!(l.which, Which::OptMap | Which::OptFlatMap) {
            return self.optional_map(at, l, range);
        }
        let (key, value) = match &range.ty {
            Type::List(item) => (Type::Int, (**item).clone()),
            Type::Map(k, v) => ((**k).clone(), (**v).clone()),
            Type::Dyn => (Type::Dyn, Type::Dyn),
            other => {
                let why = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                return Err((l.range.at, why));
            }
        };
        let is_map = matches!(range.ty, Type::Map(..));
        let inner = match range.decl.as_ref().map(|d| &d.shape) {
            Some(Shape::List(item) | Shape::Map(item)) => Some(item.clone()),
            // As in `index`: the start of such a path is cut off.
            _ => range.decl.is_none().then(|| self.root.clone()),
        };
        let variable = |ty: &Type, decl: Option<Rc<Decl>>| Node { decl, ..Node::new(ty.clone(), (1, 1)) };
        // Keys of declared maps have no limit of their own.
        let mut variables = Vec::new();
        match &l.second {
            Some(second) => {
                variables.push((&*l.first, variable(&key, None)));
                variables.push((&**second, variable(&value, inner)));
            }
            None if is_map => {
                let keys = range.decl.as_ref().map(|_| Rc::new(super::decl::simple(Type::Text, 0, 2)));
                variables.push((&*l.first, variable(&key, keys)));
            }
            None => variables.push((&*l.first, variable(&value, inner))),
        }
        let first = variables[0].1.ty.clone();
        let scope = self.with(variables);
        let filter = l.filter.as_ref().map(|f| scope.truth(f)).transpose()?;
        let truth = matches!(l.which, Which::All | Which::Exists | Which::ExistsOne | Which::Filter);
        let body = if truth { scope.truth(&l.body)? } else { scope.infer(&l.body)? };
        self.looped(at, l.which, range, first, filter.map(|f| f.cost), body)
    }

    /// A condition.
    fn truth(&self, expr: &'a Expr) -> Result<Node, Fault> {
        let node = self.infer(expr)?;
        match node.ty {
            Type::Bool | Type::Dyn => Ok(node),
            other => Err((expr.at, format!("expected type 'bool' but found '{other}'"))),
        }
    }

    /// The cost of a macro is that of the comprehension it stands for.
    fn looped(
        &self,
        at: usize,
        which: Which,
        range: Node,
        first: Type,
        filter: Option<Range>,
        body: Node,
    ) -> Result<Node, Fault> {
        let key = match &range.ty {
            Type::Map(k, _) => (**k).clone(),
            Type::List(_) => Type::Int,
            _ => Type::Dyn,
        };
        let append = add(body.cost, (12, 12));
        let (before, condition, step, after, ty) = match which {
            Which::All => ((0, 0), (2, 2), (1, add(body.cost, (1, 1)).1), (1, 1), Type::Bool),
            Which::Exists => ((0, 0), (3, 3), (1, add(body.cost, (1, 1)).1), (1, 1), Type::Bool),
            Which::ExistsOne => ((0, 0), (0, 0), add(body.cost, (1, 2)), (2, 2), Type::Bool),
            Which::Filter => ((10, 10), (0, 0), add(body.cost, (1, 13)), (1, 1), Type::list(first)),
            Which::Map | Which::TransformList | Which::SortBy => {
                let item = if which == Which::SortBy { first } else { body.ty.clone() };
                ((10, 10), (0, 0), append, (1, 1), Type::list(item))
            }
            Which::TransformMap => {
                ((30, 30), (0, 0), append, (1, 1), Type::Map(Rc::new(key), Rc::new(body.ty.clone())))
            }
            Which::TransformMapEntry => match &body.ty {
                Type::Map(..) | Type::Dyn => ((30, 30), (0, 0), append, (1, 1), body.ty.clone()),
                other => return Err((at, format!("expected type 'map(dyn, dyn)' but found '{other}'"))),
            },
            Which::OptMap | Which::OptFlatMap => ((0, 0), (0, 0), body.cost, (1, 1), body.ty.clone()),
        };
        let step = match filter {
            Some(filter) => add(filter, union(step, (1, 1))),
            None => step,
        };
        let times = range.size();
        let cost = add(add(range.cost, before), add(cost::multiply(times, add(step, condition)), after));
        let size = (!matches!(ty, Type::Bool)).then_some(times);
        Ok(Node { size, ..Node::new(ty, cost) })
    }

    fn optional_map(&self, at: usize, l: &'a Loop, range: Node) -> Result<Node, Fault> {
        let inner = match &range.ty {
            Type::Optional(inner) => (**inner).clone(),
            Type::Dyn => Type::Dyn,
            _ => {
                let name = if l.which == Which::OptMap { "optMap" } else { "optFlatMap" };
                return Err((at, mismatch(name, Some(&range), &[])));
            }
        };
        let body = self.with(vec![(&*l.first, Node::new(inner, (1, 1)))]).infer(&l.body)?;
        let ty = match (l.which, &body.ty) {
            (Which::OptFlatMap, Type::Optional(_) | Type::Dyn) => body.ty.clone(),
            (Which::OptFlatMap, other) => {
                return Err((at, format!("expected type 'optional_type(dyn)' but found '{other}'")));
            }
            (_, ty) => optional(ty.clone()),
        };
        Ok(Node::new(ty, add(add(range.cost, body.cost), (4, 4))))
    }
}

fn optional(ty: Type) -> Type {
    Type::Optional(Rc::new(ty))
}

/// The type of an element that may be absent (`[?x]`).
fn element(ty: Type, maybe: bool) -> Type {
    match ty {
        Type::Optional(inner) if maybe => (*inner).clone(),
        other => other,
    }
}

fn literal(value: &Val) -> Node {
    let (ty, size) = match value {
        Val::Null => (Type::Null, 1),
        Val::Bool(_) => (Type::Bool, 1),
        Val::Int(_) => (Type::Int, 1),
        Val::Uint(_) => (Type::Uint, 1),
        Val::Double(_) => (Type::Double, 1),
        Val::String(s) => (Type::Text, s.chars().count() as u64),
        Val::Bytes(b) => (Type::Bytes, b.len() as u64),
        _ => (Type::Dyn, 1),
    };
    let number = match value {
        Val::Int(n) => Some(*n),
        _ => None,
    };
    Node { size: Some((size, size)), literal: number, ..Node::new(ty, (0, 0)) }
}

fn name_of(op: Op) -> &'static str {
    match op {
        Op::Or => "_||_",
        Op::And => "_&&_",
        Op::Less => "_<_",
        Op::LessOrEqual => "_<=_",
        Op::Greater => "_>_",
        Op::GreaterOrEqual => "_>=_",
        Op::Equal => "_==_",
        Op::NotEqual => "_!=_",
        Op::In => "@in",
        Op::Add => "_+_",
        Op::Subtract => "_-_",
        Op::Multiply => "_*_",
        Op::Divide => "_/_",
        Op::Remainder => "_%_",
    }
}

fn undeclared(name: &str) -> String {
    format!("undeclared reference to '{name}' (in container '')")
}

fn mismatch(function: &str, target: Option<&Node>, args: &[Node]) -> String {
    let types: Vec<String> = args.iter().map(|a| a.ty.to_string()).collect();
    let given = match target {
        Some(target) => format!("{}.({})", target.ty, types.join(", ")),
        None => format!("({})", types.join(", ")),
    };
    format!("found no matching overload for '{function}' applied to '{given}'")
}
