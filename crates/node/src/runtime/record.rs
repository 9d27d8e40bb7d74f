//! One container as the runtime and the kubelet remember it.
//!
//! A record is small: what follows from the plan isn't in it.

use std::sync::Arc;

use homeostat_model::Timestamp;
use k8s_openapi::api::core::v1::ResourceRequirements;

use super::{Backoff, ContainerPlan, Probe};
use crate::behavior::choice::Part;

/// What a container does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Its turn has not come.
    Waiting,
    /// Its image is on its way.
    Pulling,
    /// The pull failed just now.
    PullFailed,
    /// The pull failed; the next try comes after the backoff.
    PullBackOff,
    /// Its image isn't there and must not be pulled.
    NeverPull,
    /// What it is configured with isn't there; looked for again in a while.
    Misconfigured,
    /// The image is there, the process about to be.
    Starting,
    /// Runs.
    Running,
    /// Was told to stop; ends then, at the latest. Without a time it waits for others to end before it.
    Stopping {
        /// The end.
        exit_at: Option<Timestamp>,
        /// It takes longer than it may, and is killed then.
        killed: bool,
    },
    /// Ended. Whether it comes again is the plan's business.
    Exited,
    /// Ended, and starts again after the backoff.
    BackOff,
}

/// A run that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Termination {
    /// The start.
    pub started: Timestamp,
    /// The end.
    pub finished: Timestamp,
    /// Exit code.
    pub code: i32,
    /// The reason.
    pub reason: Arc<str>,
    /// The termination message.
    pub message: Option<Arc<str>>,
    /// Which run it was: the restarts before it.
    pub run: i32,
}

/// A container.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// What it does.
    pub phase: Phase,
    /// Since when.
    pub since: Timestamp,
    /// When the present run began.
    pub started: Timestamp,
    /// Restarts so far.
    pub restarts: i32,
    /// Whether it has ever run in this sandbox and passed its startup probe.
    pub begun: bool,
    /// The run that ended last, where none has begun since.
    pub end: Option<Box<Termination>>,
    /// The run before that.
    pub last: Option<Box<Termination>>,
    /// Delays of restarts.
    pub backoff: Backoff,
    /// Delays of pulls.
    pub pulls: Backoff,
    /// Pulls that failed.
    pub failed_pulls: i32,
    /// Whether the image was pulled for it.
    pub pulled: bool,
    /// The startup probe.
    pub startup: Probe,
    /// The readiness probe.
    pub readiness: Probe,
    /// The liveness probe.
    pub liveness: Probe,
    /// A fingerprint of the resources that it was given.
    pub allocated: u64,
    /// What it has while other resources are asked for, or are on their way.
    pub held: Option<Box<ResourceRequirements>>,
}

impl Record {
    /// A container that has not begun.
    pub fn new(now: Timestamp, restarts: i32, allocated: u64) -> Self {
        Self {
            phase: Phase::Waiting,
            since: now,
            started: now,
            restarts,
            begun: false,
            end: None,
            last: None,
            backoff: Backoff::default(),
            pulls: Backoff::default(),
            failed_pulls: 0,
            pulled: false,
            startup: Probe::default(),
            readiness: Probe::default(),
            liveness: Probe::default(),
            allocated,
            held: None,
        }
    }

    /// Whether there is a process.
    pub fn is_up(&self) -> bool {
        matches!(self.phase, Phase::Running | Phase::Stopping { .. })
    }

    /// Whether its startup probe has succeeded, where there is a process.
    pub fn is_started(&self) -> bool {
        self.is_up() && self.startup.result
    }

    /// Restarts before the run that goes on, or comes next.
    pub fn run(&self) -> i32 {
        if self.end.is_some() { self.restarts.saturating_add(1) } else { self.restarts }
    }

    /// Whether it ended with code 0.
    pub fn succeeded(&self) -> bool {
        self.phase == Phase::Exited && self.end.as_ref().is_some_and(|e| e.code == 0)
    }

    /// Whether those that come after it may begin.
    pub(crate) fn lets_others_begin(&self, plan: &ContainerPlan<'_>) -> bool {
        match plan.part {
            Part::Init => self.succeeded(),
            Part::Sidecar => self.begun,
            Part::Main | Part::Ephemeral => true,
        }
    }
}
