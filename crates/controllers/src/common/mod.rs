//! What several controllers need: questions about pods, adoption and release, revision histories, hashes of templates.
//!
//! Everything here that decides is pure; what writes says so in its name and does one thing.

use std::time::Duration;

use homeostat_sdk::Settings;

pub(crate) mod backoff;
pub(crate) mod claim;
pub(crate) mod condition;
pub(crate) mod hash;
pub(crate) mod history;
pub(crate) mod pod_control;
pub(crate) mod pods;
pub(crate) mod scale;
pub(crate) mod scaled;
pub(crate) mod served;
pub(crate) mod template;

/// How controllers run that count pods: many pods change one after the other, and each would be a write of the status.
/// Shorter than what people notice. Not for those who take one pod after the other: they would only wait.
pub(crate) fn counting() -> Settings {
    Settings { gather: Duration::from_millis(50), ..Settings::default() }
}
