//! Leader election: of several processes the one that holds a Lease works, the others are ready to.
//!
//! The protocol and its times are client-go's, so that operators in Go and this one can stand in for each other.
//! What differs: a process that loses its lease doesn't end. It stops what it does, keeps its caches, and stands by.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::fence::Fence;
use super::gate::{Keeper, Scope};
use super::lease::{self, Held, Leases, Observed, holder};
use crate::event::{Event, Recorder};
use crate::metrics::Common;

/// How a leader is elected.
///
/// ```no_run
/// use homeostat_sdk::{LeaderElection, Manager};
///
/// # async fn example(client: kube::Client) {
/// let manager = Manager::new(client).with_leader_election(LeaderElection::new("redis-operator"));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LeaderElection {
    /// The Lease's name. All processes that elect one leader name the same.
    pub lease: String,
    /// The Lease's namespace; by default the pod's own, else that of the client.
    pub namespace: Option<String>,
    /// This process; by default the pod's name (or host's), with something random behind.
    pub identity: Option<String>,
    /// After how long without a renewal others take the lease: 15 s.
    pub lease_duration: Duration,
    /// How long the leader tries to renew before it stops: 10 s. Less than the duration, or two might lead.
    pub renew_deadline: Duration,
    /// How long between tries: 2 s.
    pub retry_period: Duration,
}

impl LeaderElection {
    /// By the lease of this name, with client-go's times.
    pub fn new(lease: impl Into<String>) -> Self {
        Self {
            lease: lease.into(),
            namespace: None,
            identity: None,
            lease_duration: lease::DURATION,
            renew_deadline: lease::DEADLINE,
            retry_period: lease::RETRY,
        }
    }

    /// With the lease in this namespace.
    #[must_use]
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// As this process' name.
    #[must_use]
    pub fn as_identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = Some(identity.into());
        self
    }
}

/// What an election works with.
pub(crate) struct Candidate {
    pub(crate) election: LeaderElection,
    /// Not fenced: it must renew.
    pub(crate) client: Client,
    pub(crate) clock: homeostat_model::Clock,
    pub(crate) entropy: homeostat_model::Entropy,
    pub(crate) namespace: String,
    pub(crate) identity: String,
    pub(crate) recorder: Recorder,
    pub(crate) fence: Fence,
    pub(crate) metrics: Arc<Common>,
}

impl Candidate {
    /// Stands for election until `stop`; then gives the lease up, after whoever works has stopped.
    pub(crate) async fn run(self, mut keeper: Keeper, stop: CancellationToken, stopped: CancellationToken) {
        let election = &self.election;
        let leases = Leases::new(
            self.client.clone(),
            &self.namespace,
            self.clock.clone(),
            &self.identity,
            election.lease_duration,
        );
        self.metrics.leads(&election.lease, false);
        loop {
            let acquired = tokio::select! { biased;
                () = stop.cancelled() => return,
                acquired = self.acquire(&leases) => acquired,
            };
            let (held, at) = acquired;
            self.fence.open_until(at + election.renew_deadline);
            self.metrics.leads(&election.lease, true);
            info!(lease = election.lease, identity = self.identity, "became leader");
            keeper.decide(Scope::Everything);
            self.tell(&held, "became leader").await;
            let held = self.lead(&leases, held, at, &stop, &stopped).await;
            self.fence.close();
            self.metrics.leads(&election.lease, false);
            let former = keeper.decide(Scope::Nothing);
            if let Some(held) = held {
                // Told to stop, and everybody has.
                self.tell(&held, "stopped leading").await;
                if let Err(error) = leases.release(&held).await {
                    debug!(lease = election.lease, %error, "could not give the lease up; it will expire");
                }
                return;
            }
            warn!(lease = election.lease, identity = self.identity, "lost the lease; writing nothing more");
            former.released().await;
        }
    }

    /// Waits until the lease is this process', and when the request for it was sent.
    async fn acquire(&self, leases: &Leases) -> (Held, Instant) {
        let name = &self.election.lease;
        let mut seen: Option<Observed> = None;
        loop {
            let at = Instant::now();
            let tried = self.try_acquire(leases, &mut seen);
            match tokio::time::timeout(self.election.renew_deadline, tried).await {
                Ok(Ok(Some(held))) => return (held, at),
                Ok(Ok(None)) => {}
                Ok(Err(error)) => debug!(lease = name, %error, "could not take the lease"),
                Err(_) => debug!(lease = name, "the API server doesn't answer"),
            }
            // Up to 1.2 times as long, as client-go has it, so that candidates don't collide for ever.
            let period = self.election.retry_period;
            let jitter = u64::try_from(period.as_millis() / 5).unwrap_or(0);
            tokio::time::sleep(period + Duration::from_millis(self.entropy.below(jitter))).await;
        }
    }

    async fn try_acquire(&self, leases: &Leases, seen: &mut Option<Observed>) -> kube::Result<Option<Held>> {
        let name = &self.election.lease;
        let Some(lease) = leases.get(name).await? else {
            return leases.create(name, BTreeMap::new()).await.map(Some);
        };
        match seen {
            Some(seen) => seen.look(&lease),
            None => *seen = Some(Observed::now(&lease)),
        }
        let expired = seen.as_ref().is_some_and(|s| s.has_expired(&lease, self.election.lease_duration));
        if holder(&lease).is_some_and(|h| h != self.identity) && !expired {
            return Ok(None);
        }
        leases.hold(&lease, &[]).await.map(Some)
    }

    /// Renews until the lease is lost (`None`), or until everybody has stopped.
    async fn lead(
        &self,
        leases: &Leases,
        mut held: Held,
        mut renewed: Instant,
        stop: &CancellationToken,
        stopped: &CancellationToken,
    ) -> Option<Held> {
        let name = &self.election.lease;
        loop {
            let deadline = renewed + self.election.renew_deadline;
            tokio::select! { biased;
                () = stopped.cancelled(), if stop.is_cancelled() => return Some(held),
                () = tokio::time::sleep(self.election.retry_period) => {}
                () = stop.cancelled(), if !stop.is_cancelled() => continue,
            }
            let at = Instant::now();
            // Stopped for a while, as a suspended machine is: another may lead.
            if at >= deadline {
                return None;
            }
            let renewal = tokio::select! { biased;
                renewal = leases.hold(&held, &[]) => renewal,
                () = tokio::time::sleep_until(deadline) => return None,
            };
            match renewal {
                Ok(lease) => {
                    held = lease;
                    renewed = at;
                    self.fence.open_until(at + self.election.renew_deadline);
                }
                Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => {
                    // Somebody wrote it; whoever holds it now counts.
                    match leases.get(name).await {
                        Ok(Some(lease)) if holder(&lease) == Some(&*self.identity) => held = lease,
                        Ok(_) => return None,
                        Err(error) => debug!(lease = name, %error, "could not look at the lease"),
                    }
                }
                Err(error) => warn!(lease = name, %error, "could not renew the lease"),
            }
            if Instant::now() >= renewed + self.election.renew_deadline {
                return None;
            }
        }
    }

    async fn tell(&self, lease: &Held, what: &str) {
        let regarding = ObjectReference {
            api_version: Some("coordination.k8s.io/v1".into()),
            kind: Some("Lease".into()),
            name: lease.metadata.name.clone(),
            namespace: lease.metadata.namespace.clone(),
            uid: lease.metadata.uid.clone(),
            resource_version: lease.metadata.resource_version.clone(),
            ..ObjectReference::default()
        };
        let event = Event::normal("LeaderElection", format!("{} {what}", self.identity)).action("Elect");
        // An event is no reason to be late with a renewal.
        let told = self.recorder.record(regarding, event);
        let _ = tokio::time::timeout(self.election.retry_period, told).await;
    }
}
