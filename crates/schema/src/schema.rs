//! [`Schema`]: a compiled schema with its operations, cheap to clone.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::compile::{self, CompileError, Definitions};
use crate::node::Node;

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
