//! What a definition says of a field that is patched: how its list merges and by which key.

use super::{PatchError, failed};
use crate::node::{Kind, Node};

/// The fields of a type; of none where the schema says nothing.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(Option<&'a Node>);

/// A list field.
pub(super) struct ListField<'a> {
    /// Whether items merge; otherwise the list is replaced.
    pub(super) merges: bool,
    /// The key that tells items apart; empty for scalars.
    pub(super) key: &'a str,
    /// The type of its items.
    pub(super) items: Fields<'a>,
}

impl<'a> Fields<'a> {
    pub(super) fn of(node: Option<&'a Node>) -> Self {
        Self(node)
    }

    /// The fields of a field that is an object.
    pub(super) fn map(self, key: &str) -> Result<Fields<'a>, PatchError> {
        self.field(key).map(Fields)
    }

    /// A field that is a list.
    pub(super) fn list(self, key: &str) -> Result<ListField<'a>, PatchError> {
        let node = self.field(key)?;
        let items = node.and_then(Node::items);
        Ok(ListField {
            merges: node.is_some_and(|n| n.patch_strategy().merge),
            key: node.and_then(Node::patch_merge_key).unwrap_or_default(),
            items: Fields(items),
        })
    }

    /// The name of the type as Go prints its kind.
    pub(super) fn kind(self) -> &'static str {
        match self.0.map(Node::kind) {
            Some(Kind::Array) => "slice",
            Some(Kind::String) => "string",
            Some(Kind::Object) if self.0.is_some_and(|n| n.additional().is_some()) => "map",
            _ => "struct",
        }
    }

    fn field(self, key: &str) -> Result<Option<&'a Node>, PatchError> {
        let Some(node) = self.0 else { return Ok(None) };
        if let Some(field) = node.field(key) {
            return Ok(Some(field));
        }
        // A type without fields of its own takes any.
        if node.property_names().next().is_none() {
            return Ok(None);
        }
        let name = node.go.as_deref().and_then(|n| n.rsplit('.').next()).unwrap_or_default();
        let key = homeostat_model::field::quote(key);
        Err(failed(format!("unable to find api field in struct {name} for the json field {key}")))
    }
}
