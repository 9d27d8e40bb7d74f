//! Deployments: ReplicaSets of changing templates, one growing while the others shrink.
//!
//! [`rollout`] decides sizes, [`status`] what is told; this module carries it out. A Deployment never touches pods.
//! Invariant: of all its ReplicaSets at most one has its present template and counts as the new one.

mod rollout;
mod sets;
mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat_sdk::{Context, Error, Event, Key, Next, Operator, Result, Settings, Watches};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::api::Patch;
use serde_json::{Value, json};

use crate::common::claim::{self, Orphans};
use crate::common::{counting, hash, pod_control, pods};
use rollout::{Sets, Stage};
use sets::{HASH_LABEL, Limits, REVISION, Set};
use status::Conditions;

/// The controller.
#[derive(Default)]
pub(crate) struct Deployments {
    orphans: Orphans<ReplicaSet>,
}

impl Operator for Deployments {
    type Resource = Deployment;
    type Owns = (ReplicaSet,);
    type Reads = (Pod,);

    fn name() -> &'static str {
        "deployment-controller"
    }

    fn settings(&self) -> Settings {
        counting()
    }

    async fn reconcile(&self, deployment: &Deployment, cx: &Context<Self>) -> Result<Next> {
        let Some(spec) = &deployment.spec else { return Ok(Next::done()) };
        let selector = claim::labels(Some(&spec.selector))?;
        let all =
            claim::claim(cx, &self.orphans, &deployment.metadata, &selector, |_: &ReplicaSet| true).await?;
        let (new, old) = sets::split(spec, &all);
        let limits = Limits::of(spec);
        let sets = Sets {
            new,
            limits,
            replicas_before: deployment.status.as_ref().and_then(|s| s.replicas).unwrap_or(0),
            old_pods: !limits.rolling && has_pods(&old, cx),
            old,
        };
        Work { deployment, spec, sets, cx }.run().await
    }

    /// A Deployment that is being deleted still tells how many pods it has.
    async fn finalize(&self, deployment: &Deployment, cx: &Context<Self>) -> Result<Next> {
        self.reconcile(deployment, cx).await
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        watches.map::<ReplicaSet, _>(|set, view| {
            if claim::controller(&set.metadata).is_some() {
                return Vec::new();
            }
            let all = view.resources().in_namespace(set.metadata.namespace.as_deref().unwrap_or_default());
            let selects = |d: &&Arc<Deployment>| {
                let selector = claim::labels(d.spec.as_ref().map(|s| &s.selector));
                selector.is_ok_and(|l| claim::matches(&l, &set.metadata))
            };
            all.iter().filter(selects).map(|d| Key::of(&**d)).collect()
        });
        // Recreate waits for the last old pod to be gone.
        watches.changes::<Pod, _>(|change, view| {
            let (Some(pod), None) = (&change.old, &change.new) else { return Vec::new() };
            let owner = claim::controller(&pod.metadata).filter(|o| o.kind == "ReplicaSet");
            let set = owner.and_then(|o| {
                view.cache::<ReplicaSet, _>().get(&Key::new(pod.metadata.namespace.as_deref(), &o.name))
            });
            let owner = set.as_ref().and_then(|s| claim::controller(&s.metadata));
            let key = owner.map(|o| Key::new(pod.metadata.namespace.as_deref(), &o.name));
            let recreates = |k: &Key| {
                let deployment = view.resources().get(k);
                deployment.and_then(|d| d.spec.as_ref().map(|s| !Limits::of(s).rolling)).unwrap_or(false)
            };
            key.filter(recreates).into_iter().collect()
        });
    }
}

/// Whether any pod of these sets exists that isn't over, even if only on its way out.
fn has_pods(sets: &[&ReplicaSet], cx: &Context<Deployments>) -> bool {
    let cache = cx.cache::<Pod, _>();
    let uids = sets.iter().filter_map(|s| s.metadata.uid.as_deref());
    uids.flat_map(|uid| cache.owned_by(uid)).any(|p| !pods::is_over(&p))
}

/// One reconcile.
struct Work<'a> {
    deployment: &'a Deployment,
    spec: &'a DeploymentSpec,
    sets: Sets<'a>,
    cx: &'a Context<Deployments>,
}

impl Work<'_> {
    async fn run(self) -> Result<Next> {
        let now = self.cx.clock().now();
        let leaving = self.deployment.metadata.deletion_timestamp.is_some();
        let mut conditions = Conditions::of(self.deployment, now);
        let mut collisions = self.deployment.status.as_ref().and_then(|s| s.collision_count);
        let mut outcome = Ok(());
        let mut rollout = false;
        if !leaving {
            conditions.pause(self.spec);
            let paused = self.spec.paused == Some(true);
            rollout = !paused && !self.sets.is_scaling();
            let stage = if rollout { self.sets.update() } else { self.sets.scale() };
            outcome = self.carry_out(&stage, &mut conditions, &mut collisions).await;
        }
        let counts = status::counts(self.deployment, &self.sets, collisions);
        let complete = status::is_complete(self.deployment, self.spec, &counts);
        let conditions =
            status::conditions(self.deployment, self.spec, &self.sets, &counts, conditions, rollout, now);
        let again = conditions.deadline_in(self.spec, complete, now).filter(|_| !leaving);
        self.cx.status(status::with(counts, &conditions)).await?;
        outcome?;
        if !leaving && (complete || self.spec.paused == Some(true)) {
            for set in self.sets.surplus(self.spec.revision_history_limit.unwrap_or(10)) {
                self.cx.delete::<ReplicaSet, _>(set).await?;
            }
        }
        Ok(again.map_or(Next::done(), Next::after))
    }

    async fn carry_out(
        &self,
        stage: &Stage<'_>,
        conditions: &mut Conditions,
        collisions: &mut Option<i32>,
    ) -> Result<()> {
        let last = self.sets.old.iter().filter_map(|s| s.number(REVISION)).max().unwrap_or(0);
        if let Some(new) = self.sets.new {
            conditions.found(self.spec, new.name());
            let changes = sets::annotations(self.deployment, Some(new), last + 1, &self.sets.limits);
            let revision = changes.get(REVISION).map(String::as_str).or(new.annotation(REVISION));
            self.tell_revision(revision).await?;
            let scaled =
                matches!(stage, Stage::Scale(sizes) if sizes.iter().any(|(s, _)| s.name() == new.name()));
            let min_ready = self.spec.min_ready_seconds.unwrap_or(0);
            let same = new.spec.as_ref().and_then(|s| s.min_ready_seconds).unwrap_or(0) == min_ready;
            if !changes.is_empty() || !same {
                let patch =
                    json!({"metadata": {"annotations": changes}, "spec": {"minReadySeconds": min_ready}});
                self.change(new, patch).await?;
                if scaled {
                    // The new version comes back as a change of its own.
                    return Ok(());
                }
            }
        }
        match stage {
            Stage::Rest => Ok(()),
            Stage::Create(size) => self.create(*size, last + 1, conditions, collisions).await,
            Stage::Scale(sizes) => {
                for (set, size) in sizes {
                    self.scale(set, *size).await?;
                }
                Ok(())
            }
        }
    }

    /// The Deployment carries the revision of its new set.
    async fn tell_revision(&self, revision: Option<&str>) -> Result<()> {
        let has =
            self.deployment.meta().annotations.as_ref().and_then(|a| a.get(REVISION)).map(String::as_str);
        if let Some(revision) = revision
            && has != Some(revision)
        {
            let patch = json!({"metadata": {"annotations": {REVISION: revision}}});
            self.cx.patch_resource(&Patch::Merge(patch)).await?;
        }
        Ok(())
    }

    async fn change(&self, set: &ReplicaSet, mut patch: Value) -> Result<()> {
        patch["metadata"]["resourceVersion"] = json!(set.metadata.resource_version);
        self.cx.patch::<ReplicaSet, _>(&Key::of(set), &Patch::Merge(patch)).await?;
        Ok(())
    }

    async fn scale(&self, set: &ReplicaSet, size: i32) -> Result<()> {
        let sizes: BTreeMap<String, String> = sets::sizes(&self.sets.limits)
            .into_iter()
            .filter(|(k, v)| set.annotation(k) != Some(v))
            .collect();
        let before = set.size();
        if size == before && sizes.is_empty() {
            return Ok(());
        }
        self.change(set, json!({"metadata": {"annotations": sizes}, "spec": {"replicas": size}})).await?;
        if size != before {
            self.tell_scaled(set.name(), before, size).await;
        }
        Ok(())
    }

    async fn tell_scaled(&self, set: &str, from: i32, to: i32) {
        let direction = if to > from { "up" } else { "down" };
        let text = format!("Scaled {direction} replica set {set} from {from} to {to}");
        self.cx.event(Event::normal("ScalingReplicaSet", text)).await;
    }

    async fn create(
        &self,
        size: i32,
        revision: i64,
        conditions: &mut Conditions,
        collisions: &mut Option<i32>,
    ) -> Result<()> {
        let set = self.new_set(size, revision, *collisions);
        let name = set.name().to_owned();
        let key = Key::new(self.cx.namespace(), &name);
        match self.cx.create::<ReplicaSet, _>(set).await {
            Ok(_) => {
                if size > 0 {
                    self.tell_scaled(&name, 0, size).await;
                }
                conditions.created(self.spec, &name);
                self.tell_revision(Some(&revision.to_string())).await
            }
            Err(e) if e.is_already_exists() => {
                let has = self.cx.writer().get::<ReplicaSet>(&key).await?;
                if has.is_some_and(|h| self.is_ours(&h)) {
                    // It came to be without our cache knowing; now it does.
                    return Ok(());
                }
                *collisions = Some(collisions.unwrap_or(0).wrapping_add(1));
                Err(Error::msg(format!("the name of ReplicaSet {key} is taken; trying another one")))
            }
            Err(e) if pod_control::is_namespace_terminating(&e) => Ok(()),
            Err(e) => {
                let text = e.to_string();
                conditions.not_created(self.spec, &name, &text);
                let note = format!("Failed to create new replica set \"{name}\": {text}");
                self.cx.event(Event::warning("ReplicaSetCreateError", note)).await;
                Err(e)
            }
        }
    }

    fn is_ours(&self, set: &ReplicaSet) -> bool {
        let owner = claim::controller(&set.metadata).map(|o| o.uid.as_str());
        let template = set.spec.as_ref().and_then(|s| s.template.as_ref());
        owner == self.deployment.metadata.uid.as_deref()
            && template.is_some_and(|t| sets::same_template(t, &self.spec.template))
    }

    fn new_set(&self, size: i32, revision: i64, collisions: Option<i32>) -> ReplicaSet {
        let hash = hash::template(&self.spec.template, collisions);
        let mut template = self.spec.template.clone();
        let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
        labels.insert(HASH_LABEL.into(), hash.clone());
        let labels = labels.clone();
        let mut selector = self.spec.selector.clone();
        selector.match_labels.get_or_insert_default().insert(HASH_LABEL.into(), hash.clone());
        ReplicaSet {
            metadata: ObjectMeta {
                name: Some(format!("{}-{hash}", self.cx.name())),
                namespace: self.deployment.metadata.namespace.clone(),
                labels: Some(labels),
                annotations: Some(sets::annotations(self.deployment, None, revision, &self.sets.limits)),
                ..ObjectMeta::default()
            },
            spec: Some(ReplicaSetSpec {
                replicas: Some(size),
                min_ready_seconds: self.spec.min_ready_seconds.filter(|s| *s != 0),
                selector,
                template: Some(template),
            }),
            status: None,
        }
    }
}
