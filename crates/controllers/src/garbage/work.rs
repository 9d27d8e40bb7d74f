//! Carries out what the graph suggests, after asking the server.
//!
//! Each item is looked at as it is on the server now, deletions name its uid and version, and patches its version, so
//! a decision on stale knowledge fails and is made again.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use homeostat_sdk::queue::Outcome;
use homeostat_sdk::{Event, Result};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{DeleteParams, Preconditions, PropagationPolicy};
use serde_json::{Value, json};
use tracing::{debug, warn};

use super::graph::{FOREGROUND, Node, ORPHAN, Place, Uid, Work};
use super::judge::{Owner, Verdict, judge};
use super::{NAME, Shared};
use crate::common::served::Served;

/// How often it is asked again whether the graph is complete.
const UNTIL_COMPLETE: Duration = Duration::from_millis(20);

/// Takes work until the queue closes.
pub(super) async fn run(shared: Arc<Shared>) {
    while let Some(item) = shared.queue.next().await {
        let done = match &item {
            Work::Delete(uid) => shared.look_at(uid).await,
            Work::Orphan(uid) => shared.let_go(uid).await,
            Work::Tell(uid, owner) => shared.tell(uid, owner).await,
        };
        let outcome = match done {
            Ok(outcome) => outcome,
            Err(error) => {
                if error.is_conflict() {
                    debug!(?item, %error, "it changed meanwhile; trying again");
                } else {
                    warn!(?item, %error, "could not be collected; trying again");
                }
                Outcome::Failed
            }
        };
        shared.queue.finish(&item, outcome);
    }
}

impl Shared {
    fn place(&self, place: &Place) -> Option<Arc<Served>> {
        self.discovery().of_kind(&place.api_version, &place.kind).cloned()
    }

    async fn get(&self, resource: &Served, place: &Place) -> Result<Option<ObjectMeta>> {
        resource.get(self.cx.client(), place.namespace.as_deref(), &place.name).await
    }

    /// The item waits for its owners' kinds to be served.
    fn wait_for_kind(&self, uid: &Uid) -> Outcome {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner).insert(uid.clone());
        Outcome::Done
    }

    /// Should this be deleted? Or, where it waits for its dependents, is it done waiting?
    async fn look_at(&self, uid: &Uid) -> Result<Outcome> {
        let (node, held) = {
            let graph = self.graph();
            let Some(node) = graph.get(uid) else { return Ok(Outcome::Done) };
            (node.clone(), graph.is_held(node))
        };
        // What is being deleted only goes on by itself.
        if held || (node.deleting && !node.is_deleting_dependents()) {
            return Ok(Outcome::Done);
        }
        let resource = match &node.resource {
            Some(resource) => resource.clone(),
            None => match self.place(&node.place) {
                Some(resource) => resource,
                None => return Ok(self.wait_for_kind(uid)),
            },
        };
        if node.is_virtual() && resource.namespaced && node.place.namespace.is_none() {
            // A cluster-scoped object names an owner in a namespace: which one can't be known, so nothing follows.
            return Ok(Outcome::Done);
        }
        let latest = self.get(&resource, &node.place).await?.filter(|m| m.uid.as_deref() == Some(uid));
        let Some(latest) = latest else {
            let work = self.graph().gone(uid);
            self.add(work);
            return Ok(Outcome::Done);
        };
        if node.is_deleting_dependents() {
            return self.finish_waiting(uid, &node, &resource, &latest).await;
        }
        if node.is_virtual() {
            return Ok(Outcome::Done);
        }
        let mut owners = Vec::new();
        for owner in latest.owner_references.iter().flatten() {
            match self.ask(&node.place, owner).await? {
                Some(state) => owners.push((owner.uid.clone(), state)),
                None => return Ok(self.wait_for_kind(uid)),
            }
        }
        let has_dependents = !node.dependents.is_empty();
        match judge(&latest, &owners, has_dependents) {
            Verdict::Keep => {}
            Verdict::Strip(uids) => self.strip(&resource, &node.place, &latest, &uids).await?,
            Verdict::Delete(policy) => {
                if matches!(policy, PropagationPolicy::Foreground) {
                    self.break_circle(&resource, uid, &node.place, &latest).await?;
                }
                self.delete(&resource, &node.place, &latest, policy).await?;
            }
        }
        Ok(Outcome::Done)
    }

    /// The state of an owner, by the server's word. `None` where its kind isn't served, or can't be an owner.
    async fn ask(&self, dependent: &Place, owner: &OwnerReference) -> Result<Option<Owner>> {
        let mut place = Place {
            api_version: owner.api_version.clone(),
            kind: owner.kind.clone(),
            namespace: dependent.namespace.clone(),
            name: owner.name.clone(),
        };
        if self.graph().is_absent(&owner.uid, &place) {
            return Ok(Some(Owner::Absent));
        }
        let Some(resource) = self.place(&place) else { return Ok(None) };
        if !resource.namespaced {
            place.namespace = None;
        } else if place.namespace.is_none() {
            return Ok(None);
        }
        let Some(meta) = self.get(&resource, &place).await?.filter(|m| m.uid.as_deref() == Some(&owner.uid))
        else {
            self.graph().remember_absent(owner.uid.as_str().into(), place);
            return Ok(Some(Owner::Absent));
        };
        let waits =
            meta.deletion_timestamp.is_some() && meta.finalizers.iter().flatten().any(|f| f == FOREGROUND);
        Ok(Some(if waits { Owner::Waiting } else { Owner::Solid }))
    }

    /// An owner in foreground deletion: free when nothing blocks it, else its dependents are looked at.
    async fn finish_waiting(
        &self,
        uid: &Uid,
        node: &Node,
        resource: &Served,
        latest: &ObjectMeta,
    ) -> Result<Outcome> {
        if !self.is_complete() {
            return Ok(Outcome::After(UNTIL_COMPLETE));
        }
        let blocking: Vec<(Uid, bool)> = {
            let graph = self.graph();
            let blocks =
                |d: &Node| d.owners.iter().any(|o| *o.uid == **uid && o.block_owner_deletion == Some(true));
            let dependents = graph.dependents(uid);
            dependents
                .into_iter()
                .filter(|(_, d)| blocks(d))
                .map(|(u, d)| (u, d.is_deleting_dependents()))
                .collect()
        };
        if blocking.is_empty() {
            self.remove_finalizer(resource, &node.place, latest, FOREGROUND).await?;
            return Ok(Outcome::Done);
        }
        let idle = blocking.into_iter().filter(|(_, deleting)| !deleting);
        self.add(idle.map(|(uid, _)| Work::Delete(uid)).collect());
        Ok(Outcome::Done)
    }

    /// Two objects that own each other and wait for each other would wait for ever: this one stops blocking.
    async fn break_circle(
        &self,
        resource: &Served,
        uid: &Uid,
        place: &Place,
        latest: &ObjectMeta,
    ) -> Result<()> {
        let circle = self.graph().dependents(uid).iter().any(|(_, d)| d.is_deleting_dependents());
        if !circle {
            return Ok(());
        }
        let mut owners = latest.owner_references.clone().unwrap_or_default();
        for owner in &mut owners {
            owner.block_owner_deletion = Some(false);
        }
        self.patch(resource, place, json!({"metadata": {"uid": latest.uid, "ownerReferences": owners}})).await
    }

    async fn patch(&self, resource: &Served, place: &Place, patch: Value) -> Result<()> {
        let (client, namespace) = (self.cx.client(), place.namespace.as_deref());
        resource.merge(client, NAME, namespace, &place.name, &patch).await.map(|_| ())
    }

    async fn strip(
        &self,
        resource: &Served,
        place: &Place,
        latest: &ObjectMeta,
        uids: &[String],
    ) -> Result<()> {
        let rest: Vec<&OwnerReference> =
            latest.owner_references.iter().flatten().filter(|o| !uids.contains(&o.uid)).collect();
        let rest = if rest.is_empty() { Value::Null } else { json!(rest) };
        let version = latest.resource_version.as_deref();
        self.patch(
            resource,
            place,
            json!({"metadata": {"resourceVersion": version, "ownerReferences": rest}}),
        )
        .await
    }

    async fn remove_finalizer(
        &self,
        resource: &Served,
        place: &Place,
        latest: &ObjectMeta,
        finalizer: &str,
    ) -> Result<()> {
        let all = latest.finalizers.as_deref().unwrap_or_default();
        let rest: Vec<&String> = all.iter().filter(|f| *f != finalizer).collect();
        if rest.len() == all.len() {
            return Ok(());
        }
        let rest = if rest.is_empty() { Value::Null } else { json!(rest) };
        let version = latest.resource_version.as_deref();
        self.patch(resource, place, json!({"metadata": {"resourceVersion": version, "finalizers": rest}}))
            .await
    }

    async fn delete(
        &self,
        resource: &Served,
        place: &Place,
        latest: &ObjectMeta,
        policy: PropagationPolicy,
    ) -> Result<()> {
        let preconditions =
            Preconditions { uid: latest.uid.clone(), resource_version: latest.resource_version.clone() };
        let params = DeleteParams {
            preconditions: Some(preconditions),
            propagation_policy: Some(policy),
            ..DeleteParams::default()
        };
        resource.delete(self.cx.client(), place.namespace.as_deref(), &place.name, &params).await?;
        Ok(())
    }

    /// Takes the owner out of its dependents' references, then lets the owner go.
    async fn let_go(&self, uid: &Uid) -> Result<Outcome> {
        if !self.is_complete() {
            return Ok(Outcome::After(UNTIL_COMPLETE));
        }
        let (owner, dependents) = {
            let graph = self.graph();
            let Some(owner) = graph.get(uid).cloned() else { return Ok(Outcome::Done) };
            let dependents: Vec<Node> = graph.dependents(uid).into_iter().map(|(_, d)| d.clone()).collect();
            (owner, dependents)
        };
        let Some(resource) = &owner.resource else { return Ok(Outcome::Done) };
        for dependent in &dependents {
            let Some(of) = &dependent.resource else { continue };
            let Some(latest) = self.get(of, &dependent.place).await? else { continue };
            if latest.owner_references.iter().flatten().any(|o| *o.uid == **uid) {
                self.strip(of, &dependent.place, &latest, &[uid.to_string()]).await?;
            }
        }
        if let Some(latest) =
            self.get(resource, &owner.place).await?.filter(|m| m.uid.as_deref() == Some(uid))
        {
            self.remove_finalizer(resource, &owner.place, &latest, ORPHAN).await?;
        }
        Ok(Outcome::Done)
    }

    /// The reference's event about an owner reference that can't be meant.
    async fn tell(&self, uid: &Uid, owner: &Uid) -> Result<Outcome> {
        let Some(node) = self.graph().get(uid).cloned() else { return Ok(Outcome::Done) };
        let Some(reference) = node.owners.iter().find(|o| *o.uid == **owner) else {
            return Ok(Outcome::Done);
        };
        let namespace = node.place.namespace.as_deref().unwrap_or_default();
        let note = format!(
            "ownerRef [{}/{}, namespace: {namespace}, name: {}, uid: {}] does not exist in namespace \"{namespace}\"",
            reference.api_version, reference.kind, reference.name, reference.uid
        );
        let regarding = ObjectReference {
            api_version: Some(node.place.api_version.clone()),
            kind: Some(node.place.kind.clone()),
            name: Some(node.place.name.clone()),
            namespace: node.place.namespace.clone(),
            uid: Some(uid.to_string()),
            ..ObjectReference::default()
        };
        self.cx.recorder().record(regarding, Event::warning("OwnerRefInvalidNamespace", note)).await;
        Ok(Outcome::Done)
    }
}
