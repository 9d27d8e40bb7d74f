//! Sets of kinds as tuples of types, and membership in them as trait bounds.
//!
//! `type Owns = (StatefulSet, Service)` is a set; `(StatefulSet, Service): Has<Service, _>` holds and
//! `Has<Secret, _>` doesn't, so a method with that bound doesn't compile for a kind that isn't declared. The second
//! parameter of the traits is found by the compiler: it only keeps the implementations for different places of a
//! tuple apart. That is why a turbofish names it: `cx.read::<Secret, _>("password")`.
//! Invariant: a kind stands once in `Resource`, `Owns` and `Reads` together; twice is ambiguous and doesn't compile
//! where it is used.

use std::marker::PhantomData;

use crate::object::Object;
use crate::operator::Operator;

/// In [`Operator::Reads`]: a kind that is read, and also written without being owned.
///
/// The scheduler binds pods and the node controller writes node status without owning either; an operator that
/// must write what it doesn't own says so with this and gets the rights for it.
#[derive(Debug)]
pub struct Edits<T>(PhantomData<T>);

/// A member that stands for `T`.
#[diagnostic::on_unimplemented(
    message = "`{T}` is not among the kinds that this operator owns",
    label = "it is no `{Self}`",
    note = "add `{T}` to `type Owns` to create and own it; what is in `type Reads` can only be read"
)]
#[doc(hidden)]
pub trait Stands<T> {}
impl<T: Object> Stands<T> for T {}
impl<T: Object> Stands<T> for Edits<T> {}

/// A set of kinds: a tuple of up to twelve.
pub trait Kinds: 'static {
    /// Shows every member to `visitor`, in the order in which they were written.
    fn visit(visitor: &mut impl Visitor);
}

/// What [`Kinds::visit`] calls.
pub trait Visitor {
    /// Called for each member; `edits` says that it stands as [`Edits`].
    fn kind<T: Object>(&mut self, edits: bool);
}

/// The set has `T`, at place `I`. Also the bound of helper functions over several operators:
/// `where O::Owns: Has<Pod, I>`.
#[diagnostic::on_unimplemented(
    message = "`{T}` is not among the kinds that this operator owns",
    label = "not among the kinds `{Self}`",
    note = "add `{T}` to `type Owns` to create and own it; what is in `type Reads` can only be read"
)]
pub trait Has<T, I> {}

/// The set has [`Edits`] of `T`, at place `I`.
#[doc(hidden)]
pub trait HasEdits<T, I> {}

/// A place in a tuple.
#[doc(hidden)]
#[derive(Debug)]
pub struct At<const N: usize>;

/// Found in `Owns`, at place `I`.
#[doc(hidden)]
#[derive(Debug)]
pub struct InOwns<I>(PhantomData<I>);

/// Found in `Reads`, at place `I`.
#[doc(hidden)]
#[derive(Debug)]
pub struct InReads<I>(PhantomData<I>);

/// It is the operator's own resource.
#[doc(hidden)]
#[derive(Debug)]
pub struct Itself;

/// The operator sees `T`: it is its resource, owned or read, hence cached, watched and permitted.
#[diagnostic::on_unimplemented(
    message = "`{Self}` doesn't watch `{T}`",
    label = "`{T}` is neither the resource of `{Self}` nor in its `Owns` or `Reads`",
    note = "add `{T}` to `type Reads`"
)]
pub trait Sees<T, P> {}

impl<O: Operator> Sees<O::Resource, Itself> for O {}
impl<O: Operator, T, I> Sees<T, InOwns<I>> for O where O::Owns: Has<T, I> {}
impl<O: Operator, T, I> Sees<T, InReads<I>> for O where O::Reads: Has<T, I> {}

/// The operator may create, change and delete `T`: it owns it, or has declared [`Edits`] of it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` may not write `{T}`",
    label = "`{T}` is not in `Owns` of `{Self}`, nor as `Edits<{T}>` in its `Reads`",
    note = "add `{T}` to `type Owns` to own it, or `Edits<{T}>` to `type Reads` to write it without owning it"
)]
pub trait Writes<T, P> {
    /// Whether what it creates is owned by the operator's resource.
    const OWNED: bool;
}

impl<O: Operator, T, I> Writes<T, InOwns<I>> for O
where
    O::Owns: Has<T, I>,
{
    const OWNED: bool = true;
}

impl<O: Operator, T, I> Writes<T, InReads<I>> for O
where
    O::Reads: HasEdits<T, I>,
{
    const OWNED: bool = false;
}

macro_rules! tuple {
    ($($n:literal $t:ident),*) => {
        impl<$($t: Place + 'static),*> Kinds for ($($t,)*) {
            fn visit(_visitor: &mut impl Visitor) {
                $($t::visit(_visitor);)*
            }
        }
        tuple!(@each [$($t),*] $($n $t),*);
    };
    (@each $all:tt $($n:literal $t:ident),*) => {
        $(tuple!(@one $all $n $t);)*
    };
    (@one [$($all:ident),*] $n:literal $t:ident) => {
        impl<Kind, $($all),*> Has<Kind, At<$n>> for ($($all,)*) where $t: Stands<Kind> {}
        impl<Kind, $($all),*> HasEdits<Kind, At<$n>> for ($($all,)*) where $t: IsEdits<Kind> {}
    };
}

/// [`Edits`] of `T`.
#[doc(hidden)]
pub trait IsEdits<T> {}
impl<T: Object> IsEdits<T> for Edits<T> {}

/// What stands at a place of a tuple.
#[doc(hidden)]
pub trait Place {
    #[doc(hidden)]
    fn visit(visitor: &mut impl Visitor);
}

impl<T: Object> Place for T {
    fn visit(visitor: &mut impl Visitor) {
        visitor.kind::<T>(false);
    }
}

impl<T: Object> Place for Edits<T> {
    fn visit(visitor: &mut impl Visitor) {
        visitor.kind::<T>(true);
    }
}

/// Nobody's kind. With it a set of one kind has two candidates, so the compiler doesn't take the one for the only
/// possible and report another kind as a mismatch of types.
#[doc(hidden)]
#[derive(Debug)]
pub enum Nobodys {}
impl<A> Has<Nobodys, Nobodys> for (A,) {}
impl<A> HasEdits<Nobodys, Nobodys> for (A,) {}

tuple!();
tuple!(0 A);
tuple!(0 A, 1 B);
tuple!(0 A, 1 B, 2 C);
tuple!(0 A, 1 B, 2 C, 3 D);
tuple!(0 A, 1 B, 2 C, 3 D, 4 E);
tuple!(0 A, 1 B, 2 C, 3 D, 4 E, 5 F);
tuple!(0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G);
tuple!(0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H);
tuple!(0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H, 8 I);
tuple!(0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H, 8 I, 9 J);
tuple!(0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H, 8 I, 9 J, 10 K);
tuple!(0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H, 8 I, 9 J, 10 K, 11 L);
