//! Label selectors and field selectors: the strings of list requests and `metav1.LabelSelector` objects.
//!
//! Grammar, order and error texts are those of apimachinery's `labels` and `fields` packages. Selectors don't know
//! which fields a resource offers; that is the strategy's matter.
//! Invariant: a selector printed and parsed again selects the same.

mod fields;
mod labels;

pub use fields::{Fields, Op};
pub use labels::{Labels, Operator, Requirement};
