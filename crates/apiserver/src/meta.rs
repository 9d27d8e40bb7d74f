//! What the store keeps beside an object's bytes, so that selectors, deletes and counts need not parse them.
//!
//! Invariant: a function of the object and its definition's epoch alone.

use std::borrow::Cow;

use homeostat_resources::{Resource, Version};
use serde_json::Value;

use crate::object;

/// Indexed metadata of a stored object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// `metadata.uid`.
    pub uid: Box<str>,
    /// `metadata.labels`, sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// Values of the resource's field selectors, in the definition's order; empty ones are left out.
    pub fields: Box<[(Cow<'static, str>, Box<str>)]>,
    /// `metadata.generation`.
    pub generation: i64,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// uids of its owners.
    pub owners: Box<[Box<str>]>,
    /// Epoch of the definition that it was encoded under.
    pub epoch: u64,
}

impl Meta {
    /// Reads it from an object in the storage version. Resources that show the same objects in two forms (events) share
    /// the strategy, which knows the selectors of both.
    pub fn of(object: &Value, resource: &Resource) -> Self {
        let meta = object.get("metadata");
        let labels = meta
            .and_then(|m| m.get("labels"))
            .and_then(Value::as_object)
            .map(|m| {
                m.iter().map(|(k, v)| (k.as_str().into(), v.as_str().unwrap_or_default().into())).collect()
            })
            .unwrap_or_default();
        let owners = meta
            .and_then(|m| m.get("ownerReferences"))
            .and_then(Value::as_array)
            .map(|a| a.iter().filter_map(|o| o.get("uid").and_then(Value::as_str)).map(Into::into).collect())
            .unwrap_or_default();
        Self {
            uid: object::uid(object).into(),
            labels,
            fields: fields(object, resource, resource.storage_version()),
            generation: object::generation(object),
            deleting: object::deleting(object),
            owners,
            epoch: resource.epoch,
        }
    }

    /// Value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.binary_search_by(|(k, _)| (**k).cmp(key)).ok().map(|i| &*self.labels[i].1)
    }

    /// Value of a selectable field other than name and namespace; empty where the object has none.
    pub fn field(&self, label: &str) -> &str {
        self.fields.iter().find(|(k, _)| k == label).map_or("", |(_, v)| v)
    }
}

fn fields(object: &Value, resource: &Resource, version: &Version) -> Box<[(Cow<'static, str>, Box<str>)]> {
    let custom = version.selectable.iter().map(|(label, path)| {
        let value = path
            .trim_start_matches('.')
            .split('.')
            .try_fold(object, |v, key| v.get(key))
            .map(|v| match v {
                Value::String(s) => s.clone(),
                Value::Null => String::new(),
                other => other.to_string(),
            })
            .unwrap_or_default();
        (Cow::Owned(label.clone()), value)
    });
    let built_in =
        resource.strategy.selectable(object).into_iter().map(|(label, value)| (Cow::Borrowed(label), value));
    let all = built_in.chain(custom).filter(|(_, value)| !value.is_empty());
    all.map(|(label, value)| (label, value.into())).collect()
}
