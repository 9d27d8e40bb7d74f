//! What the caches tell, gathered until the loop looks.
//!
//! Subscribers only note that something changed; the loop takes the notes between two pods, so that a cycle sees one
//! moment. Invariant: where so much changed that the notes were dropped, the loop is told to read everything anew.

use std::sync::{Arc, Mutex, PoisonError};

use homeostat_sdk::{Change, TaskContext, Watched};
use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{
    Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, ReplicationController, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode, CSIStorageCapacity, StorageClass};
use tokio::sync::Notify;

/// Notes at most; a cluster of 5,000 nodes and 150,000 pods fits at its start.
const MOST: usize = 400_000;

/// Something changed: as it was, as it is.
#[derive(Clone, Debug)]
pub(super) enum Note {
    Node(Change<Node>),
    Pod(Change<Pod>),
    Claim(Change<PersistentVolumeClaim>),
    ResourceClaim(Change<ResourceClaim>),
    Volume(Change<PersistentVolume>),
    Class(Change<StorageClass>),
    StorageNode(Change<CSINode>),
    Driver(Change<CSIDriver>),
    Capacity(Change<CSIStorageCapacity>),
    Namespace(Change<Namespace>),
    Service(Change<Service>),
    ReplicaSet(Change<ReplicaSet>),
    StatefulSet(Change<StatefulSet>),
    Controller(Change<ReplicationController>),
    Budget(Change<PodDisruptionBudget>),
}

#[derive(Debug, Default)]
struct Notes {
    list: Vec<Note>,
    dropped: bool,
}

/// The notes.
#[derive(Clone, Debug, Default)]
pub(super) struct Feed {
    notes: Arc<Mutex<Notes>>,
    /// Wakes the loop.
    pub(super) wake: Arc<Notify>,
}

impl Feed {
    fn note(&self, note: Note) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.list.len() >= MOST {
            notes.list = Vec::new();
            notes.dropped = true;
        }
        if !notes.dropped {
            notes.list.push(note);
        }
        drop(notes);
        self.wake.notify_one();
    }

    async fn follow<K: Watched>(&self, cx: &TaskContext, note: fn(Change<K>) -> Note)
    where
        K::DynamicType: Default,
    {
        cx.cache::<K>().synced().await;
        self.subscribe(cx, note);
    }

    /// Follows a kind that not every server has: pods don't wait for it.
    fn subscribe<K: Watched>(&self, cx: &TaskContext, note: fn(Change<K>) -> Note)
    where
        K::DynamicType: Default,
    {
        let feed = self.clone();
        cx.cache::<K>().subscribe(move |change| feed.note(note(change.clone())));
    }

    /// Follows everything that scheduling looks at. Returns when all of it is known.
    pub(super) async fn start(&self, cx: &TaskContext) {
        open(cx);
        // What pods are judged by, before the pods.
        self.follow(cx, Note::Namespace).await;
        self.follow(cx, Note::Class).await;
        self.follow(cx, Note::Volume).await;
        self.follow(cx, Note::Claim).await;
        self.subscribe(cx, Note::ResourceClaim);
        self.follow(cx, Note::StorageNode).await;
        self.follow(cx, Note::Driver).await;
        self.follow(cx, Note::Capacity).await;
        self.follow(cx, Note::Service).await;
        self.follow(cx, Note::ReplicaSet).await;
        self.follow(cx, Note::StatefulSet).await;
        self.follow(cx, Note::Controller).await;
        self.follow(cx, Note::Budget).await;
        self.follow(cx, Note::Node).await;
        self.follow(cx, Note::Pod).await;
    }

    /// The notes so far, and whether some are missing.
    pub(super) fn take(&self) -> (Vec<Note>, bool) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let dropped = std::mem::take(&mut notes.dropped);
        (std::mem::take(&mut notes.list), dropped)
    }
}

fn all<K: Watched>(cx: &TaskContext, note: fn(Change<K>) -> Note) -> impl Iterator<Item = Note>
where
    K::DynamicType: Default,
{
    let list = cx.cache::<K>().list().into_iter();
    list.map(move |new| note(Change { old: None, new: Some(new), listed: true }))
}

/// Notes of everything that is there.
pub(super) fn everything(cx: &TaskContext) -> Vec<Note> {
    all(cx, Note::Namespace)
        .chain(all(cx, Note::Class))
        .chain(all(cx, Note::Volume))
        .chain(all(cx, Note::Claim))
        .chain(all(cx, Note::ResourceClaim))
        .chain(all(cx, Note::StorageNode))
        .chain(all(cx, Note::Driver))
        .chain(all(cx, Note::Capacity))
        .chain(all(cx, Note::Service))
        .chain(all(cx, Note::ReplicaSet))
        .chain(all(cx, Note::StatefulSet))
        .chain(all(cx, Note::Controller))
        .chain(all(cx, Note::Budget))
        .chain(all(cx, Note::Node))
        .chain(all(cx, Note::Pod))
        .collect()
}

/// Asks for all caches, so that they are filled side by side.
fn open(cx: &TaskContext) {
    drop((cx.cache::<Namespace>(), cx.cache::<StorageClass>(), cx.cache::<PersistentVolume>()));
    drop((cx.cache::<PersistentVolumeClaim>(), cx.cache::<CSINode>(), cx.cache::<Service>()));
    drop((cx.cache::<CSIDriver>(), cx.cache::<CSIStorageCapacity>()));
    drop((cx.cache::<ReplicaSet>(), cx.cache::<StatefulSet>(), cx.cache::<ReplicationController>()));
    drop((
        cx.cache::<ResourceClaim>(),
        cx.cache::<PodDisruptionBudget>(),
        cx.cache::<Node>(),
        cx.cache::<Pod>(),
    ));
}
