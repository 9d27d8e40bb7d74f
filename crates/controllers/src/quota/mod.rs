//! The status of ResourceQuotas: what there is of everything that is limited.
//!
//! Admission charges a quota when something is made; this controller counts anew when something is gone, and so gives
//! back. What pods use is counted from the cache, other objects on the server, by metadata.
//! Its writes are conditional, so that they never undo a charge.

mod usage;

use std::collections::BTreeMap;
use std::time::Duration;

use homeostat_sdk::{Cache, Context, Key, Next, Object, Operator, Result, Sees, Settings, Watches};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, ResourceQuota, Service};
use kube::api::Patch;
use serde_json::{Value, json};

use crate::common::served::Discovery;
use crate::common::{counting, pods};

/// Everything is counted again after this long, for kinds whose deletions aren't watched (the reference's resync).
const RESYNC: Duration = Duration::from_secs(300);

/// The controller.
pub(crate) struct Quotas;

impl Operator for Quotas {
    type Resource = ResourceQuota;
    type Owns = ();
    type Reads = (Pod, Service, PersistentVolumeClaim);

    fn name() -> &'static str {
        "resourcequota-controller"
    }

    fn settings(&self) -> Settings {
        counting()
    }

    async fn reconcile(&self, quota: &ResourceQuota, cx: &Context<Self>) -> Result<Next> {
        let Some(spec) = &quota.spec else { return Ok(Next::done()) };
        let namespace = cx.namespace().unwrap_or_default();
        let hard = spec.hard.clone().unwrap_or_default();
        let mut counted = Vec::new();
        if hard.keys().any(|name| usage::counted(name).is_some()) {
            counted = self.count(hard.keys(), namespace, cx).await?;
        }
        let (all, now) = (cx.cache::<Pod, _>().in_namespace(namespace), cx.clock().now());
        let used = usage::used(
            spec,
            &all,
            &cx.cache::<Service, _>().in_namespace(namespace),
            &cx.cache::<PersistentVolumeClaim, _>().in_namespace(namespace),
            &counted.into_iter().collect(),
            now,
        );
        let wanted = json!({"hard": hard, "used": used});
        let has = quota.status.as_ref().map_or(Value::Null, |s| json!({"hard": s.hard, "used": s.used}));
        if has != wanted {
            let mut status = wanted;
            // What is no longer limited is no longer told.
            for (field, old) in [("hard", &has["hard"]), ("used", &has["used"])] {
                for name in old.as_object().into_iter().flatten().map(|(k, _)| k) {
                    if !hard.contains_key(name) {
                        status[field][name] = Value::Null;
                    }
                }
            }
            let patch =
                json!({"metadata": {"resourceVersion": quota.metadata.resource_version}, "status": status});
            cx.writer().patch_status::<ResourceQuota, _>(cx.key(), &Patch::Merge(patch)).await?;
        }
        let ending = all.iter().filter_map(|p| usage::charged_for(p, now)).filter(|d| !d.is_zero());
        Ok(Next::after(ending.min().unwrap_or(RESYNC).min(RESYNC)))
    }

    async fn finalize(&self, _: &ResourceQuota, _: &Context<Self>) -> Result<Next> {
        Ok(Next::done())
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        // Its status is admission's and this controller's own: no news.
        watches.filter(|change| change.listed || change.differs(|q| q.spec.clone()));
        replenished::<Pod, _, _>(watches, |p| {
            (
                pods::is_over(p),
                pods::is_terminating(p),
                usage::measured(p),
                p.spec.as_ref().and_then(|s| s.active_deadline_seconds),
            )
        });
        replenished::<Service, _, _>(watches, |s| s.spec.clone());
        replenished::<PersistentVolumeClaim, _, _>(watches, |c| {
            (c.spec.clone(), c.status.as_ref().and_then(|s| s.allocated_resources.clone()))
        });
    }
}

/// An object that came, went, or changed in what counts brings back the quotas of its namespace.
fn replenished<T: Object, P, C: PartialEq + 'static>(watches: &mut Watches<Quotas>, counts: fn(&T) -> C)
where
    Quotas: Sees<T, P>,
{
    watches.changes::<T, P>(move |change, view| {
        let namespace = change.object().and_then(|o| o.meta().namespace.as_deref());
        let quotas = quotas_of(namespace, &view.resources());
        // Most namespaces have none, and what counts of a pod is much to compare.
        if quotas.is_empty() || !change.differs(counts) { Vec::new() } else { quotas }
    });
}

fn quotas_of(namespace: Option<&str>, quotas: &Cache<ResourceQuota>) -> Vec<Key> {
    namespace.map(|n| quotas.in_namespace(n)).unwrap_or_default().iter().map(|q| Key::of(&**q)).collect()
}

impl Quotas {
    /// Objects of each kind that is counted as such.
    async fn count(
        &self,
        names: impl Iterator<Item = &String>,
        namespace: &str,
        cx: &Context<Self>,
    ) -> Result<Vec<(String, usize)>> {
        let discovery = Discovery::ask(cx.client()).await?;
        let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
        let mut all = Vec::new();
        for name in names {
            let Some((plural, group)) = usage::counted(name) else { continue };
            let key = (plural.to_owned(), group.to_owned());
            let known = counts.get(&key).copied();
            let n = match known {
                Some(n) => n,
                None => {
                    let served = discovery.preferred().find(|r| r.plural == plural && r.group == group);
                    match served.filter(|r| r.namespaced && r.can("list")) {
                        Some(served) => served.list(cx.client(), Some(namespace)).await?.len(),
                        None => 0,
                    }
                }
            };
            counts.insert(key, n);
            all.push((name.clone(), n));
        }
        Ok(all)
    }
}
