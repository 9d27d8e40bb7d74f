//! Types and costs of macros: each is judged as the comprehension that it stands for.

use std::rc::Rc;

use super::cost::{self, Range, add, union};
use super::decl::{self, Decl, Shape};
use super::infer::{Env, Node, mismatch, optional};
use super::types::{Bindings, Type};
use crate::cel::ast::{Loop, Which};

impl<'a> Env<'a> {
    pub(super) fn repeat(&self, at: usize, l: &'a Loop) -> Node {
        let range = self.infer(&l.range);
        if matches!(l.which, Which::OptMap | Which::OptFlatMap) {
            return self.optional_map(at, l, &range);
        }
        let (key, value) = match &range.ty {
            Type::List(item) => (Type::Int, (**item).clone()),
            Type::Map(k, v) => ((**k).clone(), (**v).clone()),
            Type::Dyn | Type::Error => (Type::Dyn, Type::Dyn),
            other => {
                let why = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.wrong(l.range.at, why);
                (Type::Error, Type::Error)
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
                let keys = range.decl.as_ref().map(|_| Rc::new(decl::simple(Type::Text, 0, 2)));
                variables.push((&*l.first, variable(&key, keys)));
            }
            None => variables.push((&*l.first, variable(&value, inner))),
        }
        let first = variables[0].1.ty.clone();
        let scope = self.with(variables);
        let filter = l.filter.as_ref().map(|f| scope.infer(f));
        let body = match l.which {
            Which::All | Which::Exists => scope.truth(&l.body),
            _ => scope.infer(&l.body),
        };
        // Other conditions choose between what there is so far and what is added to it.
        let (condition, branch) = match l.which {
            Which::ExistsOne => (Some(&body), Type::Int),
            Which::Filter => (Some(&body), Type::list(first.clone())),
            Which::TransformMap | Which::TransformMapEntry => {
                (filter.as_ref(), Type::Map(Rc::new(key), Rc::new(body.ty.clone())))
            }
            _ => (filter.as_ref(), Type::list(body.ty.clone())),
        };
        if let Some(condition) = condition
            && !Type::Bool.accepts(&condition.ty, &mut Bindings::new())
        {
            return self.wrong(at, mismatch("_?_:_", None, &[&condition.ty, &branch, &branch]));
        }
        self.looped(at, l.which, &range, first, filter.map(|f| f.cost), &body)
    }

    /// The cost of a macro is that of the comprehension it stands for.
    fn looped(
        &self,
        at: usize,
        which: Which,
        range: &Node,
        first: Type,
        filter: Option<Range>,
        body: &Node,
    ) -> Node {
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
                Type::Map(..) | Type::Dyn | Type::Error => {
                    ((30, 30), (0, 0), append, (1, 1), body.ty.clone())
                }
                other => return self.wrong(at, format!("expected type 'map(dyn, dyn)' but found '{other}'")),
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
        Node { size, ..Node::new(ty, cost) }
    }

    fn optional_map(&self, at: usize, l: &'a Loop, range: &Node) -> Node {
        let inner = match &range.ty {
            Type::Optional(inner) => (**inner).clone(),
            Type::Dyn | Type::Error => Type::Dyn,
            other => {
                let name = if l.which == Which::OptMap { "optMap" } else { "optFlatMap" };
                return self.wrong(at, mismatch(name, Some(other), &[]));
            }
        };
        let body = self.with(vec![(&*l.first, Node::new(inner, (1, 1)))]).infer(&l.body);
        let ty = match (l.which, &body.ty) {
            (Which::OptFlatMap, Type::Optional(_) | Type::Dyn | Type::Error) => body.ty.clone(),
            (Which::OptFlatMap, other) => {
                return self.wrong(at, format!("expected type 'optional_type(dyn)' but found '{other}'"));
            }
            (_, ty) => optional(ty.clone()),
        };
        Node::new(ty, add(add(range.cost, body.cost), (4, 4)))
    }
}
