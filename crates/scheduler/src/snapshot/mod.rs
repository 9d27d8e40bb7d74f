//! What the scheduler sees: nodes with the pods on them, and what rules about them need, at one moment.
//!
//! It is kept up to date by changes rather than made anew: a pod that comes or goes touches its node and the shared
//! parts of the pod, nothing else. Between its decision and the echo of the binding a pod counts as assumed to be on
//! its node, so that two pods never get the same room.
//! Invariant: after any sequence of changes it equals the snapshot that would be made from scratch.

mod classes;
mod node;
mod objects;
mod pod;
mod shared;
#[cfg(test)]
mod tests;
mod topology;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use classes::Classes;
use homeostat_model::selector::Labels;
use k8s_openapi::api::core::v1::{Node, Pod};

pub use node::NodeInfo;
pub use objects::{Budget, Objects, Room};
pub(crate) use pod::selector;
pub use pod::{Affinity, Class, HostPort, PodInfo, Term, host_ports, is_over, node_of};
pub use shared::{Index, Shared};
pub use topology::Column;

/// The zone that a node is in, by its labels.
const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";

struct Placed {
    info: Arc<PodInfo>,
    node: Arc<str>,
    /// Decided here, not yet told by the API server.
    assumed: bool,
}

/// Nodes, pods and the rest.
#[derive(Default)]
pub struct Snapshot {
    slots: Vec<Option<Arc<NodeInfo>>>,
    free: Vec<usize>,
    by_name: BTreeMap<Arc<str>, usize>,
    /// Slots in the order in which nodes are looked at: zone by turns.
    order: Vec<usize>,
    order_stale: bool,
    generation: u64,
    pods: BTreeMap<Arc<str>, Placed>,
    /// Pods whose node isn't known, by its name.
    orphans: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    classes: Classes,
    affinities: Index<(Arc<str>, String), Affinity>,
    columns: Mutex<BTreeMap<String, Arc<Column>>>,
    /// On how many nodes each image is.
    images: BTreeMap<String, usize>,
    /// Pods that made room on a node, by node.
    nominated: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Arc<PodInfo>>>,
    /// Pods without a node.
    pending: BTreeMap<Arc<str>, Arc<PodInfo>>,
    /// The rest.
    pub objects: Objects,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (nodes, pods) = (self.by_name.len(), self.pods.len());
        f.debug_struct("Snapshot").field("nodes", &nodes).field("pods", &pods).finish_non_exhaustive()
    }
}

impl Snapshot {
    /// From all nodes and all pods; pods that are over take nothing.
    pub fn new(nodes: impl IntoIterator<Item = Node>, pods: impl IntoIterator<Item = Pod>) -> Self {
        let mut snapshot = Self::default();
        for node in nodes {
            snapshot.set_node(&Arc::new(node));
        }
        for pod in pods {
            if !is_over(&pod) && node_of(&pod).is_some() {
                let info = snapshot.read(Arc::new(pod));
                snapshot.place(info, false);
            }
        }
        snapshot.settle();
        snapshot
    }

    /// Reads a pod. Give it back with [`place`](Self::place), [`wait`](Self::wait) or [`release`](Self::release).
    pub fn read(&mut self, pod: Arc<Pod>) -> Arc<PodInfo> {
        let namespace: Arc<str> = pod.metadata.namespace.as_deref().unwrap_or_default().into();
        let class = Class {
            namespace: namespace.clone(),
            labels: pod.metadata.labels.clone().unwrap_or_default(),
            terminating: pod.metadata.deletion_timestamp.is_some(),
        };
        let class = self.classes.acquire(class);
        let affinity = pod.spec.as_ref().and_then(|s| Affinity::of(&namespace, s)).map(|affinity| {
            // Two that print alike are alike.
            let text = serde_json::to_string(&pod.spec.as_ref().and_then(|s| s.affinity.as_ref()));
            self.affinities.acquire((namespace, text.unwrap_or_default()), || affinity)
        });
        Arc::new(PodInfo::new(pod, class, affinity))
    }

    /// Forgets a pod that was read.
    pub fn release(&mut self, info: &PodInfo) {
        self.classes.release(info.class_id);
        if info.affinity.is_some() {
            self.affinities.release(info.affinity_id);
        }
    }

    // Nodes.

    /// A node came or changed.
    pub fn set_node(&mut self, node: &Arc<Node>) {
        let name: Arc<str> = node.metadata.name.as_deref().unwrap_or_default().into();
        self.generation += 1;
        if let Some(slot) = self.by_name.get(&name).copied() {
            let Some(info) = self.slots.get_mut(slot).and_then(Option::as_mut) else { return };
            let relabelled = info.node.metadata.labels != node.metadata.labels;
            let old = info.images.clone();
            let info = Arc::make_mut(info);
            info.set(node.clone());
            info.generation = self.generation;
            let new = info.images.clone();
            self.count_images(&old, &new);
            if relabelled {
                self.forget_columns();
                self.order_stale = true;
            }
            return;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let mut info = NodeInfo::new(node.clone(), slot);
        info.generation = self.generation;
        let images = info.images.clone();
        self.count_images(&BTreeMap::new(), &images);
        self.slots[slot] = Some(Arc::new(info));
        self.by_name.insert(name.clone(), slot);
        self.forget_columns();
        self.order_stale = true;
        for uid in self.orphans.remove(&name).unwrap_or_default() {
            if let Some(placed) = self.pods.get(&uid) {
                let info = placed.info.clone();
                self.put(slot, info);
            }
        }
    }

    /// A node went. Its pods stay known, in case it comes back.
    pub fn remove_node(&mut self, name: &str) {
        let Some((name, slot)) = self.by_name.remove_entry(name) else { return };
        let Some(info) = self.slots.get_mut(slot).and_then(Option::take) else { return };
        self.count_images(&info.images.clone(), &BTreeMap::new());
        for pod in &info.pods {
            self.classes.index.unplace(pod.class_id, slot);
            self.affinities.unplace(pod.affinity_id, slot);
            self.orphans.entry(name.clone()).or_default().insert(pod.uid.clone());
        }
        self.free.push(slot);
        self.forget_columns();
        self.order_stale = true;
    }

    fn count_images(&mut self, old: &BTreeMap<String, i64>, new: &BTreeMap<String, i64>) {
        for name in new.keys().filter(|n| !old.contains_key(*n)) {
            *self.images.entry(name.clone()).or_default() += 1;
        }
        for name in old.keys().filter(|n| !new.contains_key(*n)) {
            if let Some(n) = self.images.get_mut(name) {
                *n -= 1;
                if *n == 0 {
                    self.images.remove(name);
                }
            }
        }
    }

    fn forget_columns(&self) {
        self.columns.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// To be called after changes of nodes, before a cycle: puts the nodes in order.
    pub fn settle(&mut self) {
        if !std::mem::take(&mut self.order_stale) {
            return;
        }
        let mut zones: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
        for slot in self.by_name.values() {
            let Some(Some(info)) = self.slots.get(*slot) else { continue };
            let zone = (info.label(REGION).unwrap_or_default(), info.label(ZONE).unwrap_or_default());
            zones.entry(zone).or_default().push(*slot);
        }
        let longest = zones.values().map(Vec::len).max().unwrap_or(0);
        self.order =
            (0..longest).flat_map(|i| zones.values().filter_map(move |z| z.get(i).copied())).collect();
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The nodes, in the order in which they are looked at.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<NodeInfo>> {
        self.order.iter().filter_map(|slot| self.slots.get(*slot)?.as_ref())
    }

    /// The slots of the nodes, in the same order: for loops that need no more than a column of each.
    pub fn slots(&self) -> &[usize] {
        &self.order
    }

    /// The node at a place of that order.
    pub fn at(&self, place: usize) -> Option<&Arc<NodeInfo>> {
        self.slots.get(*self.order.get(place)?)?.as_ref()
    }

    /// A node by name.
    pub fn node(&self, name: &str) -> Option<&Arc<NodeInfo>> {
        self.slots.get(*self.by_name.get(name)?)?.as_ref()
    }

    /// A node by slot.
    pub fn slot(&self, slot: usize) -> Option<&Arc<NodeInfo>> {
        self.slots.get(slot)?.as_ref()
    }

    /// The domains of a node label.
    pub fn column(&self, key: &str) -> Arc<Column> {
        let mut columns = self.columns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(column) = columns.get(key) {
            return column.clone();
        }
        let column = Arc::new(Column::new(key, &self.slots));
        columns.insert(key.to_owned(), column.clone());
        column
    }

    /// On how many nodes an image is.
    pub fn image_nodes(&self, image: &str) -> usize {
        self.images.get(image).copied().unwrap_or(0)
    }

    // Pods on nodes.

    fn put(&mut self, slot: usize, info: Arc<PodInfo>) {
        self.generation += 1;
        self.classes.index.place(info.class_id, slot);
        self.affinities.place(info.affinity_id, slot);
        if let Some(node) = self.slots.get_mut(slot).and_then(Option::as_mut) {
            let node = Arc::make_mut(node);
            node.generation = self.generation;
            node.add(info);
        }
    }

    fn take(&mut self, slot: usize, info: &PodInfo) {
        self.generation += 1;
        self.classes.index.unplace(info.class_id, slot);
        self.affinities.unplace(info.affinity_id, slot);
        if let Some(node) = self.slots.get_mut(slot).and_then(Option::as_mut) {
            let node = Arc::make_mut(node);
            node.generation = self.generation;
            node.remove(&info.uid);
        }
    }

    /// A pod is on its node (`spec.nodeName`), in place of what was known of it before.
    pub fn place(&mut self, info: Arc<PodInfo>, assumed: bool) {
        self.remove(&info.uid);
        self.drop_pending(&info.uid);
        let Some(node) = info.node().map(Arc::<str>::from) else {
            self.release(&info);
            return;
        };
        match self.by_name.get(&node).copied() {
            Some(slot) => self.put(slot, info.clone()),
            None => drop(self.orphans.entry(node.clone()).or_default().insert(info.uid.clone())),
        }
        self.pods.insert(info.uid.clone(), Placed { info, node, assumed });
    }

    /// A pod is on no node any more. What was known of it.
    pub fn remove(&mut self, uid: &str) -> Option<Arc<PodInfo>> {
        let placed = self.pods.remove(uid)?;
        match self.by_name.get(&placed.node).copied() {
            Some(slot) => self.take(slot, &placed.info),
            None => {
                if let Some(orphans) = self.orphans.get_mut(&placed.node) {
                    orphans.remove(uid);
                    if orphans.is_empty() {
                        self.orphans.remove(&placed.node);
                    }
                }
            }
        }
        self.release(&placed.info);
        Some(placed.info)
    }

    /// A pod that is on a node.
    pub fn placed(&self, uid: &str) -> Option<&Arc<PodInfo>> {
        self.pods.get(uid).map(|p| &p.info)
    }

    /// Whether a pod's place is only decided, not yet told by the API server.
    pub fn is_assumed(&self, uid: &str) -> bool {
        self.pods.get(uid).is_some_and(|p| p.assumed)
    }

    /// Namespace-and-labels parts of the pods on nodes, with the nodes.
    pub fn classes(&self) -> impl Iterator<Item = &Shared<Class>> {
        self.classes.index.iter()
    }

    /// Of these, those among which the ones are that all `selectors` select in a namespace.
    pub fn classes_for(&self, namespace: &str, selectors: &[Labels]) -> Vec<&Shared<Class>> {
        self.classes.candidates(namespace, selectors)
    }

    /// (Anti-)affinities of the pods on nodes, with the nodes.
    pub fn affinities(&self) -> impl Iterator<Item = &Shared<Affinity>> {
        self.affinities.iter()
    }

    // Pods that wait.

    /// A pod has no node yet, in place of what was known of it before.
    pub fn wait(&mut self, info: Arc<PodInfo>) {
        self.drop_pending(&info.uid);
        if let Some(node) = info.nominated() {
            self.nominate(node.into(), info.clone());
        }
        self.pending.insert(info.uid.clone(), info);
    }

    /// Forgets a pod that waits, its nomination too.
    pub fn drop_pending(&mut self, uid: &str) -> Option<Arc<PodInfo>> {
        self.denominate(uid);
        let info = self.pending.remove(uid)?;
        self.release(&info);
        Some(info)
    }

    /// Pods that wait.
    pub fn pending(&self) -> impl Iterator<Item = &Arc<PodInfo>> {
        self.pending.values()
    }

    /// A pod that waits.
    pub fn waiting(&self, uid: &str) -> Option<&Arc<PodInfo>> {
        self.pending.get(uid)
    }

    /// All pods, waiting or placed.
    pub fn pods(&self) -> impl Iterator<Item = &Arc<PodInfo>> {
        self.pods.values().map(|p| &p.info).chain(self.pending.values())
    }

    /// A pod made room on a node.
    pub fn nominate(&mut self, node: Arc<str>, info: Arc<PodInfo>) {
        self.denominate(&info.uid);
        self.nominated.entry(node).or_default().insert(info.uid.clone(), info);
    }

    /// A pod gives up the room that it made.
    pub fn denominate(&mut self, uid: &str) {
        self.nominated.retain(|_, pods| {
            pods.remove(uid);
            !pods.is_empty()
        });
    }

    /// The node that a pod made room on.
    pub fn nomination(&self, uid: &str) -> Option<Arc<str>> {
        self.nominated.iter().find(|(_, pods)| pods.contains_key(uid)).map(|(node, _)| node.clone())
    }

    /// The pods that made room on a node.
    pub fn nominated(&self, node: &str) -> impl Iterator<Item = &Arc<PodInfo>> {
        self.nominated.get(node).into_iter().flat_map(BTreeMap::values)
    }

    /// Whether any pod is nominated anywhere.
    pub fn has_nominated(&self) -> bool {
        !self.nominated.is_empty()
    }
}
