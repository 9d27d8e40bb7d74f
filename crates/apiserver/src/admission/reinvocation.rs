//! Asking mutating webhooks and policies again: who asks for it looks once more at what others have changed since.
//!
//! There are two rounds at most, of all that can change an object; in the second only those are asked again that want it
//! and after whom something has changed. Source: the reference's reinvocation contexts.

use std::collections::BTreeSet;

use serde_json::Value;

/// What two rounds of admission remember of the first.
#[derive(Default)]
pub(super) struct Reinvocation {
    /// This is the second round.
    pub(super) again: bool,
    /// Something has changed that makes a second round worth it.
    pub(super) wanted: bool,
    /// Webhooks by their place.
    pub(super) webhooks: Invoked<usize>,
    /// Policies with their binding and parameter.
    pub(super) policies: Invoked<(String, String, String)>,
}

/// Who has been asked, of one kind.
pub(super) struct Invoked<K> {
    /// The object as they left it.
    last: Option<Value>,
    /// Those who may be asked again, since nothing has changed after them.
    before: BTreeSet<K>,
    /// Those who are to be asked again.
    again: BTreeSet<K>,
}

impl<K> Default for Invoked<K> {
    fn default() -> Self {
        Self { last: None, before: BTreeSet::new(), again: BTreeSet::new() }
    }
}

impl<K: Ord> Invoked<K> {
    /// Begins the second round: what others have changed meanwhile is a change after all of them.
    pub(super) fn resume(&mut self, object: &Value) {
        if self.last.as_ref() != Some(object) {
            self.changed();
        }
    }

    /// Something has changed after those who were asked.
    pub(super) fn changed(&mut self) {
        self.again.append(&mut self.before);
    }

    /// One has been asked that wants to be asked again.
    pub(super) fn may_return(&mut self, key: K) {
        self.before.insert(key);
    }

    /// Whether one is to be asked in the second round.
    pub(super) fn returns(&self, key: &K) -> bool {
        self.again.contains(key)
    }

    /// Ends a round.
    pub(super) fn leave(&mut self, object: &Value) {
        if !self.before.is_empty() || !self.again.is_empty() {
            self.last = Some(object.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_returns_if_something_changes_after_it() {
        let mut i = Invoked::default();
        i.changed();
        i.may_return(1);
        assert!(!i.returns(&1));
        i.changed();
        i.may_return(2);
        assert!(i.returns(&1) && !i.returns(&2));
        i.leave(&json!(1));
        i.resume(&json!(1));
        assert!(!i.returns(&2));
        i.resume(&json!(2));
        assert!(i.returns(&2));
    }
}
