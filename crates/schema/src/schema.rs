//! [`Schema`]: a compiled schema with its operations, cheap to clone.

use std::fmt;
use std::sync::Arc;

use homeostat_model::field;
use serde_json::Value;

use crate::compile::{self, CompileError, Definitions};
use crate::decode::{self, DecodeError};
use crate::node::Node;
use crate::path::Path;
use crate::validate::{self, Report};
use crate::{default, prune};

/// The schema of one version of a resource. See the crate's head.
#[derive(Clone)]
pub struct Schema(Root);

#[derive(Clone)]
enum Root {
    Custom(Arc<Node>),
    BuiltIn(Arc<Definitions>, usize),
}

impl Schema {
    /// Compiles a CRD's `openAPIV3Schema`.
    pub fn compile(openapi: &Value) -> Result<Self, CompileError> {
        Ok(Self(Root::Custom(Arc::new(compile::structural(openapi)?))))
    }

    /// The schema of a built-in type. A name that `definitions` doesn't have is an error.
    pub fn builtin(definitions: Arc<Definitions>, name: &str) -> Result<Self, CompileError> {
        match definitions.index(name) {
            Some(at) => Ok(Self(Root::BuiltIn(definitions, at))),
            None => Err(CompileError::UnknownDefinition { path: String::new(), name: name.to_owned() }),
        }
    }

    /// The node of the whole object.
    pub fn root(&self) -> &Node {
        match &self.0 {
            Root::Custom(node) => node,
            Root::BuiltIn(definitions, at) => definitions.node(*at),
        }
    }

    /// Decodes an object in place: checks JSON types as far as the reference's decoder does, and drops unknown fields
    /// and nulls. Returns the paths of unknown fields, for warnings or a strict error.
    pub fn decode(&self, object: &mut Value) -> Result<Vec<String>, DecodeError> {
        match &self.0 {
            Root::Custom(node) => decode::custom(node, object),
            Root::BuiltIn(..) => decode::built_in(self.root(), object, &Path::Root),
        }
    }

    /// Drops unknown fields and returns their paths, sorted: `spec.x`, `spec.list[0].y`. A part of what
    /// [`Schema::decode`] does.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::unknown(self.root(), object)
    }

    /// Drops nulls where null is no value and no default takes its place. A part of what [`Schema::decode`] does.
    pub fn drop_nulls(&self, object: &mut Value) {
        prune::nulls(self.root(), object);
    }

    /// Fills in defaults.
    pub fn default(&self, object: &mut Value) {
        default::fill(self.root(), object);
    }

    /// Validates a custom resource; `old` is what it replaces, and what it left unchanged is not held against it.
    /// Built-in types have their rules elsewhere: nothing is found here.
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<field::Error> {
        self.report(new, old).errors
    }

    /// [`Schema::validate`] with the warnings that it gives.
    pub fn report(&self, new: &Value, old: Option<&Value>) -> Report {
        match &self.0 {
            Root::Custom(node) => validate::object(node, new, old),
            Root::BuiltIn(..) => Report::default(),
        }
    }

    /// Whether this is a built-in type's schema.
    pub fn is_builtin(&self) -> bool {
        matches!(self.0, Root::BuiltIn(..))
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root().fmt(f)
    }
}
