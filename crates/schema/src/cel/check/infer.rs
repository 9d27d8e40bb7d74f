//! From a syntax tree to its type and cost, bottom up.
//!
//! Declared sizes follow the path by which a value was reached: `self.list[0].name` has the limit of its schema, what
//! a function returns has not. What is wrong is noted and has the type [`Type::Error`], of which nothing more is said,
//! so that one expression can have several errors.

use std::cell::RefCell;
use std::rc::Rc;

use super::cost::{self, Range, UNKNOWN, add, union};
use super::decl::{Decl, Declared, Shape};
use super::signatures;
use super::types::{Bindings, Type};
use crate::cel::ast::{Expr, Field, Kind, Op};
use crate::cel::report::Fault;
use crate::cel::value::Val;

/// What an expression comes to.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) ty: Type,
    /// The declaration that it was reached through.
    pub(super) decl: Option<Rc<Decl>>,
    /// The size, where something says more than the declaration.
    pub(super) size: Option<Range>,
    pub(super) cost: Range,
    /// An integer literal.
    pub(super) literal: Option<i64>,
}

impl Node {
    pub(super) fn new(ty: Type, cost: Range) -> Self {
        Self { ty, decl: None, size: None, cost, literal: None }
    }

    pub(super) fn of(decl: &Rc<Decl>, cost: Range) -> Self {
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

/// The variables of a place in an expression, and what has been found wrong so far.
pub(super) struct Env<'a> {
    pub(super) root: Rc<Decl>,
    variables: Vec<(&'a str, Node)>,
    /// Elements of a literal may differ in type: they are what `format` prints.
    mixed: bool,
    /// `Object{…}`, `JSONPatch{…}` and their function are known.
    patches: bool,
    faults: Rc<RefCell<Vec<Fault>>>,
    /// Literals that functions would refuse; told where nothing else is wrong.
    literals: Rc<RefCell<Vec<Fault>>>,
}

impl<'a> Env<'a> {
    /// These variables; a path whose start is cut off goes on at `root`.
    pub(super) fn new(root: Rc<Decl>, variables: Vec<(&'a str, Node)>) -> Self {
        Self { root, variables, mixed: false, patches: false, faults: Rc::default(), literals: Rc::default() }
    }

    /// `self` and `oldSelf`.
    pub(super) fn rule(declared: &Declared, optional_old_self: bool) -> Self {
        let me = Node::of(&declared.0, (1, 1));
        let mut old = me.clone();
        if optional_old_self {
            old.ty = optional(old.ty);
        }
        Self::new(declared.0.clone(), vec![("self", me), ("oldSelf", old)])
    }

    /// With what patches are made of.
    pub(super) fn patching(self) -> Self {
        Self { patches: true, ..self }
    }

    /// The type and cost of an expression, or all that is wrong with it.
    pub(super) fn judge(&self, expr: &'a Expr) -> Result<Node, Vec<Fault>> {
        let node = self.infer(expr);
        for found in [&self.faults, &self.literals] {
            let faults = found.take();
            if !faults.is_empty() {
                return Err(faults);
            }
        }
        Ok(node)
    }

    pub(super) fn with(&self, more: Vec<(&'a str, Node)>) -> Self {
        let mut variables = self.variables.clone();
        variables.extend(more);
        Self {
            root: self.root.clone(),
            variables,
            mixed: self.mixed,
            patches: self.patches,
            faults: self.faults.clone(),
            literals: self.literals.clone(),
        }
    }

    pub(super) fn wrong(&self, at: usize, why: String) -> Node {
        self.faults.borrow_mut().push((at, why));
        Node::new(Type::Error, (1, 1))
    }

    pub(super) fn infer(&self, expr: &'a Expr) -> Node {
        let at = expr.at;
        match &expr.kind {
            Kind::Literal(value) => literal(value),
            Kind::Ident(name) => self.ident(name).unwrap_or_else(|| self.wrong(at, undeclared(name))),
            Kind::Select { operand, field, optional } => match self.qualified(operand, field) {
                Some(node) if !optional => node,
                _ => {
                    let operand = self.infer(operand);
                    self.select(at, &operand, field, *optional)
                }
            },
            Kind::Has { operand, field } => {
                let operand = self.infer(operand);
                let cost = operand.cost;
                self.select(at, &operand, field, false);
                Node::new(Type::Bool, cost)
            }
            Kind::Index { operand, index, optional } => {
                let (operand, index) = (self.infer(operand), self.infer(index));
                self.index(at, &operand, &index, *optional)
            }
            Kind::Call { target, function, args } => {
                self.literal_argument(function, args);
                let target = target.as_ref().map(|t| self.infer(t));
                let scope = Self { mixed: self.mixed || &**function == "format", ..self.with(Vec::new()) };
                let args: Vec<Node> = args.iter().map(|a| scope.infer(a)).collect();
                if &**function == signatures::ESCAPE_KEY && !self.patches {
                    // A method of nothing, to who does not know the function.
                    let (namespace, method) = function.split_once('.').unwrap_or(("", function));
                    self.wrong(at.saturating_sub(function.len()), undeclared(namespace));
                    return self.wrong(at, undeclared(method));
                }
                self.call(at, function, target.as_ref(), &args)
            }
            Kind::List(items) => self.list(items),
            Kind::Map(entries) => self.map(entries),
            Kind::Struct { name, fields } => self.message(at, name, fields),
            Kind::Not(e) => {
                let args = [self.infer(e)];
                self.call(at, "!_", None, &args)
            }
            Kind::Negate(e) => {
                let args = [self.infer(e)];
                self.call(at, "-_", None, &args)
            }
            Kind::Binary(Op::Or | Op::And, a, b) => {
                let (a, b) = (self.truth(a), self.truth(b));
                // The second may never be looked at.
                Node::new(Type::Bool, (a.cost.0, add(a.cost, b.cost).1))
            }
            Kind::Binary(op, a, b) => {
                let args = [self.infer(a), self.infer(b)];
                self.call(at, name_of(*op), None, &args)
            }
            Kind::Cond(condition, yes, no) => {
                let (condition, yes, no) = (self.infer(condition), self.infer(yes), self.infer(no));
                let joined =
                    yes.ty.join(&no.ty).filter(|_| Type::Bool.accepts(&condition.ty, &mut Bindings::new()));
                let Some(ty) = joined else {
                    return self.wrong(at, mismatch("_?_:_", None, &[&condition.ty, &yes.ty, &no.ty]));
                };
                let size = Some(union(yes.size(), no.size()));
                Node { size, ..Node::new(ty, add(condition.cost, union(yes.cost, no.cost))) }
            }
            Kind::Loop(l) => self.repeat(at, l),
        }
    }

    /// A variable whose name has a dot.
    fn qualified(&self, operand: &Expr, field: &str) -> Option<Node> {
        let Kind::Ident(name) = &operand.kind else { return None };
        let dotted = |n: &str| n.split_once('.').is_some_and(|(a, b)| a == &**name && b == field);
        let (_, node) = self.variables.iter().rev().find(|(n, _)| dotted(n))?;
        Some(Node { cost: (1, 1), ..node.clone() })
    }

    /// Notes a literal that the function it is given to is sure to refuse.
    fn literal_argument(&self, function: &str, args: &[Expr]) {
        let Some(Expr { kind: Kind::Literal(Val::String(text)), at, .. }) = args.first() else { return };
        let good = match function {
            "matches" => crate::pattern::regex(text).is_ok(),
            "duration" => crate::golang::duration(text).is_some(),
            "timestamp" => crate::cel::convert::timestamp(text).is_some(),
            _ => true,
        };
        if !good {
            self.literals.borrow_mut().push((*at, format!("invalid {function} argument")));
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
    fn field(&self, at: usize, ty: &Type, decl: Option<&Rc<Decl>>, name: &str) -> (Type, Option<Rc<Decl>>) {
        let declared = |decl: Option<&Rc<Decl>>| match decl.map(|d| &d.shape) {
            Some(Shape::Object(_, fields)) => fields.get(name).cloned(),
            // The path of a map's entry by name leads nowhere in the declaration.
            _ => None,
        };
        let undefined = || (self.wrong(at, format!("undefined field '{name}'")).ty, None);
        match ty {
            Type::Dyn | Type::Error => (Type::Dyn, None),
            Type::Map(_, value) => ((**value).clone(), None),
            Type::Object(object) => match &object.shape {
                Shape::Object(_, fields) => match fields.get(name) {
                    Some(field) => (field.ty(), declared(decl)),
                    None => undefined(),
                },
                _ => undefined(),
            },
            Type::Struct(of) => match field_of(of, name) {
                Some(ty) => (ty, None),
                None => undefined(),
            },
            Type::Library(_) => (self.wrong(at, format!("unexpected failed resolution of '{ty}'")).ty, None),
            Type::Optional(inner) => {
                let (ty, _) = self.field(at, inner, None, name);
                (optional(ty), None)
            }
            other => {
                self.wrong(at, format!("type '{other}' does not support field selection"));
                (Type::Dyn, None)
            }
        }
    }

    fn select(&self, at: usize, operand: &Node, name: &str, maybe: bool) -> Node {
        let (mut ty, mut decl) = self.field(at, &operand.ty, operand.decl.as_ref(), name);
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
        Node { decl, ..Node::new(ty, cost) }
    }

    fn index(&self, at: usize, operand: &Node, index: &Node, maybe: bool) -> Node {
        let (inner, was_optional) = match &operand.ty {
            Type::Optional(inner) => ((**inner).clone(), true),
            other => (other.clone(), false),
        };
        let name = if maybe { "_[?_]" } else { "_[_]" };
        let mut bindings = Bindings::new();
        let fits = |wanted: &Type, bindings: &mut Bindings| wanted.accepts(&index.ty, bindings);
        let mut ty = match &inner {
            Type::Dyn | Type::Error => Type::Dyn,
            Type::List(item) if fits(&Type::Int, &mut bindings) => (**item).clone(),
            Type::Map(key, value) if fits(key, &mut bindings) => (**value).clone(),
            _ => return self.wrong(at, mismatch(name, None, &[&operand.ty, &index.ty])),
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
        Node { decl, ..Node::new(ty, cost) }
    }

    fn call(&self, at: usize, function: &str, target: Option<&Node>, args: &[Node]) -> Node {
        let Some(overloads) = signatures::overloads(function) else {
            return self.wrong(at, undeclared(function));
        };
        let open = target.into_iter().chain(args).any(|n| n.ty.is_open());
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
                if !open {
                    break;
                }
            }
        }
        let Some(ty) = result else {
            let types: Vec<&Type> = args.iter().map(|a| &a.ty).collect();
            return self.wrong(at, mismatch(function, target.map(|t| &t.ty), &types));
        };
        let (mut cost, size) = cost::call(function, target, args);
        for n in target.into_iter().chain(args) {
            cost = add(cost, n.cost);
        }
        Node { size, ..Node::new(ty, cost) }
    }

    fn list(&self, items: &'a [(Expr, bool)]) -> Node {
        let (mut ty, mut cost) = (None, (10, 10));
        for (expr, maybe) in items {
            let node = self.infer(expr);
            cost = add(cost, node.cost);
            let next = self.element(expr.at, node.ty, *maybe);
            ty = Some(self.aggregate(expr.at, ty, next));
        }
        let n = items.len() as u64;
        Node { size: Some((n, n)), ..Node::new(Type::list(ty.unwrap_or(Type::Dyn)), cost) }
    }

    fn map(&self, entries: &'a [(Expr, Expr, bool)]) -> Node {
        let (mut key_ty, mut value_ty, mut cost) = (None, None, (30, 30));
        for (key, value, maybe) in entries {
            let (k, v) = (self.infer(key), self.infer(value));
            cost = add(cost, add(k.cost, v.cost));
            key_ty = Some(self.aggregate(key.at, key_ty, k.ty));
            let next = self.element(value.at, v.ty, *maybe);
            value_ty = Some(self.aggregate(value.at, value_ty, next));
        }
        let n = entries.len() as u64;
        let ty = Type::Map(Rc::new(key_ty.unwrap_or(Type::Dyn)), Rc::new(value_ty.unwrap_or(Type::Dyn)));
        Node { size: Some((n, n)), ..Node::new(ty, cost) }
    }

    fn message(&self, at: usize, name: &str, fields: &'a [Field]) -> Node {
        let known = name == PATCH || name == OBJECT || name.starts_with("Object.");
        if !known || !self.patches {
            return self.wrong(at, undeclared(name));
        }
        let mut cost = (40, 40);
        for field in fields {
            let value = self.infer(&field.value);
            cost = add(cost, value.cost);
            let given = self.element(field.value.at, value.ty, field.optional);
            match field_of(name, &field.name) {
                None => drop(self.wrong(field.at, format!("undefined field '{}'", field.name))),
                Some(wanted) if wanted.accepts(&given, &mut Bindings::new()) => {}
                Some(wanted) => {
                    let why = format!(
                        "expected type of field '{}' is '{wanted}' but provided type is '{given}'",
                        field.name
                    );
                    self.wrong(field.at, why);
                }
            }
        }
        Node::new(Type::Struct(name.into()), cost)
    }

    /// The type of an element that may be absent (`[?x]`).
    fn element(&self, at: usize, ty: Type, maybe: bool) -> Type {
        match ty {
            Type::Optional(inner) if maybe => (*inner).clone(),
            other if maybe && !other.is_open() => {
                self.wrong(at, format!("expected type 'optional_type({other})' but found '{other}'"));
                other
            }
            other => other,
        }
    }

    /// Elements of a literal have one type.
    fn aggregate(&self, at: usize, so_far: Option<Type>, next: Type) -> Type {
        let Some(before) = so_far else { return next };
        let joined = before.join(&next).or(self.mixed.then_some(Type::Dyn));
        joined.unwrap_or_else(|| self.wrong(at, format!("expected type '{before}' but found '{next}'")).ty)
    }

    /// A condition.
    pub(super) fn truth(&self, expr: &'a Expr) -> Node {
        let node = self.infer(expr);
        match node.ty {
            Type::Bool | Type::Dyn | Type::Error => node,
            other => self.wrong(expr.at, format!("expected type 'bool' but found '{other}'")),
        }
    }
}

/// The type of objects that apply configurations are; its fields are `Object.field`, and so on.
pub(in crate::cel) const OBJECT: &str = "Object";
/// The type of an operation of a JSON patch.
pub(in crate::cel) const PATCH: &str = "JSONPatch";

/// The type of a field of what `Name{…}` makes.
fn field_of(name: &str, field: &str) -> Option<Type> {
    match (name, field) {
        (PATCH, "op" | "path" | "from") => Some(Type::Text),
        (PATCH, "value") => Some(Type::Dyn),
        (PATCH, _) => None,
        _ => Some(Type::Dyn),
    }
}

pub(super) fn optional(ty: Type) -> Type {
    Type::Optional(Rc::new(ty))
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

pub(super) fn mismatch(function: &str, target: Option<&Type>, args: &[&Type]) -> String {
    let types: Vec<String> = args.iter().map(ToString::to_string).collect();
    let given = match target {
        Some(target) => format!("{target}.({})", types.join(", ")),
        None => format!("({})", types.join(", ")),
    };
    format!("found no matching overload for '{function}' applied to '{given}'")
}
