//! How often the parts of a cluster do what only shows that they are alive.
//!
//! In months of virtual time this is most of what happens. It can be made rarer, all of it at once, so that each still
//! fits the others: who is silent for five heartbeats counts as lost, however long a heartbeat is.

use std::time::Duration;

/// Periods of a cluster's signs of life; the default is the reference's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cadence {
    /// Between two renewals of a node's lease.
    pub heartbeat: Duration,
    /// How long watches of the cluster's own parts are kept open.
    pub watch: Duration,
    /// Between two bookmarks of a watch.
    pub bookmark: Duration,
}

impl Default for Cadence {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_secs(10),
            watch: Duration::from_secs(290),
            bookmark: Duration::from_secs(60),
        }
    }
}

impl Cadence {
    /// Everything so many times rarer.
    ///
    /// ```
    /// use homeostat_cluster::Cadence;
    ///
    /// assert_eq!(Cadence::default().slower(360).heartbeat.as_secs(), 3600);
    /// ```
    #[must_use]
    pub fn slower(self, times: u32) -> Self {
        let Self { heartbeat, watch, bookmark } = self;
        Self { heartbeat: heartbeat * times, watch: watch * times, bookmark: bookmark * times }
    }

    /// How long a node may be silent.
    pub(crate) fn grace(self) -> Duration {
        self.heartbeat * 5
    }
}
