//! Sharing the keys among all processes: each key belongs to one of them, and moves when they come or go.
//!
//! Every member keeps a Lease of its own and reads those of the others. From the members that are alive follows a
//! [`Ring`], which says whom each key belongs to. A handover takes two steps, so that the old owner has stopped before
//! the new one starts:
//!
//! 1. A member that sees another ring than before lets go of the keys that it doesn't have in it, waits until nobody
//!    works on them, and acknowledges the ring in an annotation of its lease.
//! 2. A member starts on the keys that it has in a ring when all members of the ring have acknowledged that ring.
//!
//! A member that dies acknowledges nothing; its lease expires, which makes another ring, and by then its own fence has
//! closed. Keys that don't move are worked on all the time.
//! Invariant: a member works on a key only if it owns it in every ring that it acknowledged since the last agreement.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use homeostat_model::{Clock, Entropy};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::fence::Fence;
use super::gate::{Former, Keeper, Scope};
use super::lease::{self, Held, Leases, Observed, holder};
use super::ring::Ring;
use crate::metrics::Common;

/// The label of the members' leases: the group's name.
const GROUP: &str = "homeostat.dev/shards";
/// The annotation in which a member acknowledges a ring.
const RING: &str = "homeostat.dev/ring";
/// Most members; more share nothing sensibly.
const MOST_MEMBERS: usize = 256;

/// How processes share the keys: see [`Manager::with_sharding`](crate::Manager::with_sharding).
///
/// ```no_run
/// use homeostat_sdk::{Manager, Sharding};
///
/// # async fn example(client: kube::Client) {
/// let manager = Manager::new(client).with_sharding(Sharding::new("redis-operator"));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Sharding {
    /// The group's name: all processes that share keys name the same.
    pub group: String,
    /// The namespace of the members' Leases; by default the pod's own, else that of the client.
    pub namespace: Option<String>,
    /// This process; by default the pod's name (or host's), with something random behind.
    pub identity: Option<String>,
    /// After how long without a renewal a member counts as gone: 15 s.
    pub lease_duration: Duration,
    /// How long a member tries to renew before it stops: 10 s.
    pub renew_deadline: Duration,
    /// How long between looks at the others: 2 s.
    pub retry_period: Duration,
}

impl Sharding {
    /// In the group of this name, with the times of leader election.
    pub fn new(group: impl Into<String>) -> Self {
        Self {
            group: group.into(),
            namespace: None,
            identity: None,
            lease_duration: lease::DURATION,
            renew_deadline: lease::DEADLINE,
            retry_period: lease::RETRY,
        }
    }

    /// With the leases in this namespace.
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

/// What a member works with.
pub(crate) struct Member {
    pub(crate) sharding: Sharding,
    /// Not fenced: it must renew.
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
    pub(crate) namespace: String,
    pub(crate) identity: Arc<str>,
    pub(crate) fence: Fence,
    pub(crate) metrics: Arc<Common>,
}

/// What a member knows and has promised.
#[derive(Default)]
struct Standing {
    /// The rings acknowledged since the last agreement, that agreement first. Empty: none yet.
    rings: Vec<Ring>,
    /// Whether the first of them is an agreement.
    works: bool,
    /// The ring that this member wants, once it has let go.
    acknowledged: Option<String>,
}

/// What to do next.
#[derive(Debug, PartialEq)]
enum Step {
    /// Nothing new.
    Rest,
    /// Let go of what isn't owned in all rings, then acknowledge the last.
    LetGo,
    /// All have acknowledged: work on what is owned in it.
    Start,
}

impl Standing {
    /// Looks at who is there: `ring`, and which ring each of them has acknowledged.
    fn look(&mut self, ring: &Ring, acknowledged: &BTreeMap<Arc<str>, String>) -> Step {
        if self.rings.last() != Some(ring) {
            // The first stays where it is; of the others each counts once, however often members come and go.
            if let Some(again) = self.rings.iter().skip(1).position(|r| r == ring) {
                self.rings.remove(again + 1);
            }
            self.rings.push(ring.clone());
            self.acknowledged = None;
            return Step::LetGo;
        }
        let id = ring.id();
        if self.acknowledged.as_ref() != Some(&id) {
            return Step::LetGo;
        }
        if self.works && self.rings.len() == 1 {
            return Step::Rest;
        }
        if ring.members().all(|m| acknowledged.get(m) == Some(&id)) {
            self.rings = vec![ring.clone()];
            self.works = true;
            return Step::Start;
        }
        Step::Rest
    }

    fn scope(&self, me: &Arc<str>) -> Scope {
        if self.works { Scope::Share { me: me.clone(), rings: self.rings.clone() } } else { Scope::Nothing }
    }
}

impl Member {
    fn lease_name(&self) -> String {
        format!("{}-{}", self.sharding.group, self.identity)
    }

    /// Takes part until `stop`, and leaves when everybody here has `stopped`.
    pub(crate) async fn run(self, mut keeper: Keeper, stop: CancellationToken, stopped: CancellationToken) {
        let sharding = &self.sharding;
        let leases = Leases::new(
            self.client.clone(),
            &self.namespace,
            self.clock.clone(),
            &self.identity,
            sharding.lease_duration,
        );
        self.metrics.leads(&sharding.group, false);
        while !stop.is_cancelled() {
            let Some((held, at)) = self.join(&leases, &stop).await else { break };
            info!(group = sharding.group, identity = &*self.identity, "joined");
            let left = self.take_part(&leases, held, at, &mut keeper, &stop, &stopped).await;
            self.fence.close();
            self.metrics.leads(&sharding.group, false);
            let former = keeper.decide(Scope::Nothing);
            if left {
                if let Err(error) = leases.delete(&self.lease_name()).await {
                    debug!(group = sharding.group, %error, "could not leave; the lease will expire");
                }
                return;
            }
            warn!(group = sharding.group, identity = &*self.identity, "lost the lease; writing nothing more");
            former.released().await;
        }
    }

    /// Makes this member's lease, or takes up the one that is left of it, with nothing acknowledged.
    async fn join(&self, leases: &Leases, stop: &CancellationToken) -> Option<(Held, Instant)> {
        let name = self.lease_name();
        let labels = BTreeMap::from([(GROUP.to_owned(), self.sharding.group.clone())]);
        loop {
            let at = Instant::now();
            let tried = async {
                match leases.get(&name).await? {
                    Some(left) => leases.hold(&left, &[(RING, String::new())]).await,
                    None => leases.create(&name, labels.clone()).await,
                }
            };
            match tokio::time::timeout(self.sharding.renew_deadline, tried).await {
                Ok(Ok(held)) => return Some((held, at)),
                Ok(Err(error)) => warn!(lease = name, %error, "could not join"),
                Err(_) => warn!(lease = name, "could not join: the API server doesn't answer"),
            }
            tokio::select! { biased;
                () = stop.cancelled() => return None,
                () = tokio::time::sleep(self.pause()) => {}
            }
        }
    }

    /// Up to a fifth longer than the period, so that members don't move in step.
    fn pause(&self) -> Duration {
        let period = self.sharding.retry_period;
        let jitter = u64::try_from(period.as_millis() / 5).unwrap_or(0);
        period + Duration::from_millis(self.entropy.below(jitter))
    }

    /// Renews and looks, until everybody here has stopped (true) or the lease is lost.
    async fn take_part(
        &self,
        leases: &Leases,
        mut held: Held,
        mut renewed: Instant,
        keeper: &mut Keeper,
        stop: &CancellationToken,
        stopped: &CancellationToken,
    ) -> bool {
        let mut standing = Standing::default();
        let mut seen: BTreeMap<Arc<str>, Observed> = BTreeMap::new();
        let mut letting_go: Option<LettingGo> = None;
        self.fence.open_until(renewed + self.sharding.renew_deadline);
        loop {
            // The whole round fits in the time that is left, or the lease counts as lost.
            let deadline = renewed + self.sharding.renew_deadline;
            let at = Instant::now();
            // Stopped for a while, as a suspended machine is: others may have what was ours.
            if at >= deadline {
                return false;
            }
            let annotation = [(RING, standing.acknowledged.clone().unwrap_or_default())];
            let round = async {
                let held = leases.hold(&held, &annotation).await?;
                let all = leases.list(&format!("{GROUP}={}", self.sharding.group)).await?;
                Ok::<_, kube::Error>((held, all))
            };
            let round = tokio::select! { biased;
                round = round => round,
                () = tokio::time::sleep_until(deadline) => return false,
            };
            match round {
                Ok((lease, all)) => {
                    held = lease;
                    renewed = at;
                    self.fence.open_until(at + self.sharding.renew_deadline);
                    let (ring, acknowledged) = self.alive(&mut seen, &all);
                    match standing.look(&ring, &acknowledged) {
                        Step::Rest => {}
                        Step::LetGo if letting_go.as_ref().is_some_and(|l| l.ring == ring) => {}
                        Step::LetGo => {
                            debug!(group = self.sharding.group, members = ?ring, "the members changed");
                            let former = keeper.decide(standing.scope(&self.identity));
                            letting_go = Some(LettingGo::begin(ring, former, letting_go.take()));
                        }
                        Step::Start => {
                            info!(group = self.sharding.group, members = ?ring, "sharing the keys");
                            keeper.decide(standing.scope(&self.identity));
                            self.metrics.leads(&self.sharding.group, true);
                        }
                    }
                }
                Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => return false,
                Err(error) => warn!(group = self.sharding.group, %error, "could not renew"),
            }
            if Instant::now() >= renewed + self.sharding.renew_deadline {
                return false;
            }
            let pause = self.pause();
            tokio::select! { biased;
                () = stopped.cancelled(), if stop.is_cancelled() => return true,
                ring = done(&mut letting_go) => {
                    // Acknowledged in the next round, which is now.
                    standing.acknowledged = Some(ring.id());
                    letting_go = None;
                }
                () = stop.cancelled(), if !stop.is_cancelled() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// The ring of those that are alive, this member among them, and what each has acknowledged.
    fn alive(
        &self,
        seen: &mut BTreeMap<Arc<str>, Observed>,
        leases: &[Lease],
    ) -> (Ring, BTreeMap<Arc<str>, String>) {
        let mut members = vec![self.identity.clone()];
        let mut acknowledged = BTreeMap::new();
        let mut named = BTreeMap::new();
        for lease in leases {
            let labels = lease.metadata.labels.as_ref();
            if labels.and_then(|l| l.get(GROUP)) != Some(&self.sharding.group) {
                continue;
            }
            let Some(holder) = holder(lease).map(Arc::<str>::from) else { continue };
            let observed = match seen.remove(&holder) {
                Some(mut before) => {
                    before.look(lease);
                    before
                }
                None => Observed::now(lease),
            };
            let alive = holder == self.identity || !observed.has_expired(lease, self.sharding.lease_duration);
            if alive && members.len() < MOST_MEMBERS {
                members.push(holder.clone());
                let annotations = lease.metadata.annotations.as_ref();
                let ring = annotations.and_then(|a| a.get(RING)).cloned().unwrap_or_default();
                acknowledged.insert(holder.clone(), ring);
            }
            named.insert(holder, observed);
        }
        // Those without a lease are forgotten.
        *seen = named;
        (Ring::new(members), acknowledged)
    }
}

/// Work that must end before a ring is acknowledged.
struct LettingGo {
    ring: Ring,
    former: Vec<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl LettingGo {
    fn begin(ring: Ring, former: Former, before: Option<Self>) -> Self {
        let mut all = before.map(|b| b.former).unwrap_or_default();
        all.push(Box::pin(former.released()));
        Self { ring, former: all }
    }
}

/// Waits until nobody works under former rights.
async fn done(letting_go: &mut Option<LettingGo>) -> Ring {
    let Some(LettingGo { ring, former }) = letting_go else { return std::future::pending().await };
    while let Some(released) = former.last_mut() {
        released.await;
        former.pop();
    }
    ring.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(members: &[&str]) -> Ring {
        Ring::new(members.iter().map(|m| Arc::from(*m)))
    }

    fn said(members: &[(&str, &Ring)]) -> BTreeMap<Arc<str>, String> {
        members.iter().map(|(m, ring)| (Arc::from(*m), ring.id())).collect()
    }

    #[test]
    fn a_ring_is_worked_on_when_all_its_members_have_acknowledged_it() {
        let (alone, both) = (ring(&["a"]), ring(&["a", "b"]));
        let mut a = Standing::default();
        let me: Arc<str> = "a".into();
        assert_eq!(a.look(&alone, &said(&[])), Step::LetGo);
        assert_eq!(a.scope(&me), Scope::Nothing);
        a.acknowledged = Some(alone.id());
        assert_eq!(a.look(&alone, &said(&[("a", &alone)])), Step::Start);
        assert_eq!(a.look(&alone, &said(&[("a", &alone)])), Step::Rest);
        // Another comes: only what is owned in both rings is kept.
        assert_eq!(a.look(&both, &said(&[("a", &alone)])), Step::LetGo);
        assert_eq!(a.scope(&me), Scope::Share { me: me.clone(), rings: vec![alone.clone(), both.clone()] });
        // Not let go yet.
        assert_eq!(a.look(&both, &said(&[("a", &alone), ("b", &both)])), Step::LetGo);
        a.acknowledged = Some(both.id());
        assert_eq!(a.look(&both, &said(&[("a", &both), ("b", &alone)])), Step::Rest);
        assert_eq!(a.look(&both, &said(&[("a", &both), ("b", &both)])), Step::Start);
        assert_eq!(a.scope(&me), Scope::Share { me: me.clone(), rings: vec![both.clone()] });
        // It goes again, before all agreed on a third: still only what is owned in all.
        let third = ring(&["a", "b", "c"]);
        assert_eq!(a.look(&third, &said(&[])), Step::LetGo);
        assert_eq!(a.look(&both, &said(&[])), Step::LetGo);
        assert_eq!(a.scope(&me), Scope::Share { me: me.clone(), rings: vec![both.clone(), third, both] });
    }
}
