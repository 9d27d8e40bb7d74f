//! `+ - * / %` with CEL's overflow rules.

use std::sync::Arc;

use homeostat_model::Timestamp;

use crate::cel::eval::{Fault, Out, concat, fault, no_overload};
use crate::cel::value::Val;

fn int(n: Option<i64>) -> Out {
    n.map(Val::Int).ok_or_else(|| Fault::Error("integer overflow".into()))
}

fn uint(n: Option<u64>) -> Out {
    n.map(Val::Uint).ok_or_else(|| Fault::Error("unsigned integer overflow".into()))
}

fn duration(n: Option<i64>) -> Out {
    n.map(Val::Duration).ok_or_else(|| Fault::Error("duration overflow".into()))
}

fn shifted(t: &Timestamp, nanos: i64) -> Out {
    match t.checked_add(jiff::SignedDuration::from_nanos(nanos)) {
        Ok(t) => Ok(Val::Timestamp(t)),
        Err(_) => fault("timestamp overflow"),
    }
}

pub(in crate::cel) fn add(left: &Val, right: &Val) -> Out {
    match (left, right) {
        (Val::Int(a), Val::Int(b)) => int(a.checked_add(*b)),
        (Val::Uint(a), Val::Uint(b)) => uint(a.checked_add(*b)),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a + b)),
        (Val::String(a), Val::String(b)) => Ok(Val::String([&**a, &**b].concat().into())),
        (Val::Bytes(a), Val::Bytes(b)) => Ok(Val::Bytes(Arc::from([&**a, &**b].concat()))),
        (Val::List(a), Val::List(b)) => Ok(concat(a, b)),
        (Val::Duration(a), Val::Duration(b)) => duration(a.checked_add(*b)),
        (Val::Timestamp(t), Val::Duration(d)) | (Val::Duration(d), Val::Timestamp(t)) => shifted(t, *d),
        _ => no_overload(),
    }
}

pub(in crate::cel) fn subtract(left: &Val, right: &Val) -> Out {
    match (left, right) {
        (Val::Int(a), Val::Int(b)) => int(a.checked_sub(*b)),
        (Val::Uint(a), Val::Uint(b)) => uint(a.checked_sub(*b)),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a - b)),
        (Val::Duration(a), Val::Duration(b)) => duration(a.checked_sub(*b)),
        (Val::Timestamp(t), Val::Duration(d)) => match d.checked_neg() {
            Some(d) => shifted(t, d),
            None => fault("timestamp overflow"),
        },
        (Val::Timestamp(a), Val::Timestamp(b)) => {
            duration(i64::try_from(a.as_nanosecond() - b.as_nanosecond()).ok())
        }
        _ => no_overload(),
    }
}

pub(in crate::cel) fn multiply(left: &Val, right: &Val) -> Out {
    match (left, right) {
        (Val::Int(a), Val::Int(b)) => int(a.checked_mul(*b)),
        (Val::Uint(a), Val::Uint(b)) => uint(a.checked_mul(*b)),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a * b)),
        _ => no_overload(),
    }
}

pub(in crate::cel) fn divide(left: &Val, right: &Val) -> Out {
    match (left, right) {
        (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) => fault("division by zero"),
        (Val::Int(a), Val::Int(b)) => int(a.checked_div(*b)),
        (Val::Uint(a), Val::Uint(b)) => Ok(Val::Uint(a / b)),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a / b)),
        _ => no_overload(),
    }
}

pub(in crate::cel) fn remainder(left: &Val, right: &Val) -> Out {
    match (left, right) {
        (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) => fault("modulus by zero"),
        (Val::Int(a), Val::Int(b)) => int(a.checked_rem(*b)),
        (Val::Uint(a), Val::Uint(b)) => Ok(Val::Uint(a % b)),
        _ => no_overload(),
    }
}
