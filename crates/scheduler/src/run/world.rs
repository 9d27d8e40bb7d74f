//! What the loop knows: the snapshot and the queue, brought up to date by notes.
//!
//! No I/O: notes in, events to the queue. Invariant: a pod without a node that is ours is in the snapshot's pending
//! pods and in the queue, or assumed; one with a node is placed; one that is over or going is in none of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat_model::selector::Labels;
use homeostat_sdk::{Change, Key};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::storage::v1::CSIStorageCapacity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::Resource;
use tokio::time::Instant;

use super::feed::Note;
use crate::config::DEFAULT_NAME;
use crate::framework::{Event, Framework, NodeChange};
use crate::queue::Queue;
use crate::snapshot::{Budget, PodInfo, Room, Snapshot, is_over, node_of, selector};

/// Snapshot, queue, and the profiles.
#[derive(Debug)]
pub(super) struct World {
    pub(super) snapshot: Snapshot,
    pub(super) queue: Queue,
    frameworks: Vec<Arc<Framework>>,
    events: Vec<Event>,
    /// Pods that are gone whose place was still waiting or being bound.
    pub(super) gone: Vec<Arc<str>>,
}

fn uid_of(pod: &Pod) -> Arc<str> {
    pod.metadata.uid.as_deref().map_or_else(|| Key::of(pod).to_string().as_str().into(), Arc::from)
}

fn labels_of(selector_: Option<&LabelSelector>) -> Labels {
    selector(selector_)
}

/// Puts what is into a map, or takes out what is gone.
fn keep<K: Resource, I: Ord, V>(
    map: &mut BTreeMap<I, V>,
    change: &Change<K>,
    id: impl Fn(&K) -> I,
    value: impl Fn(&Arc<K>) -> V,
) {
    match (&change.new, &change.old) {
        (Some(new), _) => drop(map.insert(id(new), value(new))),
        (None, Some(old)) => drop(map.remove(&id(old))),
        (None, None) => {}
    }
}

fn name<K: Resource>(object: &K) -> String {
    object.meta().name.clone().unwrap_or_default()
}

fn uid<K: Resource>(object: &K) -> String {
    object.meta().uid.clone().unwrap_or_default()
}

impl World {
    pub(super) fn new(frameworks: Vec<Arc<Framework>>, queue: Queue) -> Self {
        Self { snapshot: Snapshot::default(), queue, frameworks, events: Vec::new(), gone: Vec::new() }
    }

    /// The profile of a pod that is ours.
    fn framework(&self, pod: &Pod) -> Option<Arc<Framework>> {
        let name = pod.spec.as_ref().and_then(|s| s.scheduler_name.as_deref()).filter(|n| !n.is_empty());
        let name = name.unwrap_or(DEFAULT_NAME);
        self.frameworks.iter().find(|f| &*f.name == name).cloned()
    }

    /// Takes in notes, then tells the queue what happened.
    pub(super) fn apply(&mut self, notes: Vec<Note>, now: Instant) {
        for note in notes {
            self.note(note, now);
        }
        self.tell(now);
    }

    /// A pod waits for its permit.
    pub(super) fn waits(&mut self, pod: Arc<PodInfo>, now: Instant) {
        self.events.push(Event::PodWaits(pod));
        self.tell(now);
    }

    fn tell(&mut self, now: Instant) {
        self.snapshot.settle();
        for event in std::mem::take(&mut self.events) {
            self.queue.event(event, &self.snapshot, now);
        }
    }

    fn note(&mut self, note: Note, now: Instant) {
        let objects = &mut self.snapshot.objects;
        match note {
            Note::Node(change) => self.node(&change),
            Note::Pod(change) => self.pod(&change, now),
            Note::Claim(change) => {
                keep(&mut objects.claims, &change, Key::of, Arc::clone);
                self.events.extend(change.new.map(Event::Claim));
            }
            Note::ResourceClaim(change) => {
                keep(&mut objects.resource_claims, &change, Key::of, Arc::clone);
                self.events.extend(change.new.map(Event::ResourceClaim));
            }
            Note::Volume(change) => {
                keep(&mut objects.volumes, &change, name, Arc::clone);
                self.events.push(Event::Volume);
            }
            Note::Class(change) => {
                keep(&mut objects.classes, &change, name, Arc::clone);
                self.events.push(Event::StorageClass);
            }
            Note::StorageNode(change) => {
                keep(&mut objects.storage_nodes, &change, name, Arc::clone);
                self.events.push(Event::StorageNode);
            }
            Note::Driver(change) => {
                keep(&mut objects.drivers, &change, name, Arc::clone);
                self.events.push(Event::StorageCapacity);
            }
            Note::Capacity(change) => {
                // Less room helps nobody, and a driver says so after each volume.
                let most = |c: &Option<Arc<CSIStorageCapacity>>| c.as_deref().and_then(|c| Room::new(c).most);
                let (had, has) = (most(&change.old), most(&change.new));
                keep(&mut objects.capacities, &change, Key::of, |c| Room::new(c));
                let elsewhere =
                    |c: &CSIStorageCapacity| (c.storage_class_name.clone(), c.node_topology.clone());
                if has > had || change.new.is_some() && change.differs(elsewhere) {
                    self.events.push(Event::StorageCapacity);
                }
            }
            Note::Namespace(change) => {
                let labels = |n: &Arc<_>| -> BTreeMap<String, String> {
                    let n: &k8s_openapi::api::core::v1::Namespace = n;
                    n.metadata.labels.clone().unwrap_or_default()
                };
                if change.differs(|n| n.metadata.labels.clone()) {
                    self.events.push(Event::Namespace);
                }
                keep(&mut objects.namespaces, &change, name, labels);
            }
            Note::Service(change) => keep(&mut objects.services, &change, Key::of, |s| {
                s.spec.as_ref().and_then(|s| s.selector.clone()).unwrap_or_default()
            }),
            Note::ReplicaSet(change) => keep(&mut objects.workloads, &change, uid, |r| {
                labels_of(r.spec.as_ref().map(|s| &s.selector))
            }),
            Note::StatefulSet(change) => keep(&mut objects.workloads, &change, uid, |s| {
                labels_of(s.spec.as_ref().map(|s| &s.selector))
            }),
            Note::Controller(change) => keep(&mut objects.workloads, &change, uid, |r| {
                let map = r.spec.as_ref().and_then(|s| s.selector.clone()).unwrap_or_default();
                Labels::from_map(
                    &map.into_iter().map(|(k, v)| (k, v.into())).collect::<serde_json::Map<_, _>>().into(),
                )
            }),
            Note::Budget(change) => {
                keep(&mut objects.budgets, &change, Key::of, |b| Budget::of(b));
            }
        }
    }

    fn node(&mut self, change: &Change<Node>) {
        match (&change.old, &change.new) {
            (old, Some(new)) => {
                let known = self.snapshot.node(&name(&**new)).map(|n| n.node.clone());
                let event = match known.as_ref().or(old.as_ref()) {
                    // Heartbeats change nothing that is looked at.
                    Some(old) if known.is_some() && !NodeChange::between(old, new).any() => return,
                    Some(old) if known.is_some() => Event::NodeUpdated { old: old.clone(), new: new.clone() },
                    _ => Event::NodeAdded(new.clone()),
                };
                self.snapshot.set_node(new);
                self.events.push(event);
            }
            (Some(old), None) => {
                self.snapshot.remove_node(&name(&**old));
                self.events.push(Event::NodeDeleted(old.clone()));
            }
            (None, None) => {}
        }
    }

    fn pod(&mut self, change: &Change<Pod>, now: Instant) {
        if let Some(old) = &change.old
            && change.new.as_ref().is_none_or(|new| uid_of(new) != uid_of(old))
        {
            self.forget(&uid_of(old));
        }
        if let Some(pod) = &change.new {
            self.set_pod(pod, now);
        }
    }

    /// A pod holds nothing and wants nothing any more.
    fn forget(&mut self, uid: &Arc<str>) {
        if self.snapshot.is_assumed(uid) {
            self.gone.push(uid.clone());
        }
        self.queue.remove(uid);
        if let Some(info) = self.snapshot.remove(uid) {
            self.events.push(Event::AssignedPodDeleted(info));
        }
        if let Some(info) = self.snapshot.drop_pending(uid) {
            self.events.push(Event::PodDeleted(info));
        }
    }

    fn set_pod(&mut self, pod: &Arc<Pod>, now: Instant) {
        let uid = uid_of(pod);
        if is_over(pod) {
            self.forget(&uid);
        } else if node_of(pod).is_some() {
            let before = self.snapshot.placed(&uid).cloned().filter(|_| !self.snapshot.is_assumed(&uid));
            self.queue.remove(&uid);
            let info = self.snapshot.read(pod.clone());
            self.snapshot.place(info.clone(), false);
            self.events.push(match before {
                Some(old) => Event::AssignedPodUpdated { old, new: info },
                None => Event::PodAssigned(info),
            });
        } else if self.snapshot.is_assumed(&uid) {
            // The binding is on its way; if the pod is being deleted, it will fail.
        } else if pod.metadata.deletion_timestamp.is_some() {
            self.forget(&uid);
        } else if let Some(framework) = self.framework(pod) {
            self.enqueue(pod, &framework, now);
        }
    }

    fn enqueue(&mut self, pod: &Arc<Pod>, framework: &Arc<Framework>, now: Instant) {
        let info = self.snapshot.read(pod.clone());
        let known = self.snapshot.waiting(&info.uid).cloned();
        // What this scheduler has just nominated counts until the API server tells otherwise.
        let nominated = known.as_ref().filter(|k| info.nominated().is_none() && k.nominated().is_none());
        let node = nominated.and_then(|k| self.snapshot.nomination(&k.uid));
        self.snapshot.wait(info.clone());
        if let Some(node) = node {
            self.snapshot.nominate(node, info.clone());
        }
        if known.is_none() {
            self.events.push(Event::PodAdded(info.clone()));
        }
        self.queue.put(info, framework, &self.snapshot, now);
    }

    /// A pod has its place, before the API server knows.
    pub(super) fn assume(
        &mut self,
        pod: &PodInfo,
        node: &str,
        annotations: &BTreeMap<String, String>,
    ) -> Arc<PodInfo> {
        let mut assumed = (*pod.pod).clone();
        assumed.spec.get_or_insert_default().node_name = Some(node.to_owned());
        if !annotations.is_empty() {
            let own = assumed.metadata.annotations.get_or_insert_default();
            own.extend(annotations.iter().map(|(k, v)| (k.clone(), v.clone())));
        }
        let info = self.snapshot.read(Arc::new(assumed));
        self.snapshot.place(info.clone(), true);
        info
    }

    /// A pod gives its place back. `pod` is how the API server has it now; `None` where it is gone. Whether it waits
    /// for another place.
    pub(super) fn give_back(
        &mut self,
        uid: &Arc<str>,
        pod: Option<&Arc<Pod>>,
        now: Instant,
    ) -> Option<Arc<PodInfo>> {
        self.snapshot.objects.promised.remove(uid);
        if self.snapshot.is_assumed(uid)
            && let Some(info) = self.snapshot.remove(uid)
        {
            self.events.push(Event::PlaceGivenBack(info));
        }
        let again = pod.filter(|p| {
            uid_of(p) == *uid
                && node_of(p).is_none()
                && !is_over(p)
                && p.metadata.deletion_timestamp.is_none()
        });
        let info = match again {
            Some(pod) if self.queue.has(uid) => {
                let info = self.snapshot.read(pod.clone());
                self.snapshot.wait(info.clone());
                if let Some(framework) = self.framework(pod) {
                    self.queue.put(info.clone(), &framework, &self.snapshot, now);
                }
                Some(info)
            }
            _ => {
                self.queue.remove(uid);
                None
            }
        };
        self.tell(now);
        info
    }
}
