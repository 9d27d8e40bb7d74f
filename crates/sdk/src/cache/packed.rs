//! An object at rest: its text, read again when somebody asks for the object.
//!
//! A typed object takes several times its text: a struct has room for every field that its kind could have. Invariant:
//! the text was read once as the cache's type, so it can be read again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use kube::core::ObjectMeta;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::held::Held;
use super::text::place;
use crate::key::Key;

/// Reads a text as its cache's type.
pub(super) type Unpack = Arc<dyn Fn(&str) -> Option<Arc<dyn Held>> + Send + Sync>;

/// A text, and where its `metadata` is.
#[derive(Clone)]
pub(super) struct Packed {
    text: Box<str>,
    meta: Range<u32>,
}

impl Packed {
    /// `None` where it isn't the text of an object, or is longer than 4 GiB. Of `only_metadata` nothing else is kept,
    /// whatever the server sent.
    pub(super) fn new(text: Cow<'_, str>, only_metadata: bool) -> Option<Self> {
        #[derive(Deserialize)]
        struct Head<'a> {
            #[serde(borrow)]
            metadata: &'a RawValue,
        }
        let metadata = serde_json::from_str::<Head<'_>>(&text).ok()?.metadata.get();
        if only_metadata {
            let (before, after) = ("{\"metadata\":", "}");
            let meta =
                u32::try_from(before.len()).ok()?..u32::try_from(before.len() + metadata.len()).ok()?;
            return Some(Self { text: [before, metadata, after].concat().into_boxed_str(), meta });
        }
        let place = place(metadata, &text);
        let meta = u32::try_from(place.start).ok()?..u32::try_from(place.end).ok()?;
        Some(Self { text: text.into_owned().into_boxed_str(), meta })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// `metadata`, read from its part of the text.
    pub(super) fn metadata(&self) -> ObjectMeta {
        let text = self.text.get(self.meta.start as usize..self.meta.end as usize);
        text.and_then(|t| serde_json::from_str(t).ok()).unwrap_or_default()
    }
}

/// The objects of a cache that were used last, as they are: those that a reconcile is about need not be read anew for
/// each look at them.
#[derive(Default)]
pub(super) struct Pool {
    objects: BTreeMap<Key, (u64, Arc<dyn Held>)>,
    /// By when they were used, the longest ago first.
    order: BTreeMap<u64, Key>,
    uses: u64,
}

impl Pool {
    /// How many a cache of `len` objects has room for.
    pub(super) fn room(len: usize) -> usize {
        64 + len / 32
    }

    pub(super) fn get(&mut self, key: &Key) -> Option<Arc<dyn Held>> {
        let (used, object) = self.objects.get_mut(key)?;
        let object = object.clone();
        self.uses += 1;
        let before = std::mem::replace(used, self.uses);
        if let Some(key) = self.order.remove(&before) {
            self.order.insert(self.uses, key);
        }
        Some(object)
    }

    /// As [`get`](Self::get), which doesn't count as a use.
    pub(super) fn peek(&self, key: &Key) -> Option<Arc<dyn Held>> {
        self.objects.get(key).map(|(_, object)| object.clone())
    }

    pub(super) fn insert(&mut self, key: Key, object: Arc<dyn Held>, room: usize) {
        self.remove(&key);
        self.uses += 1;
        self.order.insert(self.uses, key.clone());
        self.objects.insert(key, (self.uses, object));
        while self.objects.len() > room
            && let Some((_, key)) = self.order.pop_first()
        {
            self.objects.remove(&key);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(super) fn remove(&mut self, key: &Key) {
        if let Some((used, _)) = self.objects.remove(key) {
            self.order.remove(&used);
        }
    }
}
