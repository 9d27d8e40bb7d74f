//! What operator authors depend on: the SDK, under one name, and with the feature `testing` a control plane to test
//! against.
//!
//! It re-exports [`homeostat_sdk`], and the apply configurations of [`homeostat_apply`]. The feature `testing` is for
//! `[dev-dependencies]`: no operator ships the control plane. With the feature `opentelemetry` a [`Program`] exports its
//! traces.

pub use homeostat_program::Program;
pub use homeostat_sdk::*;

#[cfg(feature = "apply")]
pub use homeostat_apply as apply;

#[cfg(feature = "testing")]
pub mod testing;
