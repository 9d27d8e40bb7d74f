//! What is made of configuration objects, kept as long as none of them changes.

use std::sync::{Arc, Mutex, PoisonError};

use homeostat_store::{Revision, Snapshot};

use crate::meta::Meta;

/// What was made of the objects of some collections, and at which revisions they were.
pub(super) struct Kept<T>(Mutex<(Vec<Revision>, Arc<T>)>);

impl<T: Default> Default for Kept<T> {
    fn default() -> Self {
        Self(Mutex::new((Vec::new(), Arc::default())))
    }
}

impl<T> Kept<T> {
    /// What `make` makes of these collections, unless it is known; it is given what it made before.
    pub(super) fn of(
        &self,
        snapshot: &Snapshot<Meta>,
        collections: &[&str],
        make: impl FnOnce(&T) -> T,
    ) -> Arc<T> {
        let revisions =
            || collections.iter().flat_map(|c| snapshot.range(c, "", None)).map(|record| record.revision);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !revisions().eq(known.0.iter().copied()) {
            *known = (revisions().collect(), Arc::new(make(&known.1)));
        }
        known.1.clone()
    }
}
