//! To know of a kind's objects without keeping them: their metadata, told one by one.
//!
//! A cache holds what it is fed; an observer makes of it what it wants, such as a graph. The watch behind both is the
//! same, and as patient.

use kube::Resource;
use kube::core::{ApiResource, DynamicObject, ObjectMeta, PartialObjectMeta};
use tokio_util::sync::CancellationToken;

use crate::cache::Selection;
use crate::cache::feed::Sink;
use crate::cache::text::Text;
use crate::key::Key;
use crate::object::display_resource;
use crate::task::TaskContext;

/// Is told of the objects of a kind, by their metadata (without `managedFields`). It is called from one task, and must
/// not block.
pub trait Observer: Send + Sync + 'static {
    /// A list begins: the first, or one after the server lost track.
    fn begin(&self) {}

    /// An object that the list shows.
    fn listed(&self, meta: &ObjectMeta);

    /// The list is complete. What it didn't show is gone, or has metadata that can't be read.
    fn complete(&self);

    /// An object is new, or has changed.
    fn applied(&self, meta: &ObjectMeta);

    /// An object is gone; name, namespace, uid and version are those of its last state.
    fn deleted(&self, meta: &ObjectMeta);
}

impl TaskContext {
    /// Tells `observer` of all objects of a resource until `stop`, or the manager's end. It waits for a resource that
    /// isn't served yet, and never gives up.
    pub fn observe<O: Observer>(
        &self,
        resource: ApiResource,
        observer: O,
        stop: CancellationToken,
    ) -> impl Future<Output = ()> + Send + use<O> {
        let what = display_resource::<DynamicObject>(&resource);
        let path = Box::new(move |namespace: Option<&str>| DynamicObject::url_path(&resource, namespace));
        let sink = Box::new(Told(observer));
        let feed = self.caches().feed(self.client().clone(), sink, path, what, Selection::all(), true);
        async move {
            tokio::select! { biased;
                () = stop.cancelled() => {}
                () = feed.run() => {}
            }
        }
    }
}

struct Told<O>(O);

fn read(object: &Text<'_>) -> serde_json::Result<ObjectMeta> {
    Ok(object.read::<PartialObjectMeta>()?.metadata)
}

impl<O: Observer> Sink for Told<O> {
    fn begin(&self) {
        self.0.begin();
    }

    fn listed(&self, object: &Text<'_>) -> serde_json::Result<()> {
        self.0.listed(&read(object)?);
        Ok(())
    }

    fn complete(&self) -> Vec<Key> {
        self.0.complete();
        Vec::new()
    }

    fn applied(&self, object: &Text<'_>) -> serde_json::Result<()> {
        self.0.applied(&read(object)?);
        Ok(())
    }

    fn deleted(&self, meta: &ObjectMeta) {
        self.0.deleted(meta);
    }
}
