//! One Lease as its holder and its watchers see it: read, taken, renewed and given up, each in one request.
//!
//! Every change names the version that it was made from, so of two that take a lease one fails. Clocks are not
//! compared: whether a lease has expired is judged by how long it hasn't changed before one's own eyes.

use std::collections::BTreeMap;
use std::time::Duration;

use homeostat_model::Clock;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::core::ObjectMeta;
use kube::{Api, Client};
use tokio::time::Instant;

/// client-go's times: how long a lease lasts, how long its holder tries to renew it, and how long between tries.
pub(super) const DURATION: Duration = Duration::from_secs(15);
pub(super) const DEADLINE: Duration = Duration::from_secs(10);
pub(super) const RETRY: Duration = Duration::from_secs(2);

/// The leases of a namespace, for one holder.
pub(super) struct Leases {
    api: Api<Lease>,
    clock: Clock,
    pub(super) holder: String,
    duration: Duration,
}

/// A lease that this process holds, as it was written last.
pub(super) type Held = Lease;

impl Leases {
    pub(super) fn new(
        client: Client,
        namespace: &str,
        clock: Clock,
        holder: &str,
        duration: Duration,
    ) -> Self {
        Self { api: Api::namespaced(client, namespace), clock, holder: holder.to_owned(), duration }
    }

    pub(super) async fn get(&self, name: &str) -> kube::Result<Option<Lease>> {
        self.api.get_opt(name).await
    }

    pub(super) async fn list(&self, labels: &str) -> kube::Result<Vec<Lease>> {
        Ok(self.api.list(&ListParams::default().labels(labels)).await?.items)
    }

    fn spec(&self, before: Option<&LeaseSpec>) -> LeaseSpec {
        let now = MicroTime(self.clock.now());
        let mine = before.filter(|s| s.holder_identity.as_deref() == Some(&self.holder));
        let transitions = before.and_then(|s| s.lease_transitions).unwrap_or(0);
        LeaseSpec {
            holder_identity: Some(self.holder.clone()),
            lease_duration_seconds: Some(i32::try_from(self.duration.as_secs()).unwrap_or(i32::MAX)),
            acquire_time: mine.and_then(|s| s.acquire_time.clone()).or_else(|| Some(now.clone())),
            renew_time: Some(now),
            lease_transitions: Some(match (mine, before) {
                (Some(_), _) | (None, None) => transitions,
                (None, Some(_)) => transitions.saturating_add(1),
            }),
            ..LeaseSpec::default()
        }
    }

    /// Makes the lease, held by this process.
    pub(super) async fn create(&self, name: &str, labels: BTreeMap<String, String>) -> kube::Result<Held> {
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(labels).filter(|l| !l.is_empty()),
            ..ObjectMeta::default()
        };
        let lease = Lease { metadata, spec: Some(self.spec(None)) };
        self.api.create(&PostParams::default(), &lease).await
    }

    /// Takes the lease or renews it, if it is still as `seen`. `annotations` are added.
    pub(super) async fn hold(&self, seen: &Lease, annotations: &[(&str, String)]) -> kube::Result<Held> {
        let mut lease = seen.clone();
        lease.spec = Some(self.spec(seen.spec.as_ref()));
        for (key, value) in annotations {
            lease.metadata.annotations.get_or_insert_default().insert((*key).to_owned(), value.clone());
        }
        self.replace(lease).await
    }

    /// Gives the lease up, as client-go does: without a holder, and for one second only.
    pub(super) async fn release(&self, held: &Held) -> kube::Result<Lease> {
        let mut lease = held.clone();
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        spec.renew_time = Some(MicroTime(self.clock.now()));
        self.replace(lease).await
    }

    async fn replace(&self, mut lease: Lease) -> kube::Result<Lease> {
        let name = lease.metadata.name.clone().unwrap_or_default();
        lease.metadata.managed_fields = None;
        self.api.replace(&name, &PostParams::default(), &lease).await
    }

    pub(super) async fn delete(&self, name: &str) -> kube::Result<()> {
        match self.api.delete(name, &DeleteParams::default()).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(e) => Err(e),
        }
    }
}

/// Who holds a lease; `None` where nobody does.
pub(super) fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref().filter(|h| !h.is_empty())
}

/// A lease as it changes before one's eyes.
pub(super) struct Observed {
    version: Option<String>,
    since: Instant,
}

impl Observed {
    /// Seen for the first time now.
    pub(super) fn now(lease: &Lease) -> Self {
        Self { version: lease.metadata.resource_version.clone(), since: Instant::now() }
    }

    /// Looks again.
    pub(super) fn look(&mut self, lease: &Lease) {
        if self.version != lease.metadata.resource_version {
            *self = Self::now(lease);
        }
    }

    /// Whether the holder hasn't renewed it in time. What the lease says of its duration counts, for its holder may
    /// have been told another; it has a limit, so that nobody can hold a lease for ever.
    pub(super) fn has_expired(&self, lease: &Lease, duration: Duration) -> bool {
        const MOST: u64 = 3600;
        let said = lease.spec.as_ref().and_then(|s| s.lease_duration_seconds).unwrap_or(0);
        let said = Duration::from_secs(u64::try_from(said).unwrap_or(0).min(MOST));
        self.since.elapsed() > if said.is_zero() { duration } else { said }
    }
}
