//! What operator authors depend on: the SDK, under one name.
//!
//! It re-exports [`homeostat_sdk`] and adds nothing to it.

pub use homeostat_sdk::*;
