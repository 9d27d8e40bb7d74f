//! The scheduling framework: the plugin API, and the order in which plugins are asked.
//!
//! Everything here but [`Io`] is a pure function of a snapshot. The loop that feeds it and acts on its answers is
//! `run`.

mod diagnosis;
mod event;
mod plugin;
mod profile;
mod state;
mod status;

pub use diagnosis::{Diagnosis, EXTENDER};
pub use event::{Event, NodeChange};
pub use plugin::{
    Bind, Candidate, Cycle, Filter, Io, MAX_SCORE, Opinion, Permission, Permit, Plugin, PostBind, PostFilter,
    PreBind, PreEnqueue, PreFilter, PreFiltered, PreScore, Proposal, QueueSort, Reserve, Score, WaitingPod,
    normalize,
};
pub use profile::{Feasible, Framework, Points, pick};
pub(crate) use profile::{MAX_PLUGINS, start};
pub use state::{CycleState, StateData};
pub use status::{Code, Status};
