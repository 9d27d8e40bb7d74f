//! Owners and dependents as a graph by uid. Pure: what was seen goes in, what is to be looked at comes out.
//!
//! An owner that is referred to but was never seen is a *virtual* node, made from the reference. It is looked at at
//! once: either the server knows it (its own watch will soon make it real), or it is absent and its dependents follow.
//! Invariant: `dependents` of a node are exactly the nodes whose `owners` name it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::common::served::Served;

pub(super) type Uid = Arc<str>;

/// Finalizers that the collector serves.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
pub(super) const ORPHAN: &str = "orphan";
/// Absent owners that are remembered (the reference's size of that cache).
const ABSENT: usize = 500;

/// Something to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Work {
    /// Should it be deleted, or are its dependents?
    Delete(Uid),
    /// Its dependents are to be let go.
    Orphan(Uid),
    /// Its reference to this owner names an object of another namespace or kind.
    Tell(Uid, Uid),
}

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    /// The resource it was seen through; `None` for a virtual node.
    pub(super) resource: Option<Arc<Served>>,
    pub(super) owners: Vec<OwnerReference>,
    pub(super) dependents: BTreeSet<Uid>,
    pub(super) deleting: bool,
    pub(super) foreground: bool,
    pub(super) orphan: bool,
}

impl Node {
    /// It goes when its dependents are gone.
    pub(super) fn is_deleting_dependents(&self) -> bool {
        self.deleting && self.foreground
    }

    fn is_orphaning(&self) -> bool {
        self.deleting && self.orphan
    }

    pub(super) fn is_virtual(&self) -> bool {
        self.resource.is_none()
    }

    /// Whether a reference of an object in `namespace` can mean this one.
    fn answers_to(&self, reference: &OwnerReference, namespace: Option<&str>) -> bool {
        let place = &self.place;
        // Another version of the same kind is the same object.
        let group = |v: &str| v.split_once('/').map_or(String::new(), |(g, _)| g.to_owned());
        group(&place.api_version) == group(&reference.api_version)
            && place.kind == reference.kind
            && place.name == reference.name
            && place.namespace.as_deref().is_none_or(|n| Some(n) == namespace)
    }
}

#[derive(Default)]
pub(super) struct Graph {
    nodes: BTreeMap<Uid, Node>,
    absent: BTreeSet<(Uid, Place)>,
    absent_order: VecDeque<(Uid, Place)>,
}

impl Graph {
    pub(super) fn get(&self, uid: &Uid) -> Option<&Node> {
        self.nodes.get(uid)
    }

    /// The nodes that name `uid` as an owner.
    pub(super) fn dependents(&self, uid: &Uid) -> Vec<(Uid, &Node)> {
        let node = self.nodes.get(uid).into_iter();
        node.flat_map(|n| &n.dependents).filter_map(|d| Some((d.clone(), self.nodes.get(d)?))).collect()
    }

    /// The uids of all objects seen through a resource.
    pub(super) fn of(&self, resource: &Arc<Served>) -> BTreeSet<Uid> {
        let is_of = |n: &Node| n.resource.as_ref().is_some_and(|r| Arc::ptr_eq(r, resource));
        self.nodes.iter().filter(|(_, n)| is_of(n)).map(|(uid, _)| uid.clone()).collect()
    }

    /// An object as it is now.
    pub(super) fn observe(&mut self, resource: &Arc<Served>, meta: &ObjectMeta) -> Vec<Work> {
        let (Some(uid), Some(name)) = (&meta.uid, &meta.name) else { return Vec::new() };
        let uid: Uid = uid.as_str().into();
        let has = |f: &str| meta.finalizers.iter().flatten().any(|x| x == f);
        let mut node = Node {
            place: Place {
                api_version: resource.api_version(),
                kind: resource.kind.clone(),
                namespace: meta.namespace.clone(),
                name: name.clone(),
            },
            resource: Some(resource.clone()),
            owners: meta.owner_references.clone().unwrap_or_default(),
            dependents: BTreeSet::new(),
            deleting: meta.deletion_timestamp.is_some(),
            foreground: has(FOREGROUND),
            orphan: has(ORPHAN),
        };
        let old = self.nodes.remove(&uid);
        let mut work = Vec::new();
        let (mut was_deleting, mut was_orphaning, mut old_owners) = (false, false, Vec::new());
        if let Some(old) = old {
            was_deleting = old.is_deleting_dependents();
            was_orphaning = old.is_orphaning();
            if old.is_virtual() && old.place != node.place {
                // Those whose reference doesn't mean this object find out when they are looked at.
                work.extend(old.dependents.iter().cloned().map(Work::Delete));
            }
            old_owners = old.owners;
            node.dependents = old.dependents;
        }
        if node.is_orphaning() && !was_orphaning {
            work.push(Work::Orphan(uid.clone()));
        }
        if node.is_deleting_dependents() && !was_deleting {
            work.extend(node.dependents.iter().cloned().map(Work::Delete));
            work.push(Work::Delete(uid.clone()));
        }
        let owners = node.owners.clone();
        let namespace = node.place.namespace.clone();
        self.nodes.insert(uid.clone(), node);
        for owner in &owners {
            if !old_owners.iter().any(|o| o.uid == owner.uid) {
                work.extend(self.link(&uid, owner, namespace.as_deref()));
            }
        }
        for old in &old_owners {
            let new = owners.iter().find(|o| o.uid == old.uid);
            let unblocked = old.block_owner_deletion == Some(true)
                && new.is_none_or(|n| n.block_owner_deletion != Some(true));
            if unblocked && self.waits(&old.uid) {
                work.push(Work::Delete(old.uid.as_str().into()));
            }
            if new.is_none() {
                self.unlink(&uid, &old.uid);
            }
        }
        work
    }

    fn waits(&self, uid: &str) -> bool {
        self.nodes.get(uid).is_some_and(Node::is_deleting_dependents)
    }

    fn link(&mut self, uid: &Uid, owner: &OwnerReference, namespace: Option<&str>) -> Vec<Work> {
        let owner_uid: Uid = owner.uid.as_str().into();
        let Some(node) = self.nodes.get_mut(&owner_uid) else {
            let place = Place {
                api_version: owner.api_version.clone(),
                kind: owner.kind.clone(),
                namespace: namespace.map(str::to_owned),
                name: owner.name.clone(),
            };
            let node = Node {
                place,
                resource: None,
                owners: Vec::new(),
                dependents: [uid.clone()].into(),
                deleting: false,
                foreground: false,
                orphan: false,
            };
            self.nodes.insert(owner_uid.clone(), node);
            return vec![Work::Delete(owner_uid)];
        };
        node.dependents.insert(uid.clone());
        if node.answers_to(owner, namespace) {
            // A new dependent of an owner that waits for its dependents goes with them.
            return if node.is_deleting_dependents() { vec![Work::Delete(uid.clone())] } else { Vec::new() };
        }
        let mut work = vec![Work::Delete(uid.clone())];
        if !node.is_virtual() && node.place.namespace.as_deref().is_some_and(|n| Some(n) != namespace) {
            work.push(Work::Tell(uid.clone(), owner_uid));
        }
        work
    }

    fn unlink(&mut self, uid: &Uid, owner: &str) {
        if let Some(node) = self.nodes.get_mut(owner) {
            node.dependents.remove(uid);
            if node.is_virtual() && node.dependents.is_empty() {
                self.nodes.remove(owner);
            }
        }
    }

    /// An object is gone: the server said so.
    pub(super) fn gone(&mut self, uid: &Uid) -> Vec<Work> {
        let Some(mut node) = self.nodes.remove(uid) else { return Vec::new() };
        // An object may own itself.
        node.dependents.remove(uid);
        self.remember_absent(uid.clone(), node.place.clone());
        let mut work: Vec<Work> = node.dependents.iter().cloned().map(Work::Delete).collect();
        for owner in &node.owners {
            if self.waits(&owner.uid) {
                work.push(Work::Delete(owner.uid.as_str().into()));
            }
            self.unlink(uid, &owner.uid);
        }
        // Dependents still name it; they are found again through a node that stands for it.
        if !node.dependents.is_empty() {
            let stands_in = Node { resource: None, owners: Vec::new(), deleting: false, ..node };
            self.nodes.insert(uid.clone(), stands_in);
        }
        work
    }

    /// A resource is no longer watched: nothing is known of its objects any more.
    pub(super) fn forget(&mut self, resource: &Arc<Served>) -> Vec<Work> {
        let mut work = Vec::new();
        for uid in self.of(resource) {
            let Some(mut node) = self.nodes.remove(&uid) else { continue };
            node.dependents.remove(&uid);
            for owner in std::mem::take(&mut node.owners) {
                if self.waits(&owner.uid) {
                    work.push(Work::Delete(owner.uid.as_str().into()));
                }
                self.unlink(&uid, &owner.uid);
            }
            if !node.dependents.is_empty() {
                work.push(Work::Delete(uid.clone()));
                self.nodes.insert(uid, Node { resource: None, deleting: false, ..node });
            }
        }
        work
    }

    /// Whether it is known that there is no such object.
    pub(super) fn is_absent(&self, uid: &str, place: &Place) -> bool {
        self.absent.contains(&(uid.into(), place.clone()))
    }

    pub(super) fn remember_absent(&mut self, uid: Uid, place: Place) {
        let entry = (uid, place);
        if self.absent.insert(entry.clone()) {
            self.absent_order.push_back(entry);
            if self.absent_order.len() > ABSENT
                && let Some(oldest) = self.absent_order.pop_front()
            {
                self.absent.remove(&oldest);
            }
        }
    }

    /// Whether all owners of a node are there, as far as the graph knows, and stay: then there is nothing to ask.
    pub(super) fn is_held(&self, node: &Node) -> bool {
        let stays = |owner: &OwnerReference| {
            self.nodes.get(owner.uid.as_str()).is_some_and(|o| {
                !o.is_virtual()
                    && !o.is_deleting_dependents()
                    && o.answers_to(owner, node.place.namespace.as_deref())
            })
        };
        !node.is_virtual() && !node.is_deleting_dependents() && node.owners.iter().all(stays)
    }

    #[cfg(test)]
    fn check(&self) {
        for (uid, node) in &self.nodes {
            for dependent in &node.dependents {
                let found =
                    self.nodes.get(dependent).is_some_and(|d| d.owners.iter().any(|o| *o.uid == **uid));
                assert!(found, "{dependent} is no dependent of {uid}");
            }
            for owner in &node.owners {
                let found = self.nodes.get(owner.uid.as_str()).is_some_and(|o| o.dependents.contains(uid));
                assert!(found, "{} doesn't know its dependent {uid}", owner.uid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn resource(kind: &str) -> Arc<Served> {
        Arc::new(Served {
            group: String::new(),
            version: "v1".into(),
            plural: format!("{}s", kind.to_lowercase()),
            kind: kind.into(),
            namespaced: kind != "Node",
            scalable: false,
            verbs: Vec::new(),
        })
    }

    /// `uid`, or `uid>owner,owner!` (`!`: blocks the owner's deletion); `-` deleting, `f` and `o` with a finalizer.
    fn meta(text: &str) -> ObjectMeta {
        let mut words = text.split_whitespace();
        let (uid, owners) = words.next().map(|w| w.split_once('>').unwrap_or((w, ""))).unwrap();
        let owners: Vec<OwnerReference> = owners
            .split(',')
            .filter(|o| !o.is_empty())
            .map(|o| {
                let (uid, block) = o.strip_suffix('!').map_or((o, false), |o| (o, true));
                OwnerReference {
                    api_version: "v1".into(),
                    kind: "Thing".into(),
                    name: uid.into(),
                    uid: uid.into(),
                    block_owner_deletion: Some(block),
                    ..OwnerReference::default()
                }
            })
            .collect();
        let flags: Vec<&str> = words.collect();
        let mut finalizers = Vec::new();
        if flags.contains(&"f") {
            finalizers.push(FOREGROUND);
        }
        if flags.contains(&"o") {
            finalizers.push(ORPHAN);
        }
        let deleted = flags.contains(&"-").then_some("2026-01-01T00:00:00Z");
        serde_json::from_value(json!({"name": uid, "uid": uid, "namespace": "d", "ownerReferences": owners,
            "finalizers": finalizers, "deletionTimestamp": deleted}))
        .unwrap()
    }

    fn show(work: &[Work]) -> String {
        let one = |w: &Work| match w {
            Work::Delete(uid) => format!("d:{uid}"),
            Work::Orphan(uid) => format!("o:{uid}"),
            Work::Tell(uid, owner) => format!("t:{uid}>{owner}"),
        };
        work.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    /// Steps of `what it is now` (or `~uid`: gone), each with the work it makes.
    #[track_caller]
    fn check(steps: &[(&str, &str)]) {
        let (mut graph, thing) = (Graph::default(), resource("Thing"));
        for (step, want) in steps {
            let work = match step.strip_prefix('~') {
                Some(uid) => graph.gone(&uid.into()),
                None => graph.observe(&thing, &meta(step)),
            };
            assert_eq!(show(&work), *want, "at {step}");
            graph.check();
        }
    }

    #[test]
    fn dependents_of_the_gone_are_looked_at() {
        check(&[("a", ""), ("b>a", ""), ("c>b", ""), ("~a", "d:b"), ("~b", "d:c")]);
    }

    #[test]
    fn an_owner_that_was_never_seen_is_looked_at() {
        check(&[("b>a", "d:a"), ("c>a", ""), ("a", ""), ("~a", "d:b d:c")]);
        check(&[("b>a", "d:a"), ("~a", "d:b"), ("~b", "")]);
    }

    #[test]
    fn an_owner_waits_for_its_dependents() {
        check(&[("a", ""), ("b>a!", ""), ("a - f", "d:b d:a"), ("a - f", ""), ("~b", "d:a"), ("~a", "")]);
        // A dependent that no longer blocks unblocks.
        check(&[("a", ""), ("b>a!", ""), ("a - f", "d:b d:a"), ("b>a", "d:a"), ("b", "")]);
        check(&[("a", ""), ("b>a!", ""), ("a - f", "d:b d:a"), ("b", "d:a")]);
        // A dependent that appears late goes too.
        check(&[("a - f", "d:a"), ("b>a", "d:b")]);
    }

    #[test]
    fn orphans_are_let_go_once() {
        check(&[("a", ""), ("b>a", ""), ("a - o", "o:a"), ("a - o", ""), ("b", ""), ("~a", "")]);
    }

    #[test]
    fn references_into_other_namespaces_are_told() {
        let (mut graph, thing) = (Graph::default(), resource("Thing"));
        let mut far = meta("a");
        far.namespace = Some("far".into());
        assert_eq!(show(&graph.observe(&thing, &far)), "");
        assert_eq!(show(&graph.observe(&thing, &meta("b>a"))), "d:b t:b>a");
        graph.check();
    }

    #[test]
    fn a_node_that_was_virtual_and_is_elsewhere_brings_its_dependents_back() {
        let (mut graph, thing) = (Graph::default(), resource("Thing"));
        assert_eq!(show(&graph.observe(&thing, &meta("b>a"))), "d:a");
        let mut far = meta("a");
        far.namespace = Some("far".into());
        assert_eq!(show(&graph.observe(&thing, &far)), "d:b");
    }

    #[test]
    fn what_has_its_owners_is_held() {
        let (mut graph, thing) = (Graph::default(), resource("Thing"));
        for text in ["a", "b>a", "c>a,x", "d - f", "e>d"] {
            graph.observe(&thing, &meta(text));
        }
        let held = |uid: &str| graph.is_held(graph.get(&uid.into()).unwrap());
        assert_eq!(["a", "b", "c", "d", "e", "x"].map(held), [true, true, false, false, false, false]);
    }

    #[test]
    fn the_objects_of_a_vanished_kind_are_forgotten() {
        let mut graph = Graph::default();
        let (thing, other) = (resource("Thing"), resource("Other"));
        graph.observe(&thing, &meta("a"));
        graph.observe(&other, &meta("b>a"));
        graph.observe(&thing, &meta("c>a"));
        assert_eq!(show(&graph.forget(&thing)), "d:a");
        graph.check();
        assert!(graph.get(&"c".into()).is_none());
        assert!(graph.get(&"a".into()).unwrap().is_virtual());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_graph_stays_whole(steps in proptest::collection::vec((0..6u8, proptest::collection::btree_set(0..6u8, 0..3), any::<[bool; 3]>()), 0..60)) {
            let (mut graph, thing) = (Graph::default(), resource("Thing"));
            for (uid, owners, [gone, deleting, foreground]) in steps {
                if gone {
                    graph.gone(&uid.to_string().as_str().into());
                } else {
                    let owners: Vec<String> = owners.iter().map(u8::to_string).collect();
                    let flags = [(deleting, " -"), (foreground, " f")];
                    let flags: String = flags.iter().filter(|(f, _)| *f).map(|(_, t)| *t).collect();
                    graph.observe(&thing, &meta(&format!("{uid}>{}{flags}", owners.join(","))));
                }
                graph.check();
            }
        }
    }
}
