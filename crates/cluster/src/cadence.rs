//! How often the parts of a cluster do what only shows that they are alive.
//!
//! In months of virtual time this is most of what happens. It can be made rarer, all of it at once, so that each still
//! fits the others: who is silent for five heartbeats counts as lost, however long a heartbeat is.

use std::time::Duration;

/// Periods of a cluster's signs of life; the default is what kubelets, clients and servers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cadence {
    /// Between two renewals of a node's lease.
    pub(crate) heartbeat: Duration,
    /// How long watches of the cluster's own parts are kept open.
    pub(crate) watch: Duration,
    /// Between two bookmarks of a watch.
    pub(crate) bookmark: Duration,
}

impl Default for Cadence {
    fn default() -> Self {
        Self {
            heartbeat: homeostat_node::HEARTBEAT,
            watch: homeostat_sdk::WATCH_TIMEOUT,
            bookmark: homeostat_apiserver::BOOKMARK_EVERY,
        }
    }
}

impl Cadence {
    /// Everything so many times rarer.
    ///
    /// ```
    /// use homeostat_cluster::Cadence;
    ///
    /// assert_eq!(Cadence::default().slower(360).heartbeat().as_secs(), 3600);
    /// ```
    #[must_use]
    pub fn slower(self, times: u16) -> Self {
        let slow = |period: Duration| period.saturating_mul(times.max(1).into());
        Self { heartbeat: slow(self.heartbeat), watch: slow(self.watch), bookmark: slow(self.bookmark) }
    }

    /// Time between two renewals of a node's lease. A node that is silent for five counts as lost.
    pub fn heartbeat(self) -> Duration {
        self.heartbeat
    }

    /// How long watches are kept open before they are asked for anew.
    pub fn watch(self) -> Duration {
        self.watch
    }

    /// How long a node may be silent.
    pub(crate) fn grace(self) -> Duration {
        self.heartbeat.saturating_mul(5)
    }
}
