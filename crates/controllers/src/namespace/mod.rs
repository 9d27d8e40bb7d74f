//! The end of namespaces: everything in one is deleted, what remains is told in conditions, and when nothing does the
//! namespace's own finalizer goes.
//!
//! Pods go first, since what they use should outlive them. Every look asks the server what kinds there are and what
//! is left of each, so nothing is overlooked.
//! Invariant: the namespace is let go only after a look in which every resource was listed and none had an object.

mod conditions;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use homeostat_sdk::{Context, Key, Next, Operator, Result, Watches};
use k8s_openapi::api::core::v1::{Namespace, NamespaceSpec, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::api::PostParams;
use kube::core::Request;
use serde_json::json;

use crate::common::served::{Discovery, Served};
use conditions::Findings;

/// The finalizer in `spec.finalizers` that this controller serves.
const FINALIZER: &str = "kubernetes";
/// How soon a namespace with leftovers is looked at again, by its age as a terminating one.
const SOONEST: Duration = Duration::from_millis(100);
const LATEST: Duration = Duration::from_secs(5);

/// The controller.
pub(crate) struct Namespaces;

impl Operator for Namespaces {
    type Resource = Namespace;
    type Owns = ();
    type Reads = (Pod,);

    fn name() -> &'static str {
        "namespace-controller"
    }

    async fn reconcile(&self, _: &Namespace, _: &Context<Self>) -> Result<Next> {
        Ok(Next::done())
    }

    async fn finalize(&self, namespace: &Namespace, cx: &Context<Self>) -> Result<Next> {
        let held =
            |n: &Namespace| n.spec.iter().flat_map(|s| s.finalizers.iter().flatten()).any(|f| f == FINALIZER);
        if !held(namespace) {
            return Ok(Next::done());
        }
        let findings = empty(cx).await;
        let now = cx.clock().now();
        let conditions = conditions::updated(namespace, &findings, now);
        cx.status(json!({"phase": "Terminating", "conditions": conditions})).await?;
        if findings.is_empty() {
            return release(cx).await;
        }
        let since = namespace.metadata.deletion_timestamp.as_ref().map_or(now, |t| t.0);
        let age = Duration::try_from(now.duration_since(since)).unwrap_or_default();
        Ok(Next::after((age / 4).clamp(SOONEST, LATEST)))
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        // The last pod to go is what most terminating namespaces wait for.
        watches.changes::<Pod, _>(|change, view| {
            let (Some(pod), None) = (&change.old, &change.new) else { return Vec::new() };
            let key = Key::new(None, pod.metadata.namespace.as_deref().unwrap_or_default());
            let namespace = view.resources().get(&key);
            let leaving = namespace.is_some_and(|n| n.metadata.deletion_timestamp.is_some());
            if leaving { vec![key] } else { Vec::new() }
        });
    }
}

/// Deletes what is in the namespace; returns what is left.
async fn empty(cx: &Context<Namespaces>) -> Findings {
    let mut findings = Findings::default();
    let discovery = match Discovery::ask(cx.client()).await {
        Ok(discovery) => discovery,
        Err(e) => {
            findings.undiscovered = Some(e.to_string());
            return findings;
        }
    };
    if !discovery.stale.is_empty() {
        let groups = discovery.stale.join(", ");
        let text = format!("Discovery failed for some groups, {} failing: {groups}", discovery.stale.len());
        findings.undiscovered = Some(text);
    }
    let deletable = |r: &&Arc<Served>| r.namespaced && r.can("delete") && r.can("list");
    let (pods, rest): (Vec<_>, Vec<_>) = discovery
        .preferred()
        .filter(deletable)
        .cloned()
        .partition(|r| r.group.is_empty() && r.plural == "pods");
    for resources in [pods, rest] {
        let looks = join_all(resources.iter().map(|r| clear(r, cx))).await;
        for (resource, look) in resources.iter().zip(looks) {
            match look {
                Ok(left) => findings.add(resource, &left),
                Err(e) => findings.failed.push(e.to_string()),
            }
        }
        if !findings.is_empty() {
            // Other content waits for the last pod.
            break;
        }
    }
    findings
}

/// Deletes all objects of a resource in the namespace; returns those that are left.
async fn clear(resource: &Served, cx: &Context<Namespaces>) -> Result<Vec<ObjectMeta>> {
    let (client, namespace) = (cx.client(), cx.name());
    let left = match resource.list(client, Some(namespace)).await {
        Ok(left) => left,
        // No longer served, or never by itself.
        Err(e) if e.is_not_found() || e.status().is_some_and(|s| s.code == 405) => return Ok(Vec::new()),
        Err(e) => return Err(e),
    };
    let staying: Vec<&ObjectMeta> = left.iter().filter(|m| m.deletion_timestamp.is_none()).collect();
    if staying.is_empty() {
        return Ok(left);
    }
    if resource.can("deletecollection") {
        resource.delete_all(client, namespace).await?;
    } else {
        for name in staying.iter().filter_map(|m| m.name.as_deref()) {
            resource.delete(client, Some(namespace), name, &kube::api::DeleteParams::background()).await?;
        }
    }
    resource.list(client, Some(namespace)).await
}

/// Takes the finalizer away; the namespace is gone then.
async fn release(cx: &Context<Namespaces>) -> Result<Next> {
    // As it is after the status was written.
    let Some(latest) = cx.resources().get(cx.key()) else { return Ok(Next::done()) };
    let mut namespace = Namespace::clone(&latest);
    let spec = namespace.spec.get_or_insert_with(NamespaceSpec::default);
    spec.finalizers.get_or_insert_default().retain(|f| f != FINALIZER);
    let body = serde_json::to_vec(&namespace)?;
    let request = Request::new(Namespace::url_path(&(), None))
        .replace_subresource("finalize", cx.name(), &PostParams::default(), body)
        .map_err(kube::Error::BuildRequest)?;
    match cx.client().request::<serde_json::Value>(request).await {
        Ok(_) => Ok(Next::done()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Next::done()),
        Err(e) => Err(e.into()),
    }
}

/// Counts by name, in the order of names.
type Counts = BTreeMap<String, usize>;
