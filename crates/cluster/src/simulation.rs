//! A cluster in virtual time: the same seed gives the same cluster, request by request and byte by byte.
//!
//! Everything runs on one thread, time passes only while all of it waits, and chance comes from the seed. Nothing here
//! is another implementation of anything: the parts are those of a real cluster, under tokio's paused time.
//! Invariant: nothing of the machine (time, randomness, hash order, other threads) shows in what happens.

use homeostat_model::{Clock, Entropy, Timestamp};
use tokio::runtime::Runtime;

use crate::{Cluster, ClusterOptions, StartError};

/// When virtual time begins: 2026-01-01T00:00:00Z, a Thursday.
const BEGIN: i64 = 1_767_225_600;

impl Cluster {
    /// A cluster for a test in virtual time: one simulated node, all controllers. It wants tokio's time paused and one
    /// thread, as `#[tokio::test(start_paused = true)]` gives them; [`simulate`] makes such a runtime.
    ///
    /// # Errors
    /// As [`Cluster::with`].
    pub async fn simulated(seed: u64) -> Result<Self, StartError> {
        Self::with(ClusterOptions::simulated(seed)).await
    }
}

impl ClusterOptions {
    /// The defaults, with time and chance of a simulation.
    pub fn simulated(seed: u64) -> Self {
        let begin = Timestamp::from_second(BEGIN).unwrap_or(Timestamp::UNIX_EPOCH);
        Self {
            clock: Clock::starting_at(begin),
            entropy: Entropy::seeded(seed),
            simulated: true,
            ..Self::default()
        }
    }
}

/// Runs `body` on one thread in paused time, and returns what it returns. Time moves on when everything waits, at once
/// to the next moment at which something is due.
///
/// ```
/// use std::time::Duration;
/// use homeostat_cluster::{Cluster, simulate};
///
/// let later = simulate(async || {
///     let cluster = Cluster::simulated(7).await.unwrap();
///     tokio::time::sleep(Duration::from_secs(86_400)).await;
///     cluster.clock().now_seconds()
/// });
/// assert_eq!(later.unwrap(), "2026-01-02T00:00:00Z");
/// ```
///
/// # Errors
/// If the operating system gives no runtime.
pub fn simulate<T>(body: impl AsyncFnOnce() -> T) -> std::io::Result<T> {
    Ok(paused()?.block_on(body()))
}

/// A runtime of one thread whose time is paused.
pub(crate) fn paused() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()
}
