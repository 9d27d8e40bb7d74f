//! What a schema demands of a value beyond its type: ranges, lengths, patterns, enums, composition.
//!
//! Only data; [`crate::validate`] applies it. Invariant: patterns are compiled, and run in linear time.

use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

use crate::cel::Rule;
use crate::node::Node;

/// Value validations of one node.
#[derive(Default)]
pub(crate) struct Rules {
    pub(crate) r#enum: Vec<Value>,
    pub(crate) minimum: Option<f64>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) maximum: Option<f64>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) min_length: Option<u64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) min_items: Option<u64>,
    pub(crate) max_items: Option<u64>,
    pub(crate) unique_items: bool,
    pub(crate) min_properties: Option<u64>,
    pub(crate) max_properties: Option<u64>,
    pub(crate) required: Vec<String>,
    pub(crate) all_of: Vec<Node>,
    pub(crate) any_of: Vec<Node>,
    pub(crate) one_of: Vec<Node>,
    pub(crate) not: Option<Node>,
    /// `x-kubernetes-validations`.
    pub(crate) cel: Vec<Rule>,
}

/// A regular expression with its source.
#[derive(Clone)]
pub(crate) struct Pattern {
    pub(crate) source: Arc<str>,
    pub(crate) regex: Regex,
}

impl Rules {
    /// Whether nothing is demanded.
    pub(crate) fn is_empty(&self) -> bool {
        self.r#enum.is_empty()
            && self.minimum.is_none()
            && self.maximum.is_none()
            && self.multiple_of.is_none()
            && self.min_length.is_none()
            && self.max_length.is_none()
            && self.pattern.is_none()
            && self.min_items.is_none()
            && self.max_items.is_none()
            && !self.unique_items
            && self.min_properties.is_none()
            && self.max_properties.is_none()
            && self.required.is_empty()
            && self.all_of.is_empty()
            && self.any_of.is_empty()
            && self.one_of.is_empty()
            && self.not.is_none()
            && self.cel.is_empty()
    }
}
